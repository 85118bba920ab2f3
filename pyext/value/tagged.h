/* Tagged numbers, which are Python's on one path and NumPy's on another. */
#ifndef CX_TAGGED_H
#define CX_TAGGED_H

#include "value/value.h"

/* Its `strong`, borrowed; NULL if it is not a tagged number. */
static inline CxStorage *
cx_tagged(PyObject *o)
{
    return cx_is_traced(o) && ((CxTraced *)o)->view == NULL ? ((CxTraced *)o)->storage->strong
                                                            : NULL;
}

/* tagged.c */
/* In a region it raises RegionBreak, elsewhere it is a break; a tagged number then is Python's
 * or NumPy's. */
int cx_tagged_resolve(CxTracer *tracer, PyObject *number);
int cx_tagged_check(CxTracer *tracer, int nargs, PyObject *const *args);
bool cx_promotes_alike(CiDtype mixed, PyObject *other);

#endif
