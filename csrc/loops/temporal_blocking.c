/* Temporal blocking (Wolfe, More Iteration Space Tiling, 1989): fuses two iterations of a stencil
 * loop. A loop that computes one large array from another one and then swaps them reads and writes
 * memory once per iteration:
 *
 *   for t0<n { buf1[i0] = for i0<m { … buf0[i0 - 1] … buf0[i0 + 1] … }  swap buf0, buf1 }
 *
 * If all reads are at constant distances, an iteration can recompute the values of the previous one
 * from that one's inputs. The operations and their operands are the same. There are more of them,
 * but only half of the memory traffic.
 *
 *   for t1<n/2 { buf1[i0] = for i0<m { … buf0[i0 - 2] … buf0[i0 + 2] … }  swap buf0, buf1 }
 *   for t2<n - 2*(n/2) { as before }
 *
 * If the number of iterations is known, copies directly before and after the loop are removed. The
 * first two iterations read the source of the one, and the last ones write to the target of the
 * other.
 *
 * compose_iterations.c builds the nests of the fused iteration. */
#include "loops/compose.h"

/* ---- the loop ---- */

static void
put(CiComposer *c, CiItems *items, CiItem item)
{
    CI_PUSH(c->r->ctx, items->items, items->count, items->capacity, item);
}

static bool
is_large(const CiComposer *c)
{
    int64_t bytes = ci_dtype_size(c->to->dtype);
    for (int d = 0; d < c->rank; d++)
        bytes *= c->sizes[d];
    return bytes >= CI_CHOOSE(c->r, iteration_bytes);
}

/* The buffers that the loop's one exchange is of. */
static bool
find_exchange(CiComposer *c)
{
    const CiRegion *region = c->region;
    if (region->nswaps != 2 || region->body.count == 0 || !region->body.items[0].nest)
        return false;
    c->to = region->body.items[0].nest->target;
    c->from = region->swaps[c->to == region->swaps[0]];
    return c->to == region->swaps[0] || c->to == region->swaps[1];
}

/* Around the nests made last. */
static CiItem
loop_over(CiComposer *c, const CiExpr *var, const CiExpr *extent)
{
    CiRegion *region = CI_NEW(c->r->ctx, CiRegion);
    *region = *c->region;
    region->var = var;
    region->extent = extent;
    region->body = c->made;
    return (CiItem){.kind = CI_ITEM_for, .region = region};
}

static bool
make_loops(CiComposer *c, const CiExpr *iterations, const CiExpr *begun, CiItems *into)
{
    CiSym *sym = c->r->sym;
    const CiExpr *two = ci_expr_const(sym, 2), *pairs = ci_expr_floordiv(sym, iterations, two), *var;
    const CiExpr *done = ci_expr_mul(sym, two, pairs), *left = ci_expr_sub(sym, iterations, done);
    if (!ci_expr_equals_const(pairs, 0)) {
        var = ci_new_loop_variable(c->r->ctx, sym, pairs);
        if (!ci_compose_pair(c, ci_expr_add(sym, begun, ci_expr_mul(sym, two, var)), c->from, c->to))
            return false;
        put(c, into, loop_over(c, var, pairs));
    }
    if (!ci_expr_equals_const(left, 0)) {
        var = ci_new_loop_variable(c->r->ctx, sym, left);
        ci_compose_single(c, ci_expr_add(sym, ci_expr_add(sym, begun, done), var), c->to);
        put(c, into, loop_over(c, var, left));
    }
    return true;
}

/* ---- copies before and after the loop ---- */

/* The buffer that a nest copies to another, element by element at its place; NULL: it does not. */
static CiBuffer *
copied_by(const CiItem *item)
{
    const CiScalar *load = item->nest ? ci_copied_load(item->nest) : NULL;
    bool is_copy =
        load && load->index == item->nest->store && load->buffer->kind != CI_BUFFER_scalar;
    return is_copy ? load->buffer : NULL;
}

static int
uses_of(CiComposer *c, const CiItems *items, const CiBuffer *buffer)
{
    int *readers = CI_NEW_ARRAY(c->r->ctx, int, c->r->loops->nbuffers + 1),
        *writers = CI_NEW_ARRAY(c->r->ctx, int, c->r->loops->nbuffers + 1);
    ci_count_uses(items, readers, writers);
    return readers[buffer->id] + writers[buffer->id];
}

/* The copy that the loop begins with, which nothing changes until then; -1: none. */
static int
find_copy_before(CiComposer *c, const CiItems *items, int at)
{
    int k = at - 1;
    while (k >= 0 && !(items->items[k].nest && items->items[k].nest->target == c->from))
        k--;
    CiBuffer *source = k >= 0 ? copied_by(&items->items[k]) : NULL;
    if (!source || !ci_compose_fills(c, items->items[k].nest))
        return -1;
    CiItems between = {.items = items->items + k + 1, .count = at - k - 1};
    return uses_of(c, &between, source) ? -1 : k;
}

/* True if the item after the loop copies the result to memory that the loop does not use, so that
 * the last iterations can store there. */
static bool
is_copied_after(CiComposer *c, const CiItems *items, int at)
{
    const CiItem *item = at + 1 < items->count ? &items->items[at + 1] : NULL;
    CiItems loop = {.items = items->items + at, .count = 1};
    return item && copied_by(item) == c->from && ci_compose_fills(c, item->nest) &&
           !uses_of(c, &loop, item->nest->target);
}

/* True if the swapped buffers are used only by the loop and the two copies. */
static bool
are_private(CiComposer *c, const CiItems *items, int at)
{
    CiItems loop = {.items = items->items + at, .count = 1};
    return items == &c->r->loops->items &&
           uses_of(c, items, c->from) == uses_of(c, &loop, c->from) + 2 &&
           uses_of(c, items, c->to) == uses_of(c, &loop, c->to);
}

/* Makes the loop without its copies: the first two iterations read the source of the first copy,
 * the last ones fill the target of the second. */
static bool
make_without_copies(CiComposer *c, const CiItems *items, int at, int before, CiItems *into)
{
    CiSym *sym = c->r->sym;
    int64_t iterations = c->region->extent->low, last = iterations % 2 ? 1 : 2;
    const CiExpr *two = ci_expr_const(sym, 2);
    CiBuffer *result = items->items[at + 1].nest->target;
    if (!ci_compose_pair(c, ci_expr_const(sym, 0), copied_by(&items->items[before]), c->from))
        return false;
    ci_add_items(c->r->ctx, into, &c->made);
    if (!make_loops(c, ci_expr_const(sym, iterations - 2 - last), two, into))
        return false;
    const CiExpr *iteration = ci_expr_const(sym, iterations - last);
    if (last == 1)
        ci_compose_single(c, iteration, result);
    else if (!ci_compose_pair(c, iteration, c->from, result))
        return false;
    ci_add_items(c->r->ctx, into, &c->made);
    return true;
}

/* Appends the replacement of the loop. Returns the number of items after the loop that it also
 * replaces, -1 if the loop stays; *before is the item before it that is replaced, or -1. */
static int
compose(CiComposer *c, const CiItems *items, int at, CiItems *into, int *before)
{
    const CiExpr *iterations = c->region->extent;
    *before = -1;
    if (iterations->high < 2 || !find_exchange(c) || !ci_compose_begin(c) || !is_large(c))
        return -1;
    bool is_known = iterations->low == iterations->high && iterations->low >= 3;
    int copy = is_known && are_private(c, items, at) && is_copied_after(c, items, at)
                   ? find_copy_before(c, items, at)
                   : -1;
    if (copy < 0)
        return make_loops(c, iterations, ci_expr_const(c->r->sym, 0), into) ? 0 : -1;
    *before = copy;
    return make_without_copies(c, items, at, copy, into) ? 1 : -1;
}

static void
take_out(CiItems *items, const CiNest *nest)
{
    int k = 0;
    while (k < items->count && items->items[k].nest != nest)
        k++;
    if (k < items->count)
        ci_remove_item(items, k);
}

void
ci_loops_temporal_blocking(const CiLoopRewriter *r, CiItems *items)
{
    CiItems now = {0};
    for (int k = 0; k < items->count; k++) {
        CiRegion *region = items->items[k].region;
        CiComposer c = {.r = r, .region = region};
        CiItems made = {0};
        int before = -1, behind = -1;
        if (region && region->kind == CI_ITEM_for)
            behind = compose(&c, items, k, &made, &before);
        if (behind < 0) {
            put(&c, &now, items->items[k]);
            continue;
        }
        if (before >= 0)
            take_out(&now, items->items[before].nest);
        ci_add_items(r->ctx, &now, &made);
        k += behind;
    }
    *items = now;
}
