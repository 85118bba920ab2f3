/* Tagged numbers: their class depends on the path, for example int before a loop and float64 after an iteration. A run-time
 * bool has the class. */
#ifndef CX_TAGGED_H
#define CX_TAGGED_H

#include "value/value.h"

/* The bool `strong` of a tagged number, borrowed; NULL for any other object. */
static inline CxStorage *
cx_tagged(PyObject *o)
{
    return cx_is_traced(o) && ((CxTraced *)o)->view == NULL ? ((CxTraced *)o)->storage->strong
                                                            : NULL;
}

/* True for a tagged number that is an int on one path and has another dtype on the other. */
static inline bool
cx_is_int_or_other(PyObject *o)
{
    return cx_tagged(o) != NULL && ((CxTraced *)o)->storage->weak == CI_DTYPE_i64 &&
           ((CxTraced *)o)->storage->dtype != CI_DTYPE_i64;
}

/* tagged.c */
/* In a region it raises RegionBreak, elsewhere it is a break; a tagged number then has one class.
 */
int cx_tagged_resolve(CxTracer *tracer, PyObject *number);

#endif
