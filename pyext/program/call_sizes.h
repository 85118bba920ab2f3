/* The sizes of one call, held against what a graph says of its inputs. */
#ifndef CX_CALL_SIZES_H
#define CX_CALL_SIZES_H

#include "program/program.h"

/* Where a call shows the value of a symbol. */
typedef struct CxPlace {
    const CiExpr *symbol;
    int input, axis; /* axis -1: input is the number of a scalar */
} CxPlace;

typedef struct CxCallSizes {
    const CiGraph *graph;
    const CxPlace *places;
    int nplaces;
    const int64_t *const *sizes, *const *strides; /* per input; strides in elements */
    const CiSlot *scalars;
} CxCallSizes;

/* The places of a graph's symbols, of PyMem_Malloc; -1 with an exception. */
int cx_places_find(const CiGraph *graph, CxPlace **places);
/* For ci_expr_evaluate; arg: a CxCallSizes. */
int64_t cx_call_symbol(void *arg, const CiExpr *symbol);
/* These may fail as ci_expr_evaluate does. Whether sizes, ranges of symbols and guards are as the graph says;
 * an input that does not fit is *wrong, which is -1 if a guard does not hold. */
bool cx_call_sizes_fit(CiContext *ctx, const CxCallSizes *call, int *wrong);
/* Whether the strides of an input matter and are others than the graph's. */
bool cx_call_strides_differ(CiContext *ctx, const CxCallSizes *call, int input);

/* Program.guards: a tuple of (relation, left, right, line). */
PyObject *cx_program_guards(PyObject *self, void *closure);

#endif
