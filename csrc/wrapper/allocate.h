/* The memory plan: adds the lines that allocate, reuse and free memory to a list of lines that run kernels. wrapper->ranges has
 * the live range of each buffer, and every step updates it. */
#ifndef CI_WRAPPER_ALLOCATE_H
#define CI_WRAPPER_ALLOCATE_H

#include "wrapper/wrapper.h"

/* Allocated bytes by line, of known or estimated sizes, as a segment tree of maxima. */
typedef struct CiWatermark {
    int64_t *most, *more; /* maximum of the subtree; amount added to the whole subtree */
    int width;
} CiWatermark;

/* buffers.c: ci_wrapper_new returns a wrapper without lines. ci_wrapper_buffer_on returns the buffer or its copy on that side,
 * which it creates if needed. ci_wrapper_add_pool adds a pool of that size. */
CiWrapper *ci_wrapper_new(const CiKernels *kernels, const CiOptions *options,
                          const CiShapeEnv *env);
const CiBuffer *ci_wrapper_buffer_on(CiWrapper *wrapper, const CiBuffer *buffer, CiSide side);
const CiBuffer *ci_wrapper_add_pool(CiWrapper *wrapper, const CiExpr *bytes, CiSide side);
/* async_copies.c: starts copies to the host early, so that they run beside lines that do not need them. needs: memory is not
 * placed yet. */
void ci_wrapper_start_early(CiWrapper *wrapper);
/* overlap.c: lets kernels run while a collective runs. needs: memory is not placed yet.  keeps: the order of collectives. */
void ci_wrapper_overlap(CiWrapper *wrapper);
/* Finds the collective that a join waits for by the join's buffer, and sets the join's ext, number, side and loc. ext stays NULL
 * if there is none. */
void ci_wrapper_find_start(CiWrapper *wrapper, CiLine *join);
/* True if the collective is before the join in the same block, and no line between them uses a buffer that it stores or stores
 * one that it uses. */
bool ci_wrapper_runs_alongside(const CiWrapper *wrapper, int join);
/* memory_plan.c: runs all steps below, in order. */
void ci_wrapper_plan_memory(CiWrapper *wrapper);
/* Rewrites wrapper->lines with alloc, reuse and free lines around the uses of each buffer.
 * needs: no such lines yet, regions nested.  keeps: the order of all other lines. */
void ci_wrapper_place(CiWrapper *wrapper);
/* drop.c: adds a line after the last use of each input.  needs: no lines of memory yet. */
void ci_wrapper_drop_inputs(CiWrapper *wrapper);
/* reuse.c: replaces pairs of free and alloc by reuse lines, if the peak memory does not grow. */
void ci_wrapper_reuse(CiWrapper *wrapper);
/* pool.c: combines allocations to pools, if the peak memory does not grow. */
void ci_wrapper_pool(CiWrapper *wrapper);
/* hoist.c: computes the partitions, and moves the allocations of each before its first launch. */
void ci_wrapper_hoist(CiWrapper *wrapper);
/* allocate.c: computes the live range of each buffer from the lines that use it. */
void ci_wrapper_find_live_ranges(CiWrapper *wrapper);
/* memory_plan.c: the peak memory in bytes; *is_known: all sizes are known. of_iterations: only the memory that each iteration
 * of a parallel loop allocates for itself. */
int64_t ci_wrapper_peak_bytes(const CiWrapper *wrapper, bool of_iterations, bool *is_known);
/* Sets `match`, `open` and `frees` of lines of regions. needs: regions nested. */
void ci_wrapper_match(CiWrapper *wrapper);

/* watermark.c */
CiWatermark ci_watermark_new(CiContext *ctx, int nlines);
void ci_watermark_add(CiWatermark *watermark, int first, int last, int64_t bytes); /* nothing where last < first */
int64_t ci_watermark_peak(const CiWatermark *watermark, int first, int last);

#endif
