/* Induction variables among the sizes that a loop carries. A size that changes by a constant in each
 * iteration is known from the iteration's number, so the host need not read it:
 *
 *   buf1 = 1000                                   for t0<n {
 *   for t0<n {                                      x[i0] = for i0<max(998 - 2*t0, 0) { … }
 *     u0 = symbol buf1 in [0, 1001)               }
 *     x[i0] = for i0<max(u0 - 2, 0) { … }
 *     buf1[0] = for { index [max(u0 - 2, 0)] }
 *   }
 *
 * A size max(u + d, m) that begins at v >= m is max(v + d*t, m) in iteration t if d <= 0: the maximum
 * of m + d and m is m. After the loop it is that of iteration n.
 *
 * Invariants: the loop stores the size once, after it has read it; nothing else stores it but the
 * nest before the loop. The size is certainly in the range of its symbol. */
#include "loops/loops.h"

typedef struct Size {
    const CiLoopRewriter *r;
    const CiBuffer *buffer;
    const CiExpr *symbol;      /* in the loop */
    const CiExpr *first, *next; /* before the loop; after an iteration, by the symbol */
    const CiExpr *step, *least; /* least: NULL, or the next one is at least that */
} Size;

/* ---- what the loop does with a size ---- */

/* The expression that a nest stores as the one element of a buffer; NULL: another value. */
static const CiExpr *
stored_by(const CiLoopRewriter *r, const CiNest *nest)
{
    const CiScalar *result = &nest->body.ops[nest->body.result];
    if (nest->naxes || nest->fold != CI_OP_none || nest->is_combined || result->nargs)
        return NULL;
    if (result->op == CI_OP_const && result->dtype == CI_DTYPE_i64)
        return ci_expr_const(r->sym, result->value.i);
    return result->op == CI_OP_index ? result->index : NULL;
}

/* The one item of a block that stores a buffer, among the first `count`; -1: none, or several. */
static int
find_store(const CiItems *items, int count, const CiBuffer *buffer)
{
    int found = -1;
    for (int k = 0; k < count; k++) {
        if (items->items[k].nest && items->items[k].nest->target == buffer) {
            if (found >= 0)
                return -1;
            found = k;
        }
    }
    return found;
}

/* next = symbol + step, or at least `least` of it. */
static bool
find_step(Size *s)
{
    CiSym *sym = s->r->sym;
    const CiExpr *moved = s->next, *coef;
    s->least = NULL;
    if (moved->kind == CI_EXPR_max && moved->nargs == 2) {
        bool is_second = ci_expr_depends_on(moved->args[1], s->symbol);
        s->least = moved->args[!is_second];
        moved = moved->args[is_second];
    }
    if (s->least && ci_expr_depends_on(s->least, s->symbol))
        return false;
    return ci_expr_split_linear(sym, moved, s->symbol, &coef, &s->step) &&
           ci_expr_equals_const(coef, 1) && s->step->kind == CI_EXPR_const &&
           (!s->least || ci_sym_known_le(sym, s->least, s->first));
}

/* The size after that many iterations. */
static const CiExpr *
size_after(const Size *s, const CiExpr *iterations)
{
    CiSym *sym = s->r->sym;
    const CiExpr *size = ci_expr_add(sym, s->first, ci_expr_mul(sym, s->step, iterations));
    return s->least ? ci_expr_max(sym, size, s->least) : size;
}

static bool
is_in_range(const Size *s, const CiCheckItem *check, const CiExpr *size)
{
    CiSym *sym = s->r->sym;
    bool is_above = check->symbol->low == CI_MINUS_INFINITY ||
                    ci_sym_known_le(sym, ci_expr_const(sym, check->symbol->low), size);
    return is_above && (ci_expr_equals_const(check->limit, CI_INFINITY) ||
                        ci_sym_known_lt(sym, size, check->limit));
}

/* ---- substitution everywhere ---- */

typedef struct Change {
    const CiLoopRewriter *r;
    const CiExpr *from, *to;
} Change;

static const CiExpr *
changed(const Change *c, const CiExpr *e)
{
    return e && ci_expr_depends_on(e, c->from) ? ci_expr_substitute(c->r->sym, e, 1, &c->from, &c->to)
                                               : e;
}

static const CiExpr *const *
all_changed(const Change *c, int count, const CiExpr *const *list)
{
    const CiExpr **made = CI_NEW_ARRAY(c->r->ctx, const CiExpr *, count + 1);
    for (int k = 0; k < count; k++)
        made[k] = changed(c, list[k]);
    return made;
}

static void
change_call(const Change *c, CiExternItem *call)
{
    for (int k = 0; k <= call->noperands; k++) {
        call->offsets[k] = changed(c, call->offsets[k]);
        call->sizes[k] = all_changed(c, call->ranks[k], call->sizes[k]);
        call->strides[k] = all_changed(c, call->ranks[k], call->strides[k]);
    }
}

static void
change_item(void *arg, CiItem *item)
{
    const Change *c = arg;
    if (item->nest)
        ci_nest_change(c->r, item->nest, c->from, c->to);
    if (item->ext)
        change_call(c, item->ext);
    if (item->check)
        item->check->limit = changed(c, item->check->limit);
}

static void
change_all(const Size *s, const CiExpr *from, const CiExpr *to)
{
    Change c = {s->r, from, to};
    CiLoops *loops = s->r->loops;
    ci_items_visit(&loops->items, change_item, &c);
    for (int k = 0; k < loops->nbuffers; k++) {
        CiBuffer *buffer = loops->buffers[k];
        buffer->sizes = all_changed(&c, buffer->rank, buffer->sizes);
        buffer->strides = all_changed(&c, buffer->rank, buffer->strides);
    }
    for (int k = 0; k < loops->nresults; k++) {
        CiResult *result = &loops->results[k];
        result->offset = changed(&c, result->offset);
        result->sizes = all_changed(&c, result->rank, result->sizes);
        result->strides = all_changed(&c, result->rank, result->strides);
    }
}

/* ---- rewriting ---- */

/* True if a loop around nests inside has an extent that the size decides: loop variables stay. */
static bool
decides_loops(const CiItems *items, const CiExpr *symbol)
{
    for (int k = 0; k < items->count; k++) {
        const CiRegion *region = items->items[k].region;
        if (region && ((region->extent && ci_expr_depends_on(region->extent, symbol)) ||
                       decides_loops(&region->condition_items, symbol) ||
                       decides_loops(&region->body, symbol) || decides_loops(&region->other, symbol)))
            return true;
    }
    return false;
}

/* The size that the item of the loop's body reads, if it is an induction variable. */
static bool
find_size(Size *s, const CiItems *items, int loop, int at)
{
    CiRegion *region = items->items[loop].region;
    const CiCheckItem *check = region->body.items[at].check;
    int *nreaders, *nwriters;
    s->buffer = check->buffer;
    s->symbol = check->symbol;
    int before = find_store(items, loop, s->buffer),
        inside = find_store(&region->body, region->body.count, s->buffer);
    if (before < 0 || inside < at || s->buffer->is_swapped || s->buffer->is_result ||
        s->buffer->kind != CI_BUFFER_temp)
        return false;
    ci_count_all_uses(s->r->loops, &nreaders, &nwriters);
    s->first = stored_by(s->r, items->items[before].nest);
    s->next = stored_by(s->r, region->body.items[inside].nest);
    if (nwriters[s->buffer->id] != 2 || !s->first || !s->next || !find_step(s) ||
        decides_loops(&s->r->loops->items, s->symbol))
        return false;
    return is_in_range(s, check, size_after(s, region->var));
}

/* Symbols after the loop that read the size. */
static void
close_after(const Size *s, CiItems *items, int loop)
{
    for (int k = loop + 1; k < items->count; k++) {
        const CiCheckItem *check = items->items[k].check;
        if (!check || !check->symbol || check->buffer != s->buffer)
            continue;
        const CiExpr *size = size_after(s, items->items[loop].region->extent);
        if (!is_in_range(s, check, size) || decides_loops(&s->r->loops->items, check->symbol))
            continue;
        ci_remove_item(items, k--);
        change_all(s, check->symbol, size);
    }
}

/* Stores of a size that nothing reads any more. */
static void
drop_stores(const Size *s, CiItems *items, CiRegion *region)
{
    int *nreaders, *nwriters, at;
    ci_count_all_uses(s->r->loops, &nreaders, &nwriters);
    if (nreaders[s->buffer->id])
        return;
    while ((at = find_store(&region->body, region->body.count, s->buffer)) >= 0)
        ci_remove_item(&region->body, at);
    while ((at = find_store(items, items->count, s->buffer)) >= 0)
        ci_remove_item(items, at);
}

void
ci_loops_induction_sizes(const CiLoopRewriter *r, CiItems *items)
{
    for (int k = 0; k < items->count; k++) {
        CiRegion *region = items->items[k].region;
        for (int at = 0; region && items->items[k].kind == CI_ITEM_for && at < region->body.count;
             at++) {
            const CiItem *item = &region->body.items[at];
            Size s = {.r = r};
            if (item->kind != CI_ITEM_symbol || !find_size(&s, items, k, at))
                continue;
            ci_remove_item(&region->body, at--);
            change_all(&s, s.symbol, size_after(&s, region->var));
            close_after(&s, items, k);
            int count = items->count;
            drop_stores(&s, items, region);
            k -= count - items->count;
        }
    }
}
