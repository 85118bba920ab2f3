/* Casts of numbers to another dtype. Where NumPy raises for a value that an integer dtype cannot
 * hold, the number is proved to fit, or the program checks it. */
#include "value/build.h"
#include "value/index.h"
#include "value/tagged.h"

/* The range of an integer dtype, as floats: a float in (below, above) is in range after
 * truncation. For 64 bits, below itself is in range. */
typedef struct Limits {
    int64_t low, high;
    double below, above;
    bool has_below;
} Limits;

static Limits
limits_of(CiDtype dtype)
{
    int bits = 8 * ci_dtype_size(dtype);
    bool is_signed = ci_dtype_class(dtype) == CI_CLASS_int;
    Limits limits = {.has_below = bits == 64 && is_signed};

    limits.high = bits == 64 ? INT64_MAX : ((int64_t)1 << (bits - is_signed)) - 1;
    limits.low = is_signed ? -limits.high - 1 : 0;
    limits.above = ldexp(1.0, bits - is_signed);
    limits.below = is_signed ? -limits.above - !limits.has_below : -1.0;
    return limits;
}

static CxTraced *
compare(CxTraced *x, CiOp op, CiDtype dtype, CiConst limit)
{
    CxTracer *t = x->tracer;
    CiKind kind = cx_kind(x) == CI_KIND_array ? CI_KIND_array : CI_KIND_scalar;
    CxOperand operands[2] = {{.traced = x, .want = dtype},
                             {.value = limit, .want = dtype, .kind = CI_KIND_scalar}};

    return (CxTraced *)cx_traced_from_node(
        t, cx_build_pointwise(t, op, 2, operands, CI_DTYPE_none, kind), kind);
}

/* One bool: true if all elements are true. Steals x. */
static CxTraced *
all_of(CxTraced *x)
{
    int axes[CI_MAX_RANK];

    if (x == NULL || cx_rank(x) == 0)
        return x;
    for (int k = 0; k < cx_rank(x); k++)
        axes[k] = k;
    CiNode *node = cx_build_fold(x->tracer, CI_OP_all, x, cx_rank(x), axes);
    Py_SETREF(x, (CxTraced *)cx_traced_from_node(x->tracer, node, CI_KIND_array));
    return x;
}

/* Checks x against a limit at run time; 1 or -1. */
static int
check(CxTraced *x, CiOp op, CiDtype dtype, CiConst limit)
{
    CxTraced *holds = all_of(compare(x, op, dtype, limit));

    if (holds != NULL)
        (void)cx_build_check(x->tracer, holds, "a number out of a dtype's range");
    Py_XDECREF(holds);
    return PyErr_Occurred() ? -1 : 1;
}

static int
check_float(CxTraced *x, const Limits *limits)
{
    CiOp op = limits->has_below ? CI_OP_greater_equal : CI_OP_greater;
    int status = check(x, op, CI_DTYPE_f64, (CiConst){.re = limits->below});
    return status < 0 ? -1 : check(x, CI_OP_less, CI_DTYPE_f64, (CiConst){.re = limits->above});
}

static int
check_int(CxTraced *x, const Limits *limits, const Limits *own)
{
    CiDtype dtype = cx_dtype(x) == CI_DTYPE_u64 ? CI_DTYPE_u64 : CI_DTYPE_i64;
    int status = 1;

    if (own->low < limits->low)
        status = check(x, CI_OP_greater_equal, dtype, (CiConst){.i = limits->low});
    if (status > 0 && (own->high > limits->high || own->above > limits->above))
        status = check(x, CI_OP_less_equal, dtype, (CiConst){.i = limits->high});
    return status;
}

/* Proves, guards or checks that a size fits. */
static int
size_fits(CxTracer *t, const CiExpr *e, const Limits *limits)
{
    static const char *const why = "a Python int that a narrower dtype holds";

    if (e->low >= limits->low && e->high <= limits->high)
        return 1;
    const CiExpr *low = cx_size_const(t, limits->low), *most = cx_size_const(t, limits->high);
    if (low == NULL || most == NULL)
        return -1;
    int fits = cx_size_require(t, CI_REL_le, low, e, why);
    return fits > 0 ? cx_size_require(t, CI_REL_le, e, most, why) : fits;
}

int
cx_numbers_fit(CxTraced *x, CiDtype want)
{
    CxTracer *t = x->tracer;
    CiClass from = ci_dtype_class(cx_dtype(x)), kind = ci_dtype_class(want);
    bool is_integer = from == CI_CLASS_int || from == CI_CLASS_uint;

    if ((kind != CI_CLASS_int && kind != CI_CLASS_uint) || (!is_integer && from != CI_CLASS_float))
        return 1;
    Limits limits = limits_of(want);
    if (cx_kind(x) == CI_KIND_python && x->storage->expr != NULL)
        return size_fits(t, x->storage->expr, &limits);
    Limits own = is_integer ? limits_of(cx_dtype(x)) : limits;
    if (is_integer && own.low >= limits.low && own.above <= limits.above)
        return 1;
    if (!cx_may_check(t))
        return 0;
    return is_integer ? check_int(x, &limits, &own) : check_float(x, &limits);
}

int
cx_python_number_fits(CxTraced *x, CiDtype want)
{
    /* If a tagged number, which wraps around in NumPy, does not fit, the original function runs. */
    bool may_be = cx_kind(x) == CI_KIND_python || cx_tagged((PyObject *)x) != NULL;
    return may_be ? cx_numbers_fit(x, want) : 1;
}
