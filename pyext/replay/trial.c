/* Which is quicker, a program or the function itself.
 *
 * A library call costs the program what its operands, its result and a way through Python cost; code
 * for any size is not the code for this one; and what is interpreted, for there is no compiler, may
 * take far longer than NumPy's loops. Nobody can tell beforehand: some calls are timed in both ways,
 * and the best of each decide, NumPy's where it takes a tenth less. Both give the same bits, or nobody is asked. Where sizes vary, a small
 * call says nothing of a large one: there is a trial for each class of them. */
#include "replay/trial.h"

#include "graph/graph.h"

#include "base/os.h"

/* Calls in both ways: many of short ones, few of long ones, one of those that take very long. */
enum { CALLS = 12, FEW = 4, LONG = 200000, VERY_LONG = 100 * LONG };
enum { CLEAR_CALLS = 3 }; /* of NumPy's, twice as slow: nobody has to ask any more */

/* ---- is it worth a trial? ---- */

static bool
has_regions(const CiBlock *body)
{
    for (int k = 0; k < body->nnodes; k++)
        if (body->nodes[k]->nblocks > 0)
            return true;
    return false;
}

/* Does the processor run it, with NumPy's very bits? */
static bool
may_be_numpys(const CxProgram *program)
{
    return program != NULL && program->wrapper == NULL &&
           !ci_backend_has_memory(program->backend) && cx_block_is_exact(program->graph->body);
}

CxNumpyTiming
cx_trial_of(const CxProgram *program)
{
    CxNumpyTiming trial = {0};

    if (!may_be_numpys(program) || has_regions(program->graph->body))
        return trial;
    trial.is_wanted = program->externs > 0 || program->is_symbolic;
    trial.asks_long = program->is_symbolic;
    return trial;
}

CxNumpyTiming
cx_trial_of_piece(const CxProgram *program)
{
    bool is_wanted = may_be_numpys(program) && (!program->is_symbolic ||
                                                cx_graph_seconds(program->graph) <= CX_LITTLE);
    return (CxNumpyTiming){.is_lost = program == NULL, .is_wanted = is_wanted};
}

CxNumpyTiming
cx_trial_of_interpreted(const CxProgram *program)
{
    return (CxNumpyTiming){.is_wanted = may_be_numpys(program), .asks_long = true};
}

CxNumpyTiming
cx_trial_after(const CxProgram *program, int64_t numpy)
{
    CxNumpyTiming trial = {.is_wanted = may_be_numpys(program), .asks_long = true};

    if (trial.is_wanted && !program->is_symbolic && numpy > 0) {
        trial.best[1] = numpy;
        trial.counts[1] = CALLS;
    }
    return trial;
}

int
cx_trial_class(int64_t elements)
{
    int class = 0;
    for (; elements >= 8 && class < CX_TRIAL_CLASSES - 1; elements /= 8)
        class++;
    return class;
}

/* ---- the trial ---- */

static int
calls_needed(const CxNumpyTiming *trial)
{
    return trial->best[0] <= LONG ? CALLS : trial->best[0] <= VERY_LONG ? FEW : 1;
}

static bool
are_both_timed(const CxNumpyTiming *trial)
{
    int needed = calls_needed(trial);
    return trial->counts[0] >= needed && trial->counts[1] >= needed;
}

/* A program that takes long and that no one has a reason to doubt cannot lose much by its calls, and
 * the function itself may. */
static bool
is_over(const CxNumpyTiming *trial)
{
    bool is_long = (trial->counts[0] > 0 && trial->best[0] > 10 * LONG) ||
                   (trial->counts[0] >= CALLS && trial->best[0] > LONG);
    bool is_clear = trial->counts[0] > 0 && trial->counts[1] >= CLEAR_CALLS &&
                    trial->best[1] > 2 * trial->best[0];

    return !trial->is_wanted || trial->is_lost || is_clear || (is_long && !trial->asks_long) ||
           are_both_timed(trial);
}

bool
cx_trial_is_numpys(const CxNumpyTiming *trial)
{
    return trial->is_lost ||
           (!is_over(trial) && trial->counts[0] > 0 && trial->counts[0] >= calls_needed(trial));
}

int64_t
cx_numpy_timing_begin(const CxNumpyTiming *trial)
{
    return is_over(trial) ? 0 : ci_os_time_ns();
}

void
cx_trial_end(CxNumpyTiming *trial, bool is_numpy, int64_t began)
{
    if (began == 0)
        return;

    int64_t taken = ci_os_time_ns() - began;
    if (trial->counts[is_numpy] == 0 || taken < trial->best[is_numpy])
        trial->best[is_numpy] = taken;
    trial->counts[is_numpy]++;
    trial->is_lost = are_both_timed(trial) && trial->best[1] < trial->best[0] - trial->best[0] / 10;
}

bool
cx_trial_is_open(const CxNumpyTiming *trial)
{
    return !is_over(trial);
}

PyObject *
cx_trial_text(const CxNumpyTiming *trial)
{
    if (!trial->is_lost)
        Py_RETURN_NONE;
    if (!trial->is_wanted)
        return PyUnicode_FromString("there is nothing to compute");
    PyObject *own = PyFloat_FromDouble((double)trial->best[0] * 1e-3),
             *numpys = PyFloat_FromDouble((double)trial->best[1] * 1e-3), *text = NULL;
    if (own != NULL && numpys != NULL)
        text = PyUnicode_FromFormat("NumPy was faster when both were timed: %.6S us "
                                    "compiled, %.6S us in NumPy",
                                    own, numpys);
    Py_XDECREF(own);
    Py_XDECREF(numpys);
    return text;
}
