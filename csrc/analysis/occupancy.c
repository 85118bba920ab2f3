/* Counts the points, blocks and threads of a GPU. */
#include "analysis/occupancy.h"

#define UNBOUNDED ((int64_t)1 << 20)

int64_t
ci_occupancy_points(const CiExpr *count)
{
    return count->high == CI_INFINITY ? UNBOUNDED : count->high;
}

bool
ci_fill_is_few(const CiMachine *machine, int64_t points, int64_t together)
{
    return points / together < ci_choice(machine, CI_CHOICE_few_points);
}

bool
ci_fill_has_blocks(const CiMachine *machine, int64_t blocks)
{
    return blocks >= ci_choice(machine, CI_CHOICE_multiprocessors);
}

int64_t
ci_occupancy_threads(const CiMachine *machine)
{
    return ci_choice(machine, CI_CHOICE_multiprocessors) * machine->resident_threads;
}

bool
ci_fill_has_threads(const CiMachine *machine, int64_t points, int64_t threads)
{
    return points >= (ci_occupancy_threads(machine) + threads - 1) / threads;
}
