/* Size symbols of one traced call. They live as long as the tracer, while graphs come and go; what
 * was assumed of them collects in its shape environment and becomes guards. */
#include "pyext.h"

typedef struct Symbols {
    CxTracer *tracer;
    const char *text;
    CiSymbolSource source;
    int64_t low, high;
    const CiExpr *expr;
} Symbols;

static void
body_open(CiContext *ctx, void *arg)
{
    CxTracer *t = ((Symbols *)arg)->tracer;
    t->sym = ci_sym_new(ctx);
    t->env = ci_shape_env_new(ctx, t->sym);
    t->zero = ci_expr_const(t->sym, 0);
    t->one = ci_expr_const(t->sym, 1);
}

int
cx_symbols_open(CxTracer *t)
{
    Symbols s = {.tracer = t};

    t->sym_ctx = ci_context_open();
    if (t->sym_ctx == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    return cx_protect(t->state, t->sym_ctx, body_open, &s);
}

static void
body_parse(CiContext *ctx, void *arg)
{
    Symbols *s = arg;
    CiLexer lex;
    ci_lexer_init(&lex, ctx, s->text);
    s->expr = ci_expr_parse(s->tracer->sym, &lex);
}

const CiExpr *
cx_symbol_parse(CxTracer *t, PyObject *text)
{
    PyObject *str = PyObject_Str(text);
    Symbols s = {.tracer = t, .text = str ? PyUnicode_AsUTF8(str) : NULL};

    if (s.text != NULL && cx_protect(t->state, t->sym_ctx, body_parse, &s) < 0)
        s.expr = NULL;
    Py_XDECREF(str);
    return s.expr;
}

static void
body_symbol(CiContext *ctx, void *arg)
{
    Symbols *s = arg;
    CiShapeEnv *env = s->tracer->env;
    CiSymbolKind kind = s->source.axis >= 0 ? CI_SYMBOL_size : CI_SYMBOL_argument;
    s->source.symbol = ci_expr_symbol(s->tracer->sym, s->text, kind, s->low, s->high);
    for (int k = 0; k < env->nsources; k++)
        if (env->sources[k].symbol == s->source.symbol)
            ci_fail(ctx, CI_ERR_VALUE, "the symbol %s is declared twice", s->text);
    CI_PUSH(ctx, env->sources, env->nsources, env->capsources, s->source);
}

PyObject *
cx_tracer_symbol(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"name", "source", "axis", "hint", "low", "high", NULL};
    CxTracer *t = (CxTracer *)self;
    Symbols s = {.tracer = t};
    long long hint = 0, low = 0;
    PyObject *high = Py_None;

    CX_ENTRY();
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "siiL|LO:symbol", names, &s.text,
                                     &s.source.input, &s.source.axis, &hint, &low, &high))
        return NULL;
    s.source.hint = hint;
    s.low = low;
    s.high = high == Py_None ? CI_INFINITY : PyLong_AsLongLong(high);
    if (PyErr_Occurred() || cx_protect(t->state, t->sym_ctx, body_symbol, &s) < 0)
        return NULL;
    Py_RETURN_NONE;
}
