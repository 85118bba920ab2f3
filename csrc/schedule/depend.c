/* Dependences: who reads and writes what, and whether two accesses meet only within one outer point. */
#include "schedule/plan.h"

CiDraftNest
ci_draft_nest(CiScheduler *s, CiNest *nest)
{
    CiDraftNest draft = {.nest = nest};
    int capacity = 0;
    for (int k = 0; k < nest->body.nops; k++) {
        const CiScalar *op = &nest->body.ops[k];
        if (op->op == CI_OP_load && op->buffer->kind != CI_BUFFER_scalar && !ci_draft_reads(&draft, op->buffer))
            CI_PUSH(s->ctx, draft.reads, draft.nreads, capacity, op->buffer);
    }
    return draft;
}

bool
ci_draft_reads(const CiDraftNest *nest, const CiBuffer *buffer)
{
    for (int k = 0; k < nest->nreads; k++) {
        if (nest->reads[k] == buffer)
            return true;
    }
    return false;
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

const char *
ci_why_not_before(CiScheduler *s, const CiDraft *draft, const CiDraftNest *nest)
{
    const CiBuffer *target = nest->nest->target;
    if (draft->ext) {
        bool conflicts = extern_touches(draft->ext, target) || ci_draft_reads(nest, draft->ext->result);
        return conflicts ? ci_format(s->ctx, "%s must run between them", draft->ext->ext->name) : NULL;
    }
    for (int k = 0; k < draft->nnests; k++) {
        const CiDraftNest *other = &draft->nests[k];
        if (ci_draft_reads(nest, other->nest->target) || ci_draft_reads(other, target) || other->nest->target == target)
            return ci_format(s->ctx, "the kernel of %s must run between them", other->nest->target->name);
    }
    return NULL;
}

bool
ci_shares_data(const CiDraft *draft, const CiDraftNest *nest)
{
    for (int k = 0; k < draft->nnests; k++) {
        const CiDraftNest *other = &draft->nests[k];
        if (ci_draft_reads(nest, other->nest->target) || ci_draft_reads(other, nest->nest->target))
            return true;
        for (int r = 0; r < nest->nreads; r++) {
            if (ci_draft_reads(other, nest->reads[r]))
                return true;
        }
    }
    return false;
}

/* The distance between neighbours along each outer axis must be at least what lies inside it: then different outer
 * points address different elements. Axes are taken from the smallest distance; slow on purpose, outer axes are few. */
static bool
is_injective(CiScheduler *s, const CiKernel *kernel, const CiExpr *const *coefs, int64_t low, int64_t high)
{
    CiSym *sym = s->sym;
    if (low == CI_MINUS_INFINITY || high == CI_INFINITY)
        return kernel->nouter == 0;
    const CiExpr *span = ci_expr_const(sym, high - low + 1);
    bool done[CI_MAX_RANK] = {false};
    for (int round = 0; round < kernel->nouter; round++) {
        int least = -1;
        for (int k = 0; k < kernel->nouter; k++) {
            if (!done[k] && (least < 0 || ci_sym_known_lt(sym, coefs[k], coefs[least])))
                least = k;
        }
        if (!ci_sym_known_le(sym, span, coefs[least]))
            return false;
        const CiExpr *steps = ci_expr_sub(sym, kernel->outer[least].extent, ci_expr_const(sym, 1));
        span = ci_expr_add(sym, span, ci_expr_mul(sym, coefs[least], steps));
        done[least] = true;
    }
    return true;
}

const char *
ci_why_not_local(CiScheduler *s, const CiKernel *kernel, const CiExpr *a, const CiExpr *b)
{
    const CiExpr *coefs[CI_MAX_RANK], *other;
    for (int k = 0; k < kernel->nouter; k++) {
        if (!ci_expr_split_linear(s->sym, a, kernel->outer[k].var, &coefs[k], &a) ||
            !ci_expr_split_linear(s->sym, b, kernel->outer[k].var, &other, &b))
            return "an index is not linear in the outer axes";
        if (coefs[k] != other)
            return "it is read at another outer index";
        if (coefs[k]->high < 0)
            coefs[k] = ci_expr_neg(s->sym, coefs[k]);
    }
    int64_t low = a->low < b->low ? a->low : b->low, high = a->high > b->high ? a->high : b->high;
    if (!is_injective(s, kernel, coefs, low, high))
        return "rows of different outer points are not proved apart";
    return NULL;
}
