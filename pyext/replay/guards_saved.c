/* Converts varying sizes of guards to text and back, for saved calls: symbols, decisions about
 * sizes, and numbers of the table. */
#include "replay/guards_private.h"

#include "graph/size.h"

typedef struct Print {
    const CiExpr *e;
    CiText text;
} Print;

static void
body_print(CiContext *ctx, void *arg)
{
    Print *p = arg;
    p->text = ci_text_new(ctx);
    ci_expr_print(&p->text, p->e, CI_STYLE_text);
}

PyObject *
cx_guards_expr_text(const CxGuards *g, const CiExpr *e)
{
    Print p = {.e = e};
    PyObject *text = NULL;
    CiContext *ctx = ci_context_open();

    if (ctx == NULL)
        return PyErr_NoMemory();
    if (cx_protect(g->state, ctx, body_print, &p) == 0)
        text = PyUnicode_FromString(p.text.data);
    ci_context_close(ctx);
    return text;
}

/* A symbol as the arguments of Tracer.symbol. */
static PyObject *
symbol_parts(const CxKnown *known)
{
    const CiExpr *s = known->symbol;

    if (s->high == CI_INFINITY)
        return Py_BuildValue("(siiLLO)", s->name, known->source, known->axis,
                             (long long)known->hint, (long long)s->low, Py_None);
    return Py_BuildValue("(siiLLL)", s->name, known->source, known->axis, (long long)known->hint,
                         (long long)s->low, (long long)s->high);
}

PyObject *
cx_guards_symbols(const CxGuards *g)
{
    PyObject *list = PyList_New(g->nknown);

    for (int k = 0; list != NULL && k < g->nknown; k++)
        cx_put_item(&list, k, symbol_parts(&g->known[k]));
    return list;
}

static PyObject *
relation_parts(const CxGuards *g, const CiShapeGuard *guard)
{
    return Py_BuildValue("(iNNiNi)", (int)guard->relation, cx_guards_expr_text(g, guard->left),
                         cx_guards_expr_text(g, guard->right), (int)guard->is_usual,
                         cx_path(guard->loc.file), guard->loc.line);
}

PyObject *
cx_guards_relations(const CxGuards *g, bool with_own)
{
    int first = with_own ? 0 : g->nown;
    PyObject *list = PyList_New(g->nrelations - first);

    for (int k = first; list != NULL && k < g->nrelations; k++)
        cx_put_item(&list, k - first, relation_parts(g, &g->relations[k].guard));
    return list;
}

PyObject *
cx_guards_text_of(const CxGuards *g, int number)
{
    const CiMap *numbers = g->ctx != NULL ? g->builder.numbers : NULL;

    for (int k = 0; numbers != NULL && k < ci_map_count(numbers); k++)
        if ((intptr_t)ci_map_value_at(numbers, k) == number + 1)
            return cx_guards_expr_text(g, (const CiExpr *)(uintptr_t)ci_map_key_at(numbers, k));
    return NULL;
}

/* Reads an expression of the table, which may contain solved symbols that no tracer has. */
typedef struct Read {
    CiSym *sym;
    const char *text;
    const CiExpr *e;
} Read;

static void
body_read(CiContext *ctx, void *arg)
{
    Read *r = arg;
    CiLexer lex;
    ci_lexer_init(&lex, ctx, r->text);
    r->e = ci_expr_parse(r->sym, &lex);
}

int
cx_guards_number_of_text(CxGuards *g, PyObject *text)
{
    Read r = {.sym = g->sym, .text = PyUnicode_AsUTF8(text)};

    if (r.text == NULL)
        return -1;
    if (g->ctx == NULL) {
        PyErr_Format(PyExc_ValueError, "'%U' is no size: no symbol was declared", text);
        return -1;
    }
    return cx_protect(g->state, g->ctx, body_read, &r) < 0 ? -1 : cx_guards_number(g, r.e);
}

/* ---- rebuilding ---- */

typedef struct Push {
    CxTracer *tracer;
    CiShapeGuard guard;
    const char *file;
} Push;

static void
body_push(CiContext *ctx, void *arg)
{
    Push *p = arg;
    CiShapeEnv *env = p->tracer->env;

    p->guard.loc.file = ci_intern(ctx, p->file);
    CI_PUSH(ctx, env->guards, env->nguards, env->capguards, p->guard);
}

static int
add_relation(CxTracer *t, PyObject *tuple)
{
    Push p = {.tracer = t};
    PyObject *left = NULL, *right = NULL, *file = NULL;
    int relation = 0, usual = 0, line = 0, status = -1;

    if (!PyTuple_Check(tuple)) {
        PyErr_SetString(PyExc_ValueError, "a relation of a saved call is none");
        return -1;
    }
    if (!PyArg_ParseTuple(tuple, "iUUiO&i", &relation, &left, &right, &usual,
                          PyUnicode_FSConverter, &file, &line))
        return -1;
    p.file = PyBytes_AS_STRING(file);
    p.guard.relation = (CiRelation)relation;
    p.guard.is_usual = usual != 0;
    p.guard.loc.line = line;
    p.guard.left = cx_symbol_parse(t, left);
    p.guard.right = p.guard.left != NULL ? cx_symbol_parse(t, right) : NULL;
    if (p.guard.right != NULL)
        status = cx_protect(t->state, t->sym_ctx, body_push, &p);
    Py_DECREF(file);
    return status;
}

int
cx_guards_take_relations(CxTracer *t, PyObject *list)
{
    for (Py_ssize_t k = 0; k < PyList_GET_SIZE(list); k++)
        if (add_relation(t, PyList_GET_ITEM(list, k)) < 0)
            return -1;
    return 0;
}
