/* Traced values.
 *
 * A Traced value is a storage and a view of it. A storage is what memory would be: an argument, an
 * earlier result that is real by now (`value`), or something the pending graph will compute
 * (`node`). A write gives the storage a new version, that is another node; a view remembers the
 * version its node was made for and is made again when that is old. A graph is pending between two
 * flushes; its number is the tracer's `epoch`, and a node of another epoch is no node at all. */
#ifndef CX_STORAGE_H
#define CX_STORAGE_H

#include "graph/graph.h"

/* CxStorage.source: >= 0 how a later call finds the value. */
enum { CX_SOURCE_unknown = -1, CX_SOURCE_constant = -2 };

struct CxStorage {
    Py_ssize_t refs;
    CxTracer *tracer;       /* borrowed: whoever holds the storage holds the tracer */
    CxStorage *prev, *next; /* the tracer's list */
    PyObject *value;        /* real by now; of kind python: always there */
    CxStorage *parents[2];  /* kind python: what the value was computed from */
    CxStorage *strong;      /* a bool: the number is NumPy's, else Python's (tagged.c); or NULL */
    CiNode *node;           /* the current version, when epoch is the tracer's */
    CiNode *input;          /* how it entered that graph, or NULL */
    unsigned epoch, version;
    unsigned scope;     /* of building in which node was made (mark.c) */
    unsigned serial;      /* the storages of a tracer in the order in which they were made */
    unsigned noted;       /* the latest mark when it was last noted in the journal (version.c) */
    int source, position; /* position: among the returns of the run that made it real */
    bool is_written, is_readonly, is_specialized, is_seen;
    CiKind kind;
    CiDtype dtype;
    int rank;
    const CiExpr *expr;         /* a Python int that is a size: what it is; else NULL */
    const CiExpr *left, *right; /* a Python bool that compares sizes: what it says; else NULL */
    CiRelation relation;
    const CiExpr **sizes, **strides; /* of the tracer's sym; strides in bytes */
    const CiExpr *space[];
};

typedef struct CxView CxView;
struct CxView {
    Py_ssize_t refs;
    CxView *parent;
    CiOp op; /* a VIEW op; real and imag are views that can only be read */
    CiDtype dtype;
    bool is_readonly, is_opaque;
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

/* A Python int that is an expression of sizes and indices. */
static inline bool
cx_is_size(const CxTraced *t)
{
    return t->view == NULL && t->storage->expr != NULL;
}

/* storage.c */
CxStorage *cx_storage_new(CxTracer *tracer, CiKind kind, CiDtype dtype, int rank);
CxStorage *cx_storage_from_node(CxTracer *tracer, CiNode *node, CiKind kind);
/* sizes and paddings (layout.c): NULL, or per axis an expression or NULL for the array's own. */
CxStorage *cx_storage_from_array(CxTracer *tracer, PyObject *array, int source,
                                 const CiExpr *const *sizes, const CiExpr *const *paddings);
/* version.c; -1 with an exception: the storage is what it was. */
int cx_storage_set_input(CxStorage *storage, CiNode *node);
int cx_storage_set_node(CxStorage *storage, CiNode *node); /* the same value, in this graph */
int cx_storage_set_version(CxStorage *storage, CiNode *node);
/* Storages up to the newest are again what they were when the journal had so many notes. */
int cx_versions_go_back(CxTracer *tracer, int since, unsigned newest);
/* Storages that have another version now, and later ones that were written to since they entered
 * the graph, oldest first. The caller frees the list. */
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
