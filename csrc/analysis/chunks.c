/* Which kernels run their first stage in chunks, and how long a chunk is: long reductions, scans and compressions of
 * few points. */
#include "analysis/labels.h"
#include "base/map.h"

static bool
is_read(const CiStage *stage, const CiBuffer *buffer)
{
    for (int n = 0; n < stage->nnests; n++) {
        const CiBody *body = &stage->nests[n]->body;
        for (int k = 0; k < body->nops; k++)
            if (body->ops[k].buffer == buffer)
                return true;
    }
    return false;
}

/* One loop that scans or packs, whose chunks need of those before them what these add. */
static bool
can_split_running(const CiMachine *machine, const CiKernel *kernel)
{
    const CiStage *stage = &kernel->stages[0];
    bool is_split = machine->splits_running || machine->chains_running;
    if (!is_split || kernel->nouter || kernel->nstages != 1 || stage->naxes != 1)
        return false;
    for (int n = 0; n < stage->nnests; n++) {
        const CiNest *nest = stage->nests[n];
        bool is_pack = nest->body.ops[nest->body.result].op == CI_OP_pack,
             is_scan = ci_nest_is_scan(nest);
        if ((ci_nest_is_fold(nest) && !is_scan) || (ci_nest_is_serial(nest) && !is_pack) ||
            is_read(stage, nest->target))
            return false;
        if (is_scan && !machine->has_own_order &&
            !ci_dtype_is_integral(nest->body.ops[nest->body.result].dtype))
            return false;
    }
    return ci_kernel_runs(kernel);
}

/* A pairwise fold in subtrees of its only block, in that block's chunks, or in its blocks where
 * these are long. */
static bool
can_split_order(const CiMachine *machine, const CiNest *nest)
{
    int nouter = nest->naxes - nest->npoint - nest->order.ninner;
    if (nest->order.kind == CI_FOLD_fused)
        return false;
    if (nest->order.kind != CI_FOLD_pairwise ||
        ci_op_is_order_free(nest->fold, nest->target->dtype))
        return true;
    if (!nouter)
        return true;
    const CiAxis *last = &nest->axes[nest->naxes - 1];
    return nest->order.ninner == 1 && !nest->order.chunk && last->extent->low >= ci_choice(machine, CI_CHOICE_long_block);
}

bool
ci_can_split(const CiMachine *machine, const CiKernel *kernel)
{
    bool has_fold = false;
    if (kernel->nstages && can_split_running(machine, kernel))
        return true;
    if (kernel->nstages == 0 || kernel->stages[0].naxes == 0)
        return false;
    for (int t = 1; t < kernel->nstages; t++) {
        if (kernel->stages[t].naxes)
            return false;
    }
    for (int n = 0; n < kernel->stages[0].nnests; n++) {
        const CiNest *nest = kernel->stages[0].nests[n];
        if (ci_nest_is_serial(nest))
            return false;
        if (nest->fold == CI_OP_none)
            continue;
        if (ci_op_kind(nest->fold) == CI_OPKIND_scan ||
            nest->naxes - nest->npoint != kernel->stages[0].naxes || !can_split_order(machine, nest))
            return false;
        has_fold = true;
    }
    return has_fold;
}

/* Elements of the fold's domain per chunk: a power of two times the largest block of its folds. */
static int64_t
split_length(const CiLabeller *l, int64_t tile)
{
    const CiStage *stage = &l->kernel->stages[0];
    int64_t block = CI_BLOCK_CHAIN;
    for (int n = 0; n < stage->nnests; n++) {
        const CiNest *nest = stage->nests[n];
        int64_t own = CI_BLOCK_CHAIN *
                      (nest->order.kind == CI_FOLD_lanes ? ci_lane_count(nest->target->dtype) : 1);
        if (nest->fold != CI_OP_none && own > block)
            block = own;
    }
    while (block * tile < CI_CHOOSE(l, split_elements))
        block *= 2;
    return block;
}

/* Marks the operations of a scan or compress that compute what an element adds: of a compress its mask alone. */
static bool *
find_needed(CiContext *ctx, const CiNest *nest)
{
    const CiBody *body = &nest->body;
    bool *is_needed = CI_NEW_ARRAY(ctx, bool, body->nops + 1);
    const CiScalar *result = &body->ops[body->result];
    bool is_pack = result->op == CI_OP_pack;
    is_needed[is_pack ? result->args[1] : body->result] = is_pack || ci_nest_is_scan(nest);
    for (int k = body->nops - 1; k >= 0; k--)
        for (int a = 0; a < body->ops[k].nargs && is_needed[k]; a++)
            is_needed[body->ops[k].args[a]] = true;
    return is_needed;
}

static bool
reads_along(const CiNest *nest, const CiScalar *op)
{
    return op->op == CI_OP_load && (op->nargs > 0 || ci_expr_depends_on(op->index, nest->axes[nest->naxes - 1].var));
}

/* Bytes that a loop accesses per element. */
typedef struct ElementBytes {
    int64_t total, all; /* read to compute totals; read and stored to run the loop */
} ElementBytes;

static ElementBytes
count_bytes(CiContext *ctx, const CiStage *stage)
{
    enum { ALL = 1, TOTAL };
    CiMap *seen = ci_map_new(ctx); /* buffer -> TOTAL if it is counted in both, ALL if in one */
    ElementBytes bytes = {0, 0};
    for (int n = 0; n < stage->nnests; n++) {
        const CiNest *nest = stage->nests[n];
        const bool *is_needed = find_needed(ctx, nest);
        bytes.all += ci_dtype_size(nest->target->dtype);
        for (int k = 0; k < nest->body.nops; k++) {
            CiBuffer *buffer = nest->body.ops[k].buffer;
            if (!reads_along(nest, &nest->body.ops[k]))
                continue;
            intptr_t before = (intptr_t)ci_map_find(seen, CI_KEY(buffer)), now = is_needed[k] ? TOTAL : ALL;
            bytes.all += before ? 0 : ci_dtype_size(buffer->dtype);
            bytes.total += now == TOTAL && before != TOTAL ? ci_dtype_size(buffer->dtype) : 0;
            if (before < now)
                ci_map_put(seen, CI_KEY(buffer), (void *)now);
        }
    }
    return bytes;
}

/* Elements of a chunk that stays in cache while it is read a second time: a power of two. */
static int64_t
chain_length(const CiLabeller *l)
{
    int64_t length = CI_CHOOSE(l, chain_chunk), bytes = count_bytes(l->ctx, &l->kernel->stages[0]).total;
    while (2 * length * bytes <= CI_CHOOSE(l, chain_bytes) &&
           2 * length <= CI_CHOOSE(l, split_elements))
        length *= 2;
    return length;
}

/* True if the loop only compresses, and computing totals is so cheap that each chunk computes its own first. */
static bool
is_total_first(const CiLabeller *l)
{
    const CiStage *stage = &l->kernel->stages[0];
    for (int n = 0; n < stage->nnests; n++)
        if (ci_nest_is_scan(stage->nests[n]))
            return false;
    ElementBytes bytes = count_bytes(l->ctx, stage);
    return CI_CHOOSE(l, chain_byte_ratio) * bytes.total <= bytes.all;
}

/* Elements of a chunk, of a loop that runs or of a fold. */
static int64_t
part_length(const CiLabeller *l, int64_t tile)
{
    return l->labels->is_chained ? chain_length(l) : split_length(l, tile);
}

/* The nest whose order is told; NULL: all are free. */
static const CiNest *
find_pairwise(const CiKernel *kernel)
{
    for (int n = 0; n < kernel->stages[0].nnests; n++) {
        const CiNest *nest = kernel->stages[0].nests[n];
        if (nest->fold != CI_OP_none && nest->order.kind == CI_FOLD_pairwise &&
            !ci_op_is_order_free(nest->fold, nest->target->dtype))
            return nest;
    }
    return NULL;
}

/* A kernel that packs has at least one chunk, which says how much was packed. */
static bool
counts(const CiKernel *kernel)
{
    for (int n = 0; n < kernel->stages[0].nnests; n++)
        if (ci_nest_count(kernel->stages[0].nests[n]))
            return true;
    return false;
}

static const CiExpr *
choose_chunk(const CiLabeller *l, const CiNest *pairwise, int64_t tile)
{
    if (!pairwise)
        return ci_expr_const(l->sym, part_length(l, tile));
    bool has_outer = pairwise->naxes - pairwise->npoint > pairwise->order.ninner;
    return has_outer ? pairwise->axes[pairwise->naxes - 1].extent : pairwise->order.chunk;
}

static int64_t
count_subtrees(const CiLabeller *l, const CiExpr *length)
{
    int64_t count = CI_CHOOSE(l, most_subtrees);
    while (count > 2 && length->high / count < CI_CHOOSE(l, least_subtree))
        count /= 2;
    return count;
}

void
ci_label_chunks(CiLabeller *l, const CiExpr *length, int64_t tile)
{
    CiLabels *labels = l->labels;
    labels->is_chained = l->machine->chains_running && ci_kernel_runs(l->kernel);
    if (length->high <= 2 * part_length(l, tile)) {
        labels->is_chained = false;
        return;
    }
    labels->chunk = choose_chunk(l, find_pairwise(l->kernel), tile);
    if (labels->chunk) {
        const CiExpr *chunks = ci_expr_ceildiv(l->sym, length, labels->chunk);
        labels->chunks = counts(l->kernel) ? ci_expr_max(l->sym, chunks, ci_expr_const(l->sym, 1)) : chunks;
    } else {
        labels->chunks = ci_expr_const(l->sym, count_subtrees(l, length));
    }
    labels->totals_first = labels->is_chained && is_total_first(l);
    const CiExpr *chunk = labels->chunk ? labels->chunk : ci_expr_ceildiv(l->sym, length, labels->chunks);
    labels->unit_work = ci_expr_mul(l->sym, chunk, ci_expr_const(l->sym, tile));
}
