/* For a recorder: what a partition allocates is allocated before its first launch, and what it frees is
 * freed behind its last one, so that between the two nobody is asked for memory. Parts of pools and what is
 * taken over are only names of addresses; they stay. Outermost is memory that others have had or will
 * have, inside of it what is the partition's own:
 *
 *   allocations for others | own allocations | launches | own frees | frees of others' memory
 *
 * It costs memory where one allocation of a partition would have begun when another one had ended: pools
 * have made one of most such. The plan counts what is held then. */
#include "wrapper/partition.h"
#include "wrapper/place.h"

enum { OTHERS_BORN, OWN_BORN, STAYS, OWN_DEAD, OTHERS_DEAD, RANKS };

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
        return OTHERS_BORN;
    case CI_LINE_alloc:
        return is_own ? OWN_BORN : OTHERS_BORN;
    case CI_LINE_free:
        return is_own ? OWN_DEAD : OTHERS_DEAD;
    default:
        return STAYS;
    }
}

/* The lines of one partition in the new order; what moves leaves its number to the line behind it. */
static void
sort_lines(Hoist *h, CiPartition *of)
{
    int at = of->first, behind = of->last + 1;
    for (int rank = 0; rank < RANKS; rank++) {
        of->own_first = rank == OWN_BORN ? at : of->own_first;
        for (int i = of->first; i <= of->last; i++)
            if (rank_of(h, &h->w->lines[i]) == rank) {
                h->moved[i] = rank == STAYS ? at : -1;
                h->lines[at++] = h->w->lines[i];
            }
        of->own_last = rank == OWN_DEAD ? at - 1 : of->own_last;
    }
    for (int i = of->last; i >= of->first; i--) {
        h->moved[i] = h->moved[i] < 0 ? behind : h->moved[i];
        behind = h->moved[i];
    }
}

/* What moved is held by all lines that stayed. */
static void
extend_lives(CiWrapper *w, const CiPartition *of)
{
    int first = of->first, last = of->last;
    while (w->lines[first].kind == CI_LINE_alloc || w->lines[first].kind == CI_LINE_alloc_result)
        first++;
    while (w->lines[last].kind == CI_LINE_free)
        last--;
    for (int i = of->first; i <= of->last; i++) {
        if (i >= first && i <= last)
            continue;
        CiLife *life = &w->lives->of[w->lines[i].buffer->id];
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
    ci_lives_move(wrapper->lives, h.moved, wrapper->nlines);
    wrapper->lines = h.lines;
    wrapper->caplines = wrapper->nlines + 1;
    for (int k = 0; k < partitions->count; k++)
        extend_lives(wrapper, &partitions->list[k]);
    wrapper->partitions = partitions;
}
