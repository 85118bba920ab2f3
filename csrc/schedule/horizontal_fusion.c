/* Horizontal fusion of small independent kernels: one launch whose loops run one after another.
 *
 * A kernel is small if it has point loops only and too little work for a second thread. Nothing is
 * lost by the fusion, and launches are saved. GPU kernels are left alone, because a GPU has threads
 * for all of them. */
#include "schedule/group.h"

static bool
is_plain(const CiNest *nest)
{
    return nest->fold == CI_OP_none && !ci_nest_is_indirect(nest);
}

static bool
is_small(const CiScheduler *s, const CiFusion *fusion)
{
    CiAmount work = ci_amount(0);
    for (int k = 0; k < fusion->nnests; k++) {
        if (!is_plain(fusion->nests[k].nest))
            return false;
        work = ci_amount_plus(work, ci_iterations_of_nest(fusion->nests[k].nest));
    }
    return fusion->nnests && ci_amount_high(work) <= s->machine->chunk_elements;
}

static bool
may_pass(CiScheduler *s, const CiFusion *over, const CiFusion *moved)
{
    for (int k = 0; k < moved->nnests; k++)
        if (over->region || ci_why_not_before(s, over, &moved->nests[k]))
            return false;
    return true;
}

/* True if the memory that is held longer by moving the kernel up costs less than a launch. */
static bool
is_worth_moving(const CiScheduler *s, const CiFusion *moved)
{
    CiAmount bytes = ci_amount(0);
    for (int k = 0; k < moved->nnests; k++)
        bytes = ci_amount_plus(bytes, ci_cost_of_buffer(moved->nests[k].nest->target));
    return ci_amount_high(bytes) <= CI_CHOOSE(s, launch_bytes);
}

/* True if the kernel can be moved up to the one at `to`, past all between them. */
static bool
may_join(CiScheduler *s, const CiFusion *fusions, int to, int from, const CiFusion *moved)
{
    if (from - to > CI_CHOOSE(s, combined_distance) || fusions[to].nests[0].nest->device != moved->nests[0].nest->device ||
        fusions[to].nnests + moved->nnests > CI_CHOOSE(s, combined_nests) ||
        ci_why_too_large(s, &fusions[to], moved) ||
        (from - to > 1 && !is_worth_moving(s, moved)))
        return false;
    for (int over = from - 1; over > to; over--)
        if (!may_pass(s, &fusions[over], moved))
            return false;
    return true;
}

static void
append(CiScheduler *s, CiFusion *to, const CiFusion *from, int part)
{
    to->kernel = NULL;
    for (int k = 0; k < from->nnests; k++) {
        CiFusionNest nest = from->nests[k];
        nest.part = part;
        CI_PUSH(s->ctx, to->nests, to->nnests, to->capnests, nest);
    }
}

void
ci_combine(CiScheduler *s)
{
    int kept = 0, to = -1, nparts = 0;
    if (s->scope || CI_CHOOSE(s, combined_nests) < 2)
        return;
    for (int d = 0; d < s->nfusions; d++) {
        CiFusion fusion = s->fusions[d];
        bool is_candidate = is_small(s, &fusion);
        int64_t saved = CI_CHOOSE(s, launch_bytes);
        if (is_candidate && to >= 0 && ci_may_join(s) &&
            may_join(s, s->fusions, to, kept, &fusion) &&
            ci_note_join(s, &s->fusions[to], &fusion, saved, saved)) {
            append(s, &s->fusions[to], &fusion, ++nparts);
            continue;
        }
        if (is_candidate)
            to = kept;
        s->fusions[kept++] = fusion;
    }
    s->nfusions = kept;
    for (int d = 0; d < kept; d++)
        if (s->fusions[d].nnests && !s->fusions[d].kernel && s->fusions[d].nnests > 1)
            s->fusions[d].kernel =
                ci_plan_combined(s, s->fusions[d].nnests, s->fusions[d].nests);
}
