/* Interchanges loops with the points of pointwise nests: each point runs its iterations alone, and
 * what an iteration leaves for the next one stays in a variable.
 *
 *   buf0[i0] = for i0<m { 0 }               for t1<m {
 *   for t0<n {                                buf3 = 0
 *     buf0[i0] = for i0<m {                   for t0<n { buf3 = load buf3 + load a[t1] }
 *       load buf0[i0] + load a[i0] }          buf0[t1] = load buf3
 *   }                                       }
 *
 * So a launch replaces one for each iteration, and carried arrays are read and written once. Nests
 * over the same points directly before and after the loop join it.
 *
 * Invariants: all nests have the same points. An array that one of them stores is accessed at one
 * element per point only, which no other point accesses, and exchanged only with arrays at the same
 * place. The order of the operations on an element does not change. */
#include "loops/loops.h"

#define MAX_ARRAYS 16 /* variables, each a register of a thread */

typedef struct Carried {
    CiBuffer *array, *variable;
    const CiExpr *index;
} Carried;

typedef struct Points {
    const CiLoopRewriter *r;
    const CiNest *like; /* whose axes all nests have */
    const CiExpr *vars[CI_MAX_RANK];
    Carried carried[MAX_ARRAYS];
    int ncarried;
} Points;

/* ---- which items ---- */

static const CiNest *
first_nest(const CiItem *item)
{
    while (item->region && item->kind == CI_ITEM_for && item->region->body.count)
        item = &item->region->body.items[0];
    return item->nest;
}

static bool
has_points(const Points *p, const CiNest *nest)
{
    bool is = nest->fold == CI_OP_none && nest->naxes == p->like->naxes && !nest->is_combined &&
              !nest->is_separate && !ci_nest_is_indirect(nest);
    for (int k = 0; is && k < nest->naxes; k++)
        is = nest->axes[k].extent == p->like->axes[k].extent;
    return is;
}

/* True if an item is a nest over the points, or a loop over such items. */
static bool
is_pointwise(const Points *p, const CiItem *item)
{
    if (item->nest)
        return has_points(p, item->nest);
    bool is = item->kind == CI_ITEM_for && !item->region->is_parallel && item->region->body.count;
    for (int k = 0; is && k < item->region->body.count; k++)
        is = is_pointwise(p, &item->region->body.items[k]);
    return is;
}

/* ---- the arrays that they store ---- */

static Carried *
find_carried(Points *p, const CiBuffer *array)
{
    for (int k = 0; k < p->ncarried; k++)
        if (p->carried[k].array == array)
            return &p->carried[k];
    return NULL;
}

static bool
add_carried(Points *p, CiBuffer *array, const CiExpr *index)
{
    Carried *known = find_carried(p, array);
    if (!known && p->ncarried < MAX_ARRAYS) {
        p->carried[p->ncarried] = (Carried){.array = array, .index = index};
        known = &p->carried[p->ncarried++];
    }
    return known && known->index == index;
}

static const CiExpr *
at_point(const Points *p, const CiNest *nest, const CiExpr *index)
{
    const CiExpr *from[CI_MAX_RANK];
    for (int k = 0; k < nest->naxes; k++)
        from[k] = nest->axes[k].var;
    return ci_expr_substitute(p->r->sym, index, nest->naxes, from, p->vars);
}

/* Adds the arrays that the items store; false if one is stored at several elements of a point. */
static bool
find_stores(Points *p, const CiItems *items)
{
    for (int k = 0; k < items->count; k++) {
        const CiNest *nest = items->items[k].nest;
        if (nest ? !add_carried(p, nest->target, at_point(p, nest, nest->store))
                 : !find_stores(p, &items->items[k].region->body))
            return false;
    }
    return true;
}

/* Exchanged arrays have the same element at each point, also those that are only read. */
static bool
add_exchanged(Points *p, const CiRegion *region)
{
    for (int k = 0; k < region->nswaps; k++) {
        Carried *one = find_carried(p, region->swaps[k]), *two = find_carried(p, region->swaps[k ^ 1]);
        if ((!one && !two) || !add_carried(p, region->swaps[k], one ? one->index : two->index) ||
            !add_carried(p, region->swaps[k ^ 1], one ? one->index : two->index))
            return false;
    }
    return true;
}

/* True if all loads of carried arrays are of the point's own element. */
static bool
loads_are_own(Points *p, const CiItems *items)
{
    for (int k = 0; k < items->count; k++) {
        const CiNest *nest = items->items[k].nest;
        const CiRegion *region = items->items[k].region;
        if (region && (!add_exchanged(p, region) || !loads_are_own(p, &region->body)))
            return false;
        for (const CiScalar *load = NULL; (load = ci_nest_next_load(nest, load));) {
            const Carried *carried = find_carried(p, load->buffer);
            if (carried && carried->index != at_point(p, nest, load->index))
                return false;
        }
    }
    return true;
}

/* True if an element belongs to one point, in every iteration. */
static bool
is_of_point(const Points *p, const CiExpr *index)
{
    CiPoints points = {.sym = p->r->sym, .scope = p->r->scope};
    for (int k = 0; k < p->like->naxes; k++)
        ci_add_points(&points, p->vars[k], p->like->axes[k].extent);
    for (int k = 0; k < index->nsymbols; k++) {
        const CiExpr *symbol = index->symbols[k];
        bool is_known =
            symbol->symbol_kind != CI_SYMBOL_index || ci_is_loop_variable(p->r->scope, symbol);
        for (int a = 0; a < p->like->naxes; a++)
            is_known = is_known || symbol == p->vars[a];
        if (!is_known)
            return false;
    }
    return !ci_why_points_overlap(&points, index, index);
}

/* The stores and loads of the items, and of the copies that exchanges need. */
static void
count_accesses(const CiItems *items, int64_t *nstores, int64_t *nloads)
{
    for (int k = 0; k < items->count; k++) {
        const CiNest *nest = items->items[k].nest;
        const CiRegion *region = items->items[k].region;
        *nstores += nest ? 0 : region->nswaps / 2 * 3;
        *nloads += nest ? 0 : region->nswaps / 2 * 3;
        for (CiNestAccess at = {0}; ci_nest_next_access(nest, &at);)
            ++*(at.load ? nloads : nstores);
        if (region)
            count_accesses(&region->body, nstores, nloads);
    }
}

/* True if the scheduler will compare that many accesses, so that the points become one kernel. */
static bool
is_comparable(const Points *p, const CiItems *items)
{
    int64_t nstores = 2 * p->ncarried, nloads = nstores;
    count_accesses(items, &nstores, &nloads);
    return nstores * (nstores + nloads) <= CI_CHOOSE(p->r, most_pairs);
}

static bool
is_legal(Points *p, const CiItems *items)
{
    p->ncarried = 0;
    /* Twice: an exchange may carry an array that an earlier nest loads. */
    if (!find_stores(p, items) || !loads_are_own(p, items) || !loads_are_own(p, items))
        return false;
    for (int k = 0; k < p->ncarried; k++)
        if (!is_of_point(p, p->carried[k].index))
            return false;
    return is_comparable(p, items);
}

/* ---- the items of one point ---- */

static CiNest *
nest_of_point(Points *p, const CiNest *nest)
{
    CiNest *one = CI_NEW(p->r->ctx, CiNest);
    const CiExpr *from[CI_MAX_RANK], *zero = ci_expr_const(p->r->sym, 0);
    for (int k = 0; k < nest->naxes; k++)
        from[k] = nest->axes[k].var;
    *one = *nest;
    one->naxes = one->npoint = 0;
    one->body = ci_body_substitute(p->r->ctx, p->r->sym, &nest->body, nest->naxes, from, p->vars);
    for (CiScalar *load = NULL; (load = ci_nest_next_load(one, load));) {
        const Carried *carried = find_carried(p, load->buffer);
        if (carried) {
            load->buffer = carried->variable;
            load->index = zero;
        }
    }
    one->target = find_carried(p, nest->target)->variable;
    one->store = zero;
    return one;
}

/* x and y exchange their values. */
static void
exchange(Points *p, CiItems *items, CiBuffer *x, CiBuffer *y)
{
    const CiLoopRewriter *r = p->r;
    const CiExpr *zero = ci_expr_const(r->sym, 0);
    CiBuffer *kept = ci_loops_add_buffer(r->loops, CI_BUFFER_temp, x->dtype, 0, NULL, NULL);
    ci_add_copy(r, items, p->like, kept, zero, x, zero);
    ci_add_copy(r, items, p->like, x, zero, y, zero);
    ci_add_copy(r, items, p->like, y, zero, kept, zero);
}

static CiItems
items_of_point(Points *p, const CiItems *items)
{
    CiItems made = {0};
    for (int k = 0; k < items->count; k++) {
        CiItem item = items->items[k];
        if (item.nest) {
            item.nest = nest_of_point(p, item.nest);
        } else {
            CiRegion *region = CI_NEW(p->r->ctx, CiRegion);
            *region = *item.region;
            region->body = items_of_point(p, &item.region->body);
            region->nswaps = region->capswaps = 0;
            for (int n = 0; n < item.region->nswaps; n += 2)
                exchange(p, &region->body, find_carried(p, item.region->swaps[n])->variable,
                         find_carried(p, item.region->swaps[n + 1])->variable);
            item.region = region;
        }
        CI_PUSH(p->r->ctx, made.items, made.count, made.capacity, item);
    }
    return made;
}

/* ---- rewriting ---- */

/* The axes from the largest stride of an array to the smallest. */
static void
order_axes(const Points *p, int *order)
{
    const CiExpr *rest = p->carried[0].index, *coefs[CI_MAX_RANK];
    for (int k = 0; k < p->like->naxes; k++) {
        int n = k;
        if (!ci_expr_split_linear(p->r->sym, rest, p->vars[k], &coefs[k], &rest))
            coefs[k] = ci_expr_const(p->r->sym, 0);
        for (; n > 0 && coefs[order[n - 1]]->low < coefs[k]->low; n--)
            order[n] = order[n - 1];
        order[n] = k;
    }
}

/* Loops over the points around the items; the last axis is innermost. */
static CiItem
loops_over_points(Points *p, CiItems items)
{
    int order[CI_MAX_RANK];
    order_axes(p, order);
    for (int k = p->like->naxes - 1; k >= 0; k--)
        items = ci_put_in_loop(p->r->ctx, items, p->vars[order[k]], p->like->axes[order[k]].extent);
    return items.items[0];
}

/* How often the items, and the whole program, access an array. */
typedef struct Uses {
    int *nreaders, *nwriters, *all_readers, *all_writers;
} Uses;

static bool
is_loaded(const Points *p, const CiItems *point, const Uses *uses, const Carried *carried)
{
    int id = carried->array->id;
    bool is_made = carried->array->kind != CI_BUFFER_temp ||
                   uses->all_writers[id] > uses->nwriters[id] || p->r->scope;
    return is_made && ci_first_use(point, carried->variable) != CI_FIRST_store;
}

static bool
is_stored(const Points *p, const CiItems *point, const Uses *uses, const Carried *carried)
{
    int id = carried->array->id;
    return uses->nwriters[id] &&
           (carried->array->kind != CI_BUFFER_temp || uses->all_readers[id] > uses->nreaders[id] ||
            (p->r->scope && ci_first_use(point, carried->variable) != CI_FIRST_store));
}

static CiItem
interchange(Points *p, const CiItems *items)
{
    const CiLoopRewriter *r = p->r;
    const CiExpr *zero = ci_expr_const(r->sym, 0);
    Uses uses = {CI_NEW_ARRAY(r->ctx, int, r->loops->nbuffers + 1),
                 CI_NEW_ARRAY(r->ctx, int, r->loops->nbuffers + 1), NULL, NULL};
    ci_count_uses(items, uses.nreaders, uses.nwriters);
    ci_count_all_uses(r->loops, &uses.all_readers, &uses.all_writers);
    for (int k = 0; k < p->ncarried; k++)
        p->carried[k].variable = ci_loops_add_buffer(
            r->loops, CI_BUFFER_temp, p->carried[k].array->dtype, 0, NULL, NULL);
    CiItems point = items_of_point(p, items), all = {0};
    for (int k = 0; k < p->ncarried; k++) {
        const Carried *carried = &p->carried[k];
        if (is_loaded(p, &point, &uses, carried))
            ci_add_copy(r, &all, p->like, carried->variable, zero, carried->array, carried->index);
    }
    ci_add_items(r->ctx, &all, &point);
    for (int k = 0; k < p->ncarried; k++) {
        const Carried *carried = &p->carried[k];
        if (is_stored(p, &point, &uses, carried))
            ci_add_copy(r, &all, p->like, carried->array, carried->index, carried->variable, zero);
    }
    return loops_over_points(p, all);
}

/* True if a nest loads or stores an array that the points carry. */
static bool
is_related(Points *p, const CiNest *nest)
{
    for (CiNestAccess at = {0}; ci_nest_next_access(nest, &at);)
        if (find_carried(p, at.buffer))
            return true;
    return false;
}

/* The items around a loop that are over the same points: `from` to `to`, which excludes the last. */
static bool
find_group(Points *p, CiItems *items, int at, int *from, int *to)
{
    CiItems group = {.items = items->items + at, .count = 1};
    *from = at;
    *to = at + 1;
    if (!is_pointwise(p, &items->items[at]) || !is_legal(p, &group))
        return false;
    for (int side = 0; side < 2; side++) {
        for (int k = side ? at + 1 : at - 1; k >= 0 && k < items->count; k += side ? 1 : -1) {
            int first = side ? *from : k, end = side ? k + 1 : *to;
            const CiNest *nest = items->items[k].nest;
            group = (CiItems){.items = items->items + first, .count = end - first};
            if (!nest || !has_points(p, nest) || !is_related(p, nest) || !is_legal(p, &group))
                break;
            *from = first;
            *to = end;
        }
    }
    group = (CiItems){.items = items->items + *from, .count = *to - *from};
    return is_legal(p, &group);
}

static bool
begin(Points *p, const CiItem *item)
{
    p->like = item->kind == CI_ITEM_for ? first_nest(item) : NULL;
    if (!p->like || p->like->naxes == 0 || p->like->npoint != p->like->naxes)
        return false;
    for (int k = 0; k < p->like->naxes; k++)
        p->vars[k] = ci_new_loop_variable(p->r->ctx, p->r->sym, p->like->axes[k].extent);
    return true;
}

void
ci_loops_interchange_points(const CiLoopRewriter *r, CiItems *items)
{
    for (int k = 0; k < items->count; k++) {
        Points p = {.r = r};
        int from, to;
        if (!begin(&p, &items->items[k]) || !find_group(&p, items, k, &from, &to))
            continue;
        CiItems group = {.items = items->items + from, .count = to - from};
        items->items[from] = interchange(&p, &group);
        for (int n = to; n < items->count; n++)
            items->items[from + 1 + n - to] = items->items[n];
        items->count -= to - from - 1;
        k = from;
    }
}
