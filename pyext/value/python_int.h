/* Operators of Python numbers while they are made into nodes of the graph. */
#ifndef CX_PYTHON_INT_H
#define CX_PYTHON_INT_H

#include "value/python_number.h"

typedef struct CxNumber {
    CxBuilding building; /* first: what body gets is the whole */
    int ufunc;
    CxTraced *traced[2]; /* NULL: a constant */
    CiConst values[2];
    CiDtype dtypes[2];
    int nargs;
    bool may_check, are_ints;
    bool is_inside;  /* of a loop or branch */
    bool is_either;  /* NumPy's number as well: what wraps there is checked, whoever looks at it */
    CiDtype want;    /* that operands of which one is no int are computed in */
    CiDtype cast;    /* not an operator: the type that one operand is wanted in */
    bool is_refused; /* it needs a check where there may be none */
} CxNumber;

/* The node that body makes of its operands, as a number of Python's; value: what Python computed, or
 * NULL. NotImplemented: it made none. */
PyObject *cx_number_build(CxTracer *tracer, CxNumber *n, void (*body)(CiContext *ctx, void *arg),
                          PyObject *value);
CiNode *cx_number_constant(CxNumber *n, CiDtype dtype, double value);
CiNode *cx_number_operand(CxNumber *n, int k, CiDtype want);
CiNode *cx_number_apply(CxNumber *n, CiOp op, CiNode *a, CiNode *b); /* b NULL: of one operand */
void cx_number_check(CxNumber *n, CiNode *condition, const char *why);
void cx_number_check_divisor(CxNumber *n, CiNode *b);

static inline bool
cx_is_int_dtype(CiDtype dtype) /* of Python's ints, which bools are, too */
{
    return dtype == CI_DTYPE_i64 || dtype == CI_DTYPE_u64 || dtype == CI_DTYPE_bool;
}

/* Of ints alone; of an operation that the graph has. */
CiNode *cx_int_op(CxNumber *n);
bool cx_int_has(int ufunc);
CiNode *cx_int_cast(CxNumber *n); /* the same int in the type wanted */

#endif
