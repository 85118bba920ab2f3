/* The memory plan: memory for lines that only say what to run. One structure, wrapper->lives, says when
 * each buffer is of use, and every step keeps it true. */
#ifndef CI_WRAPPER_ALLOCATE_H
#define CI_WRAPPER_ALLOCATE_H

#include "wrapper/wrapper.h"

/* Bytes held, line by line, whose sizes are known or guessed: a tree of maxima. */
typedef struct CiWatermark {
    int64_t *most, *more; /* of what is below, and what all below has more */
    int width;
} CiWatermark;

/* buffers.c: without lines; the buffer itself or its copy on that side, made when there is
 * none yet; a pool of so many bytes. */
CiWrapper *ci_wrapper_new(const CiKernels *kernels, const CiOptions *options,
                          const CiShapeEnv *env);
const CiBuffer *ci_wrapper_buffer_on(CiWrapper *wrapper, const CiBuffer *buffer, CiSide side);
const CiBuffer *ci_wrapper_add_pool(CiWrapper *wrapper, const CiExpr *bytes, CiSide side);
/* async_copies.c: copies to the host begin before what does not need them. needs: nothing is placed yet. */
void ci_wrapper_start_early(CiWrapper *wrapper);
/* overlap.c: kernels run beside collectives. needs: nothing is placed yet.  keeps: the order of collectives. */
void ci_wrapper_overlap(CiWrapper *wrapper);
/* The collective that a join waits for, as its fields ext, number, side and loc, from the join's buffer; none:
 * ext stays NULL. */
void ci_wrapper_find_start(CiWrapper *wrapper, CiLine *join);
/* The collective is in the same block before the join, and nothing between uses what it stores or stores what
 * it uses. */
bool ci_wrapper_runs_alongside(const CiWrapper *wrapper, int join);
/* memory_plan.c: all that follows, in order. */
void ci_wrapper_plan_memory(CiWrapper *wrapper);
/* Rewrites wrapper->lines with alloc, reuse and free lines around what uses each buffer.
 * needs: no such lines yet, regions nested.  keeps: the order of all other lines. */
void ci_wrapper_place(CiWrapper *wrapper);
/* drop.c: adds a line after the last use of each input.  needs: no lines of memory yet. */
void ci_wrapper_drop_inputs(CiWrapper *wrapper);
/* Turns frees and allocations into reuse lines (reuse.c), where no more is held at most for it. */
void ci_wrapper_reuse(CiWrapper *wrapper);
/* pool.c: allocations become parts of larger ones, where no more is held at most for it. */
void ci_wrapper_pool(CiWrapper *wrapper);
/* hoist.c: makes the partitions, and has each have its memory before its first launch. */
void ci_wrapper_hoist(CiWrapper *wrapper);
/* allocate.c: when each buffer is of use, by the lines that use it. */
void ci_wrapper_find_live_ranges(CiWrapper *wrapper);
/* memory_plan.c: the most bytes that are held at a time; *is_known: all sizes are. of_iterations: those that
 * each turn of a parallel loop has of its own. */
int64_t ci_wrapper_peak_bytes(const CiWrapper *wrapper, bool of_iterations, bool *is_known);
/* Sets `match`, `open` and `frees` of lines of regions. needs: regions nested. */
void ci_wrapper_match(CiWrapper *wrapper);

/* watermark.c */
CiWatermark ci_watermark_new(CiContext *ctx, int nlines);
void ci_watermark_add(CiWatermark *watermark, int first, int last, int64_t bytes); /* nothing where last < first */
int64_t ci_watermark_peak(const CiWatermark *watermark, int first, int last);

#endif
