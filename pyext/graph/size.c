/* Sizes, strides, offsets and indices during capture.
 *
 * All are expressions of one CiSym that the tracer owns for its whole life, so equal expressions
 * are the same pointer. Graphs have their own CiSym; graph.c copies. Most sizes are constants, for
 * which there is a fast path.
 *
 * Functions that may fail run inside of cx_protect, where no Python object may be touched. */
#include "graph/size.h"
#include "state/array.h"

#include "ir/layout.h"

/* ---- arithmetic ---- */

typedef struct Arithmetic {
    CxTracer *tracer;
    CiOp op;
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
    static const CiExpr *(*const makers[CI_OP_COUNT])(CiSym *, const CiExpr *, const CiExpr *) = {
        [CI_OP_add] = ci_expr_add,           [CI_OP_subtract] = ci_expr_sub,
        [CI_OP_multiply] = ci_expr_mul,      [CI_OP_floor_divide] = ci_expr_floordiv,
        [CI_OP_remainder] = ci_expr_mod,     [CI_OP_minimum] = ci_expr_min,
        [CI_OP_maximum] = ci_expr_max,
    };
    Arithmetic *job = arg;

    (void)ctx;
    job->result = makers[job->op](job->tracer->sym, job->a, job->b);
}

const CiExpr *
cx_size_make(CxTracer *t, CiOp op, const CiExpr *a, const CiExpr *b)
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

bool
cx_size_is_known(const CxTracer *t, const CiExpr *e)
{
    return !t->is_infeasible && ci_shape_env_has_hint(t->env, e);
}

/* Raises the exception left in `on_concretize` if e contains a size by which nothing may be decided. */
int
cx_size_refuse(CxTracer *t, const CiExpr *e, const char *what)
{
    for (int k = 0; k < t->env->nsources; k++) {
        const CiSymbolSource *source = &t->env->sources[k];
        if (!source->is_unbacked || !ci_expr_depends_on(e, source->symbol))
            continue;
        if (t->nblocks != 0 || t->forbids_breaks)
            return cx_region_break(t, "the value of a size is needed by %s", what);
        CiLoc loc = cx_location(t);
        PyObject *args = Py_BuildValue("(sNis)", source->symbol->name, cx_path(loc.file),
                                       loc.line, what);
        if (args != NULL)
            PyErr_SetObject(t->on_concretize ? t->on_concretize : cx_exception(t->state, "Unsupported"),
                            args);
        Py_XDECREF(args);
        return -1;
    }
    return 0;
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

/* Sample value of a symbol for shapes that only appear in the text of an exception. An unknown
 * one counts as a small number. */
static int64_t
sample_of(void *arg, const CiExpr *symbol)
{
    const CxTracer *t = arg;
    return cx_size_is_known(t, symbol) ? ci_shape_env_hint(t->sym_ctx, t->env, symbol) : 4;
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
        /* Data-dependent sizes get arbitrary samples. */
        int64_t low = exprs[k]->low, high = exprs[k]->high;
        values[k] = job.value < low ? low : job.value > high ? high : job.value;
    }
}

/* Independent samples of data-dependent sizes may make a difference negative, which no array's
 * size is. */
void
cx_size_sample_layout(CxTraced *x, int64_t *sizes, int64_t *strides)
{
    int rank = cx_rank(x);

    cx_size_samples(x->tracer, rank, cx_sizes(x), sizes);
    for (int k = 0; k < rank; k++)
        sizes[k] = sizes[k] < 0 ? 0 : sizes[k];
    if (strides != NULL)
        cx_size_samples(x->tracer, rank, cx_strides(x), strides);
}

static void
body_resolve(CiContext *ctx, void *arg)
{
    Arithmetic *job = arg;
    const CiShapeEnv *env = job->tracer->env;
    CiSym *sym = job->tracer->sym;

    (void)ctx;
    job->result = job->a;
    for (int k = 0; k < env->nsources; k++) {
        const CiExpr *symbol = env->sources[k].symbol,
                     *value = ci_expr_const(sym, env->sources[k].hint);
        if (symbol->symbol_kind == CI_SYMBOL_unbacked)
            job->result = ci_expr_substitute(sym, job->result, 1, &symbol, &value);
    }
}

const CiExpr *
cx_size_resolve(CxTracer *t, const CiExpr *e)
{
    Arithmetic job = {.tracer = t, .a = e};
    bool has_data = false;

    for (int k = 0; k < e->nsymbols; k++)
        has_data |= e->symbols[k]->symbol_kind == CI_SYMBOL_unbacked;
    if (!has_data || !t->has_run)
        return e;
    return cx_protect(t->state, t->sym_ctx, body_resolve, &job) < 0 ? NULL : job.result;
}

typedef struct Most {
    CxTracer *tracer;
    const CiExpr *e, *result;
    uint32_t before;
} Most;

static void
body_most(CiContext *ctx, void *arg)
{
    Most *m = arg;
    (void)ctx;
    m->result = ci_expr_most(m->tracer->sym, m->e, m->before);
}

int
cx_size_most(CxTracer *t, const CiExpr *e, uint32_t before, const CiExpr **most)
{
    Most job = {.tracer = t, .e = e, .before = before};
    int result = cx_protect(t->state, t->sym_ctx, body_most, &job);
    *most = job.result;
    return result;
}
