/* Computes live ranges: from steps, blocks of steps and uses, the innermost block of each buffer with its first
 * and its last use. */
#include "analysis/live_ranges.h"

/* ---- making ---- */

void
ci_lives_add_buffer(CiLives *lives, CiLife life)
{
    CI_PUSH(lives->ctx, lives->of, lives->nbuffers, lives->capbuffers, life);
}

CiLives *
ci_lives_new(CiContext *ctx, int nbuffers)
{
    CiLives *lives = CI_NEW(ctx, CiLives);
    lives->ctx = ctx;
    lives->lists = ci_map_new(ctx);
    for (int b = 0; b < nbuffers; b++)
        ci_lives_add_buffer(lives, (CiLife){-1, -1, -1});
    CI_PUSH(ctx, lives->blocks, lives->nblocks, lives->capblocks,
            ((CiLivesBlock){.parent = -1, .open = -1, .close = -1, .sibling = -1}));
    return lives;
}

int
ci_lives_add_step(CiLives *lives)
{
    CI_PUSH(lives->ctx, lives->block_of, lives->nsteps, lives->capsteps, lives->block);
    return lives->nsteps - 1;
}

static void
add_block(CiLives *lives, CiLivesBlock block)
{
    CI_PUSH(lives->ctx, lives->blocks, lives->nblocks, lives->capblocks, block);
    lives->block = lives->nblocks - 1;
}

void
ci_lives_open(CiLives *lives, bool is_loop, bool is_parallel)
{
    add_block(lives, (CiLivesBlock){.parent = lives->block,
                               .open = lives->nsteps - 1,
                               .close = -1,
                               .sibling = -1,
                               .is_loop = is_loop,
                               .is_parallel = is_parallel});
}

/* The step is of the block around. */
static CiLivesBlock
leave_block(CiLives *lives)
{
    CiLivesBlock block = lives->blocks[lives->block];
    CI_REQUIRE(lives->ctx, block.parent >= 0);
    lives->block = lives->block_of[lives->nsteps - 1] = block.parent;
    return block;
}

void
ci_lives_turn(CiLives *lives)
{
    int before = lives->block;
    CiLivesBlock block = leave_block(lives);
    block.sibling = before;
    add_block(lives, block);
}

/* All bodies of the region end where the last does. */
void
ci_lives_close(CiLives *lives)
{
    int block = lives->block;
    leave_block(lives);
    for (; block >= 0; block = lives->blocks[block].sibling)
        lives->blocks[block].close = lives->nsteps - 1;
}

void
ci_lives_use(CiLives *lives, int buffer)
{
    CiLivesUse use = {buffer, lives->nsteps - 1};
    CI_PUSH(lives->ctx, lives->uses, lives->nuses, lives->capuses, use);
}

bool
ci_block_contains(const CiLives *lives, int outer, int block)
{
    while (block > outer)
        block = lives->blocks[block].parent;
    return block == outer; /* parents come before their children */
}

bool
ci_lives_is_of_turns(const CiLives *lives, int block)
{
    for (; block > 0; block = lives->blocks[block].parent)
        if (lives->blocks[block].is_parallel)
            return true;
    return false;
}

void
ci_lives_find_blocks(CiLives *lives)
{
    for (int k = 0; k < lives->nuses; k++) {
        CiLife *life = &lives->of[lives->uses[k].buffer];
        int block = lives->block_of[lives->uses[k].step];
        if (life->block < 0)
            life->block = block;
        while (!ci_block_contains(lives, life->block, block))
            life->block = lives->blocks[life->block].parent;
    }
}

/* The condition of a region is live until the region ends. */
static int
end_of_step(const int *close, int step)
{
    return close[step] >= 0 ? close[step] : step;
}

void
ci_lives_find_ranges(CiLives *lives)
{
    int *close = CI_NEW_ARRAY(lives->ctx, int, lives->nsteps + 1);
    for (int step = 0; step < lives->nsteps; step++)
        close[step] = -1;
    for (int b = 1; b < lives->nblocks; b++)
        close[lives->blocks[b].open] = lives->blocks[b].close;
    for (int k = 0; k < lives->nuses; k++) {
        CiLife *life = &lives->of[lives->uses[k].buffer];
        int first = lives->uses[k].step, last = end_of_step(close, first);
        for (int at = lives->block_of[first]; at != life->block; at = lives->blocks[at].parent) {
            first = lives->blocks[at].open;
            last = lives->blocks[at].close;
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
    ci_lives_use(arg, buffer->id);
}

static void
add_kernel_step(CiLives *lives, CiKernel *kernel)
{
    int count = ci_lives_add_step(lives);
    CI_PUSH(lives->ctx, lives->kernels, count, lives->capkernels, kernel);
}

static void add_list(CiLives *lives, const CiKernels *list);

/* The condition of a `while` is a body of its own; what a region tests and swaps is used outside. */
static void
add_region(CiLives *lives, CiKernel *kernel)
{
    CiKernel own = *kernel;
    own.inner[0] = own.inner[1] = NULL;
    ci_kernel_visit_uses(&own, note_use, lives);
    ci_lives_open(lives, kernel->region->kind != CI_ITEM_if, kernel->region->is_parallel);
    for (int k = 0; k < 2; k++) {
        if (k) {
            add_kernel_step(lives, kernel);
            ci_lives_turn(lives);
        }
        if (kernel->inner[k])
            add_list(lives, kernel->inner[k]);
    }
    add_kernel_step(lives, kernel);
    ci_lives_close(lives);
}

static void
add_list(CiLives *lives, const CiKernels *list)
{
    ci_map_put(lives->lists, CI_KEY(list), (void *)((intptr_t)lives->block + 1));
    for (int k = 0; k < list->nkernels; k++) {
        CiKernel *kernel = list->kernels[k];
        add_kernel_step(lives, kernel);
        ci_map_put(lives->lists, CI_KEY(kernel), (void *)((intptr_t)lives->nsteps));
        if (kernel->region)
            add_region(lives, kernel);
        else
            ci_kernel_visit_uses(kernel, note_use, lives);
    }
}

CiLives *
ci_lives_of_kernels(const CiKernels *kernels)
{
    const CiLoops *loops = kernels->loops;
    CiLives *lives = ci_lives_new(loops->ctx, loops->nbuffers);
    add_list(lives, kernels);
    add_kernel_step(lives, NULL);
    for (int k = 0; k < loops->nresults; k++)
        ci_lives_use(lives, loops->results[k].buffer->id);
    ci_lives_find_blocks(lives);
    ci_lives_find_ranges(lives);
    return lives;
}

int
ci_lives_block_of(const CiLives *lives, const CiKernels *list)
{
    return (int)(intptr_t)ci_map_find(lives->lists, CI_KEY(list)) - 1;
}

int
ci_lives_step_of(const CiLives *lives, const CiKernel *kernel)
{
    return (int)(intptr_t)ci_map_find(lives->lists, CI_KEY(kernel)) - 1;
}

/* ---- changing ---- */

void
ci_lives_move(CiLives *lives, const int *moved, int count)
{
    int *block_of = CI_NEW_ARRAY(lives->ctx, int, count + 1);
    for (int step = 0, at = 0; step < lives->nsteps; step++) {
        int own = lives->block_of[step], before = step ? lives->block_of[step - 1] : own;
        int between = ci_block_contains(lives, own, before) ? before : own;
        for (; at < moved[step]; at++)
            block_of[at] = between;
        block_of[moved[step]] = own;
        at = moved[step] + 1;
    }
    for (int b = 1; b < lives->nblocks; b++) {
        lives->blocks[b].open = moved[lives->blocks[b].open];
        lives->blocks[b].close = moved[lives->blocks[b].close];
    }
    for (int b = 0; b < lives->nbuffers; b++) {
        CiLife *life = &lives->of[b];
        if (life->block >= 0)
            *life = (CiLife){life->block, moved[life->first], moved[life->last]};
    }
    lives->block_of = block_of;
    lives->nsteps = lives->capsteps = count;
}
