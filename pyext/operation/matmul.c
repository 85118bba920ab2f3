/* Matrix products with NumPy's shapes. They are library calls of the graph or, if numerics
 * allows another order of addition and this is faster, nodes that become kernels. On a device with
 * its own order of sums, a product with a vector is a reduction, which reads the matrix once. */
#include "analysis/choices.h"
#include "operation/traced.h"
#include "operation/ufunc.h"
#include "program/program.h"
#include "value/build.h"
#include "value/index.h"


/* Computes the shape of a @ b; false if NumPy refuses it, or with an exception. */
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

/* True if the product can be stored directly: NumPy neither casts nor broadcasts it. */
bool
cx_matmul_fits(const CxTraced *product, const CxTraced *out)
{
    return cx_rank(product) == cx_rank(out) && cx_dtype(product) == cx_dtype(out) &&
           cx_sizes_equal(out->tracer, cx_rank(out), cx_sizes(product), cx_sizes(out)) == 1;
}

/* The order of BLAS's additions depends on strides, and an operand of a library call has another
 * layout of the parts of complex numbers. */
static PyObject *
real_matmul(CxTracer *tracer, PyObject *const *both)
{
    CxState *state = tracer->state;
    PyObject *args = PyTuple_Pack(2, both[0], both[1]), *result = NULL;
    if (args != NULL)
        result = cx_ufunc_fallback(tracer, state->ufuncs[CI_OP_matmul], state->str___call__, args,
                                   NULL, "steps that decide the order of a sum");
    Py_XDECREF(args);
    return result;
}

/* ---- cinductor's products ---- */

/* True if the second-to-last axis is contiguous and the last one is not (Fortran order). */
static bool
lies_across(CxTraced *x)
{
    int rank = cx_rank(x);
    int64_t sizes[CI_MAX_RANK], strides[CI_MAX_RANK];

    cx_size_sample_layout(x, sizes, strides);
    return strides[rank - 1] != 1 && strides[rank - 2] == 1;
}

/* True if such products are faster than the library's; -1 with an exception. */
static int
are_faster(CxTracer *t, CxTraced *const *operands, int rank, const CiExpr *const *sizes)
{
    int64_t values[CI_MAX_RANK + 1], count = 1;
    const CiExpr *steps = cx_sizes(operands[0])[cx_rank(operands[0]) - 1];
    PyObject *module = PyImport_ImportModule("cinductor.builds.matmul_tuning"), *answer = NULL;

    cx_size_samples(t, rank, sizes, values);
    cx_size_samples(t, 1, &steps, &values[rank]);
    for (int k = 0; k < rank - 2; k++)
        count *= values[k];
    if (module != NULL)
        answer = PyObject_CallMethod(module, "are_faster", "sLLLLii",
                                     ci_dtype_name(cx_dtype(operands[0])), (long long)count,
                                     (long long)values[rank - 2], (long long)values[rank],
                                     (long long)values[rank - 1], (int)lies_across(operands[0]),
                                     (int)lies_across(operands[1]));
    int result = answer == NULL ? -1 : PyObject_IsTrue(answer);
    Py_XDECREF(module);
    Py_XDECREF(answer);
    return result;
}

/* True if kernels of the device multiply tiles of such narrow floats. */
static bool
has_tensor_product(const CxTracer *t, CiDtype dtype)
{
    return ci_dtype_size(dtype) == 2 && (ci_backend_machine(t->backend, &t->options, false).tensor_dtypes & CI_DTYPE_BIT(dtype));
}

/* True if the library's call takes longer than the product: cinductor's kernel is a launch. */
static bool
is_small(CxTracer *t, CxTraced *const *operands, int rank, const CiExpr *const *sizes)
{
    const CiExpr *steps = cx_sizes(operands[0])[cx_rank(operands[0]) - 1];
    int64_t values[CI_MAX_RANK + 1];
    double count = 1;
    cx_size_samples(t, rank, sizes, values);
    cx_size_samples(t, 1, &steps, &values[rank]);
    for (int k = 0; k <= rank; k++)
        count *= (double)values[k];
    CiMachine machine = ci_backend_machine(t->backend, &t->options, false);
    return values[rank] <= ci_choice(&machine, CI_CHOICE_tensor_steps) && count <= (double)ci_choice(&machine, CI_CHOICE_tensor_work);
}

/* True if a kernel with its own order is used, which numerics must allow. */
static int
takes_product(CxTracer *t, CxTraced *const *operands, CiDtype dtype, int rank,
              const CiExpr *const *sizes)
{
    const char *numerics = t->options.numerics, *templates = t->options.templates;
    int ra = cx_rank(operands[0]), rb = cx_rank(operands[1]);
    bool is_narrow = has_tensor_product(t, dtype), is_free = !strcmp(numerics, "close") || !strcmp(numerics, "fast");

    if (!(is_free || is_narrow) || !strcmp(templates, "never") ||
        (dtype != CI_DTYPE_f32 && dtype != CI_DTYPE_f64 && !is_narrow) || ra < 2 || rb < 2 ||
        cx_sizes(operands[0])[ra - 1] != cx_sizes(operands[1])[rb - 2] ||
        sizes[rank - 1] == t->one || sizes[rank - 2] == t->one)
        return 0;
    if (!strcmp(templates, "always"))
        return 1;
    if (is_narrow)
        return is_small(t, operands, rank, sizes);
    return !strcmp(t->backend->compiler->name, "c") && are_faster(t, operands, rank, sizes);
}

static bool
is_reduction(const CxTracer *t, const CxTraced *a, const CxTraced *b, CiDtype dtype)
{
    return (cx_rank(a) == 1 || cx_rank(b) == 1) && (dtype == CI_DTYPE_f32 || dtype == CI_DTYPE_f64) &&
           ci_backend_has_memory(t->backend) && ci_backend_has_own_order(t->backend);
}

/* (a * b).sum(-1), or (a[:, None] * b).sum(-2) for a vector a and a matrix b. */
static PyObject *
sum_products(CxTraced *a, CxTraced *b)
{
    bool is_row = cx_rank(a) == 1 && cx_rank(b) > 1;
    PyObject *all = PySlice_New(NULL, NULL, NULL), *index = NULL, *left = NULL, *products = NULL,
             *result = NULL;

    if (all != NULL)
        index = PyTuple_Pack(2, all, Py_None);
    if (index != NULL)
        left = is_row ? PyObject_GetItem((PyObject *)a, index) : Py_NewRef((PyObject *)a);
    if (left != NULL)
        products = PyNumber_Multiply(left, (PyObject *)b);
    if (products != NULL)
        result = PyObject_CallMethod(products, "sum", "i", is_row ? -2 : -1);
    Py_XDECREF(all);
    Py_XDECREF(index);
    Py_XDECREF(left);
    Py_XDECREF(products);
    return result;
}

/* Sums of products of narrow floats are floats, and are rounded once. */
static CiNode *
build_product(CxTracer *t, CxTraced *const *operands, CiDtype dtype, int rank, const CiExpr *const *sizes)
{
    CxTraced *wide[3] = {NULL, NULL, NULL};
    CiNode *node = NULL;
    if (ci_dtype_size(dtype) != 2)
        return cx_build_product(t, operands, rank, sizes);
    for (int k = 0; k < 2; k++) {
        node = cx_build_cast(t, operands[k], CI_DTYPE_f32, CI_KIND_array);
        wide[k] = node == NULL ? NULL : (CxTraced *)cx_traced_from_node(t, node, CI_KIND_array);
        if (wide[k] == NULL)
            break;
    }
    node = wide[1] == NULL ? NULL : cx_build_product(t, wide, rank, sizes);
    wide[2] = node == NULL ? NULL : (CxTraced *)cx_traced_from_node(t, node, CI_KIND_array);
    node = wide[2] == NULL ? NULL : cx_build_cast(t, wide[2], dtype, CI_KIND_array);
    for (int k = 0; k < 3; k++)
        Py_XDECREF(wide[k]);
    return node;
}

/* The product as a node of the pending graph. */
static CiNode *
build_matmul(CxTracer *t, CxTraced *const *operands, CiDtype dtype, int rank,
             const CiExpr *const *sizes)
{
    CxState *state = t->state;
    int is_internal = takes_product(t, operands, dtype, rank, sizes);

    if (is_internal)
        return is_internal < 0 ? NULL : build_product(t, operands, dtype, rank, sizes);
    const CiExtern *ext =
        cx_extern_find(state, "matmul", "", state->ufuncs[CI_OP_matmul], 0, false, NULL);
    return ext == NULL
               ? NULL
               : cx_build_extern(t, CI_OP_matmul, ext, dtype, 2, operands, rank, sizes, false);
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
    if (cx_is_part(args.args[0].traced) || cx_is_part(args.args[1].traced)) {
        result = real_matmul(tracer, both);
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
    if (is_reduction(tracer, operands[0], operands[1], (CiDtype)r.out[0]))
        result = sum_products(operands[0], operands[1]);
    else
        result = cx_traced_from_node(tracer,
                                     build_matmul(tracer, operands, (CiDtype)r.out[0], rank, sizes),
                                     rank == 0 ? CI_KIND_scalar : CI_KIND_array);
done:
    cx_operands_close(&args);
    Py_XDECREF(operands[0]);
    Py_XDECREF(operands[1]);
    return result;
}
