/* The Tracer: one call of one function being traced; how values enter, and why Python had to run.
 */
#include "array.h"
#include "build.h"
#include "methods.h"
#include "program.h"
#include "size.h"

typedef struct CxBreak {
    PyObject_HEAD PyObject *reason, *file;
    int line;
} CxBreak;

static void
break_dealloc(PyObject *self)
{
    CxBreak *b = (CxBreak *)self;
    PyTypeObject *type = Py_TYPE(self);

    Py_XDECREF(b->reason);
    Py_XDECREF(b->file);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *
break_repr(PyObject *self)
{
    CxBreak *b = (CxBreak *)self;
    return PyUnicode_FromFormat("Break(%R, %R, %d)", b->reason, b->file, b->line);
}

static PyMemberDef break_members[] = {
    {"reason", T_OBJECT, offsetof(CxBreak, reason), READONLY, "What Python had to do."},
    {"file", T_OBJECT, offsetof(CxBreak, file), READONLY, NULL},
    {"line", T_INT, offsetof(CxBreak, line), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot break_slots[] = {
    CX_SLOT(Py_tp_dealloc, break_dealloc),
    CX_SLOT(Py_tp_repr, break_repr),
    CX_SLOT(Py_tp_members, break_members),
    {Py_tp_doc, "One reason why Python had to run."},
    {0, NULL},
};

PyType_Spec cx_break_spec = {
    "cinductor._core.Break",
    sizeof(CxBreak),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    break_slots,
};

/* Appends a Break at the user's line, or raises it under fullgraph. */
int
cx_tracer_note(CxTracer *tracer, PyObject *reason)
{
    CiLoc loc = cx_location(tracer);
    CxBreak *b = NULL;
    int result = -1;

    if (tracer->nblocks != 0 || tracer->forbids_breaks)
        return cx_region_break(tracer, "%U", reason);
    if (tracer->on_break != NULL && tracer->on_break != Py_None && tracer->flushes == 0 &&
        PyList_GET_SIZE(tracer->breaks) == 0) {
        PyErr_SetObject(tracer->on_break, reason);
        return -1;
    }
    if (tracer->fullgraph) {
        PyErr_Format(cx_exception(tracer->state, "Unsupported"), "%s:%d: %U (fullgraph=True)",
                     loc.file, loc.line, reason);
        return -1;
    }
    tracer->needs_python = true;
    b = PyObject_New(CxBreak, (PyTypeObject *)tracer->state->break_type);
    if (b == NULL)
        return -1;
    b->reason = Py_NewRef(reason);
    b->file = PyUnicode_FromString(loc.file);
    b->line = loc.line;
    if (b->file != NULL)
        result = PyList_Append(tracer->breaks, (PyObject *)b);
    Py_DECREF(b);
    return result;
}

int
cx_tracer_break(CxTracer *tracer, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    PyObject *reason = PyUnicode_FromFormatV(format, args);
    va_end(args);
    if (reason == NULL)
        return -1;
    int failed = cx_tracer_note(tracer, reason);
    Py_DECREF(reason);
    return failed < 0 ? -1 : cx_tracer_flush(tracer, NULL, 0, true);
}

/* Notes that the values which this Python scalar came from are demanded. */
int
cx_tracer_specialize(CxStorage *s)
{
    int result = 0;

    if (s == NULL)
        return 0;
    if (s->expr != NULL) /* each time anew: a guard may have been forgotten since */
        return cx_size_demand(s->tracer, s->expr, "Python") < 0 && PyErr_Occurred() ? -1 : 0;
    if (s->is_specialized)
        return 0;
    s->is_specialized = true;
    if (s->source >= 0) {
        PyObject *pair = Py_BuildValue("(iO)", s->source, s->value);
        result = pair == NULL ? -1 : PyList_Append(s->tracer->specialized, pair);
        Py_XDECREF(pair);
    }
    if (result == 0 && cx_tracer_specialize(s->parents[0]) == 0)
        return cx_tracer_specialize(s->parents[1]);
    return -(result != 0);
}

PyObject *
cx_tracer_array(CxTracer *tracer, PyObject *array, int source)
{
    return cx_tracer_array_of(tracer, array, source, NULL, NULL);
}

PyObject *
cx_tracer_array_of(CxTracer *tracer, PyObject *array, int source, const CiExpr *const *sizes,
                   const CiExpr *const *strides)
{
    PyObject *key = NULL, *traced = NULL;
    int failed = 0;

    if (!PyArray_CheckExact(array)) {
        PyErr_Format(PyExc_TypeError, "an ndarray is expected, not %s", Py_TYPE(array)->tp_name);
        return NULL;
    }
    key = PyLong_FromVoidPtr(array);
    if (key == NULL)
        return NULL;
    traced = cx_dict_find(tracer->by_id, key, &failed);
    if (traced != NULL) {
        CxStorage *s = ((CxTraced *)traced)->storage;
        if (s->source < 0)
            s->source = source;
        Py_INCREF(traced);
    } else if (!failed) {
        traced = cx_traced_new(tracer, cx_storage_from_array(tracer, array, source, sizes, strides),
                               NULL);
        if (traced != NULL && PyDict_SetItem(tracer->by_id, key, traced) < 0)
            Py_CLEAR(traced);
    }
    Py_DECREF(key);
    return traced;
}

PyObject *
cx_tracer_scalar(CxTracer *tracer, PyObject *value, int source)
{
    CiDtype dtype = CI_DTYPE_none;
    CiKind kind = CI_KIND_python;
    bool is_strong = false;
    int code = cx_code_of_number(value, &is_strong);

    if (is_strong) {
        dtype = (CiDtype)code;
        kind = CI_KIND_scalar;
    } else if (code == CX_WEAK_float)
        dtype = CI_DTYPE_f64;
    else if (code == CX_WEAK_complex)
        dtype = CI_DTYPE_c128;
    else if (code == CX_WEAK_int)
        dtype = CI_DTYPE_i64;
    else if (code == CI_DTYPE_bool)
        dtype = CI_DTYPE_bool;
    else {
        PyErr_SetString(PyExc_TypeError, "a float, complex, int or bool is expected");
        return NULL;
    }
    CxStorage *s = cx_storage_new(tracer, kind, dtype, 0);
    if (s == NULL)
        return NULL;
    s->value = Py_NewRef(value);
    s->source = source;
    return cx_traced_new(tracer, s, NULL);
}

/* Once Python had to run, a number may be another one in each call: then it is no constant of the
 * graph. */
bool
cx_tracer_varies(CxTracer *tracer, PyObject *value)
{
    if (PyList_GET_SIZE(tracer->breaks) == 0)
        return false;
    if (PyLong_CheckExact(value)) {
        int overflow = 0;
        (void)PyLong_AsLongLongAndOverflow(value, &overflow);
        return overflow == 0;
    }
    return PyFloat_Check(value) || PyComplex_CheckExact(value) || PyArray_IsScalar(value, Number);
}

static PyObject *
lift_number(CxTracer *tracer, PyObject *value, CiDtype like)
{
    PyObject *typed = NULL, *result = NULL;

    if (like != CI_DTYPE_none) { /* as the NumPy scalar of that dtype, checked as NumPy checks it */
        typed = PyObject_CallOneArg((PyObject *)cx_descr(tracer->state, like)->typeobj, value);
        if (typed == NULL)
            return NULL;
        value = typed;
    }
    bool varies = cx_tracer_varies(tracer, value);
    result = cx_tracer_scalar(tracer, value, varies ? CX_SOURCE_unknown : CX_SOURCE_constant);
    Py_XDECREF(typed);
    return result;
}

enum { MAX_EMBEDDED = 64 };

/* The elements of a small constant array, joined along one axis. */
static PyObject *
embed_elements(CxTracer *tracer, PyArrayObject *array, CiDtype dtype)
{
    CxTraced *parts[MAX_EMBEDDED] = {NULL};
    const CiExpr *sizes[CI_MAX_RANK];
    int n = (int)PyArray_SIZE(array), size = ci_dtype_size(dtype);
    PyObject *flat = PyArray_Ravel(array, NPY_CORDER), *joined = NULL, *result = NULL;

    if (flat == NULL || cx_size_consts(tracer, PyArray_NDIM(array),
                                       (const int64_t *)PyArray_DIMS(array), sizes) < 0)
        goto done;
    for (int k = 0; k < n; k++) {
        CiConst value =
            ci_const_load(dtype, PyArray_BYTES((PyArrayObject *)flat) + (npy_intp)k * size);
        parts[k] = (CxTraced *)cx_traced_from_node(
            tracer, cx_build_fill(tracer, dtype, 1, &tracer->one, NULL, &value), CI_KIND_array);
        if (parts[k] == NULL)
            goto done;
    }
    joined = cx_traced_from_node(tracer, cx_build_concat(tracer, n, parts, 0), CI_KIND_array);
    if (joined != NULL)
        result = cx_make_reshape((CxTraced *)joined, PyArray_NDIM(array), sizes);
done:
    for (int k = 0; k < n; k++)
        Py_XDECREF(parts[k]);
    Py_XDECREF(joined);
    Py_XDECREF(flat);
    return result;
}

static PyObject *
lift_array(CxTracer *tracer, PyObject *value, CiDtype like, bool constant)
{
    PyArrayObject *array = NULL;
    PyObject *result = NULL;
    const CiExpr *sizes[CI_MAX_RANK];
    CiDtype dtype;

    if (like != CI_DTYPE_none) {
        PyArray_Descr *descr = cx_descr(tracer->state, like);
        Py_INCREF(descr);
        array = (PyArrayObject *)PyArray_CastToType((PyArrayObject *)value, descr, 0);
    } else if (constant) {
        array = (PyArrayObject *)Py_NewRef(value);
    } else { /* Python may change it before the graph runs */
        array = (PyArrayObject *)PyArray_NewCopy((PyArrayObject *)value, NPY_KEEPORDER);
    }
    if (array == NULL)
        return NULL;
    dtype = cx_dtype_of_descr(PyArray_DESCR(array));
    if (constant && dtype != CI_DTYPE_none && PyArray_SIZE(array) == 1) {
        CiConst element = ci_const_load(dtype, PyArray_DATA(array));
        int rank = PyArray_NDIM(array);
        if (cx_size_consts(tracer, rank, (const int64_t *)PyArray_DIMS(array), sizes) == 0)
            result = cx_traced_from_node(
                tracer, cx_build_fill(tracer, dtype, rank, sizes, NULL, &element), CI_KIND_array);
    } else if (constant && dtype != CI_DTYPE_none && PyArray_SIZE(array) > 1 &&
               PyArray_SIZE(array) <= MAX_EMBEDDED) {
        result = embed_elements(tracer, array, dtype);
    } else {
        result = cx_traced_new(
            tracer, cx_storage_from_array(tracer, (PyObject *)array, CX_SOURCE_unknown, NULL, NULL),
            NULL);
    }
    Py_DECREF(array);
    return result;
}

PyObject *
cx_tracer_lift(CxTracer *tracer, PyObject *value, CiDtype like, bool constant)
{
    PyObject *array = NULL, *result = NULL;
    bool is_strong = false;

    if (cx_is_traced(value)) {
        if (((CxTraced *)value)->tracer == tracer)
            return Py_NewRef(value);
        array = cx_traced_concrete((CxTraced *)value);
        result = array == NULL ? NULL : cx_tracer_lift(tracer, array, like, false);
        Py_XDECREF(array);
        return result;
    }
    if (cx_code_of_number(value, &is_strong) >= 0)
        return lift_number(tracer, value, like);
    if (PyArray_CheckExact(value))
        return lift_array(tracer, value, like, constant);
    array = PyArray_FROM_O(value);
    if (array != NULL && PyArray_CheckExact(array))
        result = lift_array(tracer, array, like, true);
    else if (array != NULL)
        PyErr_SetString(cx_exception(tracer->state, "Unsupported"),
                        "a subclass of ndarray is not traced");
    Py_XDECREF(array);
    return result;
}

PyObject *
cx_tracer_wrap(CxTracer *tracer, PyObject *real)
{
    if (real == NULL)
        return NULL;
    if (PyArray_CheckExact(real)) {
        PyObject *traced = cx_tracer_array(tracer, real, CX_SOURCE_unknown);
        if (traced == NULL && PyErr_ExceptionMatches(cx_exception(tracer->state, "Unsupported"))) {
            PyErr_Clear();
            return real;
        }
        Py_DECREF(real);
        return traced;
    }
    if (PyTuple_CheckExact(real) || PyList_CheckExact(real)) {
        PyObject *list = PySequence_List(real);
        for (Py_ssize_t k = 0; list != NULL && k < PyList_GET_SIZE(list); k++) {
            PyObject *item = cx_tracer_wrap(tracer, Py_NewRef(PyList_GET_ITEM(list, k)));
            if (item == NULL)
                Py_CLEAR(list);
            else
                PyList_SetItem(list, k, item);
        }
        PyObject *result =
            list != NULL && PyTuple_CheckExact(real) ? PyList_AsTuple(list) : Py_XNewRef(list);
        Py_XDECREF(list);
        Py_DECREF(real);
        return result;
    }
    return real;
}

/* No graph is built from here on. */
void
cx_tracer_end(CxTracer *t)
{
    if (!t->is_finished)
        t->state->compiling--;
    t->is_finished = true;
    PyDict_Clear(t->by_id);
}

static int
tracer_traverse(PyObject *self, visitproc visit, void *arg)
{
    CxTracer *t = (CxTracer *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(t->by_id);
    Py_VISIT(t->breaks);
    Py_VISIT(t->info);
    Py_VISIT(t->program);
    Py_VISIT(t->option_values);
    Py_VISIT(t->specialized);
    Py_VISIT(t->saved);
    Py_VISIT(t->on_break);
    return 0;
}

static int
tracer_clear(PyObject *self)
{
    CxTracer *t = (CxTracer *)self;
    Py_CLEAR(t->by_id);
    Py_CLEAR(t->breaks);
    Py_CLEAR(t->info);
    Py_CLEAR(t->program);
    Py_CLEAR(t->specialized);
    Py_CLEAR(t->saved);
    Py_CLEAR(t->on_break);
    return 0;
}

static void
tracer_dealloc(PyObject *self)
{
    CxTracer *t = (CxTracer *)self;
    PyTypeObject *type = Py_TYPE(self);

    PyObject_GC_UnTrack(self);
    for (int k = 0; k < t->ninputs; k++)
        cx_storage_release(t->inputs[k]);
    PyMem_Free(t->inputs);
    PyMem_Free(t->ran);
    PyMem_Free(t->open);
    tracer_clear(self);
    cx_defined_release(t);
    cx_facts_release(t);
    Py_XDECREF(t->name);
    Py_XDECREF(t->key);
    Py_XDECREF(t->option_values);
    Py_XDECREF(t->skip);
    Py_XDECREF(t->cell);
    if (t->ctx != NULL)
        ci_context_close(t->ctx);
    if (t->sym_ctx != NULL)
        ci_context_close(t->sym_ctx);
    if (t->state != NULL && !t->is_finished)
        t->state->compiling--;
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *
tracer_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"name", "options", "device", "backend", "fullgraph", "key", NULL};
    PyObject *name = NULL, *options = NULL, *key = NULL;
    const char *device = "cpu", *backend = "";
    int fullgraph = 0;
    CxTracer *t = NULL;

    CX_ENTRY();
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "U|$O!sspU:Tracer", names, &name, &PyDict_Type,
                                     &options, &device, &backend, &fullgraph, &key))
        return NULL;
    t = (CxTracer *)type->tp_alloc(type, 0);
    if (t == NULL)
        return NULL;
    t->is_finished = true;
    t->name = Py_NewRef(name);
    t->key = Py_NewRef(key != NULL ? key : name);
    t->state = PyType_GetModuleState(type);
    t->option_values = options ? PyDict_Copy(options) : PyDict_New();
    t->breaks = PyList_New(0);
    t->info = PyDict_New();
    t->by_id = PyDict_New();
    t->specialized = PyList_New(0);
    t->saved = PyDict_New();
    t->skip =
        t->state->skip_file ? PyUnicode_FromString(t->state->skip_file) : PyUnicode_FromString("");
    t->fullgraph = fullgraph != 0;
    t->epoch = 1;
    if (!t->option_values || !t->breaks || !t->info || !t->by_id || !t->specialized || !t->saved ||
        !t->skip || PyUnicode_AsUTF8(name) == NULL ||
        cx_options_fill(t->option_values, &t->options) < 0 || cx_symbols_open(t) < 0)
        goto fail;
    t->backend = ci_backend_find(device, backend);
    if (t->backend == NULL) {
        PyErr_Format(PyExc_ValueError, "no backend '%s' of device '%s'", backend, device);
        goto fail;
    }
    t->is_finished = false;
    t->state->compiling++;
    return (PyObject *)t;
fail:
    Py_DECREF(t);
    return NULL;
}

static PyObject *
get_flushes(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromLong(((CxTracer *)self)->flushes);
}

static PyObject *
get_nodes(PyObject *self, void *closure)
{
    const CxTracer *t = (CxTracer *)self;
    (void)closure;
    return PyLong_FromLong(t->graph ? t->graph->body->nnodes : 0);
}

static PyObject *
get_in_region(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(((CxTracer *)self)->nblocks != 0);
}

static PyObject *
get_skip(PyObject *self, void *closure)
{
    (void)closure;
    return Py_NewRef(((CxTracer *)self)->skip);
}

static int
set_skip(PyObject *self, PyObject *value, void *closure)
{
    CxTracer *t = (CxTracer *)self;
    (void)closure;
    if (value == NULL || !PyUnicode_Check(value)) {
        PyErr_SetString(PyExc_TypeError, "a directory is expected");
        return -1;
    }
    Py_SETREF(t->skip, Py_NewRef(value));
    Py_CLEAR(t->cell);
    return 0;
}

static PyObject *
get_program(PyObject *self, void *closure)
{
    CxTracer *t = (CxTracer *)self;
    (void)closure;
    return Py_NewRef(t->program != NULL ? t->program : Py_None);
}

static PyObject *
get_backend(PyObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(((CxTracer *)self)->backend->name);
}

static int
set_backend(PyObject *self, PyObject *value, void *closure)
{
    CxTracer *t = (CxTracer *)self;
    const char *name = value ? PyUnicode_AsUTF8(value) : NULL;
    (void)closure;
    if (name == NULL) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_AttributeError, "a tracer has a backend");
        return -1;
    }
    const CiBackend *backend = ci_backend_find(t->backend->device, name);
    if (backend == NULL) {
        PyErr_Format(PyExc_ValueError, "no backend '%s' of device '%s'", name, t->backend->device);
        return -1;
    }
    t->backend = backend;
    return 0;
}

static PyObject *
get_is_full(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(cx_graph_is_full((CxTracer *)self));
}

static int
append_places(PyObject *list, const CiBlock *block)
{
    for (int k = 0; k < block->nnodes; k++) {
        const CiNode *node = block->nodes[k];
        PyObject *place = Py_BuildValue("(si)", node->loc.file ? node->loc.file : "", node->loc.line);
        int status = place ? PyList_Append(list, place) : -1;
        Py_XDECREF(place);
        for (int b = 0; b < node->nblocks && status == 0; b++)
            status = append_places(list, node->blocks[b]);
        if (status < 0)
            return -1;
    }
    return 0;
}

static PyObject *
get_places(PyObject *self, void *closure)
{
    const CxTracer *t = (const CxTracer *)self;
    PyObject *list = PyList_New(0);
    (void)closure;
    if (list != NULL && t->graph != NULL && append_places(list, t->graph->body) < 0)
        Py_CLEAR(list);
    return list;
}

static PyGetSetDef tracer_getset[] = {
    {"is_full", get_is_full, NULL, "Whether the pending graph has reached node_limit.", NULL},
    {"places", get_places, NULL, "File and line of each node of the pending graph.", NULL},
    {"backend", get_backend, set_backend, "What compiles from now on; may be set.", NULL},
    {"flushes", get_flushes, NULL, "Graphs run so far.", NULL},
    {"nodes", get_nodes, NULL, "Of the graph that is pending, those inside of regions left out.",
     NULL},
    {"in_region", get_in_region, NULL, "Whether a block is open.", NULL},
    {"last_program", get_program, NULL, "The Program of the latest flush.", NULL},
    {"user_frames_skip", get_skip, set_skip, "Directory whose frames are not the user's.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef tracer_members[] = {
    {"breaks", T_OBJECT, offsetof(CxTracer, breaks), READONLY, NULL},
    {"info", T_OBJECT, offsetof(CxTracer, info), READONLY, NULL},
    {"name", T_OBJECT, offsetof(CxTracer, name), READONLY, NULL},
    {"elements", T_LONGLONG, offsetof(CxTracer, nelements), READONLY,
     "Made by the runs of this call."},
    {"forbids_breaks", T_BOOL, offsetof(CxTracer, forbids_breaks), 0, NULL},
    {"on_break", T_OBJECT, offsetof(CxTracer, on_break), 0, NULL},
    {"needs_python", T_BOOL, offsetof(CxTracer, needs_python), 0, NULL},
    {"interprets_light", T_BOOL, offsetof(CxTracer, interprets_light), 0, NULL},
    {"fullgraph", T_BOOL, offsetof(CxTracer, fullgraph), READONLY, NULL},
    {"float_flags", T_UINT, offsetof(CxTracer, float_flags), READONLY,
     "1 divide, 2 overflow, 4 underflow, 8 invalid: what kernels of this call raised."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot tracer_slots[] = {
    CX_SLOT(Py_tp_new, tracer_new),
    CX_SLOT(Py_tp_dealloc, tracer_dealloc),
    CX_SLOT(Py_tp_traverse, tracer_traverse),
    CX_SLOT(Py_tp_clear, tracer_clear),
    CX_SLOT(Py_tp_methods, cx_tracer_methods),
    CX_SLOT(Py_tp_members, tracer_members),
    CX_SLOT(Py_tp_getset, tracer_getset),
    {Py_tp_doc, "One call's tracing."},
    {0, NULL},
};

PyType_Spec cx_tracer_spec = {
    "cinductor._core.Tracer",
    sizeof(CxTracer),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    tracer_slots,
};
