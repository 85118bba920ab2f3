/* Peeling: a loop that begins with a copy of an array, and whose result is copied, gives its first and
 * its last iteration away. They read what is copied, and store the result:
 *
 *   buf0[i0] = for i0<m { load x[i0] }          buf0[i0] = for i0<m { … x[i0 - 1] … x[i0 + 1] … }
 *   for t0<20 {                                 for t1<18 {
 *     buf1[i0] = for i0<m { … buf0[i0 - 1] …      buf1[i0] = for i0<m { … buf0[i0 - 1] … }
 *     swap buf0, buf1                             swap buf0, buf1
 *   }                                           }
 *   y[i0] = for i0<m { load buf0[i0] }          y[i0] = for i0<m { … buf0[i0 - 1] … }
 *
 * The loop of temporal_blocking.c, whose iterations are pairs, has no such copies any more.
 *
 * Invariants: no nest of the loop folds. The copy before the loop stores all of the buffer, at its place, nothing
 * changes what it reads, and no later iteration reads what it stores. The last iteration stores the elements that the
 * copy after the loop reads, over the same axes. The buffer has no other use before the loop, or after it. */
#include "loops/loops.h"

enum { MAX_ITERATIONS = 256 }; /* iterations that are looked at one by one */

typedef struct Peeling {
    const CiLoopRewriter *r;
    const CiRegion *region;
    CiNest *writer;      /* the one nest that stores `to` */
    CiBuffer *from, *to; /* that the loop exchanges */
    CiNest *before, *behind;
    int64_t iterations;
} Peeling;

/* ---- the loop ---- */

static int
uses_of(const Peeling *p, const CiItems *items, const CiBuffer *buffer, bool are_writes)
{
    int *readers = CI_NEW_ARRAY(p->r->ctx, int, p->r->loops->nbuffers + 1),
        *writers = CI_NEW_ARRAY(p->r->ctx, int, p->r->loops->nbuffers + 1);
    ci_count_uses(items, readers, writers);
    return writers[buffer->id] + (are_writes ? 0 : readers[buffer->id]);
}

/* True if the items are nests without folds, whose order could be another outside of the loop, and one of them computes one
 * of two exchanged buffers from the other. */
static bool
find_writer(Peeling *p)
{
    const CiRegion *region = p->region;
    if (region->kind != CI_ITEM_for || region->nswaps != 2 || region->extent->low != region->extent->high)
        return false;
    p->iterations = region->extent->low;
    for (int k = 0; k < region->body.count; k++) {
        CiNest *nest = region->body.items[k].nest;
        if (!nest || nest->fold != CI_OP_none)
            return false;
        if (nest->target == region->swaps[0] || nest->target == region->swaps[1])
            p->writer = p->writer ? NULL : nest;
    }
    if (!p->writer || p->writer->is_combined || ci_nest_is_indirect(p->writer))
        return false;
    p->to = p->writer->target;
    p->from = region->swaps[region->swaps[0] == p->to];
    for (int k = 0; k < region->body.count; k++)
        if (ci_nest_loads(region->body.items[k].nest, p->to))
            return false;
    return uses_of(p, &region->body, p->to, false) == 1 && uses_of(p, &region->body, p->from, true) == 0;
}

static bool
is_large(const Peeling *p)
{
    return ci_amount_likely(ci_cost_of_buffer(p->from)) >= CI_CHOOSE(p->r, iteration_bytes);
}

/* A nest of the loop where it is the iteration of that number. */
static CiNest *
iteration_of(const Peeling *p, const CiNest *nest, const CiExpr *number)
{
    CiNest *made = CI_NEW(p->r->ctx, CiNest);
    *made = *nest;
    ci_nest_change(p->r, made, p->region->var, number);
    return made;
}

/* The number of elements that an iteration stores, which are the first ones of `to`; -1: not known. */
static int64_t
count_stored(const Peeling *p, int64_t number)
{
    CiSym *sym = p->r->sym;
    const CiNest *nest = iteration_of(p, p->writer, ci_expr_const(sym, number));
    const CiExpr *element = ci_expr_const(sym, 0), *stride = ci_expr_const(sym, 1);
    for (int k = nest->npoint - 1; k >= 0; k--) {
        element = ci_expr_add(sym, element, ci_expr_mul(sym, nest->axes[k].var, stride));
        stride = ci_expr_mul(sym, stride, nest->axes[k].extent);
    }
    return element == nest->store && stride->low == stride->high ? stride->low : -1;
}

/* True if each iteration reads only what the one before it has stored, so that no element of the copy
 * is read later than in the first one. */
static bool
reads_what_is_stored(const Peeling *p)
{
    if (p->iterations > MAX_ITERATIONS)
        return false;
    for (int64_t number = 1; number < p->iterations; number++) {
        int64_t stored = count_stored(p, number - 1);
        for (int k = 0; k < p->region->body.count; k++) {
            const CiNest *nest = iteration_of(p, p->region->body.items[k].nest, ci_expr_const(p->r->sym, number));
            for (CiScalar *load = NULL; (load = ci_nest_next_load(nest, load));)
                if (load->buffer == p->from && load->index->high >= stored)
                    return false;
        }
    }
    return true;
}

/* ---- the copies ---- */

static CiBuffer *
copied_by(const CiNest *nest)
{
    const CiScalar *load = nest ? ci_copied_load(nest) : NULL;
    return load && load->buffer->kind != CI_BUFFER_scalar ? load->buffer : NULL;
}

/* True if a nest stores each element of its target at the place that it reads. */
static bool
copies_all(const Peeling *p, const CiNest *nest)
{
    CiSym *sym = p->r->sym;
    const CiExpr *points = ci_expr_const(sym, 1), *elements = points;
    for (int k = 0; k < nest->npoint; k++)
        points = ci_expr_mul(sym, points, nest->axes[k].extent);
    for (int k = 0; k < nest->target->rank; k++)
        elements = ci_expr_mul(sym, elements, nest->target->sizes[k]);
    return copied_by(nest) && ci_copied_load(nest)->index == nest->store && points == elements;
}

/* The copy of `from` before the item. */
static void
find_before(Peeling *p, const CiItems *items, int at)
{
    for (int k = at - 1; k >= 0; k--) {
        CiItems until = {.items = items->items + k + 1, .count = at - k};
        CiNest *nest = items->items[k].nest;
        if (nest && nest->target == p->from && copies_all(p, nest) && !uses_of(p, &until, copied_by(nest), true))
            p->before = nest;
    }
}

/* The element that a nest stores, over the axes of a copy of what it stores; NULL: these are others. */
static bool
has_points_of(const Peeling *p, const CiNest *last, const CiNest *copy, const CiExpr **store)
{
    const CiExpr *from[CI_MAX_RANK], *to[CI_MAX_RANK];
    bool is = last->npoint == copy->npoint;
    for (int a = 0; is && a < copy->npoint; a++) {
        is = last->axes[a].extent == copy->axes[a].extent;
        from[a] = copy->axes[a].var;
        to[a] = last->axes[a].var;
    }
    if (!is)
        return false;
    *store = ci_expr_substitute(p->r->sym, copy->store, copy->npoint, from, to);
    return ci_expr_substitute(p->r->sym, ci_copied_load(copy)->index, copy->npoint, from, to) == last->store;
}

/* The copy after the item, to memory that the loop does not use. */
static void
find_following(Peeling *p, const CiItems *items, int at)
{
    const CiExpr *store;
    CiNest *copy = at + 1 < items->count ? items->items[at + 1].nest : NULL;
    CiItems loop = {.items = items->items + at, .count = 1};
    if (copy && copied_by(copy) == p->from && !uses_of(p, &loop, copy->target, false) &&
        has_points_of(p, iteration_of(p, p->writer, ci_expr_const(p->r->sym, p->iterations - 1)), copy, &store))
        p->behind = copy;
}

/* ---- rewriting ---- */

/* Appends an iteration that reads `source` and stores `target`. The last iteration stores the elements that the
 * copy after the loop stores. */
static void
add_iteration(const Peeling *p, CiItems *items, int64_t number, CiBuffer *source, CiBuffer *target)
{
    for (int k = 0; k < p->region->body.count; k++) {
        const CiNest *nest = p->region->body.items[k].nest;
        CiNest *made = iteration_of(p, nest, ci_expr_const(p->r->sym, number));
        for (CiScalar *load = NULL; (load = ci_nest_next_load(made, load));)
            load->buffer = load->buffer == p->from ? source : load->buffer;
        if (nest == p->writer) {
            made->target = target;
            if (target != p->from)
                (void)has_points_of(p, made, p->behind, &made->store);
        }
        CI_PUSH(p->r->ctx, items->items, items->count, items->capacity, ((CiItem){.kind = CI_ITEM_nest, .nest = made}));
    }
}

/* The iterations that are left, as numbers from `begun` on. */
static CiItem
rest_of(const Peeling *p, const CiItem *loop, int64_t begun, int64_t iterations)
{
    CiSym *sym = p->r->sym;
    CiRegion *region = CI_NEW(p->r->ctx, CiRegion);
    *region = *p->region;
    region->extent = ci_expr_const(sym, iterations);
    region->var = ci_new_loop_variable(p->r->ctx, sym, region->extent);
    const CiExpr *number = ci_expr_add(sym, region->var, ci_expr_const(sym, begun));
    region->body = (CiItems){0};
    for (int k = 0; k < p->region->body.count; k++) {
        CiItem item = {.kind = CI_ITEM_nest, .nest = iteration_of(p, p->region->body.items[k].nest, number)};
        CI_PUSH(p->r->ctx, region->body.items, region->body.count, region->body.capacity, item);
    }
    CiItem rest = *loop;
    rest.region = region;
    return rest;
}

static bool
find(Peeling *p, const CiItems *items, int at)
{
    p->region = items->items[at].region;
    if (!p->region || !find_writer(p) || p->iterations < 3 || !is_large(p))
        return false;
    CiItems first = {.items = items->items, .count = at},
            last = {.items = items->items + at + 1, .count = items->count - at - 1};
    if (uses_of(p, &p->r->loops->items, p->from, false) != uses_of(p, items, p->from, false))
        return false;
    if (uses_of(p, &first, p->from, false) == 1 && reads_what_is_stored(p))
        find_before(p, items, at);
    if (uses_of(p, &last, p->from, false) == 1)
        find_following(p, items, at);
    return p->before || p->behind;
}

void
ci_loops_peel_copies(const CiLoopRewriter *r, CiItems *items)
{
    CiItems now = {0};
    for (int k = 0; k < items->count; k++) {
        Peeling p = {.r = r};
        CiItem item = items->items[k];
        if (!find(&p, items, k)) {
            CI_PUSH(r->ctx, now.items, now.count, now.capacity, item);
            continue;
        }
        int64_t begun = p.before != NULL, iterations = p.iterations - begun - (p.behind != NULL);
        for (int at = now.count - 1; p.before && at >= 0; at--)
            if (now.items[at].nest == p.before)
                ci_remove_item(&now, at);
        if (p.before)
            add_iteration(&p, &now, 0, copied_by(p.before), p.from);
        item = rest_of(&p, &item, begun, iterations);
        CI_PUSH(r->ctx, now.items, now.count, now.capacity, item);
        if (p.behind)
            add_iteration(&p, &now, p.iterations - 1, p.from, p.behind->target);
        k += p.behind != NULL;
    }
    *items = now;
}
