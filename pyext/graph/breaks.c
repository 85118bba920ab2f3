/* Records breaks: the reason why Python had to run, and the user's line. */
#include "graph/graph.h"
#include "graph/size.h"
#include "state/docs.h"

typedef struct CxBreak {
    PyObject_HEAD PyObject *reason, *file;
    int line;
    int own_line;  /* line in the compiled function's own frame; 0 if it is not running */
    bool is_inner; /* the break happened in a called function */
    bool is_late;  /* after an effect, so no check was possible */
} CxBreak;

static void
break_dealloc(PyObject *self)
{
    CxBreak *b = (CxBreak *)self;

    Py_XDECREF(b->reason);
    Py_XDECREF(b->file);
    cx_object_free(self);
}

static PyObject *
break_repr(PyObject *self)
{
    CxBreak *b = (CxBreak *)self;
    return PyUnicode_FromFormat("Break(%R, %R, %d)", b->reason, b->file, b->line);
}

static PyMemberDef break_members[] = {
    CX_MEMBER(Break, reason, T_OBJECT, CxBreak, reason, READONLY),
    CX_MEMBER(Break, file, T_OBJECT, CxBreak, file, READONLY),
    CX_MEMBER(Break, line, T_INT, CxBreak, line, READONLY),
    CX_MEMBER(Break, own_line, T_INT, CxBreak, own_line, READONLY),
    CX_MEMBER(Break, is_inner, T_BOOL, CxBreak, is_inner, READONLY),
    CX_MEMBER(Break, is_late, T_BOOL, CxBreak, is_late, READONLY),
    {NULL, 0, 0, 0, NULL},
};

CX_TYPE(cx_break_spec, Break, CxBreak, Py_TPFLAGS_DISALLOW_INSTANTIATION,
        CX_SLOT(Py_tp_dealloc, break_dealloc), CX_SLOT(Py_tp_repr, break_repr),
        CX_SLOT(Py_tp_members, break_members));

/* Finds the line of the compiled function: the outermost of its frames, because it may be
 * recursive. */
static void
find_own_line(CxTracer *tracer, CxBreak *b)
{
    PyFrameObject *frame = (PyFrameObject *)Py_XNewRef((PyObject *)cx_frame());
    int depth = 0;

    b->own_line = 0;
    b->is_inner = false;
    while (frame != NULL) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        bool is_own = (PyObject *)code == tracer->code;
        bool is_users = cx_code_is_users(tracer, code);
        Py_DECREF(code);
        if (is_own) {
            b->own_line = PyFrame_GetLineNumber(frame);
            b->is_inner = depth > 0;
        }
        depth += is_users;
        PyFrameObject *back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = back;
    }
}

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
        PyObject *error = PyObject_CallOneArg(tracer->on_break, reason);
        bool goes_on = error == Py_None;
        if (error != NULL && !goes_on)
            PyErr_SetObject((PyObject *)Py_TYPE(error), error);
        Py_XDECREF(error);
        if (!goes_on)
            return -1;
    }
    if (tracer->fullgraph) {
        PyObject *file = cx_path(loc.file);
        if (file != NULL)
            PyErr_Format(cx_exception(tracer->state, "Unsupported"), "%U:%d: %U (%U)", file,
                         loc.line, reason, tracer->whole);
        Py_XDECREF(file);
        return -1;
    }
    bool is_late = !cx_may_check(tracer);
    tracer->needs_python = true;
    b = PyObject_New(CxBreak, (PyTypeObject *)tracer->state->break_type);
    if (b == NULL)
        return -1;
    b->reason = Py_NewRef(reason);
    b->is_late = is_late;
    b->file = cx_path(loc.file);
    b->line = loc.line;
    find_own_line(tracer, b);
    if (b->file != NULL)
        result = PyList_Append(tracer->breaks, (PyObject *)b);
    Py_DECREF(b);
    return result;
}
