/* Which nests run together: each nest, in program order, joins the latest kernel that shares data
 * with it, may take it, and before whose successors it may run. Nothing moves across a region.
 * Every refusal between two that share data is kept with its reason. */
#include "schedule/plan.h"

/* Kernels looked back over: enough for chains that interleave, and it keeps the whole pass linear.
 */
#define CI_FUSE_WINDOW 8
#define CI_MAX_REFUSALS 200

static void
refuse(CiScheduler *s, const CiDraft *draft, const CiDraftNest *nest, const char *why)
{
    CiKernels *kernels = s->kernels;
    if (kernels->nrefusals == CI_MAX_REFUSALS)
        return;
    const char *text = ci_format(s->ctx, "%s and %s stay apart: %s",
                                 draft->nests[draft->nnests - 1].nest->target->name,
                                 nest->nest->target->name, why);
    CI_PUSH(s->ctx, kernels->refusals, kernels->nrefusals, kernels->caprefusals, text);
}

static bool
try_join(CiScheduler *s, CiDraft *draft, const CiDraftNest *nest)
{
    const char *why = NULL;
    int count = draft->nnests;
    if (count + 1 > s->target->max_fused_nests) {
        refuse(s, draft, nest, "the kernel is full");
        return false;
    }
    CI_PUSH(s->ctx, draft->nests, draft->nnests, draft->capnests, *nest);
    CiKernel *kernel = ci_plan_kernel(s, count + 1, draft->nests, &why);
    if (!kernel) {
        draft->nnests = count;
        refuse(s, draft, nest, why);
        return false;
    }
    draft->kernel = kernel;
    return true;
}

static bool
join_earlier(CiScheduler *s, CiDraft *drafts, int ndrafts, const CiDraftNest *nest)
{
    for (int k = ndrafts - 1; k >= 0 && k >= ndrafts - CI_FUSE_WINDOW; k--) {
        CiDraft *draft = &drafts[k];
        if (draft->region)
            return false;
        if (!draft->ext && !draft->check && ci_shares_data(draft, nest) && try_join(s, draft, nest))
            return true;
        const char *why = ci_why_not_before(s, draft, nest);
        if (why)
            return false;
    }
    return false;
}

void
ci_fuse(CiScheduler *s)
{
    int kept = 0;
    for (int k = 0; k < s->ndrafts; k++) {
        CiDraft draft = s->drafts[k];
        if (draft.nnests && join_earlier(s, s->drafts, kept, &draft.nests[0]))
            continue;
        s->drafts[kept++] = draft;
    }
    s->ndrafts = kept;
}
