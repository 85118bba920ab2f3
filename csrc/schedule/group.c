/* Fusion groups: the accesses of a group, and the score of fusing two groups. */
#include "schedule/group.h"

#include "base/text.h"

static void
add_use(CiScheduler *s, CiGroup *group, CiGroupUse use)
{
    int at = group->nuses;
    while (at > 0 && group->uses[at - 1].buffer->id > use.buffer->id)
        at--;
    if (at > 0 && group->uses[at - 1].buffer == use.buffer) {
        CiGroupUse *known = &group->uses[at - 1];
        known->bytes = ci_amount_max(known->bytes, use.bytes);
        known->nreaders += use.nreaders;
        known->nwriters += use.nwriters;
        return;
    }
    CI_PUSH(s->ctx, group->uses, group->nuses, group->capuses, use);
    for (int k = group->nuses - 1; k > at; k--)
        group->uses[k] = group->uses[k - 1];
    group->uses[at] = use;
}

CiGroup
ci_group_of_nest(CiScheduler *s, const CiFusionNest *fusion)
{
    const CiNest *nest = fusion->nest;
    CiGroup group = {0};
    for (const CiScalar *load = NULL; (load = ci_nest_next_load(nest, load));)
        if (load->buffer->kind != CI_BUFFER_scalar)
            add_use(s, &group,
                    (CiGroupUse){.buffer = load->buffer,
                                 .bytes = ci_cost_of_access(nest, load->buffer, load->index),
                                 .nreaders = 1});
    CiAmount stored = ci_cost_of_access(nest, nest->target, nest->store);
    add_use(s, &group, (CiGroupUse){nest->target, stored, nest->is_combined, 1});
    return group;
}

CiGroup
ci_group_join(CiScheduler *s, const CiGroup *a, const CiGroup *b)
{
    CiGroup both = {0};
    for (int i = 0, j = 0; i < a->nuses || j < b->nuses;) {
        bool is_first = j == b->nuses || (i < a->nuses &&
                                          a->uses[i].buffer->id <= b->uses[j].buffer->id);
        add_use(s, &both, is_first ? a->uses[i++] : b->uses[j++]);
    }
    return both;
}

/* True if no other group accesses the buffer, so that it need not be in memory after fusion. */
static bool
is_their_own(const CiScheduler *s, const CiGroupUse *a, const CiGroupUse *b)
{
    int id = a->buffer->id;
    return a->buffer->kind == CI_BUFFER_temp &&
           a->nreaders + b->nreaders == s->totals->nreaders[id] &&
           a->nwriters + b->nwriters == s->totals->nwriters[id];
}

static int64_t
bytes_made(const CiGroup *group)
{
    CiAmount bytes = ci_amount(0);
    for (int k = 0; k < group->nuses; k++)
        if (group->uses[k].nwriters && !group->uses[k].nreaders)
            bytes = ci_amount_plus(bytes, group->uses[k].bytes);
    return ci_amount_likely(bytes);
}

/* Bytes of values that other groups made and whose last reader is this group. */
static int64_t
bytes_ended(const CiScheduler *s, const CiGroup *group)
{
    CiAmount bytes = ci_amount(0);
    for (int k = 0; k < group->nuses; k++) {
        const CiGroupUse *use = &group->uses[k];
        if (use->buffer->kind == CI_BUFFER_temp && !use->nwriters &&
            use->nreaders == s->totals->nreaders[use->buffer->id])
            bytes = ci_amount_plus(bytes, use->bytes);
    }
    return ci_amount_likely(bytes);
}

/* The additional peak memory if both groups run as one. If the later one moves past others, this is
 * all that it makes. Otherwise two numbers are compared: the bytes that the later group makes, and
 * the bytes that end with the earlier group less its own results. The result is the smaller one,
 * less the memory that neither group needs any more (own). */
static int64_t
peak_growth(const CiScheduler *s, const CiGroup *a, const CiGroup *b, bool moves, int64_t own)
{
    int64_t made = bytes_made(b), ended = bytes_ended(s, a) - bytes_made(a);
    if (moves)
        return made;
    int64_t growth = (ended < made ? ended : made) - own;
    return growth > 0 ? growth : 0;
}

int64_t
ci_group_score(const CiScheduler *s, const CiGroup *a, const CiGroup *b, bool moves)
{
    CiAmount saved = ci_amount(CI_CHOOSE(s, launch_bytes)), own = ci_amount(0);
    for (int i = 0, j = 0; i < a->nuses && j < b->nuses;) {
        const CiGroupUse *x = &a->uses[i], *y = &b->uses[j];
        i += x->buffer->id <= y->buffer->id;
        j += y->buffer->id <= x->buffer->id;
        if (x->buffer != y->buffer)
            continue;
        saved = ci_amount_plus(saved, y->bytes);
        if ((x->nwriters || y->nwriters) && is_their_own(s, x, y))
            own = ci_amount_plus(own, x->bytes);
    }
    int64_t likely = ci_amount_likely(ci_amount_plus(saved, own)),
            growth = peak_growth(s, a, b, moves, ci_amount_likely(own));
    return likely > growth ? likely - growth : 0;
}

bool
ci_may_join(const CiScheduler *s)
{
    return s->totals->njoins < s->options->fusion_limit;
}

CiAmount
ci_group_bytes(const CiGroup *group)
{
    CiAmount bytes = ci_amount(0);
    for (int k = 0; k < group->nuses; k++)
        bytes = ci_amount_plus(bytes, group->uses[k].bytes);
    return bytes;
}

bool
ci_note_join(CiScheduler *s, const CiFusion *a, const CiFusion *b, int64_t saved, int64_t bytes)
{
    const CiNest *first = a->nests[a->nnests - 1].nest, *second = b->nests[b->nnests - 1].nest;
    CiJoin join = {.first = first->target->name,
                   .second = second->target->name,
                   .loc = second->nlocs ? second->locs[0] : (CiLoc){.file = ""},
                   .number = ++s->totals->npairs,
                   .saved = saved,
                   .bytes = bytes};
    CiSchedulerTotals *totals = s->totals;
    if (s->options->apart &&
        ci_text_lists(s->options->apart, ci_format(s->ctx, "%d", join.number)))
        return false;
    CI_PUSH(s->ctx, totals->joins, totals->njoins, totals->capjoins, join);
    return true;
}
