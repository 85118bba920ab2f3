/* For recordings: moves the allocations of a partition before its first launch and its frees after
 * its last one, so that no memory is requested in between. Parts of pools and reused buffers are
 * only names of addresses and stay where they are. The outermost lines are for memory that lives
 * beyond the partition, the inner ones for memory of the partition only:
 *
 *   allocations for others | own allocations | launches | own frees | frees of others' memory
 *
 * This costs memory if an allocation of the partition could have reused another one; pools have
 * merged most of these. The memory plan counts the additional memory. */
#include "wrapper/partition.h"
#include "wrapper/allocate.h"

enum { OTHERS_ALLOCATED, OWN_ALLOCATED, NOT_MOVED, OWN_FREED, OTHERS_FREED, RANKS };

typedef struct Hoist {
    CiWrapper *w;
    int *root;       /* per buffer: whose allocation it holds, that of a line in a partition; -1 */
    int *partition;  /* per buffer with an allocation: number of its partition; -1 */
    bool *is_own;    /* per buffer with an allocation: it is freed there, too */
    int *moved;      /* per line */
    CiLine *lines;
} Hoist;

static void
find_own(Hoist *h, const CiPartition *of, int number)
{
    for (int i = of->first; i <= of->last; i++) {
        const CiLine *line = &h->w->lines[i];
        if (line->kind == CI_LINE_alloc) {
            h->root[line->buffer->id] = line->buffer->id;
            h->partition[line->buffer->id] = number;
        }
        if (line->kind == CI_LINE_reuse)
            h->root[line->buffer->id] = h->root[line->other->id];
        int root = line->kind == CI_LINE_free ? h->root[line->buffer->id] : -1;
        if (root >= 0)
            h->is_own[root] = h->partition[root] == number && line->at == of->side;
    }
}

static int
rank_of(const Hoist *h, const CiLine *line)
{
    int root = line->buffer ? h->root[line->buffer->id] : -1;
    bool is_own = root >= 0 && h->is_own[root];
    switch (line->kind) {
    case CI_LINE_alloc_result:
        return OTHERS_ALLOCATED;
    case CI_LINE_alloc:
        return is_own ? OWN_ALLOCATED : OTHERS_ALLOCATED;
    case CI_LINE_free:
        return is_own ? OWN_FREED : OTHERS_FREED;
    default:
        return NOT_MOVED;
    }
}

/* Puts the lines of one partition in the new order. A line that moves leaves its source line number
 * to the line after it. */
static void
sort_lines(Hoist *h, CiPartition *of)
{
    int at = of->first, behind = of->last + 1;
    for (int rank = 0; rank < RANKS; rank++) {
        of->own_first = rank == OWN_ALLOCATED ? at : of->own_first;
        for (int i = of->first; i <= of->last; i++)
            if (rank_of(h, &h->w->lines[i]) == rank) {
                h->moved[i] = rank == NOT_MOVED ? at : -1;
                h->lines[at++] = h->w->lines[i];
            }
        of->own_last = rank == OWN_FREED ? at - 1 : of->own_last;
    }
    for (int i = of->last; i >= of->first; i--) {
        h->moved[i] = h->moved[i] < 0 ? behind : h->moved[i];
        behind = h->moved[i];
    }
}

/* Memory whose lines moved is live at all lines that stayed. */
static void
extend_live_ranges(CiWrapper *w, const CiPartition *of)
{
    int first = of->first, last = of->last;
    while (w->lines[first].kind == CI_LINE_alloc || w->lines[first].kind == CI_LINE_alloc_result)
        first++;
    while (w->lines[last].kind == CI_LINE_free)
        last--;
    for (int i = of->first; i <= of->last; i++) {
        if (i >= first && i <= last)
            continue;
        CiLife *life = &w->ranges->of[w->lines[i].buffer->id];
        if (i < first && life->first > first)
            life->first = first;
        if (i > last && life->last < last)
            life->last = last;
    }
}

void
ci_wrapper_hoist(CiWrapper *wrapper)
{
    CiContext *ctx = wrapper->ctx;
    CiPartitions *partitions = ci_partition(wrapper);
    Hoist h = {.w = wrapper};
    h.root = CI_NEW_ARRAY(ctx, int, wrapper->nbuffers + 1);
    h.partition = CI_NEW_ARRAY(ctx, int, wrapper->nbuffers + 1);
    h.is_own = CI_NEW_ARRAY(ctx, bool, wrapper->nbuffers + 1);
    h.lines = CI_NEW_ARRAY(ctx, CiLine, wrapper->nlines + 1);
    h.moved = CI_NEW_ARRAY(ctx, int, wrapper->nlines + 1);
    for (int b = 0; b < wrapper->nbuffers; b++)
        h.root[b] = h.partition[b] = -1;
    for (int i = 0; i < wrapper->nlines; i++) {
        h.lines[i] = wrapper->lines[i];
        h.moved[i] = i;
    }
    for (int k = 0; k < partitions->count; k++) {
        find_own(&h, &partitions->list[k], k);
        sort_lines(&h, &partitions->list[k]);
    }
    ci_live_move(wrapper->ranges, h.moved, wrapper->nlines);
    wrapper->lines = h.lines;
    wrapper->caplines = wrapper->nlines + 1;
    for (int k = 0; k < partitions->count; k++)
        extend_live_ranges(wrapper, &partitions->list[k]);
    wrapper->partitions = partitions;
}
