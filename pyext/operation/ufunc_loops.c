/* The inner loops of NumPy's ufuncs, which programs call. They are looked up once, when the
 * module is loaded; a loop that is replaced later is not used. If a loop had been replaced
 * before, NumPy runs the replacement, and so do programs: they call it for functions, and a
 * ufunc for which the core has no loop becomes a library call. */
#include "operation/ufunc.h"

#include "base/os.h"
#include "device/cpu/level.h"
#include "graph/size.h"
#include "operation/traced.h"

#define NO_IMPORT_UFUNC
#include <numpy/ufuncobject.h>

/* Finds the loop whose operands have one type; false if there is none. */
static bool
find_loop(const PyUFuncObject *ufunc, int operand, int result, CiUfuncLoop *loop)
{
    for (int k = 0; k < ufunc->ntypes; k++) {
        const char *types = ufunc->types + k * ufunc->nargs;
        bool is_it = true;
        for (int a = 0; a < ufunc->nargs; a++)
            is_it &= types[a] == (a < ufunc->nin ? operand : result);
        if (is_it && ufunc->functions[k] != NULL) {
            *loop = (CiUfuncLoop){ufunc->functions[k], ufunc->data ? ufunc->data[k] : NULL,
                                  false};
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

/* Makes the table of a function of one float16. A loop replaced by another library may have
 * effects, so it is called instead. */
static void
open_table(CxState *state, CiOp op, bool is_replaced)
{
    int number = ci_op_ufunc_loop(op, CI_DTYPE_f16);
    CiUfuncLoop *loop = &state->ufunc_loops[number];

    if (ci_op_arity(op) == 1 && loop->loop != NULL && !is_replaced)
        *loop = ci_ufunc_table_open(&state->ufunc_tables[number / CI_DTYPE_COUNT], *loop);
}

/* Runs functions on vectors that have the bits of the loop. */
static void
open_vectors(CxState *state, CiOp op)
{
    for (int dtype = 0; dtype < CI_DTYPE_COUNT; dtype++) {
        int number = ci_op_ufunc_loop(ci_op_by_numpy(op), (CiDtype)dtype);
        CiUfuncLoop *loop = &state->ufunc_loops[number];
        if (loop->loop != NULL && !state->is_replaced[op])
            *loop = ci_ufunc_vector_open(&state->ufunc_vectors[number], op, (CiDtype)dtype, *loop,
                                         &state->ufunc_verdicts);
    }
}

/* ---- loops replaced by other libraries ---- */

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

/* ---- functions for which cinductor's are faster ---- */

typedef struct SlowRow {
    CiOp op;
    const char *types[2]; /* with and without NumPy's vector library */
} SlowRow;

static const SlowRow slow_rows[] = {
#define SLOW(op, types, types_without) {CI_OP_##op, {types, types_without}},
#include "operation/slow.def"
};

/* True if NumPy runs the loops of its vector library on this CPU. -1: an exception. */
static int
has_vector_library(void)
{
    PyObject *module = PyImport_ImportModule("numpy._core._multiarray_umath");
    PyObject *features = module ? PyObject_GetAttrString(module, "__cpu_features__") : NULL;
    static const char *const names[] = {"X86_V4", "AVX512_SKX"}; /* name in NumPy 2.4, and before */
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

bool
cx_ufunc_is_slow(CxState *state, CiOp op, CiDtype dtype)
{
    const PyArray_Descr *descr = (const PyArray_Descr *)state->descrs[dtype];

    int number = ci_op_ufunc_loop(ci_op_by_numpy(op), dtype);
    if (!state->has_vector_routines)
        return false; /* scalar functions are as slow as NumPy's loop */
    for (size_t k = 0; k < sizeof slow_rows / sizeof *slow_rows; k++)
        if (slow_rows[k].op == op)
            return strchr(slow_rows[k].types[!state->has_vector_library], descr->type) != NULL &&
                   ci_ufunc_vector_decide(&state->ufunc_vectors[number]) == NULL;
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
        (ci_backend_has_memory(t->backend) && ci_backend_has_own_order(t->backend)) ||
        ci_op_why_not(numpys, dtype) ||
        (!is_exact && !is_replaced && cx_ufunc_is_slow(t->state, op, dtype)) ||
        t->state->ufunc_loops[ci_op_ufunc_loop(numpys, dtype)].loop == NULL)
        return CI_OP_none;
    return numpys;
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

/* True if memory has gaps. NumPy's vector loops of float16, and those that write complex
 * numbers, need contiguous elements. */
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

static int
is_dense(CxTraced *x)
{
    return x == NULL || cx_rank(x) == 0 ? 1 : cx_has_dense_steps(x);
}

int
cx_ufunc_repeats_exponents(CxTracer *t, const CxArgs *args)
{
    CxTraced *y = args->args[1].traced;
    int missing = args->rank - cx_rank(y), result = 1;
    bool is_repeated = false;

    for (int k = 0; k < args->rank; k++) {
        bool is_one = k < missing || cx_sizes(y)[k - missing] == t->one;
        bool has_step = k < missing || cx_strides(y)[k - missing] != t->zero;
        is_repeated |= args->sizes[k] != t->one && (is_one || !has_step);
    }
    if (!is_repeated)
        return 0;
    const CiExpr *inner = cx_sizes(y)[cx_rank(y) - 1];
    for (int k = 0; k < 2 && result == 1; k++)
        result = is_dense(args->args[k].traced);
    if (result == 1)
        result = is_dense(args->out);
    if (result == 1)
        result = cx_size_decide(t, CI_REL_lt, t->one, inner);
    return result < 0 ? -1 : !result;
}

/* ---- initialisation ---- */

int
cx_ufunc_loops_init(CxState *state)
{
    int has_library = has_vector_library();
    if (has_library < 0)
        return -1;
    state->has_vector_library = has_library;
    state->has_vector_routines = ci_cpu_has_routines(NULL);
    find_replaced(state);
    const CiUfuncLoop numpys = {.loop = ((PyUFuncObject *)state->ufuncs[CI_OP_exp])->functions[0]};
    ci_ufunc_verdicts_open(&state->ufunc_verdicts, &state->runtime.cache, numpys);
    for (int op = 0; op < CI_OP_COUNT; op++) {
        CiOp by_numpy = ci_op_by_numpy((CiOp)op);
        if (by_numpy != CI_OP_none && state->ufuncs[op] != NULL) {
            find_loops(state, by_numpy, state->ufuncs[op]);
            open_vectors(state, (CiOp)op);
            open_table(state, by_numpy, state->is_replaced[op]);
        }
    }
    state->runtime.ufuncs = state->ufunc_loops;
    return 0;
}
