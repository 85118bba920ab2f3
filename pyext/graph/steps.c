/* Steps of a capture: calls of hooks, traced values, and items of containers that capture handles one by one. Each
 * CX_STEPS-th checks the time that the capture has taken, whatever construct of Python it is part of. */
#include "graph/methods.h"
#include "graph/tracer.h"
#include "state/docs.h"

enum { CX_STEPS = 16 };

int
cx_tracer_step(CxTracer *t, CxStep step)
{
    if (t->on_step == NULL || t->on_step == Py_None || t->has_fallen_back || t->is_busy || ++t->steps % CX_STEPS != 0)
        return 0;
    PyObject *asked = Py_NewRef(t->on_step);
    PyObject *done = PyObject_CallOneArg(asked, step == CX_HOOK ? Py_True : step == CX_VALUE ? Py_False : Py_None);
    Py_DECREF(asked);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* step() */
PyObject *
cx_method_step(PyObject *self, PyObject *unused)
{
    (void)unused;
    if (cx_tracer_step((CxTracer *)self, CX_VALUE) < 0)
        return NULL;
    Py_RETURN_NONE;
}

typedef struct Paced {
    PyObject_HEAD
    CxTracer *tracer;
    PyObject *items;
} Paced;

/* paced(items) */
PyObject *
cx_method_paced(PyObject *self, PyObject *items)
{
    CxTracer *t = (CxTracer *)self;
    PyObject *iterator = PyObject_GetIter(items);
    if (iterator == NULL)
        return NULL;
    PyTypeObject *type = (PyTypeObject *)t->state->paced_type;
    Paced *p = (Paced *)type->tp_alloc(type, 0);
    if (p == NULL) {
        Py_DECREF(iterator);
        return NULL;
    }
    p->tracer = (CxTracer *)Py_NewRef(self);
    p->items = iterator;
    return (PyObject *)p;
}

static PyObject *
paced_next(PyObject *self)
{
    Paced *p = (Paced *)self;
    return cx_tracer_step(p->tracer, CX_VALUE) < 0 ? NULL : PyIter_Next(p->items);
}

static int
paced_traverse(PyObject *self, visitproc visit, void *arg)
{
    Paced *p = (Paced *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(p->tracer);
    Py_VISIT(p->items);
    return 0;
}

static int
paced_clear(PyObject *self)
{
    Paced *p = (Paced *)self;
    Py_CLEAR(p->items);
    return 0;
}

static void
paced_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    paced_clear(self);
    Py_XDECREF((PyObject *)((Paced *)self)->tracer);
    cx_object_free(self);
}

CX_TYPE(cx_paced_spec, Paced, Paced, Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
        CX_SLOT(Py_tp_dealloc, paced_dealloc), CX_SLOT(Py_tp_traverse, paced_traverse),
        CX_SLOT(Py_tp_clear, paced_clear), CX_SLOT(Py_tp_iter, PyObject_SelfIter),
        CX_SLOT(Py_tp_iternext, paced_next));
