/* Live ranges of a program's buffers, at any level: over a list of kernels or of wrapper lines.
 * Used by the passes that order kernels and reuse, place and pool memory.
 *
 * A program is a list of steps in nested blocks. Block 0 is the program; every body of a region is a block. A
 * region itself has a first step, a last step, and a step between two bodies; these belong to the block around it.
 * A buffer belongs to the innermost block that contains all its uses; for that block a use inside a region is a
 * use by the whole region. */
#ifndef CI_ANALYSIS_LIVE_RANGES_H
#define CI_ANALYSIS_LIVE_RANGES_H

#include "base/map.h"
#include "ir/kernel.h"

typedef struct CiLivesBlock {
    int parent;      /* -1: the program itself */
    int open, close; /* first and last step of its region */
    int sibling;     /* the body before it in the same region; -1: none */
    bool is_loop, is_parallel; /* parallel: each iteration has its own memory */
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
    CiLife *of; /* by buffer id */
    int nbuffers, capbuffers;
    CiLivesUse *uses;
    int nuses, capuses;
    int block; /* block of the next step, during construction */
    CiKernel **kernels; /* by step, of a program of kernels */
    int capkernels;
    CiMap *lists; /* of a program of kernels: list -> 1 + its block; kernel -> 1 + its step */
} CiLiveRanges;

/* ---- construction ---- */

CiLiveRanges *ci_live_new(CiContext *ctx, int nbuffers);
int ci_live_add_step(CiLiveRanges *ranges); /* in the current block; returns its number */
/* The last added step opens a region; separates two of its bodies; closes it. */
void ci_live_open(CiLiveRanges *ranges, bool is_loop, bool is_parallel);
void ci_live_iteration(CiLiveRanges *ranges);
void ci_live_close(CiLiveRanges *ranges);
void ci_live_use(CiLiveRanges *ranges, int buffer); /* by the last step */
/* Computes the block of each buffer; then, from the blocks, its first and last step. */
void ci_live_find_blocks(CiLiveRanges *ranges);
void ci_live_find_ranges(CiLiveRanges *ranges);
/* The live ranges of a scheduled program, whose return is a use. */
CiLiveRanges *ci_live_of_kernels(const CiKernels *kernels);

/* ---- queries ---- */

bool ci_block_contains(const CiLiveRanges *ranges, int outer, int block);
/* True if the block is in a parallel loop, each iteration of which has buffers of its own. */
bool ci_live_is_of_iterations(const CiLiveRanges *ranges, int block);
int ci_live_block_of(const CiLiveRanges *ranges, const CiKernels *list);
int ci_live_step_of(const CiLiveRanges *ranges, const CiKernel *kernel);

/* ---- updates ---- */

/* Adds a buffer with the next id. */
void ci_live_add_buffer(CiLiveRanges *ranges, CiLife life);
/* Renumbers the steps. moved: the new number of each step, ascending; a removed step has the number of the step after it.
 * count: the new number of steps; the last step stays the last. A new step between two others belongs to the inner one of
 * their blocks. */
void ci_live_move(CiLiveRanges *ranges, const int *moved, int count);
#endif
