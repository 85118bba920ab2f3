/* How much runs side by side, and what fills a device: asked alike by all who decide whether work is cut finer, folds
 * and scans into parts, what a point walks among threads, nests into launches of their own.
 *
 * What is cut otherwise may be folded in another order, so an answer follows from sizes and thresholds alone,
 * whichever card is there. What nothing bounds is taken to be enough. */
#ifndef CI_IR_FILL_H
#define CI_IR_FILL_H

#include "ir/choices.h"
#include "sym/expr.h"

/* Points, at most. */
int64_t ci_fill_points(const CiExpr *count);
/* So few points, of which `together` are a unit of work, that a kernel has too little to share out. */
bool ci_fill_is_few(const CiTarget *target, int64_t points, int64_t together);
/* Each multiprocessor has a block. */
bool ci_fill_has_blocks(const CiTarget *target, int64_t blocks);
/* Threads that run at once. */
int64_t ci_fill_threads(const CiTarget *target);
/* Points of so many threads each are as many threads as run at once. */
bool ci_fill_has_threads(const CiTarget *target, int64_t points, int64_t threads);

#endif
