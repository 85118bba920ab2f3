/* Storages, versions and views: see the head of pyext.h. */
#include "pyext.h"

CxStorage *
cx_storage_new(CxTracer *tracer, CiKind kind, CiDtype dtype, int rank, const int64_t *sizes)
{
    CxStorage *s = PyMem_Calloc(1, sizeof *s + sizeof(int64_t) * 2 * (size_t)rank);
    if (s == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    s->refs = 1;
    s->tracer = tracer;
    s->source = -1;
    s->kind = kind;
    s->dtype = dtype;
    s->rank = rank;
    s->sizes = s->space;
    s->strides = s->space + rank;
    if (rank != 0)
        memcpy(s->sizes, sizes, sizeof(int64_t) * (size_t)rank);
    s->epoch = tracer->epoch - 1;
    s->next = tracer->storages;
    if (s->next != NULL)
        s->next->prev = s;
    tracer->storages = s;
    return s;
}

CxStorage *
cx_storage_from_node(CxTracer *tracer, CiNode *node, CiKind kind)
{
    int64_t sizes[CI_MAX_RANK];

    for (int k = 0; k < node->rank; k++)
        if (!ci_expr_is_const(node->sizes[k], &sizes[k])) {
            cx_raise_status(tracer->state, CI_ERR_INTERNAL, "a symbolic size reached capture");
            return NULL;
        }
    CxStorage *s = cx_storage_new(tracer, kind, node->dtype, node->rank, sizes);
    if (s == NULL)
        return NULL;
    cx_dense_strides(s->dtype, s->rank, s->sizes, node->order, s->strides);
    s->node = node;
    s->epoch = tracer->epoch;
    return s;
}

CxStorage *
cx_storage_from_array(CxTracer *tracer, PyObject *array, int source)
{
    PyArrayObject *a = (PyArrayObject *)array;
    CiDtype dtype = cx_dtype_of_descr(PyArray_DESCR(a));
    PyObject *refused = cx_exception(tracer->state, "Unsupported");

    if (dtype == CI_DTYPE_none) {
        PyErr_Format(refused, "arrays of dtype %S are not supported", PyArray_DESCR(a));
        return NULL;
    }
    if (PyArray_NDIM(a) > CI_MAX_RANK) {
        PyErr_Format(refused, "arrays of more than %d axes are not supported", CI_MAX_RANK);
        return NULL;
    }
    int64_t size = ci_dtype_size(dtype);
    if (!PyArray_ISALIGNED(a)) {
        PyErr_SetString(refused, "arrays that are not aligned are not supported");
        return NULL;
    }
    CxStorage *s = cx_storage_new(tracer, CI_KIND_array, dtype, PyArray_NDIM(a),
                                  (const int64_t *)PyArray_DIMS(a));
    if (s == NULL)
        return NULL;
    for (int k = 0; k < s->rank; k++) {
        s->strides[k] = PyArray_STRIDE(a, k);
        if (s->strides[k] % size != 0 && s->sizes[k] > 1) {
            PyErr_SetString(refused,
                            "strides that are no multiple of the element's size are not supported");
            cx_storage_release(s);
            return NULL;
        }
    }
    s->value = Py_NewRef(array);
    s->source = source;
    s->is_readonly = !PyArray_ISWRITEABLE(a);
    return s;
}

void
cx_storage_release(CxStorage *s)
{
    if (s == NULL || --s->refs != 0)
        return;
    if (s->prev != NULL)
        s->prev->next = s->next;
    else if (s->tracer->storages == s)
        s->tracer->storages = s->next;
    if (s->next != NULL)
        s->next->prev = s->prev;
    cx_storage_release(s->parents[0]);
    cx_storage_release(s->parents[1]);
    Py_XDECREF(s->value);
    PyMem_Free(s);
}

/* A view of a Traced value, to be filled in: sizes, strides, offset and parameters are the
 * caller's. */
CxView *
cx_view_new(CxTraced *parent, CiOp op, int rank)
{
    int below = cx_rank(parent);
    size_t words = 2 * (size_t)rank + 2 * (size_t)below + CI_MAX_RANK + 2;
    CxView *v = PyMem_Calloc(1, sizeof *v + sizeof(int64_t) * words);

    if (v == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    v->refs = 1;
    v->parent = parent->view;
    if (v->parent != NULL) {
        v->parent->refs++;
        v->is_readonly = v->parent->is_readonly;
        v->is_opaque = v->parent->is_opaque;
        v->offset = v->parent->offset;
    }
    v->op = op;
    v->dtype = cx_dtype(parent);
    v->rank = rank;
    v->sizes = v->space;
    v->strides = v->sizes + rank;
    v->starts = v->strides + rank;
    v->steps = v->starts + below + 1;
    v->axes = (int *)(v->steps + below + 1);
    v->epoch = parent->tracer->epoch - 1;
    return v;
}

void
cx_view_release(CxView *v)
{
    while (v != NULL && --v->refs == 0) {
        CxView *parent = v->parent;
        PyMem_Free(v);
        v = parent;
    }
}

PyObject *
cx_traced_new(CxTracer *tracer, CxStorage *storage, CxView *view)
{
    CxTraced *t = NULL;

    if (storage != NULL)
        t = PyObject_GC_New(CxTraced, (PyTypeObject *)tracer->state->traced_type);
    if (t == NULL) {
        cx_storage_release(storage);
        cx_view_release(view);
        return NULL;
    }
    t->tracer = (CxTracer *)Py_NewRef(tracer);
    t->storage = storage;
    t->view = view;
    t->real = NULL;
    PyObject_GC_Track(t);
    return (PyObject *)t;
}

PyObject *
cx_traced_from_node(CxTracer *tracer, CiNode *node, CiKind kind)
{
    if (node == NULL)
        return NULL;
    return cx_traced_new(tracer, cx_storage_from_node(tracer, node, kind), NULL);
}

static bool
overlaps(PyObject *a, PyObject *b)
{
    char *alow, *ahigh, *blow, *bhigh;
    if (!PyArray_Check(a) || !PyArray_Check(b))
        return false;
    cx_array_extent(a, &alow, &ahigh);
    cx_array_extent(b, &blow, &bhigh);
    return alow < bhigh && blow < ahigh;
}

/* Other memory of the pending graph that a write to s would change, or that a pending write changes
 * under s. */
static bool
is_tangled(CxTracer *tracer, const CxStorage *s, bool is_write)
{
    for (int k = 0; k < tracer->ninputs; k++) {
        const CxStorage *other = tracer->inputs[k];
        if (other != s && other->kind == CI_KIND_array && (is_write || other->is_written) &&
            overlaps(s->value, other->value))
            return true;
    }
    return false;
}

/* A number that never changes stands in each graph as a constant. */
static int
add_constant(CxTracer *tracer, CxStorage *s)
{
    CiConst value;
    if (cx_const_of(tracer->state, s->value, s->dtype, &value) < 0)
        return -1;
    CiNode *node = cx_build_const(tracer, s->dtype, s->kind, value);
    if (node == NULL)
        return -1;
    s->node = node;
    s->epoch = tracer->epoch;
    return 0;
}

/* A value no later call would find: Python must make it again each time. */
static int
note_unknown(CxTracer *tracer)
{
    PyObject *reason = PyUnicode_FromString("a value that Python made in the call");
    int result = reason ? cx_tracer_note(tracer, reason) : -1;
    Py_XDECREF(reason);
    return result;
}

static int
add_input(CxTracer *tracer, CxStorage *s)
{
    if (s->source == CX_SOURCE_constant)
        return add_constant(tracer, s);
    if (s->value == NULL) {
        cx_raise_status(tracer->state, CI_ERR_INTERNAL,
                        "the value was lost when an earlier run failed or ended");
        return -1;
    }
    if (s->kind == CI_KIND_array && is_tangled(tracer, s, false) &&
        cx_tracer_break(tracer, "arguments share memory that is written") < 0)
        return -1;
    if (tracer->ninputs == tracer->capinputs) {
        int capacity = tracer->capinputs ? 2 * tracer->capinputs : 8;
        CxStorage **grown = PyMem_Realloc(tracer->inputs, sizeof *grown * (size_t)capacity);
        if (grown == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        tracer->inputs = grown;
        tracer->capinputs = capacity;
    }
    if (cx_graph_open(tracer) < 0)
        return -1;
    CiNode *node = cx_build_input(tracer, s);
    if (node == NULL)
        return -1;
    if (s->source < 0 && !tracer->needs_python && note_unknown(tracer) < 0)
        return -1;
    s->refs++;
    tracer->inputs[tracer->ninputs++] = s;
    s->node = s->input = node;
    s->epoch = tracer->epoch;
    s->is_written = false;
    return 0;
}

int
cx_traced_prepare(CxTraced *t)
{
    CxTracer *tracer = t->tracer;

    if (cx_is_current(t))
        return 0;
    if (tracer->is_busy) {
        cx_raise_status(tracer->state, CI_ERR_UNSUPPORTED,
                        "a traced value was used while its graph was running");
        return -1;
    }
    if (t->storage->epoch != tracer->epoch && add_input(tracer, t->storage) < 0)
        return -1;
    return t->view != NULL ? cx_build_view(tracer, t) : 0;
}

void
cx_storage_set_version(CxStorage *s, CiNode *node)
{
    s->node = node;
    s->version++;
    if (s->value != NULL)
        s->is_written = true;
}

/* Whether target may be written; the message is NumPy's for the way it is written. 1: it was broken
 * off, write it for real. */
int
cx_write_prepare(CxTraced *target, const char *readonly_message)
{
    CxStorage *s = target->storage;
    CxTracer *tracer = target->tracer;

    if (s->is_readonly || (target->view != NULL && target->view->is_readonly)) {
        PyErr_SetString(PyExc_ValueError, readonly_message);
        return -1;
    }
    if (target->view != NULL && target->view->is_opaque)
        return cx_tracer_break(tracer, "a write through .real or .imag") < 0 ? -1 : 1;
    if (cx_traced_prepare(target) < 0)
        return -1;
    if (s->value != NULL && !s->is_written && is_tangled(tracer, s, true))
        return cx_tracer_break(tracer, "a write to memory that another array shares") < 0 ? -1 : 1;
    return 0;
}
