/* Writes of values into views, and products by library calls. */
#include "state/array.h"
#include "value/build.h"
#include "value/index.h"

/* True if the write would store the same elements back, as `A[i] += v` does with its view. */
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

bool
cx_loses_imaginary(CiDtype from, CiDtype to)
{
    return ci_dtype_class(from) == CI_CLASS_complex && ci_dtype_class(to) != CI_CLASS_complex;
}

static int
write_real(CxTraced *target, PyObject *value)
{
    PyObject *real = cx_traced_materialise(target),
             *real_value = real ? cx_materialise_tree(value) : NULL;
    bool fails = real_value == NULL || cx_storage_keep(target->storage) < 0;
    int result = fails ? -1 : PyObject_SetItem(real, Py_Ellipsis, real_value);
    Py_XDECREF(real);
    Py_XDECREF(real_value);
    return result;
}

/* NumPy broadcasts, but one of the sizes is 1 in this call only. */
#define BY_CHANCE (-2)

/* The number of leading axes of source that are dropped to fit target; raises NumPy's exception
 * if it does not fit. */
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
    bool copies =
        from != NULL && PyArray_CopyInto((PyArrayObject *)into, (PyArrayObject *)from) == 0;
    Py_XDECREF(into);
    Py_XDECREF(from);
    return copies ? BY_CHANCE : -1;
}

/* 1: the number must become a traced value, because it differs from call to call. Raises now if
 * NumPy would refuse it. */
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
    if (skip == BY_CHANCE && cx_tracer_break(target->tracer, "a size that happens to be 1") == 0)
        return write_real(target, (PyObject *)value);
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

/* Numbers, alone or in a list, must be in range; arrays are cast. */
static int
elements_fit(const CxTraced *target, PyObject *value, CxTraced *lifted)
{
    bool is_array = cx_is_traced(value) ? cx_kind(lifted) == CI_KIND_array
                                        : !PyList_Check(value) && !PyTuple_Check(value);
    return is_array ? 1 : cx_numbers_fit(lifted, cx_dtype(target));
}

int
cx_assign_value(CxTraced *target, PyObject *value, const char *readonly_message)
{
    CxTracer *tracer = target->tracer;
    bool is_strong, is_known = false;

    if (cx_is_traced(value) && cx_is_same_view(target, (CxTraced *)value))
        return cx_check_writable(target, readonly_message);
    int status = cx_write_prepare(target, readonly_message);
    if (status != 0)
        return status < 0 ? -1 : write_real(target, value);
    if (!cx_is_traced(value) && cx_code_of_number(value, &is_strong) >= 0) {
        status = assign_number(target, value);
        if (status <= 0)
            return status;
        is_known = true;
    }
    CxTraced *lifted = cx_lifted(tracer, value);
    if (lifted == NULL && PyErr_ExceptionMatches(cx_exception(tracer->state, "Unsupported"))) {
        PyErr_Clear();
        return cx_tracer_break(tracer, "a value of type '%s' written to an array",
                               Py_TYPE(value)->tp_name) < 0
                   ? -1
                   : write_real(target, value);
    }
    if (lifted == NULL)
        return -1;
    bool loses = cx_loses_imaginary(cx_dtype(lifted), cx_dtype(target));
    int fits = loses ? 0 : is_known ? 1 : elements_fit(target, value, lifted);
    if (fits == 0) /* NumPy warns or raises */
        status = cx_tracer_break(tracer, "a %s written to an array that may not hold it",
                                 loses ? "complex value" : "number") < 0
                     ? -1
                     : write_real(target, value);
    else
        status = fits < 0 ? -1 : assign_traced(target, lifted);
    Py_DECREF(lifted);
    return status;
}
