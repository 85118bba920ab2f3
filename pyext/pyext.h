/* Between Python objects and the core.
 *
 * A Traced value is a storage and a view of it. A storage is what memory would be: an argument, an
 * earlier result that is real by now (`value`), or something the pending graph will compute
 * (`node`). A write gives the storage a new version, that is another node; a view remembers the
 * version its node was made for and is made again when that is old. A graph is pending between two
 * flushes; its number is the tracer's `epoch`, and a node of another epoch is no node at all.
 * Errors: NULL or -1 with a Python exception set. Everything here needs the lock. */
#ifndef CX_PYEXT_H
#define CX_PYEXT_H

#include "gil.h"

#include "api/compile.h"

/* Ufuncs are numbered: those that are one op by that op, the others after them. */
enum {
    CX_UFUNC_divmod = CI_OP_COUNT,
    CX_UFUNC_modf,
    CX_UFUNC_frexp,
    CX_UFUNC_degrees,
    CX_UFUNC_radians,
    CX_UFUNC_float_power,
    CX_UFUNC_COUNT
};

/* What a value is to NumPy's promotion: a CiDtype, or one of Python's weak types. */
enum { CX_WEAK_int = CI_DTYPE_COUNT, CX_WEAK_float, CX_WEAK_complex, CX_CODE_COUNT };

typedef struct CxResolved {
    bool is_known;
    int8_t in[3], out[2]; /* CiDtype; CI_DTYPE_none: one that the core has not */
} CxResolved;

typedef struct CxState {
#define OBJECT(name) PyObject *name;
#define OBJECTS(name, count) PyObject *name[count];
#define STRING(name) PyObject *str_##name;
#include "state.def"
#undef OBJECT
#undef OBJECTS
#undef STRING
    CiRuntime runtime;
    CxResolved
        *resolved[CX_UFUNC_COUNT]; /* per ufunc: codes squared entries, made when first asked */
    CiCache **old_caches;          /* set_cache_directory replaced them */
    int nold_caches;
    char *skip_file;
    int stance;
    int compiling; /* tracers open */
} CxState;

/* CxStorage.source: >= 0 how a later call finds the value. */
enum { CX_SOURCE_unknown = -1, CX_SOURCE_constant = -2 };

typedef struct CxTracer CxTracer;
typedef struct CxInput CxInput;
typedef struct CxDefined CxDefined;
typedef struct CxFact CxFact;
typedef struct CxProgram CxProgram;
typedef struct CxSpecialization CxSpecialization;

typedef struct CxStorage CxStorage;
struct CxStorage {
    Py_ssize_t refs;
    CxTracer *tracer;       /* borrowed: whoever holds the storage holds the tracer */
    CxStorage *prev, *next; /* the tracer's list */
    PyObject *value;        /* real by now; of kind python: always there */
    CxStorage *parents[2];  /* kind python: what the value was computed from */
    CxStorage *strong;      /* a bool: the number is NumPy's, else Python's (mixed.c); or NULL */
    CiNode *node;           /* the current version, when epoch is the tracer's */
    CiNode *input;          /* how it entered that graph, or NULL */
    unsigned epoch, version;
    unsigned stretch;     /* of building in which node was made (mark.c) */
    int source, position; /* position: among the returns of the run that made it real */
    bool is_written, is_readonly, is_specialized, is_saved;
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
    int *axes; /* permute: per axis; diagonal: two axes, and the offset in starts */
    CiNode *node;
    unsigned epoch, version, stretch;
    const CiExpr *space[];
};

typedef struct CxTraced {
    PyObject_HEAD CxTracer *tracer;
    CxStorage *storage;
    CxView *view;   /* NULL: the whole storage */
    PyObject *real; /* the real view, once made */
} CxTraced;

struct CxTracer {
    PyObject_HEAD CxState *state;
    PyObject *name, *option_values, *breaks, *info, *program, *skip, *by_id, *specialized;
    PyObject *cell; /* the code object the last location came from */
    const char *cell_file;
    bool cell_is_user;
    CiOptions options;
    const CiBackend *backend;
    CiContext *sym_ctx; /* of sym and env, which live as long as the tracer */
    CiSym *sym;
    CiShapeEnv *env; /* symbols of the call and what was assumed of them */
    const CiExpr *zero, *one;
    CxDefined *defined; /* values of data that are symbols */
    CxFact *facts;
    int ndefined, nfacts, nsymbols;
    long last_token;
    CiContext *ctx;
    CiGraph *graph;
    unsigned epoch, last_version, last_stretch;
    unsigned *open; /* stretches of building in force (mark.c) */
    int nopen, capopen, nblocks;
    bool forbids_breaks; /* the call may have to be captured anew: a break raises RegionBreak */
    CxStorage *storages;
    CxStorage **inputs; /* by number of graph input; each holds a reference */
    int ninputs, capinputs;
    struct CxInput *ran; /* inputs of the latest run */
    int nran;
    int flushes;
    unsigned float_flags;
    bool fullgraph, needs_python, is_busy, is_finished;
    PyObject *on_break; /* raised instead of the first break, while nothing has happened; or NULL */
    PyObject *saved;   /* arrays written to by runs of this call, and what they held before */
    int64_t nelements; /* that runs of this call made */
    bool cannot_undo;  /* an array too large to be kept was written to */
    bool is_static; /* a graph has run: sizes enter the next ones as numbers */
};

/* module.c */
CxState *cx_state_of_type(PyTypeObject *type); /* of the type or a subclass of it */

/* error.c */
int cx_errors_init(CxState *state, PyObject *module);
PyObject *cx_exception(CxState *state, const char *name); /* borrowed */
int cx_raise_status(CxState *state, CiStatus status, const char *message);
int cx_protect(CxState *state, CiContext *ctx, void (*body)(CiContext *ctx, void *arg), void *arg);

enum { CX_FLAG_divide = 1, CX_FLAG_overflow = 2, CX_FLAG_underflow = 4, CX_FLAG_invalid = 8 };
int cx_errstate_init(CxState *state);
bool cx_errstate_is_strict(CxState *state);

/* array.c */
int cx_arrays_init(CxState *state);
CiDtype cx_dtype_of_descr(PyArray_Descr *descr); /* CI_DTYPE_none when the core has none such */
CiDtype cx_dtype_of_object(CxState *state, PyObject *dtype);
PyArray_Descr *cx_descr(CxState *state, CiDtype dtype); /* borrowed */
PyObject *cx_array_new(CxState *state, CiDtype dtype, int rank, const int64_t *sizes,
                       const int64_t *strides);
/* A view of base's memory; strides and offset in bytes. */
PyObject *cx_array_view(CxState *state, PyObject *base, CiDtype dtype, int rank,
                        const int64_t *sizes, const int64_t *strides, int64_t offset,
                        bool is_readonly);
/* An array of zeros of that shape that takes one element of memory: to make NumPy raise what it
 * raises. */
PyObject *cx_array_dummy(CxState *state, CiDtype dtype, int rank, const int64_t *sizes);
PyObject *cx_scalar_from(CxState *state, CiDtype dtype, CiKind kind, const void *element);
/* The value of a number or NumPy scalar as a constant. 1: it is out of the dtype's range. */
int cx_const_of(CxState *state, PyObject *value, CiDtype dtype, CiConst *out);
int cx_code_of_number(PyObject *value, bool *is_strong); /* -1: no number */
/* Strides of the same memory under another shape; false when NumPy would copy. */
bool cx_reshape_strides(int rank, const int64_t *sizes, const int64_t *strides, int new_rank,
                        const int64_t *new_sizes, int64_t itemsize, int64_t *new_strides);
int64_t cx_count(int rank, const int64_t *sizes);
PyObject *cx_sizes_tuple(int rank, const int64_t *sizes);
/* A shape or a tuple of axes: an int or a sequence of ints. Returns the count or -1. */
int cx_sizes_from(PyObject *object, int64_t *sizes, int capacity);
void cx_array_extent(PyObject *array, char **low, char **high);

/* layout.c: called inside cx_protect. Strides in bytes of an array whose sizes are these
 * expressions: 0, the itemsize, products of sizes where the memory is dense, otherwise the numbers
 * they are; given[k] (in elements), where not NULL, is what axis k has. */
void cx_layout_strides(CiSym *sym, PyArrayObject *array, const CiExpr *const *sizes,
                       const CiExpr *const *given, const CiExpr **strides);

/* symbols.c */
int cx_symbols_open(CxTracer *tracer);
/* The expression that a text ("s0", "2*s0 - 1", "8") or an int stands for; NULL with an exception.
 */
const CiExpr *cx_symbol_parse(CxTracer *tracer, PyObject *text);
PyObject *cx_tracer_number(PyObject *self, PyObject *args);
PyObject *cx_tracer_symbol(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *cx_tracer_layout(PyObject *self, PyObject *traced);
PyObject *cx_tracer_shape_guards(PyObject *self, PyObject *unused);

/* mark.c */
extern PyType_Spec cx_mark_spec;
int cx_stretch_begin(CxTracer *tracer);
bool cx_stretch_is_open(const CxTracer *tracer, unsigned stretch);
static inline unsigned
cx_stretch_now(const CxTracer *tracer)
{
    return tracer->nopen ? tracer->open[tracer->nopen - 1] : 0;
}
int cx_region_break(CxTracer *tracer, const char *format, ...); /* raises RegionBreak; -1 */
PyObject *cx_tracer_mark(PyObject *self, PyObject *unused);
PyObject *cx_tracer_restore(PyObject *self, PyObject *mark);
PyObject *cx_tracer_written(PyObject *self, PyObject *mark);
PyObject *cx_tracer_check(PyObject *self, PyObject *args);
PyObject *cx_tracer_is_before(PyObject *self, PyObject *args);
PyObject *cx_tracer_work_since(PyObject *self, PyObject *mark);

/* block.c, region.c */
extern PyType_Spec cx_block_spec;
PyObject *cx_tracer_block(PyObject *self, PyObject *unused);
PyObject *cx_tracer_region(PyObject *self, PyObject *args);
PyObject *cx_tracer_set_version(PyObject *self, PyObject *args);
PyObject *cx_tracer_select(PyObject *self, PyObject *args);
PyObject *cx_tracer_same_type(PyObject *self, PyObject *args);
bool cx_node_is_quiet(const CiNode *node); /* it computes no array and no number of NumPy's */
bool cx_node_works(const CiNode *node);
bool cx_block_has_effects(const CiBlock *block);

/* region_value.c */
PyObject *cx_tracer_prepare(PyObject *self, PyObject *value);
PyObject *cx_tracer_settled(PyObject *self, PyObject *value);
PyObject *cx_tracer_as_python(PyObject *self, PyObject *value);
PyObject *cx_tracer_is_fixed(PyObject *self, PyObject *value);
PyObject *cx_tracer_at_least(PyObject *self, PyObject *args);
PyObject *cx_tracer_is_positive(PyObject *self, PyObject *value);
PyObject *cx_tracer_define(PyObject *self, PyObject *args);
PyObject *cx_tracer_fitted(PyObject *self, PyObject *args);
PyObject *cx_tracer_last_value(PyObject *self, PyObject *args);

/* mixed.c */
CxStorage *cx_mixed(PyObject *object); /* its `strong`, borrowed */
int cx_mixed_check(CxTracer *tracer, int nargs, PyObject *const *args);
bool cx_is_mixed_op(PyObject *a, PyObject *b); /* Python's operation if the operand is Python's */
PyObject *cx_mixed_op(int ufunc, PyObject *a, PyObject *b);
PyObject *cx_mixed_real(CxStorage *storage); /* Python's number or NumPy's: both are real by now */
PyObject *cx_tracer_mixed(PyObject *self, PyObject *args);

/* storage.c */
CxStorage *cx_storage_new(CxTracer *tracer, CiKind kind, CiDtype dtype, int rank);
CxStorage *cx_storage_from_node(CxTracer *tracer, CiNode *node, CiKind kind);
/* sizes and strides (in elements): NULL, or per axis an expression or NULL for the array's own. */
CxStorage *cx_storage_from_array(CxTracer *tracer, PyObject *array, int source,
                                 const CiExpr *const *sizes, const CiExpr *const *strides);
int cx_storage_add_input(CxStorage *storage); /* to the pending graph */
void cx_storage_release(CxStorage *storage);
CxView *cx_view_new(CxTraced *parent, CiOp op, int rank);
void cx_view_release(CxView *view);
PyObject *cx_traced_new(CxTracer *tracer, CxStorage *storage,
                        CxView *view); /* takes both references */
PyObject *cx_traced_from_node(CxTracer *tracer, CiNode *node, CiKind kind); /* NULL stays NULL */
PyObject *cx_traced_int(CxTracer *tracer, const CiExpr *e); /* a Python int that is e */
/* Makes sure the value has a node of the pending graph: cx_node is then never NULL. */
int cx_traced_prepare(CxTraced *traced);
int cx_write_prepare(CxTraced *target, const char *readonly_message);
void cx_storage_set_version(CxStorage *storage, CiNode *node);

static inline bool cx_is_current(const CxTraced *t);
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
           (s->stretch == 0 || cx_stretch_is_open(s->tracer, s->stretch));
}
static inline bool
cx_is_current(const CxTraced *t)
{
    const CxStorage *s = t->storage;
    const CxView *v = t->view;
    if (!cx_storage_is_current(s))
        return false;
    return v == NULL || (v->epoch == s->epoch && v->version == s->version &&
                         (v->stretch == s->stretch || cx_stretch_is_open(t->tracer, v->stretch)));
}

/* size.c: sizes of the tracer's sym. Functions give NULL or -1 with an exception. */
typedef enum CxSizeOp {
    CX_SIZE_add,
    CX_SIZE_sub,
    CX_SIZE_mul,
    CX_SIZE_floordiv,
    CX_SIZE_mod,
    CX_SIZE_min,
    CX_SIZE_max
} CxSizeOp;
enum { CX_OPEN = 2 }; /* an answer that only the running program knows */
int cx_size_consts(CxTracer *tracer, int count, const int64_t *values, const CiExpr **out);
const CiExpr *cx_size_const(CxTracer *tracer, int64_t value);
const CiExpr *cx_size_make(CxTracer *tracer, CxSizeOp op, const CiExpr *a, const CiExpr *b);
const CiExpr *cx_size_count(CxTracer *tracer, int rank, const CiExpr *const *sizes);
bool cx_sizes_are_const(int count, const CiExpr *const *exprs, int64_t *values);
bool cx_size_is_known(const CxTracer *tracer, const CiExpr *e); /* has a value in this call */
int cx_size_values(CxTracer *tracer, int count, const CiExpr *const *exprs, int64_t *values);
void cx_size_samples(CxTracer *tracer, int count, const CiExpr *const *exprs, int64_t *values);
PyObject *cx_size_dummy(CxTraced *x); /* cx_array_dummy of its shape */
/* Does the relation hold? By proof; else by the values of this call, which is guarded. 1, 0,
 * CX_OPEN or -1. Proofs alone: cx_size_prove. */
int cx_size_decide(CxTracer *tracer, CiRelation relation, const CiExpr *a, const CiExpr *b);
int cx_size_prove(CxTracer *tracer, CiRelation relation, const CiExpr *a, const CiExpr *b);
/* As cx_size_decide; where that is open the running program checks it. */
int cx_size_require(CxTracer *tracer, CiRelation relation, const CiExpr *a, const CiExpr *b,
                    const char *why);
/* The common size of axes that must be equal; NULL, without an exception when they are not. */
const CiExpr *cx_size_join(CxTracer *tracer, const CiExpr *a, const CiExpr *b);
int cx_sizes_equal(CxTracer *tracer, int rank, const CiExpr *const *a, const CiExpr *const *b);
PyObject *cx_size_object(CxTracer *tracer, const CiExpr *e); /* an int, or a Traced one */
const CiExpr *cx_size_from(CxTracer *tracer, PyObject *object);
PyObject *cx_shape_tuple(CxTracer *tracer, int rank, const CiExpr *const *sizes);
int cx_shape_from(CxTracer *tracer, PyObject *object, const CiExpr **sizes); /* the count */

int64_t cx_size_demand(CxTracer *tracer, const CiExpr *e, const char *what); /* -1: an exception */
const CiExpr *cx_size_settle(CxTracer *tracer, const CiExpr *e); /* a number where it is one now */
/* size_data.c: the symbol of a value that is used as an index in [0, size), or as a bound of slices
 * in [0, size]. */
const CiExpr *cx_index_define(CxTraced *value, const CiExpr *size, bool is_bound);
const CiExpr *cx_size_define(CxTraced *value);
void cx_defined_release(CxTracer *tracer);
const CiExpr *cx_defined_symbol(const CxTracer *tracer, int number);
bool cx_view_depends_on(const CxView *view, const CiExpr *symbol);
CxStorage *cx_defined_storage(const CxTracer *tracer, int number);
bool cx_is_data_int(PyObject *object);
/* A check that fails has the whole call answered by the function itself: nothing may have happened
 * yet that it would do again. */
static inline bool
cx_may_check(const CxTracer *tracer)
{
    return !tracer->needs_python && !tracer->is_static;
}
bool cx_has_checks(const CxTracer *tracer); /* in the pending graph */
int cx_size_check(CxTracer *tracer, CiRelation relation, const CiExpr *a, const CiExpr *b,
                  const char *why);
CxTraced *cx_size_fit(CxTraced *x, int rank, const CiExpr *const *sizes);
/* facts.c; cx_facts_decide: inside cx_protect; 1, 0, -1 open */
int cx_facts_decide(CxTracer *tracer, CiRelation relation, const CiExpr *a, const CiExpr *b);
int cx_fact_add(CxTracer *tracer, CiRelation relation, const CiExpr *a, const CiExpr *b);
void cx_facts_release(CxTracer *tracer);
PyObject *cx_tracer_assume(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *cx_tracer_forget(PyObject *self, PyObject *token);
PyObject *cx_python_data(CxTracer *tracer, int ufunc, PyObject *a, PyObject *b, PyObject *value);
/* size_bound.c: the largest magnitude that e can have when no symbol is larger than most. */
double cx_size_largest(const CiExpr *e, double most);
/* 1 where e fits 64 bits, which may be guarded; 0; -1. */
int cx_size_fits(CxTracer *tracer, const CiExpr *e);
/* The smaller or larger of two, by the values of this call where they tell. */
const CiExpr *cx_size_extremum(CxTracer *tracer, CxSizeOp op, const CiExpr *a, const CiExpr *b);
/* size_method.c */
PyObject *cx_tracer_array_method(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *cx_tracer_scalar_method(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *cx_tracer_broadcast(PyObject *self, PyObject *items);
PyObject *cx_tracer_size_min(PyObject *self, PyObject *args);
PyObject *cx_tracer_size_max(PyObject *self, PyObject *args);
/* size_index.c: 1, 0 when NumPy refuses it, -1. */
int cx_index_wrap(CxTracer *tracer, const CiExpr *at, const CiExpr *size, const CiExpr **start);
int cx_index_slice(CxTracer *tracer, PySliceObject *slice, const CiExpr *size, const CiExpr **out);

/* size_source.c: before a flush, finds the inputs that show the graph's symbols, adds those that no
 * array shows, and tells the tracer's environment what the graph's assumed. */
int cx_symbols_resolve(CxTracer *tracer);
/* The values of symbols that a storage which became real shows. */
int cx_symbols_learn(CxStorage *storage);
int cx_symbol_number(const CxTracer *tracer, const CxStorage *input); /* -1: its value is none */

/* build.c: one call of the graph's builder each; NULL with an exception. */
typedef struct CxOperand {
    CxTraced *traced; /* borrowed; NULL: a constant */
    CiConst value;    /* of the dtype it is wanted in */
    CiDtype want;     /* cast to this first */
    CiKind kind;      /* of a constant */
} CxOperand;
int cx_graph_open(CxTracer *tracer);
/* A body of the caller's own: builds into graph, leaves a result (or NULL, which is no error). */
typedef struct CxBuilding {
    CiGraph *graph;
    CiLoc loc;
    CiNode *result;
} CxBuilding;
const CiExpr *cx_graph_expr(CxTracer *tracer, const CiExpr *e); /* inside a body */
CiNode *cx_build_custom(CxTracer *tracer, void (*body)(CiContext *, void *), CxBuilding *building);
CiLoc cx_location(CxTracer *tracer);
CiNode *cx_build_pointwise(CxTracer *tracer, CiOp op, int nargs, const CxOperand *args, CiDtype out,
                           CiKind kind);
CiNode *cx_build_cast(CxTracer *tracer, CxTraced *a, CiDtype dtype, CiKind kind);
CiNode *cx_build_const(CxTracer *tracer, CiDtype dtype, CiKind kind, CiConst value);
CiNode *cx_build_fold(CxTracer *tracer, CiOp op, CxTraced *a, int naxes,
                      const int *axes); /* reduce, argreduce, scan */
CiNode *cx_build_copy(CxTracer *tracer, CxTraced *a, const int8_t *order);
CiNode *cx_build_fill(CxTracer *tracer, CiDtype dtype, int rank, const CiExpr *const *sizes,
                      const int8_t *order, const CiConst *value); /* value NULL: empty */
CiNode *cx_build_iota(CxTracer *tracer, int rank, const CiExpr *const *sizes, int axis);
CiNode *cx_build_concat(CxTracer *tracer, int nargs, CxTraced *const *args, int axis);
CiNode *cx_build_extern(CxTracer *tracer, CiOp op, const CiExtern *ext, CiDtype dtype, int nargs,
                        CxTraced *const *args, int rank, const CiExpr *const *sizes);
/* A new version of target's storage in which the elements it addresses are value's. */
int cx_build_assign(CxTracer *tracer, CxTraced *target, const CxOperand *value);
CiNode *cx_build_expr(CxTracer *tracer, const CiExpr *e);
CiNode *cx_build_define(CxTracer *tracer, CxTraced *value, const CiExpr *symbol);
CiNode *cx_build_check(CxTracer *tracer, CxTraced *condition, const char *why);
CiNode *cx_build_input(CxTracer *tracer, CxStorage *storage);
int cx_build_view(CxTracer *tracer, CxTraced *traced);

/* tracer.c, flush.c */
extern PyType_Spec cx_tracer_spec, cx_break_spec;
PyObject *cx_tracer_array(CxTracer *tracer, PyObject *array, int source);
PyObject *cx_tracer_array_of(CxTracer *tracer, PyObject *array, int source,
                             const CiExpr *const *sizes, const CiExpr *const *strides);
PyObject *cx_tracer_scalar(CxTracer *tracer, PyObject *value, int source);
/* Any value as an operand. constant: an array's contents never change from call to call. */
PyObject *cx_tracer_lift(CxTracer *tracer, PyObject *value, CiDtype like, bool constant);
PyObject *cx_tracer_wrap(CxTracer *tracer,
                         PyObject *real); /* steals; arrays that Python made become Traced */
bool cx_tracer_varies(CxTracer *tracer, PyObject *number);
int cx_tracer_note(CxTracer *tracer,
                   PyObject *reason); /* a Break is recorded, or raised under fullgraph */
int cx_tracer_break(CxTracer *tracer, const char *format, ...);
void cx_tracer_end(CxTracer *tracer);
int cx_tracer_specialize(CxStorage *storage);
int cx_tracer_flush(CxTracer *tracer, CxStorage **wanted, int nwanted, bool everything);
int cx_options_fill(PyObject *values, CiOptions *options);
PyObject *cx_options_list(void);

/* indirect.c: methods of Tracer */
PyObject *cx_tracer_gather(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *cx_tracer_scatter(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *cx_tracer_compress(PyObject *self, PyObject *args);
PyObject *cx_tracer_may_check(PyObject *self, PyObject *unused);
PyObject *cx_tracer_undo(PyObject *self, PyObject *unused);
int cx_storage_keep(CxStorage *storage); /* before Python writes to it */

/* surface.c, views.c */
extern PyMethodDef cx_tracer_methods[];
PyObject *cx_make_permute(CxTraced *x, const int *axes);
PyObject *cx_make_reshape(CxTraced *x, int rank, const CiExpr *const *sizes);
PyObject *cx_make_slice(CxTraced *x, const CiExpr *const *starts, const CiExpr *const *steps,
                        const CiExpr *const *sizes);
PyObject *cx_make_expand(CxTraced *x, int rank, const CiExpr *const *sizes);
PyObject *cx_make_diagonal(CxTraced *x, int axis1, int axis2, const CiExpr *offset);
PyObject *cx_make_part(CxTraced *x, bool imaginary);

/* traced.c, traced_method.c */
extern PyType_Spec cx_traced_spec, cx_method_spec;
PyObject *cx_method_new(CxTraced *traced, PyObject *name,
                        PyObject *handler); /* handler NULL: none */
void cx_traced_dealloc(PyObject *self);
PyObject *cx_traced_concrete(CxTraced *traced); /* flushes when it must */
PyObject *cx_traced_demand(CxTraced *traced,
                           const char *what); /* a break; kind python specialises */
/* A copy of nested tuples, lists and dicts with real values for Traced ones. */
PyObject *cx_concrete_tree(PyObject *object);
PyTypeObject *cx_python_class(const CxStorage *storage); /* of kind python */
static inline bool
cx_is_traced(PyObject *object)
{
    return Py_TYPE(object)->tp_dealloc == cx_traced_dealloc;
}

/* A Python int that is an expression of sizes and indices. */
static inline bool
cx_is_size(const CxTraced *t)
{
    return t->view == NULL && t->storage->expr != NULL;
}

/* traced_number.c, traced_index.c: slots of Traced */
#define CX_SLOT(id, function)                                                                      \
    {                                                                                              \
        id, (void *)(uintptr_t)(function)                                                          \
    }
PyObject *cx_richcompare(PyObject *a, PyObject *b, int op);
PyObject *cx_power(PyObject *a, PyObject *b, PyObject *modulo);
PyObject *cx_inplace_power(PyObject *a, PyObject *b, PyObject *modulo);
PyObject *cx_divmod(PyObject *a, PyObject *b);
PyObject *cx_int(PyObject *self);
PyObject *cx_float(PyObject *self);
PyObject *cx_index(PyObject *self);
PyObject *cx_repr(PyObject *self);
PyObject *cx_str(PyObject *self);
int cx_bool(PyObject *self);
Py_hash_t cx_hash(PyObject *self);
int cx_contains(PyObject *self, PyObject *item);
int cx_getbuffer(PyObject *self, Py_buffer *view, int flags);
PyObject *cx_subscript(PyObject *self, PyObject *key);
int cx_ass_subscript(PyObject *self, PyObject *key, PyObject *value);
PyObject *cx_item(PyObject *self, Py_ssize_t i);
Py_ssize_t cx_length(PyObject *self);
PyObject *cx_iterate(PyObject *self);

/* ufunc.c, ufunc_fold.c */
int cx_ufuncs_init(CxState *state);
int cx_ufunc_find(CxState *state, PyObject *ufunc); /* its number, -1: none, -2: an exception */
PyObject *cx_ufunc_call(CxTracer *tracer, int ufunc, int nargs, PyObject *const *args);
PyObject *cx_ufunc_into(CxTracer *tracer, int ufunc, int nargs, PyObject *const *args,
                        CxTraced *out);
PyObject *cx_array_ufunc(CxTracer *tracer, PyObject *ufunc, PyObject *method, PyObject *args,
                         PyObject *kwargs);
PyObject *cx_ufunc_general(CxTracer *tracer, PyObject *ufunc, PyObject *args, PyObject *kwargs);
PyObject *cx_ufunc_reduce(CxTracer *tracer, int ufunc, PyObject *args, PyObject *kwargs);
PyObject *cx_ufunc_accumulate(CxTracer *tracer, int ufunc, PyObject *args, PyObject *kwargs);
PyObject *cx_ufunc_outer(CxTracer *tracer, int ufunc, PyObject *args, PyObject *kwargs);
PyObject *cx_ufunc_fallback(CxTracer *tracer, PyObject *ufunc, PyObject *method, PyObject *args,
                            PyObject *kwargs, const char *reason);
bool cx_is_same_view(const CxTraced *a, const CxTraced *b);
int cx_assign_value(CxTraced *target, PyObject *value, const char *readonly_message);
PyObject *cx_matmul(CxTracer *tracer, PyObject *a, PyObject *b);
int cx_normalize_axes(PyObject *axis, int rank, int *axes); /* sorted; -1 with NumPy's exception */

/* extern.c */
/* position_axis: as in CiExtern; the same for all calls of one name and key. */
const CiExtern *cx_extern_find(CxState *state, const char *name, const char *key,
                               PyObject *callable, int position_axis);

/* program.c, wrapper.c */
extern PyType_Spec cx_program_spec;
typedef struct CxReturn {
    CiReturn layout; /* sizes and strides NULL: they depend on the call */
    bool is_shared;  /* another return is that buffer, or it is an argument's memory: copied */
} CxReturn;
struct CxProgram {
    PyObject_HEAD CxState *state;
    CiProgram *program;
    CiContext *ctx; /* owns graph */
    CiGraph *graph; /* as captured: what text() prints and compiles again */
    CiOptions options;
    PyObject *option_values; /* keeps the texts of options */
    const CiBackend *backend;
    PyObject *texts;
    PyObject *wrapper; /* the printed Python wrapper, when that runs the program */
    int nbuffers, nreturns, nscalars;
    CxReturn *returns;
    bool *is_scalar; /* per result buffer: one number, never an array */
    int64_t work;
    int64_t small; /* with no size above it a symbolic program has little work; 0: there is none */
    bool writes, is_symbolic; /* is_symbolic: sizes of inputs are read in each run */
    int kernels, externs;
};
/* How a result buffer is made when another shape than the program's is wanted of its memory. */
typedef struct CxShape {
    bool is_set;
    int rank;
    const int64_t *layout; /* sizes, then strides in bytes */
    const int *numbers;    /* the same in the table of the call, or NULL */
} CxShape;
enum { CX_FEW_SYMBOLS = 12 };
/* One run. buffers and slots: one per result buffer, zeroed; an array, or a number in its slot. */
typedef struct CxRun {
    CxProgram *program;
    void *const *inputs;
    const int64_t *const *sizes; /* per input; NULL when no symbol is read from arrays */
    PyObject *const *input_objects;
    const CiSlot *scalars;
    const CxShape *shapes;
    const int64_t *table; /* of the guards */
    PyObject **buffers;
    CiSlot *slots;
    PyObject *values; /* of the Python wrapper: its tuple */
    PyThreadState *released;
    unsigned float_flags; /* NumPy's bits */
    int64_t *symbols;     /* values, when it has run */
    int64_t few_symbols[CX_FEW_SYMBOLS];
} CxRun;
int cx_program_run(CxRun *run);
void cx_run_close(CxRun *run);
/* A new reference to the value of one return after a run. */
PyObject *cx_run_value(CxRun *run, int position, CiKind kind);
/* Compiles a copy of graph; takes ctx over when it succeeds. */
CxProgram *cx_program_compile(CxState *state, CiContext *ctx, CiGraph *graph,
                              const CiOptions *options, PyObject *option_values,
                              const CiBackend *backend, PyObject *info);
PyObject *cx_compile_text(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *cx_program_text(CxProgram *program, const char *level);
int cx_wrapper_open(CxProgram *program);
int cx_wrapper_run(CxRun *run);
/* A Python number in the slot of its dtype. */
int cx_slot_from(PyObject *value, CiDtype dtype, CiSlot *slot);

/* guards*.c. The values that a specialization computes from a call's sizes are numbers of a table:
 * symbols first, then what was asked for with cx_guards_number before the first call. */
typedef struct CxGuards CxGuards;
/* tracer: whose symbols the checks use and whose shape guards are checked too. */
CxGuards *cx_guards_new(CxTracer *tracer, PyObject *sources, PyObject *checks);
void cx_guards_free(CxGuards *guards);
int cx_guards_traverse(CxGuards *guards, visitproc visit, void *arg);
int cx_guards_count(const CxGuards *guards); /* sources */
/* The number of an expression of any CiSym whose symbols have the same names; -1. */
int cx_guards_number(CxGuards *guards, const CiExpr *e);
int cx_guards_table(const CxGuards *guards); /* how many values; 0 when no size varies */
/* 1: all hold, values (borrowed where is_owned is false) and table filled; 0: one does not, *why
 * set when asked for; -1. */
int cx_guards_check(CxGuards *guards, PyObject *const *args, Py_ssize_t nargs, PyObject **values,
                    int64_t *table, PyObject **why);
void cx_guards_finish(const CxGuards *guards, int64_t *table); /* the values guards do not need */
void cx_guards_drop(CxGuards *guards, PyObject **values);
/* For texts: the parameters' names, and where the function is ("model.py:12"). */
void cx_guards_set_words(CxGuards *guards, PyObject *names, PyObject *where);
PyObject *cx_guards_texts(CxGuards *guards);

/* draws.c: the state of the generators that a call draws from, before it runs. */
PyObject *cx_draws_save(const CxGuards *guards, PyObject *const *values);
int cx_draws_restore(PyObject *saved);

/* result.c, specialization.c */
typedef struct CxResult CxResult;
/* What a finished call returned, as a recipe. NULL with *why set and no exception when it cannot be
 * made again. */
CxResult *cx_result_new(CxTracer *tracer, PyObject *result, PyObject *reached,
                        const CxProgram *program, CxGuards *guards, const char **why);
void cx_result_free(CxResult *result);
int cx_result_traverse(CxResult *result, visitproc visit, void *arg);
const CxShape *cx_result_shapes(const CxResult *result);
PyObject *cx_result_make(CxResult *result, CxRun *run, PyObject **values, const int64_t *table);
/* Sizes, strides, …: constants, or in room what the table says. */
const int64_t *cx_layout_of(int count, const int64_t *layout, const int *numbers,
                            const int64_t *table, int64_t *room);
/* The storages behind the Traced values in a result, each once. The caller frees *wanted. */
int cx_result_collect(PyObject *result, CxStorage ***wanted, int *nwanted);
PyObject *cx_result_concrete(PyObject *result);

extern PyType_Spec cx_specialization_spec;
/* Where a later call finds a graph's input: the value of a source, or of a symbol of the call's
 * environment (a python i64 input, for symbols that no array of the graph shows). */
struct CxInput {
    int source;
    CiKind kind;
    CiDtype dtype;
    int symbol; /* number in the environment, in a specialization in its table; or -1 */
};
PyObject *cx_specialization_new(CxState *state, CxProgram *program, CxGuards *guards,
                                CxResult *result, int ninputs, CxInput *inputs);
/* Runs it on bound arguments. NULL without an exception when a guard fails, and when a check of the
 * program does: then no argument has been changed, and the function itself answers. */
typedef enum CxAnswer { CX_NO_MATCH, CX_MATCH, CX_CHECK_FAILED } CxAnswer;
PyObject *cx_specialization_call(CxSpecialization *spec, PyObject *const *args, Py_ssize_t nargs,
                                 CxAnswer *answer, unsigned *suspects);
PyObject *cx_specialization_why(CxSpecialization *spec, PyObject *const *args, Py_ssize_t nargs);
void cx_specialization_set_words(CxSpecialization *spec, PyObject *names, PyObject *where);
PyObject *cx_tracer_finish(PyObject *self, PyObject *args, PyObject *kwargs);

/* device_array.c: ndarrays whose data pointer is an address of a device; only shape, dtype and
 * strides may be looked at */
extern PyType_Spec cx_device_memory_spec;
extern PyMethodDef cx_device_methods[];
bool cx_is_device_array(const CxState *state, PyObject *array);
PyObject *cx_device_array_new(CxState *state, const CiBackend *backend, CiDtype dtype, int rank,
                              const int64_t *sizes, const int64_t *strides);
/* Programs of these options run on arrays of the device, without copies. */
static inline bool
cx_is_on_device(const CiOptions *options, const CiBackend *backend)
{
    return options->device_arrays && backend->allocate != NULL;
}
/* -1, with an exception, for an input that such a program cannot read. */
int cx_check_device_input(const CxState *state, PyObject *value);
/* -1, with what the device said. */
int cx_raise_device(CxState *state, const CiBackend *backend, int32_t status);
/* function.c */
extern PyType_Spec cx_function_spec;

#endif
