/* Bytes allocated at each wrapper line, in a segment tree of maxima over ranges of lines. */
#include "wrapper/allocate.h"

CiWatermark
ci_watermark_new(CiContext *ctx, int nlines)
{
    CiWatermark watermark = {.width = 1};
    while (watermark.width < nlines)
        watermark.width *= 2;
    watermark.most = CI_NEW_ARRAY(ctx, int64_t, 2 * watermark.width);
    watermark.more = CI_NEW_ARRAY(ctx, int64_t, 2 * watermark.width);
    return watermark;
}

/* Lines [low, high], which are those below the node. */
typedef struct Span {
    int node, low, high;
} Span;

static int64_t
add_range(CiWatermark *watermark, Span at, int first, int last, int64_t bytes)
{
    if (first <= at.low && at.high <= last) {
        watermark->more[at.node] += bytes;
        return watermark->most[at.node] += bytes;
    }
    int middle = (at.low + at.high) / 2, below = 2 * at.node;
    int64_t left = watermark->most[below], right = watermark->most[below + 1];
    if (first <= middle)
        left = add_range(watermark, (Span){below, at.low, middle}, first, last, bytes);
    if (last > middle)
        right = add_range(watermark, (Span){below + 1, middle + 1, at.high}, first, last, bytes);
    return watermark->most[at.node] = watermark->more[at.node] + (left > right ? left : right);
}

static int64_t
most_between(const CiWatermark *watermark, Span at, int first, int last)
{
    if (first <= at.low && at.high <= last)
        return watermark->most[at.node];
    int middle = (at.low + at.high) / 2, below = 2 * at.node;
    int64_t most = INT64_MIN, own;
    if (first <= middle)
        most = most_between(watermark, (Span){below, at.low, middle}, first, last);
    if (last > middle) {
        own = most_between(watermark, (Span){below + 1, middle + 1, at.high}, first, last);
        most = own > most ? own : most;
    }
    return most + watermark->more[at.node];
}

void
ci_watermark_add(CiWatermark *watermark, int first, int last, int64_t bytes)
{
    if (first <= last)
        add_range(watermark, (Span){1, 0, watermark->width - 1}, first, last, bytes);
}

int64_t
ci_watermark_peak(const CiWatermark *watermark, int first, int last)
{
    return most_between(watermark, (Span){1, 0, watermark->width - 1}, first, last);
}
