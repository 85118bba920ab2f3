/* Breaks: why Python had to run, each with the user's line. */
#include "graph.h"

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
