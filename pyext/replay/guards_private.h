/* Guards as read: what guards_read.c makes, guards.c checks and guards_text.c puts into words. */
#ifndef CX_GUARDS_PRIVATE_H
#define CX_GUARDS_PRIVATE_H

#include "replay/guards.h"

#include "runtime/values.h"

typedef enum CxSourceKind {
    SOURCE_arg,
    SOURCE_dict,
    SOURCE_cell,
    SOURCE_attr,
    SOURCE_item,
    SOURCE_made,    /* what a call makes for itself: object(from), or object() */
    SOURCE_closure, /* a variable around a function */
    SOURCE_address, /* of the object itself, as an int: library calls find it by that */
    SOURCE_const
} CxSourceKind;

typedef struct CxSource {
    CxSourceKind kind;
    int from;   /* attr, item, closure: the source it is taken of; arg: number; made: or -1 */
    int number; /* closure: which of the function's cells */
    PyObject *object, *key; /* dict, cell, constant or callable; name or key */
} CxSource;

typedef enum CxCheckKind {
    CHECK_is,
    CHECK_type,
    CHECK_word,
    CHECK_function,
    CHECK_equals,
    CHECK_differs,
    CHECK_array,
    CHECK_size,
    CHECK_len,
    CHECK_keys,
    CHECK_same,
    CHECK_other,
    CHECK_names,
    CHECK_body,
    CHECK_apart,
    CHECK_disjoint
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
    bool is_permuted;      /* its axes are not in C's order, as they are if one has one element */
    PyArray_Descr *descr;  /* array */
    CxExtent *sizes, *strides; /* array; size: sizes[0] */
    int other;       /* same, other: that source; apart: how many there are; disjoint: the same, of
                        which `source` are written */
    PyObject *a, *b; /* object, type, value; keys; equals: b is the line that asked, or NULL;
                      * function: code and globals; names: the namespace, and pairs of them;
                      * body: code, defaults and keyword defaults, or None for each */
    int *sources;    /* apart, disjoint */
    uint64_t stamp;  /* names: of the namespace when it was last looked at */
    int64_t count;   /* len; array: elements, -1 when that varies; function: CxDefaults */
} CxCheck;

/* What was assumed of sizes, by whom. */
typedef struct CxRelation {
    CiShapeGuard guard;
    int left, right;
} CxRelation;

/* Where the value of a symbol comes from. A symbol that no axis shows is `solved`: another one
 * stands for the extent (for a gap: the stride) of an axis, and this one is computed from it. */
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
    PyObject *texts; /* the tuples given, which own what checks borrow */
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
int cx_guards_parse(CxGuards *guards, PyObject *text, const CiExpr **e);
int cx_guards_number_sizes(CxGuards *guards, const CxTracer *tracer);
/* Is stride k of the check the product of the sizes inside, in C (or Fortran) order? */
bool cx_guards_is_dense(CxGuards *guards, const CxCheck *check, int64_t itemsize, bool is_fortran);
/* Were the axes of what was captured in C's order of memory? */
bool cx_guards_is_c_order(CxGuards *guards, const CxCheck *check);

/* guards_text.c */
PyObject *cx_guards_failure(CxGuards *guards, const CxCheck *check, PyObject **values,
                            const int64_t *table);
PyObject *cx_guards_relation_failure(CxGuards *guards, const CxRelation *relation,
                                     PyObject **values, const int64_t *table);
PyObject *cx_guards_missing(CxGuards *guards, int source);

#endif
