/* Tests how NumPy's loops compute where its versions and builds differ: products and powers. Input are NumPy's ufuncs,
 * output are flags of the state. */
#include "operation/ufunc.h"

/* Computes NumPy's result for one number, alone or in an array, and another operand if there is one. The
 * first call of a ufunc for a number is computed in another way than later ones, so this is the
 * second. */
static int
probe(CxState *state, int ufunc, bool is_array, CiDtype dtype, CiConst value, double other,
      CiConst *result)
{
    npy_intp one = 1;
    PyObject *descr = Py_NewRef(state->descrs[dtype]), *made = NULL;
    PyObject *a = PyArray_Zeros(is_array, &one, (PyArray_Descr *)descr, 0), *b = PyFloat_FromDouble(other);

    if (a != NULL && b != NULL) {
        ci_const_store(dtype, value, PyArray_DATA((PyArrayObject *)a));
        if (!is_array)
            a = PyArray_Return((PyArrayObject *)a);
        PyObject *operands[2] = {a, ufunc == CI_OP_multiply ? a : b};
        for (int k = 0; k < 2 && (k == 0 || made != NULL); k++)
            Py_XSETREF(made, PyObject_Vectorcall(state->ufuncs[ufunc], operands,
                                                 ufunc == CI_OP_square ? 1 : 2, NULL));
    }
    PyObject *array = made ? PyArray_FROM_O(made) : NULL;
    if (array != NULL)
        *result = ci_const_load(dtype, PyArray_DATA((PyArrayObject *)array));
    Py_XDECREF(array);
    Py_XDECREF(a);
    Py_XDECREF(b);
    Py_XDECREF(made);
    return array == NULL ? -1 : 0;
}

/* The product of a complex number of Python, or of NumPy, and another, by the operator. */
static int
multiply_numbers(CxState *state, CiDtype dtype, CiConst a, CiConst b, CiConst *result)
{
    PyObject *numbers[2] = {PyComplex_FromDoubles(a.re, a.im), PyComplex_FromDoubles(b.re, b.im)}, *made = NULL;

    for (int k = 0; k < 2 && dtype != CI_DTYPE_none; k++) {
        PyObject *type = (PyObject *)((PyArray_Descr *)state->descrs[dtype])->typeobj;
        Py_SETREF(numbers[k], numbers[k] ? PyObject_CallOneArg(type, numbers[k]) : NULL);
    }
    if (numbers[0] != NULL && numbers[1] != NULL)
        made = PyNumber_Multiply(numbers[0], numbers[1]);
    Py_complex z = made ? PyComplex_AsCComplex(made) : (Py_complex){0, 0};
    *result = (CiConst){0, z.real, z.imag};
    Py_XDECREF(numbers[0]);
    Py_XDECREF(numbers[1]);
    Py_XDECREF(made);
    return PyErr_Occurred() ? -1 : 0;
}

/* Tests how an operator multiplies complex numbers. An FMA shows in (1 + e + i)^2, and C's rule that an infinite
 * number times another is infinite, in (inf + nan i)(1 + i), which raises no flag. */
static int
probe_products(CxState *state)
{
    static const CiDtype dtypes[] = {CI_DTYPE_none, CI_DTYPE_c64, CI_DTYPE_c128}; /* none: Python's */
    CiConst got;

    state->has_plain_products = true;
    for (int k = 0; k < 3; k++) {
        CiConst small = {0, 1 + (dtypes[k] == CI_DTYPE_c64 ? 0x1p-13 : 0x1p-30), 1.0};
        if (multiply_numbers(state, dtypes[k], small, small, &got) < 0)
            return -1;
        state->has_plain_products &= got.re != (small.re - 1) * (small.re + 1);
    }
    const CiConst infinite = {0, HUGE_VAL, (double)NAN}, one = {0, 1, 1};
    if (multiply_numbers(state, CI_DTYPE_none, infinite, one, &got) < 0)
        return -1;
    state->has_plain_products &= isnan(got.re) && isnan(got.im);
    return 0;
}

/* Tests whether NumPy's loop computes squares if all exponents are 2: general powers differ from some of these
 * products. The first numbers are such for the C library's function. */
static int
probe_squares(CxState *state, CiDtype dtype)
{
    static const double known[] = {0x1.431e66p+0, 0x1.7076a8p+0, 0x1.2710p+0, 0x1.0956a6p+0,
                                   0x1.43cbaa263aad0p+0, 0x1.190ec93059fa2p+0, 0x1.fc058c5a945dcp+0, 0x1.caf19c8f2f57cp+0};
    npy_intp count = 256;
    PyObject *x = PyArray_Zeros(1, &count, (PyArray_Descr *)Py_NewRef(state->descrs[dtype]), 0);
    PyObject *two = PyFloat_FromDouble(2.0), *power = NULL, *square = NULL;
    uint32_t random = 1;

    for (npy_intp k = 0; x != NULL && k < count; k++, random = random * 1664525u + 1013904223u) {
        CiConst value = {0, k < 8 ? known[k] : 1 + (double)random * 0x1p-32, 0.0};
        ci_const_store(dtype, value, PyArray_GETPTR1((PyArrayObject *)x, k));
    }
    if (x != NULL && two != NULL) {
        PyObject *operands[2] = {x, two};
        power = PyObject_Vectorcall(state->ufuncs[CI_OP_power], operands, 2, NULL);
        square = PyObject_Vectorcall(state->ufuncs[CI_OP_square], operands, 1, NULL);
    }
    int result = power == NULL || square == NULL ? -1 : 0;
    if (result == 0)
        state->squares_of_powers &= !memcmp(PyArray_DATA((PyArrayObject *)power), PyArray_DATA((PyArrayObject *)square),
                                            (size_t)PyArray_NBYTES((PyArrayObject *)x));
    Py_XDECREF(x);
    Py_XDECREF(two);
    Py_XDECREF(power);
    Py_XDECREF(square);
    return result;
}

/* Tests how NumPy's loops over complex arrays, and for single numbers, round: some use an FMA where the
 * CPU has one, and powers with one exponent may be roots. Both change bits. */
static int
probe_loops(CxState *state)
{
    CiConst got;

    for (int k = 0; k < 8; k++) {
        CiDtype dtype = k % 2 ? CI_DTYPE_c128 : CI_DTYPE_c64;
        CiConst value = {0, 1 + (k % 2 ? 0x1p-30 : 0x1p-13), 1.0};
        int op = k / 2 % 2 ? CI_OP_square : CI_OP_multiply;
        if (probe(state, op, k >= 4, dtype, value, 0.0, &got) < 0)
            return -1;
        state->fuses_complex[k / 4][k / 2 % 2][k % 2] = got.re == (value.re - 1) * (value.re + 1);
    }
    if (probe(state, CI_OP_power, true, CI_DTYPE_f64, (CiConst){0, -0.0, 0.0}, 0.5, &got) < 0)
        return -1;
    state->roots_of_powers = signbit(got.re);
    state->squares_of_powers = true;
    return probe_squares(state, CI_DTYPE_f32) < 0 ? -1 : probe_squares(state, CI_DTYPE_f64);
}

int
cx_ufuncs_probe(CxState *state)
{
    return probe_loops(state) < 0 ? -1 : probe_products(state);
}
