/* Points, blocks and threads of a card, counted. */
#include "ir/fill.h"

#define THREADS 2048 /* that a multiprocessor runs at once */
#define BLOCKS 4     /* of a fold's parts, that it runs at once */
#define ENOUGH 2     /* blocks of which each has a point of its own */
#define UNBOUNDED ((int64_t)1 << 20)

int64_t
ci_fill_points(const CiExpr *count)
{
    return count->high == CI_INFINITY ? UNBOUNDED : count->high;
}

bool
ci_fill_is_few(const CiTarget *target, int64_t points, int64_t together)
{
    return points / together < ci_choice(target, CI_CHOICE_few_points);
}

bool
ci_fill_has_blocks(const CiTarget *target, int64_t blocks)
{
    return blocks >= ci_choice(target, CI_CHOICE_multiprocessors);
}

/* Threads that run at once. */
static int64_t
all_threads(const CiTarget *target)
{
    return ci_choice(target, CI_CHOICE_multiprocessors) * THREADS;
}

bool
ci_fill_has_threads(const CiTarget *target, int64_t points, int64_t threads)
{
    return points >= (all_threads(target) + threads - 1) / threads;
}

int64_t
ci_fill_parts(const CiTarget *target, int64_t blocks)
{
    int64_t count = ci_choice(target, CI_CHOICE_multiprocessors);
    return blocks >= ENOUGH * count ? 1 : BLOCKS * count / (blocks > 0 ? blocks : 1);
}

int64_t
ci_fill_part_length(const CiTarget *target, int64_t points, int64_t size, int64_t least)
{
    int64_t length = least, parts = all_threads(target) / (points > 0 ? points : 1);
    while (length < size && size / length > parts)
        length *= 2;
    return length;
}
