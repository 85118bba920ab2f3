/* Live ranges of a program's buffers, at any level: over a list of kernels or of wrapper lines.
 * Used by the passes that order kernels and reuse, place and pool memory.
 *
 * A program is steps, and blocks of them: itself (block 0), and the bodies of its regions. A
 * region's own steps, the first, the one between two bodies and the last, are steps of the block
 * around it. A buffer belongs to the innermost block that contains all its uses; for that block a
 * use inside a region is a use by the whole region. */
#ifndef CI_ANALYSIS_LIVE_RANGES_H
#define CI_ANALYSIS_LIVE_RANGES_H

#include "base/map.h"
#include "ir/kernel.h"

typedef struct CiLivesBlock {
    int parent;      /* -1: the program itself */
    int open, close; /* steps of the region that it belongs to */
    int sibling;     /* the body before it, of the same region; -1 */
    bool is_loop, is_parallel; /* parallel: each turn has memory of its own */
} CiLivesBlock;

/* First and last step within the block; block -1: never used. */
typedef struct CiLife {
    int block, first, last;
} CiLife;

typedef struct CiLivesUse {
    int buffer, step;
} CiLivesUse;

typedef struct CiLiveRanges {
    CiContext *ctx;
    CiLivesBlock *blocks;
    int nblocks, capblocks;
    int *block_of; /* by step */
    int nsteps, capsteps;
    CiLife *of; /* by buffer's id */
    int nbuffers, capbuffers;
    CiLivesUse *uses;
    int nuses, capuses;
    int block; /* of the next step, while it is made */
    CiKernel **kernels; /* by step, of a program of kernels */
    int capkernels;
    CiMap *lists; /* of a program of kernels: a list -> its block and one, a kernel -> its step and one */
} CiLiveRanges;

/* ---- making ---- */

CiLiveRanges *ci_live_new(CiContext *ctx, int nbuffers);
int ci_live_add_step(CiLiveRanges *ranges); /* in the block of now; its number */
/* The last step opens a region; is between two bodies of it; closes it. */
void ci_live_open(CiLiveRanges *ranges, bool is_loop, bool is_parallel);
void ci_live_iteration(CiLiveRanges *ranges);
void ci_live_close(CiLiveRanges *ranges);
void ci_live_use(CiLiveRanges *ranges, int buffer); /* by the last step */
/* The block of each buffer; then, from the blocks as they stand, its first and last step. */
void ci_live_find_blocks(CiLiveRanges *ranges);
void ci_live_find_ranges(CiLiveRanges *ranges);
/* The live ranges of a scheduled program, whose return is a use. */
CiLiveRanges *ci_live_of_kernels(const CiKernels *kernels);

/* ---- asking ---- */

bool ci_block_contains(const CiLiveRanges *ranges, int outer, int block);
/* True if the block is in a parallel loop, each iteration of which has buffers of its own. */
bool ci_live_is_of_iterations(const CiLiveRanges *ranges, int block);
int ci_live_block_of(const CiLiveRanges *ranges, const CiKernels *list);
int ci_live_step_of(const CiLiveRanges *ranges, const CiKernel *kernel);

/* ---- changing ---- */

/* A buffer more: its id is the number of those there were. */
void ci_live_add_buffer(CiLiveRanges *ranges, CiLife life);
/* moved: by step, its new number, ascending, of one that is gone that of the next; count: steps there
 * are then, of which the last one stays the last. One between two is of the inner block of theirs. */
void ci_live_move(CiLiveRanges *ranges, const int *moved, int count);
#endif
