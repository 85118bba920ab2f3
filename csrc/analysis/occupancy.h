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

/* Upper bound of the number of points. */
int64_t ci_occupancy_points(const CiExpr *count);
/* True if a kernel has too few points to distribute; `together` points are a unit of work. */
bool ci_fill_is_few(const CiMachine *machine, int64_t points, int64_t together);
/* True if each multiprocessor gets a block. */
bool ci_fill_has_blocks(const CiMachine *machine, int64_t blocks);
/* Threads that run at once. */
int64_t ci_occupancy_threads(const CiMachine *machine);
/* True if the points, with `threads` each, have at least as many threads as run at once. */
bool ci_fill_has_threads(const CiMachine *machine, int64_t points, int64_t threads);

#endif
