/* Kernel ordering: among the orders that dependences allow, the one with the least peak memory.
 *
 * The candidates are the program's own order, depth first (the node that frees most), breadth first
 * (level by level), and locality (the node that reads the latest results). The peak memory of each
 * is estimated; values that will share memory are counted once. A candidate replaces the program's
 * order only if it is better. A kernel that reads nothing comes right before the first that uses its
 * results. Each block of a region is ordered by itself. Nothing moves across a
 * region, a check or a size that data define. Library calls and kernels that store to an argument
 * keep their relative order. */
#include "schedule/in_place.h"

#include "analysis/live_ranges.h"

typedef struct Use {
    int buffer;
    bool is_stored;
} Use;

typedef struct Node {
    const CiKernel *kernel;
    Use *uses; /* buffers that are memory of the program's own, or arguments */
    int nuses, capuses;
    int *after; /* who waits for it */
    int nafter, capafter;
    int nwaits, level;
    bool is_barrier, has_effects;
    CiDonation *donations;
    int ndonations;
} Node;

typedef struct Sequence {
    CiScheduler *s;
    Node *nodes;
    int count;
    int64_t *bytes; /* by buffer: of a temp */
    int *nuses;     /* by buffer */
    int *left;      /* by buffer: uses that are still to come, while an order is made */
    const CiLiveRanges *ranges; /* of the program's order; blocks are the same in any */
    bool *is_live;
} Sequence;

/* ---- who uses what ---- */

typedef struct Adding {
    Sequence *q;
    Node *node;
} Adding;

static void
add_use(void *arg, CiBuffer *buffer, bool is_stored)
{
    Adding *adding = arg;
    Sequence *q = adding->q;
    Node *node = adding->node;
    if (buffer->kind == CI_BUFFER_scalar)
        return;
    for (int k = 0; k < node->nuses; k++) {
        if (node->uses[k].buffer == buffer->id) {
            node->uses[k].is_stored |= is_stored;
            return;
        }
    }
    Use use = {buffer->id, is_stored};
    CI_PUSH(q->s->ctx, node->uses, node->nuses, node->capuses, use);
    q->nuses[buffer->id]++;
    node->has_effects |= is_stored && buffer->kind == CI_BUFFER_input;
}

static void
add_donations(Sequence *q, Node *node)
{
    CiDonation found[CI_MAX_DONATIONS];
    node->ndonations = q->s->options->reuse ? ci_find_donations(q->s, node->kernel, found) : 0;
    node->donations = CI_NEW_ARRAY(q->s->ctx, CiDonation, node->ndonations + 1);
    for (int k = 0; k < node->ndonations; k++)
        node->donations[k] = found[k];
}

static void
find_uses(Sequence *q)
{
    const CiLoops *loops = q->s->loops;
    int block = ci_live_block_of(q->ranges, q->s->kernels);
    for (int k = 0; k < loops->nbuffers; k++) {
        const CiBuffer *buffer = loops->buffers[k]; /* one used outside, too, is there in any order */
        bool is_own = buffer->kind == CI_BUFFER_temp &&
                      ci_block_contains(q->ranges, block, q->ranges->of[k].block);
        q->bytes[k] = is_own ? ci_amount_likely(ci_cost_of_buffer(buffer)) : 0;
    }
    for (int n = 0; n < q->count; n++) {
        Node *node = &q->nodes[n];
        node->kernel = q->s->kernels->kernels[n];
        node->is_barrier = node->kernel->check || node->kernel->region || node->kernel->nchecks;
        node->has_effects = node->kernel->ext != NULL;
        ci_kernel_visit_uses(node->kernel, add_use, &(Adding){q, node});
        add_donations(q, node);
    }
    for (int k = 0; k < loops->nresults; k++)
        q->nuses[loops->results[k].buffer->id]++; /* the caller's, which never ends */
}

/* ---- who waits for whom ---- */

static void
add_edge(Sequence *q, int first, int before, int after)
{
    if (before < first || before == after)
        return;
    Node *node = &q->nodes[before];
    CI_PUSH(q->s->ctx, node->after, node->nafter, node->capafter, after);
    q->nodes[after].nwaits++;
    if (q->nodes[after].level <= node->level)
        q->nodes[after].level = node->level + 1;
}

typedef struct Readers {
    int *list, count, capacity;
} Readers;

/* Adds read-after-write, write-after-read and write-after-write edges. Edges across a barrier are
 * omitted, because nothing moves across it. */
static void
find_edges(Sequence *q)
{
    int nbuffers = q->s->loops->nbuffers, effects = -1, first = 0;
    int *writer = CI_NEW_ARRAY(q->s->ctx, int, nbuffers + 1);
    Readers *readers = CI_NEW_ARRAY(q->s->ctx, Readers, nbuffers + 1);
    for (int k = 0; k < nbuffers; k++)
        writer[k] = -1;
    for (int n = 0; n < q->count; n++) {
        const Node *node = &q->nodes[n];
        for (int k = 0; k < node->nuses; k++) {
            Use use = node->uses[k];
            Readers *of = &readers[use.buffer];
            add_edge(q, first, writer[use.buffer], n);
            for (int r = 0; use.is_stored && r < of->count; r++)
                add_edge(q, first, of->list[r], n);
            if (use.is_stored) {
                writer[use.buffer] = n;
                of->count = 0;
            } else {
                CI_PUSH(q->s->ctx, of->list, of->count, of->capacity, n);
            }
        }
        first = node->is_barrier ? n + 1 : first;
        if (node->has_effects) {
            add_edge(q, first, effects, n);
            effects = n;
        }
    }
}

/* ---- orders ---- */

static void
forget_uses(Sequence *q)
{
    for (int k = 0; k < q->s->loops->nbuffers; k++) {
        q->left[k] = q->nuses[k];
        q->is_live[k] = false;
    }
}

/* Bytes of the node's new buffers that can be stored in buffers whose last use is this node. Each
 * one counts once: pairs of the same `to` are adjacent. */
static int64_t
handed_on(const Sequence *q, const Node *node)
{
    int64_t bytes = 0;
    bool is_given[CI_MAX_DONATIONS] = {false};
    for (int k = 0, to = -1; k < node->ndonations; k++) {
        const CiDonation *pair = &node->donations[k];
        bool is_free = q->left[pair->from->id] == 1 && !q->is_live[pair->to->id] &&
                       q->left[pair->to->id] > 1 && pair->to->id != to;
        for (int j = 0; j < k; j++)
            is_free = is_free && !(is_given[j] && node->donations[j].from == pair->from);
        is_given[k] = is_free;
        to = is_free ? pair->to->id : to;
        bytes += is_free ? q->bytes[pair->to->id] : 0;
    }
    return bytes;
}

/* Bytes that the node allocates; sets *freed to the bytes that it frees. */
static int64_t
taken_by(const Sequence *q, const Node *node, int64_t *freed)
{
    int64_t taken = 0, passed = handed_on(q, node);
    *freed = 0;
    for (int k = 0; k < node->nuses; k++) {
        int buffer = node->uses[k].buffer;
        taken += q->is_live[buffer] ? 0 : q->bytes[buffer];
        *freed += q->left[buffer] == 1 ? q->bytes[buffer] : 0;
    }
    *freed -= passed;
    return taken - passed;
}

static void
run(Sequence *q, const Node *node)
{
    for (int k = 0; k < node->nuses; k++) {
        q->left[node->uses[k].buffer]--;
        q->is_live[node->uses[k].buffer] = true;
    }
}

static int64_t
peak_of(Sequence *q, const int *order)
{
    int64_t live = 0, peak = 0, freed;
    forget_uses(q);
    for (int n = 0; n < q->count; n++) {
        const Node *node = &q->nodes[order[n]];
        live += taken_by(q, node, &freed);
        peak = live > peak ? live : peak;
        live -= freed;
        run(q, node);
    }
    return peak;
}

/* How an order goes on. */
typedef enum Goal { GOAL_least, GOAL_level, GOAL_local, GOAL_COUNT } Goal;

/* Bytes of what the node reads that the one before has stored. */
static int64_t
warm_bytes(const Sequence *q, const Node *node, const Node *before)
{
    int64_t bytes = 0;
    for (int k = 0; before && k < node->nuses; k++)
        for (int j = 0; j < before->nuses; j++)
            if (before->uses[j].is_stored && before->uses[j].buffer == node->uses[k].buffer)
                bytes += q->bytes[node->uses[k].buffer];
    return bytes;
}

/* Chooses among the nodes that wait for no other. The goal decides first: the lowest level, or the node that
 * reads most of what the last one made. Then the least memory that stays allocated decides, then the position. */
static int
choose(const Sequence *q, const int *ready, int nready, Goal goal, const Node *before)
{
    int best = -1;
    int64_t least = 0, least_rank = 0;
    for (int k = 0; k < nready; k++) {
        const Node *node = &q->nodes[ready[k]];
        int64_t freed, left = taken_by(q, node, &freed) - freed;
        int64_t rank = goal == GOAL_level   ? node->level
                       : goal == GOAL_local ? -warm_bytes(q, node, before)
                                            : 0;
        if (best >= 0 && (rank > least_rank || (rank == least_rank && left >= least)))
            continue;
        best = k;
        least = left;
        least_rank = rank;
    }
    return best;
}

/* Orders the nodes from first on, which are a segment without barriers. */
static void
order_segment(Sequence *q, int first, int last, Goal goal, int *order)
{
    int nready = 0, *ready = CI_NEW_ARRAY(q->s->ctx, int, last - first + 1);
    int *waits = CI_NEW_ARRAY(q->s->ctx, int, last - first + 1);
    for (int n = first; n < last; n++) {
        waits[n - first] = q->nodes[n].nwaits;
        if (!waits[n - first])
            ready[nready++] = n;
    }
    for (int at = first; at < last; at++) {
        const Node *before = at > first ? &q->nodes[order[at - 1]] : NULL;
        int best = choose(q, ready, nready, goal, before), node = ready[best];
        for (int k = best; k + 1 < nready; k++)
            ready[k] = ready[k + 1];
        nready--;
        order[at] = node;
        run(q, &q->nodes[node]);
        for (int k = 0; k < q->nodes[node].nafter; k++)
            if (--waits[q->nodes[node].after[k] - first] == 0)
                ready[nready++] = q->nodes[node].after[k];
    }
}

static int *
make_order(Sequence *q, Goal goal)
{
    int *order = CI_NEW_ARRAY(q->s->ctx, int, q->count);
    forget_uses(q);
    for (int first = 0, last; first < q->count; first = last + 1) {
        for (last = first; last < q->count && !q->nodes[last].is_barrier;)
            last++;
        order_segment(q, first, last, goal, order);
        if (last < q->count) {
            order[last] = last;
            run(q, &q->nodes[last]);
        }
    }
    return order;
}

/* Numbers go on as kernels do; those inside regions keep theirs. */
static void
take_order(Sequence *q, const int *order)
{
    CiKernels *kernels = q->s->kernels;
    CiKernel **before = kernels->kernels;
    int *ids = CI_NEW_ARRAY(q->s->ctx, int, q->count);
    kernels->kernels = CI_NEW_ARRAY(q->s->ctx, CiKernel *, q->count);
    for (int n = 0; n < q->count; n++)
        ids[n] = before[n]->id;
    for (int n = 0; n < q->count; n++) {
        CiKernel *kernel = kernels->kernels[n] = before[order[n]];
        kernel->id = ids[n];
        kernel->name = ci_format(q->s->ctx, "k%d", kernel->id);
    }
    kernels->capkernels = q->count;
}

/* True if the node only stores, as one that fills an array with zeros. */
static bool
is_fill(const Node *node)
{
    for (int k = 0; k < node->nuses; k++)
        if (!node->uses[k].is_stored)
            return false;
    return !node->is_barrier && !node->has_effects && node->nwaits == 0 && node->nafter > 0;
}

static bool
is_after(const Node *node, int other)
{
    for (int k = 0; k < node->nafter; k++)
        if (node->after[k] == other)
            return true;
    return false;
}

/* Moves fills down, in their order. True if one has moved. */
static bool
sink_fills(const Sequence *q, int *order)
{
    bool has_moved = false;
    for (int at = q->count - 1; at >= 0; at--) {
        int fill = order[at], to = at + 1;
        if (!is_fill(&q->nodes[fill]))
            continue;
        while (to < q->count && !q->nodes[order[to]].is_barrier && !is_after(&q->nodes[fill], order[to]))
            to++;
        while (to > at + 1 && is_fill(&q->nodes[order[to - 1]]))
            to--;
        has_moved |= to > at + 1;
        for (int k = at; k + 1 < to; k++)
            order[k] = order[k + 1];
        order[to - 1] = fill;
    }
    return has_moved;
}

static void
order_list(CiScheduler *s, const CiLiveRanges *ranges)
{
    int n = s->kernels->nkernels, nbuffers = s->loops->nbuffers;
    if (n < 3 || n > CI_CHOOSE(s, ordered_kernels))
        return;
    Sequence q = {.s = s, .count = n, .ranges = ranges, .nodes = CI_NEW_ARRAY(s->ctx, Node, n)};
    q.bytes = CI_NEW_ARRAY(s->ctx, int64_t, nbuffers + 1);
    q.nuses = CI_NEW_ARRAY(s->ctx, int, nbuffers + 1);
    q.left = CI_NEW_ARRAY(s->ctx, int, nbuffers + 1);
    q.is_live = CI_NEW_ARRAY(s->ctx, bool, nbuffers + 1);
    find_uses(&q);
    int *best = CI_NEW_ARRAY(s->ctx, int, n);
    for (int k = 0; k < n; k++)
        best[k] = k;
    int64_t peak = peak_of(&q, best);
    bool is_better = false;
    if (peak < CI_CHOOSE(s, order_bytes))
        return;
    find_edges(&q);
    for (Goal goal = 0; goal < GOAL_COUNT; goal++) {
        int *order = make_order(&q, goal);
        int64_t own = peak_of(&q, order);
        if (own >= peak)
            continue;
        best = order;
        peak = own;
        is_better = true;
    }
    if (sink_fills(&q, best) || is_better)
        take_order(&q, best);
}

static void
order_lists(CiScheduler *s, const CiLiveRanges *ranges)
{
    for (int d = 0; d < s->nfusions; d++)
        for (int k = 0; k < 2 && !s->fusions[d].is_tree; k++)
            if (s->fusions[d].inner[k])
                order_lists(s->fusions[d].inner[k], ranges);
    order_list(s, ranges);
}

void
ci_order_kernels(CiScheduler *s)
{
    order_lists(s, ci_live_of_kernels(s->kernels));
}
