/* Printing loops. Invariant: parse(print(loops)) prints the same text. A buffer is declared where
 * it is first stored when the store is the plain one, else on a line of its own; declarations keep
 * the order of ids. */
#include "ir/loop_text.h"

#include "ir/text_common.h"
#include "ir/layout.h"

#include <string.h>

/* ---- head ---- */

static void
collect_body(CiMap *symbols, const CiBody *body)
{
    for (int k = 0; k < body->nops; k++)
        if (body->ops[k].index)
            ci_form_collect_symbols(symbols, body->ops[k].index);
}

static void
collect_exprs(CiMap *symbols, int count, const CiExpr *const *exprs)
{
    for (int k = 0; k < count; k++)
        ci_form_collect_symbols(symbols, exprs[k]);
}

void
ci_loop_collect_nest(CiMap *symbols, const CiNest *nest)
{
    for (int d = 0; d < nest->naxes; d++)
        ci_form_collect_symbols(symbols, nest->axes[d].extent);
    collect_body(symbols, &nest->body);
    ci_form_collect_symbols(symbols, nest->store);
}

void
ci_loop_collect_extern(CiMap *symbols, const CiExternItem *ext)
{
    for (int d = 0; d <= ext->noperands; d++) {
        ci_form_collect_symbols(symbols, ext->offsets[d]);
        collect_exprs(symbols, ext->ranks[d], ext->sizes[d]);
        collect_exprs(symbols, ext->ranks[d], ext->strides[d]);
    }
}

static void
collect_item(void *arg, CiItem *item)
{
    CiMap *symbols = arg;
    if (item->kind == CI_ITEM_nest)
        ci_loop_collect_nest(symbols, item->nest);
    else if (item->kind == CI_ITEM_extern)
        ci_loop_collect_extern(symbols, item->ext);
    else if (item->kind == CI_ITEM_symbol)
        ci_form_collect_symbols(symbols, item->check->limit);
    else if (item->region && item->region->extent)
        ci_form_collect_symbols(symbols, item->region->extent);
}

/* Symbols that are declared where they are defined, with what defines them. */
static void
note_defined(void *arg, CiItem *item)
{
    CiMap *defined = arg;
    if (item->kind == CI_ITEM_symbol)
        ci_map_put(defined, CI_KEY(item->check->symbol), item->check);
}

void
ci_loop_collect_buffers(CiMap *symbols, const CiLoops *loops)
{
    for (int k = 0; k < loops->nbuffers; k++) {
        collect_exprs(symbols, loops->buffers[k]->rank, loops->buffers[k]->sizes);
        collect_exprs(symbols, loops->buffers[k]->rank, loops->buffers[k]->strides);
    }
}

void
ci_loop_collect_results(CiMap *symbols, const CiLoops *loops)
{
    for (int k = 0; k < loops->nresults; k++) {
        ci_form_collect_symbols(symbols, loops->results[k].offset);
        collect_exprs(symbols, loops->results[k].rank, loops->results[k].sizes);
        collect_exprs(symbols, loops->results[k].rank, loops->results[k].strides);
    }
}

/* The symbol that was created next after the last; NULL at the end. */
static const CiExpr *
next_symbol(const CiMap *symbols, const CiExpr *last)
{
    const CiExpr *next = NULL;
    for (int k = 0; k < ci_map_count(symbols); k++) {
        const CiExpr *symbol = ci_map_value_at(symbols, k);
        if ((!last || symbol->id > last->id) && (!next || symbol->id < next->id))
            next = symbol;
    }
    return next;
}

/* Terms of a sum stand in the order in which their symbols were made: read back, they still do. */
void
ci_loop_print_symbols(CiText *out, const CiMap *symbols, const CiMap *defined)
{
    int nprinted = 0;
    const CiExpr *symbol = NULL;
    while ((symbol = next_symbol(symbols, symbol)) != NULL) {
        if (ci_map_find(defined, CI_KEY(symbol)))
            continue;
        ci_text_add(out, nprinted++ ? ", " : "symbols {");
        ci_form_print_symbol(out, symbol, NULL);
    }
    ci_text_add(out, nprinted ? "}\n" : "");
}

void
ci_loop_print_declaration(CiText *out, const CiLoops *loops, const CiBuffer *buffer)
{
    const CiExpr *const *dense =
        ci_layout_dense_strides(loops->ctx, loops->sym, buffer->rank, buffer->sizes,
                                ci_layout_c_order(loops->ctx, buffer->rank));
    bool is_dense = true;
    for (int k = 0; k < buffer->rank; k++)
        is_dense = is_dense && dense[k] == buffer->strides[k];
    ci_text_add(out, "%s: ", buffer->name);
    ci_form_print_type(out, buffer->kind == CI_BUFFER_scalar ? CI_KIND_python : CI_KIND_array,
                       buffer->dtype, buffer->rank, buffer->sizes, NULL, NULL);
    if (!is_dense) {
        ci_text_add(out, " strides [");
        ci_form_print_exprs(out, buffer->rank, buffer->strides, NULL);
        ci_text_add(out, "]");
    }
    ci_form_print_device(out, buffer->device);
}

void
ci_loop_print_head(CiText *out, const CiLoops *loops)
{
    ci_form_print_name(out, loops->name);
    ci_text_add(out, "(");
    for (int k = 0; k < loops->ninputs; k++) {
        ci_text_add(out, k ? ", " : "");
        ci_loop_print_declaration(out, loops, loops->buffers[k]);
    }
    ci_text_add(out, ")");
}

/* ---- bodies and nests ---- */

static void
print_scalar(CiText *out, const CiScalar *op)
{
    ci_text_add(out, "%s", ci_op_name(op->op));
    if (op->op == CI_OP_load) {
        ci_text_add(out, " %s[", op->buffer->name);
        ci_form_add_expr(out, "", op->index, "]");
    } else if (op->op == CI_OP_index) {
        ci_form_add_expr(out, " [", op->index, "]");
    } else if (op->op == CI_OP_const) {
        ci_text_add(out, " ");
        ci_const_print(out, op->dtype, op->value);
    }
    if (op->op == CI_OP_load || op->op == CI_OP_index) /* the binds in the expression say it */
        return;
    for (int k = 0; k < op->nargs; k++)
        ci_text_add(out, "%s%%%d", k ? ", " : " ", op->args[k]);
    if (op->op == CI_OP_bind || op->op == CI_OP_pack) {
        ci_text_add(out, " [%s<", op->index->name);
        ci_form_add_expr(out, "", op->index->limit, "]");
        if (op->buffer)
            ci_text_add(out, " into %s", op->buffer->name);
    }
}

void
ci_fold_order_print(CiText *out, const char *before, CiFoldOrder order)
{
    static const char *const names[] = {"", "lanes", "rows", "pairwise", "fused"};
    if (order.kind == CI_FOLD_serial)
        return;
    ci_text_add(out, "%s%s", before, names[order.kind]);
    if (order.kind != CI_FOLD_pairwise)
        return;
    ci_text_add(out, " %d", order.ninner);
    if (order.chunk) {
        ci_form_add_expr(out, " by [", order.chunk, "]");
    }
    if (order.alone) {
        ci_text_add(out, " or %d where [", order.nalone);
        ci_form_add_expr(out, "", order.alone, "]");
    }
}

void
ci_loop_print_fold(CiText *out, const CiNest *nest)
{
    if (nest->fold == CI_OP_none)
        return;
    ci_text_add(out, "%s", ci_op_name(nest->fold));
    ci_fold_order_print(out, ".", nest->order);
}

void
ci_loop_print_locs(CiText *out, const CiLoc *locs, int nlocs)
{
    for (int k = 0; k < nlocs; k++) {
        ci_text_add(out, locs[k].line > 0 ? k ? " " : "  " : "");
        ci_form_print_loc(out, locs[k]);
    }
}

void
ci_loop_print_body(CiText *out, const CiNest *nest)
{
    const CiBody *body = &nest->body;
    ci_text_add(out, "{\n");
    out->indent += 2;
    for (int k = 0; k < body->nops; k++) {
        ci_text_indent(out);
        ci_text_add(out, "%%%d: %s = ", k, ci_dtype_name(body->ops[k].dtype));
        print_scalar(out, &body->ops[k]);
        ci_text_add(out, "\n");
    }
    ci_text_line(out, "yield %%%d", body->result);
    out->indent -= 2;
    ci_text_indent(out);
    ci_text_add(out, "}");
    ci_loop_print_locs(out, nest->locs, nest->nlocs);
    ci_text_add(out, "\n");
}

static void
print_axes(CiText *out, const CiNest *nest, int from, int to)
{
    for (int k = from; k < to; k++) {
        ci_text_add(out, "%s%s<", k > from ? ", " : " ", nest->axes[k].var->name);
        ci_expr_print(out, nest->axes[k].extent, CI_STYLE_text);
    }
}

/* From `for` on. */
static void
print_loops_of(CiText *out, const CiNest *nest)
{
    if (nest->is_combined)
        ci_text_add(out, "%s ", ci_op_name(nest->combine));
    ci_text_add(out, "%s%sfor", nest->is_apart ? "apart " : "", nest->is_distinct ? "distinct " : "");
    print_axes(out, nest, 0, nest->npoint);
    if (nest->fold != CI_OP_none) {
        ci_text_add(out, " ");
        ci_loop_print_fold(out, nest);
        print_axes(out, nest, nest->npoint, nest->naxes);
    }
    ci_text_add(out, " ");
    ci_loop_print_body(out, nest);
}

/* A nest whose target has been declared before. */
static void
print_store(CiText *out, const CiNest *nest)
{
    ci_text_indent(out);
    ci_text_add(out, "%s[", nest->target->name);
    ci_form_add_expr(out, "", nest->store, "] = ");
    print_loops_of(out, nest);
}

/* ---- items ---- */

typedef struct Printer {
    CiText *out;
    const CiLoops *loops;
    int ndeclared; /* buffers[0..ndeclared) have been declared */
    CiMap *defined, *printed; /* symbols that data define; of these, those that stand in the text */
} Printer;

void
ci_loop_print_defined(CiText *out, const CiMap *defined, const CiExpr *symbol, CiMap *printed)
{
    const CiCheckItem *check = ci_map_find(defined, CI_KEY(symbol));
    if (!check || ci_map_find(printed, CI_KEY(symbol)))
        return;
    ci_map_put(printed, CI_KEY(symbol), (void *)symbol);
    for (int k = 0; k < check->limit->nsymbols; k++)
        ci_loop_print_defined(out, defined, check->limit->symbols[k], printed);
    ci_text_indent(out);
    ci_text_add(out, "%s in ", symbol->name);
    ci_form_print_range(out, symbol->low, check->limit, NULL);
    ci_text_add(out, "\n");
}

/* Symbols in the sizes of a buffer that is declared before the check that finds their values. */
static void
print_defined_of(Printer *p, const CiBuffer *buffer)
{
    for (int k = 0; k < buffer->rank; k++)
        for (int n = 0; n < buffer->sizes[k]->nsymbols; n++)
            ci_loop_print_defined(p->out, p->defined, buffer->sizes[k]->symbols[n], p->printed);
}

static void
declare_up_to(Printer *p, int end)
{
    for (; p->ndeclared < end; p->ndeclared++) {
        print_defined_of(p, p->loops->buffers[p->ndeclared]);
        ci_text_indent(p->out);
        ci_loop_print_declaration(p->out, p->loops, p->loops->buffers[p->ndeclared]);
        ci_text_add(p->out, "\n");
    }
}

/* The store that a declaration at the nest implies: each point axis is the buffer's axis of that
 * number. */
static bool
is_plain_store(const CiLoops *loops, const CiNest *nest)
{
    const CiBuffer *target = nest->target;
    int nstored = ci_op_kind(nest->fold) == CI_OPKIND_scan ? nest->naxes : nest->npoint;
    const CiExpr *plain = ci_expr_const(loops->sym, 0);
    if (nstored != target->rank)
        return false;
    for (int k = 0; k < nstored; k++)
        plain = ci_expr_add(loops->sym, plain,
                            ci_expr_mul(loops->sym, nest->axes[k].var, target->strides[k]));
    return plain == nest->store;
}

static void
print_nest(Printer *p, const CiNest *nest)
{
    if (ci_nest_count(nest))
        declare_up_to(p, ci_nest_count(nest)->id + 1);
    if (nest->target->id < p->ndeclared || !is_plain_store(p->loops, nest)) {
        declare_up_to(p, nest->target->id + 1);
        print_store(p->out, nest);
        return;
    }
    declare_up_to(p, nest->target->id);
    p->ndeclared++;
    ci_text_indent(p->out);
    ci_loop_print_declaration(p->out, p->loops, nest->target);
    ci_text_add(p->out, " = ");
    print_loops_of(p->out, nest);
}

static void
print_view(CiText *out, const char *name, const CiExpr *offset, int rank,
           const CiExpr *const *sizes, const CiExpr *const *strides)
{
    ci_text_add(out, "%s[+", name);
    ci_form_add_expr(out, "", offset, "; ");
    ci_form_print_exprs(out, rank, sizes, NULL);
    ci_text_add(out, "; ");
    ci_form_print_exprs(out, rank, strides, NULL);
    ci_text_add(out, "]");
}

void
ci_loop_print_extern(CiText *out, const CiExternItem *e)
{
    if (e->op == CI_OP_extern)
        ci_form_print_name(out, e->ext ? e->ext->name : "");
    else
        ci_text_add(out, "%s", ci_op_name(e->op));
    ci_text_add(out, "(");
    for (int k = 0; k < e->noperands; k++) {
        ci_text_add(out, k ? ", " : "");
        if (ci_extern_is_whole(e, k))
            ci_text_add(out, "%s", e->operands[k]->name);
        else
            print_view(out, e->operands[k]->name, e->offsets[k], e->ranks[k], e->sizes[k],
                       e->strides[k]);
    }
    ci_text_add(out, ")");
    if (e->ext && e->ext->key && *e->ext->key) {
        ci_text_add(out, " key ");
        ci_form_print_string(out, e->ext->key);
    }
    int n = e->noperands;
    if (!ci_extern_is_whole(e, n))
        print_view(out, " into ", e->offsets[n], e->ranks[n], e->sizes[n], e->strides[n]);
}

static void
print_extern(Printer *p, const CiExternItem *e)
{
    declare_up_to(p, e->result->id);
    ci_text_indent(p->out);
    if (p->ndeclared == e->result->id) {
        ci_loop_print_declaration(p->out, p->loops, e->result);
        p->ndeclared++;
    } else {
        ci_text_add(p->out, "%s", e->result->name);
    }
    ci_text_add(p->out, " = extern ");
    ci_loop_print_extern(p->out, e);
    ci_loop_print_locs(p->out, &e->loc, 1);
    ci_text_add(p->out, "\n");
}

void
ci_loop_print_check(CiText *out, const CiCheckItem *check)
{
    if (check->symbol) {
        ci_text_add(out, "%s = symbol %s in ", check->symbol->name, check->buffer->name);
        ci_form_print_range(out, check->symbol->low, check->limit, NULL);
    } else {
        ci_text_add(out, "check %s ", check->buffer->name);
        ci_form_print_string(out, check->why);
    }
    ci_loop_print_locs(out, &check->loc, 1);
    ci_text_add(out, "\n");
}

static void print_items(Printer *p, const CiItems *items);

void
ci_loop_print_swaps(CiText *out, const CiRegion *region)
{
    for (int k = 0; k < region->nswaps; k += 2)
        ci_text_line(out, "swap %s, %s", region->swaps[k]->name, region->swaps[k + 1]->name);
}

static void
print_inner(Printer *p, const CiRegion *region, const CiItems *items, const char *close)
{
    p->out->indent += 2;
    print_items(p, items);
    if (items == &region->body)
        ci_loop_print_swaps(p->out, region);
    p->out->indent -= 2;
    ci_text_line(p->out, "%s", close);
}

static void
print_region(Printer *p, const CiItem *item)
{
    const CiRegion *region = item->region;
    ci_text_indent(p->out);
    if (item->kind == CI_ITEM_for) {
        ci_text_add(p->out, "for %s<", region->var->name);
        ci_expr_print(p->out, region->extent, CI_STYLE_text);
        ci_text_add(p->out, region->is_parallel ? " parallel {\n" : " {\n");
        print_inner(p, region, &region->body, "}");
    } else if (item->kind == CI_ITEM_while) {
        ci_text_add(p->out, "while {\n");
        print_inner(p, region, &region->condition_items,
                    ci_format(p->out->ctx, "} test %s {", region->condition->name));
        print_inner(p, region, &region->body, "}");
    } else {
        ci_text_add(p->out, "if %s {\n", region->condition->name);
        print_inner(p, region, &region->body, "} else {");
        print_inner(p, region, &region->other, "}");
    }
}

static int
last_buffer_of(const CiItems *items)
{
    int last = -1;
    for (int k = 0; k < items->count; k++) {
        const CiItem *item = &items->items[k];
        int id = item->kind == CI_ITEM_nest     ? item->nest->target->id
                 : item->kind == CI_ITEM_extern ? item->ext->result->id
                                                : -1;
        last = id > last ? id : last;
    }
    return last;
}

/* Of a size that a loop around its nest, or data, decides. */
static bool
varies(const CiBuffer *buffer)
{
    for (int k = 0; k < buffer->rank; k++)
        for (int n = 0; n < buffer->sizes[k]->nsymbols; n++)
            if (buffer->sizes[k]->symbols[n]->symbol_kind == CI_SYMBOL_index ||
                buffer->sizes[k]->symbols[n]->symbol_kind == CI_SYMBOL_unbacked)
                return true;
    return false;
}

/* A buffer that a region stores lives outside of it, and is declared before, where its size is
 * known there. */
static void
declare_before_region(Printer *p, const CiRegion *region)
{
    const CiItems *inner[3] = {&region->condition_items, &region->body, &region->other};
    for (int k = 0; k < 3; k++) {
        int end = p->ndeclared;
        while (end <= last_buffer_of(inner[k]) && !varies(p->loops->buffers[end]))
            end++;
        declare_up_to(p, end);
    }
}

static void
print_items(Printer *p, const CiItems *items)
{
    for (int k = 0; k < items->count; k++) {
        const CiItem *item = &items->items[k];
        if (item->kind == CI_ITEM_nest) {
            print_nest(p, item->nest);
        } else if (item->kind == CI_ITEM_extern) {
            print_extern(p, item->ext);
        } else if (item->check) {
            ci_text_indent(p->out);
            ci_loop_print_check(p->out, item->check);
            if (item->check->symbol)
                ci_map_put(p->printed, CI_KEY(item->check->symbol), (void *)item->check->symbol);
        } else {
            declare_before_region(p, item->region);
            print_region(p, item);
        }
    }
}

static void
print_result(CiText *out, const CiResult *result)
{
    ci_text_add(out, "%s",
                result->kind == CI_KIND_scalar   ? "scalar "
                : result->kind == CI_KIND_python ? "python "
                                                 : "");
    if (result->is_whole)
        ci_text_add(out, "%s", result->buffer->name);
    else
        print_view(out, result->buffer->name, result->offset, result->rank, result->sizes,
                   result->strides);
}

void
ci_loop_print_results(CiText *out, const CiLoops *loops)
{
    ci_text_indent(out);
    ci_text_add(out, "return");
    for (int k = 0; k < loops->nresults; k++) {
        ci_text_add(out, k ? ", " : " ");
        print_result(out, &loops->results[k]);
    }
    ci_text_add(out, "\n");
}

void
ci_loops_print(CiText *out, const CiLoops *loops)
{
    CiMap *symbols = ci_map_new(loops->ctx), *defined = ci_map_new(loops->ctx);
    Printer p = {out, loops, loops->ninputs, defined, ci_map_new(loops->ctx)};
    ci_items_visit(&loops->items, note_defined, defined);
    ci_loop_collect_buffers(symbols, loops);
    ci_items_visit(&loops->items, collect_item, symbols);
    ci_loop_collect_results(symbols, loops);
    ci_loop_print_symbols(out, symbols, defined);
    ci_text_add(out, "loops ");
    ci_loop_print_head(out, loops);
    ci_text_add(out, " {\n");
    out->indent += 2;
    print_items(&p, &loops->items);
    declare_up_to(&p, loops->nbuffers);
    ci_loop_print_results(out, loops);
    out->indent -= 2;
    ci_text_add(out, "}\n");
}
