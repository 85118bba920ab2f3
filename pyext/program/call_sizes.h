/* Compares the sizes of one call with a graph's types of its inputs. */
#ifndef CX_CALL_SIZES_H
#define CX_CALL_SIZES_H

#include "program/program.h"

/* A place in a call where the value of a symbol can be read. */
typedef struct CxSizeSource {
    const CiExpr *symbol;
    int input, axis; /* axis -1: input is the index of a scalar */
} CxSizeSource;

typedef struct CxCallSizes {
    const CiGraph *graph;
    const CxSizeSource *places;
    int nplaces;
    const int64_t *const *sizes, *const *strides; /* per input; strides in elements */
    const CiSlot *scalars;
} CxCallSizes;

/* Finds the places of a graph's symbols, allocated by PyMem_Malloc; -1 with an exception. */
int cx_size_sources_find(const CiGraph *graph, CxSizeSource **places);
/* A callback for ci_expr_evaluate; arg is a CxCallSizes. */
int64_t cx_call_symbol(void *arg, const CiExpr *symbol);
/* These may fail like ci_expr_evaluate. The first is true if sizes, ranges of symbols and guards
 * are as in the graph; otherwise *wrong is the input that does not fit, or -1 if a guard does
 * not hold. */
bool cx_call_sizes_fit(CiContext *ctx, const CxCallSizes *call, int *wrong);
/* True if the strides of an input matter and differ from the graph's. */
bool cx_call_strides_differ(CiContext *ctx, const CxCallSizes *call, int input);

/* Program.guards: a tuple of (relation, left, right, line). */
PyObject *cx_program_guards(PyObject *self, void *closure);

#endif
