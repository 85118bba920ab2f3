/* The slots of the type Traced, by the files that define them. */
#ifndef CX_TRACED_H
#define CX_TRACED_H

#include "value/value.h"

extern PyType_Spec cx_traced_spec;

/* traced_attribute.c */
extern PyGetSetDef cx_traced_getset[];
PyTypeObject *cx_traced_class(const CxTraced *traced); /* the class of the real value; borrowed */
/* True if it views the real or imaginary parts of a complex storage. */
bool cx_is_part(const CxTraced *traced);
/* 1 if its strides alone make it C-contiguous, for all sizes; 0 or -1. */
int cx_has_dense_steps(CxTraced *traced);

/* traced_number.c */
PyObject *cx_richcompare(PyObject *a, PyObject *b, int op);
PyObject *cx_power(PyObject *a, PyObject *b, PyObject *modulo);
PyObject *cx_inplace_power(PyObject *a, PyObject *b, PyObject *modulo);
PyObject *cx_divmod(PyObject *a, PyObject *b);
PyObject *cx_int(PyObject *self);
PyObject *cx_float(PyObject *self);
PyObject *cx_index(PyObject *self);
PyObject *cx_repr(PyObject *self);
PyObject *cx_str(PyObject *self);
int cx_bool(PyObject *self);
Py_hash_t cx_hash(PyObject *self);
int cx_contains(PyObject *self, PyObject *item);
/* True if Python shall repeat an operation that failed, whose exception is then cleared. */
bool cx_is_refused(const CxTracer *tracer, bool are_single);
int cx_getbuffer(PyObject *self, Py_buffer *view, int flags);

/* traced_index.c */
PyObject *cx_subscript(PyObject *self, PyObject *key);
int cx_ass_subscript(PyObject *self, PyObject *key, PyObject *value);
PyObject *cx_item(PyObject *self, Py_ssize_t i);
Py_ssize_t cx_length(PyObject *self);
PyObject *cx_iterate(PyObject *self);

/* traced_method.c */
extern PyType_Spec cx_bound_method_spec;
PyObject *cx_traced_known(PyObject *self, PyObject *unused);
PyObject *cx_bound_method_new(CxTraced *traced, PyObject *name,
                              PyObject *handler); /* handler NULL: there is none */

#endif
