/* Results: splits containers into parts and rebuilds them, and makes the recipe of a finished
 * call. */
#ifndef CX_RESULT_H
#define CX_RESULT_H

#include "program/program.h"
#include "replay/guards.h"

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
    PIECE_new, /* a call that only makes objects */
    PIECE_call /* any other call: it may have effects */
} CxPieceKind;

/* The items of a container in order, as a tuple; NULL without an exception for other objects.
 * names: the keys of a dict, or the callable of a call. */
PyObject *cx_container_parts(PyObject *o, CxPieceKind *kind, PyObject **names);
/* Steals the n references in parts, also when it fails. */
PyObject *cx_container_build(CxPieceKind kind, PyTypeObject *type, PyObject *names, Py_ssize_t n,
                             PyObject **parts);

/* recipe.c */
typedef struct CxResult CxResult;
/* The recipe of a finished call's result. NULL with *why set and no exception if it cannot be
 * made again. */
CxResult *cx_result_new(CxTracer *tracer, PyObject *result, PyObject *reached,
                        const CxProgram *program, CxGuards *guards, const char **why);
void cx_result_free(CxResult *result);
int cx_result_traverse(CxResult *result, visitproc visit, void *arg);
/* saved.c: a new list with one row per piece. */
PyObject *cx_result_rows(const CxGuards *guards, const CxResult *result);
/* True if making the result may do more than make objects: deferred stores and records do. */
bool cx_result_acts(const CxResult *result);
const CxShape *cx_result_shapes(const CxResult *result);
PyObject *cx_result_make(CxResult *result, CxRun *run, PyObject **values, const int64_t *table);
/* result.c: the storages of the Traced values in a result, each once. The caller frees *wanted. */
int cx_result_collect(PyObject *result, CxStorage ***wanted, int *nwanted);
PyObject *cx_result_materialise(PyObject *result);
/* 1 if making the result calls a function that has effects, 0 if not, -1 with an exception. */
int cx_result_is_call(PyObject *result);

#endif
