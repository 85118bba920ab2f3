/* Loop interchange (Allen, Kennedy, Optimizing Compilers for Modern Architectures, 2001): a loop
 * over contiguous elements around a strided loop is moved inside:
 *
 *   for t0<n { for t1<m { c[t0] = for { load c[t0] + load a[t1]*load b[n*t1 + t0] } } }
 *   for t1<m { c[i0] = for i0<n { load c[i0] + load a[t1]*load b[n*t1 + i0] } }
 *
 * Each element of the row still sees its iterations in order, and the row runs in lanes. No other
 * iteration of the outer loop may access an element that one of them stores, so the outer
 * iterations can run in any order. */
#include "loops/loops.h"

typedef struct Pair {
    const CiRegion *outer, *inner;
    CiNest *nest;
} Pair;

static const CiRegion *
only_loop(const CiItem *item)
{
    const CiRegion *region = item->region;
    bool is_plain = item->kind == CI_ITEM_for && region->nswaps == 0 && region->body.count == 1;
    return is_plain ? region : NULL;
}

static bool
find_pair(const CiLoopRewriter *r, const CiItem *item, Pair *pair)
{
    pair->outer = only_loop(item);
    pair->inner = pair->outer ? only_loop(&pair->outer->body.items[0]) : NULL;
    pair->nest = pair->inner ? pair->inner->body.items[0].nest : NULL;
    if (!pair->nest || pair->nest->naxes > 0 || ci_nest_is_indirect(pair->nest) ||
        ci_expr_depends_on(pair->inner->extent, pair->outer->var))
        return false;
    /* Shorter rows gain nothing, and an empty one would load elements that no iteration loads. */
    return pair->outer->extent->high > CI_CHOOSE(r, least_row) &&
           ci_sym_known_le(r->sym, ci_expr_const(r->sym, 1), pair->outer->extent);
}

/* True if the rows are contiguous and the inner loop accumulates in place or is strided. */
static bool
is_better(const CiLoopRewriter *r, const Pair *pair)
{
    const CiExpr *store = pair->nest->store, *row = pair->outer->var, *iteration = pair->inner->var;
    bool gains = !ci_expr_depends_on(store, iteration);
    for (CiNestAccess at = {0}; ci_nest_next_access(pair->nest, &at);) {
        if (!ci_is_near_along(r->sym, at.index, row))
            return false;
        gains = gains || !ci_is_near_along(r->sym, at.index, iteration);
    }
    return gains && ci_expr_depends_on(store, row);
}

static bool
is_legal(const CiLoopRewriter *r, const Pair *pair)
{
    CiPoints iterations = {.sym = r->sym, .scope = r->scope};
    ci_add_points(&iterations, pair->outer->var, pair->outer->extent);
    return ci_stores_are_of_points(r->ctx, &iterations, pair->inner);
}

void
ci_loops_interchange_rows(const CiLoopRewriter *r, CiItem *item)
{
    Pair pair;
    if (!find_pair(r, item, &pair) || !is_better(r, &pair) || !is_legal(r, &pair))
        return;
    if (!r->scope && ci_is_worth_threads(r->machine, item))
        return; /* iterations of the outermost loop are for threads */
    const CiExpr *from = pair.outer->var, *to = ci_expr_index(r->sym, "i0", pair.outer->extent);
    ci_nest_set_row(r, pair.nest, 1, &from, &to, (CiAxis){CI_AXIS_point, to, pair.outer->extent});
    *item = pair.outer->body.items[0];
}
