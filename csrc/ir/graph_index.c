/* Index arrays made safe: what is known of a value's range, and the nodes that wrap and check what
 * is not.
 *
 * Invariant: an index that leaves here is i64 and below the size it was made for, or the program
 * has stopped at a check before anything reads it. */
#include "ir/graph.h"

/* What is known of a value of integers: low <= it < limit, each NULL when nothing. */
typedef struct CiRange {
    const CiExpr *low, *limit;
} CiRange;

/* How far a value is followed to what it was made of. */
#define CI_RANGE_DEPTH 8

static const CiRange nothing = {NULL, NULL};

static CiRange
range_between(CiSym *sym, int64_t low, int64_t limit)
{
    return (CiRange){ci_expr_const(sym, low), ci_expr_const(sym, limit)};
}

static CiRange find_range(CiSym *sym, const CiNode *node, int depth);

static CiRange
range_of_sum(CiSym *sym, CiRange a, CiRange b)
{
    CiRange r = nothing;
    if (a.low && b.low)
        r.low = ci_expr_add(sym, a.low, b.low);
    if (a.limit && b.limit)
        r.limit = ci_expr_sub(sym, ci_expr_add(sym, a.limit, b.limit), ci_expr_const(sym, 1));
    return r;
}

static CiRange
range_of_negative(CiSym *sym, CiRange a)
{
    const CiExpr *one = ci_expr_const(sym, 1);
    CiRange r = nothing;
    if (a.limit)
        r.low = ci_expr_sub(sym, one, a.limit);
    if (a.low)
        r.limit = ci_expr_sub(sym, one, a.low);
    return r;
}

/* By a constant, at least 1: what indices are made with. */
static CiRange
range_of_quotient(CiSym *sym, const CiNode *node, CiRange a, CiRange b)
{
    bool is_positive = b.low && b.low->low >= 1;
    CiRange r = nothing;
    if (node->op == CI_OP_remainder) {
        if (is_positive && b.limit)
            return (CiRange){ci_expr_const(sym, 0),
                             ci_expr_sub(sym, b.limit, ci_expr_const(sym, 1))};
        return r;
    }
    bool is_natural = a.low && a.low->low >= 0;
    if (!is_positive || !is_natural)
        return r;
    r.low = ci_expr_const(sym, 0);
    int64_t divisor;
    if (a.limit && ci_expr_is_const(b.low, &divisor) && ci_expr_equals_const(b.limit, divisor + 1))
        r.limit = ci_expr_ceildiv(sym, a.limit, b.low);
    else
        r.limit = a.limit;
    return r;
}

static CiRange
range_of_product(CiSym *sym, CiRange a, CiRange b)
{
    const CiExpr *one = ci_expr_const(sym, 1);
    CiRange r = nothing;
    if (!a.low || !b.low || a.low->low < 0 || b.low->low < 0)
        return r;
    r.low = ci_expr_mul(sym, a.low, b.low);
    if (a.limit && b.limit)
        r.limit = ci_expr_add(
            sym, ci_expr_mul(sym, ci_expr_sub(sym, a.limit, one), ci_expr_sub(sym, b.limit, one)),
            one);
    return r;
}

/* The hull where both are known; where one bound is enough, whichever is known. */
static CiRange
range_of_choice(CiSym *sym, CiOp op, CiRange a, CiRange b)
{
    bool is_least = op == CI_OP_minimum, is_most = op == CI_OP_maximum;
    CiRange r = nothing;
    if (a.low && b.low)
        r.low = is_most ? ci_expr_max(sym, a.low, b.low) : ci_expr_min(sym, a.low, b.low);
    else if (is_most)
        r.low = a.low ? a.low : b.low;
    if (a.limit && b.limit)
        r.limit =
            is_least ? ci_expr_min(sym, a.limit, b.limit) : ci_expr_max(sym, a.limit, b.limit);
    else if (is_least)
        r.limit = a.limit ? a.limit : b.limit;
    return r;
}

static CiRange
range_of_type(CiSym *sym, CiDtype dtype)
{
    int bits = 8 * ci_dtype_size(dtype);
    if (dtype == CI_DTYPE_bool)
        return range_between(sym, 0, 2);
    if (ci_dtype_class(dtype) == CI_CLASS_uint && bits < 64)
        return range_between(sym, 0, (int64_t)1 << bits);
    if (ci_dtype_class(dtype) == CI_CLASS_int && bits < 64)
        return range_between(sym, -((int64_t)1 << (bits - 1)), (int64_t)1 << (bits - 1));
    return nothing;
}

static CiRange
range_of_pointwise(CiSym *sym, const CiNode *node, int depth)
{
    int first = node->op == CI_OP_where;
    CiRange a = find_range(sym, node->args[first], depth), b = nothing;
    if (node->nargs > first + 1)
        b = find_range(sym, node->args[first + 1], depth);
    switch (node->op) {
    case CI_OP_add:
        return range_of_sum(sym, a, b);
    case CI_OP_subtract:
        return range_of_sum(sym, a, range_of_negative(sym, b));
    case CI_OP_multiply:
        return range_of_product(sym, a, b);
    case CI_OP_floor_divide:
    case CI_OP_remainder:
        return range_of_quotient(sym, node, a, b);
    case CI_OP_minimum:
    case CI_OP_maximum:
    case CI_OP_where:
        return range_of_choice(sym, node->op, a, b);
    default:
        return nothing;
    }
}

static CiRange
range_of_positions(CiSym *sym, const CiNode *node)
{
    CiRange r = nothing;
    if (ci_op_kind(node->op) == CI_OPKIND_argreduce) {
        r.low = ci_expr_const(sym, 0);
        if (node->naxes == 1)
            r.limit = node->args[0]->sizes[node->axes[0]];
    }
    return r;
}

/* Constants that no sum of a few of them can overflow. */
static CiRange
range_of_const(CiSym *sym, const CiNode *node)
{
    int64_t value = node->value.i, far = (int64_t)1 << 40;
    bool is_tame = node->dtype != CI_DTYPE_u64 && value > -far && value < far;
    return is_tame ? range_between(sym, value, value + 1) : nothing;
}

/* What computes in fewer than 64 bits may wrap: its type is all that is known. */
static CiRange
find_range(CiSym *sym, const CiNode *node, int depth)
{
    CiOpKind kind = ci_op_kind(node->op);
    bool is_moved = ci_node_is_view(node) || node->op == CI_OP_copy || node->op == CI_OP_gather ||
                    node->op == CI_OP_compress;
    if (!ci_dtype_is_integral(node->dtype) || depth > CI_RANGE_DEPTH)
        return nothing;
    if (is_moved)
        return find_range(sym, node->args[0], depth + 1);
    if (node->op == CI_OP_const)
        return range_of_const(sym, node);
    if (node->dtype != CI_DTYPE_i64)
        return range_of_type(sym, node->dtype);
    if (node->op == CI_OP_iota)
        return (CiRange){ci_expr_const(sym, 0), node->sizes[node->axes[0]]};
    if (node->op == CI_OP_expr || node->op == CI_OP_define)
        return (CiRange){node->starts[0], ci_expr_add(sym, node->starts[0], ci_expr_const(sym, 1))};
    if (kind == CI_OPKIND_extern && node->ext->position_axis)
        return (CiRange){ci_expr_const(sym, 0), node->args[0]->sizes[node->ext->position_axis - 1]};
    if (node->op == CI_OP_cast)
        return find_range(sym, node->args[0], depth + 1);
    if (kind == CI_OPKIND_argreduce)
        return range_of_positions(sym, node);
    return kind == CI_OPKIND_pointwise || node->op == CI_OP_where
               ? range_of_pointwise(sym, node, depth + 1)
               : nothing;
}

/* ---- wrapping and checking ---- */

static CiNode *
binary(CiGraph *g, CiOp op, CiNode *a, CiNode *b, CiLoc loc)
{
    CiNode *args[2] = {a, b};
    return ci_graph_pointwise(g, op, 2, args, loc);
}

static CiNode *
integer(CiGraph *g, const CiExpr *e, CiLoc loc)
{
    int64_t value;
    if (ci_expr_is_const(e, &value))
        return ci_graph_const(g, CI_DTYPE_i64, CI_KIND_array, ci_const_int(CI_DTYPE_i64, value),
                              loc);
    return ci_graph_expr(g, e, loc);
}

static void
check_all(CiGraph *g, CiNode *truth, const char *why, CiLoc loc)
{
    int axes[CI_MAX_RANK];
    for (int k = 0; k < truth->rank; k++)
        axes[k] = k;
    if (truth->rank)
        truth = ci_graph_reduce(g, CI_OP_all, truth, truth->rank, axes, loc);
    ci_graph_check(g, truth, why, loc);
}

CiNode *
ci_graph_wrap_index(CiGraph *g, CiNode *index, const CiExpr *size, bool may_check, CiLoc loc)
{
    CiSym *sym = g->sym;
    const CiExpr *zero = ci_expr_const(sym, 0);
    index = ci_graph_cast(g, index, CI_DTYPE_i64, loc);
    CiRange r = find_range(sym, index, 0);
    bool is_natural = r.low && ci_sym_known_le(sym, zero, r.low),
         is_low = r.low && ci_sym_known_le(sym, ci_expr_neg(sym, size), r.low),
         is_below = r.limit && ci_sym_known_le(sym, r.limit, size);
    if (is_natural && is_below)
        return index;
    if (!may_check && !(is_low && is_below))
        return NULL;
    CiNode *n = integer(g, size, loc), *none = integer(g, zero, loc);
    if (!is_natural) {
        CiNode *choice[3] = {binary(g, CI_OP_less, index, none, loc),
                             binary(g, CI_OP_add, index, n, loc), index};
        index = ci_graph_pointwise(g, CI_OP_where, 3, choice, loc);
    }
    if (is_low && is_below)
        return index;
    CiNode *inside = binary(g, CI_OP_less, index, n, loc);
    if (!is_natural)
        inside = binary(g, CI_OP_logical_and, inside,
                        binary(g, CI_OP_greater_equal, index, none, loc), loc);
    check_all(g, inside, "an index is out of bounds", loc);
    return index;
}
