/* Methods of the scope object that rewritten code calls (capture/hooks). Each has a Python
 * function and a second one, which is called instead if the call has fallen back, or after an
 * effect, when an internal error must not lose what has happened.
 *
 * Until then the test costs one read of the tracer. Each call is a step of the capture, which may
 * end in it. */
#include "state/state.h"

#include "graph/tracer.h"
#include "state/docs.h"
#include "surface/register.h"

typedef struct Hook {
    PyObject_HEAD vectorcallfunc call;
    CxState *state;
    PyObject *method, *late;
} Hook;

/* 1: the second function is called; 0; -1. */
static int
is_late(const CxState *state, PyObject *scope)
{
    PyObject *stage = PyObject_GetAttr(scope, state->str_stage), *tracer = NULL;
    int answer = stage == NULL ? -1 : 0;

    if (answer == 0 && stage != Py_None) {
        tracer = PyObject_GetAttr(stage, state->str_tracer);
        answer = tracer == NULL ? -1 : 0;
        if (tracer != NULL && Py_IS_TYPE(tracer, (PyTypeObject *)state->tracer_type)) {
            CxTracer *t = (CxTracer *)tracer;
            answer = cx_tracer_step(t, true) < 0 ? -1 : t->has_fallen_back || t->effects > 0;
        }
    }
    Py_XDECREF(stage);
    Py_XDECREF(tracer);
    return answer;
}

static PyObject *
hook_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names)
{
    const Hook *h = (Hook *)self;
    if (PyVectorcall_NARGS(nargsf) == 0)
        return PyErr_Format(PyExc_TypeError, "a method of nothing");
    int late = is_late(h->state, args[0]);
    return late < 0 ? NULL : PyObject_Vectorcall(late ? h->late : h->method, args, nargsf, names);
}

static PyObject *
hook_get(PyObject *self, PyObject *object, PyObject *type)
{
    (void)type;
    return object == NULL ? Py_NewRef(self) : PyMethod_New(self, object);
}

static int
hook_traverse(PyObject *self, visitproc visit, void *arg)
{
    Hook *h = (Hook *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(h->method);
    Py_VISIT(h->late);
    return 0;
}

static int
hook_clear(PyObject *self)
{
    Hook *h = (Hook *)self;
    Py_CLEAR(h->method);
    Py_CLEAR(h->late);
    return 0;
}

static void
hook_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    hook_clear(self);
    cx_object_free(self);
}

/* Hook(method, late) */
static PyObject *
hook_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *method = NULL, *late = NULL;

    (void)kwargs;
    if (!PyArg_ParseTuple(args, "OO:Hook", &method, &late))
        return NULL;
    Hook *h = (Hook *)type->tp_alloc(type, 0);
    if (h == NULL)
        return NULL;
    h->call = hook_call;
    h->state = PyType_GetModuleState(type);
    h->method = Py_NewRef(method);
    h->late = Py_NewRef(late);
    return (PyObject *)h;
}

static PyMemberDef hook_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Hook, call), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

CX_TYPE(cx_hook_spec, Hook, Hook,
        Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
        CX_SLOT(Py_tp_new, hook_new), CX_SLOT(Py_tp_dealloc, hook_dealloc),
        CX_SLOT(Py_tp_traverse, hook_traverse), CX_SLOT(Py_tp_clear, hook_clear),
        CX_SLOT(Py_tp_call, PyVectorcall_Call), CX_SLOT(Py_tp_descr_get, hook_get),
        CX_SLOT(Py_tp_members, hook_members));
