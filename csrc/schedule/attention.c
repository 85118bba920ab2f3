/* Attention as one kernel: the product that makes scores, the softmax of their rows and the product with values
 * are fused if nothing else reads what is between. The loops of the kernel are a template's. */
#include "analysis/cost.h"
#include "schedule/group.h"

static const CiNest *
product_of(const CiFusion *fusion)
{
    for (int k = 0; k < fusion->nnests; k++)
        if (fusion->nests[k].nest->order.kind == CI_FOLD_fused)
            return fusion->nests[k].nest;
    return NULL;
}

static bool
stores(const CiFusion *fusion, const CiBuffer *buffer)
{
    for (int k = 0; k < fusion->nnests; k++)
        if (fusion->nests[k].nest->target == buffer)
            return true;
    return false;
}

/* The last fusion before a position that stores what a nest of the fusion reads, and has a product, or has
 * none; -1: there is none. */
static int
find_maker(const CiScheduler *s, const CiFusion *reader, int before, bool has_product)
{
    for (int d = before - 1; d >= 0; d--) {
        const CiFusion *fusion = &s->fusions[d];
        if (fusion->region)
            return -1;
        if (!fusion->nnests || (product_of(fusion) != NULL) != has_product)
            continue;
        for (int k = 0; k < reader->nnests; k++)
            for (int r = 0; r < reader->nests[k].nreads; r++)
                if (stores(fusion, reader->nests[k].reads[r]))
                    return d;
    }
    return -1;
}

/* True if all nests between the first and the third may run before both. */
static bool
may_move_down(CiScheduler *s, int first, int second, int third)
{
    for (int d = first + 1; d < third; d++) {
        const CiFusion *over = &s->fusions[d];
        if (d == second)
            continue;
        if (!over->nnests)
            return false;
        for (int k = 0; k < over->nnests; k++)
            if (ci_why_not_before(s, &s->fusions[first], &over->nests[k]) ||
                (d > second && ci_why_not_before(s, &s->fusions[second], &over->nests[k])))
                return false;
    }
    return true;
}

/* Nests of the three in the order of the program. */
static CiFusion
join(CiScheduler *s, const int *parts)
{
    CiFusion all = {0};
    int at[3] = {0};
    for (;;) {
        int next = -1;
        for (int p = 0; p < 3; p++) {
            const CiFusion *part = &s->fusions[parts[p]];
            if (at[p] < part->nnests &&
                (next < 0 || part->nests[at[p]].position < s->fusions[parts[next]].nests[at[next]].position))
                next = p;
        }
        if (next < 0)
            return all;
        CI_PUSH(s->ctx, all.nests, all.nnests, all.capnests, s->fusions[parts[next]].nests[at[next]++]);
    }
}

static bool
is_private(const CiScheduler *s, const CiFusion *all, const CiNest *nest)
{
    int id = nest->target->id, readers = 0;
    for (int k = 0; k < all->nnests; k++)
        readers += ci_nest_loads(all->nests[k].nest, nest->target);
    return nest->target->kind == CI_BUFFER_temp && s->totals->nwriters[id] == 1 && s->totals->nreaders[id] == readers;
}

/* The kernel of all three, if it is an attention and the rest of the program reads only its result. */
static bool
plan(CiScheduler *s, const int *parts, CiFusion *all)
{
    const char *why = NULL;
    CiAttention a;
    *all = join(s, parts);
    if (!ci_may_join(s) || !ci_plan_joined(s, &s->fusions[parts[0]], all, &why) ||
        !ci_template_attention.fits(s->sym, s->machine, all->kernel))
        return false;
    (void)ci_kernel_why_no_attention(s->sym, all->kernel, &a);
    const CiNest *between[] = {a.scores, a.elements ? a.elements : a.scores, a.top, a.weights, a.sum,
                               a.quotients ? a.quotients : a.product};
    for (size_t k = 0; k < sizeof between / sizeof *between; k++)
        if (!is_private(s, all, between[k]))
            return false;
    int64_t bytes = ci_amount_likely(ci_cost_of_access(a.weights, a.weights->target, a.weights->store));
    return ci_note_join(s, &s->fusions[parts[0]], &s->fusions[parts[1]], bytes, bytes) &&
           ci_note_join(s, &s->fusions[parts[1]], &s->fusions[parts[2]], bytes, bytes);
}

static void
remove_fusion(CiScheduler *s, int number)
{
    for (int d = number; d + 1 < s->nfusions; d++)
        s->fusions[d] = s->fusions[d + 1];
    s->nfusions--;
}

void
ci_fuse_attention(CiScheduler *s)
{
    if (!s->machine->has_templates)
        return;
    for (int third = 2; third < s->nfusions; third++) {
        CiFusion all;
        if (!product_of(&s->fusions[third]))
            continue;
        int second = find_maker(s, &s->fusions[third], third, false),
            first = second < 0 ? -1 : find_maker(s, &s->fusions[second], second, true);
        const int parts[] = {first, second, third};
        if (first < 0 || !may_move_down(s, first, second, third) || !plan(s, parts, &all))
            continue;
        s->fusions[third] = all;
        remove_fusion(s, second);
        remove_fusion(s, first);
        third -= 2;
    }
}
