/* Size symbols of one traced call. They live as long as the tracer, while graphs come and go; what
 * was assumed of them collects in its shape environment and becomes guards. */
#include "graph/methods.h"
#include "graph/size.h"

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
cx_method_symbol(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"name", "source", "axis", "hint", "low", "high", "is_unbacked", NULL};
    CxTracer *t = (CxTracer *)self;
    Symbols s = {.tracer = t};
    long long hint = 0, low = 0;
    PyObject *high = Py_None;
    int is_unbacked = 0;

    CX_ENTRY();
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "siiL|LOp:symbol", names, &s.text,
                                     &s.source.input, &s.source.axis, &hint, &low, &high,
                                     &is_unbacked))
        return NULL;
    s.source.hint = hint;
    s.source.is_unbacked = is_unbacked != 0;
    s.low = low;
    s.high = high == Py_None ? CI_INFINITY : PyLong_AsLongLong(high);
    if (PyErr_Occurred() || cx_protect(t->state, t->sym_ctx, body_symbol, &s) < 0)
        return NULL;
    Py_RETURN_NONE;
}

void
cx_symbols_reveal(CxTracer *t)
{
    for (int k = 0; k < t->env->nsources; k++)
        t->env->sources[k].is_unbacked = false;
}

/* ---- what guards are told ---- */

typedef struct Printing {
    CxTracer *tracer;
    int count;
    const CiExpr *const *exprs;
    CiText *texts;
} Printing;

static void
body_print(CiContext *ctx, void *arg)
{
    Printing *p = arg;
    for (int k = 0; k < p->count; k++) {
        p->texts[k] = ci_text_new(ctx);
        ci_expr_print(&p->texts[k], p->exprs[k], CI_STYLE_text);
    }
}

/* Ints, and texts for what is not constant. */
static PyObject *
exprs_tuple(CxTracer *t, int count, const CiExpr *const *exprs)
{
    CiText texts[CI_MAX_RANK];
    Printing p = {t, count, exprs, texts};
    PyObject *tuple = PyTuple_New(count);

    if (tuple == NULL || cx_protect(t->state, t->sym_ctx, body_print, &p) < 0) {
        Py_XDECREF(tuple);
        return NULL;
    }
    for (int k = 0; k < count; k++) {
        PyObject *item = exprs[k]->kind == CI_EXPR_const ? PyLong_FromLongLong(exprs[k]->value)
                                                         : PyUnicode_FromString(texts[k].data);
        if (item == NULL) {
            Py_DECREF(tuple);
            return NULL;
        }
        PyTuple_SET_ITEM(tuple, k, item);
    }
    return tuple;
}

PyObject *
cx_method_layout(PyObject *self, PyObject *traced)
{
    CxTracer *t = (CxTracer *)self;

    CX_ENTRY();
    if (!cx_is_traced(traced) || ((CxTraced *)traced)->view != NULL)
        return cx_misuse(t->state, "a traced array that is no view is expected");
    const CxStorage *s = ((CxTraced *)traced)->storage;
    PyObject *sizes = exprs_tuple(t, s->rank, s->sizes);
    PyObject *strides = sizes ? exprs_tuple(t, s->rank, s->strides) : NULL;
    PyObject *pair = strides ? PyTuple_Pack(2, sizes, strides) : NULL;
    Py_XDECREF(sizes);
    Py_XDECREF(strides);
    return pair;
}

PyObject *
cx_method_shape_guards(PyObject *self, PyObject *unused)
{
    static const char *const SIGNS[] = {
        [CI_REL_eq] = "==", [CI_REL_ne] = "!=", [CI_REL_le] = "<=", [CI_REL_lt] = "<"};
    CxTracer *t = (CxTracer *)self;
    PyObject *list = PyList_New(0);

    (void)unused;
    CX_ENTRY();
    for (int k = 0; list != NULL && k < t->env->nguards; k++) {
        const CiShapeGuard *guard = &t->env->guards[k];
        CiText texts[2];
        const CiExpr *sides[2] = {guard->left, guard->right};
        Printing p = {t, 2, sides, texts};
        PyObject *row = NULL;
        if (cx_protect(t->state, t->sym_ctx, body_print, &p) == 0)
            row = Py_BuildValue("(ssssi)", texts[0].data, SIGNS[guard->relation], texts[1].data,
                                guard->loc.file ? guard->loc.file : "", guard->loc.line);
        if (row == NULL || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}
