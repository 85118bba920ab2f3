/* Blocks being built, for those who open them and those who make regions of them. */
#ifndef CX_REGION_H
#define CX_REGION_H

#include "pyext.h"

typedef struct CxBlock {
    PyObject_HEAD CxTracer *tracer;
    CiBlock *block, *outer;
    unsigned epoch;
    int nopen;
    const CiExpr *extent, *index; /* of a `for`; of the tracer's sym */
    CiNode **held;                /* values kept for when the block is closed */
    int nheld, capheld;
    bool is_open;
} CxBlock;

/* The node of a Traced value, or of (block, number); NULL with an exception. */
CiNode *cx_region_node(CxTracer *tracer, PyObject *value);
bool cx_block_is_usable(CxBlock *block); /* else an exception is set */
int cx_kind_from(PyObject *name);        /* -1: no kind, and an exception */

#endif
