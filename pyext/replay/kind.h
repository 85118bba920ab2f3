/* Digests of calls. Calls with equal digests are recognised as similar without Python code. */
#ifndef CX_KIND_H
#define CX_KIND_H

#include "state/state.h"

/* kind: a digest of the arguments' classes, dtypes, ranks, flags, and of which sizes are 0 or 1; not of sizes and ints.
 * sizes: a digest of sizes and ints; class: the number of bits of the largest. */
typedef struct CxKind {
    uint64_t kind, sizes;
    int class;
} CxKind;

CxKind cx_kind_of(PyObject *const *bound, int count);

static inline bool
cx_kind_is(const CxKind *a, const CxKind *b)
{
    return a->kind == b->kind && a->sizes == b->sizes;
}

/* kind_of(bound): the kind of a call with its sizes, as bytes; from_object: false with an exception if it is none. */
PyObject *cx_kind_object(PyObject *module, PyObject *bound);
bool cx_kind_from_object(PyObject *object, CxKind *kind);

#endif
