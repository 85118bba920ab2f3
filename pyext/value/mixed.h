/* Numbers that are Python's on one path and NumPy's on another. */
#ifndef CX_MIXED_H
#define CX_MIXED_H

#include "value/value.h"

/* Its `strong`, borrowed; NULL: it is no such number. */
static inline CxStorage *
cx_mixed(PyObject *o)
{
    return cx_is_traced(o) && ((CxTraced *)o)->view == NULL ? ((CxTraced *)o)->storage->strong
                                                            : NULL;
}

/* mixed.c */
/* In a region it raises RegionBreak, elsewhere it is a break: then the number, if it is mixed, is
 * Python's or NumPy's. */
int cx_mixed_settle(CxTracer *tracer, PyObject *number);
int cx_mixed_check(CxTracer *tracer, int nargs, PyObject *const *args);
bool cx_promotes_alike(CiDtype mixed, PyObject *other);

#endif
