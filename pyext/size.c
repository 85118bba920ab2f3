/* Sizes, strides, offsets and indices during capture: expressions of one CiSym that the tracer owns
 * for its whole life, so that equal means the same pointer. Graphs have a CiSym of their own;
 * build.c copies.
 *
 * Most sizes are constants and take the short way. What is not constant is decided by proof, else
 * by the values of this call with a guard; CX_OPEN where a value is known only when the program
 * runs. Nothing here may fail outside cx_protect, and inside it no Python object is touched. */
#include "size.h"
#include "array.h"
#include "build.h"

#include "ir/layout.h"

/* ---- arithmetic ---- */

typedef struct Arithmetic {
    CxTracer *tracer;
    CxSizeOp op;
    const CiExpr *a, *b, *result;
    int count;
    const int64_t *values;
    const CiExpr *const *exprs;
    const CiExpr **out;
} Arithmetic;

static void
body_consts(CiContext *ctx, void *arg)
{
    Arithmetic *job = arg;
    (void)ctx;
    for (int k = 0; k < job->count; k++)
        job->out[k] = ci_expr_const(job->tracer->sym, job->values[k]);
}

int
cx_size_consts(CxTracer *t, int count, const int64_t *values, const CiExpr **out)
{
    Arithmetic job = {.tracer = t, .count = count, .values = values, .out = out};
    return count == 0 ? 0 : cx_protect(t->state, t->sym_ctx, body_consts, &job);
}

const CiExpr *
cx_size_const(CxTracer *t, int64_t value)
{
    const CiExpr *e = NULL;
    return cx_size_consts(t, 1, &value, &e) < 0 ? NULL : e;
}

static void
body_make(CiContext *ctx, void *arg)
{
    Arithmetic *job = arg;
    CiSym *sym = job->tracer->sym;

    (void)ctx;
    switch (job->op) {
    case CX_SIZE_add:
        job->result = ci_expr_add(sym, job->a, job->b);
        break;
    case CX_SIZE_sub:
        job->result = ci_expr_sub(sym, job->a, job->b);
        break;
    case CX_SIZE_mul:
        job->result = ci_expr_mul(sym, job->a, job->b);
        break;
    case CX_SIZE_floordiv:
        job->result = ci_expr_floordiv(sym, job->a, job->b);
        break;
    case CX_SIZE_mod:
        job->result = ci_expr_mod(sym, job->a, job->b);
        break;
    case CX_SIZE_min:
        job->result = ci_expr_min(sym, job->a, job->b);
        break;
    case CX_SIZE_max:
        job->result = ci_expr_max(sym, job->a, job->b);
        break;
    }
}

const CiExpr *
cx_size_make(CxTracer *t, CxSizeOp op, const CiExpr *a, const CiExpr *b)
{
    Arithmetic job = {.tracer = t, .op = op, .a = a, .b = b};
    if (a == NULL || b == NULL)
        return NULL;
    return cx_protect(t->state, t->sym_ctx, body_make, &job) < 0 ? NULL : job.result;
}

static void
body_count(CiContext *ctx, void *arg)
{
    Arithmetic *job = arg;
    (void)ctx;
    job->result = ci_layout_count(job->tracer->sym, job->count, job->exprs);
}

const CiExpr *
cx_size_count(CxTracer *t, int rank, const CiExpr *const *sizes)
{
    Arithmetic job = {.tracer = t, .count = rank, .exprs = sizes};
    return cx_protect(t->state, t->sym_ctx, body_count, &job) < 0 ? NULL : job.result;
}

bool
cx_sizes_are_const(int count, const CiExpr *const *exprs, int64_t *values)
{
    for (int k = 0; k < count; k++) {
        if (exprs[k]->kind != CI_EXPR_const)
            return false;
        values[k] = exprs[k]->value;
    }
    return true;
}

/* ---- values ---- */

static bool
has_value(const CxTracer *t, const CiExpr *symbol)
{
    for (int k = 0; k < t->env->nsources; k++)
        if (t->env->sources[k].symbol == symbol)
            return true;
    return false;
}

bool
cx_size_is_known(const CxTracer *t, const CiExpr *e)
{
    for (int k = 0; k < e->nsymbols; k++)
        if (!has_value(t, e->symbols[k]))
            return false;
    return true;
}

typedef struct Evaluate {
    const CxTracer *tracer;
    const CiExpr *e;
    int64_t value;
} Evaluate;

static void
body_evaluate(CiContext *ctx, void *arg)
{
    Evaluate *job = arg;
    job->value = ci_shape_env_hint(ctx, job->tracer->env, job->e);
}

int
cx_size_values(CxTracer *t, int count, const CiExpr *const *exprs, int64_t *values)
{
    for (int k = 0; k < count; k++) {
        Evaluate job = {t, exprs[k], exprs[k]->value};
        if (exprs[k]->kind != CI_EXPR_const &&
            cx_protect(t->state, t->sym_ctx, body_evaluate, &job) < 0)
            return -1;
        values[k] = job.value;
    }
    return 0;
}

/* What is not known yet is taken to be a few: for shapes that only an exception's text shows. */
static int64_t
sample_of(void *arg, const CiExpr *symbol)
{
    const CiShapeEnv *env = ((const CxTracer *)arg)->env;
    for (int k = 0; k < env->nsources; k++)
        if (env->sources[k].symbol == symbol)
            return env->sources[k].hint;
    return 4;
}

static void
body_sample(CiContext *ctx, void *arg)
{
    Evaluate *job = arg;
    job->value = ci_expr_evaluate(ctx, job->e, sample_of, (void *)(uintptr_t)job->tracer);
}

void
cx_size_samples(CxTracer *t, int count, const CiExpr *const *exprs, int64_t *values)
{
    for (int k = 0; k < count; k++) {
        Evaluate job = {t, exprs[k], exprs[k]->value};
        if (exprs[k]->kind != CI_EXPR_const && ci_protect(t->sym_ctx, body_sample, &job) != CI_OK)
            job.value = 4;
        values[k] = job.value;
    }
}

PyObject *
cx_size_dummy(CxTraced *x)
{
    int64_t sizes[CI_MAX_RANK];
    CxTracer *t = x->tracer;

    cx_size_samples(t, cx_rank(x), cx_sizes(x), sizes);
    for (int k = 0; k < cx_rank(x); k++)
        sizes[k] = sizes[k] < 0 ? 0 : sizes[k];
    return cx_array_dummy(t->state, cx_dtype(x), cx_rank(x), sizes);
}

/* ---- decisions ---- */

typedef struct Decision {
    CxTracer *tracer;
    CiRelation relation;
    const CiExpr *a, *b;
    CiLoc loc;
    int answer;
    bool may_guard, is_usual;
} Decision;

static void
body_decide(CiContext *ctx, void *arg)
{
    Decision *d = arg;
    CxTracer *t = d->tracer;

    d->answer = ci_shape_decide(t->sym, d->relation, d->a, d->b);
    if (d->answer < 0)
        d->answer = cx_facts_decide(t, d->relation, d->a, d->b);
    if (d->answer < 0 && d->may_guard)
        d->answer = (d->is_usual ? ci_shape_usual : ci_shape_guard)(ctx, t->env, d->relation, d->a,
                                                                    d->b, d->loc);
}

typedef enum Guarding { NEVER, GUARDS, USUALLY } Guarding;

static int
decide(CxTracer *t, CiRelation relation, const CiExpr *a, const CiExpr *b, Guarding how)
{
    Decision d = {t, relation, a, b, {"", 0}, -1, false, how == USUALLY};

    if (a == b)
        return relation == CI_REL_eq || relation == CI_REL_le;
    if (a->kind == CI_EXPR_const && b->kind == CI_EXPR_const)
        return relation == CI_REL_eq   ? 0
               : relation == CI_REL_ne ? 1
               : relation == CI_REL_le ? a->value <= b->value
                                       : a->value < b->value;
    d.may_guard = how != NEVER && cx_size_is_known(t, a) && cx_size_is_known(t, b);
    if (d.may_guard)
        d.loc = cx_location(t);
    int before = t->env->nguards;
    if (cx_protect(t->state, t->sym_ctx, body_decide, &d) < 0)
        return -1;
    if (how == USUALLY && d.answer == 1 && t->env->nguards > before && cx_fact_add_guard(t) < 0)
        return -1;
    return d.answer < 0 ? CX_OPEN : d.answer;
}

int
cx_size_decide(CxTracer *t, CiRelation relation, const CiExpr *a, const CiExpr *b)
{
    return decide(t, relation, a, b, GUARDS);
}

int
cx_size_usual(CxTracer *t, CiRelation relation, const CiExpr *a, const CiExpr *b)
{
    return decide(t, relation, a, b, USUALLY);
}

int
cx_size_prove(CxTracer *t, CiRelation relation, const CiExpr *a, const CiExpr *b)
{
    return decide(t, relation, a, b, NEVER);
}

/* Equal sizes may be so by chance: where they are not, another program is right. */
int
cx_size_require(CxTracer *t, CiRelation relation, const CiExpr *a, const CiExpr *b, const char *why)
{
    Guarding how = relation == CI_REL_eq ? GUARDS : USUALLY;
    int holds = decide(t, relation, a, b, how);
    if (holds == CX_OPEN && !cx_may_check(t))
        holds = cx_tracer_break(t, "%s", why) < 0 ? -1 : decide(t, relation, a, b, how);
    else if (holds == CX_OPEN)
        holds = cx_size_check(t, relation, a, b, why) < 0 ? -1 : 1;
    return holds;
}

const CiExpr *
cx_size_join(CxTracer *t, const CiExpr *a, const CiExpr *b)
{
    if (a != b && cx_size_require(t, CI_REL_eq, a, b, "sizes that must be equal") != 1)
        return NULL;
    return b->kind == CI_EXPR_const ? b : a;
}

int
cx_sizes_equal(CxTracer *t, int rank, const CiExpr *const *a, const CiExpr *const *b)
{
    for (int k = 0; k < rank; k++)
        if (cx_size_join(t, a[k], b[k]) == NULL)
            return PyErr_Occurred() ? -1 : 0;
    return 1;
}

/* ---- Python's ints ---- */

PyObject *
cx_size_object(CxTracer *t, const CiExpr *e)
{
    if (e == NULL)
        return NULL;
    if (e->kind == CI_EXPR_const)
        return PyLong_FromLongLong(e->value);
    if (t->is_static && cx_size_is_known(t, e)) {
        int64_t value;
        return cx_size_values(t, 1, &e, &value) < 0 ? NULL : PyLong_FromLongLong(value);
    }
    return cx_traced_int(t, e);
}

/* An int, or what __index__ makes one. */
const CiExpr *
cx_size_from(CxTracer *t, PyObject *object)
{
    if (cx_is_traced(object) && ((CxTraced *)object)->tracer == t && cx_is_size((CxTraced *)object))
        return ((CxTraced *)object)->storage->expr;
    if (cx_is_data_int(object) && ((CxTraced *)object)->tracer == t)
        return cx_size_define((CxTraced *)object);
    Py_ssize_t value = PyNumber_AsSsize_t(object, PyExc_OverflowError);
    return value == -1 && PyErr_Occurred() ? NULL : cx_size_const(t, value);
}

const CiExpr *
cx_size_settle(CxTracer *t, const CiExpr *e)
{
    int64_t value;

    if (e->kind == CI_EXPR_const || !t->is_static || !cx_size_is_known(t, e))
        return e;
    return cx_size_values(t, 1, &e, &value) < 0 ? NULL : cx_size_const(t, value);
}

/* Where Python wants the number: the value of this call, guarded; a break when there is none. */
int64_t
cx_size_demand(CxTracer *t, const CiExpr *e, const char *what)
{
    int64_t value = -1;

    if (e->kind == CI_EXPR_const)
        return e->value;
    if (!cx_size_is_known(t, e) && cx_tracer_break(t, "the value of a size is needed by %s", what))
        return -1;
    if (cx_size_values(t, 1, &e, &value) < 0)
        return -1;
    const CiExpr *number = cx_size_const(t, value);
    return number == NULL || cx_size_decide(t, CI_REL_eq, e, number) < 0 ? -1 : value;
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

PyObject *
cx_shape_tuple(CxTracer *t, int rank, const CiExpr *const *sizes)
{
    PyObject *tuple = PyTuple_New(rank);
    for (int k = 0; tuple != NULL && k < rank; k++) {
        PyObject *item = cx_size_object(t, sizes[k]);
        if (item == NULL)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, k, item);
    }
    return tuple;
}

int
cx_shape_from(CxTracer *t, PyObject *object, const CiExpr **sizes)
{
    PyObject *items = NULL;
    int count = -1;

    if (PyLong_Check(object) || (cx_is_traced(object) && cx_rank((CxTraced *)object) == 0) ||
        (!PySequence_Check(object) && PyIndex_Check(object)))
        return (sizes[0] = cx_size_from(t, object)) == NULL ? -1 : 1;
    items = PySequence_Fast(object, "an int or a sequence of ints is expected");
    if (items == NULL)
        return -1;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(items);
    if (n > CI_MAX_RANK) {
        PyErr_Format(PyExc_ValueError,
                     "maximum supported dimension for an ndarray is currently %d, found %zd",
                     CI_MAX_RANK, n);
        goto done;
    }
    for (Py_ssize_t k = 0; k < n; k++)
        if ((sizes[k] = cx_size_from(t, PySequence_Fast_GET_ITEM(items, k))) == NULL)
            goto done;
    count = (int)n;
done:
    Py_DECREF(items);
    return count;
}
