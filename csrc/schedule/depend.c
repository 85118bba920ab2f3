/* Data dependences: who reads and writes each buffer, and whether two accesses can touch the same
 * element in different outer points. The proof compares strides with the span of inner indices, as
 * Banerjee's inequalities do (Dependence Analysis for Supercomputing, 1988). */
#include <limits.h>

#include "base/map.h"
#include "schedule/plan.h"

static bool
fusion_reads(const CiFusionNest *nest, const CiBuffer *buffer)
{
    for (int k = 0; k < nest->nreads; k++) {
        if (nest->reads[k] == buffer)
            return true;
    }
    return false;
}

CiFusionNest
ci_fusion_nest(CiScheduler *s, CiNest *nest)
{
    CiFusionNest fusion = {.nest = nest};
    int capacity = 0;
    for (int k = 0; k < nest->body.nops; k++) {
        const CiScalar *op = &nest->body.ops[k];
        if (op->op == CI_OP_load && op->buffer->kind != CI_BUFFER_scalar &&
            !fusion_reads(&fusion, op->buffer))
            CI_PUSH(s->ctx, fusion.reads, fusion.nreads, capacity, op->buffer);
    }
    return fusion;
}

static bool
extern_touches(const CiExternItem *item, const CiBuffer *buffer)
{
    for (int k = 0; k < item->noperands; k++) {
        if (item->operands[k] == buffer)
            return true;
    }
    return item->result == buffer;
}

static bool
uses_symbol(const CiNest *nest, const CiExpr *symbol)
{
    bool is_used = ci_expr_depends_on(nest->store, symbol);
    for (int k = 0; k < nest->target->rank && !is_used; k++)
        is_used = ci_expr_depends_on(nest->target->sizes[k], symbol);
    for (int k = 0; k < nest->naxes && !is_used; k++)
        is_used = ci_expr_depends_on(nest->axes[k].extent, symbol);
    for (int k = 0; k < nest->body.nops && !is_used; k++)
        is_used = nest->body.ops[k].index && ci_expr_depends_on(nest->body.ops[k].index, symbol);
    return is_used;
}

static bool
binds_indices(const CiNest *nest)
{
    for (int k = 0; k < nest->body.nops; k++) {
        if (nest->body.ops[k].op == CI_OP_bind)
            return true;
    }
    return false;
}

/* A check that fails finds arguments as they were, and may be one of the indices; a symbol has no
 * value before it is read. */
static const char *
why_not_before_check(CiScheduler *s, const CiCheckItem *check, const CiNest *nest)
{
    if (nest->target == check->buffer || ci_nest_count(nest) == check->buffer ||
        nest->target->kind != CI_BUFFER_temp)
        return ci_format(s->ctx, "a check of %s must run between them", check->buffer->name);
    if (!check->symbol && binds_indices(nest))
        return ci_format(s->ctx, "%s says whether an index is in range", check->buffer->name);
    if (check->symbol && uses_symbol(nest, check->symbol))
        return ci_format(s->ctx, "%s is not known before", check->symbol->name);
    return NULL;
}

/* Distinct arrays that nests of the fusion, and of its blocks, read or store. */
static void
collect_arrays(CiMap *arrays, const CiFusion *fusion)
{
    for (int n = 0; n < fusion->nnests; n++) {
        const CiFusionNest *nest = &fusion->nests[n];
        ci_map_put(arrays, CI_KEY(nest->nest->target), nest->nest->target);
        if (ci_nest_count(nest->nest))
            ci_map_put(arrays, CI_KEY(ci_nest_count(nest->nest)), ci_nest_count(nest->nest));
        for (int k = 0; k < nest->nreads; k++)
            if (nest->reads[k]->kind != CI_BUFFER_scalar)
                ci_map_put(arrays, CI_KEY(nest->reads[k]), nest->reads[k]);
    }
    for (int b = 0; b < 2; b++)
        for (int d = 0; fusion->inner[b] && d < fusion->inner[b]->nfusions; d++)
            collect_arrays(arrays, &fusion->inner[b]->fusions[d]);
}

const char *
ci_why_too_many_arrays(CiScheduler *s, const CiFusion *a, const CiFusion *b)
{
    CiMap *arrays = ci_map_new(s->ctx);
    if (s->target->max_buffers == INT_MAX)
        return NULL;
    collect_arrays(arrays, a);
    if (b)
        collect_arrays(arrays, b);
    if (ci_map_count(arrays) <= s->target->max_buffers)
        return NULL;
    return ci_format(s->ctx, "together they touch %d arrays, and a kernel takes %d",
                     ci_map_count(arrays), s->target->max_buffers);
}

const char *
ci_why_not_before(CiScheduler *s, const CiFusion *fusion, const CiFusionNest *nest)
{
    const CiBuffer *target = nest->nest->target;
    if (fusion->check)
        return why_not_before_check(s, fusion->check, nest->nest);
    if (fusion->ext) {
        bool is_argument = target->kind == CI_BUFFER_input; /* must be unchanged if the call
                                                             * fails */
        bool conflicts = extern_touches(fusion->ext, target) ||
                         fusion_reads(nest, fusion->ext->result) ||
                         (fusion->ext->ext->may_fail && is_argument);
        return conflicts ? ci_format(s->ctx, "%s must run between them", fusion->ext->ext->name)
                         : NULL;
    }
    for (int k = 0; k < fusion->nnests; k++) {
        const CiFusionNest *other = &fusion->nests[k];
        if (fusion_reads(nest, other->nest->target) || fusion_reads(other, target) ||
            other->nest->target == target)
            return ci_format(s->ctx, "the kernel of %s must run between them",
                             other->nest->target->name);
    }
    return NULL;
}

static bool
is_tree_axis(const CiLoopTree *tree, const CiExpr *symbol)
{
    for (int k = 0; k < tree->count; k++) {
        const CiTreeNode *node = &tree->nodes[k];
        if ((node->region && node->region->var == symbol) ||
            (node->check && node->check->symbol == symbol) ||
            (node->leaf && ci_is_kernel_axis(node->leaf, symbol)) ||
            is_tree_axis(&node->body, symbol) || is_tree_axis(&node->other, symbol))
            return true;
    }
    return false;
}

bool
ci_is_kernel_axis(const CiKernel *kernel, const CiExpr *symbol)
{
    if (symbol->symbol_kind != CI_SYMBOL_index && symbol->symbol_kind != CI_SYMBOL_unbacked)
        return false;
    for (int k = 0; k < kernel->nouter; k++) {
        if (kernel->outer[k].var == symbol)
            return true;
    }
    for (int t = 0; t < kernel->nstages; t++) {
        for (int k = 0; k < kernel->stages[t].naxes; k++) {
            if (kernel->stages[t].axes[k].var == symbol)
                return true;
        }
        if (kernel->stages[t].tree && is_tree_axis(kernel->stages[t].tree, symbol))
            return true;
    }
    return false;
}

/* Fixed while a kernel runs. */
static bool
is_region_variable(const CiScheduler *s, const CiExpr *symbol)
{
    for (; s; s = s->outer) {
        if (s->region && s->region->var == symbol)
            return true;
    }
    return false;
}

/* Subtracts from a and b their common terms in variables of loops around the kernel. */
static void
drop_region_variables(CiScheduler *s, const CiExpr **a, const CiExpr **b)
{
    const CiExpr *whole = *a;
    for (int k = 0; k < whole->nsymbols; k++) {
        const CiExpr *symbol = whole->symbols[k], *coef, *other, *rest, *rest_of_other;
        if (!is_region_variable(s, symbol) ||
            !ci_expr_split_linear(s->sym, *a, symbol, &coef, &rest) ||
            !ci_expr_split_linear(s->sym, *b, symbol, &other, &rest_of_other) || coef != other)
            continue;
        *a = rest;
        *b = rest_of_other;
    }
}

/* A position in a block and the block's number, as in 8*t + i with i < min(8, n - 8*t), go out of
 * the index together: their sum is below n. What that comes to, times the distance of the
 * positions, is added to the span. Slow on purpose: few symbols. */
static const CiExpr *
drop_blocks(CiScheduler *s, const CiExpr *index, const CiExpr **span)
{
    CiSym *sym = s->sym;
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
index_span(CiScheduler *s, const CiExpr *index)
{
    CiSym *sym = s->sym;
    const CiExpr *one = ci_expr_const(sym, 1), *span = one, *coef, *whole;
    whole = index = drop_blocks(s, index, &span);
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
span_from(CiScheduler *s, const CiExpr *index, const CiExpr *span, int64_t low)
{
    bool is_known = span && low != CI_MINUS_INFINITY;
    return is_known ? ci_expr_add(s->sym, span, ci_expr_const(s->sym, index->low - low)) : NULL;
}

/* The axes that are not done, and what lies inside all of them. */
typedef struct Apart {
    const CiKernel *kernel;
    const CiExpr *const *coefs;
    const CiExpr *span;
    bool done[CI_MAX_RANK];
} Apart;

static const CiExpr *
span_with(CiSym *sym, const Apart *apart, int axis)
{
    const CiExpr *one = ci_expr_const(sym, 1),
                 *steps = ci_expr_sub(sym, apart->kernel->outer[axis].extent, one);
    return ci_expr_add(sym, apart->span, ci_expr_mul(sym, apart->coefs[axis], steps));
}

/* All other axes are known to go around this one. */
static bool
is_inside_others(CiSym *sym, const Apart *apart, int axis)
{
    const CiExpr *span = span_with(sym, apart, axis);
    for (int k = 0; k < apart->kernel->nouter; k++) {
        if (k != axis && !apart->done[k] && !ci_sym_known_le(sym, span, apart->coefs[k]))
            return false;
    }
    return ci_sym_known_le(sym, apart->span, apart->coefs[axis]);
}

/* The one of the smallest distance, as far as sizes that are not known can be compared. */
static int
find_least(CiSym *sym, const Apart *apart)
{
    int least = -1;
    for (int k = 0; k < apart->kernel->nouter; k++) {
        const CiExpr *coef = apart->coefs[k];
        if (!apart->done[k] &&
            (least < 0 || ci_sym_known_lt(sym, coef, apart->coefs[least]) || coef == apart->span))
            least = k;
    }
    for (int k = 0; k < apart->kernel->nouter && !is_inside_others(sym, apart, least); k++) {
        if (!apart->done[k] && is_inside_others(sym, apart, k))
            return k;
    }
    return least;
}

/* Checks that the stride of each outer axis is at least the span of the elements inside it, so that
 * different outer points address different elements. Takes the axes in the order of their strides,
 * by repeated search: outer axes are few. Returns the span inside all of them, or NULL. */
static const CiExpr *
span_of_points(CiScheduler *s, const CiKernel *kernel, const CiExpr *const *coefs,
               const CiExpr *span)
{
    Apart apart = {.kernel = kernel, .coefs = coefs, .span = span};
    for (int round = 0; round < kernel->nouter; round++) {
        int least = span ? find_least(s->sym, &apart) : -1;
        if (least < 0 || !ci_sym_known_le(s->sym, apart.span, coefs[least]))
            return NULL;
        apart.span = span_with(s->sym, &apart, least);
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
is_within(CiScheduler *s, const CiKernel *kernel, const CiExpr *const *coefs, const CiExpr *coef)
{
    for (int k = 0; k < kernel->nouter; k++) {
        if (coef->low < 0 || !ci_sym_known_le(s->sym, coef, coefs[k]))
            return false;
    }
    return true;
}

/* *distance becomes the least step from row to row. false: the index is not linear in its
 * variables, or data are in it. */
static bool
find_columns(CiScheduler *s, const CiKernel *kernel, const CiExpr *const *coefs,
             const CiExpr *index, Columns *found, const CiExpr **distance)
{
    const CiExpr *whole = index, *coef;
    found->within = ci_expr_const(s->sym, 0);
    for (int k = 0; k < whole->nsymbols; k++) {
        const CiExpr *symbol = whole->symbols[k];
        if (symbol->symbol_kind == CI_SYMBOL_unbacked)
            return false;
        if (symbol->symbol_kind != CI_SYMBOL_index)
            continue;
        if (!ci_expr_split_linear(s->sym, index, symbol, &coef, &index))
            return false;
        if (is_within(s, kernel, coefs, coef)) {
            found->within = ci_expr_add(s->sym, found->within, ci_expr_mul(s->sym, coef, symbol));
            continue;
        }
        coef = coef->high <= 0 ? ci_expr_neg(s->sym, coef) : coef;
        if (!*distance || ci_sym_known_lt(s->sym, coef, *distance))
            *distance = coef;
    }
    found->rest = index;
    return true;
}

static bool
has_multiples(CiScheduler *s, const CiExpr *index, const Columns *columns, const CiExpr *distance)
{
    const CiExpr *coef;
    index = ci_expr_sub(s->sym, index, columns->within);
    const CiExpr *whole = index;
    for (int k = 0; k < whole->nsymbols; k++) {
        const CiExpr *symbol = whole->symbols[k];
        if (symbol->symbol_kind == CI_SYMBOL_index &&
            (!ci_expr_split_linear(s->sym, index, symbol, &coef, &index) ||
             !ci_sym_known_multiple_of(s->sym, coef, distance)))
            return false;
    }
    return true;
}

/* All columns of all outer points: their number, or a bound. `signs` are the axes' own steps. */
static const CiExpr *
span_of_columns(CiScheduler *s, const CiKernel *kernel, const CiExpr *const *coefs,
                const CiExpr *const *signs, const CiExpr *within)
{
    const CiExpr *inside = index_span(s, within), *all = within;
    const CiExpr *points = inside ? span_of_points(s, kernel, coefs, inside) : NULL;
    bool is_up = points && within->nsymbols > 0;
    for (int k = 0; k < kernel->nouter; k++) {
        is_up = is_up && signs[k] == coefs[k];
        all = ci_expr_add(s->sym, all, ci_expr_mul(s->sym, signs[k], kernel->outer[k].var));
    }
    const CiExpr *span = is_up ? index_span(s, all) : NULL; /* less where blocks end early */
    return span ? span : points;
}

/* Outer points are columns, or blocks of them, of what the inner parts take rows of: all of them
 * lie within a distance that every step from row to row is a multiple of. */
static bool
are_columns(CiScheduler *s, const CiKernel *kernel, const CiExpr *const *coefs,
            const CiExpr *const *signs, const CiExpr *a, const CiExpr *b)
{
    const CiExpr *distance = NULL, *span_a, *span_b;
    Columns in_a, in_b;
    if (!find_columns(s, kernel, coefs, a, &in_a, &distance) ||
        !find_columns(s, kernel, coefs, b, &in_b, &distance) || !distance || distance->low < 0)
        return false;
    span_a = span_of_columns(s, kernel, coefs, signs, in_a.within);
    span_b = span_of_columns(s, kernel, coefs, signs, in_b.within);
    return span_a && span_b && ci_sym_known_le(s->sym, span_a, distance) &&
           ci_sym_known_le(s->sym, span_b, distance) && has_multiples(s, a, &in_a, distance) &&
           has_multiples(s, b, &in_b, distance) &&
           ci_sym_known_multiple_of(s->sym, ci_expr_sub(s->sym, in_a.rest, in_b.rest), distance);
}

const char *
ci_why_not_local(CiScheduler *s, const CiKernel *kernel, const CiExpr *a, const CiExpr *b)
{
    const CiExpr *coefs[CI_MAX_RANK], *signs[CI_MAX_RANK], *other;
    if (a->high < b->low || b->high < a->low)
        return NULL; /* they never meet */
    for (int k = 0; k < kernel->nouter; k++) {
        if (!ci_expr_split_linear(s->sym, a, kernel->outer[k].var, &coefs[k], &a) ||
            !ci_expr_split_linear(s->sym, b, kernel->outer[k].var, &other, &b))
            return "an index is not linear in the outer axes";
        if (coefs[k] != other)
            return "it is read at another outer index";
        signs[k] = coefs[k];
        if (coefs[k]->high < 0)
            coefs[k] = ci_expr_neg(s->sym, coefs[k]);
    }
    drop_region_variables(s, &a, &b);
    /* Both inner parts must lie within the span that starts at the lower of them. */
    const CiExpr *span_a = index_span(s, a), *span_b = index_span(s, b);
    if (a->low != b->low) {
        int64_t low = a->low < b->low ? a->low : b->low;
        span_a = span_from(s, a, span_a, low);
        span_b = span_from(s, b, span_b, low);
    }
    bool is_apart =
        kernel->nouter == 0 || (span_of_points(s, kernel, coefs, span_a) &&
                                (span_b == span_a || span_of_points(s, kernel, coefs, span_b)));
    if (!is_apart && !are_columns(s, kernel, coefs, signs, a, b))
        return "rows of different outer points are not proved apart";
    return NULL;
}
