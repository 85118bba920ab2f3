/* Bounds of integer values: one walk from a node to what it is made of, some levels deep.
 * Arithmetic counts as exact: sizes are far from where int64 wraps, and what is not made of sizes
 * and small numbers has no bounds here. */
#include "ir/bounds.h"

#include "ir/layout.h"

#define MAX_DEPTH 12

static CiBounds bounds_of(CiGraph *g, const CiNode *node, int depth);

static CiBounds
between(CiGraph *g, int64_t low, int64_t high)
{
    return (CiBounds){ci_expr_const(g->sym, low), ci_expr_const(g->sym, high)};
}

static const CiExpr *
folded_count(CiGraph *g, const CiNode *node)
{
    const CiExpr *count = ci_expr_const(g->sym, 1);
    for (int k = 0; k < node->naxes; k++)
        count = ci_expr_mul(g->sym, count, node->args[0]->sizes[node->axes[k]]);
    return count;
}

/* Terms of one sign add up to what all of them could be. */
static CiBounds
bounds_of_sum(CiGraph *g, const CiNode *node, CiBounds term)
{
    CiBounds out = {NULL, NULL};
    const CiExpr *count = folded_count(g, node), *zero = ci_expr_const(g->sym, 0);
    if (term.low)
        out.low = ci_expr_mul(g->sym, count, ci_expr_min(g->sym, term.low, zero));
    if (term.high)
        out.high = ci_expr_mul(g->sym, count, ci_expr_max(g->sym, term.high, zero));
    return out;
}

static CiBounds
bounds_of_fold(CiGraph *g, const CiNode *node, int depth)
{
    CiBounds out = {NULL, NULL};
    switch (node->op) {
    case CI_OP_argmax:
    case CI_OP_argmin:
        return (CiBounds){ci_expr_const(g->sym, 0),
                          ci_expr_sub(g->sym, folded_count(g, node), ci_expr_const(g->sym, 1))};
    case CI_OP_sum:
        return bounds_of_sum(g, node, bounds_of(g, node->args[0], depth - 1));
    case CI_OP_max:
    case CI_OP_min:
        return bounds_of(g, node->args[0], depth - 1);
    default:
        return out;
    }
}

static const CiExpr *
pick(CiGraph *g, const CiExpr *a, const CiExpr *b, bool is_min)
{
    return is_min ? ci_expr_min(g->sym, a, b) : ci_expr_max(g->sym, a, b);
}

/* One operand is enough for the end that an extremum bounds, the other end needs both. */
static CiBounds
bounds_of_extremum(CiGraph *g, bool is_min, CiBounds a, CiBounds b)
{
    CiBounds out = {NULL, NULL};
    const CiExpr *ends[2][2] = {{a.low, b.low}, {a.high, b.high}}, *made[2];
    for (int end = 0; end < 2; end++) {
        const CiExpr *x = ends[end][0], *y = ends[end][1];
        bool one_is_enough = (end == 1) == is_min;
        made[end] = x && y ? pick(g, x, y, is_min) : one_is_enough ? x ? x : y : NULL;
    }
    out.low = made[0];
    out.high = made[1];
    return out;
}

static CiBounds
bounds_of_difference(CiGraph *g, CiBounds a, CiBounds b)
{
    return (CiBounds){a.low && b.high ? ci_expr_sub(g->sym, a.low, b.high) : NULL,
                      a.high && b.low ? ci_expr_sub(g->sym, a.high, b.low) : NULL};
}

static CiBounds
bounds_of_remainder(CiGraph *g, CiBounds divisor)
{
    CiBounds out = {NULL, NULL};
    if (!divisor.low || !divisor.high || divisor.low->low < 1)
        return out;
    out.low = ci_expr_const(g->sym, 0);
    out.high = ci_expr_sub(g->sym, divisor.high, ci_expr_const(g->sym, 1));
    return out;
}

static CiBounds
bounds_of_pointwise(CiGraph *g, const CiNode *node, int depth)
{
    int first = node->op == CI_OP_where;
    CiBounds a = bounds_of(g, node->args[first], depth - 1), b = a, none = {NULL, NULL};
    if (node->nargs > first + 1)
        b = bounds_of(g, node->args[first + 1], depth - 1);
    switch (node->op) {
    case CI_OP_add:
        return (CiBounds){a.low && b.low ? ci_expr_add(g->sym, a.low, b.low) : NULL,
                          a.high && b.high ? ci_expr_add(g->sym, a.high, b.high) : NULL};
    case CI_OP_subtract:
        return bounds_of_difference(g, a, b);
    case CI_OP_negative:
        return bounds_of_difference(g, between(g, 0, 0), a);
    case CI_OP_minimum:
    case CI_OP_maximum:
        return bounds_of_extremum(g, node->op == CI_OP_minimum, a, b);
    case CI_OP_remainder:
        return bounds_of_remainder(g, b);
    case CI_OP_where:
        return (CiBounds){a.low && b.low ? ci_expr_min(g->sym, a.low, b.low) : NULL,
                          a.high && b.high ? ci_expr_max(g->sym, a.high, b.high) : NULL};
    default:
        return none;
    }
}

/* A cast to a narrower type may wrap. */
static CiBounds
bounds_of_cast(CiGraph *g, const CiNode *node, int depth)
{
    CiBounds none = {NULL, NULL};
    CiDtype from = node->args[0]->dtype;
    bool widens = ci_dtype_is_integral(from) && node->dtype == CI_DTYPE_i64 && from != CI_DTYPE_u64;
    return widens ? bounds_of(g, node->args[0], depth - 1) : none;
}

static CiBounds
bounds_of_dtype(CiGraph *g, CiDtype dtype)
{
    switch (dtype) {
    case CI_DTYPE_bool:
        return between(g, 0, 1);
    case CI_DTYPE_u8:
        return between(g, 0, UINT8_MAX);
    case CI_DTYPE_u16:
        return between(g, 0, UINT16_MAX);
    case CI_DTYPE_u32:
        return between(g, 0, UINT32_MAX);
    default:
        return (CiBounds){NULL, NULL};
    }
}

static CiBounds
bounds_of(CiGraph *g, const CiNode *node, int depth)
{
    CiBounds out = bounds_of_dtype(g, node->dtype);
    if (out.low || depth == 0 || !ci_dtype_is_integral(node->dtype))
        return out;
    switch (ci_op_kind(node->op)) {
    case CI_OPKIND_view:
        return bounds_of(g, node->args[0], depth - 1);
    case CI_OPKIND_reduce:
    case CI_OPKIND_argreduce:
        return bounds_of_fold(g, node, depth);
    case CI_OPKIND_pointwise:
        return bounds_of_pointwise(g, node, depth);
    default:
        break;
    }
    switch (node->op) {
    case CI_OP_expr:
    case CI_OP_define:
        return (CiBounds){node->starts[0], node->starts[0]};
    case CI_OP_const:
        return between(g, node->value.i, node->value.i);
    case CI_OP_iota:
        return (CiBounds){ci_expr_const(g->sym, 0), ci_expr_sub(g->sym, node->sizes[node->axes[0]],
                                                                ci_expr_const(g->sym, 1))};
    case CI_OP_where:
        return bounds_of_pointwise(g, node, depth);
    case CI_OP_cast:
        return bounds_of_cast(g, node, depth);
    case CI_OP_copy:
        return bounds_of(g, node->args[0], depth - 1);
    default:
        return out;
    }
}

CiBounds
ci_node_bounds(CiGraph *g, const CiNode *node)
{
    return bounds_of(g, node, MAX_DEPTH);
}

bool
ci_node_is_within(CiGraph *g, const CiNode *node, int64_t low, const CiExpr *limit)
{
    CiBounds bounds = ci_node_bounds(g, node);
    bool fits_low = low == CI_MINUS_INFINITY ||
                    (bounds.low && ci_sym_known_le(g->sym, ci_expr_const(g->sym, low), bounds.low));
    bool fits_high = ci_expr_equals_const(limit, CI_INFINITY) ||
                     (bounds.high && ci_sym_known_lt(g->sym, bounds.high, limit));
    return fits_low && fits_high;
}
