/* Temporal blocking: composes two iterations of a stencil loop into one. Finds the box of the array that each nest of the
 * loop fills, and builds the nests of the composed iteration. */
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
    int dims[CI_MAX_RANK]; /* by axis: the dimension of the array that it indexes */
} CiPiece;

typedef struct CiComposer {
    const CiLoopRewriter *r;
    const CiRegion *region;
    CiBuffer *from, *to;
    int rank;
    int64_t sizes[CI_MAX_RANK], strides[CI_MAX_RANK];
    int nearest_last[CI_MAX_RANK]; /* dimensions in the order of decreasing stride */
    CiPiece *pieces;
    int npieces;
    /* State of the nests under construction: their iterations, the array they read, the array they
     * store, and the nests. */
    const CiExpr *first, *second;
    CiBuffer *source, *target;
    CiItems made;
} CiComposer;

/* Reads sizes and strides of `to`; false if they are not constant. */
bool ci_compose_read_layout(CiComposer *c);
/* The dimension whose stride is the coefficient, or -1. */
int ci_compose_find_dim(const CiComposer *c, const CiExpr *coef);
/* Sets box->start from the offset of its first element; false if there is no such box. */
bool ci_compose_find_start(const CiComposer *c, const CiExpr *offset, CiBox *box);
/* Finds the box of elements that an index covers over the axes of a nest, and the dimension of each axis; -1: the index
 * does not depend on the axis. False if the elements are no box. */
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
/* True if the nest stores every element of an array with the layout of `to` exactly once. */
bool ci_compose_fills(const CiComposer *c, const CiNest *nest);

#endif
