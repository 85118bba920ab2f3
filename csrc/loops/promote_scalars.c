/* Scalar promotion (scalar replacement): keeps an array element in a variable during a loop.
 *
 *   for t1<n { a[t0] = for { load a[t0] + load b[t1] } }
 *
 * loads and stores one element in every iteration. The target's compiler cannot avoid this, because
 * it knows less about the other accesses. An element with a loop-invariant index is loaded before
 * the loop and stored after it:
 *
 *   buf9 = load a[t0];  for t1<n { buf9 = load buf9 + load b[t1] };  a[t0] = load buf9
 *
 * An element that one iteration stores and the next one loads stays in the variable:
 *
 *   buf9 = load a[0];  for t0<n { buf9 = load buf9 + load b[t0];  a[t0 + 1] = load buf9 }
 *
 * Invariants: the loop works on single elements only, so that it becomes a tree and buf9 a
 * variable. An array of one element is a variable of the tree as it is. The element exists even if the
 * loop has no iterations, and its array is stored before the loop, so that the load reads no memory
 * without values. No other access may alias the element while it is in the variable. */
#include "loops/loops.h"

/* Accesses of a loop that are compared. */
#define MAX_ACCESSES 64

static void
look_at_item(void *arg, CiItem *item)
{
    bool *is_simple = arg;
    const CiNest *nest = item->nest;
    *is_simple = *is_simple && !item->ext && !(item->region && item->region->nswaps) &&
                 (!nest || (nest->naxes == 0 && nest->fold == CI_OP_none && !ci_nest_is_indirect(nest)));
}

/* The accesses of a loop; none unless all that it does is with single elements. */
static CiAccesses
accesses_of(const CiLoopRewriter *r, const CiItems *body)
{
    bool is_simple = true;
    ci_items_visit(body, look_at_item, &is_simple);
    CiAccesses all = is_simple ? ci_items_accesses(r->ctx, body) : (CiAccesses){0};
    return all.count <= MAX_ACCESSES ? all : (CiAccesses){0};
}

/* ---- what is known of an element ---- */

/* True if the index is loop-invariant: it uses only sizes and variables of enclosing loops. */
static bool
is_fixed(const CiLoopRewriter *r, const CiExpr *index)
{
    for (int k = 0; k < index->nsymbols; k++) {
        const CiExpr *symbol = index->symbols[k];
        if (!ci_is_loop_variable(r->scope, symbol) &&
            (symbol->symbol_kind == CI_SYMBOL_index || symbol->symbol_kind == CI_SYMBOL_unbacked))
            return false;
    }
    return true;
}

/* The enclosing loops have an iteration. */
static CiFacts
find_facts(const CiLoopRewriter *r)
{
    CiFacts facts = {0};
    for (const CiLoopScope *at = r->scope; at; at = at->outer)
        if (at->region->extent)
            ci_add_iteration(r->sym, &facts, at->region->extent);
    return facts;
}

/* True if the element exists even if the loop has no iterations. */
static bool
exists(const CiLoopRewriter *r, const CiBuffer *buffer, const CiExpr *index)
{
    CiSym *sym = r->sym;
    const CiExpr *last = ci_expr_const(sym, 0), *one = ci_expr_const(sym, 1);
    const CiFacts facts = find_facts(r);
    for (int k = 0; k < buffer->rank; k++) {
        if (buffer->strides[k]->low < 0)
            return false;
        const CiExpr *steps = ci_expr_sub(sym, buffer->sizes[k], one);
        last = ci_expr_add(sym, last, ci_expr_mul(sym, buffer->strides[k], steps));
    }
    return ci_sym_known_le_given(sym, ci_expr_const(sym, 0), index, facts.count, facts.list) &&
           ci_sym_known_le_given(sym, index, last, facts.count, facts.list);
}

/* Stores to a buffer. */
typedef struct Stores {
    const CiBuffer *buffer;
    int count;
} Stores;

static void
count_store(void *arg, CiItem *item)
{
    Stores *stores = arg;
    if (item->nest)
        stores->count += item->nest->target == stores->buffer || ci_nest_count(item->nest) == stores->buffer;
    if (item->ext)
        stores->count += item->ext->result == stores->buffer;
}

static int
stores_in(const CiItems *items, const CiBuffer *buffer)
{
    Stores stores = {buffer, 0};
    ci_items_visit(items, count_store, &stores);
    return stores.count;
}

/* Sets *is_stored if items before the loop store to the buffer, or if other items of a loop around it do: an
 * earlier iteration runs those. True if the loop is among the items or inside them. */
static bool
find_stores(const CiItems *items, const CiRegion *loop, const CiBuffer *buffer, bool *is_stored)
{
    for (int k = 0; k < items->count; k++) {
        CiItem *item = &items->items[k];
        const CiRegion *region = item->region;
        Stores stores = {buffer, 0};
        if (region == loop)
            return true;
        count_store(&stores, item);
        *is_stored = *is_stored || stores.count;
        if (!region)
            continue;
        if (find_stores(&region->condition_items, loop, buffer, is_stored) ||
            find_stores(&region->body, loop, buffer, is_stored) ||
            find_stores(&region->other, loop, buffer, is_stored)) {
            if (item->kind != CI_ITEM_if)
                *is_stored |= stores_in(&region->body, buffer) > stores_in(&loop->body, buffer);
            return true;
        }
    }
    return false;
}

/* True if the array has values where the loop begins. */
static bool
has_values(const CiLoopRewriter *r, const CiRegion *loop, const CiBuffer *buffer)
{
    bool is_stored = buffer->kind != CI_BUFFER_temp;
    if (!is_stored)
        find_stores(&r->loops->items, loop, buffer, &is_stored);
    return is_stored;
}

static bool
is_of(const CiNestAccess *access, const CiBuffer *buffer, const CiExpr *index)
{
    return access->buffer == buffer && access->index == index;
}

/* ---- rewriting ---- */

static CiBuffer *
new_variable(const CiLoopRewriter *r, CiDtype dtype)
{
    return ci_loops_add_buffer(r->loops, CI_BUFFER_temp, dtype, 0, NULL, NULL);
}

/* target[store] = load from[index], at position k of the items. */
static void
insert_copy(const CiLoopRewriter *r, CiItems *items, int k, const CiNest *like, CiBuffer *target,
            const CiExpr *store, CiBuffer *from, const CiExpr *index)
{
    ci_add_copy(r, items, like, target, store, from, index);
    CiItem copy = items->items[items->count - 1];
    for (int n = items->count - 1; n > k; n--)
        items->items[n] = items->items[n - 1];
    items->items[k] = copy;
}

static void
replace(const CiLoopRewriter *r, const CiNestAccess *access, CiBuffer *variable)
{
    if (access->load) {
        access->load->buffer = variable;
        access->load->index = ci_expr_const(r->sym, 0);
    } else {
        access->nest->target = variable;
        access->nest->store = ci_expr_const(r->sym, 0);
    }
}

/* ---- loop-invariant elements ---- */

/* True if the element, or another element of its array, is stored in the loop: otherwise the
 * target's compiler loads it once by itself. */
static bool
may_be_promoted(const CiLoopRewriter *r, const CiAccesses *all, const CiNestAccess *element, bool *is_stored)
{
    const CiBuffer *buffer = element->buffer;
    bool has_store = false;
    *is_stored = false;
    for (int k = 0; k < all->count; k++) {
        const CiNestAccess *other = &all->list[k];
        has_store = has_store || (other->buffer == buffer && !other->load);
        *is_stored = *is_stored || (is_of(other, buffer, element->index) && !other->load);
    }
    if (!has_store || !is_fixed(r, element->index) || !exists(r, buffer, element->index))
        return false;
    const CiFacts facts = find_facts(r);
    for (int k = 0; k < all->count; k++) {
        const CiNestAccess *other = &all->list[k];
        bool may_conflict = other->buffer == buffer && other->index != element->index &&
                            (*is_stored || !other->load);
        if (may_conflict && !ci_elements_are_disjoint(r->sym, buffer, element->index, other->index, &facts))
            return false;
    }
    return true;
}

static bool
replace_one(const CiLoopRewriter *r, CiItems *items, int *k)
{
    const CiRegion *loop = items->items[*k].region;
    const CiAccesses all = accesses_of(r, &loop->body);
    for (int n = 0; n < all.count; n++) {
        const CiNestAccess element = all.list[n];
        bool is_stored;
        if (ci_is_one_element(r->sym, element.buffer) || !may_be_promoted(r, &all, &element, &is_stored) ||
            !has_values(r, loop, element.buffer))
            continue;
        CiBuffer *variable = new_variable(r, element.buffer->dtype);
        const CiExpr *first = ci_expr_const(r->sym, 0);
        for (int m = 0; m < all.count; m++) {
            if (is_of(&all.list[m], element.buffer, element.index))
                replace(r, &all.list[m], variable);
        }
        insert_copy(r, items, (*k)++, element.nest, variable, first, element.buffer, element.index);
        if (is_stored)
            insert_copy(r, items, *k + 1, element.nest, element.buffer, element.index, variable,
                        first);
        return true;
    }
    return false;
}

/* ---- elements that one iteration stores and the next one loads ---- */

/* The index that an iteration loads and the iteration before it stores, if the nest does both and
 * nothing else stores to the array; else NULL. The element before the first iteration must
 * exist. */
static const CiExpr *
handed_on(const CiLoopRewriter *r, const CiExpr *var, const CiAccesses *all, const CiNest *nest)
{
    const CiExpr *earlier = ci_expr_sub(r->sym, var, ci_expr_const(r->sym, 1)),
                 *start = ci_expr_const(r->sym, -1);
    const CiExpr *index = ci_expr_substitute(r->sym, nest->store, 1, &var, &earlier),
                 *before = ci_expr_substitute(r->sym, nest->store, 1, &var, &start);
    bool is_loaded = false;
    if (index == nest->store || !is_fixed(r, before) || !exists(r, nest->target, before))
        return NULL;
    for (int k = 0; k < all->count; k++) {
        const CiNestAccess *other = &all->list[k];
        if (other->buffer == nest->target && !other->load && other->nest != nest)
            return NULL;
        is_loaded =
            is_loaded || (other->nest == nest && other->load && is_of(other, nest->target, index));
    }
    return is_loaded ? index : NULL;
}

static bool
carry_one(const CiLoopRewriter *r, CiItems *items, int *k)
{
    CiRegion *region = items->items[*k].region;
    const CiAccesses all = accesses_of(r, &region->body);
    for (int n = 0; all.count && n < region->body.count; n++) {
        CiNest *nest = region->body.items[n].nest;
        const CiExpr *index = nest ? handed_on(r, region->var, &all, nest) : NULL;
        if (!index || !has_values(r, region, nest->target))
            continue;
        CiBuffer *array = nest->target, *variable = new_variable(r, array->dtype);
        const CiExpr *store = nest->store, *first = ci_expr_const(r->sym, 0),
                     *start = ci_expr_const(r->sym, -1);
        for (int m = 0; m < all.count; m++) {
            const CiNestAccess *access = &all.list[m];
            if (access->nest == nest && (!access->load || is_of(access, array, index)))
                replace(r, access, variable);
        }
        insert_copy(r, &region->body, n + 1, nest, array, store, variable, first);
        insert_copy(r, items, (*k)++, nest, variable, first, array,
                    ci_expr_substitute(r->sym, store, 1, &region->var, &start));
        return true;
    }
    return false;
}

/* Inner loops first: an outer loop may keep the element for longer. */
void
ci_loops_promote_scalars(const CiLoopRewriter *r, CiItems *items)
{
    if (!r->scope) /* no loop around has a place for the variable */
        return;
    for (int k = 0; k < items->count; k++) {
        if (items->items[k].kind != CI_ITEM_for || items->items[k].region->nswaps)
            continue;
        while (replace_one(r, items, &k) || carry_one(r, items, &k))
            ;
    }
}
