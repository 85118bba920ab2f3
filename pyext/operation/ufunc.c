/* Ufuncs: their operations, the dtypes in which NumPy computes them, and calls without keywords.
 *
 * Dtypes come from NumPy (ufunc.resolve_dtypes) and are cached by ufunc and operand codes. If
 * NumPy would refuse a call, the real ufunc is called on arrays of the same shapes without data,
 * so that the exception is NumPy's own. */
#include "operation/ufunc.h"
#include "state/array.h"
#include "value/index.h"
#include "value/python_number.h"

static const char *const special_names[] = {"divmod",  "modf",    "frexp",
                                            "degrees", "radians", "float_power"};

static int
add_ufunc(CxState *state, PyObject *numpy, const char *name, int number, int arity)
{
    int result = -1;
    PyObject *ufunc = PyObject_GetAttrString(numpy, name), *id = NULL, *nin = NULL;

    if (ufunc == NULL) {
        PyErr_Clear(); /* an operation of the core for which NumPy has no ufunc */
        return 0;
    }
    if (!PyObject_TypeCheck(ufunc, (PyTypeObject *)state->ufunc_type)) {
        Py_DECREF(ufunc);
        return 0;
    }
    nin = PyObject_GetAttrString(ufunc, "nin");
    id = PyLong_FromLong(number);
    if (nin == NULL || id == NULL)
        goto done;
    if (arity >= 0 && PyLong_AsLong(nin) != arity) {
        result = 0;
        goto done;
    }
    state->ufuncs[number] = Py_NewRef(ufunc);
    result = PyDict_SetItem(state->ufunc_ids, ufunc, id);
done:
    Py_XDECREF(nin);
    Py_XDECREF(id);
    Py_DECREF(ufunc);
    return result;
}

int
cx_ufuncs_init(CxState *state)
{
    PyObject *numpy = PyImport_ImportModule("numpy");
    int result = -1;

    state->ufunc_ids = PyDict_New();
    state->ufunc_type = numpy ? PyObject_GetAttrString(numpy, "ufunc") : NULL;
    if (state->ufunc_type == NULL || state->ufunc_ids == NULL)
        goto done;
    for (int op = 0; op < CI_OP_COUNT; op++) {
        CiOpKind kind = ci_op_kind((CiOp)op);
        bool is_elementwise =
            kind == CI_OPKIND_pointwise || kind == CI_OPKIND_math || kind == CI_OPKIND_composite;
        if ((is_elementwise || op == CI_OP_matmul) &&
            add_ufunc(state, numpy, ci_op_name((CiOp)op), op,
                      is_elementwise ? ci_op_arity((CiOp)op) : 2) < 0)
            goto done;
    }
    state->ufuncs[CI_OP_complex_absolute] = Py_XNewRef(state->ufuncs[CI_OP_absolute]);
    for (int k = CX_UFUNC_divmod; k < CX_UFUNC_COUNT; k++)
        if (add_ufunc(state, numpy, special_names[k - CX_UFUNC_divmod], k, -1) < 0)
            goto done;
    if (cx_ufunc_loops_init(state) < 0)
        goto done;
    result = cx_ufuncs_probe(state);
done:
    Py_XDECREF(numpy);
    return result;
}

int
cx_ufunc_find(CxState *state, PyObject *ufunc)
{
    int failed = 0;
    PyObject *id = cx_dict_find(state->ufunc_ids, ufunc, &failed);
    return failed ? -2 : id == NULL ? -1 : (int)PyLong_AsLong(id);
}

int
cx_ufunc_nout(int ufunc)
{
    return ufunc == CX_UFUNC_divmod || ufunc == CX_UFUNC_modf || ufunc == CX_UFUNC_frexp ? 2 : 1;
}

/* ---- dtypes ---- */

static PyObject *
code_object(CxState *state, int code)
{
    switch (code) {
    case CX_WEAK_int:
        return (PyObject *)&PyLong_Type;
    case CX_WEAK_float:
        return (PyObject *)&PyFloat_Type;
    case CX_WEAK_complex:
        return (PyObject *)&PyComplex_Type;
    default:
        return (PyObject *)cx_descr(state, (CiDtype)code);
    }
}

/* Asks NumPy. signature and casting may be NULL. */
int
cx_resolve_slow(CxState *state, int ufunc, int nargs, const int *codes, PyObject *kwargs,
                CxResolved *out)
{
    int nout = cx_ufunc_nout(ufunc), result = -1;
    PyObject *dtypes = PyTuple_New(nargs + nout), *method = NULL, *args = NULL, *answer = NULL;

    if (dtypes == NULL)
        return -1;
    for (int k = 0; k < nargs + nout; k++)
        PyTuple_SET_ITEM(dtypes, k, Py_NewRef(k < nargs ? code_object(state, codes[k]) : Py_None));
    method = PyObject_GetAttr(state->ufuncs[ufunc], state->str_resolve_dtypes);
    args = PyTuple_Pack(1, dtypes);
    if (method != NULL && args != NULL)
        answer = PyObject_Call(method, args, kwargs);
    if (answer != NULL) {
        for (int k = 0; k < nargs + nout; k++) {
            PyArray_Descr *descr = (PyArray_Descr *)PyTuple_GET_ITEM(answer, k);
            if (k < nargs)
                out->in[k] = (int8_t)cx_dtype_in_loop(descr);
            else
                out->out[k - nargs] = (int8_t)cx_dtype_of_descr(descr);
        }
        out->is_known = true;
        result = 0;
    }
    Py_XDECREF(answer);
    Py_XDECREF(args);
    Py_XDECREF(method);
    Py_DECREF(dtypes);
    return result;
}

static int
arg_rank(const CxArg *a)
{
    return a->traced != NULL ? cx_rank(a->traced) : 0;
}

/* Broadcasts a shape into sizes, from the right; false if they do not fit. */
bool
cx_broadcast_into(CxTracer *tracer, int *rank, const CiExpr **sizes, int more,
                  const CiExpr *const *more_sizes)
{
    if (more > *rank) {
        memmove(sizes + more - *rank, sizes, sizeof *sizes * (size_t)*rank);
        for (int k = 0; k < more - *rank; k++)
            sizes[k] = tracer->one;
        *rank = more;
    }
    for (int k = 0; k < more; k++) {
        const CiExpr **mine = &sizes[*rank - more + k];
        if (*mine == tracer->one)
            *mine = more_sizes[k];
        else if (more_sizes[k] != tracer->one &&
                 (*mine = cx_size_join(tracer, *mine, more_sizes[k])) == NULL)
            return false;
    }
    return true;
}

bool
cx_args_broadcast(CxTracer *tracer, CxArgs *args)
{
    args->rank = 0;
    for (int k = 0; k < args->nargs; k++)
        if (args->args[k].traced != NULL &&
            !cx_broadcast_into(tracer, &args->rank, args->sizes, arg_rank(&args->args[k]),
                               cx_sizes(args->args[k].traced)))
            return false;
    for (int k = 0; k < args->nargs; k++) {
        CxTraced *x = args->args[k].traced;
        if (x == NULL || arg_rank(&args->args[k]) == 0)
            continue;
        CxTraced *fitted = cx_size_fit(x, args->rank, args->sizes);
        if (fitted == NULL)
            return false;
        Py_SETREF(args->args[k].traced, fitted);
    }
    return true;
}

/* Calls the real ufunc where it should raise. Always returns NULL, without an exception if NumPy
 * accepts the call. */
PyObject *
cx_ufunc_raise(CxTracer *tracer, int ufunc, CxArgs *args, PyObject *kwargs)
{
    PyObject *tuple = PyTuple_New(args->nargs), *result = NULL;
    static const double zeros[2] = {0.0, 0.0};

    for (int k = 0; tuple != NULL && k < args->nargs; k++) {
        CxArg *a = &args->args[k];
        PyObject *o = NULL;
        if (a->traced == NULL)
            o = Py_NewRef(a->number);
        else if (a->traced->view == NULL && a->traced->storage->kind == CI_KIND_python)
            o = a->traced->storage->value
                    ? Py_NewRef(a->traced->storage->value)
                    : cx_scalar_from(tracer->state, cx_dtype(a->traced), CI_KIND_python, &zeros);
        else
            o = cx_size_dummy(a->traced);
        cx_put_item(&tuple, k, o);
    }
    if (tuple != NULL)
        result = PyObject_Call(tracer->state->ufuncs[ufunc], tuple, kwargs);
    Py_XDECREF(tuple);
    Py_XDECREF(result);
    return NULL;
}

static CiOp
part_of_ufunc(int ufunc, int part, CiClass operand)
{
    switch (ufunc) {
    case CI_OP_absolute:
        return operand == CI_CLASS_complex ? CI_OP_complex_absolute : CI_OP_absolute;
    case CX_UFUNC_divmod:
        return part == 0 ? CI_OP_floor_divide : CI_OP_remainder;
    case CX_UFUNC_modf:
        return part == 0 ? CI_OP_modf_fraction : CI_OP_trunc;
    case CX_UFUNC_frexp:
        return part == 0 ? CI_OP_frexp_mantissa : CI_OP_frexp_exponent;
    case CX_UFUNC_degrees:
        return CI_OP_rad2deg;
    case CX_UFUNC_radians:
        return CI_OP_deg2rad;
    case CX_UFUNC_float_power:
        return CI_OP_power;
    default:
        return (CiOp)ufunc;
    }
}

/* Returns NULL, or the reason why no operation of the core computes it. */
static const char *
op_of_ufunc(int ufunc, int part, const CxResolved *r, const CxArgs *args, CiOp *op)
{
    CiClass kind = r->in[0] == CI_DTYPE_none ? CI_CLASS_float : ci_dtype_class((CiDtype)r->in[0]);

    for (int k = 0; k < args->nargs; k++)
        if (r->in[k] == CI_DTYPE_none)
            return "a dtype that is not supported";
    if (r->out[part] == CI_DTYPE_none)
        return "a result dtype that is not supported";
    *op = part_of_ufunc(ufunc, part, kind);
    if (*op == CI_OP_exp && kind == CI_CLASS_complex)
        *op = CI_OP_complex_exp;
    if (*op == CI_OP_power) {
        if (kind == CI_CLASS_complex)
            *op = CI_OP_complex_power;
        if (kind == CI_CLASS_int || kind == CI_CLASS_uint)
            *op = CI_OP_int_power;
    }
    CiOpKind op_kind = ci_op_kind(*op);
    if (op_kind == CI_OPKIND_pointwise || op_kind == CI_OPKIND_math)
        return ci_op_why_not(*op, (CiDtype)r->in[0]);
    return NULL;
}

/* NumPy refuses negative exponents of int powers. Only a constant exponent can be tested now. */
static const char *
why_not_int_power(CxArgs *args)
{
    CxArg *e = &args->args[1];
    if (e->traced != NULL)
        return ci_dtype_class(cx_dtype(e->traced)) == CI_CLASS_uint
                   ? NULL
                   : "an integer power whose exponent may be negative";
    PyObject *zero = PyLong_FromLong(0);
    int negative = zero ? PyObject_RichCompareBool(e->number, zero, Py_LT) : 0;
    Py_XDECREF(zero);
    return negative == 1 ? "an integer to a negative power" : NULL;
}

/* The dtype to which NumPy converts a Python int for a loop: a C long for a loop of bools. */
static CiDtype
made_for(CiDtype loop, bool is_int)
{
    return is_int && loop == CI_DTYPE_bool ? CI_DTYPE_i64 : loop;
}

/* Makes a constant for a loop; 1 if NumPy has no such number in its dtype. */
static int
constant(CxTracer *tracer, PyObject *number, CiDtype loop, CxOperand *operand)
{
    CiDtype dtype = made_for(loop, PyLong_Check(number) && !PyBool_Check(number));
    int status = cx_const_of(tracer->state, number, dtype, &operand->value);
    if (status == 0)
        operand->value = ci_const_cast(operand->value, dtype, operand->want);
    return status;
}

/* True if a 64-bit Python int and integers of 64 bits can be compared directly, by value. */
static bool
is_compared_whole(const CxArg *a, const CxArg *other, CiOp op, CiDtype loop)
{
    CiDtype own = cx_dtype(a->traced);
    bool has_integers =
        /* With a bool the other is converted to long. */
        other->code < CI_DTYPE_COUNT && other->code != CI_DTYPE_bool;
    return cx_is_comparison(op) && has_integers && (loop == CI_DTYPE_i64 || loop == CI_DTYPE_u64) &&
           (own == CI_DTYPE_i64 || own == CI_DTYPE_u64);
}

/* Fills the operands. Returns 1 if a number does not fit its loop; *beyond is its index if it is
 * constant. */
static int
fill_operands(CxTracer *tracer, CiOp op, CxArgs *args, const CxResolved *r, CxOperand *operands,
              int *beyond)
{
    *beyond = -1;
    for (int k = 0; k < args->nargs; k++) {
        CxArg *a = &args->args[k];
        CiDtype loop = (CiDtype)r->in[k];
        operands[k] = (CxOperand){.traced = a->traced, .want = loop, .kind = CI_KIND_scalar};
        if (op == CI_OP_ldexp) /* the exponent must be a float here */
            operands[k].want = (CiDtype)r->in[0];
        bool is_python = a->traced != NULL && cx_kind(a->traced) == CI_KIND_python;
        if (a->traced != NULL && !is_python)
            continue;
        PyObject *number = is_python ? a->traced->storage->value : a->number;
        if (is_python && !a->traced->storage->is_specialized) {
            if (is_compared_whole(a, &args->args[!k], op, loop)) {
                operands[k].want = cx_dtype(a->traced);
                continue;
            }
            int fits = cx_python_number_fits(a->traced, made_for(loop, a->code == CX_WEAK_int));
            if (fits <= 0)
                return fits < 0 ? -1 : 1;
            continue; /* for all values */
        }
        int status = constant(tracer, number, loop, &operands[k]);
        if (status > 0)
            *beyond = k;
        if (status != 0)
            return status;
    }
    return 0;
}

/* Decides a comparison of integers with a Python int that their dtype cannot hold: the result is
 * the same for all elements, so the element is compared with itself. Returns true if it was
 * decided. */
static bool
decide_comparison(CiOp *op, const CxArgs *args, int beyond, CxOperand *operands)
{
    const CxArg *n = &args->args[beyond], *x = &args->args[!beyond];
    CiClass class = x->traced != NULL ? ci_dtype_class(cx_dtype(x->traced)) : CI_CLASS_float;
    PyObject *number = n->traced != NULL ? n->traced->storage->value : n->number;
    int overflow = 0;

    if (!cx_is_comparison(*op) || n->code != CX_WEAK_int || x->code == CX_WEAK_int ||
        (class != CI_CLASS_int && class != CI_CLASS_uint))
        return false;
    long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
    bool is_right_greater = (overflow != 0 ? overflow > 0 : value > 0) == (beyond == 1);
    bool tests_less = *op == CI_OP_less || *op == CI_OP_less_equal;
    bool holds = *op == CI_OP_not_equal || (*op != CI_OP_equal && tests_less == is_right_greater);
    *op = holds ? CI_OP_equal : CI_OP_not_equal;
    for (int k = 0; k < 2; k++)
        operands[k] =
            (CxOperand){.traced = x->traced, .want = cx_dtype(x->traced), .kind = CI_KIND_scalar};
    return true;
}

/* True if the product may use an FMA. Products of NumPy scalars by an operator do not, as they are
 * compiled C. */
static bool
is_fused(const CxState *state, CiOp op, CiDtype dtype, bool is_array)
{
    return (op == CI_OP_multiply || op == CI_OP_square) &&
           ci_dtype_class(dtype) == CI_CLASS_complex &&
           state->fuses_complex[is_array][op == CI_OP_square][dtype == CI_DTYPE_c128];
}

/* True if NumPy's loop uses other instructions with other bits for another memory layout. For
 * float16 it has only one loop, unless it has its vector library. */
static bool
hangs_on_layout(const CxState *state, CiOp op, CiDtype dtype)
{
    bool has_loops = dtype != CI_DTYPE_f16 || state->has_vector_library;
    return op == CI_OP_complex_absolute || (ci_op_kind(op) == CI_OPKIND_ufunc && has_loops) ||
           is_fused(state, op, dtype, true);
}

/* The operation that NumPy's own loop computes, or none. Powers of scalars are the C library's. */
static CiOp
find_numpys(const CxTracer *tracer, int ufunc, int part, const CxResolved *r)
{
    CiDtype operand = (CiDtype)r->in[0];
    CiOp op = part_of_ufunc(ufunc, part, ci_dtype_class(operand));
    CiOp numpys = ufunc == CX_UFUNC_float_power ? CI_OP_none : cx_op_by_numpy(tracer, op, operand);

    return numpys == CI_OP_none || ci_op_result(numpys, operand) == (CiDtype)r->out[part]
               ? numpys
               : CI_OP_none;
}

/* Builds result number `part` of the ufunc. 1: not captured, with the reason. */
int
cx_ufunc_node(CxTracer *tracer, int ufunc, int part, CxArgs *args, const CxResolved *r, CiKind kind,
              CiNode **node, const char **reason)
{
    CxOperand operands[3] = {{0}};
    CiOp op = CI_OP_none;
    CiKind computes = kind; /* computed as scalars or as arrays, possibly of rank 0 */
    int nargs = args->nargs;

    for (int k = 0; k < nargs; k++)
        if (args->args[k].traced != NULL && cx_kind(args->args[k].traced) == CI_KIND_array)
            computes = CI_KIND_array;
    *reason = op_of_ufunc(ufunc, part, r, args, &op);
    if (*reason == NULL && op == CI_OP_int_power)
        *reason = why_not_int_power(args);
    CiOp own = op, numpys = find_numpys(tracer, ufunc, part, r);
    if (numpys != CI_OP_none)
        *reason = NULL;
    else if (tracer->state->is_replaced[ufunc])
        *reason = CX_OTHERS_LOOP;
    if (*reason != NULL)
        return 1;
    int beyond, status = fill_operands(tracer, op, args, r, operands, &beyond);
    if (status > 0 && beyond >= 0 && decide_comparison(&op, args, beyond, operands))
        status = 0;
    if (status > 0) /* NumPy raises */
        *reason = "a Python integer that may be out of the dtype's range";
    if (status != 0)
        return status;
    bool is_square = operands[1].traced == NULL && operands[1].value.re == 2.0;
    bool is_number =
        kind != CI_KIND_array && !(is_square && cx_squares_are_products(tracer));
    if (op == CI_OP_power && (is_number || ufunc == CX_UFUNC_float_power))
        op = CI_OP_scalar_power;
    else if (op == CI_OP_power && operands[1].traced == NULL)
        op = cx_short_power(tracer->state, numpys != CI_OP_none ? numpys : op, (CiDtype)r->in[0],
                            operands[1].value.re);
    bool is_power =
        op == CI_OP_power && operands[1].traced != NULL && cx_rank(operands[1].traced) == 0;
    if (op == own && numpys != CI_OP_none)
        op = numpys;
    if (computes == CI_KIND_array && hangs_on_layout(tracer->state, op, (CiDtype)r->in[0])) {
        int lies_otherwise = cx_ufunc_lies_otherwise(tracer, args);
        bool is_of_floats = ci_dtype_class((CiDtype)r->in[0]) == CI_CLASS_float;
        if (lies_otherwise == 0 && op == CI_OP_numpy_power && is_of_floats && operands[1].traced != NULL && !is_power)
            lies_otherwise = cx_ufunc_repeats_exponents(tracer, args);
        if (lies_otherwise > 0)
            *reason = CX_OWN_ROUTINE;
        if (lies_otherwise != 0)
            return lies_otherwise;
    }
    if (is_power && !cx_needs_routine(tracer, op, (CiDtype)r->in[0], kind)) {
        *node = cx_power_by_number(tracer, op, operands);
        return *node == NULL ? -1 : 0;
    }
    if (ci_op_arity(op) < nargs)
        nargs = ci_op_arity(op);
    bool is_array = computes == CI_KIND_array;
    if ((is_array || args->is_called) &&
        is_fused(tracer->state, op, (CiDtype)r->in[0], is_array)) {
        operands[1] = operands[nargs - 1];
        op = CI_OP_complex_multiply;
        nargs = 2;
    }
    if (cx_needs_routine(tracer, op, (CiDtype)r->in[0], computes)) {
        *reason = CX_OWN_ROUTINE;
        return 1;
    }
    CiDtype out = (CiDtype)r->out[part];
    *node = cx_build_pointwise(tracer, op, nargs, operands, out, kind);
    return *node == NULL ? -1 : 0;
}
