/* Queries and conversions of values for captured loops and branches. */
#include "graph/methods.h"
#include "value/build.h"
#include "value/index.h"

/* as_data(value): computes an int that is only known at run time as a value of the program. */
PyObject *
cx_traced_as_data(PyObject *self, PyObject *unused)
{
    CxTraced *x = (CxTraced *)self;
    (void)unused;

    CX_ENTRY();
    if (!cx_is_size(x) || cx_size_is_known(x->tracer, x->storage->expr))
        return Py_NewRef(self);
    if (cx_traced_prepare(x) < 0)
        return NULL;
    return cx_traced_from_node(x->tracer, cx_node(x), CI_KIND_python);
}

/* ---- ints that are expressions ---- */

static const CiExpr *
expr_of(PyObject *value)
{
    return cx_is_traced(value) && cx_is_size((CxTraced *)value) ? ((CxTraced *)value)->storage->expr
                                                                : NULL;
}

/* is_positive(int): True or False if known, also if only empty arrays are an exception; else
 * None. */
PyObject *
cx_method_is_positive(PyObject *self, PyObject *value)
{
    CxTracer *t = (CxTracer *)self;

    CX_ENTRY();
    if (cx_is_traced(value) && !cx_is_size((CxTraced *)value))
        Py_RETURN_NONE;
    const CiExpr *e = cx_size_from(t, value);
    int answer = e ? cx_size_usual(t, CI_REL_lt, t->zero, e) : -1;
    return answer < 0 ? NULL : answer == CX_OPEN ? Py_NewRef(Py_None) : PyBool_FromLong(answer);
}

typedef struct Define {
    CxTracer *tracer;
    CxTraced *value;
    int64_t low;
    const CiExpr *limit, *symbol;
    int is_closed; /* limit is a value of the int */
} Define;

static void
body_symbol(CiContext *ctx, void *arg)
{
    Define *d = arg;
    const char *name = ci_format(ctx, "u%d", d->tracer->nsymbols++);
    if (d->is_closed && d->limit != NULL)
        d->limit = ci_expr_add(d->tracer->sym, d->limit, d->tracer->one);
    d->symbol = ci_expr_unbacked(d->tracer->sym, name, d->low, d->limit);
}

/* define(int, low, limit, is_closed): a data-dependent int in [low, limit), or in [low, limit], as
 * an expression; a bound of None is absent. A limit that an earlier graph has computed is a number. */
PyObject *
cx_method_define(PyObject *self, PyObject *args)
{
    CxTracer *t = (CxTracer *)self;
    PyObject *value = NULL, *low = NULL, *limit = NULL;
    Define d = {.tracer = t, .low = CI_MINUS_INFINITY};

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "OOO|p:define", &value, &low, &limit, &d.is_closed))
        return NULL;
    if (!cx_is_traced(value) || cx_dtype((CxTraced *)value) != CI_DTYPE_i64)
        return cx_misuse(t->state, "define(): the value is no Traced int");
    if (low != Py_None && (d.low = PyLong_AsLongLong(low)) == -1 && PyErr_Occurred())
        return NULL;
    if (limit != Py_None && ((d.limit = cx_size_from(t, limit)) == NULL ||
                             (d.limit = cx_size_resolve(t, d.limit)) == NULL))
        return NULL;
    if (cx_protect(t->state, t->sym_ctx, body_symbol, &d) < 0)
        return NULL;
    CiNode *node = cx_build_define(t, (CxTraced *)value, d.symbol);
    CxStorage *symbol = node ? cx_storage_from_node(t, node, CI_KIND_python) : NULL;
    if (symbol == NULL)
        return NULL;
    symbol->expr = d.symbol;
    if (cx_defined_add(t, ((CxTraced *)value)->storage, symbol, NULL, false) < 0)
        return NULL;
    return cx_traced_int(t, d.symbol);
}

typedef struct Growing {
    CxTracer *tracer;
    const CiExpr *e, *symbol, *factor, *rest;
} Growing;

/* Finds the line through two large values of the symbol, where minima and maxima with small
 * numbers have no effect. */
static void
body_line(CiContext *ctx, void *arg)
{
    enum { LARGE = 1 << 24 };
    Growing *g = arg;
    CiSym *sym = g->tracer->sym;
    const CiExpr *large = ci_expr_const(sym, LARGE), *twice = ci_expr_const(sym, 2 * LARGE);
    const CiExpr *once = ci_expr_substitute(sym, g->e, 1, &g->symbol, &large),
                 *more = ci_expr_substitute(sym, g->e, 1, &g->symbol, &twice);

    (void)ctx;
    g->factor = ci_expr_floordiv(sym, ci_expr_sub(sym, more, once), large);
    g->rest = ci_expr_sub(sym, once, ci_expr_mul(sym, g->factor, large));
}

/* as_line(size, symbol): (a, b) if the size is a * symbol + b for large values of the symbol,
 * with a constant a >= 1; else None. */
PyObject *
cx_method_as_line(PyObject *self, PyObject *args)
{
    CxTracer *t = (CxTracer *)self;
    PyObject *size = NULL, *symbol = NULL;
    int64_t factor = 0;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "OO:as_line", &size, &symbol))
        return NULL;
    Growing g = {.tracer = t, .e = expr_of(size), .symbol = expr_of(symbol)};
    if (g.e == NULL || g.symbol == NULL || !ci_expr_depends_on(g.e, g.symbol))
        Py_RETURN_NONE;
    if (cx_protect(t->state, t->sym_ctx, body_line, &g) < 0)
        return NULL;
    if (!ci_expr_is_const(g.factor, &factor) || factor < 1)
        Py_RETURN_NONE;
    return Py_BuildValue("(LN)", (long long)factor, cx_size_object(t, g.rest));
}

/* fitted(like): the array with its sizes written as like's, if they are known to be equal; else
 * None. */
PyObject *
cx_traced_fitted(PyObject *self, PyObject *like)
{
    CxTracer *t = ((CxTraced *)self)->tracer;
    const CiExpr *starts[CI_MAX_RANK], *steps[CI_MAX_RANK];
    bool is_same = true;

    CX_ENTRY();
    if (!cx_is_traced(like))
        return cx_misuse(t->state, "fitted() takes a Traced value");
    CxTraced *x = (CxTraced *)self, *y = (CxTraced *)like;
    if (cx_rank(x) != cx_rank(y) || cx_dtype(x) != cx_dtype(y))
        Py_RETURN_NONE;
    for (int k = 0; k < cx_rank(x); k++) {
        int equal = cx_size_decide(t, CI_REL_eq, cx_sizes(x)[k], cx_sizes(y)[k]);
        if (equal < 0)
            return NULL;
        if (equal != 1)
            Py_RETURN_NONE;
        starts[k] = t->zero;
        steps[k] = t->one;
        is_same &= cx_sizes(x)[k] == cx_sizes(y)[k];
    }
    return is_same ? Py_NewRef(self) : cx_make_slice(x, starts, steps, cx_sizes(y));
}
