/* Which is quicker, a program that calls libraries or the function itself.
 *
 * A library call costs the program what its operands, its result and a way through Python cost, and
 * on small arrays that is more than it saves. Nobody can tell beforehand: some calls are timed in
 * both ways, and the best of each decide. Both give the same bits, or nobody is asked. Where sizes
 * vary, a small call says nothing of a large one, so there is none but the calls. Long calls are
 * not tried, for there the program cannot lose much and the function itself may. */
#include "replay/trial.h"

#include "graph/graph.h"

#include "base/os.h"

enum { CALLS = 12, LONG = 200000 };

/* ---- is it worth a trial? ---- */

bool
cx_trial_is_wanted(const CxProgram *program)
{
    if (program == NULL || program->externs == 0 || program->wrapper != NULL ||
        ci_backend_has_memory(program->backend))
        return false;
    const CiBlock *body = program->graph->body;
    for (int k = 0; k < body->nnodes; k++)
        if (body->nodes[k]->nblocks > 0 ||
            (program->is_symbolic && ci_op_kind(body->nodes[k]->op) == CI_OPKIND_pointwise))
            return false;
    return cx_block_is_exact(body);
}

CxTrial
cx_trial_of_piece(const CxProgram *program)
{
    CxTrial trial = {.is_lost = program == NULL};

    trial.is_wanted = program != NULL && program->wrapper == NULL &&
                      !ci_backend_has_memory(program->backend) &&
                      cx_block_is_exact(program->graph->body) &&
                      (!program->is_symbolic || cx_graph_makes_at_most(program->graph, CX_LITTLE));
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
