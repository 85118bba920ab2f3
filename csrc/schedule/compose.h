/* Two trips of a loop as one: its nests as boxes of the array that they fill, and what becomes of them. */
#ifndef CI_SCHEDULE_COMPOSE_H
#define CI_SCHEDULE_COMPOSE_H

#include "schedule/plan.h"

typedef struct CiBox {
    int64_t start[CI_MAX_RANK], end[CI_MAX_RANK];
} CiBox;

/* A nest and the box that it fills. */
typedef struct CiPiece {
    const CiNest *nest;
    CiBox box;
    int dims[CI_MAX_RANK]; /* that its axes go along */
} CiPiece;

typedef struct CiComposer {
    CiScheduler *s;
    const CiRegion *region;
    CiBuffer *from, *to;
    int rank;
    int64_t sizes[CI_MAX_RANK], strides[CI_MAX_RANK];
    int nearest_last[CI_MAX_RANK]; /* dimensions, by falling stride */
    CiPiece *pieces;
    int npieces;
    /* Of the nests that are being made: which trips they are, of what they make what, and they. */
    const CiExpr *first, *second;
    CiBuffer *source, *target;
    CiItems made;
} CiComposer;

/* Whether the nests of c's loop, that makes `to` of `from`, store each element once, read none that is
 * far, and compute nothing dear: then the others may be called. */
bool ci_compose_begin(CiComposer *c);
/* The nests of two trips, from that number on, in c->made; false: they would be too much. */
bool ci_compose_pair(CiComposer *c, const CiExpr *trip, CiBuffer *source, CiBuffer *target);
/* Of one trip, which reads `from`. */
void ci_compose_single(CiComposer *c, const CiExpr *trip, CiBuffer *target);
/* A nest stores all of an array that lies as `to`, and nothing twice. */
bool ci_compose_fills(const CiComposer *c, const CiNest *nest);

#endif
