/* Guards as read: what guards_read.c makes and guards.c checks. */
#ifndef CX_GUARDS_H
#define CX_GUARDS_H

#include "pyext.h"

typedef enum CxSourceKind {
    SOURCE_arg,
    SOURCE_dict,
    SOURCE_cell,
    SOURCE_attr,
    SOURCE_item,
    SOURCE_const
} CxSourceKind;

typedef struct CxSource {
    CxSourceKind kind;
    int from;               /* attr, item: the source it is taken of; arg: number */
    PyObject *object, *key; /* dict, cell or constant; name or key */
} CxSource;

typedef enum CxCheckKind {
    CHECK_is,
    CHECK_type,
    CHECK_equals,
    CHECK_array,
    CHECK_len,
    CHECK_keys,
    CHECK_same,
    CHECK_absent,
    CHECK_disjoint
} CxCheckKind;

typedef struct CxCheck {
    CxCheckKind kind;
    int source, other;    /* same: both; disjoint: counts of written and of all */
    PyObject *a, *b;      /* object, type, value; keys */
    PyArray_Descr *descr; /* array */
    int rank;
    bool writable, aligned;
    int64_t *sizes, *strides; /* array; disjoint: sources in sizes */
    int64_t count;
} CxCheck;

struct CxGuards {
    CxState *state;
    int nsources, nchecks;
    CxSource *sources;
    CxCheck *checks;
    PyObject *texts; /* the tuples given, for reports */
};

#endif
