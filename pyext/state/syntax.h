/* Nodes of Python's syntax trees, as objects of `_ast`. */
#ifndef CX_SYNTAX_H
#define CX_SYNTAX_H

#include "state/array.h"

/* True if a node has exactly this class of `_ast`; find_syntax has been called. */
#define CX_IS_NODE(state, node, name) Py_IS_TYPE(node, (PyTypeObject *)(state)->syntax[CX_SYNTAX_##name])

int cx_find_syntax(CxState *state);
PyObject *cx_attributes_of(PyObject *node); /* the __dict__ of a node, borrowed from it; NULL with an exception */
PyObject *cx_field_of(PyObject *node, PyObject *name); /* borrowed; NULL, mostly without an exception, if it has none */
int cx_copy_location(const CxState *state, PyObject *to, PyObject *from);
int cx_append_parts(const CxState *state, PyObject *found, PyObject *node); /* appends the child nodes, in order */
PyObject *cx_walk(CxState *state, PyObject *node);
PyObject *cx_new_call(CxState *state, PyObject *at, PyObject *method, PyObject *args, PyObject *keywords);
PyObject *cx_new_constant(CxState *state, PyObject *at, PyObject *value);

#endif
