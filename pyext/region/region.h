/* Blocks, regions (for, while and if, which consist of blocks), and marks for rollback. */
#ifndef CX_REGION_H
#define CX_REGION_H

#include "value/value.h"

extern PyType_Spec cx_mark_spec, cx_block_spec;

typedef struct CxBlock {
    PyObject_HEAD CxTracer *tracer;
    struct CxBlock *around; /* while it is open: the open block around it */
    CiBlock *block, *outer;
    unsigned epoch;
    uint32_t nexprs; /* of the tracer's sym when the block was first opened */
    int nopen;
    const CiExpr *extent, *index; /* for a `for`; in the tracer's sym */
    CiNode **owned;                /* values kept after the block is closed */
    int nheld, capheld;
    unsigned *scopes; /* scopes of building, while it is closed */
    int nscopes;
    bool is_open;
} CxBlock;

/* The node of a Traced value, or of (block, number); NULL with an exception. */
CiNode *cx_region_node(CxTracer *tracer, PyObject *value);
bool cx_block_is_usable(CxBlock *block); /* else sets an exception */
/* Closes the innermost open blocks until `count` are left. */
int cx_blocks_unwind(CxTracer *tracer, int count);
int cx_kind_from(PyObject *name);        /* -1 with an exception if there is no such kind */

/* region_view.c, region_truths.c: methods of the type Block. */
PyObject *cx_block_last_value(PyObject *self, PyObject *value);
PyObject *cx_block_truths(PyObject *self, PyObject *args);

#endif
