/* Makes and frees storages, versions and views; see storage.h. */
#include "graph/size.h"
#include "state/array.h"

CxStorage *
cx_storage_new(CxTracer *tracer, CiKind kind, CiDtype dtype, int rank)
{
    CxStorage *s = PyMem_Calloc(1, sizeof *s + sizeof(const CiExpr *) * 2 * (size_t)rank);
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
    s->epoch = tracer->epoch - 1;
    s->serial = ++tracer->last_storage;
    s->noted = tracer->last_mark; /* no mark has recorded it */
    s->next = tracer->storages;
    if (s->next != NULL)
        s->next->prev = s;
    tracer->storages = s;
    return s;
}

typedef struct Fill {
    CxStorage *storage;
    const CiNode *node;
    const int8_t *order;
} Fill;

/* Makes the storage dense in that order. Empty axes count as having no elements, as in NumPy's
 * own layouts. */
static void
body_dense(CiContext *ctx, void *arg)
{
    const Fill *f = arg;
    CxStorage *s = f->storage;
    CiSym *sym = s->tracer->sym;
    const CiExpr *step = ci_expr_const(sym, ci_dtype_size(s->dtype));

    (void)ctx;
    for (int k = 0; f->node != NULL && k < s->rank; k++)
        s->sizes[k] = ci_expr_copy(sym, f->node->sizes[k]);
    for (int k = s->rank - 1; k >= 0; k--) {
        int axis = f->order ? f->order[k] : k;
        s->strides[axis] = step;
        if (!ci_expr_equals_const(s->sizes[axis], 0))
            step = ci_expr_mul(sym, step, s->sizes[axis]);
    }
}

CxStorage *
cx_storage_from_node(CxTracer *tracer, CiNode *node, CiKind kind)
{
    CxStorage *s = cx_storage_new(tracer, kind, node->dtype, node->rank);
    if (s == NULL)
        return NULL;
    Fill fill = {s, node, node->order};
    if (s->rank != 0 && cx_protect(tracer->state, tracer->sym_ctx, body_dense, &fill) < 0) {
        cx_storage_release(s);
        return NULL;
    }
    s->node = node;
    s->epoch = tracer->epoch;
    s->scope = cx_dominance_now(tracer);
    return s;
}

typedef struct Layout {
    CxStorage *storage;
    PyArrayObject *array;
    const CiExpr *const *paddings;
} Layout;

static void
body_layout(CiContext *ctx, void *arg)
{
    const Layout *l = arg;
    (void)ctx;
    cx_layout_strides(l->storage->tracer->sym, l->array, l->storage->sizes, l->paddings,
                      l->storage->strides);
}

/* The symbol that has this value in this call, or NULL. After a break each call is captured
 * again, and an array that Python made usually has a size of the call. */
static const CiExpr *
alike_size(const CxTracer *t, int64_t size)
{
    for (int k = 0; size > 1 && k < t->env->nsources; k++) {
        const CiSymbolSource *source = &t->env->sources[k];
        if (source->hint == size && source->symbol->symbol_kind == CI_SYMBOL_size)
            return source->symbol;
    }
    return NULL;
}

static int
set_layout(CxStorage *s, PyArrayObject *a, const CiExpr *const *sizes, const CiExpr *const *paddings)
{
    Layout layout = {s, a, paddings};
    int64_t values[2 * CI_MAX_RANK];
    bool is_symbolic = paddings != NULL;

    for (int k = 0; k < s->rank; k++) {
        values[k] = PyArray_DIM(a, k);
        values[s->rank + k] = PyArray_STRIDE(a, k);
    }
    /* Sizes and strides are neighbours. */
    if (cx_size_consts(s->tracer, 2 * s->rank, values, s->sizes) < 0)
        return -1;
    bool is_pythons = s->source == CX_SOURCE_unknown && PyList_GET_SIZE(s->tracer->breaks) > 0;
    for (int k = 0; (sizes != NULL || is_pythons) && k < s->rank; k++) {
        const CiExpr *size = sizes != NULL ? sizes[k] : alike_size(s->tracer, values[k]);
        if (size != NULL) {
            s->sizes[k] = size;
            is_symbolic |= size->kind != CI_EXPR_const;
        }
    }
    return is_symbolic ? cx_protect(s->tracer->state, s->tracer->sym_ctx, body_layout, &layout) : 0;
}

CxStorage *
cx_storage_from_array(CxTracer *tracer, PyObject *array, int source, const CiExpr *const *sizes,
                      const CiExpr *const *paddings)
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
    for (int k = 0; k < PyArray_NDIM(a); k++)
        if (PyArray_STRIDE(a, k) % size != 0 && PyArray_DIM(a, k) > 1) {
            PyErr_SetString(refused,
                            "strides that are no multiple of the element's size are not supported");
            return NULL;
        }
    CxStorage *s = cx_storage_new(tracer, CI_KIND_array, dtype, PyArray_NDIM(a));
    if (s == NULL)
        return NULL;
    s->value = Py_NewRef(array);
    s->source = source;
    s->access = !PyArray_ISWRITEABLE(a)  ? CX_READONLY
                : cx_array_warns(array) ? CX_WARNS_OF_WRITES
                                         : CX_WRITABLE;
    if (set_layout(s, a, sizes, paddings) < 0) {
        cx_storage_release(s);
        return NULL;
    }
    return s;
}

/* Releases a reference; if it was the last, adds the storage to the dead. */
static void
drop(CxStorage *s, CxStorage **dead)
{
    if (s == NULL || --s->refs != 0)
        return;
    if (s->prev != NULL)
        s->prev->next = s->next;
    else if (s->tracer->storages == s)
        s->tracer->storages = s->next;
    if (s->next != NULL)
        s->next->prev = s->prev;
    s->next = *dead;
    *dead = s;
}

/* Frees without recursion, because a number may depend on a chain of a million others. */
void
cx_storage_release(CxStorage *s)
{
    CxStorage *dead = NULL;

    drop(s, &dead);
    while (dead != NULL) {
        s = dead;
        dead = s->next;
        drop(s->parents[0], &dead);
        drop(s->parents[1], &dead);
        drop(s->strong, &dead);
        Py_XDECREF(s->value);
        PyMem_Free(s);
    }
}

/* The first write ends the warnings of an array. */
static CxAccess
access_of(CxAccess access, PyObject *real)
{
    bool has_warned = access == CX_WARNS_OF_WRITES && real != NULL && !cx_array_warns(real);
    return has_warned ? CX_WRITTEN_BY_PYTHON : access;
}

CxAccess
cx_access(const CxTraced *t)
{
    const CxStorage *s = t->storage;
    CxAccess view = t->view ? access_of(t->view->access, t->real) : CX_WRITABLE,
             storage = access_of(s->access, s->value);

    return view > storage ? view : storage;
}

/* A new view of a Traced value. The caller fills in sizes, strides, offset and parameters. */
CxView *
cx_view_new(CxTraced *parent, CiOp op, int rank)
{
    int below = cx_rank(parent);
    size_t words = 2 * (size_t)rank + 2 * (size_t)below + 2;
    size_t axes = sizeof(int) * ((size_t)rank + 2);
    CxView *v = PyMem_Calloc(1, sizeof *v + sizeof(const CiExpr *) * words + axes);

    if (v == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    v->refs = 1;
    v->parent = parent->view;
    v->offset = parent->tracer->zero;
    if (v->parent != NULL) {
        v->parent->refs++;
        v->access = access_of(v->parent->access, parent->real);
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

    if (storage != NULL && cx_tracer_step(tracer, CX_VALUE) == 0)
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

PyObject *
cx_traced_int(CxTracer *t, const CiExpr *e)
{
    CxStorage *s = cx_storage_new(t, CI_KIND_python, CI_DTYPE_i64, 0);
    int64_t value;

    if (s == NULL)
        return NULL;
    s->expr = e;
    if (cx_size_is_known(t, e)) {
        s->value = cx_size_values(t, 1, &e, &value) < 0 ? NULL : PyLong_FromLongLong(value);
        if (s->value == NULL) {
            cx_storage_release(s);
            return NULL;
        }
    }
    return cx_traced_new(t, s, NULL);
}

void
cx_traced_dealloc(PyObject *self)
{
    CxTraced *t = (CxTraced *)self;
    PyTypeObject *type = Py_TYPE(self);

    PyObject_GC_UnTrack(self);
    Py_XDECREF(t->real);
    cx_view_release(t->view);
    cx_storage_release(t->storage); /* before the tracer, which has the list of storages */
    Py_DECREF(t->tracer);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}
