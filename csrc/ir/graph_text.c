/* Printing a graph. Invariant: parse(print(g)) prints the same text, so every fact that is not
 * inferred is written: see docs/ir.md for the form, graph_parse.c for the reader. */
#include "ir/text_common.h"
#include "ir/layout.h"

#include <inttypes.h>

typedef struct Printer {
    CiText *out;
    CiMap *met; /* of a form: the symbols of data met so far (ci_form_print_expr), and no hints */
} Printer;

static void
print_expr(Printer *p, const CiExpr *e)
{
    ci_form_print_expr(p->out, e, p->met);
}

static void
print_ref(CiText *out, const CiNode *node)
{
    if (node->op == CI_OP_input)
        ci_text_add(out, "%s", node->name);
    else
        ci_text_add(out, "%%%d", node->id);
}

static void
print_refs(CiText *out, int count, CiNode *const *nodes)
{
    for (int k = 0; k < count; k++) {
        ci_text_add(out, k ? ", " : "");
        print_ref(out, nodes[k]);
    }
}

static void
print_value_type(Printer *p, const CiNode *node)
{
    ci_form_print_type(p->out, node->kind, node->dtype, node->rank, node->sizes, node->order,
                       p->met);
}

static void
print_definition(Printer *p, const CiNode *node)
{
    print_ref(p->out, node);
    ci_text_add(p->out, ": ");
    print_value_type(p, node);
}

/* ---- head: symbols, guards, inputs ---- */

static void
collect_block(CiMap *symbols, const CiBlock *block)
{
    for (int k = 0; k < block->nnodes; k++) {
        const CiNode *node = block->nodes[k];
        int nstarts = node->op == CI_OP_for ? 1 : ci_node_nstarts(node);
        for (int d = 0; d < node->rank; d++)
            ci_form_collect_symbols(symbols, node->sizes[d]);
        for (int d = 0; d < nstarts; d++)
            ci_form_collect_symbols(symbols, node->starts[d]);
        for (int d = 0; node->steps && d < node->rank; d++)
            ci_form_collect_symbols(symbols, node->steps[d]);
        for (int b = 0; b < node->nblocks; b++)
            collect_block(symbols, node->blocks[b]);
    }
}

/* Symbols that are declared where they are defined. */
static void
find_defined(CiMap *defined, const CiBlock *block)
{
    for (int k = 0; k < block->nnodes; k++) {
        const CiNode *node = block->nodes[k];
        if (node->op == CI_OP_define)
            ci_map_put(defined, CI_KEY(node->starts[0]), (void *)node->starts[0]);
        for (int b = 0; b < node->nblocks; b++)
            find_defined(defined, node->blocks[b]);
    }
}

CiMap *
ci_graph_symbols(const CiGraph *g)
{
    CiMap *symbols = ci_map_new(g->ctx);
    for (int k = 0; k < g->ninputs; k++)
        for (int d = 0; d < g->inputs[k]->rank; d++) {
            ci_form_collect_symbols(symbols, g->inputs[k]->sizes[d]);
            ci_form_collect_symbols(symbols, g->strides[k][d]);
        }
    collect_block(symbols, g->body);
    for (int k = 0; k < g->env->nguards; k++) {
        ci_form_collect_symbols(symbols, g->env->guards[k].left);
        ci_form_collect_symbols(symbols, g->env->guards[k].right);
    }
    return symbols;
}

static void
print_source(Printer *p, const CiShapeEnv *env, const CiExpr *symbol)
{
    for (int k = 0; k < env->nsources; k++) {
        const CiSymbolSource *source = &env->sources[k];
        if (source->symbol != symbol)
            continue;
        ci_text_add(p->out, " from in%d", source->input);
        if (source->axis >= 0)
            ci_text_add(p->out, ".sizes %d", source->axis);
        if (!source->is_unbacked && p->met == NULL)
            ci_text_add(p->out, " hint %" PRId64, source->hint);
        return;
    }
}

static void
print_symbols(Printer *p, const CiGraph *g)
{
    CiMap *symbols = ci_graph_symbols(g), *defined = ci_map_new(g->ctx);
    int nprinted = 0;
    find_defined(defined, g->body);
    for (int k = 0; k < ci_map_count(symbols); k++) {
        const CiExpr *symbol = ci_map_value_at(symbols, k);
        if (ci_map_find(defined, CI_KEY(symbol)))
            continue;
        ci_text_add(p->out, nprinted++ ? ", " : "symbols {");
        ci_form_print_symbol(p->out, symbol, p->met);
        print_source(p, g->env, symbol);
    }
    ci_text_add(p->out, nprinted ? "}\n" : "");
}

static void
print_guards(Printer *p, const CiGraph *g)
{
    static const char *const relations[] = {"==", "!=", "<=", "<"};
    for (int k = 0; k < g->env->nguards; k++) {
        const CiShapeGuard *guard = &g->env->guards[k];
        ci_text_add(p->out, "guard ");
        print_expr(p, guard->left);
        ci_text_add(p->out, " %s ", relations[guard->relation]);
        print_expr(p, guard->right);
        ci_text_add(p->out, guard->loc.line > 0 ? "  " : "");
        ci_form_print_loc(p->out, guard->loc);
        ci_text_add(p->out, "\n");
    }
}

static void
print_input(Printer *p, const CiGraph *g, int k)
{
    const CiNode *node = g->inputs[k];
    const CiExpr *const *dense = ci_layout_dense_strides(g->ctx, g->sym, node->rank, node->sizes,
                                                         ci_layout_c_order(g->ctx, node->rank));
    bool is_dense = true;
    for (int d = 0; d < node->rank; d++)
        is_dense = is_dense && g->strides[k][d] == dense[d];
    ci_text_add(p->out, "%s: ", node->name);
    ci_form_print_type(p->out, node->kind, node->dtype, node->rank, node->sizes, NULL, p->met);
    if (!is_dense) {
        ci_text_add(p->out, " strides [");
        ci_form_print_exprs(p->out, node->rank, g->strides[k], p->met);
        ci_text_add(p->out, "]");
    }
    ci_form_print_device(p->out, node->device);
}

/* ---- nodes ---- */

static void
print_list(Printer *p, const char *name, int count, const CiExpr *const *exprs)
{
    ci_text_add(p->out, ", %s=[", name);
    for (int k = 0; k < count; k++) {
        ci_text_add(p->out, k ? ", " : "");
        print_expr(p, exprs[k]);
    }
    ci_text_add(p->out, "]");
}

static void
print_attributes(Printer *p, const CiNode *node)
{
    bool is_one_axis = node->op == CI_OP_iota || node->op == CI_OP_concat ||
                       node->op == CI_OP_window || ci_op_kind(node->op) == CI_OPKIND_scan;
    if (is_one_axis) {
        ci_text_add(p->out, "%saxis=%d", node->nargs ? ", " : "", node->axes[0]);
    } else if (node->naxes || ci_op_kind(node->op) == CI_OPKIND_reduce ||
               ci_op_kind(node->op) == CI_OPKIND_argreduce || node->op == CI_OP_permute) {
        ci_text_add(p->out, ", axes=");
        ci_form_print_ints(p->out, node->naxes, node->axes);
    }
    if (node->pairwise) {
        ci_text_add(p->out, ", pairwise=");
        ci_form_print_ints(p->out, node->naxes, node->pairwise->axes);
        ci_text_add(p->out, ", inner=%d", node->pairwise->ninner);
        if (node->pairwise->chunk) {
            ci_text_add(p->out, ", chunk=");
            print_expr(p, node->pairwise->chunk);
        }
        if (node->pairwise->alone) {
            ci_text_add(p->out, ", alone=%d where ", node->pairwise->nalone);
            print_expr(p, node->pairwise->alone);
        }
    }
    if (ci_op_kind(node->op) == CI_OPKIND_ufunc)
        ci_text_add(p->out, ", by=numpy");
    if (node->op == CI_OP_scatter && node->is_combined)
        ci_text_add(p->out, ", combine=%s", ci_op_name(node->combine));
    if (node->op == CI_OP_scatter && node->is_distinct)
        ci_text_add(p->out, ", distinct");
    if (node->op == CI_OP_slice) {
        print_list(p, "starts", node->rank, node->starts);
        print_list(p, "steps", node->rank, node->steps);
    }
    if (node->op == CI_OP_diagonal) {
        ci_text_add(p->out, ", offset=");
        print_expr(p, node->starts[0]);
    }
}

static void
print_call(Printer *p, const CiNode *node)
{
    if (node->op == CI_OP_const) {
        ci_text_add(p->out, "const ");
        ci_const_print(p->out, node->dtype, node->value);
        return;
    }
    ci_text_add(p->out, "%s", ci_op_name(ci_op_public(node->op)));
    if (node->op == CI_OP_expr) {
        ci_text_add(p->out, "(");
        print_expr(p, node->starts[0]);
        ci_text_add(p->out, ")");
        return;
    }
    if (node->op == CI_OP_extern) {
        ci_text_add(p->out, " ");
        ci_form_print_name(p->out, node->ext ? node->ext->name : "");
    }
    ci_text_add(p->out, "(");
    print_refs(p->out, node->nargs, node->args);
    print_attributes(p, node);
    ci_text_add(p->out, ")");
    if (ci_op_kind(node->op) == CI_OPKIND_extern) {
        if (node->ext && node->ext->key && *node->ext->key) {
            ci_text_add(p->out, " key ");
            ci_form_print_string(p->out, node->ext->key);
        }
    } else if (node->op == CI_OP_define) {
        ci_text_add(p->out, " ");
        print_expr(p, node->starts[0]);
        ci_text_add(p->out, " in ");
        ci_form_print_range(p->out, node->starts[0]->low, node->starts[1], p->met);
    } else if (node->op == CI_OP_check) {
        ci_text_add(p->out, " ");
        ci_form_print_string(p->out, node->name);
    }
}

/* ---- blocks ---- */

static void print_block(Printer *p, const CiBlock *block, const char *last);

static void
print_carried(Printer *p, const CiNode *region)
{
    const CiBlock *block = region->blocks[0];
    int skip = block->nparams - region->nargs; /* the induction has no initial value */
    ci_text_add(p->out, " carry (");
    for (int k = 0; k < block->nparams; k++) {
        ci_text_add(p->out, k ? ", " : "");
        print_definition(p, block->params[k]);
        if (k >= skip) {
            ci_text_add(p->out, " = ");
            print_ref(p->out, region->args[k - skip]);
        }
    }
    ci_text_add(p->out, ")");
}

static void
print_open(CiText *out, const CiNode *region)
{
    ci_text_add(out, region->loc.line > 0 ? " " : "");
    ci_form_print_loc(out, region->loc);
    ci_text_add(out, " {\n");
}

static void
print_region(Printer *p, const CiNode *region)
{
    ci_text_add(p->out, "%s", ci_op_name(region->op));
    if (region->op == CI_OP_if) {
        ci_text_add(p->out, " ");
        print_ref(p->out, region->args[0]);
        print_open(p->out, region);
        print_block(p, region->blocks[0], "yield");
        ci_text_indent(p->out);
        ci_text_add(p->out, "} else {\n");
        print_block(p, region->blocks[1], "yield");
    } else if (region->op == CI_OP_while) {
        print_carried(p, region);
        print_open(p->out, region);
        print_block(p, region->blocks[0], "test");
        ci_text_indent(p->out);
        ci_text_add(p->out, "} do {\n");
        print_block(p, region->blocks[1], "next");
    } else {
        ci_text_add(p->out, " %s<", region->starts[1]->name);
        print_expr(p, region->starts[0]);
        print_carried(p, region);
        print_open(p->out, region);
        print_block(p, region->blocks[0], "next");
    }
    ci_text_indent(p->out);
    ci_text_add(p->out, "}\n");
}

/* Prints the results of a region, which follow it, in the region's line. Returns their number. */
static int
print_region_results(Printer *p, CiNode *const *nodes, int count)
{
    int nresults = 0;
    while (nresults < count && nodes[nresults]->op == CI_OP_result) {
        ci_text_add(p->out, nresults ? ", " : "");
        print_definition(p, nodes[nresults++]);
    }
    ci_text_add(p->out, nresults ? " = " : "");
    return nresults;
}

static void
print_nodes(Printer *p, const CiBlock *block)
{
    for (int k = 0; k < block->nnodes; k++) {
        const CiNode *node = block->nodes[k];
        ci_text_indent(p->out);
        if (node->nblocks) {
            int nresults = print_region_results(p, block->nodes + k + 1, block->nnodes - k - 1);
            print_region(p, node);
            k += nresults;
            continue;
        }
        if (node->dtype != CI_DTYPE_none) {
            print_definition(p, node);
            ci_text_add(p->out, " = ");
        }
        print_call(p, node);
        ci_text_add(p->out, node->loc.line > 0 ? "  " : "");
        ci_form_print_loc(p->out, node->loc);
        ci_text_add(p->out, "\n");
    }
}

static void
print_block(Printer *p, const CiBlock *block, const char *last)
{
    p->out->indent += 2;
    print_nodes(p, block);
    ci_text_indent(p->out);
    ci_text_add(p->out, "%s%s", last, block->nresults ? " " : "");
    print_refs(p->out, block->nresults, block->results);
    ci_text_add(p->out, "\n");
    p->out->indent -= 2;
}

static void
print_graph(Printer *p, CiGraph *g)
{
    CiText *out = p->out;

    ci_graph_number(g);
    print_symbols(p, g);
    print_guards(p, g);
    ci_text_add(out, "graph ");
    ci_form_print_name(out, g->name);
    ci_text_add(out, "(");
    for (int k = 0; k < g->ninputs; k++) {
        ci_text_add(out, k ? ", " : "");
        print_input(p, g, k);
    }
    ci_text_add(out, ") {\n");
    out->indent += 2;
    print_nodes(p, g->body);
    for (int k = 0; k < g->nwrites; k++) {
        ci_text_indent(out);
        ci_text_add(out, "write %s = ", g->writes[k].input->name);
        print_ref(out, g->writes[k].value);
        ci_text_add(out, "\n");
    }
    ci_text_indent(out);
    ci_text_add(out, "return%s", g->body->nresults ? " " : "");
    print_refs(out, g->body->nresults, g->body->results);
    out->indent -= 2;
    ci_text_add(out, "\n}\n");
}

void
ci_graph_print(CiText *out, CiGraph *g)
{
    print_graph(&(Printer){out, NULL}, g);
}

void
ci_graph_print_form(CiText *out, CiGraph *g)
{
    print_graph(&(Printer){out, ci_map_new(g->ctx)}, g);
}
