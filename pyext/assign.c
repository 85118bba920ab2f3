/* Writes of values into views, and library products. */
#include "array.h"
#include "build.h"
#include "size.h"
#include "ufunc.h"

/* The very elements it would write: `A[i] += v` stores its own view back. */
bool
cx_is_same_view(const CxTraced *a, const CxTraced *b)
{
    int rank = cx_rank(a);

    if (a->storage != b->storage || rank != cx_rank(b) || cx_dtype(a) != cx_dtype(b))
        return false;
    const CiExpr *zero = a->tracer->zero;
    if ((a->view ? a->view->offset : zero) != (b->view ? b->view->offset : zero))
        return false;
    for (int k = 0; k < rank; k++) {
        bool has_few = cx_sizes(a)[k]->high <= 1;
        if (cx_sizes(a)[k] != cx_sizes(b)[k] || (!has_few && cx_strides(a)[k] != cx_strides(b)[k]))
            return false;
    }
    return true;
}

static int
write_real(CxTraced *target, PyObject *value)
{
    PyObject *real = cx_traced_concrete(target),
             *real_value = real ? cx_concrete_tree(value) : NULL;
    bool fails = real_value == NULL || cx_storage_keep(target->storage) < 0;
    int result = fails ? -1 : PyObject_SetItem(real, Py_Ellipsis, real_value);
    Py_XDECREF(real);
    Py_XDECREF(real_value);
    return result;
}

/* How many leading axes of source are dropped for its shape to go into target's; raises NumPy's
 * exception when it does not. */
static int
check_shapes(CxTraced *target, CxTraced *source)
{
    CxTracer *t = target->tracer;
    int rank = cx_rank(target), own = cx_rank(source), skip = 0;

    while (own - skip > rank && cx_sizes(source)[skip] == t->one)
        skip++;
    bool fits = own - skip <= rank;
    for (int k = 0; fits && k < own - skip; k++) {
        const CiExpr *size = cx_sizes(source)[skip + k];
        fits = size == t->one ||
               cx_size_join(t, size, cx_sizes(target)[rank - own + skip + k]) != NULL;
    }
    if (fits || PyErr_Occurred())
        return fits ? skip : -1;
    PyObject *into = cx_size_dummy(target), *from = into ? cx_size_dummy(source) : NULL;
    if (from != NULL && PyArray_CopyInto((PyArrayObject *)into, (PyArrayObject *)from) == 0)
        PyErr_SetString(PyExc_ValueError, "could not broadcast input array");
    Py_XDECREF(into);
    Py_XDECREF(from);
    return -1;
}

/* 1: a value of its own is to be made of it, for it differs from call to call. What NumPy refuses
 * it refuses now. */
static int
assign_number(CxTraced *target, PyObject *value)
{
    union {
        char bytes[16];
        double alignment;
    } element = {{0}};
    CiDtype dtype = cx_dtype(target);
    CxOperand operand = {.want = dtype, .kind = CI_KIND_array};

    if (PyArray_Pack(cx_descr(target->tracer->state, dtype), element.bytes, value) < 0)
        return -1;
    if (cx_tracer_varies(target->tracer, value))
        return 1;
    operand.value = ci_const_load(dtype, element.bytes);
    return cx_build_assign(target->tracer, target, &operand);
}

static int
assign_traced(CxTraced *target, CxTraced *value)
{
    CxOperand operand = {.traced = value, .want = cx_dtype(target)};
    CxTraced *stripped = NULL;

    int skip = check_shapes(target, value);
    if (skip < 0)
        return -1;
    if (skip > 0) {
        stripped =
            (CxTraced *)cx_make_reshape(value, cx_rank(value) - skip, cx_sizes(value) + skip);
        if (stripped == NULL)
            return -1;
        operand.traced = stripped;
    }
    CxTraced *fitted = cx_size_fit(operand.traced, cx_rank(target), cx_sizes(target));
    operand.traced = fitted;
    int result = fitted ? cx_build_assign(target->tracer, target, &operand) : -1;
    Py_XDECREF(fitted);
    Py_XDECREF(stripped);
    return result;
}

int
cx_assign_value(CxTraced *target, PyObject *value, const char *readonly_message)
{
    CxTracer *tracer = target->tracer;
    bool is_strong;

    if (cx_is_traced(value) && cx_is_same_view(target, (CxTraced *)value))
        return 0;
    int status = cx_write_prepare(target, readonly_message);
    if (status != 0)
        return status < 0 ? -1 : write_real(target, value);
    if (!cx_is_traced(value) && cx_code_of_number(value, &is_strong) >= 0) {
        status = assign_number(target, value);
        if (status <= 0)
            return status;
    }
    CxTraced *lifted = (CxTraced *)cx_tracer_lift(tracer, value, CI_DTYPE_none, false);
    if (lifted == NULL && PyErr_ExceptionMatches(cx_exception(tracer->state, "Unsupported"))) {
        PyErr_Clear();
        return cx_tracer_break(tracer, "a value of type '%s' written to an array",
                               Py_TYPE(value)->tp_name) < 0
                   ? -1
                   : write_real(target, value);
    }
    if (lifted == NULL)
        return -1;
    bool loses = ci_dtype_class(cx_dtype(lifted)) == CI_CLASS_complex &&
                 ci_dtype_class(cx_dtype(target)) != CI_CLASS_complex;
    if (loses) /* NumPy warns, or raises for a scalar */
        status = cx_tracer_break(tracer, "a complex value written to a real array") < 0
                     ? -1
                     : write_real(target, value);
    else
        status = assign_traced(target, lifted);
    Py_DECREF(lifted);
    return status;
}

/* ---- matmul ---- */

/* The shape of a @ b; false when NumPy refuses it, or with an exception. */
static bool
matmul_shape(CxTraced *a, CxTraced *b, int *rank, const CiExpr **sizes)
{
    CxTracer *t = a->tracer;
    int ra = cx_rank(a), rb = cx_rank(b);
    const CiExpr *const *sa = cx_sizes(a), *const *sb = cx_sizes(b);

    if (ra == 0 || rb == 0 || cx_size_join(t, sa[ra - 1], rb == 1 ? sb[0] : sb[rb - 2]) == NULL)
        return false;
    *rank = 0;
    if (!cx_broadcast_into(t, rank, sizes, ra > 2 ? ra - 2 : 0, sa) ||
        !cx_broadcast_into(t, rank, sizes, rb > 2 ? rb - 2 : 0, sb))
        return false;
    if (ra > 1)
        sizes[(*rank)++] = sa[ra - 2];
    if (rb > 1)
        sizes[(*rank)++] = sb[rb - 1];
    return true;
}

PyObject *
cx_matmul(CxTracer *tracer, PyObject *a, PyObject *b)
{
    CxState *state = tracer->state;
    PyObject *both[2] = {a, b}, *result = NULL;
    CxTraced *operands[2] = {NULL, NULL};
    CxArgs args;
    CxResolved r;
    int codes[2], rank = 0;
    const CiExpr *sizes[CI_MAX_RANK];

    if (cx_operands_open(tracer, CI_OP_matmul, 2, both, &args) < 0)
        goto done;
    if (args.args[0].traced == NULL || args.args[1].traced == NULL ||
        !matmul_shape(args.args[0].traced, args.args[1].traced, &rank, sizes)) {
        if (!PyErr_Occurred())
            cx_ufunc_raise(tracer, CI_OP_matmul, &args, NULL);
        if (!PyErr_Occurred())
            cx_raise_status(state, CI_ERR_SHAPE, "matmul: operands do not fit");
        goto done;
    }
    for (int k = 0; k < 2; k++)
        codes[k] = (int)cx_dtype(args.args[k].traced);
    if (cx_resolve_slow(state, CI_OP_matmul, 2, codes, NULL, &r) < 0)
        goto done;
    for (int k = 0; k < 2; k++) {
        CxTraced *x = args.args[k].traced;
        if ((CiDtype)codes[k] == (CiDtype)r.in[k])
            operands[k] = (CxTraced *)Py_NewRef(x);
        else
            operands[k] = (CxTraced *)cx_traced_from_node(
                tracer, cx_build_cast(tracer, x, (CiDtype)r.in[k], CI_KIND_array), CI_KIND_array);
        if (operands[k] == NULL)
            goto done;
    }
    const CiExtern *ext = cx_extern_find(state, "matmul", "", state->ufuncs[CI_OP_matmul], 0);
    if (ext != NULL)
        result = cx_traced_from_node(
            tracer,
            cx_build_extern(tracer, CI_OP_matmul, ext, (CiDtype)r.out[0], 2, operands, rank, sizes),
            rank == 0 ? CI_KIND_scalar : CI_KIND_array);
done:
    cx_operands_close(&args);
    Py_XDECREF(operands[0]);
    Py_XDECREF(operands[1]);
    return result;
}
