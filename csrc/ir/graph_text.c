/* Graphs as text. Invariant: parse(print(g)) prints the same text, so every fact that is not inferred
 * is written: see docs/ir.md for the form. */
#include "ir/graph_text.h"
#include "ir/layout.h"

#include <string.h>

#define MOST_INPUTS (1 << 24)

/* ---- head: symbols, guards, inputs ---- */

static void
collect_block(CiMap *symbols, const CiBlock *block)
{
    for (int k = 0; k < block->nnodes; k++) {
        const CiNode *node = block->nodes[k];
        int nstarts = node->op == CI_OP_for ? 1 : ci_node_nstarts(node);
        for (int d = 0; d < node->rank; d++)
            ci_io_collect_symbols(symbols, node->sizes[d]);
        for (int d = 0; d < nstarts; d++)
            ci_io_collect_symbols(symbols, node->starts[d]);
        for (int d = 0; node->steps && d < node->rank; d++)
            ci_io_collect_symbols(symbols, node->steps[d]);
        for (int b = 0; b < node->nblocks; b++)
            collect_block(symbols, node->blocks[b]);
    }
}

/* Symbols that are declared where they are defined. */
static void
find_defined(void *defined, CiNode *node)
{
    if (node->op == CI_OP_define)
        ci_map_put(defined, CI_KEY(node->starts[0]), (void *)node->starts[0]);
}

CiMap *
ci_graph_symbols(const CiGraph *g)
{
    CiMap *symbols = ci_map_new(g->ctx);
    for (int k = 0; k < g->ninputs; k++)
        for (int d = 0; d < g->inputs[k]->rank; d++) {
            ci_io_collect_symbols(symbols, g->inputs[k]->sizes[d]);
            ci_io_collect_symbols(symbols, g->strides[k][d]);
        }
    collect_block(symbols, g->body);
    for (int k = 0; k < g->env->nguards; k++) {
        ci_io_collect_symbols(symbols, g->env->guards[k].left);
        ci_io_collect_symbols(symbols, g->env->guards[k].right);
    }
    return symbols;
}

/* s0 in [0, inf) from in0.sizes 1 hint 7 */
static const CiExpr *
io_source(CiTextIo *f, CiShapeEnv *env, const CiExpr *symbol)
{
    CiSymbolSource source = {.axis = -1, .is_unbacked = true};
    bool is_known = false;
    for (int k = 0; f->out && !is_known && k < env->nsources; k++) {
        is_known = env->sources[k].symbol == symbol;
        source = is_known ? env->sources[k] : source;
    }
    source.symbol = symbol = ci_io_symbol(f, symbol);
    if (!ci_io_flag(f, " from ", is_known))
        return symbol;
    const char *name = ci_io_word(f, f->out ? ci_format(f->ctx, "in%d", source.input) : NULL);
    const char *digit = strncmp(name, "in", 2) ? "" : name + 2;
    for (; !f->out && *digit >= '0' && *digit <= '9' && source.input < MOST_INPUTS; digit++)
        source.input = 10 * source.input + (*digit - '0');
    if (!f->out && *digit)
        ci_lexer_fail(&f->lex, "no argument is called %s", name);
    if (ci_io_flag(f, ".sizes ", source.axis >= 0))
        source.axis = ci_io_count(f, source.axis, -1);
    if (ci_io_flag(f, " hint ", f->out && !source.is_unbacked && !f->met)) {
        source.hint = ci_io_int(f, source.hint);
        source.is_unbacked = false;
    }
    if (!f->out)
        CI_PUSH(f->ctx, env->sources, env->nsources, env->capsources, source);
    return symbol;
}

const CiExpr *
ci_graph_parse_symbol(CiGraph *g, const char *text)
{
    CiTextIo f = ci_io_reader(g->ctx, g->sym, text);
    return io_source(&f, g->env, NULL);
}

static void
io_symbols(CiGraphIo *p)
{
    CiTextIo *f = &p->io;
    CiGraph *g = p->g;
    CiMap *symbols = ci_graph_symbols(g), *defined = ci_map_new(g->ctx);
    const char *before = "symbols {";
    ci_block_visit(g->body, find_defined, defined);
    for (int k = 0; f->out ? k < ci_map_count(symbols) : true; k++) {
        const CiExpr *symbol = f->out ? ci_map_value_at(symbols, k) : NULL;
        if (f->out && ci_map_find(defined, CI_KEY(symbol)))
            continue;
        if (!ci_io_flag(f, before, true))
            break;
        io_source(f, g->env, symbol);
        before = ", ";
    }
    ci_io_text(f, *before == ',' ? "}\n" : "");
}

static void
io_guard(CiTextIo *f, CiShapeGuard *guard)
{
    static const char *const relations[] = {"==", "!=", "<=", "<"};
    ci_io_expr(f, "guard ", &guard->left, " ");
    guard->relation = (CiRelation)ci_io_choice(f, relations, 4, guard->relation, "relation");
    ci_io_expr(f, " ", &guard->right, "");
    guard->loc = ci_io_loc(f, "  ", guard->loc);
    ci_io_text(f, "\n");
}

static void
io_guards(CiGraphIo *p)
{
    CiTextIo *f = &p->io;
    CiShapeEnv *env = p->g->env;
    for (int k = 0; f->out && k < env->nguards; k++)
        io_guard(f, &env->guards[k]);
    while (!f->out && ci_lexer_is(&f->lex, "guard")) {
        CiShapeGuard guard = {.relation = CI_REL_eq};
        io_guard(f, &guard);
        CI_PUSH(f->ctx, env->guards, env->nguards, env->capguards, guard);
    }
}

/* Its type and device. */
static CiNode *
io_input(CiTextIo *f, CiGraph *g, CiNode *input)
{
    CiTextType type = {.kind = CI_KIND_array};
    if (f->out)
        type = (CiTextType){.kind = input->kind,
                            .dtype = input->dtype,
                            .rank = input->rank,
                            .sizes = input->sizes,
                            .strides = g->strides[input->index]};
    ci_io_type(f, &type);
    if (type.has_order)
        type.strides = ci_layout_dense_strides(g->ctx, g->sym, type.rank, type.sizes, type.order);
    if (!f->out)
        input = ci_graph_input(g, type.dtype, type.kind, type.rank, type.sizes, type.strides);
    input->device = ci_io_device(f, input->device);
    return input;
}

CiNode *
ci_graph_parse_input(CiGraph *g, const char *text)
{
    CiTextIo f = ci_io_reader(g->ctx, g->sym, text);
    return io_input(&f, g, NULL);
}

static void
io_inputs(CiGraphIo *p)
{
    CiTextIo *f = &p->io;
    CiGraph *g = p->g;
    ci_io_text(f, "(");
    bool has_any = f->out || !ci_lexer_is(&f->lex, ")");
    for (int k = 0; has_any && ci_io_more(f, k, g->ninputs, NULL); k++) {
        const char *name = ci_io_word(f, f->out ? g->inputs[k]->name : NULL);
        ci_io_text(f, ": ");
        CiNode *input = io_input(f, g, f->out ? g->inputs[k] : NULL);
        if (f->out)
            continue;
        if (strcmp(name, input->name) != 0)
            ci_lexer_fail(&f->lex, "input number %d is called %s", input->index, input->name);
        ci_map_put(p->values, CI_KEY(input->name), input);
    }
    ci_io_text(f, ")");
}

/* write in0 = %3 */
static void
io_writes(CiGraphIo *p)
{
    CiTextIo *f = &p->io;
    CiGraph *g = p->g;
    for (int k = 0; f->out ? k < g->nwrites : ci_lexer_is(&f->lex, "write"); k++) {
        ci_io_indent(f);
        ci_io_text(f, "write ");
        CiNode *input = ci_graph_io_value(p, f->out ? g->writes[k].input : NULL);
        ci_io_text(f, " = ");
        CiNode *value = ci_graph_io_value(p, f->out ? g->writes[k].value : NULL);
        ci_io_text(f, "\n");
        if (!f->out)
            ci_graph_write(g, input, value);
    }
}

static void
io_graph(CiGraphIo *p)
{
    CiTextIo *f = &p->io;
    CiGraph *g = p->g;
    io_symbols(p);
    io_guards(p);
    ci_io_text(f, "graph ");
    g->name = ci_io_name(f, g->name);
    io_inputs(p);
    ci_io_enter(f, " {\n");
    ci_graph_io_nodes(p, g->body);
    io_writes(p);
    ci_graph_io_results(p, g->body, "return");
    ci_io_end(f);
}

static void
print_graph(CiText *out, CiGraph *g, CiMap *met)
{
    CiGraphIo p = {ci_io_printer(g->ctx, g->sym, out), g, NULL};
    p.io.met = met;
    ci_graph_number(g);
    io_graph(&p);
}

void
ci_graph_print(CiText *out, CiGraph *g)
{
    print_graph(out, g, NULL);
}

void
ci_graph_print_canonical(CiText *out, CiGraph *g)
{
    print_graph(out, g, ci_map_new(g->ctx));
}

static void
read_graph(CiContext *ctx, void *arg)
{
    (void)ctx;
    io_graph(arg);
}

CiGraph *
ci_graph_parse(CiContext *ctx, const char *text)
{
    CiGraph *g = ci_graph_new(ctx, "");
    CiGraphIo p = {ci_io_reader(ctx, g->sym, text), g, ci_map_new(ctx)};
    ci_lexer_run(ctx, &p.io.lex, read_graph, &p);
    return g;
}
