/* Marks: positions in the pending graph to which capture can roll back. See dominance.c for the
 * nodes, and version.c for the memory. */
#include "graph/methods.h"
#include "region/region.h"
#include "state/docs.h"
#include "value/index.h"

#include "base/map.h"

typedef struct CxMark {
    PyObject_HEAD CxTracer *tracer;
    CiBlock *at;
    unsigned epoch;
    uint32_t nexprs; /* of the tracer's sym at the mark */
    unsigned newest; /* storage at the mark */
    int nnodes, nopen, nchanges, nguards;
    int ninferred; /* guards made by the graph */
    int nblocks;   /* that were open */
    long token;    /* of the latest assumed condition */
    char is_infeasible;
} CxMark;

static void
mark_dealloc(PyObject *self)
{
    CxMark *m = (CxMark *)self;

    if (--m->tracer->nmarks == 0)
        cx_versions_forget(m->tracer);
    Py_DECREF(m->tracer);
    cx_object_free(self);
}

static bool
mark_is_valid(const CxMark *m)
{
    CxTracer *t = m->tracer;
    return m->epoch == t->epoch && t->graph != NULL && t->graph->at == m->at &&
           m->nopen <= t->nopen;
}

static PyObject *
get_is_valid(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(mark_is_valid((CxMark *)self));
}

PyObject *
cx_method_mark(PyObject *self, PyObject *unused)
{
    CxTracer *t = (CxTracer *)self;
    int nopen = t->nopen;
    (void)unused;

    CX_ENTRY();
    if (t->ctx == NULL && cx_graph_open(t) < 0)
        return NULL;
    if (cx_dominance_begin(t) < 0)
        return NULL;
    CxMark *m = PyObject_New(CxMark, (PyTypeObject *)t->state->mark_type);
    if (m == NULL)
        return NULL;
    t->nmarks++;
    t->last_mark++;
    m->tracer = (CxTracer *)Py_NewRef(t);
    m->at = t->graph->at;
    m->epoch = t->epoch;
    m->nexprs = ci_sym_count(t->sym);
    m->nnodes = t->graph->at->nnodes;
    m->nopen = nopen;
    m->newest = t->last_storage;
    m->nchanges = t->nchanges;
    m->nblocks = t->nblocks;
    m->token = t->last_token;
    m->is_infeasible = t->is_infeasible;
    m->nguards = t->env->nguards;
    m->ninferred = t->graph->env->nguards;
    return (PyObject *)m;
}

/* Forgets guards that were decided since the mark by the sizes of this call. */
static PyObject *
mark_forget_guards(PyObject *self, PyObject *unused)
{
    const CxMark *m = (CxMark *)self;
    CxTracer *t = m->tracer;

    (void)unused;
    CX_ENTRY();
    if (m->nguards < t->env->nguards)
        t->env->nguards = m->nguards;
    if (mark_is_valid(m) && m->ninferred < t->graph->env->nguards)
        t->graph->env->nguards = m->ninferred;
    cx_facts_forget_guards(t, m->nguards);
    Py_RETURN_NONE;
}

/* Closes the blocks that were opened since the mark. */
static PyObject *
mark_unwind(PyObject *self, PyObject *unused)
{
    const CxMark *m = (CxMark *)self;

    (void)unused;
    CX_ENTRY();
    if (cx_blocks_unwind(m->tracer, m->nblocks) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static void
forget(const CxMark *m)
{
    cx_facts_forget_since(m->tracer, m->token);
    m->tracer->is_infeasible = m->is_infeasible;
}

/* Forgets the conditions that were assumed since the mark. */
static PyObject *
mark_forget(PyObject *self, PyObject *unused)
{
    (void)unused;
    CX_ENTRY();
    forget((CxMark *)self);
    Py_RETURN_NONE;
}

static PyObject *
mark_restore(PyObject *self, PyObject *unused)
{
    const CxMark *m = (CxMark *)self;
    CxTracer *t = m->tracer;

    (void)unused;
    CX_ENTRY();
    if (cx_blocks_unwind(t, m->nblocks) < 0)
        return NULL;
    forget(m);
    if (!mark_is_valid(m))
        return cx_misuse(t->state, "the graph has been run since, or is in another block");
    t->graph->at->nnodes = m->nnodes;
    t->nopen = m->nopen;
    if (cx_dominance_begin(t) < 0 || cx_versions_restore(t, m->nchanges, m->newest) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *
whole(CxTracer *t, CxStorage *s)
{
    s->refs++;
    return cx_traced_new(t, s, NULL);
}

static int
append_written(CxTracer *t, PyObject *list, CxStorage *s)
{
    PyObject *traced = whole(t, s);
    int result = traced != NULL ? PyList_Append(list, traced) : -1;
    Py_XDECREF(traced);
    return result;
}

/* The storages that existed at the mark and have another version now, as whole arrays. */
static PyObject *
mark_written(PyObject *self, PyObject *unused)
{
    const CxMark *m = (CxMark *)self;
    CxTracer *t = m->tracer;
    PyObject *list = PyList_New(0);

    (void)unused;
    CX_ENTRY();
    if (list == NULL)
        return NULL;
    int count = 0, since = m->epoch == t->epoch ? m->nchanges : t->nchanges;
    unsigned newest = m->epoch == t->epoch ? m->newest : 0;
    CxStorage **changed = cx_versions_changed(t, since, newest, &count);
    bool failed = changed == NULL;
    for (int k = 0; k < count && !failed; k++)
        failed = append_written(t, list, changed[k]) < 0;
    PyMem_Free(changed);
    if (failed)
        Py_CLEAR(list);
    return list;
}

/* had(array): True if the memory existed at the mark. */
static PyObject *
mark_had(PyObject *self, PyObject *value)
{
    const CxMark *m = (CxMark *)self;

    if (!cx_is_traced(value))
        return cx_misuse(m->tracer->state, "had() takes a Traced value");
    const CxStorage *s = ((CxTraced *)value)->storage;
    bool is_real = s->value != NULL; /* also true for an array that the body is the first to read */
    return PyBool_FromLong(is_real || s->serial <= m->newest);
}

/* most(size): an upper bound of the size in terms that existed at the mark; None if there is
 * none. */
static PyObject *
mark_most(PyObject *self, PyObject *size)
{
    const CxMark *m = (CxMark *)self;
    const CiExpr *most = NULL;

    CX_ENTRY();
    const CiExpr *e = cx_size_from(m->tracer, size);
    if (e == NULL || cx_size_most(m->tracer, e, m->nexprs, &most) < 0)
        return NULL;
    return most == NULL ? Py_NewRef(Py_None) : cx_size_object(m->tracer, most);
}

static PyObject *
get_work(PyObject *self, void *closure)
{
    const CxMark *m = (CxMark *)self;
    const CxTracer *t = m->tracer;
    int count = 0;

    (void)closure;
    for (int k = m->nnodes; mark_is_valid(m) && k < t->graph->at->nnodes; k++)
        count += cx_node_works(t->graph->at->nodes[k]);
    return PyLong_FromLong(count);
}

static PyMemberDef mark_members[] = {
    CX_MEMBER(Mark, is_infeasible, T_BOOL, CxMark, is_infeasible, READONLY),
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef mark_getset[] = {
    CX_GETTER(Mark, is_valid, get_is_valid, NULL, NULL),
    CX_GETTER(Mark, work, get_work, NULL, NULL),
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef mark_methods[] = {
    CX_METHOD(Mark, restore, mark_restore, METH_NOARGS),
    CX_METHOD(Mark, unwind, mark_unwind, METH_NOARGS),
    CX_METHOD(Mark, forget, mark_forget, METH_NOARGS),
    CX_METHOD(Mark, forget_guards, mark_forget_guards, METH_NOARGS),
    CX_METHOD(Mark, written, mark_written, METH_NOARGS),
    CX_METHOD(Mark, had, mark_had, METH_O),
    CX_METHOD(Mark, most, mark_most, METH_O),
    {NULL, NULL, 0, NULL},
};

CX_TYPE(cx_mark_spec, Mark, CxMark, Py_TPFLAGS_DISALLOW_INSTANTIATION,
        CX_SLOT(Py_tp_dealloc, mark_dealloc), CX_SLOT(Py_tp_getset, mark_getset),
        CX_SLOT(Py_tp_members, mark_members), CX_SLOT(Py_tp_methods, mark_methods));

typedef struct Check {
    CxTracer *tracer;
    CiNode *condition;
    const char *why;
    CiLoc loc;
} Check;

static void
body_check(CiContext *ctx, void *arg)
{
    const Check *c = arg;
    (void)ci_graph_check(c->tracer->graph, c->condition, ci_intern(ctx, c->why), c->loc);
}

/* check(condition, why): if the bool is false at run time, the original function runs the call. So a region cannot have
 * a check after an effect: Python runs its loop or branch. */
PyObject *
cx_method_check(PyObject *self, PyObject *args)
{
    Check check = {.tracer = (CxTracer *)self};
    PyObject *condition = NULL;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "Os:check", &condition, &check.why))
        return NULL;
    if (!cx_is_traced(condition) || cx_dtype((CxTraced *)condition) != CI_DTYPE_bool ||
        cx_rank((CxTraced *)condition) != 0)
        return cx_misuse(((CxTracer *)self)->state, "check() takes a Traced bool");
    if (!cx_may_check(check.tracer)) {
        (void)cx_region_break(check.tracer, "%s is known only when the program runs", check.why);
        return NULL;
    }
    if (cx_traced_prepare((CxTraced *)condition) < 0)
        return NULL;
    check.condition = cx_node((CxTraced *)condition);
    check.loc = cx_location(check.tracer);
    if (cx_protect(check.tracer->state, check.tracer->ctx, body_check, &check) < 0)
        return NULL;
    const CxStorage *s = ((CxTraced *)condition)->storage;
    if (s->left != NULL && cx_fact_add(check.tracer, s->relation, s->left, s->right, 0) < 0)
        return NULL;
    Py_RETURN_NONE;
}
