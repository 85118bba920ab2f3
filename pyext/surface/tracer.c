/* The type Tracer: the capture of one call of one function. Its methods are in surface.c. */
#include "graph/methods.h"
#include "program/program.h"
#include "value/index.h"

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
    Py_VISIT(t->on_force);
    Py_VISIT(t->on_build);
    return 0;
}

static int
tracer_clear(PyObject *self)
{
    CxTracer *t = (CxTracer *)self;
    Py_CLEAR(t->by_id);
    Py_CLEAR(t->kept);
    Py_CLEAR(t->breaks);
    Py_CLEAR(t->info);
    Py_CLEAR(t->program);
    Py_CLEAR(t->specialized);
    Py_CLEAR(t->saved);
    Py_CLEAR(t->on_break);
    Py_CLEAR(t->on_force);
    Py_CLEAR(t->on_build);
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
    cx_versions_forget(t);
    PyMem_Free(t->changes);
    tracer_clear(self);
    cx_defined_release(t);
    cx_facts_release(t);
    Py_XDECREF(t->name);
    Py_XDECREF(t->key);
    Py_XDECREF(t->option_values);
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
    type->tp_free(self);
    Py_DECREF(type);
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
    t->info = PyDict_New();
    t->by_id = PyDict_New();
    t->specialized = PyList_New(0);
    t->saved = PyDict_New();
    t->skip = PyTuple_New(0);
    t->fullgraph = whole != NULL && PyUnicode_GET_LENGTH(whole) != 0;
    t->whole = Py_XNewRef(whole);
    t->epoch = 1;
    if (!t->option_values || !t->breaks || !t->info || !t->by_id || !t->specialized || !t->saved ||
        !t->skip || PyUnicode_AsUTF8(name) == NULL ||
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
    {"is_full", get_is_full, NULL, "True if the pending graph has reached node_limit.", NULL},
    {"places", get_places, NULL, "File and line of each node of the pending graph.", NULL},
    {"backend", get_backend, set_backend, "The backend of later compiles; may be set.", NULL},
    {"flushes", get_flushes, NULL, "Graphs run so far.", NULL},
    {"nodes", get_nodes, NULL, "Number of nodes of the pending graph, without those inside of regions.",
     NULL},
    {"has_arrays", get_has_arrays, NULL, "True if an array that was met or made is still in use.", NULL},
    {"in_region", get_in_region, NULL, "True if a block is open.", NULL},
    {"last_program", get_program, NULL, "The Program of the latest flush.", NULL},
    {"user_frames_skip", get_skip, set_skip, "Directories whose frames are not the user's.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef tracer_members[] = {
    {"breaks", T_OBJECT, offsetof(CxTracer, breaks), READONLY, NULL},
    {"info", T_OBJECT, offsetof(CxTracer, info), READONLY, NULL},
    {"specialized", T_OBJECT, offsetof(CxTracer, specialized), READONLY,
     "(source, value) of the Python numbers whose values were needed."},
    {"name", T_OBJECT, offsetof(CxTracer, name), READONLY, NULL},
    {"useful", T_INT, offsetof(CxTracer, useful), READONLY,
     "Number of graphs run up to the last one with more than little work."},
    {"quiet", T_UINT, offsetof(CxTracer, quiet), 0,
     "Floating-point flags that the active errstate ignores."},
    {"is_inexact", T_BOOL, offsetof(CxTracer, is_inexact), READONLY,
     "True if results of graphs run so far may differ from NumPy's in the last bits."},
    {"has_fallen_back", T_BOOL, offsetof(CxTracer, has_fallen_back), 0, NULL},
    {"forbids_breaks", T_BOOL, offsetof(CxTracer, forbids_breaks), 0, NULL},
    {"on_break", T_OBJECT, offsetof(CxTracer, on_break), 0, NULL},
    {"constant", T_OBJECT, offsetof(CxTracer, constant), 0,
     "A function that makes an array that never changes an input, or None."},
    {"code", T_OBJECT, offsetof(CxTracer, code), 0,
     "The function's code object, in which breaks have their lines."},
    {"on_force", T_OBJECT, offsetof(CxTracer, on_force), 0, NULL},
    {"on_build", T_OBJECT, offsetof(CxTracer, on_build), 0,
     "on_build(program, plain, price, is_exact): called before a whole graph is built."},
    {"needs_python", T_BOOL, offsetof(CxTracer, needs_python), 0, NULL},
    {"effects", T_INT, offsetof(CxTracer, effects), 0,
     "Number of effects, which the original function would repeat."},
    {"leaves_open", T_BOOL, offsetof(CxTracer, leaves_open), 0, NULL},
    {"is_infeasible", T_BOOL, offsetof(CxTracer, is_infeasible), 0, NULL},
    {"is_dry", T_BOOL, offsetof(CxTracer, is_dry), 0, NULL},
    {"rent", T_DOUBLE, offsetof(CxTracer, rent), 0,
     "What part of a build's price a piece between breaks has to have run for, before it is built."},
    {"plain", T_DOUBLE, offsetof(CxTracer, plain), READONLY,
     "Seconds that NumPy may take for the graphs run so far."},
    {"price", T_DOUBLE, offsetof(CxTracer, price), READONLY,
     "Seconds that a compiler may take for them."},
    {"unbuilt", T_DOUBLE, offsetof(CxTracer, unbuilt), READONLY,
     "Those of them that were interpreted instead."},
    {"fullgraph", T_BOOL, offsetof(CxTracer, fullgraph), READONLY, NULL},
    {"last_storage", T_UINT, offsetof(CxTracer, last_storage), READONLY,
     "The serial number of the newest storage."},
    {"seconds", T_DOUBLE, offsetof(CxTracer, seconds), READONLY,
     "CPU time of this thread in the programs of this call."},
    {"float_flags", T_UINT, offsetof(CxTracer, float_flags), 0,
     "Flags raised by kernels of this call and not yet reported: 1 divide, 2 overflow, 4 underflow, "
     "8 invalid."},
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
    CX_TYPE_FLAGS | Py_TPFLAGS_HAVE_GC,
    tracer_slots,
};
