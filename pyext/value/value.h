/* Functions that add values to the pending graph, compute the real values, and create views. */
#ifndef CX_VALUE_H
#define CX_VALUE_H

#include "graph/storage.h"

/* prepare.c: gives the value a node of the pending graph, so that cx_node is not NULL. */
int cx_traced_prepare(CxTraced *traced);
int cx_write_prepare(CxTraced *target, const char *readonly_message);
/* NumPy checks this first, before indices, shapes and casts. */
int cx_check_writable(const CxTraced *target, const char *message);
#define CX_OUTPUT_READONLY "output array is read-only"
#define CX_ASSIGNED_READONLY "assignment destination is read-only"

/* lift.c: functions that create Traced values from objects. */
PyObject *cx_tracer_array(CxTracer *tracer, PyObject *array, int source);
PyObject *cx_tracer_array_of(CxTracer *tracer, PyObject *array, int source,
                             const CiExpr *const *sizes, const CiExpr *const *paddings);
PyObject *cx_tracer_scalar(CxTracer *tracer, PyObject *value, int source);
/* Lifts any value to an operand. constant: the contents of an array never change from call to
 * call. */
PyObject *cx_tracer_lift(CxTracer *tracer, PyObject *value, CiDtype like, bool constant);
/* The operands of a real call, with traced values and with real ones; unused places are NULL. */
#define CX_GIVEN 3
typedef struct CxGiven {
    PyObject *values[CX_GIVEN], *reals[CX_GIVEN];
} CxGiven;
/* The result of a real call, which is stolen: its arrays become Traced, one that was an operand the
 * Traced of the operand. */
PyObject *cx_tracer_wrap(CxTracer *tracer, PyObject *real, CxGiven given);
bool cx_tracer_varies(CxTracer *tracer, PyObject *number);
/* cx_tracer_lift without conversion. */
CxTraced *cx_lifted(CxTracer *tracer, PyObject *value);

/* materialise.c */
/* Flushes if necessary; adds no guard, so it is for the end of the call. */
PyObject *cx_traced_real(CxTraced *traced);
/* Also adds a guard or a break, until Python is needed. */
PyObject *cx_traced_materialise(CxTraced *traced);
PyObject *cx_traced_concretize(CxTraced *traced,
                           const char *what); /* a break; values of kind python are guarded */
/* Guards the values from which this Python scalar was computed. */
int cx_tracer_specialize(CxStorage *storage);
/* A copy of nested tuples, lists and dicts with real values in place of Traced ones. */
PyObject *cx_materialise_tree(PyObject *object);
PyTypeObject *cx_python_class(const CxStorage *storage); /* of kind python */

/* assign.c */
/* True if NumPy warns of a cast. */
bool cx_loses_imaginary(CiDtype from, CiDtype to);
bool cx_is_same_view(const CxTraced *a, const CxTraced *b);
int cx_assign_value(CxTraced *target, PyObject *value, const char *readonly_message);

/* views.c */
PyObject *cx_make_permute(CxTraced *x, const int *axes);
PyObject *cx_make_reshape(CxTraced *x, int rank, const CiExpr *const *sizes);
PyObject *cx_make_slice(CxTraced *x, const CiExpr *const *starts, const CiExpr *const *steps,
                        const CiExpr *const *sizes);
PyObject *cx_make_expand(CxTraced *x, int rank, const CiExpr *const *sizes);
/* Like a result of NumPy's broadcast_arrays; cx_make_expand is its broadcast_to. */
PyObject *cx_make_broadcast(CxTraced *x, int rank, const CiExpr *const *sizes);
PyObject *cx_make_diagonal(CxTraced *x, int axis1, int axis2, const CiExpr *offset,
                           bool is_readonly);
PyObject *cx_make_window(CxTraced *x, int axis, const CiExpr *size);
/* The real or the imaginary part of x. is_fortran: the zeros that are a real array's imaginary part
 * are in Fortran order. */
PyObject *cx_make_part(CxTraced *x, bool imaginary, bool is_fortran);
/* x with these sizes for its last axes. They must be equal to its own sizes, though written
 * differently, because the graph proves less than capture. */
CxTraced *cx_size_fit(CxTraced *x, int rank, const CiExpr *const *sizes);

/* set_items.c: true if two sets are indistinguishable to Python code, including their order. */
PyObject *cx_are_placed_alike(PyObject *module, PyObject *args);
/* Replaces items of a set in their slots. */
PyObject *cx_exchange_items(PyObject *module, PyObject *args);
/* list_column.c: a list of numbers as an array, and the numbers of an array stored in the list. */
PyObject *cx_list_column(PyObject *module, PyObject *list);
PyObject *cx_store_column(PyObject *module, PyObject *args);
/* At import: checks that the layout of sets is the known one; -1 with an exception. */
int cx_check_sets(void);

#endif
