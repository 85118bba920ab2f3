/* Occupancy: how much work runs in parallel, and how much a device needs. Used by every pass that
 * decides whether to split work: folds and scans into parts, the work of a point among threads,
 * nests into separate launches.
 *
 * Splitting may change the order of a fold and so its bits. The answers therefore depend on sizes
 * and thresholds only, not on the GPU that is present. A size without an upper bound counts as
 * large enough. */
#ifndef CI_ANALYSIS_OCCUPANCY_H
#define CI_ANALYSIS_OCCUPANCY_H

#include "analysis/choices.h"
#include "sym/expr.h"

/* Points, at most. */
int64_t ci_occupancy_points(const CiExpr *count);
/* So few points, of which `together` are a unit of work, that a kernel has too little to share out. */
bool ci_fill_is_few(const CiMachine *machine, int64_t points, int64_t together);
/* Each multiprocessor has a block. */
bool ci_fill_has_blocks(const CiMachine *machine, int64_t blocks);
/* Threads that run at once. */
int64_t ci_occupancy_threads(const CiMachine *machine);
/* Points of so many threads each are as many threads as run at once. */
bool ci_fill_has_threads(const CiMachine *machine, int64_t points, int64_t threads);

#endif
