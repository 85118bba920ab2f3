/* Bytes allocated at each wrapper line, in a segment tree of maxima over ranges of lines. */
#include "wrapper/place.h"

CiWatermark
ci_held_new(CiContext *ctx, int nlines)
{
    CiWatermark held = {.width = 1};
    while (held.width < nlines)
        held.width *= 2;
    held.most = CI_NEW_ARRAY(ctx, int64_t, 2 * held.width);
    held.more = CI_NEW_ARRAY(ctx, int64_t, 2 * held.width);
    return held;
}

/* Lines [low, high], which are those below the node. */
typedef struct Span {
    int node, low, high;
} Span;

static int64_t
add_range(CiWatermark *held, Span at, int first, int last, int64_t bytes)
{
    if (first <= at.low && at.high <= last) {
        held->more[at.node] += bytes;
        return held->most[at.node] += bytes;
    }
    int middle = (at.low + at.high) / 2, below = 2 * at.node;
    int64_t left = held->most[below], right = held->most[below + 1];
    if (first <= middle)
        left = add_range(held, (Span){below, at.low, middle}, first, last, bytes);
    if (last > middle)
        right = add_range(held, (Span){below + 1, middle + 1, at.high}, first, last, bytes);
    return held->most[at.node] = held->more[at.node] + (left > right ? left : right);
}

static int64_t
most_between(const CiWatermark *held, Span at, int first, int last)
{
    if (first <= at.low && at.high <= last)
        return held->most[at.node];
    int middle = (at.low + at.high) / 2, below = 2 * at.node;
    int64_t most = INT64_MIN, own;
    if (first <= middle)
        most = most_between(held, (Span){below, at.low, middle}, first, last);
    if (last > middle) {
        own = most_between(held, (Span){below + 1, middle + 1, at.high}, first, last);
        most = own > most ? own : most;
    }
    return most + held->more[at.node];
}

void
ci_held_add(CiWatermark *held, int first, int last, int64_t bytes)
{
    if (first <= last)
        add_range(held, (Span){1, 0, held->width - 1}, first, last, bytes);
}

int64_t
ci_peak_bytes(const CiWatermark *held, int first, int last)
{
    return most_between(held, (Span){1, 0, held->width - 1}, first, last);
}
