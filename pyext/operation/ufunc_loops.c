/* The inner loops of NumPy's ufuncs, for programs to call. They are looked up once, when the module
 * is loaded: a loop that somebody puts in another's place later is not NumPy's. One that has been
 * put there before is what NumPy runs: it is called for functions, and a ufunc that the core has no
 * loop of is a library call. */
#include "operation/ufunc.h"

#include "base/os.h"
#include "graph/size.h"
#include "operation/traced.h"

#define NO_IMPORT_UFUNC
#include <numpy/ufuncobject.h>

/* The loop of operands of one type; false where there is none. */
static bool
find_loop(const PyUFuncObject *ufunc, int operand, int result, CiUfuncLoop *loop)
{
    for (int k = 0; k < ufunc->ntypes; k++) {
        const char *types = ufunc->types + k * ufunc->nargs;
        bool is_it = true;
        for (int a = 0; a < ufunc->nargs; a++)
            is_it &= types[a] == (a < ufunc->nin ? operand : result);
        if (is_it && ufunc->functions[k] != NULL) {
            *loop = (CiUfuncLoop){ufunc->functions[k], ufunc->data ? ufunc->data[k] : NULL};
            return true;
        }
    }
    return false;
}

static void
find_loops(CxState *state, CiOp op, PyObject *ufunc)
{
    for (int dtype = 0; dtype < CI_DTYPE_COUNT; dtype++) {
        PyObject *operand = state->descrs[dtype];
        PyObject *result = state->descrs[ci_op_result(op, (CiDtype)dtype)];
        CiUfuncLoop *loop = &state->ufunc_loops[ci_op_ufunc_loop(op, (CiDtype)dtype)];
        if (operand != NULL && result != NULL)
            find_loop((const PyUFuncObject *)ufunc, ((PyArray_Descr *)operand)->type_num,
                      ((PyArray_Descr *)result)->type_num, loop);
    }
}

/* Looks values up where one float16 is the operand. Another library's loop may have effects. */
static void
open_table(CxState *state, CiOp op, bool is_replaced)
{
    int number = ci_op_ufunc_loop(op, CI_DTYPE_f16);
    CiUfuncLoop *loop = &state->ufunc_loops[number];

    if (ci_op_arity(op) == 1 && loop->loop != NULL && !is_replaced)
        *loop = ci_ufunc_table_open(&state->ufunc_tables[number / CI_DTYPE_COUNT], *loop);
}

/* ---- whose loops they are ---- */

static bool
has_others_loop(const PyUFuncObject *ufunc, CiAddresses numpys)
{
    for (int k = 0; k < ufunc->ntypes; k++) {
        uintptr_t loop = (uintptr_t)ufunc->functions[k];
        if (loop != 0 && (loop < numpys.begin || loop >= numpys.end))
            return true;
    }
    return false;
}

static void
find_replaced(CxState *state)
{
    CiAddresses numpys = ci_os_library((void (*)(void))(uintptr_t)PyArray_API[0]);

    for (int k = 0; numpys.end != 0 && k < CX_UFUNC_COUNT; k++)
        if (state->ufuncs[k] != NULL)
            state->is_replaced[k] =
                has_others_loop((const PyUFuncObject *)state->ufuncs[k], numpys);
}

/* ---- whose functions are faster ---- */

typedef struct SlowRow {
    CiOp op;
    const char *types[2]; /* with NumPy's vector library, and without */
} SlowRow;

static const SlowRow slow_rows[] = {
#define SLOW(op, types, types_without) {CI_OP_##op, {types, types_without}},
#include "operation/slow.def"
};

/* Does NumPy run the loops of its vector library here? -1: an exception. */
static int
has_vector_library(void)
{
    PyObject *module = PyImport_ImportModule("numpy._core._multiarray_umath");
    PyObject *features = module ? PyObject_GetAttrString(module, "__cpu_features__") : NULL;
    static const char *const names[] = {"X86_V4", "AVX512_SKX"}; /* of NumPy 2.4, and before */
    int result = features == NULL ? -1 : 0;

    for (int k = 0; k < 2 && result == 0; k++) {
        PyObject *value = PyMapping_GetItemString(features, names[k]);
        result = value ? PyObject_IsTrue(value) : 0;
        if (value == NULL)
            PyErr_Clear();
        Py_XDECREF(value);
    }
    Py_XDECREF(features);
    Py_XDECREF(module);
    return result;
}

static bool
is_slow(const CxState *state, CiOp op, CiDtype dtype)
{
    const PyArray_Descr *descr = (const PyArray_Descr *)state->descrs[dtype];

    for (size_t k = 0; k < sizeof slow_rows / sizeof *slow_rows; k++)
        if (slow_rows[k].op == op)
            return strchr(slow_rows[k].types[!state->has_vector_library], descr->type) != NULL;
    return false;
}

CiOp
cx_op_by_numpy(const CxTracer *t, CiOp op, CiDtype dtype)
{
    CiOp numpys = ci_op_by_numpy(op);
    bool is_exact = strcmp(t->options.numerics, "exact") == 0;
    bool is_replaced = t->state->is_replaced[op];
    bool is_asked = is_replaced || ci_options_have_numpys_order(&t->options);

    if (numpys == CI_OP_none || !is_asked ||
        (ci_backend_has_memory(t->backend) && t->backend->compiler->has_own_order) ||
        ci_op_why_not(numpys, dtype) ||
        (!is_exact && !is_replaced && is_slow(t->state, op, dtype)) ||
        t->state->ufunc_loops[ci_op_ufunc_loop(numpys, dtype)].loop == NULL)
        return CI_OP_none;
    return numpys;
}

PyObject *
cx_own_functions(const CxState *state)
{
    PyObject *list = PyList_New(0);
    for (size_t k = 0; list != NULL && k < sizeof slow_rows / sizeof *slow_rows; k++) {
        const char *types = slow_rows[k].types[!state->has_vector_library];
        PyObject *row = Py_BuildValue("(ss)", ci_op_name(slow_rows[k].op), types);
        if (row == NULL || (*types && PyList_Append(list, row) < 0))
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

/* ---- layouts ---- */

static int
goes_backwards(CxTracer *t, const CxTraced *x)
{
    for (int k = 0; x != NULL && k < cx_rank(x); k++) {
        int is_forward = cx_size_decide(t, CI_REL_le, t->zero, cx_strides(x)[k]);
        if (is_forward != 1)
            return is_forward < 0 ? -1 : 1;
    }
    return 0;
}

/* Its vector loops of float16, and those that write complex numbers, are for neighbours alone. */
static int
has_gaps(CxTraced *x, CiClass of)
{
    if (x == NULL || ci_dtype_class(cx_dtype(x)) != of ||
        (of == CI_CLASS_float && cx_dtype(x) != CI_DTYPE_f16))
        return 0;
    int is_dense = cx_has_dense_steps(x);
    return is_dense < 0 ? -1 : !is_dense;
}

int
cx_ufunc_lies_otherwise(CxTracer *t, const CxArgs *args)
{
    int result = goes_backwards(t, args->out);
    for (int k = 0; k < args->nargs && result == 0; k++)
        result = goes_backwards(t, args->args[k].traced);
    if (result == 0 && args->nargs == 1)
        result = has_gaps(args->out, CI_CLASS_complex);
    if (result == 0 && args->nargs == 1)
        result = has_gaps(args->out, CI_CLASS_float);
    return result == 0 && args->nargs == 1 ? has_gaps(args->args[0].traced, CI_CLASS_float)
                                           : result;
}

/* ---- all of it ---- */

int
cx_ufunc_loops_init(CxState *state)
{
    int has_library = has_vector_library();
    if (has_library < 0)
        return -1;
    state->has_vector_library = has_library;
    find_replaced(state);
    for (int op = 0; op < CI_OP_COUNT; op++) {
        CiOp by_numpy = ci_op_by_numpy((CiOp)op);
        if (by_numpy != CI_OP_none && state->ufuncs[op] != NULL) {
            find_loops(state, by_numpy, state->ufuncs[op]);
            open_table(state, by_numpy, state->is_replaced[op]);
        }
    }
    state->runtime.ufuncs = state->ufunc_loops;
    return 0;
}
