/* How values enter the pending graph, become real, and are seen through views. */
#ifndef CX_VALUE_H
#define CX_VALUE_H

#include "graph/storage.h"

/* prepare.c: makes sure the value has a node of the pending graph: cx_node is then never NULL. */
int cx_traced_prepare(CxTraced *traced);
int cx_write_prepare(CxTraced *target, const char *readonly_message);
/* NumPy asks it before all else: before indices, shapes and casts. */
int cx_check_writable(const CxTraced *target, const char *message);
#define CX_OUTPUT_READONLY "output array is read-only"
#define CX_ASSIGNED_READONLY "assignment destination is read-only"

/* lift.c: how values enter. */
PyObject *cx_tracer_array(CxTracer *tracer, PyObject *array, int source);
PyObject *cx_tracer_array_of(CxTracer *tracer, PyObject *array, int source,
                             const CiExpr *const *sizes, const CiExpr *const *paddings);
PyObject *cx_tracer_scalar(CxTracer *tracer, PyObject *value, int source);
/* Any value as an operand. constant: an array's contents never change from call to call. */
PyObject *cx_tracer_lift(CxTracer *tracer, PyObject *value, CiDtype like, bool constant);
PyObject *cx_tracer_wrap(CxTracer *tracer,
                         PyObject *real); /* steals; arrays that Python made become Traced */
bool cx_tracer_varies(CxTracer *tracer, PyObject *number);
/* cx_tracer_lift of a value as it is. */
CxTraced *cx_lifted(CxTracer *tracer, PyObject *value);

/* materialise.c */
PyObject *cx_traced_real(CxTraced *traced); /* flushes if it must; guards nothing: for the call's end */
PyObject *cx_traced_materialise(CxTraced *traced); /* a guard or a break, too, until Python is needed */
PyObject *cx_traced_force(CxTraced *traced,
                           const char *what); /* a break; kind python specialises */
/* Notes that the values which this Python scalar came from are forced. */
int cx_tracer_specialize(CxStorage *storage);
/* A copy of nested tuples, lists and dicts with real values for Traced ones. */
PyObject *cx_materialise_tree(PyObject *object);
PyTypeObject *cx_python_class(const CxStorage *storage); /* of kind python */

/* assign.c */
bool cx_is_same_view(const CxTraced *a, const CxTraced *b);
int cx_assign_value(CxTraced *target, PyObject *value, const char *readonly_message);

/* views.c */
PyObject *cx_make_permute(CxTraced *x, const int *axes);
PyObject *cx_make_reshape(CxTraced *x, int rank, const CiExpr *const *sizes);
PyObject *cx_make_slice(CxTraced *x, const CiExpr *const *starts, const CiExpr *const *steps,
                        const CiExpr *const *sizes);
PyObject *cx_make_expand(CxTraced *x, int rank, const CiExpr *const *sizes);
PyObject *cx_make_diagonal(CxTraced *x, int axis1, int axis2, const CiExpr *offset,
                           bool is_readonly);
PyObject *cx_make_window(CxTraced *x, int axis, const CiExpr *size);
PyObject *cx_make_part(CxTraced *x, bool imaginary);
/* x with these sizes for its last axes, which are known to be its own where they are written
 * otherwise; the graph proves less than capture. */
CxTraced *cx_size_fit(CxTraced *x, int rank, const CiExpr *const *sizes);

/* Sets: whether two are alike in all that Python can see; items that become real in their places. */
PyObject *cx_are_placed_alike(PyObject *module, PyObject *args);
PyObject *cx_exchange_items(PyObject *module, PyObject *args);
/* At import: whether the layout of sets is the one that is known; -1 with an exception. */
int cx_check_sets(void);

#endif
