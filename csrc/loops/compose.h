/* Two iterations of a loop as one: the nests of the loop as boxes of the array that they fill, and
 * the nests of the fused iteration. */
#ifndef CI_LOOPS_COMPOSE_H
#define CI_LOOPS_COMPOSE_H

#include "loops/loops.h"

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
    const CiLoopRewriter *r;
    const CiRegion *region;
    CiBuffer *from, *to;
    int rank;
    int64_t sizes[CI_MAX_RANK], strides[CI_MAX_RANK];
    int nearest_last[CI_MAX_RANK]; /* dimensions, by falling stride */
    CiPiece *pieces;
    int npieces;
    /* State of the nests under construction: their iterations, the array they read, the array they
     * store, and the nests. */
    const CiExpr *first, *second;
    CiBuffer *source, *target;
    CiItems made;
} CiComposer;

/* Reads the layout of `to`, of constant sizes; false if it has no such layout. Then the dimension whose
 * stride is the coefficient, or -1, and the first element of a box, from an offset. */
bool ci_compose_read_layout(CiComposer *c);
int ci_compose_find_dim(const CiComposer *c, const CiExpr *coef);
bool ci_compose_find_start(const CiComposer *c, const CiExpr *offset, CiBox *box);
/* The box of elements at an index over the axes of a nest, and the dimension that each axis goes along; -1:
 * the index does not depend on the axis. False if they are no box. */
bool ci_compose_find_box(const CiComposer *c, const CiNest *nest, const CiExpr *index, CiBox *box, int *dims);
/* Adds an operation of another body, whose operands have the numbers `made` here; see ci_body_add. */
int ci_compose_add(const CiComposer *c, CiBody *into, CiScalar op, const int *made);
/* True if two boxes have an element in common. */
bool ci_compose_overlap(const CiComposer *c, const CiBox *a, const CiBox *b);
/* Finds the boxes of `to` that the nests in c's loop fill; false unless each element is stored once
 * per iteration. */
bool ci_compose_find_pieces(CiComposer *c);
/* True if the nests of c's loop, which computes `to` from `from`, store each element once, read
 * only nearby elements, and call no mathematical functions. The other functions require this. */
bool ci_compose_begin(CiComposer *c);
/* Adds to c->made the nests of two iterations, starting with number `iteration`; false if they would be
 * too large. */
bool ci_compose_pair(CiComposer *c, const CiExpr *iteration, CiBuffer *source, CiBuffer *target);
/* Adds the nests of one iteration, which reads `from`. */
void ci_compose_single(CiComposer *c, const CiExpr *iteration, CiBuffer *target);
/* A nest stores all of an array that lies as `to`, and nothing twice. */
bool ci_compose_fills(const CiComposer *c, const CiNest *nest);

#endif
