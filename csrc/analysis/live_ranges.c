/* Computes live ranges: from steps, blocks of steps and uses, the innermost block of each buffer with its first
 * and its last use. */
#include "analysis/live_ranges.h"

/* ---- making ---- */

void
ci_live_add_buffer(CiLiveRanges *ranges, CiLife life)
{
    CI_PUSH(ranges->ctx, ranges->of, ranges->nbuffers, ranges->capbuffers, life);
}

CiLiveRanges *
ci_live_new(CiContext *ctx, int nbuffers)
{
    CiLiveRanges *ranges = CI_NEW(ctx, CiLiveRanges);
    ranges->ctx = ctx;
    ranges->lists = ci_map_new(ctx);
    for (int b = 0; b < nbuffers; b++)
        ci_live_add_buffer(ranges, (CiLife){-1, -1, -1});
    CI_PUSH(ctx, ranges->blocks, ranges->nblocks, ranges->capblocks,
            ((CiLivesBlock){.parent = -1, .open = -1, .close = -1, .sibling = -1}));
    return ranges;
}

int
ci_live_add_step(CiLiveRanges *ranges)
{
    CI_PUSH(ranges->ctx, ranges->block_of, ranges->nsteps, ranges->capsteps, ranges->block);
    return ranges->nsteps - 1;
}

static void
add_block(CiLiveRanges *ranges, CiLivesBlock block)
{
    CI_PUSH(ranges->ctx, ranges->blocks, ranges->nblocks, ranges->capblocks, block);
    ranges->block = ranges->nblocks - 1;
}

void
ci_live_open(CiLiveRanges *ranges, bool is_loop, bool is_parallel)
{
    add_block(ranges, (CiLivesBlock){.parent = ranges->block,
                               .open = ranges->nsteps - 1,
                               .close = -1,
                               .sibling = -1,
                               .is_loop = is_loop,
                               .is_parallel = is_parallel});
}

/* The step is of the block around. */
static CiLivesBlock
leave_block(CiLiveRanges *ranges)
{
    CiLivesBlock block = ranges->blocks[ranges->block];
    CI_REQUIRE(ranges->ctx, block.parent >= 0);
    ranges->block = ranges->block_of[ranges->nsteps - 1] = block.parent;
    return block;
}

void
ci_live_iteration(CiLiveRanges *ranges)
{
    int before = ranges->block;
    CiLivesBlock block = leave_block(ranges);
    block.sibling = before;
    add_block(ranges, block);
}

/* Closes the bodies of the region, all of which end where the last one does. */
void
ci_live_close(CiLiveRanges *ranges)
{
    int block = ranges->block;
    leave_block(ranges);
    for (; block >= 0; block = ranges->blocks[block].sibling)
        ranges->blocks[block].close = ranges->nsteps - 1;
}

void
ci_live_use(CiLiveRanges *ranges, int buffer)
{
    CiLivesUse use = {buffer, ranges->nsteps - 1};
    CI_PUSH(ranges->ctx, ranges->uses, ranges->nuses, ranges->capuses, use);
}

bool
ci_block_contains(const CiLiveRanges *ranges, int outer, int block)
{
    while (block > outer)
        block = ranges->blocks[block].parent;
    return block == outer; /* parents come before their children */
}

bool
ci_live_is_of_iterations(const CiLiveRanges *ranges, int block)
{
    for (; block > 0; block = ranges->blocks[block].parent)
        if (ranges->blocks[block].is_parallel)
            return true;
    return false;
}

void
ci_live_find_blocks(CiLiveRanges *ranges)
{
    for (int k = 0; k < ranges->nuses; k++) {
        CiLife *life = &ranges->of[ranges->uses[k].buffer];
        int block = ranges->block_of[ranges->uses[k].step];
        if (life->block < 0)
            life->block = block;
        while (!ci_block_contains(ranges, life->block, block))
            life->block = ranges->blocks[life->block].parent;
    }
}

/* The condition of a region is live until the region ends. */
static int
end_of_step(const int *close, int step)
{
    return close[step] >= 0 ? close[step] : step;
}

void
ci_live_find_ranges(CiLiveRanges *ranges)
{
    int *close = CI_NEW_ARRAY(ranges->ctx, int, ranges->nsteps + 1);
    for (int step = 0; step < ranges->nsteps; step++)
        close[step] = -1;
    for (int b = 1; b < ranges->nblocks; b++)
        close[ranges->blocks[b].open] = ranges->blocks[b].close;
    for (int k = 0; k < ranges->nuses; k++) {
        CiLife *life = &ranges->of[ranges->uses[k].buffer];
        int first = ranges->uses[k].step, last = end_of_step(close, first);
        for (int at = ranges->block_of[first]; at != life->block; at = ranges->blocks[at].parent) {
            first = ranges->blocks[at].open;
            last = ranges->blocks[at].close;
        }
        life->first = life->first < 0 || first < life->first ? first : life->first;
        life->last = last > life->last ? last : life->last;
    }
}

/* ---- programs of kernels ---- */

static void
note_use(void *arg, CiBuffer *buffer, bool is_stored)
{
    (void)is_stored;
    ci_live_use(arg, buffer->id);
}

static void
add_kernel_step(CiLiveRanges *ranges, CiKernel *kernel)
{
    int count = ci_live_add_step(ranges);
    CI_PUSH(ranges->ctx, ranges->kernels, count, ranges->capkernels, kernel);
}

static void add_list(CiLiveRanges *ranges, const CiKernels *list);

/* The condition of a `while` is a body of its own; what a region tests and swaps is used outside. */
static void
add_region(CiLiveRanges *ranges, CiKernel *kernel)
{
    CiKernel own = *kernel;
    own.inner[0] = own.inner[1] = NULL;
    ci_kernel_visit_uses(&own, note_use, ranges);
    ci_live_open(ranges, kernel->region->kind != CI_ITEM_if, kernel->region->is_parallel);
    for (int k = 0; k < 2; k++) {
        if (k) {
            add_kernel_step(ranges, kernel);
            ci_live_iteration(ranges);
        }
        if (kernel->inner[k])
            add_list(ranges, kernel->inner[k]);
    }
    add_kernel_step(ranges, kernel);
    ci_live_close(ranges);
}

static void
add_list(CiLiveRanges *ranges, const CiKernels *list)
{
    ci_map_put(ranges->lists, CI_KEY(list), (void *)((intptr_t)ranges->block + 1));
    for (int k = 0; k < list->nkernels; k++) {
        CiKernel *kernel = list->kernels[k];
        add_kernel_step(ranges, kernel);
        ci_map_put(ranges->lists, CI_KEY(kernel), (void *)((intptr_t)ranges->nsteps));
        if (kernel->region)
            add_region(ranges, kernel);
        else
            ci_kernel_visit_uses(kernel, note_use, ranges);
    }
}

CiLiveRanges *
ci_live_of_kernels(const CiKernels *kernels)
{
    const CiLoops *loops = kernels->loops;
    CiLiveRanges *ranges = ci_live_new(loops->ctx, loops->nbuffers);
    add_list(ranges, kernels);
    add_kernel_step(ranges, NULL);
    for (int k = 0; k < loops->nresults; k++)
        ci_live_use(ranges, loops->results[k].buffer->id);
    ci_live_find_blocks(ranges);
    ci_live_find_ranges(ranges);
    return ranges;
}

int
ci_live_block_of(const CiLiveRanges *ranges, const CiKernels *list)
{
    return (int)(intptr_t)ci_map_find(ranges->lists, CI_KEY(list)) - 1;
}

int
ci_live_step_of(const CiLiveRanges *ranges, const CiKernel *kernel)
{
    return (int)(intptr_t)ci_map_find(ranges->lists, CI_KEY(kernel)) - 1;
}

/* ---- changing ---- */

void
ci_live_move(CiLiveRanges *ranges, const int *moved, int count)
{
    int *block_of = CI_NEW_ARRAY(ranges->ctx, int, count + 1);
    for (int step = 0, at = 0; step < ranges->nsteps; step++) {
        int own = ranges->block_of[step], before = step ? ranges->block_of[step - 1] : own;
        int between = ci_block_contains(ranges, own, before) ? before : own;
        for (; at < moved[step]; at++)
            block_of[at] = between;
        block_of[moved[step]] = own;
        at = moved[step] + 1;
    }
    for (int b = 1; b < ranges->nblocks; b++) {
        ranges->blocks[b].open = moved[ranges->blocks[b].open];
        ranges->blocks[b].close = moved[ranges->blocks[b].close];
    }
    for (int b = 0; b < ranges->nbuffers; b++) {
        CiLife *life = &ranges->of[b];
        if (life->block >= 0)
            *life = (CiLife){life->block, moved[life->first], moved[life->last]};
    }
    ranges->block_of = block_of;
    ranges->nsteps = ranges->capsteps = count;
}
