/* Guards in memory: guards_read.c makes them and guards.c checks them, by the rows of
 * guards.def. */
#ifndef CX_GUARDS_PRIVATE_H
#define CX_GUARDS_PRIVATE_H

#include "replay/guards.h"

#include "sym/values.h"

typedef enum CxSourceKind {
#define SOURCE(kind, word, form, cost) SOURCE_##kind,
#include "replay/guards.def"
} CxSourceKind;

typedef struct CxSource {
    CxSourceKind kind;
    int from;   /* attr, item, closure: the source that contains it; arg: number; made: or -1 */
    int number; /* closure: index of the cell */
    PyObject *object, *key; /* dict, cell, constant or callable; name or key */
} CxSource;

typedef enum CxCheckKind {
#define GUARD(kind, read, form, test) CHECK_##kind,
#include "replay/guards.def"
} CxCheckKind;

/* The kinds of defaults that a function has; each default is a source of its own. */
typedef enum CxDefaults { HAS_DEFAULTS = 1, HAS_NAMED_DEFAULTS = 2 } CxDefaults;

/* An extent or stride of an array: a constant, or the table entry of that index. */
typedef struct CxExtent {
    int64_t constant;
    const CiExpr *expr; /* NULL for a constant */
    int number;
    bool is_definition; /* defines the symbol's value */
    /* For such a stride: index where the actual value is stored; its own index is checked. */
    int shown;
} CxExtent;

/* The fields used for arrays come first: they fill one cache line. */
typedef struct CxCheck {
    CxCheckKind kind;
    int source;
    int rank;
    int flags, wanted;     /* array: required values of these NumPy flags */
    bool looks_at_strides; /* false if dense strides are covered by a flag */
    bool shows_strides;    /* a result is a view: strides of axes with one element matter, too */
    bool is_permuted;      /* the axes are not in C order, which they would be with one element */
    PyArray_Descr *descr;  /* array */
    CxExtent *sizes, *strides; /* array; size: sizes[0], of rank 1 */
    /* Same, other: that source; apart: number of sources; disjoint: number of sources, of which
     * the first `source` are written. */
    int other;
    /* The object, type or value; keys. Of `equals`, b is the line that compared them, or NULL. Of `function`, code
     * and globals. Of `names`, the namespace, and pairs of names and values. Of `body`, code, defaults and keyword
     * defaults, or None for each. */
    PyObject *a, *b;
    int *sources;    /* apart, disjoint */
    uint64_t stamp;  /* names: the namespace's stamp when it was last compared; set with the GIL */
    int64_t count;   /* len; array: number of elements, -1 if it varies; function: CxDefaults */
} CxCheck;

/* An assumption about sizes, and where it was made. */
typedef struct CxRelation {
    CiShapeGuard guard;
    int left, right;
} CxRelation;

/* The origin of a symbol's value. If no axis has the symbol as its extent it is `solved`:
 * another symbol stands for the extent (for a padding: the stride) of an axis, and this one is
 * computed from it. */
typedef struct CxKnown {
    const CiExpr *symbol, *solved;
    int source, axis;
    int64_t hint;
    bool is_defined;
} CxKnown;

struct CxGuards {
    CxState *state;
    int nsources, nchecks, nrelations, nknown;
    CxSource *sources;
    CxCheck *checks;
    CxRelation *relations;
    int nown; /* of these, the first ones only depend on symbols and arrays */
    PyObject *names, *where;
    CiContext *ctx; /* NULL if no size varies; owns everything below */
    CiSym *sym;
    CxKnown *known;
    CiValues values;
    CiValuesBuilder builder;
    int ncode; /* instructions whose results guards need */
};

/* guards_sizes.c */
int cx_guards_open_sizes(CxGuards *guards, const CxTracer *tracer);
/* Copies it from the tracer's sym to that of the guards. */
int cx_guards_take(CxGuards *guards, const CiExpr **e);
int cx_guards_number_sizes(CxGuards *guards, const CxTracer *tracer);
/* True if stride k of the check is the product of the inner sizes, in C (or Fortran) order. */
bool cx_guards_is_dense(CxGuards *guards, const CxCheck *check, int64_t itemsize, bool is_fortran);
/* True if the axes of the captured array were in C order. */
bool cx_guards_is_c_order(CxGuards *guards, const CxCheck *check);

/* ---- the check of one call ---- */

typedef struct CxLookup {
    CxGuards *guards;
    PyObject *const *args;
    Py_ssize_t nargs;
    PyObject **values;
    int64_t *table;
} CxLookup;

/* ---- guards_source.c ---- */

/* The value of a source, or NULL if there is none (without an exception). */
PyObject *cx_lookup_find(CxLookup *l, int number);

/* Like cx_lookup_find; most sources are arguments. */
static inline PyObject *
cx_lookup_value(CxLookup *l, int number)
{
    const CxSource *s = &l->guards->sources[number];
    if (l->values[number] == NULL && s->kind == SOURCE_arg && s->from < l->nargs)
        l->values[number] = l->args[s->from];
    return l->values[number] != NULL ? l->values[number] : cx_lookup_find(l, number);
}

/* True for a condition on several things, which has no source of its own. */
static inline bool
cx_check_is_relation(const CxCheck *c)
{
    return c->kind >= CHECK_names;
}

/* The property in which a value differs. */
typedef enum CxWhere {
    AGREES,
    OTHER_VALUE,
    OTHER_CLASS,
    OTHER_RANK,
    OTHER_DTYPE,
    OTHER_WRITABLE,
    OTHER_ALIGNED,
    OTHER_LAYOUT,
    OTHER_LENGTH,
    OTHER_CODE,
    OTHER_GLOBALS,
    OTHER_DEFAULTS,
    ONE_ELEMENT,                           /* plus the axis that has one element now */
    OTHER_SIZE = ONE_ELEMENT + NPY_MAXDIMS /* plus the axis */
} CxWhere;

/* ---- guards_array.c ---- */
/* True if the strides of this array are compared with those of the check. */
bool cx_check_compares_strides(const CxCheck *check, PyArrayObject *array);

/* Returns where an array or an int differs. Extents that depend on several symbols are not
 * compared. */
int cx_check_test_array(const CxCheck *c, PyObject *value, int64_t *table);
/* Compares a constant, or stores the value of a symbol; expressions are compared later. */
bool cx_extent_fits(const CxExtent *extent, int64_t found, int64_t *table);

/* ---- guards_kinds.c ---- */

/* Returns where a value differs, by the row of the check. */
int cx_check_test(CxLookup *l, CxCheck *c);

/* ---- guards_saved.c ---- */

PyObject *cx_guards_expr_text(const CxGuards *g, const CiExpr *e);

#endif
