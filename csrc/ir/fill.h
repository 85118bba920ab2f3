/* Whether what runs side by side is enough for a device: asked alike by all who may cut work finer, folds and scans
 * into parts, what a point walks among threads, nests into launches of their own.
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
/* Points of so many threads each are as many threads as run at once. */
bool ci_fill_has_threads(const CiTarget *target, int64_t points, int64_t threads);
/* Into how many parts each of so many blocks' work is cut; 1: there are enough. */
int64_t ci_fill_parts(const CiTarget *target, int64_t blocks);
/* Elements of a part of rows with a thread each, so long that the parts of all rows are as many threads as run at
 * once: a power of two times `least`, which it is at least. */
int64_t ci_fill_part_length(const CiTarget *target, int64_t points, int64_t size, int64_t least);

#endif
