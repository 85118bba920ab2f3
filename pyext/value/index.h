/* Sizes as values: data-dependent indices and bounds, conversion from and to Python objects, and
 * range checks. */
#ifndef CX_INDEX_H
#define CX_INDEX_H

#include "graph/size.h"
#include "value/value.h"

/* size_bound.c: 1 if e fits 64 bits, possibly by a guard; 0; -1. */
int cx_size_fits(CxTracer *tracer, const CiExpr *e);

/* size_data.c: the symbol for a value used as an index in [0, size), or as a slice bound in [0,
 * size]. */
const CiExpr *cx_index_define(CxTraced *value, const CiExpr *size, bool is_bound);
const CiExpr *cx_size_define(CxTraced *value);
/* Records that a value is a symbol from now on. Steals symbol, whose `expr` is that symbol.
 * size: the size with which it was defined, or NULL. */
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
/* Returns the number of axes. */
int cx_shape_from(CxTracer *tracer, PyObject *object, const CiExpr **sizes);
/* Axes, or one of them, as numbers, because the graph depends on them. Returns the number of
 * axes. */
int cx_axes_from(PyObject *object, int64_t *axes, int capacity);
int64_t cx_size_concretize(CxTracer *tracer, const CiExpr *e, const char *what); /* -1: an exception */

/* size_shown.c: sizes for the text of NumPy's exception. Data-dependent ones are computed; the
 * others have the values of this call and are recorded: code that reads the exception guards
 * them (Tracer.concretize_shown). 0; -1. */
int cx_size_shown(CxTracer *tracer, int count, const CiExpr *const *exprs, int64_t *values);
PyObject *cx_size_dummy(CxTraced *x); /* cx_array_dummy with its shape, recorded as shown */

/* size_check.c: like cx_size_decide, but an open relation is checked at run time. */
int cx_size_require(CxTracer *tracer, CiRelation relation, const CiExpr *a, const CiExpr *b,
                    const char *why);
/* The common size of axes that must be equal; NULL, without an exception if they are not. */
const CiExpr *cx_size_join(CxTracer *tracer, const CiExpr *a, const CiExpr *b);
int cx_sizes_equal(CxTracer *tracer, int rank, const CiExpr *const *a, const CiExpr *const *b);

/* range_checks.c: whether numbers may be cast to a dtype. 0: they do not fit, or it is unknown. */
int cx_numbers_fit(CxTraced *x, CiDtype want);        /* as stored elements */
int cx_python_number_fits(CxTraced *x, CiDtype want); /* true for a Python number that fits */

/* size_index.c: 1; 0 if NumPy refuses it; -1. */
int cx_index_wrap(CxTracer *tracer, const CiExpr *at, const CiExpr *size, const CiExpr **start);
int cx_index_slice(CxTracer *tracer, PySliceObject *slice, const CiExpr *size, const CiExpr **out);

#endif
