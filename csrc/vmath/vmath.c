/* The rows, where the processor has their instructions. */
#include "vmath/vmath.h"

#if defined(__x86_64__) && defined(__GNUC__)

extern const CiVmathRow ci_vmath_float32[], ci_vmath_float64[];

const CiVmathRow *
ci_vmath_find(CiOp op, CiDtype dtype, int *count)
{
    const CiVmathRow *row = ci_dtype_real(dtype) == CI_DTYPE_f64 ? ci_vmath_float64 : ci_vmath_float32;

    *count = 0;
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
        return NULL;
    while (row->op != CI_OP_none && (row->op != op || row->dtype != dtype))
        row++;
    while (row[*count].op == op && row[*count].dtype == dtype && op != CI_OP_none)
        ++*count;
    return *count > 0 ? row : NULL;
}

#else

const CiVmathRow *
ci_vmath_find(CiOp op, CiDtype dtype, int *count)
{
    (void)op, (void)dtype;
    *count = 0;
    return NULL;
}

#endif
