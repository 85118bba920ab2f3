/* Takes a specialization apart so that a later process can rebuild it (saved_graph.c): the conditions
 * on a call, the inputs of its program, the pieces of its result, and its graph as text. Python
 * writes these to disk and reads them (saved.py). Python also names the functions that library
 * calls call. */
#include "replay/recipe.h"
#include "replay/specialization.h"

#include "graph/graph.h"
#include "graph/methods.h"

typedef struct Print {
    CiGraph *graph;
    const char *text;
    PyObject *made;
} Print;

static void
body_print(CiContext *ctx, void *arg)
{
    Print *p = arg;
    CiText text = ci_text_new(ctx);
    ci_graph_print(&text, p->graph);
    p->made = PyUnicode_FromString(text.data);
}

static void
body_print_again(CiContext *ctx, void *arg)
{
    Print *p = arg;
    p->graph = ci_graph_parse(ctx, p->text);
    body_print(ctx, p);
}

/* The text of the graph, if it is complete; otherwise NULL without an exception. */
static PyObject *
graph_text(const CxProgram *program)
{
    Print first = {.graph = program->graph}, second = {0};
    CiContext *ctx = ci_context_open();

    if (ctx == NULL)
        return PyErr_NoMemory();
    if (cx_protect(program->state, ctx, body_print, &first) == 0 && first.made != NULL) {
        second.text = PyUnicode_AsUTF8(first.made);
        if (second.text == NULL || cx_protect(program->state, ctx, body_print_again, &second) < 0 ||
            second.made == NULL || PyUnicode_Compare(first.made, second.made) != 0)
            Py_CLEAR(first.made);
    }
    Py_XDECREF(second.made);
    ci_context_close(ctx);
    PyErr_Clear();
    return first.made;
}

static bool
is_portable(const CxProgram *p)
{
    return p == NULL || (p->wrapper == NULL && p->why_host == NULL);
}

/* None if the input is not a symbol. */
static PyObject *
symbol_text(const CxGuards *guards, const CxInput *input)
{
    return input->symbol < 0 ? Py_NewRef(Py_None) : cx_guards_text_of(guards, input->symbol);
}

static PyObject *
input_parts(const CxGuards *guards, int count, const CxInput *inputs)
{
    PyObject *list = PyList_New(count);

    for (int k = 0; list != NULL && k < count; k++) {
        PyObject *symbol = symbol_text(guards, &inputs[k]);
        PyObject *one = symbol ? Py_BuildValue("(iiiN)", inputs[k].source, (int)inputs[k].kind,
                                               (int)inputs[k].dtype, symbol)
                               : NULL;
        cx_put_item(&list, k, one);
    }
    return list;
}

static const char *const PIECE_WORDS[] = {
    [PIECE_const] = "constant", [PIECE_source] = "source", [PIECE_return] = "return",
    [PIECE_view_return] = "view of return", [PIECE_view_source] = "view of source",
    [PIECE_size] = "size", [PIECE_tuple] = "tuple", [PIECE_list] = "list",
    [PIECE_dict] = "dict", [PIECE_named] = "named", [PIECE_new] = "new",
    [PIECE_call] = "call",
};

int
cx_piece_kind_of(PyObject *word)
{
    for (int k = 0; k <= PIECE_call; k++)
        if (PyUnicode_CompareWithASCIIString(word, PIECE_WORDS[k]) == 0)
            return k;
    return -1;
}

bool
cx_piece_has_object(CxPieceKind kind)
{
    return kind == PIECE_const || kind >= PIECE_tuple;
}

static PyObject *
piece_kids(const CxResult *r, const CxPiece *p)
{
    PyObject *kids = PyTuple_New(p->nkids);

    for (Py_ssize_t k = 0; kids != NULL && k < p->nkids; k++) {
        int at = 0;
        while (at < r->npieces && r->pieces[at] != p->kids[k])
            at++;
        cx_put_item(&kids, k, PyLong_FromLong(at));
    }
    return kids;
}

int
cx_piece_layout_count(const CxPiece *p)
{
    return p->kind == PIECE_size ? 1 : 2 * p->rank + 1;
}

/* A number, or the text of an expression. */
static PyObject *
layout_part(const CxGuards *guards, const CxPiece *p, Py_ssize_t k)
{
    bool varies = p->varies && p->numbers[k] >= 0;
    return varies ? cx_guards_text_of(guards, p->numbers[k]) : PyLong_FromLongLong(p->layout[k]);
}

static PyObject *
piece_parts(const CxGuards *guards, const CxResult *r, const CxPiece *p)
{
    PyObject *kids = piece_kids(r, p), *layout = PyTuple_New(p->layout ? cx_piece_layout_count(p) : 0),
             *made = NULL;

    for (Py_ssize_t k = 0; layout != NULL && k < PyTuple_GET_SIZE(layout); k++)
        cx_put_item(&layout, k, layout_part(guards, p, k));
    if (kids != NULL && layout != NULL)
        made = Py_BuildValue("(siiiOOOiiOii)", PIECE_WORDS[p->kind], p->number, p->memo, (int)p->value_kind,
                             p->object ? p->object : Py_None, p->names ? p->names : Py_None, kids,
                             (int)p->dtype, p->rank, layout, (int)p->access, p->is_whole);
    Py_XDECREF(kids);
    Py_XDECREF(layout);
    return made;
}

PyObject *
cx_result_rows(const CxGuards *guards, const CxResult *r)
{
    PyObject *list = PyList_New(0);

    for (int k = 0; list != NULL && k < r->npieces; k++)
        cx_add_item(&list, piece_parts(guards, r, r->pieces[k]));
    return list;
}

PyObject *
cx_saved_parts(const CxProgram *program, const CxGuards *guards, const CxResult *result,
               int ninputs, const CxInput *inputs)
{
    PyObject *made = NULL, *text = NULL, *pieces = NULL, *list = NULL, *symbols = NULL,
             *relations = NULL, *calls = NULL;

    if (!is_portable(program) || result->root != result->pieces[0])
        Py_RETURN_NONE;
    text = program != NULL ? graph_text(program) : Py_NewRef(Py_None);
    pieces = text ? cx_result_rows(guards, result) : NULL;
    list = pieces ? input_parts(guards, ninputs, inputs) : NULL;
    symbols = list ? cx_guards_symbols(guards) : NULL;
    relations = symbols ? cx_guards_relations(guards, false) : NULL;
    calls = relations ? cx_program_library_calls((PyObject *)program, NULL) : NULL;
    if (calls != NULL)
        made = PyTuple_Pack(6, list, pieces, text, symbols, relations, calls);
    Py_XDECREF(calls);
    Py_XDECREF(symbols);
    Py_XDECREF(relations);
    Py_XDECREF(text);
    Py_XDECREF(pieces);
    Py_XDECREF(list);
    return made != NULL || PyErr_Occurred() ? made : Py_NewRef(Py_None);
}
