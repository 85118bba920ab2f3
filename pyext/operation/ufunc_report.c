/* How each elementary function gets its bits, and the proof that vectors have NumPy's. */
#include "operation/ufunc.h"

#define CX_PROOF_POINTS (1 << 20) /* compared by a proof; a test compares fewer */

static bool
has_loop(const CxState *state, CiOp op, CiDtype dtype)
{
    CiOp by_numpy = ci_op_by_numpy(op);
    return by_numpy != CI_OP_none && state->descrs[dtype] != NULL &&
           ci_op_why_not(by_numpy, dtype) == NULL &&
           state->ufunc_loops[ci_op_ufunc_loop(by_numpy, dtype)].loop != NULL;
}

static CiUfuncVector *
vector_of(CxState *state, CiOp op, CiDtype dtype)
{
    return &state->ufunc_vectors[ci_op_ufunc_loop(ci_op_by_numpy(op), dtype)];
}

static const char *
way_of(CxState *state, CiOp op, CiDtype dtype, const CiVmathRow *row)
{
    if (state->is_replaced[op])
        return "NumPy's loop";
    if (dtype == CI_DTYPE_f16 && ci_op_arity(op) == 1)
        return "table";
    if (row != NULL)
        return "vectors";
    return cx_ufunc_is_slow(state, op, dtype) ? "own" : "NumPy's loop";
}

/* The source of the algorithm; after a proof also how many operands have been compared. */
static PyObject *
source_of(const CiUfuncVector *vector, const CiVmathRow *row)
{
    int variant;
    int64_t points = row != NULL ? ci_ufunc_decision_read(vector, &variant) : 0;
    if (row == NULL)
        return PyUnicode_FromString("");
    if (points < CX_PROOF_POINTS)
        return PyUnicode_FromString(row->source);
    return PyUnicode_FromFormat("%s; 2^%d operands compared", row->source,
                                63 - __builtin_clzll((unsigned long long)points));
}

PyObject *
cx_functions(CxState *state)
{
    PyObject *list = PyList_New(0);
    for (int k = 0; list != NULL && k < CI_OP_COUNT * CI_DTYPE_COUNT; k++) {
        CiOp op = (CiOp)(k / CI_DTYPE_COUNT);
        CiDtype dtype = (CiDtype)(k % CI_DTYPE_COUNT);
        if (!has_loop(state, op, dtype))
            continue;
        const CiVmathRow *vectors = ci_ufunc_vector_decide(vector_of(state, op, dtype));
        PyObject *row = Py_BuildValue("(sCsN)", ci_op_name(op),
                                      ((PyArray_Descr *)state->descrs[dtype])->type,
                                      way_of(state, op, dtype, vectors),
                                      source_of(vector_of(state, op, dtype), vectors));
        cx_add_item(&list, row);
    }
    return list;
}

/* The vectors of a function by its name; NULL, with a ValueError: there are none. */
static CiUfuncVector *
find_vector(CxState *state, const char *name, int type, const CiVmathRow **row)
{
    for (int k = 0; k < CI_OP_COUNT * CI_DTYPE_COUNT; k++) {
        CiOp op = (CiOp)(k / CI_DTYPE_COUNT);
        CiDtype dtype = (CiDtype)(k % CI_DTYPE_COUNT);
        if (!has_loop(state, op, dtype) || strcmp(ci_op_name(op), name) != 0 ||
            ((PyArray_Descr *)state->descrs[dtype])->type != type)
            continue;
        CiUfuncVector *vector = vector_of(state, op, dtype);
        *row = ci_ufunc_vector_decide(vector);
        if (*row != NULL)
            return vector;
    }
    PyErr_Format(PyExc_ValueError, "no vectors of %s for type %c have NumPy's bits here", name, type);
    return NULL;
}

PyObject *
cx_check_function(PyObject *module, PyObject *args)
{
    const char *name;
    int type;
    unsigned long long first, step;
    long long blocks;
    int64_t found;
    uint64_t example = 0;
    const CiVmathRow *row;

    if (!PyArg_ParseTuple(args, "sCKKL", &name, &type, &first, &step, &blocks))
        return NULL;
    const CiUfuncVector *vector = find_vector(PyModule_GetState(module), name, type, &row);
    if (vector == NULL)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    found = ci_ufunc_vector_check(vector, row, first, step, blocks, &example);
    Py_END_ALLOW_THREADS
    return Py_BuildValue("LK", (long long)found, (unsigned long long)example);
}

/* Keeps what a proof has shown: a function of which operands differ is left to NumPy from now on. */
PyObject *
cx_note_proof(PyObject *module, PyObject *args)
{
    const char *name;
    int type, variant, is_equal;
    long long points;
    const CiVmathRow *row;

    if (!PyArg_ParseTuple(args, "sCLp", &name, &type, &points, &is_equal))
        return NULL;
    const CiUfuncVector *vector = find_vector(PyModule_GetState(module), name, type, &row);
    if (vector == NULL)
        return NULL;
    if (!is_equal || points > ci_ufunc_decision_read(vector, &variant))
        ci_ufunc_decision_write(vector, is_equal ? (int)(row - vector->rows) : -1, points);
    Py_RETURN_NONE;
}
