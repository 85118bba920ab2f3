/* The type Tracer: the capture of one call of one function. Its methods are in surface.c. */
#include "graph/methods.h"
#include "program/program.h"
#include "state/docs.h"
#include "value/index.h"

/* Objects of a tracer that may refer to it. */
#define OBJECTS(O)                                                                                 \
    O(by_id) O(kept) O(breaks) O(raised) O(info) O(program) O(option_values) O(specialized) O(saved) \
    O(on_break) O(on_concretize) O(on_build) O(on_step) O(on_flags) O(on_run) O(user_backend)

static int
tracer_traverse(PyObject *self, visitproc visit, void *arg)
{
    CxTracer *t = (CxTracer *)self;
    Py_VISIT(Py_TYPE(self));
#define VISIT(name) Py_VISIT(t->name);
    OBJECTS(VISIT)
    return 0;
}

static int
tracer_clear(PyObject *self)
{
    CxTracer *t = (CxTracer *)self;
#define CLEAR(name) Py_CLEAR(t->name);
    OBJECTS(CLEAR)
    return 0;
}

static void
tracer_dealloc(PyObject *self)
{
    CxTracer *t = (CxTracer *)self;

    PyObject_GC_UnTrack(self);
    for (int k = 0; k < t->ninputs; k++)
        cx_storage_release(t->inputs[k]);
    PyMem_Free(t->inputs);
    PyMem_Free(t->ran);
    PyMem_Free(t->open);
    cx_versions_forget(t);
    PyMem_Free(t->changes);
    tracer_clear(self);
    cx_defined_release(t);
    cx_facts_release(t);
    Py_XDECREF(t->name);
    Py_XDECREF(t->key);
    Py_XDECREF(t->skip);
    Py_XDECREF(t->cell);
    Py_XDECREF(t->code);
    Py_XDECREF(t->constant);
    Py_XDECREF(t->whole);
    if (t->ctx != NULL)
        ci_context_close(t->ctx);
    if (t->sym_ctx != NULL)
        ci_context_close(t->sym_ctx);
    if (t->state != NULL && !t->is_finished)
        t->state->compiling--;
    cx_object_free(self);
}

static PyObject *
tracer_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"name",      "options", "device", "backend",
                            "fullgraph", "key",     "keep",   NULL};
    PyObject *name = NULL, *options = NULL, *key = NULL, *keep = NULL;
    const char *device = "cpu", *backend = "";
    PyObject *whole = NULL;
    CxTracer *t = NULL;

    CX_ENTRY();
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "U|$O!ssUUO!:Tracer", names, &name, &PyDict_Type,
                                     &options, &device, &backend, &whole, &key, &PySet_Type,
                                     &keep))
        return NULL;
    t = (CxTracer *)type->tp_alloc(type, 0);
    if (t == NULL)
        return NULL;
    t->is_finished = true;
    t->name = Py_NewRef(name);
    t->key = Py_NewRef(key != NULL ? key : name);
    t->state = PyType_GetModuleState(type);
    t->kept = Py_NewRef(keep != NULL ? keep : t->state->segments_kept);
    t->option_values = options ? PyDict_Copy(options) : PyDict_New();
    t->breaks = PyList_New(0);
    t->raised = PyDict_New();
    t->info = PyDict_New();
    t->by_id = PyDict_New();
    t->specialized = PyList_New(0);
    t->saved = PyDict_New();
    t->skip = PyTuple_New(0);
    t->fullgraph = whole != NULL && PyUnicode_GET_LENGTH(whole) != 0;
    t->whole = Py_XNewRef(whole);
    t->epoch = 1;
    if (!t->option_values || !t->breaks || !t->raised || !t->info || !t->by_id ||
        !t->specialized || !t->saved || !t->skip || PyUnicode_AsUTF8(name) == NULL ||
        cx_options_fill(t->option_values, &t->options) < 0 || cx_symbols_open(t) < 0)
        goto fail;
    t->backend = ci_backend_find(t->state->runtime.registry, device, backend);
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
get_has_arrays(PyObject *self, void *closure)
{
    const CxStorage *s = ((CxTracer *)self)->storages;

    (void)closure;
    while (s != NULL && s->kind != CI_KIND_array)
        s = s->next;
    return PyBool_FromLong(s != NULL);
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
    if (value == NULL || !PyTuple_Check(value)) {
        PyErr_SetString(PyExc_TypeError, "a tuple of directories is expected");
        return -1;
    }
    Py_SETREF(t->skip, Py_NewRef(value));
    Py_CLEAR(t->cell);
    return 0;
}

static PyObject *
get_backend(PyObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(((CxTracer *)self)->backend->compiler->name);
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
    const char *device = t->backend->device->name;
    const CiBackend *backend = ci_backend_find(t->state->runtime.registry, device, name);
    if (backend == NULL) {
        PyErr_Format(PyExc_ValueError, "no backend '%s' of device '%s'", name, device);
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
        PyObject *place = Py_BuildValue("(Ni)", cx_path(node->loc.file), node->loc.line);
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
    CX_GETTER(Tracer, is_full, get_is_full, NULL, NULL),
    CX_GETTER(Tracer, places, get_places, NULL, NULL),
    CX_GETTER(Tracer, backend, get_backend, set_backend, NULL),
    CX_GETTER(Tracer, nodes, get_nodes, NULL, NULL),
    CX_GETTER(Tracer, has_arrays, get_has_arrays, NULL, NULL),
    CX_GETTER(Tracer, in_region, get_in_region, NULL, NULL),
    CX_GETTER(Tracer, user_frames_skip, get_skip, set_skip, NULL),
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef tracer_members[] = {
    CX_MEMBER(Tracer, breaks, T_OBJECT, CxTracer, breaks, READONLY),
    CX_MEMBER(Tracer, info, T_OBJECT, CxTracer, info, READONLY),
    CX_MEMBER(Tracer, last_program, T_OBJECT, CxTracer, program, READONLY),
    CX_MEMBER(Tracer, flushes, T_INT, CxTracer, flushes, READONLY),
    CX_MEMBER(Tracer, specialized, T_OBJECT, CxTracer, specialized, READONLY),
    CX_MEMBER(Tracer, name, T_OBJECT, CxTracer, name, READONLY),
    CX_MEMBER(Tracer, useful, T_INT, CxTracer, useful, READONLY),
    CX_MEMBER(Tracer, quiet, T_UINT, CxTracer, quiet, 0),
    CX_MEMBER(Tracer, call, T_UINT, CxTracer, call, 0),
    CX_MEMBER(Tracer, is_inexact, T_BOOL, CxTracer, is_inexact, READONLY),
    CX_MEMBER(Tracer, has_fallen_back, T_BOOL, CxTracer, has_fallen_back, 0),
    CX_MEMBER(Tracer, forbids_breaks, T_BOOL, CxTracer, forbids_breaks, 0),
    CX_MEMBER(Tracer, on_break, T_OBJECT, CxTracer, on_break, 0),
    CX_MEMBER(Tracer, constant, T_OBJECT, CxTracer, constant, 0),
    CX_MEMBER(Tracer, code, T_OBJECT, CxTracer, code, 0),
    CX_MEMBER(Tracer, on_concretize, T_OBJECT, CxTracer, on_concretize, 0),
    CX_MEMBER(Tracer, on_build, T_OBJECT, CxTracer, on_build, 0),
    CX_MEMBER(Tracer, on_step, T_OBJECT, CxTracer, on_step, 0),
    CX_MEMBER(Tracer, steps, T_UINT, CxTracer, steps, 0),
    CX_MEMBER(Tracer, on_flags, T_OBJECT, CxTracer, on_flags, 0),
    CX_MEMBER(Tracer, on_run, T_OBJECT, CxTracer, on_run, 0),
    CX_MEMBER(Tracer, user_backend, T_OBJECT, CxTracer, user_backend, 0),
    CX_MEMBER(Tracer, needs_python, T_BOOL, CxTracer, needs_python, 0),
    CX_MEMBER(Tracer, effects, T_INT, CxTracer, effects, 0),
    CX_MEMBER(Tracer, leaves_open, T_BOOL, CxTracer, leaves_open, 0),
    CX_MEMBER(Tracer, is_infeasible, T_BOOL, CxTracer, is_infeasible, 0),
    CX_MEMBER(Tracer, is_dry, T_BOOL, CxTracer, is_dry, 0),
    CX_MEMBER(Tracer, rent, T_DOUBLE, CxTracer, rent, 0),
    CX_MEMBER(Tracer, plain, T_DOUBLE, CxTracer, plain, READONLY),
    CX_MEMBER(Tracer, price, T_DOUBLE, CxTracer, price, READONLY),
    CX_MEMBER(Tracer, unbuilt, T_DOUBLE, CxTracer, unbuilt, READONLY),
    CX_MEMBER(Tracer, fullgraph, T_BOOL, CxTracer, fullgraph, READONLY),
    CX_MEMBER(Tracer, last_storage, T_UINT, CxTracer, last_storage, READONLY),
    CX_MEMBER(Tracer, seconds, T_DOUBLE, CxTracer, seconds, READONLY),
    CX_MEMBER(Tracer, float_flags, T_UINT, CxTracer, float_flags, 0),
    CX_MEMBER(Tracer, raised, T_OBJECT, CxTracer, raised, READONLY),
    {NULL, 0, 0, 0, NULL},
};

CX_TYPE(cx_tracer_spec, Tracer, CxTracer, Py_TPFLAGS_HAVE_GC,
        CX_SLOT(Py_tp_new, tracer_new), CX_SLOT(Py_tp_dealloc, tracer_dealloc),
        CX_SLOT(Py_tp_traverse, tracer_traverse), CX_SLOT(Py_tp_clear, tracer_clear),
        CX_SLOT(Py_tp_methods, cx_tracer_methods), CX_SLOT(Py_tp_members, tracer_members),
        CX_SLOT(Py_tp_getset, tracer_getset));
