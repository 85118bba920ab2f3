/* Indices that data give. One is bound to an index symbol, and from there on it is an index like
 * any other: views map it, loads use it. Each bind has a symbol of its own, over all nests: equal
 * symbols mean the same element, and two nests never share one. */
#include "lower/lowering.h"

const CiExpr *
ci_lowering_bound_symbol(CiLowering *low, const CiExpr *limit)
{
    return ci_expr_index(low->sym, ci_format(low->ctx, "at%d", low->nbinds++), limit);
}

int
ci_recorder_bind(CiRecorder *rec, int position, const CiExpr *limit)
{
    for (int k = 0; k < rec->body.nops; k++) {
        const CiScalar *op = &rec->body.ops[k];
        if (op->op == CI_OP_bind && op->args[0] == position &&
            op->index->limit == ci_expr_limit(limit))
            return k;
    }
    CiScalar bind = {.op = CI_OP_bind, .dtype = CI_DTYPE_i64, .args = {position}, .nargs = 1};
    bind.index = ci_lowering_bound_symbol(rec->low, limit);
    return ci_recorder_add(rec, bind);
}

const CiExpr *const *
ci_lowering_aligned_index(CiLowering *low, const CiNode *operand, int rank,
                          const CiExpr *const *index)
{
    const CiExpr **inner = CI_NEW_ARRAY(low->ctx, const CiExpr *, operand->rank + 1);
    for (int k = 0; k < operand->rank; k++)
        inner[k] = ci_expr_equals_const(operand->sizes[k], 1) ? ci_expr_const(low->sym, 0)
                                                              : index[k + rank - operand->rank];
    return inner;
}

int
ci_lowering_index_rank(const CiNode *node, int first)
{
    int rank = 0;
    for (int k = first; k < node->nargs; k++)
        rank = node->args[k]->rank > rank ? node->args[k]->rank : rank;
    return rank;
}

const CiExpr *const *
ci_lowering_source_index(CiLowering *low, const CiNode *node, int rank, int nindex,
                         const CiExpr *const *found, const CiExpr *const *index)
{
    const CiExpr **source = CI_NEW_ARRAY(low->ctx, const CiExpr *, rank + 1);
    for (int k = 0, next = 0, from = 0; k < rank; k++) {
        if (k == node->axes[0])
            from += nindex;
        if (next < node->naxes && k == node->axes[next])
            source[k] = found[next++];
        else
            source[k] = index[from++];
    }
    return source;
}
