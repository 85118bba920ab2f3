/* Index arrays made safe: the nodes that wrap and check what their ranges do not prove.
 *
 * Invariant: an index that leaves here is i64 and below the size it was made for, or the program
 * has stopped at a check before anything reads it. */
#include "ir/range.h"

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
    CiRange range = ci_node_range(sym, index);
    bool is_natural = ci_range_is_from(sym, range, zero),
         is_low = ci_range_is_from(sym, range, ci_expr_neg(sym, size)),
         is_below = ci_range_is_below(sym, range, size);
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
