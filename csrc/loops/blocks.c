/* Helpers to rewrite blocks. */
#include "loops/loops.h"

void
ci_add_items(CiContext *ctx, CiItems *to, const CiItems *more)
{
    for (int k = 0; k < more->count; k++)
        CI_PUSH(ctx, to->items, to->count, to->capacity, more->items[k]);
}

CiItems
ci_put_in_loop(CiContext *ctx, CiItems items, const CiExpr *var, const CiExpr *extent)
{
    CiItem loop = {.kind = CI_ITEM_for, .region = CI_NEW(ctx, CiRegion)};
    *loop.region = (CiRegion){.kind = CI_ITEM_for, .var = var, .extent = extent, .body = items};
    items = (CiItems){0};
    CI_PUSH(ctx, items.items, items.count, items.capacity, loop);
    return items;
}

void
ci_nest_set_row(const CiLoopRewriter *r, CiNest *nest, int count, const CiExpr *const *from,
                const CiExpr *const *to, CiAxis row)
{
    ci_nest_substitute(r->ctx, r->sym, nest, count, from, to);
    nest->axes = CI_NEW(r->ctx, CiAxis);
    nest->axes[0] = row;
    nest->naxes = nest->npoint = 1;
}

CiNest *
ci_add_copy(const CiLoopRewriter *r, CiItems *items, const CiNest *like, CiBuffer *to,
            const CiExpr *store, CiBuffer *from, const CiExpr *index)
{
    CiNest *nest = ci_loops_add_nest(r->loops, items);
    CiScalar load = {.op = CI_OP_load, .dtype = from->dtype, .buffer = from, .index = index};
    nest->body.result = ci_body_add(r->ctx, &nest->body, load);
    nest->target = to;
    nest->store = store;
    nest->locs = like->locs;
    nest->nlocs = nest->caplocs = like->nlocs;
    return nest;
}

const CiScalar *
ci_copied_load(const CiNest *nest)
{
    const CiScalar *op = &nest->body.ops[nest->body.result];
    bool is_copy = nest->fold == CI_OP_none && !nest->is_combined && !ci_nest_is_indirect(nest) &&
                   op->op == CI_OP_load && op->buffer->dtype == nest->target->dtype;
    return is_copy ? op : NULL;
}

const CiExpr *
ci_new_loop_variable(CiContext *ctx, CiSym *sym, const CiExpr *extent)
{
    for (int k = 0;; k++) {
        const char *name = ci_format(ctx, "t%d", k);
        if (!ci_sym_find_symbol(sym, name))
            return ci_expr_index(sym, name, extent);
    }
}

/* As for nests: over two sizes that are not known it is taken to be much; over one where a thread
 * is slow and there are many. */
bool
ci_is_worth_threads(const CiMachine *machine, const CiItem *loop)
{
    const CiItems items = {(CiItem *)loop, 1, 1};
    CiAmount work = ci_cost_of_items(&items, ci_amount(1));
    return work.unknowns > machine->tree_unknowns || work.known > 2 * machine->tree_elements;
}

void
ci_remove_item(CiItems *items, int at)
{
    for (int k = at + 1; k < items->count; k++)
        items->items[k - 1] = items->items[k];
    items->count--;
}

static const CiExpr *
changed(const CiLoopRewriter *r, const CiExpr *e, const CiExpr *from, const CiExpr *to)
{
    return e && ci_expr_depends_on(e, from) ? ci_expr_substitute(r->sym, e, 1, &from, &to) : e;
}

void
ci_nest_change(const CiLoopRewriter *r, CiNest *nest, const CiExpr *symbol, const CiExpr *value)
{
    const CiExpr *from[CI_MAX_RANK + 1], *to[CI_MAX_RANK + 1];
    CiAxis *axes = CI_NEW_ARRAY(r->ctx, CiAxis, nest->naxes + 1);
    int count = 0;
    for (int k = 0; k < nest->naxes; k++) {
        axes[k] = nest->axes[k];
        axes[k].extent = changed(r, axes[k].extent, symbol, value);
        if (axes[k].extent == nest->axes[k].extent)
            continue;
        axes[k].var = ci_expr_index(r->sym, axes[k].var->name, axes[k].extent);
        from[count] = nest->axes[k].var;
        to[count++] = axes[k].var;
    }
    from[count] = symbol;
    to[count++] = value;
    nest->axes = axes;
    ci_nest_substitute(r->ctx, r->sym, nest, count, from, to);
    nest->order.chunk = changed(r, nest->order.chunk, symbol, value);
    nest->order.alone = changed(r, nest->order.alone, symbol, value);
}
