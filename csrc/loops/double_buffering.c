/* Double buffering: a loop that computes part of an array from the array, and then copies it back,
 * exchanges two buffers instead:
 *
 *   for t0<n {                                  buf1 = copy of x;  buf2 = copy of x
 *     buf0[i0] = for i0<m { … load x[i0] … }    for t0<n {
 *     x[i0 + 1] = for i0<m { load buf0[i0] }      buf2[i0 + 1] = for i0<m { … load buf1[i0] … }
 *   }                                             swap buf1, buf2
 *                                               }
 *                                               x[i0 + 1] = for i0<m { load buf1[i0 + 1] }
 *
 * An iteration then writes the part once, and temporal_blocking.c can fuse two of them. Elements
 * outside the part have the same value in both buffers. Where sizes are constant and the array is large
 * enough for temporal blocking, iterations copy them all the same, because that asks for loops that
 * store the whole array.
 *
 * Invariants: the copy is the only store to x in the loop, to the same elements in each iteration,
 * and the only load of buf0. */
#include "loops/loops.h"

typedef struct Doubling {
    const CiLoopRewriter *r;
    CiRegion *region;
    CiNest *maker, *copy; /* they store the temporary, and copy it to the array */
    CiBuffer *array, *old, *new; /* old, new: the two buffers */
    const CiExpr *store;  /* the copy's, over the maker's axes */
} Doubling;

/* ---- the loop ---- */

/* True if every item of the body is a nest with plain stores. */
static bool
is_simple(const CiRegion *region)
{
    bool is = region->kind == CI_ITEM_for && region->nswaps == 0 && region->body.count > 1;
    for (int k = 0; is && k < region->body.count; k++)
        is = region->body.items[k].nest && !ci_nest_is_indirect(region->body.items[k].nest);
    return is;
}

/* Stores and loads of a buffer by items; a nest that combines loads its target, too. */
static void
count(const Doubling *d, const CiItems *items, const CiBuffer *buffer, int *nloads, int *nstores)
{
    int *readers = CI_NEW_ARRAY(d->r->ctx, int, d->r->loops->nbuffers + 1),
        *writers = CI_NEW_ARRAY(d->r->ctx, int, d->r->loops->nbuffers + 1);
    ci_count_uses(items, readers, writers);
    *nloads = readers[buffer->id];
    *nstores = writers[buffer->id];
}

/* The nest before the copy whose elements it copies, each once, to elements over the same axes. */
static CiNest *
find_maker(Doubling *d, int at)
{
    const CiScalar *load = ci_copied_load(d->copy);
    const CiExpr *from[CI_MAX_RANK], *to[CI_MAX_RANK];
    for (int k = at - 1; k >= 0; k--) {
        CiNest *nest = d->region->body.items[k].nest;
        bool is_alike = nest->target == load->buffer && nest->npoint == d->copy->npoint &&
                        !nest->is_combined && !ci_nest_is_scan(nest);
        for (int a = 0; is_alike && a < nest->npoint; a++) {
            is_alike = nest->axes[a].extent == d->copy->axes[a].extent;
            from[a] = d->copy->axes[a].var;
            to[a] = nest->axes[a].var;
        }
        if (!is_alike)
            continue;
        CiSym *sym = d->r->sym;
        d->store = ci_expr_substitute(sym, d->copy->store, nest->npoint, from, to);
        return ci_expr_substitute(sym, load->index, nest->npoint, from, to) == nest->store ? nest
                                                                                           : NULL;
    }
    return NULL;
}

static int64_t
count_bytes(const Doubling *d)
{
    return ci_amount_likely(ci_cost_of_buffer(d->array));
}

static bool
is_large(const Doubling *d)
{
    CiAmount iterations = ci_amount_of(ci_amount(1), d->region->extent);
    return count_bytes(d) >= CI_CHOOSE(d->r, doubled_bytes) &&
           ci_amount_likely(iterations) >= CI_CHOOSE(d->r, doubled_iterations);
}

/* True if every iteration copies to the same elements: others would be old in one of the buffers. */
static bool
is_same_part(const Doubling *d)
{
    bool is = !ci_expr_depends_on(d->copy->store, d->region->var);
    for (int a = 0; is && a < d->copy->naxes; a++)
        is = !ci_expr_depends_on(d->copy->axes[a].extent, d->region->var);
    return is;
}

/* True if the item at that position of the loop's body is such a copy. */
static bool
find(Doubling *d, int at)
{
    int nloads, nstores;
    d->copy = d->region->body.items[at].nest;
    d->array = d->copy->target;
    const CiScalar *load = ci_copied_load(d->copy);
    if (!load || load->buffer->kind != CI_BUFFER_temp || load->buffer->is_result ||
        d->array->is_swapped || !ci_buffer_is_dense(d->r->loops, d->array) || !is_same_part(d) ||
        !is_large(d))
        return false;
    count(d, &d->region->body, d->array, &nloads, &nstores);
    if (nstores != 1)
        return false;
    count(d, &d->r->loops->items, load->buffer, &nloads, &nstores);
    if (nloads != 1 || nstores != 1)
        return false;
    d->maker = find_maker(d, at);
    return d->maker != NULL;
}

/* ---- new items ---- */

/* Copies the box [start, end) of the array's elements from one buffer to another. */
static void
copy_box(const Doubling *d, CiItems *items, CiBuffer *from, CiBuffer *to,
         const CiExpr *const *start, const CiExpr *const *end)
{
    CiSym *sym = d->r->sym;
    int rank = to->rank;
    CiAxis *axes = CI_NEW_ARRAY(d->r->ctx, CiAxis, rank + 1);
    const CiExpr *element = ci_expr_const(sym, 0);
    for (int k = 0; k < rank; k++) {
        const CiExpr *extent = ci_expr_sub(sym, end[k], start[k]),
                     *var = ci_expr_index(sym, ci_format(d->r->ctx, "i%d", k), extent);
        const CiExpr *position = ci_expr_add(sym, var, start[k]);
        axes[k] = (CiAxis){CI_AXIS_point, var, extent};
        element = ci_expr_add(sym, element, ci_expr_mul(sym, position, to->strides[k]));
    }
    CiNest *nest = ci_add_copy(d->r, items, d->copy, to, element, from, element);
    nest->axes = axes;
    nest->naxes = nest->npoint = rank;
}

static void
copy_all(const Doubling *d, CiItems *items, CiBuffer *to)
{
    const CiExpr *start[CI_MAX_RANK];
    for (int k = 0; k < to->rank; k++)
        start[k] = ci_expr_const(d->r->sym, 0);
    copy_box(d, items, d->array, to, start, to->sizes);
}

/* ---- what the loop does not store ---- */

/* The part as a box of positions, if sizes are constant. */
static bool
find_box(const Doubling *d, const CiExpr **start, const CiExpr **end)
{
    CiSym *sym = d->r->sym;
    const CiExpr *rest = d->copy->store, *coef;
    int64_t first, stride, size;
    int axis_of[CI_MAX_RANK];
    for (int k = 0; k < d->array->rank; k++)
        axis_of[k] = -1;
    for (int a = 0; a < d->copy->npoint; a++) {
        int found = -1;
        if (!ci_expr_split_linear(sym, rest, d->copy->axes[a].var, &coef, &rest))
            return false;
        for (int k = 0; k < d->array->rank; k++)
            found = coef == d->array->strides[k] && axis_of[k] < 0 ? k : found;
        if (found < 0)
            return false;
        axis_of[found] = a;
    }
    if (!ci_expr_is_const(rest, &first) || first < 0)
        return false;
    for (int k = 0; k < d->array->rank; k++) {
        if (!ci_expr_is_const(d->array->strides[k], &stride) || stride <= 0 ||
            !ci_expr_is_const(d->array->sizes[k], &size) ||
            (k > 0 && d->array->strides[k - 1]->low < stride * size)) /* not in C order */
            return false;
        start[k] = ci_expr_const(sym, first / stride);
        first %= stride;
        end[k] = axis_of[k] < 0 ? ci_expr_const(sym, start[k]->low + 1)
                                : ci_expr_add(sym, start[k], d->copy->axes[axis_of[k]].extent);
        if (end[k]->low != end[k]->high || end[k]->high > size)
            return false;
    }
    return first == 0;
}

/* The elements outside the box, as slabs: before and after it along each axis. */
static void
copy_outside(const Doubling *d, CiItems *items)
{
    const CiExpr *start[CI_MAX_RANK], *end[CI_MAX_RANK], *low[CI_MAX_RANK], *high[CI_MAX_RANK];
    int rank = d->array->rank;
    if (!find_box(d, start, end))
        return;
    for (int k = 0; k < 2 * rank; k++) {
        int axis = k / 2;
        for (int a = 0; a < rank; a++) {
            low[a] = a < axis ? start[a] : ci_expr_const(d->r->sym, 0);
            high[a] = a < axis ? end[a] : d->array->sizes[a];
        }
        if (k % 2)
            low[axis] = end[axis];
        else
            high[axis] = start[axis];
        if (low[axis] != high[axis])
            copy_box(d, items, d->old, d->new, low, high);
    }
}

/* ---- rewriting ---- */

/* Loads of the array before the copy see the old buffer, and loads after it the new one. */
static void
rename_loads(const Doubling *d, int at)
{
    for (int k = 0; k < d->region->body.count; k++)
        for (CiScalar *load = NULL; (load = ci_nest_next_load(d->region->body.items[k].nest, load));)
            if (load->buffer == d->array)
                load->buffer = k < at ? d->old : d->new;
}

static CiBuffer *
new_buffer(const Doubling *d)
{
    CiBuffer *buffer = ci_loops_add_buffer(d->r->loops, CI_BUFFER_temp, d->array->dtype,
                                           d->array->rank, d->array->sizes, d->array->strides);
    buffer->is_swapped = true;
    return buffer;
}

/* Replaces the copy at that position of the body. Copies before the loop go to `before`, the one
 * after it to `after`. */
static void
double_buffer(Doubling *d, int at, CiItems *before, CiItems *after)
{
    CiRegion *region = d->region;
    d->old = new_buffer(d);
    d->new = new_buffer(d);
    copy_all(d, before, d->old);
    copy_all(d, before, d->new);
    rename_loads(d, at);
    d->maker->target = d->new;
    d->maker->store = d->store;
    const CiExpr *element = d->copy->store;
    CiNest *last = ci_add_copy(d->r, after, d->copy, d->array, element, d->old, element);
    last->axes = d->copy->axes;
    last->naxes = last->npoint = d->copy->npoint;
    ci_remove_item(&region->body, at);
    if (count_bytes(d) >= CI_CHOOSE(d->r, iteration_bytes))
        copy_outside(d, &region->body);
    CI_PUSH(d->r->ctx, region->swaps, region->nswaps, region->capswaps, d->old);
    CI_PUSH(d->r->ctx, region->swaps, region->nswaps, region->capswaps, d->new);
}

void
ci_loops_double_buffering(const CiLoopRewriter *r, CiItems *items)
{
    CiItems now = {0};
    for (int k = 0; k < items->count; k++) {
        CiItems before = {0}, after = {0}, item = {&items->items[k], 1, 1};
        CiRegion *region = items->items[k].region;
        if (region && is_simple(region)) {
            Doubling d = {.r = r, .region = region};
            int count = region->body.count; /* nests of copy_outside follow these */
            for (int at = count - 1; at > 0; at--)
                if (find(&d, at))
                    double_buffer(&d, at, &before, &after);
        }
        ci_add_items(r->ctx, &now, &before);
        ci_add_items(r->ctx, &now, &item);
        ci_add_items(r->ctx, &now, &after);
    }
    *items = now;
}
