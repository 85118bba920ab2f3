/* Library calls without Python. In a loop of short products, making arrays, parsing arguments
 * and setting up an iterator costs ten times as much as the products. This file calls NumPy's
 * inner routines as NumPy itself calls them: the same routine on the same strides gives the same
 * bits.
 *
 * A direct call returns false if NumPy would do more than that, or if a float flag was raised,
 * because NumPy may then warn. The call is then made through Python. */
#include "program/direct.h"

#include "base/float_flags.h"

static bool
has_one_dtype(const CiExternCall *call)
{
    return call->noperands == 2 && call->dtypes[0] == call->dtypes[1] &&
           call->dtypes[1] == call->dtypes[2];
}

/* The stride of an axis as NumPy passes it to its loop: 0 if there is only one element. */
static npy_intp
step_of(const CiExternCall *call, int k, int axis)
{
    int64_t size = ci_dtype_size(call->dtypes[k]);
    return call->sizes[k][axis] == 1 ? 0 : (npy_intp)(call->strides[k][axis] * size);
}

/* (m?,n),(n,p?)->(m?,p?) for operands of at most two axes. A missing axis has one element. */
static bool
run_matmul(const CxDirect *direct, const CiExternCall *call)
{
    CiDtype dtype = call->dtypes[0];
    int a = call->ranks[0], b = call->ranks[1], axis = 0;

    if (!has_one_dtype(call) || a > 2 || b > 2 || direct->loops[dtype] == NULL)
        return false;
    npy_intp sizes[4] = {1, a == 2 ? call->sizes[0][0] : 1, call->sizes[0][a - 1],
                         b == 2 ? call->sizes[1][1] : 1};
    npy_intp steps[9] = {0,
                         0,
                         0,
                         a == 2 ? step_of(call, 0, 0) : 0,
                         step_of(call, 0, a - 1),
                         step_of(call, 1, 0),
                         b == 2 ? step_of(call, 1, 1) : 0,
                         0,
                         0};
    if (a == 2)
        steps[7] = step_of(call, 2, axis++);
    if (b == 2)
        steps[8] = step_of(call, 2, axis);
    char *args[3] = {call->operands[0], call->operands[1], call->result};
    direct->loops[dtype](args, sizes, steps, direct->loop_data[dtype]);
    return true;
}

static bool
call_matmul(const CxDirect *direct, const CiExternCall *call)
{
    ci_float_flags_clear();
    return run_matmul(direct, call) && ci_float_flags_read() == 0;
}

/* Two vectors; the result has rank 0. */
static bool
run_dot(const CxDirect *direct, const CiExternCall *call)
{
    CiDtype dtype = call->dtypes[0];
    npy_intp size = (npy_intp)ci_dtype_size(dtype);

    if (!has_one_dtype(call) || call->ranks[0] != 1 || call->ranks[1] != 1 ||
        direct->dots[dtype] == NULL)
        return false;
    /* NumPy multiplies single elements directly, and copies operands with negative strides. */
    if (call->sizes[0][0] < 2 || call->strides[0][0] <= 0 || call->strides[1][0] <= 0)
        return false;
    ci_float_flags_clear();
    direct->dots[dtype](call->operands[0], call->strides[0][0] * size, call->operands[1],
                        call->strides[1][0] * size, call->result, call->sizes[0][0], NULL);
    return ci_float_flags_read() == 0;
}

void
cx_direct_loops(CxState *state, CxDirect *direct, PyObject *of)
{
    const PyUFuncObject *ufunc = (PyUFuncObject *)of;

    for (int d = 0; d < CI_DTYPE_COUNT; d++) {
        if (ci_dtype_char((CiDtype)d) == 0) /* a dtype of another package takes NumPy's way */
            continue;
        char number = (char)cx_descr(state, (CiDtype)d)->type_num;
        for (int k = ufunc->ntypes - 1; k >= 0; k--) {
            const char *types = ufunc->types + (ptrdiff_t)k * ufunc->nargs;
            if (types[0] == number && types[1] == number && types[2] == number) {
                direct->loops[d] = ufunc->functions[k];
                direct->loop_data[d] = ufunc->data != NULL ? (void *)ufunc->data[k] : NULL;
            }
        }
    }
}

void
cx_direct_init(CxState *state, CxDirect *direct, const char *name)
{
    *direct = (CxDirect){.run = NULL};
    if (strcmp(name, "matmul") == 0) {
        cx_direct_loops(state, direct, state->ufuncs[CI_OP_matmul]);
        direct->run = call_matmul;
        direct->run_anywhere = run_matmul;
    } else if (strcmp(name, "dot") == 0 || strcmp(name, "inner") == 0) {
        for (int d = 0; d < CI_DTYPE_COUNT; d++)
            if (ci_dtype_char((CiDtype)d) != 0)
                direct->dots[d] = PyDataType_GetArrFuncs(cx_descr(state, (CiDtype)d))->dotfunc;
        direct->run = run_dot;
    } else {
        cx_direct_draw_init(state, direct, name);
    }
}
