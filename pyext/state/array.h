/* Conversion between NumPy's arrays, dtypes and numbers and the core's. */
#ifndef CX_ARRAY_H
#define CX_ARRAY_H

#include "state/state.h"

int cx_arrays_init(CxState *state);
CiDtype cx_dtype_of_descr(PyArray_Descr *descr); /* CI_DTYPE_none if the core has no such dtype */
/* The dtype of an operand of a ufunc's loop. It differs if NumPy compares int64 with uint64, which it does as long long. */
CiDtype cx_dtype_in_loop(PyArray_Descr *descr);
CiDtype cx_dtype_of_object(CxState *state, PyObject *dtype);
PyArray_Descr *cx_descr(CxState *state, CiDtype dtype); /* borrowed */
/* block_cache.c: a NumPy memory handler, which now owns the allocator. */
PyObject *cx_warm_handler(CiAllocator *allocator);
/* array.c: between enter and leave, new arrays are allocated in reused blocks, if an array of
 * that shape is large. *before is passed from one to the other. -1 with an exception; then enter
 * has changed nothing. */
int cx_warm_enter(CxState *state, CiDtype dtype, int rank, const int64_t *sizes, PyObject **before);
int cx_warm_leave(PyObject *before);
PyObject *cx_array_new(CxState *state, CiDtype dtype, int rank, const int64_t *sizes,
                       const int64_t *strides);
/* How an array can be written to; of a view of a view, the greater one of both. */
typedef enum CxAccess {
    CX_WRITABLE,
    CX_WRITTEN_BY_PYTHON, /* the program has no operation for it */
    CX_WARNS_OF_WRITES,   /* as NumPy's broadcast_arrays; Python writes, too */
    CX_READONLY
} CxAccess;
/* False after the first write to an array of CX_WARNS_OF_WRITES. */
bool cx_array_warns(PyObject *array);
/* Creates a view of base's memory; strides and offset are in bytes. */
PyObject *cx_array_view(CxState *state, PyObject *base, CiDtype dtype, int rank,
                        const int64_t *sizes, const int64_t *strides, int64_t offset,
                        CxAccess access);
/* An array of zeros of that shape that occupies one element of memory, for calls in which NumPy
 * should raise. */
PyObject *cx_array_dummy(CxState *state, CiDtype dtype, int rank, const int64_t *sizes);
PyObject *cx_scalar_from(CxState *state, CiDtype dtype, CiKind kind, const void *element);
/* Stores a NumPy scalar's element, as an array has it. */
int cx_scalar_element(PyObject *scalar, void *out);
/* The value of a number or NumPy scalar as a constant. 1: it is out of the dtype's range. */
int cx_const_of(CxState *state, PyObject *value, CiDtype dtype, CiConst *out);
/* Stores a Python number in the slot of its dtype. */
int cx_slot_from(PyObject *value, CiDtype dtype, CiSlot *slot);
int cx_code_of_number(PyObject *value, bool *is_strong); /* -1 if it is not a number */
/* Strides of the same memory under another shape; false if NumPy would copy. */
bool cx_reshape_strides(int rank, const int64_t *sizes, const int64_t *strides, int new_rank,
                        const int64_t *new_sizes, int64_t itemsize, int64_t *new_strides);
int64_t cx_count(int rank, const int64_t *sizes);
PyObject *cx_sizes_tuple(int rank, const int64_t *sizes);
/* A shape or a tuple of axes: an int or a sequence of ints. Returns the count or -1. */
int cx_sizes_from(PyObject *object, int64_t *sizes, int capacity);
/* The sequence as a list or tuple of at most `capacity` items, or NULL with an exception. */
PyObject *cx_size_items(PyObject *object, int capacity);
void cx_array_extent(PyObject *array, char **low, char **high);

/* layout.c: NumPy's new empty arrays have strides of 0, and views of them too. */
bool cx_is_new_and_empty(PyArrayObject *array);
/* The padding of each axis in elements, or -1: its stride is a multiple of the inner axis's
 * size, it is 0 or overlaps, or the axis has size 1. */
void cx_layout_paddings(PyArrayObject *array, int64_t *paddings);
/* Inside of cx_protect: strides in bytes of an array whose sizes are these expressions. They
 * follow from sizes and paddings; where paddings[k] is NULL and memory is not dense they are
 * constants. */
void cx_layout_strides(CiSym *sym, PyArrayObject *array, const CiExpr *const *sizes,
                       const CiExpr *const *paddings, const CiExpr **strides);

extern PyMethodDef cx_syntax_methods[];  /* syntax.c */
extern PyType_Spec cx_syntax_visitor_spec; /* syntax_visit.c */
extern PyMethodDef cx_flow_methods[];    /* syntax_flow.c */
extern PyMethodDef cx_node_methods[];    /* syntax_nodes.c */
extern PyMethodDef cx_operand_methods[]; /* operands.c */
extern PyMethodDef cx_reach_methods[];  /* reach.c */
/* True if nothing can see the death of an object: a number, a text, an array of numbers, or a small
 * list, tuple or dict of these. False: unknown. In reach.c. */
bool cx_dies_quietly(PyObject *o);

#endif
