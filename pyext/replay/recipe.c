/* The recipe of a result: a tree from which C makes the result again in each later call. An
 * object that is returned twice is one shared piece. */
#include "graph/size.h"
#include "replay/recipe.h"
#include "state/array.h"
#include "state/device_array.h"

void
cx_result_free(CxResult *r)
{
    if (r == NULL)
        return;
    for (int k = 0; k < r->npieces; k++) {
        CxPiece *p = r->pieces[k];
        Py_XDECREF(p->object);
        Py_XDECREF(p->names);
        PyMem_Free(p->kids);
        PyMem_Free(p->layout);
        PyMem_Free(p->numbers);
        PyMem_Free(p);
    }
    PyMem_Free(r->pieces);
    PyMem_Free(r->shapes);
    PyMem_Free(r);
}

int
cx_result_traverse(CxResult *r, visitproc visit, void *arg)
{
    for (int k = 0; r != NULL && k < r->npieces; k++) {
        Py_VISIT(r->pieces[k]->object);
        Py_VISIT(r->pieces[k]->names);
    }
    return 0;
}

const CxShape *
cx_result_shapes(const CxResult *r)
{
    return r->shapes;
}

bool
cx_result_acts(const CxResult *r)
{
    for (int k = 0; k < r->npieces; k++)
        if (r->pieces[k]->kind == PIECE_call)
            return true;
    return false;
}

typedef struct Making {
    CxTracer *tracer;
    CxResult *result;
    PyObject *reached; /* id -> source, or NULL */
    PyObject *known;   /* id -> index of the piece */
    const CxProgram *program;
    CxGuards *guards;
    const char *why;
} Making;

CxPiece *
cx_piece_new(CxResult *r, CxPieceKind kind)
{
    CxPiece *p = PyMem_Calloc(1, sizeof *p);

    if (p != NULL && r->npieces == r->cappieces) {
        int capacity = r->cappieces ? 2 * r->cappieces : 8;
        CxPiece **grown = PyMem_Realloc(r->pieces, sizeof *grown * (size_t)capacity);
        if (grown == NULL) {
            PyMem_Free(p);
            p = NULL;
        } else {
            r->pieces = grown;
            r->cappieces = capacity;
        }
    }
    if (p == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    p->kind = kind;
    p->memo = -1;
    r->pieces[r->npieces++] = p;
    return p;
}

static CxPiece *
constant(Making *m, PyObject *object)
{
    CxPiece *p = cx_piece_new(m->result, PIECE_const);
    if (p != NULL)
        p->object = Py_NewRef(object);
    return p;
}

static bool
is_of_data(const CiExpr *e)
{
    for (int k = 0; k < e->nsymbols; k++)
        if (e->symbols[k]->symbol_kind == CI_SYMBOL_unbacked)
            return true;
    return false;
}

/* Stores expressions as constants and indices of the table. 1: one of them depends on data. */
static int
set_layout(Making *m, CxPiece *p, int count, const CiExpr *const *exprs)
{
    p->layout = PyMem_Calloc((size_t)count + 1, sizeof *p->layout);
    p->numbers = PyMem_Malloc(sizeof *p->numbers * ((size_t)count + 1));
    if (p->layout == NULL || p->numbers == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (int k = 0; k < count; k++) {
        p->numbers[k] = -1;
        if (ci_expr_is_const(exprs[k], &p->layout[k]))
            continue;
        if (is_of_data(exprs[k])) {
            m->why = "a view whose size data decide";
            return 1;
        }
        p->varies = true;
        p->numbers[k] = cx_guards_number(m->guards, exprs[k]);
        if (p->numbers[k] < 0)
            return -1;
    }
    return 0;
}

typedef struct Whole {
    const CxTraced *traced;
    const int *axes; /* innermost first */
    bool answer;
} Whole;

/* True if the view is all of its storage, in one contiguous piece. */
static void
body_whole(CiContext *ctx, void *arg)
{
    Whole *w = arg;
    const CxView *v = w->traced->view;
    const CxStorage *s = w->traced->storage;
    CiSym *sym = s->tracer->sym;
    const CiExpr *step = ci_expr_const(sym, ci_dtype_size(s->dtype)), *count = step;

    (void)ctx;
    for (int k = 0; k < s->rank; k++)
        count = ci_expr_mul(sym, count, s->sizes[k]);
    w->answer = !ci_expr_equals_const(count, 0);
    for (int k = 0; k < v->rank; k++) {
        int axis = w->axes[k];
        /* The stride of a new axis counts as a difference. */
        if (ci_expr_equals_const(v->strides[axis], 0) ||
            (!ci_expr_equals_const(v->sizes[axis], 1) && v->strides[axis] != step))
            w->answer = false;
        step = ci_expr_mul(sym, step, v->sizes[axis]);
    }
    w->answer &= step == count;
}

/* 1, 0 or -1. */
static int
covers(const CxTraced *t)
{
    const CxView *v = t->view;
    int64_t strides[CI_MAX_RANK];
    int axes[CI_MAX_RANK];
    Whole w = {t, axes, false};

    if (!ci_expr_equals_const(v->offset, 0) || v->access > CX_WRITTEN_BY_PYTHON || v->dtype != t->storage->dtype)
        return 0;
    if (cx_size_values(t->tracer, v->rank, v->strides, strides) < 0)
        return -1;
    /* Smallest stride first; insertion sort, because n is small. */
    for (int k = 0; k < v->rank; k++) {
        int at = k, axis = v->rank - 1 - k;
        for (; at > 0 && strides[axes[at - 1]] > strides[axis]; at--)
            axes[at] = axes[at - 1];
        axes[at] = axis;
    }
    if (cx_protect(t->tracer->state, t->tracer->sym_ctx, body_whole, &w) < 0)
        return -1;
    return w.answer;
}

static int
set_view(Making *m, CxPiece *p, const CxTraced *t)
{
    const CxView *v = t->view;
    const CiExpr *exprs[2 * CI_MAX_RANK + 1];

    memcpy(exprs, v->sizes, sizeof *exprs * (size_t)v->rank);
    memcpy(exprs + v->rank, v->strides, sizeof *exprs * (size_t)v->rank);
    exprs[2 * v->rank] = v->offset;
    p->rank = v->rank;
    p->dtype = v->dtype;
    p->access = cx_access(t);
    int status = set_layout(m, p, 2 * v->rank + 1, exprs);
    if (status != 0)
        return -1;
    int whole = covers(t);
    p->is_whole = whole == 1;
    return whole < 0 ? -1 : 0;
}

/* A piece for an int that is a size. */
static CxPiece *
size_piece(Making *m, const CiExpr *e)
{
    CxPiece *p = cx_piece_new(m->result, PIECE_size);
    return p != NULL && set_layout(m, p, 1, &e) == 0 ? p : NULL;
}

static CxPiece *
traced_piece(Making *m, const CxTraced *t)
{
    const CxStorage *s = t->storage;
    bool is_view = t->view != NULL;
    CxPiece *p = NULL;

    if (!is_view && s->expr != NULL && !is_of_data(s->expr))
        return size_piece(m, s->expr);
    if (s->position >= 0) {
        p = cx_piece_new(m->result, is_view ? PIECE_view_return : PIECE_return);
        if (p != NULL)
            p->number = s->position;
    } else if (s->source >= 0) {
        p = cx_piece_new(m->result, is_view ? PIECE_view_source : PIECE_source);
        if (p != NULL)
            p->number = s->source;
    } else if (!is_view && s->value != NULL &&
               (s->source == CX_SOURCE_constant || s->is_specialized)) {
        return constant(m, s->value);
    } else {
        m->why = "a result that Python made";
        return NULL;
    }
    if (p == NULL || (is_view && set_view(m, p, t) < 0))
        return NULL;
    if (p->kind == PIECE_view_source)
        cx_guards_show_strides(m->guards, p->number);
    p->value_kind = s->kind;
    return p;
}

static CxPiece *piece(Making *m, PyObject *o, int depth);

static CxPiece *
container_piece(Making *m, PyObject *o, int depth)
{
    PyObject *names = NULL, *parts = NULL;
    CxPieceKind kind;
    CxPiece *p = NULL;

    parts = cx_container_parts(o, &kind, &names);
    if (parts == NULL) {
        if (!PyErr_Occurred())
            p = PyArray_Check(o) ? (m->why = "an array that Python made", NULL) : constant(m, o);
        return p;
    }
    p = cx_piece_new(m->result, kind);
    if (p == NULL)
        goto fail;
    p->object = Py_NewRef(Py_TYPE(o));
    p->names = Py_XNewRef(names);
    p->kids = PyMem_Calloc((size_t)PyTuple_GET_SIZE(parts) + 1, sizeof *p->kids);
    if (p->kids == NULL) {
        PyErr_NoMemory();
        goto fail;
    }
    for (; p->nkids < PyTuple_GET_SIZE(parts); p->nkids++)
        if ((p->kids[p->nkids] = piece(m, PyTuple_GET_ITEM(parts, p->nkids), depth + 1)) == NULL)
            goto fail;
    Py_DECREF(parts);
    Py_XDECREF(names);
    return p;
fail:
    Py_XDECREF(parts);
    Py_XDECREF(names);
    return NULL;
}

static CxPiece *
piece(Making *m, PyObject *o, int depth)
{
    PyObject *key = PyLong_FromVoidPtr(o), *known = NULL, *number = NULL;
    CxPiece *p = NULL;

    if (key == NULL)
        return NULL;
    if (depth > 64 || m->result->npieces > 4 * CX_MAX_LEAVES) {
        m->why = "a result with too many or too deeply nested parts";
        goto done;
    }
    if (m->reached != NULL && (known = PyDict_GetItemWithError(m->reached, key)) != NULL) {
        p = cx_piece_new(m->result, PIECE_source);
        if (p != NULL)
            p->number = (int)PyLong_AsLong(known);
        goto done;
    }
    if (!PyErr_Occurred() && (known = PyDict_GetItemWithError(m->known, key)) != NULL) {
        p = m->result->pieces[PyLong_AsLong(known)];
        if (p->memo < 0)
            p->memo = m->result->nmemos++;
        goto done;
    }
    if (PyErr_Occurred())
        goto done;
    int at = m->result->npieces;
    p = cx_is_traced(o) ? traced_piece(m, (CxTraced *)o) : container_piece(m, o, depth);
    if (p != NULL &&
        ((number = PyLong_FromLong(at)) == NULL || PyDict_SetItem(m->known, key, number) < 0))
        p = NULL;
done:
    Py_XDECREF(number);
    Py_DECREF(key);
    return p;
}

int
cx_result_open_shapes(CxResult *r, const CxProgram *program)
{
    r->shapes = PyMem_Calloc((size_t)program->nbuffers + 1, sizeof *r->shapes);
    if (r->shapes == NULL)
        PyErr_NoMemory();
    return r->shapes == NULL ? -1 : 0;
}

void
cx_piece_shapes(CxResult *r, const CxProgram *program, const CxPiece *p)
{
    r->shapes[program->returns[p->number].layout.result_buffer] =
        (CxShape){true, p->rank, p->layout, p->varies ? p->numbers : NULL};
}

/* A buffer of which only one view is returned is made in the view's shape: a reduction with
 * keepdims is not a view of another array. */
static int
reshape_buffers(CxResult *r, const CxProgram *program)
{
    int *users = NULL;

    if (program == NULL || program->nbuffers == 0)
        return 0;
    users = PyMem_Calloc((size_t)program->nreturns + 1, sizeof *users);
    if (users == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    if (cx_result_open_shapes(r, program) < 0) {
        PyMem_Free(users);
        return -1;
    }
    for (int k = 0; k < r->npieces; k++)
        if (r->pieces[k]->kind == PIECE_return || r->pieces[k]->kind == PIECE_view_return)
            users[r->pieces[k]->number]++;
    for (int k = 0; k < r->npieces; k++) {
        CxPiece *p = r->pieces[k];
        if (p->kind != PIECE_view_return || users[p->number] != 1 ||
            program->returns[p->number].is_shared)
            continue;
        const CiReturn *back = &program->returns[p->number].layout;
        bool is_shared = false;
        for (int j = 0; j < program->nreturns; j++)
            is_shared |=
                j != p->number && program->returns[j].layout.result_buffer == back->result_buffer;
        if (is_shared || program->is_scalar[back->result_buffer] || !p->is_whole)
            continue;
        cx_piece_shapes(r, program, p);
        p->kind = PIECE_return;
        p->value_kind = CI_KIND_array;
    }
    PyMem_Free(users);
    return 0;
}

CxResult *
cx_result_new(CxTracer *tracer, PyObject *result, PyObject *reached, const CxProgram *program,
              CxGuards *guards, const char **why)
{
    Making m = {.tracer = tracer, .reached = reached, .program = program, .guards = guards};

    m.result = PyMem_Calloc(1, sizeof *m.result);
    m.known = PyDict_New();
    if (m.result == NULL || m.known == NULL) {
        if (!PyErr_Occurred())
            PyErr_NoMemory();
        goto fail;
    }
    m.result->state = tracer->state;
    m.result->nreturns = program ? program->nreturns : 0;
    m.result->root = piece(&m, result, 0);
    if (m.result->root == NULL || reshape_buffers(m.result, program) < 0)
        goto fail;
    Py_DECREF(m.known);
    return m.result;
fail:
    *why = m.why;
    Py_XDECREF(m.known);
    cx_result_free(m.result);
    return NULL;
}

/* ---- later calls ---- */

typedef struct Replay {
    CxState *state;
    CxRun *run;
    PyObject **values, **bases, **memos;
    const int64_t *table;
} Replay;

static PyObject *
base_of(Replay *r, int position, CiKind kind)
{
    if (r->bases[position] == NULL)
        r->bases[position] = cx_run_value(r->run, position, kind);
    return r->bases[position];
}

static PyObject *
make_view(Replay *r, const CxPiece *p, PyObject *base)
{
    int64_t room[2 * CI_MAX_RANK + 1];

    if (!p->varies)
        return cx_array_view(r->state, base, p->dtype, p->rank, p->layout, p->layout + p->rank,
                             p->layout[2 * p->rank], p->access);
    cx_layout_of(2 * p->rank + 1, p->layout, p->numbers, r->table, room);
    if (cx_is_new_and_empty((PyArrayObject *)base))
        memset(room + p->rank, 0, sizeof *room * ((size_t)p->rank + 1));
    return cx_array_view(r->state, base, p->dtype, p->rank, room, room + p->rank, room[2 * p->rank],
                         p->access);
}

/* A value of the program or an argument of the call, as the user gets it. */
static PyObject *
make_value(Replay *r, const CxPiece *p)
{
    bool is_argument = p->kind == PIECE_source || p->kind == PIECE_view_source,
         is_view = p->kind == PIECE_view_return || p->kind == PIECE_view_source;
    PyObject *base = is_argument
                         ? r->values[p->number]
                         : base_of(r, p->number, is_view ? CI_KIND_array : p->value_kind);
    PyObject *value = base != NULL && is_view ? make_view(r, p, base) : Py_XNewRef(base);
    return cx_device_result(r->state, value);
}

static PyObject *make(Replay *r, const CxPiece *p);

static PyObject *
make_new(Replay *r, const CxPiece *p)
{
    PyObject *small[8], **parts = small, *result = NULL;

    switch (p->kind) {
    case PIECE_const:
        return Py_NewRef(p->object);
    case PIECE_source:
    case PIECE_return:
    case PIECE_view_return:
    case PIECE_view_source:
        return make_value(r, p);
    case PIECE_size:
        return PyLong_FromLongLong(p->varies ? r->table[p->numbers[0]] : p->layout[0]);
    default:
        break;
    }
    if (p->nkids > 8 && (parts = PyMem_Malloc(sizeof *parts * (size_t)p->nkids)) == NULL)
        return PyErr_NoMemory();
    Py_ssize_t done = 0;
    for (; done < p->nkids; done++)
        if ((parts[done] = make(r, p->kids[done])) == NULL)
            break;
    if (done == p->nkids)
        result = cx_container_build(p->kind, (PyTypeObject *)p->object, p->names, p->nkids, parts);
    else
        while (done-- > 0)
            Py_DECREF(parts[done]);
    if (parts != small)
        PyMem_Free(parts);
    return result;
}

static PyObject *
make(Replay *r, const CxPiece *p)
{
    if (p->memo < 0)
        return make_new(r, p);
    if (r->memos[p->memo] == NULL)
        r->memos[p->memo] = make_new(r, p);
    return Py_XNewRef(r->memos[p->memo]);
}

PyObject *
cx_result_make(CxResult *result, CxRun *run, PyObject **values, const int64_t *table)
{
    PyObject *small[16] = {NULL}, **kept = small, *made = NULL;
    int n = result->nreturns + result->nmemos;

    if (result->root->kind == PIECE_return && result->root->memo < 0)
        return cx_device_result(result->state, cx_run_value(run, result->root->number,
                                                            result->root->value_kind));
    if (n > 16 && (kept = PyMem_Calloc((size_t)n, sizeof *kept)) == NULL)
        return PyErr_NoMemory();
    Replay replay = {.state = result->state,
                     .run = run,
                     .values = values,
                     .bases = kept,
                     .memos = kept + result->nreturns,
                     .table = table};
    made = make(&replay, result->root);
    for (int k = 0; k < n; k++)
        Py_XDECREF(kept[k]);
    if (kept != small)
        PyMem_Free(kept);
    return made;
}
