/* Reductions of a whole contiguous array by a ufunc without an identity (minimum, maximum, fmin, fmax). NumPy makes one
 * axis of all, copies the first element into the result, and calls its inner loop once for the others. The same call
 * gives the same bits: which zero, and which NaN. */
#include "program/direct.h"

#include "base/float_flags.h"

/* True if the elements lie one after another in the order of the axes or in the opposite one. */
static bool
is_contiguous(const CiExternCall *call)
{
    int rank = call->ranks[0];
    int64_t rows = 1, columns = 1;
    bool is_c = true, is_fortran = true;

    for (int k = 0; k < rank; k++) {
        int back = rank - 1 - k;
        is_c &= call->sizes[0][back] == 1 || call->strides[0][back] == rows;
        is_fortran &= call->sizes[0][k] == 1 || call->strides[0][k] == columns;
        rows *= call->sizes[0][back];
        columns *= call->sizes[0][k];
    }
    return is_c || is_fortran;
}

static bool
run_reduce(const CxDirect *direct, const CiExternCall *call)
{
    CiDtype dtype = call->dtypes[0];
    npy_intp size = (npy_intp)ci_dtype_size(dtype), count = (npy_intp)ci_extern_count(call, 0) - 1;
    npy_intp steps[3] = {0, size, 0};

    if (call->dtypes[1] != dtype || direct->loops[dtype] == NULL || count < 0 ||
        ci_extern_count(call, 1) != 1 || !is_contiguous(call))
        return false;
    char *args[3] = {call->result, (char *)call->operands[0] + size, call->result};
    memcpy(call->result, call->operands[0], (size_t)size);
    if (count > 0)
        direct->loops[dtype](args, &count, steps, direct->loop_data[dtype]);
    return true;
}

static bool
call_reduce(const CxDirect *direct, const CiExternCall *call)
{
    ci_float_flags_clear();
    return run_reduce(direct, call) && ci_float_flags_read() == 0;
}

void
cx_direct_reduce_init(CxState *state, CxDirect *direct, const char *name, const char *key)
{
    static const char *const names[] = {"ufunc_minimum", "ufunc_maximum", "ufunc_fmin", "ufunc_fmax"};
    static const CiOp ops[] = {CI_OP_minimum, CI_OP_maximum, CI_OP_fmin, CI_OP_fmax};

    if (strncmp(key, "reduce (", 8) != 0 || strstr(key, ") None {} 1 ") == NULL)
        return;
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++) {
        if (strcmp(name, names[k]) != 0)
            continue;
        cx_direct_loops(state, direct, state->ufuncs[ops[k]]);
        direct->run = call_reduce;
        direct->run_anywhere = run_reduce;
    }
}
