/* Scalar operations where CUDA C++ is not C: signed arithmetic, mathematics, complex numbers. */
#include "device/cuda/emit_cuda.h"

void
ci_cuda_emit_math(CiEmitter *base, CiText *out, const CiScalar *op, const char *const *names)
{
    bool is_narrow = ci_dtype_is_narrow(op->dtype);
    if (is_narrow)
        ci_text_add(out, "%s(", ci_emit_rounding(base, op->dtype));
    ci_text_add(out, "%s%s(%s", ci_op_function(op->op), op->dtype == CI_DTYPE_f64 ? "" : "f",
                names[0]);
    ci_text_add(out, op->nargs > 1 ? ", %s)" : ")", names[1]);
    ci_text_add(out, is_narrow ? ")" : "");
}

/* Signed arithmetic wraps; in CUDA C++ overflow is undefined, so it is done without a sign. Shorter
 * integers are computed as int, where nothing overflows. */
bool
ci_cuda_emit_wrapping(CiEmitter *base, CiText *out, CiOp op, CiDtype dtype,
                      const char *const *names)
{
    const char *text = ci_op_unsigned(op);
    if (!text || ci_dtype_class(dtype) != CI_CLASS_int || ci_dtype_size(dtype) < 4)
        return false;
    ci_emit_expression(base, out, text, dtype, names);
    return true;
}

void
ci_cuda_emit_cast(CiEmitter *base, CiText *out, CiDtype from, CiDtype to, const char *x)
{
    const char *part = ci_emit_type(ci_dtype_real(to));
    if (from == to || ci_dtype_class(to) != CI_CLASS_complex)
        ci_emit_cast(base, out, from, to, x);
    else if (ci_dtype_class(from) == CI_CLASS_complex)
        ci_text_add(out, "%s{(%s)%s.re, (%s)%s.im}", ci_emit_type(to), part, x, part, x);
    else
        ci_text_add(out, "%s{(%s)%s, 0}", ci_emit_type(to), part, x);
}
