/* Traced values.
 *
 * A Traced value is a storage and a view of it. A storage represents memory: an argument, an
 * earlier result that has been computed (`value`), or a result that the pending graph will compute
 * (`node`). A write gives the storage a new version, which is another node. A view remembers the
 * version for which its node was made; if the version is old, the node is made again. A graph is
 * pending between two flushes. Its number is the tracer's `epoch`; a node of another epoch may
 * not be used. */
#ifndef CX_STORAGE_H
#define CX_STORAGE_H

#include "graph/graph.h"
#include "state/array.h"

/* CxStorage.source: >= 0 is the number of the source at which a later call finds the value. */
enum { CX_SOURCE_unknown = -1, CX_SOURCE_constant = -2 };

struct CxStorage {
    Py_ssize_t refs;
    CxTracer *tracer;       /* borrowed: a holder of the storage also holds the tracer */
    CxStorage *prev, *next; /* the tracer's list */
    PyObject *value;        /* the real object, if it exists; always set for kind python */
    CxStorage *parents[2];  /* kind python: what the value was computed from */
    CxStorage *strong;      /* of a tagged number (tagged.c): the bool; else NULL */
    CiDtype weak;           /* of a tagged number: dtype of Python's number, if the bool is false */
    CiNode *node;           /* node of the current version; valid if epoch is the tracer's */
    CiNode *input;          /* the node by which it entered that graph, or NULL */
    unsigned epoch, version;
    unsigned scope;     /* scope in which node was built (rollback.c) */
    unsigned serial;      /* counts the storages of a tracer in the order of creation */
    /* The latest mark when its state was last recorded in the journal (version.c) */
    unsigned noted;
    int source, position; /* position: number of the return of the run that computed it */
    bool is_written, is_specialized, is_seen;
    CxAccess access;
    CiKind kind;
    CiDtype dtype;
    int rank;
    const CiExpr *expr;         /* for a Python int that is a size: the expression; else NULL */
    const CiExpr *left, *right; /* for a Python bool that compares sizes: the operands; else NULL */
    CiRelation relation;
    const CiExpr **sizes, **strides; /* in the tracer's sym; strides in bytes */
    const CiExpr *space[];
};

typedef struct CxView CxView;
struct CxView {
    Py_ssize_t refs;
    CxView *parent;
    CiOp op; /* a VIEW op; real and imag are views that can only be read */
    CiDtype dtype;
    CxAccess access;
    int rank;
    const CiExpr *offset; /* bytes from the storage's first element */
    const CiExpr **sizes, **strides;
    const CiExpr **starts, **steps; /* slice: per axis of the parent */
    int *axes; /* permute: per axis; diagonal: two axes, and the offset in starts; window: one */
    CiNode *node;
    unsigned epoch, version, scope;
    const CiExpr *space[];
};

typedef struct CxTraced {
    PyObject_HEAD CxTracer *tracer;
    CxStorage *storage;
    CxView *view;   /* NULL: the whole storage */
    PyObject *real; /* the real view, once made */
} CxTraced;

static inline CiKind
cx_kind(const CxTraced *t)
{
    return t->view ? CI_KIND_array : t->storage->kind;
}
static inline CiNode *
cx_node(const CxTraced *t)
{
    return t->view ? t->view->node : t->storage->node;
}
static inline int
cx_rank(const CxTraced *t)
{
    return t->view ? t->view->rank : t->storage->rank;
}
static inline const CiExpr *const *
cx_sizes(const CxTraced *t)
{
    return t->view ? t->view->sizes : t->storage->sizes;
}
static inline const CiExpr *const *
cx_strides(const CxTraced *t)
{
    return t->view ? t->view->strides : t->storage->strides;
}
static inline CiDtype
cx_dtype(const CxTraced *t)
{
    return t->view ? t->view->dtype : t->storage->dtype;
}
static inline bool
cx_storage_is_current(const CxStorage *s)
{
    return s->epoch == s->tracer->epoch &&
           (s->scope == 0 || cx_dominance_is_open(s->tracer, s->scope));
}
static inline bool
cx_is_current(const CxTraced *t)
{
    const CxStorage *s = t->storage;
    const CxView *v = t->view;
    if (!cx_storage_is_current(s))
        return false;
    return v == NULL || (v->epoch == s->epoch && v->version == s->version &&
                         (v->scope == s->scope || cx_dominance_is_open(t->tracer, v->scope)));
}

CxAccess cx_access(const CxTraced *t);

/* A Python int that is an expression of sizes and indices. */
static inline bool
cx_is_size(const CxTraced *t)
{
    return t->view == NULL && t->storage->expr != NULL;
}

/* storage.c */
CxStorage *cx_storage_new(CxTracer *tracer, CiKind kind, CiDtype dtype, int rank);
CxStorage *cx_storage_from_node(CxTracer *tracer, CiNode *node, CiKind kind);
/* sizes and paddings (layout.c): NULL, or for each axis an expression, or NULL for the array's
 * own number. */
CxStorage *cx_storage_from_array(CxTracer *tracer, PyObject *array, int source,
                                 const CiExpr *const *sizes, const CiExpr *const *paddings);
/* version.c: -1 with an exception, and the storage is unchanged. */
int cx_storage_set_input(CxStorage *storage, CiNode *node);
int cx_storage_set_node(CxStorage *storage, CiNode *node); /* the same value, in this graph */
int cx_storage_set_version(CxStorage *storage, CiNode *node);
/* Restores the storages up to the newest to their state when the journal had `since` records. */
int cx_versions_restore(CxTracer *tracer, int since, unsigned newest);
/* Storages whose version has changed since then, and newer ones that were written to after they
 * entered the graph, oldest first. The caller frees the list. */
CxStorage **cx_versions_changed(CxTracer *tracer, int since, unsigned newest, int *count);
void cx_versions_forget(CxTracer *tracer);
void cx_storage_release(CxStorage *storage);
CxView *cx_view_new(CxTraced *parent, CiOp op, int rank);
void cx_view_release(CxView *view);
PyObject *cx_traced_new(CxTracer *tracer, CxStorage *storage,
                        CxView *view); /* takes both references */
PyObject *cx_traced_from_node(CxTracer *tracer, CiNode *node, CiKind kind); /* NULL stays NULL */
PyObject *cx_traced_int(CxTracer *tracer, const CiExpr *e); /* a Python int that is e */
void cx_traced_dealloc(PyObject *self);
static inline bool
cx_is_traced(PyObject *object)
{
    return Py_TYPE(object)->tp_dealloc == cx_traced_dealloc;
}

#endif
