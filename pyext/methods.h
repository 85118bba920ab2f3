/* Tracer's methods, by the files that have them; surface.c has the others and the table. */
#ifndef CX_METHODS_H
#define CX_METHODS_H

#include "gil.h"

extern PyMethodDef cx_tracer_methods[];

/* symbols.c, python_math.c, size_method.c, facts.c */
PyObject *cx_tracer_number(PyObject *self, PyObject *args);
PyObject *cx_tracer_symbol(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *cx_tracer_layout(PyObject *self, PyObject *traced);
PyObject *cx_tracer_shape_guards(PyObject *self, PyObject *unused);
PyObject *cx_tracer_array_method(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *cx_tracer_scalar_method(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *cx_tracer_broadcast(PyObject *self, PyObject *items);
PyObject *cx_tracer_size_min(PyObject *self, PyObject *args);
PyObject *cx_tracer_size_max(PyObject *self, PyObject *args);
PyObject *cx_tracer_assume(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *cx_tracer_forget(PyObject *self, PyObject *token);

/* mark.c */
PyObject *cx_tracer_mark(PyObject *self, PyObject *unused);
PyObject *cx_tracer_restore(PyObject *self, PyObject *mark);
PyObject *cx_tracer_written(PyObject *self, PyObject *mark);
PyObject *cx_tracer_check(PyObject *self, PyObject *args);
PyObject *cx_tracer_is_before(PyObject *self, PyObject *args);
PyObject *cx_tracer_work_since(PyObject *self, PyObject *mark);
PyObject *cx_tracer_most(PyObject *self, PyObject *args);

/* block.c, region.c */
PyObject *cx_tracer_block(PyObject *self, PyObject *unused);
PyObject *cx_tracer_region(PyObject *self, PyObject *args);
PyObject *cx_tracer_set_version(PyObject *self, PyObject *args);
PyObject *cx_tracer_select(PyObject *self, PyObject *args);
PyObject *cx_tracer_same_type(PyObject *self, PyObject *args);

/* region_value.c, region_view.c, region_truths.c, mixed.c */
PyObject *cx_tracer_prepare(PyObject *self, PyObject *value);
PyObject *cx_tracer_settled(PyObject *self, PyObject *value);
PyObject *cx_tracer_as_python(PyObject *self, PyObject *value);
PyObject *cx_tracer_is_fixed(PyObject *self, PyObject *value);
PyObject *cx_tracer_at_least(PyObject *self, PyObject *args);
PyObject *cx_tracer_is_positive(PyObject *self, PyObject *value);
PyObject *cx_tracer_usually_positive(PyObject *self, PyObject *value);
PyObject *cx_tracer_forget_guards(PyObject *self, PyObject *mark);
PyObject *cx_tracer_define(PyObject *self, PyObject *args);
PyObject *cx_tracer_fitted(PyObject *self, PyObject *args);
PyObject *cx_tracer_last_value(PyObject *self, PyObject *args);
PyObject *cx_tracer_truths(PyObject *self, PyObject *args);
PyObject *cx_tracer_varying(PyObject *self, PyObject *args);
PyObject *cx_tracer_blank(PyObject *self, PyObject *args);
PyObject *cx_tracer_detached(PyObject *self, PyObject *value);
PyObject *cx_tracer_mixed(PyObject *self, PyObject *args);

/* indirect.c */
PyObject *cx_tracer_gather(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *cx_tracer_scatter(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *cx_tracer_compress(PyObject *self, PyObject *args);
PyObject *cx_tracer_may_check(PyObject *self, PyObject *unused);
PyObject *cx_tracer_undo(PyObject *self, PyObject *unused);

/* specialization.c */
PyObject *cx_tracer_finish(PyObject *self, PyObject *args, PyObject *kwargs);

#endif
