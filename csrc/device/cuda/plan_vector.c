/* How many neighbours along an axis a thread takes at a time: as many as make 16 bytes of the
 * widest element, where some access is contiguous and aligned. */
#include "device/cuda/cuda.h"

const CiExpr *
ci_cuda_vector_axis(const CiCudaPlan *plan, const CiCudaStage *stage)
{
    if (plan->is_flat)
        return plan->kernel->nouter ? plan->kernel->outer[plan->kernel->nouter - 1].var : NULL;
    return stage->nshared ? stage->stage->axes[stage->nshared - 1].var : NULL;
}

bool
ci_cuda_is_vector(CiSym *sym, const CiExpr *index, const CiExpr *var, int vector)
{
    const CiExpr *coef, *rest;
    return var && ci_expr_split_linear(sym, index, var, &coef, &rest) &&
           ci_expr_equals_const(coef, 1) &&
           ci_sym_known_multiple_of(sym, rest, ci_expr_const(sym, vector));
}

typedef struct VectorVotes {
    CiSym *sym;
    const CiExpr *var;
    int widest;   /* bytes of the widest element accessed with stride 1 */
    int vector;   /* candidate */
    bool has_any; /* some access works with the candidate */
} VectorVotes;

static void
vote(VectorVotes *votes, const CiBuffer *buffer, const CiExpr *index)
{
    const CiExpr *coef, *rest;
    if (buffer->kind == CI_BUFFER_scalar ||
        !ci_expr_split_linear(votes->sym, index, votes->var, &coef, &rest) ||
        !ci_expr_equals_const(coef, 1))
        return;
    if (ci_dtype_size(buffer->dtype) > votes->widest)
        votes->widest = ci_dtype_size(buffer->dtype);
    votes->has_any |= ci_cuda_is_vector(votes->sym, index, votes->var, votes->vector);
}

static void
vote_stage(VectorVotes *votes, const CiKernel *kernel, const CiStage *stage)
{
    votes->has_any = false;
    for (int n = 0; n < stage->nnests; n++) {
        const CiNest *nest = stage->nests[n];
        for (int k = 0; k < nest->body.nops; k++)
            if (nest->body.ops[k].op == CI_OP_load &&
                !ci_kernel_find_placement(kernel, nest->body.ops[k].buffer))
                vote(votes, nest->body.ops[k].buffer, nest->body.ops[k].index);
        if (!ci_nest_is_fold(nest) && !ci_kernel_find_placement(kernel, nest->target))
            vote(votes, nest->target, nest->store);
    }
}

bool
ci_cuda_has_hazard(const CiStage *stage)
{
    for (int n = 0; n < stage->nnests; n++)
        for (int k = 0; k < stage->nests[n]->body.nops; k++) {
            const CiScalar *op = &stage->nests[n]->body.ops[k];
            for (int m = 0; op->op == CI_OP_load && m < stage->nnests; m++)
                if (stage->nests[m]->target == op->buffer && stage->nests[m]->store != op->index)
                    return true;
        }
    return false;
}

/* Data says where it reads or stores, which no vector reaches. */
static bool
is_indirect(const CiStage *stage)
{
    for (int n = 0; n < stage->nnests; n++)
        for (int k = 0; k < stage->nests[n]->body.nops; k++)
            if (stage->nests[n]->body.ops[k].op == CI_OP_bind)
                return true;
    return false;
}

void
ci_cuda_choose_vector(CiSym *sym, const CiCudaPlan *plan, CiCudaStage *s, const CiExpr *extent,
                      bool may_have_tail)
{
    VectorVotes votes = {.sym = sym, .var = ci_cuda_vector_axis(plan, s), .vector = 1};
    s->vector = 1;
    if (!votes.var || is_indirect(s->stage) || ci_cuda_has_hazard(s->stage))
        return;
    vote_stage(&votes, plan->kernel, s->stage);
    if (!votes.widest)
        return;
    for (votes.vector = 16 / votes.widest; votes.vector > 1; votes.vector /= 2) {
        bool fits = ci_sym_known_multiple_of(sym, extent, ci_expr_const(sym, votes.vector));
        vote_stage(&votes, plan->kernel, s->stage);
        if (!votes.has_any || !(fits || may_have_tail) || extent->high < votes.vector)
            continue;
        s->vector = votes.vector;
        s->has_tail = !fits;
        return;
    }
}
