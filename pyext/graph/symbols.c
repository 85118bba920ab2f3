/* The size symbols of one traced call. They live as long as the tracer, while graphs come and
 * go. Assumptions about them are collected in the shape environment of the tracer and become
 * guards. */
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
    Symbols s = {.tracer = t, .text = PyUnicode_AsUTF8(text)};

    if (s.text == NULL || cx_protect(t->state, t->sym_ctx, body_parse, &s) < 0)
        return NULL;
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
    return cx_traced_int(t, s.source.symbol);
}

void
cx_symbols_reveal(CxTracer *t)
{
    for (int k = 0; k < t->env->nsources; k++)
        t->env->sources[k].is_unbacked = false;
}

/* ---- texts for the user ---- */

typedef struct Printing {
    const CiExpr *left, *right;
    CiText text;
} Printing;

static void
body_print(CiContext *ctx, void *arg)
{
    Printing *p = arg;
    p->text = ci_text_new(ctx);
    ci_expr_print(&p->text, p->left, CI_STYLE_text);
    if (p->right == NULL)
        return;
    ci_text_add(&p->text, " == ");
    ci_expr_print(&p->text, p->right, CI_STYLE_text);
}

PyObject *
cx_symbol_text(CxTracer *t, const CiExpr *left, const CiExpr *right)
{
    Printing p = {.left = left, .right = right};
    return cx_protect(t->state, t->sym_ctx, body_print, &p) < 0 ? NULL
                                                                : PyUnicode_FromString(p.text.data);
}

static PyObject *
fixed_row(CxTracer *t, const CiShapeGuard *guard, const CiExpr *e)
{
    PyObject *names = PyTuple_New(e->nsymbols), *text = NULL;

    for (int k = 0; names != NULL && k < e->nsymbols; k++)
        cx_put_item(&names, k, PyUnicode_FromString(e->symbols[k]->name));
    if (names != NULL)
        text = cx_symbol_text(t, guard->left, guard->right);
    if (text == NULL)
        Py_CLEAR(names);
    if (names == NULL)
        return NULL;
    return Py_BuildValue("(NNNNi)", names, PyBool_FromLong(e->kind == CI_EXPR_symbol), text,
                         cx_path(guard->loc.file), guard->loc.line);
}

/* fixed_sizes(): sizes that guards fix to one number, each with the names of its symbols,
 * whether it is a single symbol, text, file and line. */
PyObject *
cx_method_fixed_sizes(PyObject *self, PyObject *unused)
{
    CxTracer *t = (CxTracer *)self;
    PyObject *list = PyList_New(0);

    (void)unused;
    CX_ENTRY();
    for (int k = 0; list != NULL && k < t->env->nguards; k++) {
        const CiShapeGuard *guard = &t->env->guards[k];
        bool is_left = guard->left->kind == CI_EXPR_const;
        if (guard->relation != CI_REL_eq || (!is_left && guard->right->kind != CI_EXPR_const))
            continue;
        cx_add_item(&list, fixed_row(t, guard, is_left ? guard->right : guard->left));
    }
    return list;
}
