/* Scalar operations where CUDA C++ is not C: signed arithmetic, mathematics, complex numbers. */
#include "device/cuda/emit_cuda.h"

void
ci_cuda_emit_math(CiEmitter *base, CiText *out, const CiScalar *op, const char *const *names)
{
    bool is_half = op->dtype == CI_DTYPE_f16;
    if (is_half)
        ci_text_add(out, "%s(", ci_emit_use(base, "round_half", CI_DTYPE_f32));
    ci_text_add(out, "%s%s(%s", ci_emit_math_name(op->op), op->dtype == CI_DTYPE_f64 ? "" : "f",
                names[0]);
    ci_text_add(out, op->nargs > 1 ? ", %s)" : ")", names[1]);
    ci_text_add(out, is_half ? ")" : "");
}

/* Signed arithmetic wraps; in CUDA C++ overflow is undefined, so it is done without a sign. */
bool
ci_cuda_emit_wrapping(CiText *out, CiOp op, CiDtype dtype, const char *const *names)
{
    if (dtype != CI_DTYPE_i32 && dtype != CI_DTYPE_i64)
        return false;
    const char *type = ci_emit_type(dtype), *bits = dtype == CI_DTYPE_i32 ? "uint32_t" : "uint64_t";
    const char *sign = op == CI_OP_add ? "+" : op == CI_OP_subtract ? "-" : "*";
    switch (op) {
    case CI_OP_add:
    case CI_OP_subtract:
    case CI_OP_multiply:
    case CI_OP_square:
        ci_text_add(out, "(%s)((%s)%s %s (%s)%s)", type, bits, names[0], sign, bits,
                    op == CI_OP_square ? names[0] : names[1]);
        return true;
    case CI_OP_negative:
        ci_text_add(out, "(%s)(0 - (%s)%s)", type, bits, names[0]);
        return true;
    case CI_OP_absolute:
        ci_text_add(out, "%s < 0 ? (%s)(0 - (%s)%s) : %s", names[0], type, bits, names[0],
                    names[0]);
        return true;
    default:
        return false;
    }
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
