/* Which is quicker, a program that calls libraries or the function itself.
 *
 * A library call costs the program what its operands, its result and a way through Python cost, and
 * on small arrays that is more than it saves. Nobody can tell beforehand: some calls are timed in
 * both ways, and the best of each decide. Both give the same bits, or nobody is asked: every
 * operation besides the calls is one that rounds exactly. Where sizes vary, a small call says
 * nothing of a large one, so there is none but the calls. Long calls are not tried, for there the
 * program cannot lose much and the function itself may. */
#include "replay/trial.h"

#include "graph/graph.h"

#include "base/os.h"

enum { CALLS = 12, LONG = 200000 };

/* ---- is it worth a trial? ---- */

/* What is done of complex numbers with each part by itself. */
static bool
is_by_parts(CiOp op)
{
    return op == CI_OP_equal || op == CI_OP_not_equal || op == CI_OP_real || op == CI_OP_imag ||
           op == CI_OP_add || op == CI_OP_subtract;
}

static bool
is_exact(const CiNode *node)
{
    CiDtype operand = node->nargs > 0 ? node->args[0]->dtype : node->dtype;
    CiClass class = ci_dtype_class(operand);

    switch (ci_op_kind(node->op)) {
    case CI_OPKIND_math:
    case CI_OPKIND_composite:
    case CI_OPKIND_scan:
        return class != CI_CLASS_float && class != CI_CLASS_complex;
    case CI_OPKIND_reduce:
        return ci_op_is_order_free(node->op, operand);
    case CI_OPKIND_pointwise:
        return class != CI_CLASS_complex || is_by_parts(node->op);
    default:
        return node->nblocks == 0;
    }
}

bool
cx_trial_is_wanted(const CxProgram *program)
{
    if (program == NULL || program->externs == 0 || program->wrapper != NULL ||
        program->backend->allocate != NULL)
        return false;
    const CiBlock *body = program->graph->body;
    for (int k = 0; k < body->nnodes; k++)
        if (!is_exact(body->nodes[k]) ||
            (program->is_symbolic && ci_op_kind(body->nodes[k]->op) == CI_OPKIND_pointwise))
            return false;
    return true;
}

CxTrial
cx_trial_of_piece(const CxProgram *program)
{
    enum { LITTLE = 10000 }; /* elements, whatever its sizes are */
    CxTrial trial = {.is_lost = program == NULL};

    trial.is_wanted = program != NULL && program->wrapper == NULL &&
                      program->backend->allocate == NULL &&
                      (!program->is_symbolic || cx_graph_makes_at_most(program->graph, LITTLE));
    return trial;
}

/* ---- the trial ---- */

static bool
is_over(const CxTrial *trial)
{
    return !trial->is_wanted || trial->is_lost || trial->counts[1] >= CALLS ||
           (trial->counts[0] > 0 && trial->best[0] > 10 * LONG) ||
           (trial->counts[0] >= CALLS && trial->best[0] > LONG);
}

bool
cx_trial_is_numpys(const CxTrial *trial)
{
    return trial->is_lost || (!is_over(trial) && trial->counts[0] >= CALLS);
}

int64_t
cx_trial_begin(const CxTrial *trial)
{
    return is_over(trial) ? 0 : ci_os_time_ns();
}

void
cx_trial_end(CxTrial *trial, bool is_numpy, int64_t began)
{
    if (began == 0)
        return;

    int64_t taken = ci_os_time_ns() - began;
    if (trial->counts[is_numpy] == 0 || taken < trial->best[is_numpy])
        trial->best[is_numpy] = taken;
    trial->counts[is_numpy]++;
    trial->is_lost = trial->counts[1] >= CALLS && trial->best[1] < trial->best[0];
}

bool
cx_trial_is_open(const CxTrial *trial)
{
    return !is_over(trial);
}

PyObject *
cx_trial_text(const CxTrial *trial)
{
    if (!trial->is_lost)
        Py_RETURN_NONE;
    if (!trial->is_wanted)
        return PyUnicode_FromString("there is nothing to compute");
    PyObject *own = PyFloat_FromDouble((double)trial->best[0] * 1e-3),
             *numpys = PyFloat_FromDouble((double)trial->best[1] * 1e-3), *text = NULL;
    if (own != NULL && numpys != NULL)
        text = PyUnicode_FromFormat("it is quicker so: a call took %.6S us "
                                    "compiled, %.6S us in NumPy",
                                    own, numpys);
    Py_XDECREF(own);
    Py_XDECREF(numpys);
    return text;
}
