/* Scalar operations where CUDA C++ is not C: signed arithmetic, mathematics, complex numbers. */
#include "device/cuda/emit_cuda.h"
#include "target/cuda/print.h"

void
ci_cuda_emit_math(CiEmitter *base, CiText *out, const CiScalar *op, const char *const *names)
{
    bool is_narrow = ci_dtype_is_narrow(op->dtype);
    if (is_narrow)
        ci_text_add(out, "%s(", ci_emit_rounding(base, op->dtype));
    ci_text_add(out, "%s(%s", ci_cuda_function(out->ctx, op->op, op->dtype), names[0]);
    ci_text_add(out, op->nargs > 1 ? ", %s)" : ")", names[1]);
    ci_text_add(out, is_narrow ? ")" : "");
}
