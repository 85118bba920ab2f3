/* Rebuilds a specialization from the parts that saved.c made. Python has read them
 * (saved_text.py), so their objects belong to this process. Each function here rebuilds the part
 * of the same name.
 *
 * The guards come first; if they do not accept the call the rest is skipped. Then come the inputs
 * of the program, the program itself (compiled from the text of the graph, with kernels from the
 * cache), and the pieces of the result. An invalid part raises ValueError, and the call is
 * captured. No number read from the parts may be trusted. */
#include "replay/recipe.h"
#include "replay/specialization.h"

#include "graph/graph.h"
#include "graph/methods.h"

/* ---- guards and inputs ---- */

/* Returns 1 if the guards hold for a call, 0 if not, -1 with an exception. */
static int
fits(CxGuards *guards, PyObject *bound)
{
    PyObject **values = PyMem_Calloc((size_t)cx_guards_count(guards) + 1, sizeof *values);
    int64_t *table = PyMem_Calloc((size_t)cx_guards_table(guards) + 1, sizeof *table);

    if (values == NULL || table == NULL) {
        PyMem_Free(values);
        PyMem_Free(table);
        PyErr_NoMemory();
        return -1;
    }
    CxFailure failure;
    int holds = cx_guards_check(guards, ((PyTupleObject *)bound)->ob_item, PyTuple_GET_SIZE(bound),
                                values, table, &failure);
    cx_guards_drop(guards, values);
    PyMem_Free(values);
    PyMem_Free(table);
    return holds;
}

static int
bad(const char *what)
{
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "%s of a saved call is none", what);
    return -1;
}

/* The index of a symbol in the table; -1: the input is not a symbol, -2: an exception. */
static int
read_symbol(CxGuards *guards, PyObject *text)
{
    int number = text == Py_None ? -1 : cx_guards_number_of_text(guards, text);
    if (text == Py_None || number >= 0)
        return number;
    bad("a symbol");
    return -2;
}

/* Rebuilds what input_parts made. NULL with an exception. */

static CxInput *
read_inputs(CxGuards *guards, PyObject *list)
{
    Py_ssize_t n = PyList_GET_SIZE(list);
    CxInput *inputs = PyMem_Calloc((size_t)n + 1, sizeof *inputs);

    if (inputs == NULL)
        PyErr_NoMemory();
    for (Py_ssize_t k = 0; inputs != NULL && k < n; k++) {
        int source = -1, kind = 0, dtype = 0, symbol = -2;
        PyObject *text = NULL, *tuple = PyList_GET_ITEM(list, k);
        if (PyTuple_Check(tuple) && PyArg_ParseTuple(tuple, "iiiO", &source, &kind, &dtype, &text))
            symbol = read_symbol(guards, text);
        bool is_source = source >= 0 && source < cx_guards_count(guards);
        if (symbol == -2 || (symbol < 0 && !is_source) || kind < 0 || dtype < 0 ||
            dtype >= CI_DTYPE_COUNT) {
            bad("an input");
            PyMem_Free(inputs);
            return NULL;
        }
        inputs[k] = (CxInput){source, (CiKind)kind, (CiDtype)dtype, symbol};
    }
    return inputs;
}

/* ---- the result ---- */

/* Reads sizes and strides: each a number, or the text of an expression. */
static int
read_layout(CxGuards *guards, CxPiece *p, PyObject *layout)
{
    Py_ssize_t n = PyTuple_GET_SIZE(layout);

    if (n == 0)
        return 0;
    if (n != cx_piece_layout_count(p))
        return bad("a layout");
    p->layout = PyMem_Calloc((size_t)n, sizeof *p->layout);
    p->numbers = PyMem_Calloc((size_t)n, sizeof *p->numbers);
    if (p->layout == NULL || p->numbers == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t k = 0; k < n; k++) {
        PyObject *part = PyTuple_GET_ITEM(layout, k);
        bool varies = PyUnicode_Check(part);
        p->numbers[k] = varies ? cx_guards_number_of_text(guards, part) : -1;
        p->layout[k] = varies ? 0 : PyLong_AsLongLong(part);
        p->varies |= varies;
        if (varies && p->numbers[k] < 0)
            return bad("a size");
    }
    return PyErr_Occurred() ? -1 : 0;
}

/* Rebuilds what piece_parts made, except for the pieces inside it, which may follow later. */
static int
read_piece(CxGuards *guards, CxResult *r, PyObject *tuple)
{
    int kind = -1, value_kind = 0, dtype = 0, access = 0, whole = 0;
    PyObject *word = NULL, *object = NULL, *names = NULL, *kids = NULL, *layout = NULL;
    CxPiece *p = cx_piece_new(r, PIECE_const);

    if (p == NULL)
        return -1;
    if (!PyTuple_Check(tuple))
        return bad("a piece");
    if (!PyArg_ParseTuple(tuple, "UiiiOOO!iiO!ii", &word, &p->number, &p->memo, &value_kind,
                          &object, &names, &PyTuple_Type, &kids, &dtype, &p->rank, &PyTuple_Type,
                          &layout, &access, &whole))
        return -1;
    kind = cx_piece_kind_of(word);
    if (kind < 0 || dtype < 0 || dtype >= CI_DTYPE_COUNT || p->rank < 0 ||
        p->rank > CI_MAX_RANK || p->memo > 4 * CX_MAX_LEAVES || access < CX_WRITABLE ||
        access > CX_READONLY)
        return bad("a piece");
    p->kind = (CxPieceKind)kind;
    p->value_kind = (CiKind)value_kind;
    p->dtype = (CiDtype)dtype;
    p->access = (CxAccess)access;
    p->is_whole = whole != 0;
    if (p->memo >= r->nmemos)
        r->nmemos = p->memo + 1;
    if (cx_piece_has_object(p->kind))
        p->object = Py_NewRef(object);
    if (p->kind == PIECE_dict || p->kind >= PIECE_new)
        p->names = Py_NewRef(names);
    return read_layout(guards, p, layout);
}

/* Reads the numbers of the pieces inside. */
static int
read_kids(CxResult *r, CxPiece *p, PyObject *kids)
{
    p->kids = PyMem_Calloc((size_t)PyTuple_GET_SIZE(kids) + 1, sizeof *p->kids);
    if (p->kids == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (; p->nkids < PyTuple_GET_SIZE(kids); p->nkids++) {
        long at = PyLong_AsLong(PyTuple_GET_ITEM(kids, p->nkids));
        if (at < 0 || at >= r->npieces)
            return bad("a part of a piece");
        p->kids[p->nkids] = r->pieces[at];
    }
    return 0;
}

static bool
is_of_return(const CxPiece *p)
{
    return p->kind == PIECE_return || p->kind == PIECE_view_return;
}

/* Checks that the pieces only refer to existing objects, and gives buffers the shapes in which
 * pieces use them. */
static int
check_pieces(CxResult *r, const CxProgram *program, CxGuards *guards)
{
    int nsources = cx_guards_count(guards);
    for (int k = 0; k < r->npieces; k++) {
        const CxPiece *p = r->pieces[k];
        bool is_source = p->kind == PIECE_source || p->kind == PIECE_view_source;
        bool is_view = p->kind == PIECE_view_return || p->kind == PIECE_view_source;
        int most = is_source ? nsources : r->nreturns;
        if (((is_source || is_of_return(p)) && (p->number < 0 || p->number >= most)) ||
            ((is_view || p->kind == PIECE_size) && p->layout == NULL))
            return bad("a piece");
        if (p->kind == PIECE_view_source)
            cx_guards_show_strides(guards, p->number);
        if (p->kind == PIECE_return && p->layout != NULL)
            cx_piece_shapes(r, program, p);
    }
    return 0;
}

static CxResult *
read_pieces(CxTracer *t, PyObject *list, const CxProgram *program, CxGuards *guards)
{
    CxResult *r = PyMem_Calloc(1, sizeof *r);
    int status = PyList_GET_SIZE(list) != 0 ? 0 : bad("a result");

    if (r == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    r->state = t->state;
    r->nreturns = program ? program->nreturns : 0;
    if (program != NULL)
        status |= cx_result_open_shapes(r, program);
    for (Py_ssize_t k = 0; status == 0 && k < PyList_GET_SIZE(list); k++)
        status = read_piece(guards, r, PyList_GET_ITEM(list, k));
    for (int k = 0; status == 0 && k < r->npieces; k++)
        status = read_kids(r, r->pieces[k], PyTuple_GET_ITEM(PyList_GET_ITEM(list, k), 6));
    if (status == 0)
        status = check_pieces(r, program, guards);
    if (status == 0)
        r->root = r->pieces[0];
    else {
        cx_result_free(r);
        r = NULL;
    }
    return r;
}

/* ---- the program ---- */

typedef struct Parse {
    const char *text;
    CiGraph *graph;
    CiText form; /* without details that differ between equal graphs: the key of programs */
} Parse;

static void
body_parse(CiContext *ctx, void *arg)
{
    Parse *p = arg;
    p->graph = ci_graph_parse(ctx, p->text);
    p->form = ci_text_new(ctx);
    ci_graph_print_canonical(&p->form, p->graph);
}

/* Finds the program among those of this process, or compiles it. Its library calls are
 * registered. */
static CxProgram *
read_program(CxTracer *t, PyObject *text, Py_ssize_t ninputs)
{
    Parse parse = {.text = PyUnicode_AsUTF8(text)};

    if (parse.text == NULL)
        return NULL;
    t->ctx = ci_context_open();
    if (t->ctx == NULL)
        return (CxProgram *)PyErr_NoMemory();
    if (cx_protect(t->state, t->ctx, body_parse, &parse) < 0)
        return NULL;
    t->graph = parse.graph;
    int are_known = cx_find_externs(t->state, parse.graph);
    if (are_known != 1 || parse.graph->ninputs != ninputs) {
        bad("a graph");
        return NULL;
    }
    return cx_segment_find(t, parse.form.data, 0);
}

/* ---- the specialization ---- */

/* Owns guards, also on failure. */
static PyObject *
build(CxTracer *t, CxGuards *guards, PyObject *inputs, PyObject *pieces, PyObject *text)
{
    CxProgram *program = NULL;
    CxResult *result = NULL;
    CxInput *taken = read_inputs(guards, inputs);
    PyObject *made = NULL;

    if (taken != NULL && text != Py_None)
        program = read_program(t, text, PyList_GET_SIZE(inputs));
    if (taken != NULL && (program != NULL || text == Py_None))
        result = read_pieces(t, pieces, program, guards);
    if (result != NULL)
        made = cx_specialization_new(t->state, program, guards, result,
                                     (int)PyList_GET_SIZE(inputs), taken, 0);
    else {
        PyMem_Free(taken);
        cx_guards_free(guards);
    }
    Py_XDECREF(program);
    return made;
}

PyObject *
cx_method_recall(PyObject *self, PyObject *args)
{
    CxTracer *t = (CxTracer *)self;
    PyObject *sources = NULL, *checks = NULL, *inputs = NULL, *pieces = NULL, *text = NULL,
             *relations = NULL, *bound = NULL;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "O!O!O!O!OO!O!:recall", &PyList_Type, &sources, &PyList_Type,
                          &checks, &PyList_Type, &inputs, &PyList_Type, &pieces, &text,
                          &PyList_Type, &relations, &PyTuple_Type, &bound))
        return NULL;
    if (t->ctx != NULL)
        return PyErr_Format(PyExc_ValueError, "a tracer that has traced recalls nothing");
    if (cx_guards_take_relations(t, relations) < 0)
        return NULL;
    CxGuards *guards = cx_guards_new(t, sources, checks);
    int holds = guards ? fits(guards, bound) : -1;
    if (holds == 1)
        return build(t, guards, inputs, pieces, text);
    cx_guards_free(guards);
    return holds < 0 ? NULL : Py_NewRef(Py_None);
}
