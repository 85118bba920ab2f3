/* Powers with a single exponent. For some exponents NumPy's loop uses another operation, such as
 * a square. */
#include "operation/ufunc.h"

CiOp
cx_short_power(const CxState *state, CiOp op, CiDtype dtype, double exponent)
{
    bool has_roots = !ci_dtype_is_narrow(dtype) && state->roots_of_powers;
    bool has_squares = op == CI_OP_power || ci_dtype_is_narrow(dtype) || state->squares_of_powers;

    return has_squares && exponent == 2.0 ? CI_OP_square
           : has_roots && exponent == 0.5 ? CI_OP_sqrt
           : has_roots && exponent == -1  ? CI_OP_reciprocal
                                          : op;
}

static CxTraced *
made(CxTracer *tracer, CiOp op, int nargs, const CxOperand *operands, CiKind kind)
{
    return (CxTraced *)cx_traced_from_node(
        tracer, cx_build_pointwise(tracer, op, nargs, operands, CI_DTYPE_none, kind), kind);
}

/* Builds where(exponent == one, op(base), general). Steals general. */
static CxTraced *
or_short_power(CxTracer *tracer, CiOp op, const CxOperand *operands, double one, CxTraced *general)
{
    CiDtype dtype = operands[0].want;
    CxOperand is_one[2] = {operands[1], {.want = dtype, .value = {0, one, 0.0}}};
    CxTraced *condition = made(tracer, CI_OP_equal, 2, is_one, cx_kind(operands[1].traced));
    CxTraced *value =
        made(tracer, cx_short_power(tracer->state, op, dtype, one), 1, operands, CI_KIND_array);
    CxOperand choice[3] = {{.traced = condition, .want = CI_DTYPE_bool},
                           {.traced = value, .want = dtype},
                           {.traced = general, .want = dtype}};
    CxTraced *result = condition != NULL && value != NULL && general != NULL
                           ? made(tracer, CI_OP_where, 3, choice, CI_KIND_array)
                           : NULL;
    Py_XDECREF(condition);
    Py_XDECREF(value);
    Py_XDECREF(general);
    return result;
}

CiNode *
cx_power_by_number(CxTracer *tracer, CiOp op, const CxOperand *operands)
{
    static const double exponents[] = {2.0, 0.5, -1.0};
    CxTraced *result = made(tracer, op, 2, operands, CI_KIND_array);

    for (int k = 0; k < 3 && result != NULL; k++)
        if (cx_short_power(tracer->state, op, operands[0].want, exponents[k]) != op)
            result = or_short_power(tracer, op, operands, exponents[k], result);
    CiNode *node = result != NULL ? cx_node(result) : NULL;
    Py_XDECREF(result);
    return node;
}
