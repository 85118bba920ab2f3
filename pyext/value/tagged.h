/* Tagged numbers, which are of one class on one path and of another class on another. */
#ifndef CX_TAGGED_H
#define CX_TAGGED_H

#include "value/value.h"

/* Its bool `strong`, borrowed; NULL if it is not a tagged number. */
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
