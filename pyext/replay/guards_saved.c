/* Converts varying sizes of guards to text and back, for saved calls: symbols, decisions about
 * sizes, and numbers of the table. */
#include "replay/guards_private.h"

#include "graph/size.h"

typedef struct Print {
    const CxGuards *guards;
    const CiExpr *left, *right;
    CiText texts[2];
} Print;

static void
body_print(CiContext *ctx, void *arg)
{
    Print *p = arg;
    const CiExpr *both[] = {p->left, p->right};

    for (int k = 0; k < 2; k++) {
        p->texts[k] = ci_text_new(ctx);
        if (both[k] != NULL)
            ci_expr_print(&p->texts[k], both[k], CI_STYLE_text);
    }
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
    Print p = {.guards = g, .left = guard->left, .right = guard->right};

    if (cx_protect(g->state, g->ctx, body_print, &p) < 0)
        return NULL;
    return Py_BuildValue("(issiNi)", (int)guard->relation, p.texts[0].data, p.texts[1].data,
                         (int)guard->is_usual, cx_path(guard->loc.file), guard->loc.line);
}

PyObject *
cx_guards_relations(const CxGuards *g)
{
    PyObject *list = PyList_New(g->nrelations - g->nown);

    for (int k = g->nown; list != NULL && k < g->nrelations; k++)
        cx_put_item(&list, k - g->nown, relation_parts(g, &g->relations[k].guard));
    return list;
}

PyObject *
cx_guards_text_of(const CxGuards *g, int number)
{
    const CiMap *numbers = g->ctx != NULL ? g->builder.numbers : NULL;

    for (int k = 0; numbers != NULL && k < ci_map_count(numbers); k++) {
        if ((intptr_t)ci_map_value_at(numbers, k) != number + 1)
            continue;
        Print p = {.guards = g, .left = (const CiExpr *)(uintptr_t)ci_map_key_at(numbers, k)};
        if (cx_protect(g->state, g->ctx, body_print, &p) < 0)
            return NULL;
        return PyUnicode_FromString(p.texts[0].data);
    }
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
