/* Live-out values of a region: sizes and views as in the last iteration, and arrays whose sizes
 * change from iteration to iteration. Such an array is stored in the first elements of a buffer
 * with capacity for all iterations; its number of elements is carried separately. */
#include "graph/methods.h"
#include "region/region.h"
#include "value/build.h"
#include "value/index.h"

#include "ir/layout.h"

/* ---- the last iteration ---- */

typedef struct Substitute {
    CxTracer *tracer;
    const CiExpr *symbol, *last;
    const CxView *from;
    CxView *view;
    const CiExpr *e;
} Substitute;

static bool
is_fixed(const CiExpr *e, const CiExpr *symbol)
{
    for (int k = 0; k < e->nsymbols; k++)
        if (e->symbols[k] != symbol && e->symbols[k]->symbol_kind == CI_SYMBOL_unbacked)
            return false;
    return true;
}

static bool
all_are_fixed(int count, const CiExpr *const *exprs, const CiExpr *symbol)
{
    for (int k = 0; k < count; k++)
        if (exprs[k] != NULL && !is_fixed(exprs[k], symbol))
            return false;
    return true;
}

static const CiExpr *
in_last_iteration(const Substitute *s, const CiExpr *e)
{
    return e == NULL ? NULL : ci_expr_substitute(s->tracer->sym, e, 1, &s->symbol, &s->last);
}

static void
body_size(CiContext *ctx, void *arg)
{
    Substitute *s = arg;
    (void)ctx;
    s->e = in_last_iteration(s, s->e);
}

static void
body_view(CiContext *ctx, void *arg)
{
    Substitute *s = arg;
    CxView *v = s->view;
    (void)ctx;
    v->offset = in_last_iteration(s, s->from->offset);
    for (int k = 0; k < v->rank; k++) {
        v->sizes[k] = in_last_iteration(s, s->from->sizes[k]);
        v->strides[k] = in_last_iteration(s, s->from->strides[k]);
    }
}

/* The starts and steps of a view: one for each axis of its parent, and one for a diagonal. */
static void
body_starts(CiContext *ctx, void *arg)
{
    Substitute *s = arg;
    int below = (int)(s->from->steps - s->from->starts);
    (void)ctx;
    for (int k = 0; k < below; k++) {
        s->view->starts[k] = in_last_iteration(s, s->from->starts[k]);
        s->view->steps[k] = in_last_iteration(s, s->from->steps[k]);
    }
}

static bool
view_is_fixed(const CxView *v, const CiExpr *symbol)
{
    int below = (int)(v->steps - v->starts);
    return is_fixed(v->offset, symbol) && all_are_fixed(v->rank, v->sizes, symbol) &&
           all_are_fixed(v->rank, v->strides, symbol) && all_are_fixed(below, v->starts, symbol) &&
           all_are_fixed(below, v->steps, symbol);
}

/* True if the view, or one that it is based on, differs between iterations. */
static bool
is_of_iteration(const CxView *v, const CiExpr *symbol)
{
    bool depends = cx_view_depends_on(v, symbol);
    int below = (int)(v->steps - v->starts);
    for (int k = 0; k < below && !depends; k++)
        depends = (v->starts[k] != NULL && ci_expr_depends_on(v->starts[k], symbol)) ||
                  (v->steps[k] != NULL && ci_expr_depends_on(v->steps[k], symbol));
    return depends || (v->parent != NULL && is_of_iteration(v->parent, symbol));
}

/* The view, and those that it is based on, as in the last iteration. */
static PyObject *
last_view(Substitute *s, CxStorage *storage, CxView *from)
{
    CxTracer *t = s->tracer;
    storage->refs++;
    if (from == NULL)
        return cx_traced_new(t, storage, NULL);
    PyObject *parent = last_view(s, storage, from->parent), *result = NULL;
    CxView *v = parent ? cx_view_new((CxTraced *)parent, from->op, from->rank) : NULL;
    if (v != NULL) {
        s->from = from;
        s->view = v;
        v->dtype = from->dtype;
        v->access = from->access;
        memcpy(v->axes, from->axes, sizeof(int) * ((size_t)from->rank + 2));
        if (cx_protect(t->state, t->sym_ctx, body_view, s) == 0 &&
            cx_protect(t->state, t->sym_ctx, body_starts, s) == 0)
            result = cx_traced_new(t, storage, v);
        else
            cx_view_release(v);
    }
    if (result == NULL)
        cx_storage_release(storage);
    Py_XDECREF(parent);
    return result;
}

/* last_value(int or view): its value in the last iteration of a `for`; None if it is not an
 * expression of the iteration and of values defined outside. */
PyObject *
cx_block_last_value(PyObject *self, PyObject *value)
{
    const CxBlock *b = (const CxBlock *)self;
    CxTracer *t = b->tracer;
    Substitute s = {.tracer = t};

    CX_ENTRY();
    if (!cx_is_traced(value) || b->index == NULL)
        Py_RETURN_NONE;
    CxTraced *x = (CxTraced *)value;
    s.symbol = b->index;
    if ((s.last = cx_size_make(t, CI_OP_subtract, b->extent, t->one)) == NULL)
        return NULL;
    if (x->view == NULL) {
        if ((s.e = x->storage->expr) == NULL || !is_fixed(s.e, s.symbol))
            Py_RETURN_NONE;
        return cx_protect(t->state, t->sym_ctx, body_size, &s) < 0 ? NULL : cx_size_object(t, s.e);
    }
    for (const CxView *v = x->view; v != NULL; v = v->parent)
        if (!view_is_fixed(v, s.symbol))
            Py_RETURN_NONE;
    return is_of_iteration(x->view, s.symbol) ? last_view(&s, x->storage, x->view) : Py_NewRef(value);
}

/* ---- sizes that vary ---- */

/* varying(a, b): the axes along which two values of one dtype and stride order differ in size
 * (an empty tuple if their types are equal); None for other differences. */
PyObject *
cx_method_varying(PyObject *self, PyObject *args)
{
    CxTracer *t = (CxTracer *)self;
    PyObject *a = NULL, *b = NULL;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "OO:varying", &a, &b))
        return NULL;
    const CiNode *x = cx_region_node(t, a), *y = x ? cx_region_node(t, b) : NULL;
    if (y == NULL)
        return NULL;
    if (x->dtype != y->dtype || x->rank != y->rank ||
        (x->rank > 1 && memcmp(x->order, y->order, (size_t)x->rank) != 0))
        Py_RETURN_NONE;
    PyObject *axes = PyList_New(0);
    for (int k = 0; axes != NULL && k < x->rank; k++) {
        if (x->sizes[k] == y->sizes[k])
            continue;
        cx_add_item(&axes, PyLong_FromLong(k));
    }
    return axes;
}

/* undefined(like, shape): an array of like's dtype whose contents are never read. With as many
 * axes as like it has like's stride order, else C order. */
PyObject *
cx_method_undefined(PyObject *self, PyObject *args)
{
    CxTracer *t = (CxTracer *)self;
    PyObject *value = NULL, *shape = NULL;
    const CiExpr *sizes[CI_MAX_RANK];

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "OO:undefined", &value, &shape))
        return NULL;
    const CiNode *like = cx_region_node(t, value);
    int rank = like ? cx_shape_from(t, shape, sizes) : -1;
    if (rank < 0)
        return NULL;
    const int8_t *order = rank == like->rank ? like->order : NULL;
    CiNode *node = cx_build_fill(t, like->dtype, rank, sizes, order, NULL);
    return cx_traced_from_node(t, node, CI_KIND_array);
}

/* count(shape): its number of elements. */
PyObject *
cx_method_count(PyObject *self, PyObject *shape)
{
    CxTracer *t = (CxTracer *)self;
    const CiExpr *sizes[CI_MAX_RANK];

    CX_ENTRY();
    int rank = cx_shape_from(t, shape, sizes);
    const CiExpr *count = rank < 0 ? NULL : cx_size_count(t, rank, sizes);
    return count == NULL ? NULL : cx_size_object(t, count);
}

/* True if a view's elements are contiguous: it selects whole rows of its base, and may reshape
 * them. */
static bool
is_dense(const CxView *v, const CiNode *base)
{
    if (v->op == CI_OP_reshape && v->parent != NULL)
        v = v->parent;
    const CiNode *part = v->node;
    bool result = v->parent == NULL && part->rank == base->rank;
    for (int k = 1; result && k < part->rank; k++)
        result = part->sizes[part->order[k]] == base->sizes[part->order[k]];
    return result;
}

/* detached(): the value of a view as a separate array, without a copy if it is contiguous. */
PyObject *
cx_traced_detached(PyObject *self, PyObject *unused)
{
    CxTraced *x = (CxTraced *)self;
    CxTracer *t = x->tracer;
    (void)unused;

    CX_ENTRY();
    if (x->view == NULL)
        return cx_misuse(t->state, "detached() is of a view");
    if (cx_traced_prepare(x) < 0)
        return NULL;
    CiNode *node = cx_node(x);
    if (!is_dense(x->view, x->storage->node))
        node = cx_build_copy(t, x, node->order);
    return cx_traced_from_node(t, node, CI_KIND_array);
}
