/* Proves that two accesses cannot touch the same element: at different points of loops, or ever. The
 * proof for points compares strides with the span of inner indices, as Banerjee's inequalities do
 * (Dependence Analysis for Supercomputing, 1988). */
#include "analysis/access.h"

bool
ci_is_loop_variable(const CiLoopScope *scope, const CiExpr *symbol)
{
    for (const CiLoopScope *at = scope; at; at = at->outer)
        if (at->region->var == symbol)
            return true;
    return false;
}

/* Subtracts from a and b their common terms in variables of loops around all points. */
static void
drop_region_variables(const CiPoints *p, const CiExpr **a, const CiExpr **b)
{
    const CiExpr *whole = *a;
    for (int k = 0; k < whole->nsymbols; k++) {
        const CiExpr *symbol = whole->symbols[k], *coef, *other, *rest, *rest_of_other;
        if (!ci_is_loop_variable(p->scope, symbol) ||
            !ci_expr_split_linear(p->sym, *a, symbol, &coef, &rest) ||
            !ci_expr_split_linear(p->sym, *b, symbol, &other, &rest_of_other) || coef != other)
            continue;
        *a = rest;
        *b = rest_of_other;
    }
}

/* A position in a block and the block's number, as in 8*t + i with i < min(8, n - 8*t), go out of
 * the index together: their sum is below n. What that comes to, times the distance of the
 * positions, is added to the span. Slow on purpose: few symbols. */
static const CiExpr *
drop_blocks(const CiPoints *p, const CiExpr *index, const CiExpr **span)
{
    CiSym *sym = p->sym;
    const CiExpr *whole = index, *step, *rest, *across, *last, *least, *outside;
    for (int k = 0; k < whole->nsymbols; k++) {
        const CiExpr *position = whole->symbols[k], *limit = position->limit;
        int nends = limit && limit->kind == CI_EXPR_min ? limit->nargs : 0;
        for (int n = 0; n < nends * whole->nsymbols; n++) {
            const CiExpr *end = limit->args[n % nends], *block = whole->symbols[n / nends];
            if (block == position || !ci_expr_depends_on(end, block) ||
                !ci_expr_split_linear(sym, index, position, &step, &rest) || step->low < 0 ||
                !ci_expr_split_linear(sym, rest, block, &across, &outside) ||
                !ci_expr_split_linear(sym, end, block, &least, &last) || across->low < 0 ||
                across != ci_expr_neg(sym, ci_expr_mul(sym, step, least)))
                continue;
            last = ci_expr_sub(sym, last, ci_expr_const(sym, 1));
            *span = ci_expr_add(sym, *span, ci_expr_mul(sym, step, last));
            index = outside;
            break;
        }
    }
    return index;
}

/* How many elements index can address from its least one on, or NULL when no bound is known. */
static const CiExpr *
index_span(const CiPoints *p, const CiExpr *index)
{
    CiSym *sym = p->sym;
    const CiExpr *one = ci_expr_const(sym, 1), *span = one, *coef, *whole;
    whole = index = drop_blocks(p, index, &span);
    if (index->low != CI_MINUS_INFINITY && index->high != CI_INFINITY)
        return ci_expr_add(sym, span, ci_expr_const(sym, index->high - index->low));
    for (int k = 0; k < whole->nsymbols; k++) {
        const CiExpr *symbol = whole->symbols[k];
        if (symbol->symbol_kind != CI_SYMBOL_index)
            continue;
        bool has_last = symbol->high != CI_INFINITY;
        if (!ci_expr_split_linear(sym, index, symbol, &coef, &index) || coef->low < 0 ||
            !(has_last || symbol->limit))
            return NULL;
        const CiExpr *last =
            has_last ? ci_expr_const(sym, symbol->high) : ci_expr_sub(sym, symbol->limit, one);
        span = ci_expr_add(sym, span, ci_expr_mul(sym, coef, last));
    }
    return ci_expr_is_const(index, NULL) ? span : NULL;
}

/* Like span_of, for indices that start at a lower element. */
static const CiExpr *
span_from(const CiPoints *p, const CiExpr *index, const CiExpr *span, int64_t low)
{
    bool is_known = span && low != CI_MINUS_INFINITY;
    return is_known ? ci_expr_add(p->sym, span, ci_expr_const(p->sym, index->low - low)) : NULL;
}

/* The axes that are not done, and what lies inside all of them. */
typedef struct Disjoint {
    const CiPoints *points;
    const CiExpr *const *coefs;
    const CiExpr *span;
    bool done[CI_MAX_RANK];
} Disjoint;

static const CiExpr *
span_with(CiSym *sym, const Disjoint *apart, int axis)
{
    const CiExpr *one = ci_expr_const(sym, 1),
                 *steps = ci_expr_sub(sym, apart->points->extents[axis], one);
    return ci_expr_add(sym, apart->span, ci_expr_mul(sym, apart->coefs[axis], steps));
}

/* True if the strides of all other axes are known to exceed the span of this one. */
static bool
is_inside_others(CiSym *sym, const Disjoint *apart, int axis)
{
    const CiExpr *span = span_with(sym, apart, axis);
    for (int k = 0; k < apart->points->count; k++) {
        if (k != axis && !apart->done[k] && !ci_sym_known_le(sym, span, apart->coefs[k]))
            return false;
    }
    return ci_sym_known_le(sym, apart->span, apart->coefs[axis]);
}

/* The one of the smallest distance, as far as sizes that are not known can be compared. */
static int
find_least(CiSym *sym, const Disjoint *apart)
{
    int least = -1;
    for (int k = 0; k < apart->points->count; k++) {
        const CiExpr *coef = apart->coefs[k];
        if (!apart->done[k] &&
            (least < 0 || ci_sym_known_lt(sym, coef, apart->coefs[least]) || coef == apart->span))
            least = k;
    }
    for (int k = 0; k < apart->points->count && !is_inside_others(sym, apart, least); k++) {
        if (!apart->done[k] && is_inside_others(sym, apart, k))
            return k;
    }
    return least;
}

/* Checks that the stride of each outer axis is at least the span of the elements inside it, so that
 * different outer points address different elements. Takes the axes in the order of their strides,
 * by repeated search: outer axes are few. Returns the span inside all of them, or NULL. */
static const CiExpr *
span_of_points(const CiPoints *p, const CiExpr *const *coefs,
               const CiExpr *span)
{
    Disjoint apart = {.points = p, .coefs = coefs, .span = span};
    for (int round = 0; round < p->count; round++) {
        int least = span ? find_least(p->sym, &apart) : -1;
        if (least < 0 || !ci_sym_known_le(p->sym, apart.span, coefs[least]))
            return NULL;
        apart.span = span_with(p->sym, &apart, least);
        apart.done[least] = true;
    }
    return apart.span;
}

/* An index apart: steps from row to row, what lies within a row, and what is always there. */
typedef struct Columns {
    const CiExpr *within, *rest;
} Columns;

/* No farther than the outer axes: a position in a block of columns. */
static bool
is_within(const CiPoints *p, const CiExpr *const *coefs, const CiExpr *coef)
{
    for (int k = 0; k < p->count; k++) {
        if (coef->low < 0 || !ci_sym_known_le(p->sym, coef, coefs[k]))
            return false;
    }
    return true;
}

/* *distance becomes the least step from row to row. false: the index is not linear in its
 * variables, or data are in it. */
static bool
find_columns(const CiPoints *p, const CiExpr *const *coefs,
             const CiExpr *index, Columns *found, const CiExpr **distance)
{
    const CiExpr *whole = index, *coef;
    found->within = ci_expr_const(p->sym, 0);
    for (int k = 0; k < whole->nsymbols; k++) {
        const CiExpr *symbol = whole->symbols[k];
        if (symbol->symbol_kind == CI_SYMBOL_unbacked)
            return false;
        if (symbol->symbol_kind != CI_SYMBOL_index)
            continue;
        if (!ci_expr_split_linear(p->sym, index, symbol, &coef, &index))
            return false;
        if (is_within(p, coefs, coef)) {
            found->within = ci_expr_add(p->sym, found->within, ci_expr_mul(p->sym, coef, symbol));
            continue;
        }
        coef = coef->high <= 0 ? ci_expr_neg(p->sym, coef) : coef;
        if (!*distance || ci_sym_known_lt(p->sym, coef, *distance))
            *distance = coef;
    }
    found->rest = index;
    return true;
}

static bool
has_multiples(const CiPoints *p, const CiExpr *index, const Columns *columns, const CiExpr *distance)
{
    const CiExpr *coef;
    index = ci_expr_sub(p->sym, index, columns->within);
    const CiExpr *whole = index;
    for (int k = 0; k < whole->nsymbols; k++) {
        const CiExpr *symbol = whole->symbols[k];
        if (symbol->symbol_kind == CI_SYMBOL_index &&
            (!ci_expr_split_linear(p->sym, index, symbol, &coef, &index) ||
             !ci_sym_known_multiple_of(p->sym, coef, distance)))
            return false;
    }
    return true;
}

/* The number of columns of all outer points, or a bound. `signs` are the steps of the axes. */
static const CiExpr *
span_of_columns(const CiPoints *p, const CiExpr *const *coefs,
                const CiExpr *const *signs, const CiExpr *within)
{
    const CiExpr *inside = index_span(p, within), *all = within;
    const CiExpr *points = inside ? span_of_points(p, coefs, inside) : NULL;
    bool is_up = points && within->nsymbols > 0;
    for (int k = 0; k < p->count; k++) {
        is_up = is_up && signs[k] == coefs[k];
        all = ci_expr_add(p->sym, all, ci_expr_mul(p->sym, signs[k], p->vars[k]));
    }
    const CiExpr *span = is_up ? index_span(p, all) : NULL; /* less where blocks end early */
    return span ? span : points;
}

/* Outer points are columns, or blocks of them, of what the inner parts take rows of: all of them
 * lie within a distance that every step from row to row is a multiple of. */
static bool
are_columns(const CiPoints *p, const CiExpr *const *coefs,
            const CiExpr *const *signs, const CiExpr *a, const CiExpr *b)
{
    const CiExpr *distance = NULL, *span_a, *span_b;
    Columns in_a, in_b;
    if (!find_columns(p, coefs, a, &in_a, &distance) ||
        !find_columns(p, coefs, b, &in_b, &distance) || !distance || distance->low < 0)
        return false;
    span_a = span_of_columns(p, coefs, signs, in_a.within);
    span_b = span_of_columns(p, coefs, signs, in_b.within);
    return span_a && span_b && ci_sym_known_le(p->sym, span_a, distance) &&
           ci_sym_known_le(p->sym, span_b, distance) && has_multiples(p, a, &in_a, distance) &&
           has_multiples(p, b, &in_b, distance) &&
           ci_sym_known_multiple_of(p->sym, ci_expr_sub(p->sym, in_a.rest, in_b.rest), distance);
}

void
ci_add_points(CiPoints *points, const CiExpr *var, const CiExpr *extent)
{
    points->vars[points->count] = var;
    points->extents[points->count++] = extent;
}

const char *
ci_why_points_overlap(const CiPoints *p, const CiExpr *a, const CiExpr *b)
{
    const CiExpr *coefs[CI_MAX_RANK], *signs[CI_MAX_RANK], *other;
    if (a->high < b->low || b->high < a->low)
        return NULL; /* they never meet */
    for (int k = 0; k < p->count; k++) {
        if (!ci_expr_split_linear(p->sym, a, p->vars[k], &coefs[k], &a) ||
            !ci_expr_split_linear(p->sym, b, p->vars[k], &other, &b))
            return "an index is not linear in the outer axes";
        if (coefs[k] != other)
            return "it is read at another outer index";
        signs[k] = coefs[k];
        if (coefs[k]->high < 0)
            coefs[k] = ci_expr_neg(p->sym, coefs[k]);
    }
    drop_region_variables(p, &a, &b);
    /* Both inner parts must lie within the span that starts at the lower of them. */
    const CiExpr *span_a = index_span(p, a), *span_b = index_span(p, b);
    if (a->low != b->low) {
        int64_t low = a->low < b->low ? a->low : b->low;
        span_a = span_from(p, a, span_a, low);
        span_b = span_from(p, b, span_b, low);
    }
    bool is_disjoint =
        p->count == 0 || (span_of_points(p, coefs, span_a) &&
                                (span_b == span_a || span_of_points(p, coefs, span_b)));
    if (!is_disjoint && !are_columns(p, coefs, signs, a, b))
        return "rows of different outer points are not proved apart";
    return NULL;
}

/* The element that the nest stores, and the accessed one of the same array. */
static bool
is_of_point(CiContext *ctx, const CiPoints *p, const CiRegion *loop, const CiNestAccess *at, const CiNest *writer)
{
    const CiExpr *vars[CI_MAX_RANK + 1];
    if (!ci_why_points_overlap(p, writer->store, at->index))
        return true;
    for (int k = 0; k < p->count; k++)
        vars[k] = p->vars[k];
    vars[p->count] = loop->var;
    const CiExpr *other = ci_at_other_point(ctx, p->sym, at->index, p->count + 1, vars);
    return ci_elements_are_disjoint(p->sym, writer->target, writer->store, other, NULL);
}

bool
ci_stores_are_of_points(CiContext *ctx, const CiPoints *points, const CiRegion *loop)
{
    for (int w = 0; w < loop->body.count; w++)
        for (int k = 0; k < loop->body.count; k++)
            for (CiNestAccess at = {0}; ci_nest_next_access(loop->body.items[k].nest, &at);)
                if (at.buffer == loop->body.items[w].nest->target &&
                    !is_of_point(ctx, points, loop, &at, loop->body.items[w].nest))
                    return false;
    return true;
}

bool
ci_runs_are_disjoint(CiSym *sym, const CiExpr *a, int64_t count, const CiExpr *b, int64_t others)
{
    const CiExpr *distance = ci_expr_sub(sym, b, a);
    return distance->low >= count || distance->high <= -others;
}

bool
ci_is_beyond_reach(CiSym *sym, const CiExpr *a, const CiExpr *b, int64_t reach)
{
    bool moves_alike = ci_expr_is_const(ci_expr_sub(sym, a, b), NULL);
    return moves_alike && reach < INT64_MAX && ci_runs_are_disjoint(sym, a, reach + 1, b, reach + 1);
}

void
ci_add_iteration(CiSym *sym, CiFacts *facts, const CiExpr *extent)
{
    if (!ci_expr_is_const(extent, NULL) && facts->count < CI_MAX_FACTS)
        facts->list[facts->count++] = ci_expr_sub(sym, extent, ci_expr_const(sym, 1));
}

static int
strides_of_index(CiSym *sym, const CiExpr *index, const CiExpr **strides)
{
    const CiExpr *rest;
    int count = 0;
    for (int k = 0; k < index->nsymbols && count < CI_MAX_RANK; k++)
        if (index->symbols[k]->symbol_kind == CI_SYMBOL_index &&
            ci_expr_split_linear(sym, index, index->symbols[k], &strides[count], &rest))
            count++;
    return count;
}

bool
ci_elements_are_disjoint(CiSym *sym, const CiBuffer *buffer, const CiExpr *a, const CiExpr *b, const CiFacts *facts)
{
    const CiFacts none = {.count = 0}, *known = facts ? facts : &none;
    const CiExpr *own[CI_MAX_RANK];
    int count = buffer ? buffer->rank : strides_of_index(sym, a, own);
    return ci_sym_known_disjoint(sym, a, b, count, buffer ? buffer->strides : own, known->count, known->list);
}

const CiExpr *
ci_at_other_point(CiContext *ctx, CiSym *sym, const CiExpr *index, int count, const CiExpr *const *symbols)
{
    const CiExpr **others = CI_NEW_ARRAY(ctx, const CiExpr *, count + 1);
    for (int k = 0; k < count; k++)
        others[k] = ci_expr_index(sym, ci_format(ctx, "o%d", k), symbols[k]->limit);
    return ci_expr_substitute(sym, index, count, symbols, others);
}
