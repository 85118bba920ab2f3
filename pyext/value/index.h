/* Sizes as values: indices and bounds that data decide, what Python objects say, and what must fit.
 */
#ifndef CX_INDEX_H
#define CX_INDEX_H

#include "graph/size.h"
#include "value/value.h"

/* size_bound.c: 1 where e fits 64 bits, which may be guarded; 0; -1. */
int cx_size_fits(CxTracer *tracer, const CiExpr *e);

/* size_data.c: the symbol of a value that is used as an index in [0, size), or as a bound of slices
 * in [0, size]. */
const CiExpr *cx_index_define(CxTraced *value, const CiExpr *size, bool is_bound);
const CiExpr *cx_size_define(CxTraced *value);
/* A value that is known as a symbol from now on; takes the reference to symbol, whose `expr` says
 * which. size: what it was defined against, or NULL. */
int cx_defined_add(CxTracer *tracer, CxStorage *value, CxStorage *symbol, const CiExpr *size,
                   bool is_bound);
void cx_defined_release(CxTracer *tracer);
const CiExpr *cx_defined_symbol(const CxTracer *tracer, int number);
bool cx_view_depends_on(const CxView *view, const CiExpr *symbol);
CxStorage *cx_defined_storage(const CxTracer *tracer, int number);
bool cx_is_data_int(PyObject *object);
/* size_object.c */
PyObject *cx_size_object(CxTracer *tracer, const CiExpr *e); /* an int, or a Traced one */
const CiExpr *cx_size_from(CxTracer *tracer, PyObject *object);
PyObject *cx_shape_tuple(CxTracer *tracer, int rank, const CiExpr *const *sizes);
int cx_shape_from(CxTracer *tracer, PyObject *object, const CiExpr **sizes); /* the count */
/* Axes, or one of them; numbers, because the graph depends on which they are. Returns the count. */
int cx_axes_from(PyObject *object, int64_t *axes, int capacity);
int64_t cx_size_force(CxTracer *tracer, const CiExpr *e, const char *what); /* -1: an exception */

/* size_shown.c: sizes for NumPy to complain of. Those of data are found out; the others are this
 * call's, and noted: who looks at the exception has them guarded (Tracer.force_shown). 0; -1. */
int cx_size_shown(CxTracer *tracer, int count, const CiExpr *const *exprs, int64_t *values);
PyObject *cx_size_dummy(CxTraced *x); /* cx_array_dummy of its shape, shown */

/* size_check.c: as cx_size_decide; where that is open the running program checks it. */
int cx_size_require(CxTracer *tracer, CiRelation relation, const CiExpr *a, const CiExpr *b,
                    const char *why);
/* The common size of axes that must be equal; NULL, without an exception when they are not. */
const CiExpr *cx_size_join(CxTracer *tracer, const CiExpr *a, const CiExpr *b);
int cx_sizes_equal(CxTracer *tracer, int rank, const CiExpr *const *a, const CiExpr *const *b);

/* range_checks.c: whether numbers may become those of a dtype. 0: they do not fit, or nobody can tell. */
int cx_numbers_fit(CxTraced *x, CiDtype want);        /* as elements that are stored */
int cx_python_number_fits(CxTraced *x, CiDtype want); /* a number of Python's, if it is one */

/* size_index.c: 1, 0 when NumPy refuses it, -1. */
int cx_index_wrap(CxTracer *tracer, const CiExpr *at, const CiExpr *size, const CiExpr **start);
int cx_index_slice(CxTracer *tracer, PySliceObject *slice, const CiExpr *size, const CiExpr **out);

#endif
