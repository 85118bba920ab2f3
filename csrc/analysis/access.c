/* Accesses of nests: one at a time, or all of a list of items. */
#include "analysis/access.h"

bool
ci_nest_next_access(const CiNest *nest, CiNestAccess *at)
{
    CiScalar *load = at->nest ? ci_nest_next_load(nest, at->load) : NULL;
    if (!nest || (at->nest && !load))
        return false;
    *at = (CiNestAccess){.nest = (CiNest *)nest,
                         .load = load,
                         .buffer = load ? load->buffer : nest->target,
                         .index = load ? load->index : nest->store};
    return true;
}

typedef struct Collector {
    CiContext *ctx;
    CiAccesses all;
} Collector;

static void
add_item(void *arg, CiItem *item)
{
    Collector *c = arg;
    for (CiNestAccess at = {0}; ci_nest_next_access(item->nest, &at);) {
        if (at.buffer->kind == CI_BUFFER_scalar)
            continue;
        CI_PUSH(c->ctx, c->all.list, c->all.count, c->all.capacity, at);
        c->all.nstores += !at.load;
    }
}

CiAccesses
ci_items_accesses(CiContext *ctx, const CiItems *items)
{
    Collector c = {.ctx = ctx};
    ci_items_visit(items, add_item, &c);
    return c.all;
}

bool
ci_is_near_along(CiSym *sym, const CiExpr *index, const CiExpr *var)
{
    const CiExpr *coef, *rest;
    return ci_expr_split_linear(sym, index, var, &coef, &rest) && coef->low >= -1 && coef->high <= 1;
}
