/* What the files about results share: containers taken apart and put together. */
#ifndef CX_RESULT_H
#define CX_RESULT_H

#include "pyext.h"

enum { CX_MAX_LEAVES = 256 };

typedef enum CxPieceKind {
    PIECE_const,
    PIECE_source,
    PIECE_return,
    PIECE_view_return,
    PIECE_view_source,
    PIECE_size,
    PIECE_tuple,
    PIECE_list,
    PIECE_dict,
    PIECE_named,
    PIECE_dataclass
} CxPieceKind;

/* The parts of a container in order, as a tuple; NULL without an exception for anything else.
 * names: keys or fields, where there are any. */
PyObject *cx_container_parts(PyObject *o, CxPieceKind *kind, PyObject **names);
/* Steals the n references in parts, also when it fails. */
PyObject *cx_container_build(CxPieceKind kind, PyTypeObject *type, PyObject *names, Py_ssize_t n,
                             PyObject **parts);

#endif
