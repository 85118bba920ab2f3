/* Guards as read: what guards_read.c makes and guards.c checks, by the rows of guards.def. */
#ifndef CX_GUARDS_PRIVATE_H
#define CX_GUARDS_PRIVATE_H

#include "replay/guards.h"

#include "runtime/values.h"

typedef enum CxSourceKind {
#define SOURCE(kind, word, form, cost) SOURCE_##kind,
#include "replay/guards.def"
} CxSourceKind;

typedef struct CxSource {
    CxSourceKind kind;
    int from;   /* attr, item, closure: the source it is taken of; arg: number; made: or -1 */
    int number; /* closure: which of the function's cells */
    PyObject *object, *key; /* dict, cell, constant or callable; name or key */
} CxSource;

typedef enum CxCheckKind {
#define GUARD(kind, read, form, test, want, found) CHECK_##kind,
#include "replay/guards.def"
} CxCheckKind;

/* Which defaults a function has; each is a source of its own. */
typedef enum CxDefaults { HAS_DEFAULTS = 1, HAS_NAMED_DEFAULTS = 2 } CxDefaults;

/* An extent or stride of an array: a constant, or the value of that number. */
typedef struct CxExtent {
    int64_t constant;
    const CiExpr *expr; /* NULL: the constant */
    int number;
    bool is_definition; /* the symbol's value is taken from here */
    int shown;          /* of such a stride: where what is found goes; its own number is checked */
} CxExtent;

/* What arrays are compared with stands first: it is one line of the processor's cache. */
typedef struct CxCheck {
    CxCheckKind kind;
    int source;
    int rank;
    int flags, wanted;     /* array: these of NumPy's flags shall be so */
    bool looks_at_strides; /* dense ones are a flag */
    bool shows_strides;    /* a result is a view: strides matter along axes of any size */
    bool is_permuted;      /* its axes are not in C's order, as they are if one has one element */
    PyArray_Descr *descr;  /* array */
    CxExtent *sizes, *strides; /* array; size: sizes[0], of rank 1 */
    int other;       /* same, other: that source; apart: how many there are; disjoint: the same, of
                        which `source` are written */
    PyObject *a, *b; /* object, type, value; keys; equals: b is the line that asked, or NULL;
                      * function: code and globals; names: the namespace, and pairs of them;
                      * body: code, defaults and keyword defaults, or None for each */
    int *sources;    /* apart, disjoint */
    uint64_t stamp;  /* names: of the namespace when it was last looked at; set with the lock */
    int64_t count;   /* len; array: elements, -1 when that varies; function: CxDefaults */
} CxCheck;

/* What was assumed of sizes, by whom. */
typedef struct CxRelation {
    CiShapeGuard guard;
    int left, right;
} CxRelation;

/* Where the value of a symbol comes from. A symbol that no axis shows is `solved`: another one
 * stands for the extent (for a padding: the stride) of an axis, and this one is computed from it. */
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
    int nown; /* of them, which follow from symbols and arrays alone; they stand first */
    PyObject *names, *where;
    CiContext *ctx; /* NULL when no size varies; owns all below */
    CiSym *sym;
    CxKnown *known;
    CiValues values;
    CiValuesBuilder builder;
    int ncode; /* instructions whose results the guards need */
};

/* guards_sizes.c */
int cx_guards_open_sizes(CxGuards *guards, const CxTracer *tracer);
int cx_guards_take(CxGuards *guards, const CiExpr **e); /* of the tracer, as one of the guards */
int cx_guards_number_sizes(CxGuards *guards, const CxTracer *tracer);
/* Is stride k of the check the product of the sizes inside, in C (or Fortran) order? */
bool cx_guards_is_dense(CxGuards *guards, const CxCheck *check, int64_t itemsize, bool is_fortran);
/* Were the axes of what was captured in C's order of memory? */
bool cx_guards_is_c_order(CxGuards *guards, const CxCheck *check);

/* ---- one call, looked at ---- */

typedef struct CxLookup {
    CxGuards *guards;
    PyObject *const *args;
    Py_ssize_t nargs;
    PyObject **values;
    int64_t *table;
} CxLookup;

/* ---- guards_source.c ---- */

/* The value of a source, or NULL when there is none (no exception is left). */
PyObject *cx_lookup_find(CxLookup *l, int number);

/* The same: of most calls an argument is all there is. */
static inline PyObject *
cx_lookup_value(CxLookup *l, int number)
{
    const CxSource *s = &l->guards->sources[number];
    if (l->values[number] == NULL && s->kind == SOURCE_arg && s->from < l->nargs)
        l->values[number] = l->args[s->from];
    return l->values[number] != NULL ? l->values[number] : cx_lookup_find(l, number);
}

PyObject *cx_text_source(const CxGuards *g, int number);
PyObject *cx_text_missing(const CxGuards *g, int source);

/* What of a value differs. */
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
    ONE_ELEMENT,                           /* + the axis that has one now */
    OTHER_SIZE = ONE_ELEMENT + NPY_MAXDIMS /* + the axis */
} CxWhere;

/* ---- guards_array.c ---- */
/* Are the strides of this array compared with those of the check? */
bool cx_check_compares_strides(const CxCheck *check, PyArrayObject *array);

/* Where an array differs, or an int: extents that wait for the symbols do not. */
int cx_check_test_array(const CxCheck *c, PyObject *value, int64_t *table);
/* Constants are compared and symbols taken; what is computed waits. */
bool cx_extent_fits(const CxExtent *extent, int64_t found, int64_t *table);
/* defined: of one that a symbol is taken from. */
PyObject *cx_text_extent(const CxGuards *g, const CxExtent *extent, const char *defined);
PyObject *cx_text_array(const CxGuards *g, const CxCheck *c);
/* The attribute in which an array differs, with what it should be and what it is. */
PyObject *cx_text_array_failure(const CxGuards *g, const CxCheck *c, int where, PyArrayObject *a,
                                PyObject *name, const int64_t *table);

/* ---- guards_kinds.c ---- */

/* Where a check differs, by its row. */
int cx_check_test(CxLookup *l, CxCheck *c);
/* What was different, in words; table: NULL while symbols are not known. */
PyObject *cx_check_failure(CxGuards *g, const CxCheck *c, int where, PyObject **values,
                           const int64_t *table);
PyObject *cx_check_text(const CxGuards *g, const CxCheck *c);

/* ---- guards_text.c ---- */

PyObject *cx_text_type(PyTypeObject *type);
PyObject *cx_text_value(PyObject *value);
PyObject *cx_text_object(PyObject *o);
PyObject *cx_text_code(PyObject *code);
PyObject *cx_text_expr(const CxGuards *g, const CiExpr *e);
PyObject *cx_text_relation(const CxGuards *g, const CiShapeGuard *guard);
PyObject *cx_text_relation_failure(const CxGuards *g, const CxRelation *relation,
                                   const int64_t *table);
/* " at model.py:12", where a line asked; where the function is otherwise. */
PyObject *cx_text_place(const CxGuards *g, const CiLoc *loc);
/* "a was X when compiled at F, is Y now"; steals all. */
PyObject *cx_text_was_is(PyObject *what, PyObject *before, PyObject *place, PyObject *now);

#endif
