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
    PyObject *method, *late; /* method: None for a function that returns its argument */
    PyObject *passed;        /* classes of arguments that are returned as they are; NULL: none */
    bool is_quiet; /* runs no code of the user's: NumPy does not begin to run the rest in it */
} Hook;

/* The tracer of the call that a scope belongs to, or NULL: there is none, or an exception. */
static CxTracer *
tracer_of(const CxState *state, PyObject *stage)
{
    PyObject *tracer = stage != NULL && stage != Py_None ? PyObject_GetAttr(stage, state->str_tracer) : NULL;
    if (tracer != NULL && !Py_IS_TYPE(tracer, (PyTypeObject *)state->tracer_type))
        Py_CLEAR(tracer);
    return (CxTracer *)tracer;
}

/* The result of a function, made real because Python began to run the rest of the call in it. Takes the reference. */
static PyObject *
real_result(PyObject *stage, PyObject *result)
{
    PyObject *materialise = result != NULL ? PyObject_GetAttrString(stage, "materialise") : NULL;
    PyObject *real = materialise != NULL ? PyObject_CallOneArg(materialise, result) : NULL;
    Py_XDECREF(materialise);
    Py_XDECREF(result);
    return real;
}

/* True if the method returns its argument as it is. */
static bool
passes(const Hook *h, PyObject *const *args, size_t nargsf)
{
    return h->method == Py_None || (h->passed != NULL && PyVectorcall_NARGS(nargsf) == 2 &&
                                    PySet_Contains(h->passed, (PyObject *)Py_TYPE(args[1])) == 1);
}

static PyObject *
hook_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names)
{
    const Hook *h = (Hook *)self;
    if (PyVectorcall_NARGS(nargsf) < (h->method == Py_None ? 2 : 1))
        return PyErr_Format(PyExc_TypeError, "a method of nothing");
    PyObject *stage = PyObject_GetAttr(args[0], h->state->str_stage), *result = NULL;
    CxTracer *t = tracer_of(h->state, stage);
    bool failed = PyErr_Occurred() || (t != NULL && cx_tracer_step(t, h->is_quiet ? CX_QUIET_HOOK : CX_HOOK) < 0);
    bool is_passed = !failed && (t == NULL || !t->has_fallen_back) && passes(h, args, nargsf);

    if (is_passed)
        result = Py_NewRef(args[1]);
    else if (!failed && t == NULL)
        result = PyObject_Vectorcall(h->method, args, nargsf, names);
    else if (!failed && t->has_fallen_back)
        result = PyObject_Vectorcall(h->late, args, nargsf, names);
    else if (!failed) {
        result = PyObject_Vectorcall(t->effects > 0 ? h->late : h->method, args, nargsf, names);
        if (t->has_fallen_back)
            result = real_result(stage, result);
    }
    Py_XDECREF(t);
    Py_XDECREF(stage);
    return result;
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
    Py_VISIT(h->passed);
    return 0;
}

static int
hook_clear(PyObject *self)
{
    Hook *h = (Hook *)self;
    Py_CLEAR(h->method);
    Py_CLEAR(h->late);
    Py_CLEAR(h->passed);
    return 0;
}

static void
hook_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    hook_clear(self);
    cx_object_free(self);
}

/* Hook(method, late, is_quiet=False, passed=()) */
static PyObject *
hook_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *method = NULL, *late = NULL, *passed = NULL;
    int is_quiet = 0;

    (void)kwargs;
    if (!PyArg_ParseTuple(args, "OO|pO!:Hook", &method, &late, &is_quiet, &PyFrozenSet_Type, &passed))
        return NULL;
    Hook *h = (Hook *)type->tp_alloc(type, 0);
    if (h == NULL)
        return NULL;
    h->call = hook_call;
    h->state = PyType_GetModuleState(type);
    h->method = Py_NewRef(method);
    h->late = Py_NewRef(late);
    h->passed = Py_XNewRef(passed);
    h->is_quiet = is_quiet;
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
