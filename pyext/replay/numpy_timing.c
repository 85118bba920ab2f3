/* Times a program and the original function, and chooses the faster one.
 *
 * A program may be slower than NumPy. A library call adds the cost of its operands, its result
 * and a way through Python. Code for any size is not optimised for this size. Without a
 * compiler, interpreted code may take far longer than NumPy's loops. So some calls are timed
 * both ways and the minima are compared. NumPy wins if it takes a 32nd less than the program with
 * its guards and results. This is only done if both give the same bits. With varying sizes
 * there is a trial for each size class, because a small call says nothing about a large one. Other
 * load of the machine may decide a trial, so the 64th and the 1,024th call after it begin another one,
 * in which the loser so far is timed first. They do not if a long program took many times as long.
 *
 * Where a time of NumPy is expected, from earlier calls or the estimate of the graph, each call in NumPy is made when
 * compiled calls have taken as long. So a trial costs at most as much as it could save, whatever the estimate is worth. */
#include "replay/numpy_timing.h"

#include <math.h>

#include "graph/graph.h"

#include "base/os.h"

/* Calls timed per way: many for short ones, few for long ones, one for very long ones. CPython specializes the code of
 * a function in its first calls (PEP 659), which matters where they take microseconds. */
enum { MANY = 36, CALLS = 12, FEW = 4, SHORT = 10000, LONG = 200000, VERY_LONG = 100 * LONG };
enum { CLEAR_CALLS = 3 }; /* NumPy calls that are twice as slow, after which timing stops; of short calls CALLS */
/* Times slower that NumPy is expected to be, if it is not timed: by its own calls, and by the estimate of a graph. No estimate says
 * that an interpreter is faster. */
enum { FAR = 3, FAR_BY_ESTIMATE = 16 };
enum { FIRST_REVIEW = 64, LAST_REVIEW = 1024 };
enum { CERTAIN = 16 }; /* times slower than NumPy: other load does not make a long call so */

/* ---- which programs are timed ---- */

static bool
has_regions(const CiBlock *body)
{
    for (int k = 0; k < body->nnodes; k++)
        if (body->nodes[k]->nblocks > 0)
            return true;
    return false;
}

bool
cx_has_regions(const CxProgram *program)
{
    return has_regions(program->graph->body);
}

static bool
has_calls(const CiBlock *body, bool is_inner)
{
    for (int k = 0; k < body->nnodes; k++) {
        if (is_inner && body->nodes[k]->ext != NULL)
            return true;
        for (int j = 0; j < body->nodes[k]->nblocks; j++)
            if (has_calls(body->nodes[k]->blocks[j], true))
                return true;
    }
    return false;
}

/* True if the program has loops or branches in machine code, and none makes a library call. In Python they may
 * take any time longer. A loop around a library call (a draw, a product) may be faster there, and so may an interpreted one. */
static bool
has_compiled_loops(const CxProgram *program)
{
    const CiBlock *body = program->graph->body;
    return !program->is_interpreted && has_regions(body) && !has_calls(body, false);
}

/* True if the program runs on the CPU with exactly NumPy's bits. */
static bool
may_be_numpys(const CxProgram *program)
{
    return program != NULL && program->wrapper == NULL &&
           !ci_backend_has_memory(program->backend) && cx_block_is_exact(program->state, program->graph->body);
}

CxNumpyTiming
cx_trial_of(const CxProgram *program, bool reads_all)
{
    CxNumpyTiming trial = {.far = FAR};

    if (!may_be_numpys(program) || has_compiled_loops(program))
        return trial;
    trial.is_wanted = program->externs > 0 || program->is_symbolic || reads_all;
    trial.times_long_calls = program->is_symbolic || reads_all || has_regions(program->graph->body);
    return trial;
}

CxNumpyTiming
cx_trial_of_piece(const CxProgram *program)
{
    bool is_wanted = may_be_numpys(program) && (!program->is_symbolic ||
                                                cx_graph_seconds(program->graph) <= CX_LITTLE);
    return (CxNumpyTiming){.is_lost = program == NULL, .is_wanted = is_wanted, .far = FAR};
}

CxNumpyTiming
cx_trial_of_unbuilt(const CxProgram *program)
{
    bool is_wanted = may_be_numpys(program) && !has_compiled_loops(program);
    return (CxNumpyTiming){.is_wanted = is_wanted, .times_long_calls = true, .far = FAR};
}

int
cx_trial_class(int64_t elements)
{
    int class = 0;
    for (; elements >= 8 && class < CX_TRIAL_CLASSES - 1; elements /= 8)
        class++;
    return class;
}

/* ---- timing ---- */

/* Before the other way is timed. */
static int
first_calls(const CxNumpyTiming *trial)
{
    bool is_review = trial->calls >= FIRST_REVIEW;

    if (trial->best[0] <= SHORT)
        return MANY;
    return trial->best[0] <= LONG && !is_review ? CALLS : trial->best[0] <= VERY_LONG ? FEW : 1;
}

static bool
are_close(const CxNumpyTiming *trial)
{
    int64_t more = trial->best[1] - trial->best[0];
    return (more < 0 ? -more : more) < trial->best[0] / 4;
}

/* Where both ways take about as long, other load may decide, and more calls of the slower one cost little. */
static int
calls_needed(const CxNumpyTiming *trial)
{
    int first = first_calls(trial);

    if (trial->counts[1] == 0 || trial->is_earlier || !are_close(trial) || trial->best[0] > VERY_LONG)
        return first;
    return trial->best[0] > 10 * LONG ? CALLS : MANY;
}

static bool
are_both_timed(const CxNumpyTiming *trial)
{
    int needed = calls_needed(trial);
    return trial->counts[0] >= needed && trial->counts[1] >= needed;
}

static void
decide(CxNumpyTiming *trial)
{
    trial->is_lost = are_both_timed(trial) &&
                     trial->best[1] < trial->best[0] - trial->best[0] / 32;
}

/* True if timing can stop. A program that takes long, without a reason to doubt it, has little
 * call overhead, while the original function may take much longer. */
static bool
is_over(const CxNumpyTiming *trial)
{
    bool is_long = (trial->counts[0] > 0 && trial->best[0] > 10 * LONG) ||
                   (trial->counts[0] >= CALLS && trial->best[0] > LONG);
    bool is_short = trial->best[0] <= SHORT && trial->best[1] <= LONG;
    bool is_clear = trial->counts[0] > 0 && trial->counts[1] >= (is_short ? CALLS : CLEAR_CALLS) &&
                    trial->best[1] > 2 * trial->best[0];
    is_clear |= trial->counts[0] >= first_calls(trial) && trial->counts[1] == 0 &&
                (double)trial->best[1] > trial->far * (double)trial->best[0];

    return !trial->is_wanted || trial->is_lost || is_clear || (is_long && !trial->times_long_calls) ||
           are_both_timed(trial);
}

static const double LONGEST = 1e9; /* seconds: a longer time is unknown */

CxNumpyTiming
cx_trial_after(const CxProgram *program, double numpy, int calls, double compiled)
{
    CxNumpyTiming trial = {.is_wanted = may_be_numpys(program), .far = FAR};

    if (!trial.is_wanted)
        return trial;
    bool is_compiled = has_compiled_loops(program);
    trial.times_long_calls = true;
    trial.wants_estimate = program->is_symbolic && has_regions(program->graph->body);
    if (trial.wants_estimate)
        trial.far = is_compiled ? FAR_BY_ESTIMATE : HUGE_VALF;
    if (program->is_symbolic)
        return trial;
    if (calls >= CLEAR_CALLS || compiled > 0) /* a first call may take many times longer than later ones */
        trial.counts[1] = MANY, trial.is_earlier = compiled == 0;
    else if (!has_regions(program->graph->body))
        return trial;
    else {
        double estimate = cx_graph_seconds(program->graph);
        if (!is_compiled && calls == 0 && !isfinite(estimate))
            return trial;
        trial.far = is_compiled ? FAR_BY_ESTIMATE : HUGE_VALF;
        numpy = fmin(calls > 0 ? numpy : LONGEST, estimate);
    }
    if (calls == 0 || 1e9 * numpy > LONG || trial.counts[1] > 0) /* else NumPy is timed, which takes little */
        trial.best[1] = (int64_t)(1e9 * fmin(numpy, LONGEST));
    if (compiled > 0 && trial.counts[1] > 0) {
        trial.best[0] = (int64_t)(1e9 * fmin(compiled, LONGEST));
        trial.counts[0] = MANY;
        decide(&trial);
    }
    return trial;
}

void
cx_trial_expect(CxNumpyTiming *trial, double numpy)
{
    trial->wants_estimate = false;
    if (trial->far == HUGE_VALF && !isfinite(numpy))
        trial->far = FAR;
    else if (trial->counts[1] == 0)
        trial->best[1] = (int64_t)(1e9 * fmin(numpy, LONGEST));
}

static bool
is_certain(const CxNumpyTiming *trial)
{
    return trial->is_lost && trial->best[0] > LONG && trial->best[0] > CERTAIN * trial->best[1];
}

/* The time of NumPy that is known becomes the expected one. */
static void
begin_review(CxNumpyTiming *trial)
{
    trial->counts[0] = trial->counts[1] = 0;
    trial->best[0] = trial->spent = 0;
    trial->far = FAR;
    trial->is_lost = trial->is_earlier = false;
}

bool
cx_trial_chooses_numpy(CxNumpyTiming *trial)
{
    if (trial->is_wanted && trial->calls < LAST_REVIEW && is_over(trial) && !is_certain(trial)) {
        trial->calls++;
        if (trial->calls == FIRST_REVIEW || trial->calls == LAST_REVIEW)
            begin_review(trial);
    }
    return trial->is_lost || (!is_over(trial) && trial->counts[0] > trial->counts[1] && trial->counts[0] >= first_calls(trial) &&
                              trial->spent / (trial->counts[1] + 1) >= trial->best[1]);
}

int
cx_trial_lend(CxNumpyTiming *trial)
{
    enum { MOST = 15, MAX_CERTAIN = 1 << 20 }; /* a look at guards may take as long as the program */
    int next = trial->calls < FIRST_REVIEW ? FIRST_REVIEW : LAST_REVIEW;
    int count = trial->calls >= LAST_REVIEW || next - 1 - trial->calls > MOST ? MOST : next - 1 - trial->calls;

    if (!trial->is_lost)
        return 0;
    if (is_certain(trial))
        return MAX_CERTAIN;
    trial->calls += trial->calls < LAST_REVIEW ? (int16_t)count : 0;
    return count;
}

bool
cx_trial_is_open(const CxNumpyTiming *trial)
{
    return !is_over(trial);
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
    trial->spent += is_numpy ? 0 : taken;
    decide(trial);
    if (trial->is_earlier && are_both_timed(trial) && !trial->is_lost && are_close(trial) && trial->best[0] <= VERY_LONG) {
        trial->is_earlier = false; /* other load may have been another: NumPy is timed again */
        trial->counts[1] = 0;
    }
}

PyObject *
cx_trials_times(const CxNumpyTiming *trials)
{
    const CxNumpyTiming *first = &trials[0];

    if (!first->is_wanted || first->counts[0] == 0 || first->counts[1] == 0 || !is_over(first))
        Py_RETURN_NONE;
    return Py_BuildValue("(dd)", 1e-9 * (double)first->best[0], 1e-9 * (double)first->best[1]);
}

void
cx_trials_set(CxNumpyTiming *trials, CxNumpyTiming trial)
{
    for (int k = 0; k < CX_TRIAL_CLASSES; k++)
        trials[k] = trial;
}

bool
cx_trials_are_open(const CxNumpyTiming *trials, bool varies)
{
    bool is_open = !varies && !is_over(&trials[0]);

    for (int k = 0; k < CX_TRIAL_CLASSES; k++)
        is_open |= trials[k].counts[0] > 0 && !is_over(&trials[k]);
    return is_open;
}

PyObject *
cx_trials_text(const CxNumpyTiming *trials)
{
    int lost = 0;

    while (lost < CX_TRIAL_CLASSES - 1 && !trials[lost].is_lost)
        lost++;
    const CxNumpyTiming *trial = &trials[lost];
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
