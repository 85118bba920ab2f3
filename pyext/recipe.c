/* A result as a recipe: a tree, shared where one object was returned twice, from which C makes the
 * result again in each later call. */
#include "result.h"

typedef struct Piece {
    CxPieceKind kind;
    int number; /* source or return */
    int memo;   /* >= 0: made once, kept there */
    CiKind value_kind;
    PyObject *object; /* constant, type */
    PyObject *names;  /* keys, field names */
    Py_ssize_t nkids;
    struct Piece **kids;
    CiDtype dtype; /* views */
    int rank;
    int64_t *sizes, *strides, offset;
    bool is_readonly;
} Piece;

struct CxResult {
    CxState *state;
    Piece *root;
    Piece **pieces;
    int npieces, cappieces, nmemos, nreturns;
    CxShape *shapes; /* per result buffer, or NULL */
};

void
cx_result_free(CxResult *r)
{
    if (r == NULL)
        return;
    for (int k = 0; k < r->npieces; k++) {
        Piece *p = r->pieces[k];
        Py_XDECREF(p->object);
        Py_XDECREF(p->names);
        PyMem_Free(p->kids);
        PyMem_Free(p->sizes);
        PyMem_Free(p);
    }
    PyMem_Free(r->pieces);
    PyMem_Free(r->shapes);
    PyMem_Free(r);
}

int
cx_result_traverse(CxResult *r, visitproc visit, void *arg)
{
    for (int k = 0; r != NULL && k < r->npieces; k++)
        Py_VISIT(r->pieces[k]->object);
    return 0;
}

const CxShape *
cx_result_shapes(const CxResult *r)
{
    return r->shapes;
}

typedef struct Making {
    CxTracer *tracer;
    CxResult *result;
    PyObject *reached; /* id -> source, or NULL */
    PyObject *known;   /* id -> piece as a number */
    const CxProgram *program;
    const char *why;
} Making;

static Piece *
new_piece(Making *m, CxPieceKind kind)
{
    CxResult *r = m->result;
    Piece *p = PyMem_Calloc(1, sizeof *p);

    if (p != NULL && r->npieces == r->cappieces) {
        int capacity = r->cappieces ? 2 * r->cappieces : 8;
        Piece **grown = PyMem_Realloc(r->pieces, sizeof *grown * (size_t)capacity);
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

static Piece *
constant(Making *m, PyObject *object)
{
    Piece *p = new_piece(m, PIECE_const);
    if (p != NULL)
        p->object = Py_NewRef(object);
    return p;
}

static int
set_view(Making *m, Piece *p, const CxTraced *t)
{
    const CxView *v = t->view;

    for (int k = 0; k < t->tracer->ndefined; k++)
        if (cx_view_depends_on(v, cx_defined_symbol(t->tracer, k))) {
            m->why = "a view whose place data decide";
            return -1;
        }
    p->sizes = PyMem_Malloc(sizeof(int64_t) * (2 * (size_t)v->rank + 1));
    if (p->sizes == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    p->strides = p->sizes + v->rank;
    if (cx_size_values(t->tracer, v->rank, v->sizes, p->sizes) < 0 ||
        cx_size_values(t->tracer, v->rank, v->strides, p->strides) < 0 ||
        cx_size_values(t->tracer, 1, &v->offset, &p->offset) < 0)
        return -1;
    p->rank = v->rank;
    p->dtype = v->dtype;
    p->is_readonly = v->is_readonly;
    return 0;
}

static Piece *
traced_piece(Making *m, const CxTraced *t)
{
    const CxStorage *s = t->storage;
    bool is_view = t->view != NULL;
    Piece *p = NULL;

    if (s->position >= 0) {
        p = new_piece(m, is_view ? PIECE_view_return : PIECE_return);
        if (p != NULL)
            p->number = s->position;
    } else if (s->source >= 0) {
        p = new_piece(m, is_view ? PIECE_view_source : PIECE_source);
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
    p->value_kind = s->kind;
    return p;
}

static Piece *piece(Making *m, PyObject *o, int depth);

static Piece *
container_piece(Making *m, PyObject *o, int depth)
{
    PyObject *names = NULL, *parts = NULL;
    CxPieceKind kind;
    Piece *p = NULL;

    parts = cx_container_parts(o, &kind, &names);
    if (parts == NULL) {
        if (!PyErr_Occurred())
            p = PyArray_Check(o) ? (m->why = "an array that Python made", NULL) : constant(m, o);
        return p;
    }
    p = new_piece(m, kind);
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

static Piece *
piece(Making *m, PyObject *o, int depth)
{
    PyObject *key = PyLong_FromVoidPtr(o), *known = NULL, *number = NULL;
    Piece *p = NULL;

    if (key == NULL)
        return NULL;
    if (depth > 64 || m->result->npieces > 4 * CX_MAX_LEAVES) {
        m->why = "a result with too many or too deeply nested parts";
        goto done;
    }
    if (m->reached != NULL && (known = PyDict_GetItemWithError(m->reached, key)) != NULL) {
        p = new_piece(m, PIECE_source);
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

/* Does the view have all elements of its storage, in one dense piece? Then the memory can be made
 * in its shape. */
static bool
covers(const Piece *p, const CiReturn *r)
{
    int64_t extent = ci_dtype_size(r->dtype), count = cx_count(p->rank, p->sizes);
    bool done[CI_MAX_RANK] = {false};

    if (p->offset != 0 || p->is_readonly || p->dtype != r->dtype || count == 0 ||
        count != cx_count(r->rank, r->sizes))
        return false;
    for (int k = 0; k < p->rank; k++) /* a new axis of an index shows in the strides */
        if (p->strides[k] == 0)
            return false;
    for (int round = 0; round < p->rank;
         round++) { /* smallest stride first; slow on purpose: n is small */
        int least = -1;
        for (int k = 0; k < p->rank; k++)
            if (!done[k] && p->sizes[k] > 1 && (least < 0 || p->strides[k] < p->strides[least]))
                least = k;
        if (least < 0)
            break;
        if (p->strides[least] != extent)
            return false;
        extent *= p->sizes[least];
        done[least] = true;
    }
    return true;
}

/* A buffer that one view alone shows is made in the view's shape: a fold with its axes kept is no
 * view of another array. */
static int
reshape_buffers(CxResult *r, const CxProgram *program)
{
    int *users = NULL;

    if (program == NULL || program->nbuffers == 0)
        return 0;
    users = PyMem_Calloc((size_t)program->nreturns + 1, sizeof *users);
    r->shapes = PyMem_Calloc((size_t)program->nbuffers + 1, sizeof *r->shapes);
    if (users == NULL || r->shapes == NULL) {
        PyMem_Free(users);
        PyErr_NoMemory();
        return -1;
    }
    for (int k = 0; k < r->npieces; k++)
        if (r->pieces[k]->kind == PIECE_return || r->pieces[k]->kind == PIECE_view_return)
            users[r->pieces[k]->number]++;
    for (int k = 0; k < r->npieces; k++) {
        Piece *p = r->pieces[k];
        if (p->kind != PIECE_view_return || users[p->number] != 1 ||
            program->returns[p->number].is_shared)
            continue;
        const CiReturn *back = &program->returns[p->number].layout;
        bool is_shared = false;
        for (int j = 0; j < program->nreturns; j++)
            is_shared |=
                j != p->number && program->returns[j].layout.result_buffer == back->result_buffer;
        if (is_shared || program->is_scalar[back->result_buffer] || !covers(p, back))
            continue;
        r->shapes[back->result_buffer] = (CxShape){true, p->rank, p->sizes, p->strides};
        p->kind = PIECE_return;
        p->value_kind = CI_KIND_array;
    }
    PyMem_Free(users);
    return 0;
}

CxResult *
cx_result_new(CxTracer *tracer, PyObject *result, PyObject *reached, const CxProgram *program,
              const char **why)
{
    Making m = {.tracer = tracer, .reached = reached, .program = program};

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
} Replay;

static PyObject *
base_of(Replay *r, int position, CiKind kind)
{
    if (r->bases[position] == NULL)
        r->bases[position] = cx_run_value(r->run, position, kind);
    return r->bases[position];
}

static PyObject *make(Replay *r, const Piece *p);

static PyObject *
make_new(Replay *r, const Piece *p)
{
    PyObject *base = NULL, *small[8], **parts = small, *result = NULL;

    switch (p->kind) {
    case PIECE_const:
        return Py_NewRef(p->object);
    case PIECE_source:
        return Py_NewRef(r->values[p->number]);
    case PIECE_return:
        return Py_XNewRef(base_of(r, p->number, p->value_kind));
    case PIECE_view_return:
    case PIECE_view_source:
        base = p->kind == PIECE_view_source ? r->values[p->number]
                                            : base_of(r, p->number, CI_KIND_array);
        return base ? cx_array_view(r->state, base, p->dtype, p->rank, p->sizes, p->strides,
                                    p->offset, p->is_readonly)
                    : NULL;
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
make(Replay *r, const Piece *p)
{
    if (p->memo < 0)
        return make_new(r, p);
    if (r->memos[p->memo] == NULL)
        r->memos[p->memo] = make_new(r, p);
    return Py_XNewRef(r->memos[p->memo]);
}

PyObject *
cx_result_make(CxResult *result, CxRun *run, PyObject **values)
{
    PyObject *small[16] = {NULL}, **kept = small, *made = NULL;
    int n = result->nreturns + result->nmemos;

    if (result->root->kind == PIECE_return && result->root->memo < 0)
        return cx_run_value(run, result->root->number, result->root->value_kind);
    if (n > 16 && (kept = PyMem_Calloc((size_t)n, sizeof *kept)) == NULL)
        return PyErr_NoMemory();
    Replay replay = {result->state, run, values, kept, kept + result->nreturns};
    made = make(&replay, result->root);
    for (int k = 0; k < n; k++)
        Py_XDECREF(kept[k]);
    if (kept != small)
        PyMem_Free(kept);
    return made;
}
