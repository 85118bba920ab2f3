/* Autotuning trials: times the plans of a program on the user's calls.
 *
 * Every call runs once, by one plan; all plans give the same bits. Plans alternate in rounds, so
 * that other load affects all of them, and medians are compared. An alternative wins if it takes
 * 5 % less than the default plan and was faster in most rounds. The best of several may be so by
 * chance, so it is compared with the default alone once more, and this decides. A plan that is
 * clearly slower drops out. While more than a tenth of the time was spent on slower plans, the
 * default plan runs. Calls that overlap with another thread's are not timed, nor calls that a
 * check ends; if this continues, the default plan wins. With varying sizes there is a trial for
 * each size class. */
#include "replay/autotune.h"

#include <stdlib.h>

#include "base/os.h"

enum { MAX_PLANS = 16, ROUNDS = 9, FEW_ROUNDS = 5, FEWEST_ROUNDS = 3 };
enum { MILLISECOND = 1000000, LONG = 50 * MILLISECOND, VERY_LONG = 1000 * MILLISECOND };
enum { COLD = 10 * MILLISECOND }; /* a first run that takes less is dominated by cold caches */
enum { MARGIN = 20, BUDGET = 10 }; /* denominators of fractions */
enum { CLEAR_CALLS = 3, MAX_UNTIMED = 200 };

typedef struct Times {
    int count;
    bool is_out, has_run;
    int64_t taken[ROUNDS];
} Times;

/* The trial of one size class. */
typedef struct TimingRound {
    int winner;    /* -1: undecided */
    bool is_final; /* two plans are left, which are compared once more */
    int turn;   /* index within the round */
    int round, untimed;
    int calls; /* until it was decided */
    int64_t spent, lost; /* nanoseconds; lost: the time beyond what the default plan takes */
    Times times[MAX_PLANS];
} TimingRound;

struct CxAutotune {
    CxProgram *programs[MAX_PLANS]; /* NULL: does not take part */
    PyObject *names[MAX_PLANS], *whys[MAX_PLANS];
    int count;
    PyObject *done;
    int running;
    int64_t crowd; /* changes when calls overlap */
    TimingRound heats[CX_TRIAL_CLASSES];
};

/* ---- plans ---- */

/* True if the recipe of the results also fits the other plan. */
static bool
gives_the_same(const CxProgram *a, const CxProgram *b)
{
    bool is_same = a->nbuffers == b->nbuffers && a->nreturns == b->nreturns;
    for (int k = 0; is_same && k < a->nbuffers; k++)
        is_same = a->is_scalar[k] == b->is_scalar[k];
    for (int k = 0; is_same && k < a->nreturns; k++) {
        const CxReturn *x = &a->returns[k], *y = &b->returns[k];
        is_same = x->is_shared == y->is_shared &&
                  x->layout.result_buffer == y->layout.result_buffer &&
                  x->layout.input == y->layout.input && x->layout.is_whole == y->layout.is_whole &&
                  x->layout.offset == y->layout.offset &&
                  (x->layout.sizes == NULL) == (y->layout.sizes == NULL);
        for (int d = 0; is_same && x->layout.sizes != NULL && d < x->layout.rank; d++)
            is_same = x->layout.strides[d] == y->layout.strides[d];
    }
    return is_same;
}

static int
add_plan(CxAutotune *tuning, CxProgram *own, PyObject *row)
{
    PyTypeObject *type = (PyTypeObject *)own->state->program_type;
    PyObject *name = NULL, *program = NULL, *why = NULL;
    int k = tuning->count;

    if (!PyTuple_Check(row) || !PyArg_ParseTuple(row, "UOO", &name, &program, &why))
        return -1;
    tuning->count++;
    tuning->names[k] = Py_NewRef(name);
    tuning->whys[k] = Py_NewRef(why);
    if (!PyObject_TypeCheck(program, type) || why != Py_None)
        return 0;
    if (gives_the_same(own, (CxProgram *)program))
        tuning->programs[k] = (CxProgram *)Py_NewRef(program);
    else
        Py_XSETREF(tuning->whys[k], PyUnicode_FromString("its results are stored in other memory"));
    return tuning->whys[k] != NULL ? 0 : -1;
}

static int
find_plan(const CxAutotune *tuning, PyObject *name)
{
    for (int k = 0; k < tuning->count; k++)
        if (tuning->programs[k] != NULL && PyUnicode_Check(name) &&
            PyUnicode_Compare(tuning->names[k], name) == 0)
            return k;
    return -1;
}

static int
take_known(CxAutotune *tuning, PyObject *known)
{
    PyObject *class = NULL, *name = NULL;
    Py_ssize_t at = 0;

    while (PyDict_Next(known, &at, &class, &name)) {
        long number = PyLong_AsLong(class);
        if (number == -1 && PyErr_Occurred())
            return -1;
        if (number >= 0 && number < CX_TRIAL_CLASSES)
            tuning->heats[number].winner = find_plan(tuning, name);
    }
    return 0;
}

CxAutotune *
cx_autotune_new(CxProgram *own, PyObject *rows, PyObject *known, PyObject *done)
{
    CxAutotune *tuning = PyMem_Calloc(1, sizeof *tuning);
    int failed = tuning == NULL;

    if (failed)
        PyErr_NoMemory();
    for (Py_ssize_t k = 0; !failed && k < PyList_GET_SIZE(rows) && k < MAX_PLANS; k++)
        failed = add_plan(tuning, own, PyList_GET_ITEM(rows, k)) < 0;
    if (!failed && (tuning->count == 0 || tuning->programs[0] != own)) {
        PyErr_SetString(PyExc_ValueError, "the first plan of a race is the program's own");
        failed = true;
    }
    for (int c = 0; !failed && c < CX_TRIAL_CLASSES; c++)
        tuning->heats[c].winner = -1;
    if (!failed && take_known(tuning, known) == 0) {
        tuning->done = Py_NewRef(done);
        return tuning;
    }
    cx_autotune_free(tuning);
    return NULL;
}

void
cx_autotune_free(CxAutotune *tuning)
{
    if (tuning == NULL)
        return;
    for (int k = 0; k < tuning->count; k++) {
        Py_XDECREF(tuning->programs[k]);
        Py_XDECREF(tuning->names[k]);
        Py_XDECREF(tuning->whys[k]);
    }
    Py_XDECREF(tuning->done);
    PyMem_Free(tuning);
}

int
cx_autotune_traverse(const CxAutotune *tuning, visitproc visit, void *arg)
{
    for (int k = 0; tuning != NULL && k < tuning->count; k++)
        Py_VISIT(tuning->programs[k]);
    if (tuning != NULL)
        Py_VISIT(tuning->done);
    return 0;
}

void
cx_autotune_request(PyObject **asker, PyObject *specialization)
{
    PyObject *own = *asker;

    *asker = NULL; /* cleared first, because it may call the function */
    PyObject *asked = PyObject_CallOneArg(own, specialization);
    if (asked == NULL)
        PyErr_WriteUnraisable(own);
    Py_XDECREF(asked);
    Py_DECREF(own);
}

/* ---- times ---- */

static int
compare_times(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int64_t
median_of(const Times *times)
{
    int64_t sorted[ROUNDS];
    if (times->count == 0)
        return 0;
    memcpy(sorted, times->taken, sizeof *sorted * (size_t)times->count);
    qsort(sorted, (size_t)times->count, sizeof *sorted, compare_times);
    return (sorted[(times->count - 1) / 2] + sorted[times->count / 2]) / 2;
}

static int64_t
least_of(const Times *times)
{
    int64_t least = INT64_MAX;
    for (int k = 0; k < times->count; k++)
        least = times->taken[k] < least ? times->taken[k] : least;
    return least;
}

static int
rounds_of(const TimingRound *timing)
{
    int64_t own = median_of(&timing->times[0]);
    return own > VERY_LONG ? FEWEST_ROUNDS : own > LONG ? FEW_ROUNDS : ROUNDS;
}

/* ---- rounds ---- */

static bool
takes_part(const CxAutotune *tuning, const TimingRound *timing, int plan)
{
    return tuning->programs[plan] != NULL && !timing->times[plan].is_out;
}

/* The plan of the next call; -1: the round is over. Each round starts one plan later. */
static int
next_plan(const CxAutotune *tuning, TimingRound *timing)
{
    for (; timing->turn < tuning->count; timing->turn++) {
        int plan = (timing->turn + timing->round) % tuning->count;
        if (takes_part(tuning, timing, plan))
            return plan;
    }
    return -1;
}

/* Drops plans that are clearly slower than the default, also in their best call. */
static void
drop_slower(const CxAutotune *tuning, TimingRound *timing)
{
    const Times *own = &timing->times[0];
    for (int k = 1; k < tuning->count; k++) {
        Times *times = &timing->times[k];
        if (times->count >= CLEAR_CALLS && own->count >= CLEAR_CALLS &&
            least_of(times) > least_of(own) + least_of(own) / 2)
            times->is_out = true;
    }
}

/* True if an alternative is faster than the default, and not by chance. */
static bool
is_better(const Times *times, const Times *own)
{
    int64_t median = median_of(&times[0]);
    int quicker = 0;
    for (int k = 0; k < times->count && k < own->count; k++)
        quicker += times->taken[k] < own->taken[k];
    return median + median / MARGIN < median_of(own) && 4 * quicker >= 3 * times->count;
}

/* Starts the final comparison between the default and the best alternative. */
static void
begin_final(const CxAutotune *tuning, TimingRound *timing, int best)
{
    timing->is_final = true;
    timing->round = 0;
    timing->times[0].count = timing->times[best].count = 0;
    for (int k = 1; k < tuning->count; k++)
        timing->times[k].is_out |= k != best;
}

static void
decide(const CxAutotune *tuning, TimingRound *timing)
{
    int best = 0;
    for (int k = 1; k < tuning->count; k++)
        if (takes_part(tuning, timing, k) && is_better(&timing->times[k], &timing->times[0]) &&
            median_of(&timing->times[k]) < median_of(&timing->times[best]))
            best = k;
    if (best > 0 && !timing->is_final)
        begin_final(tuning, timing, best);
    else
        timing->winner = best;
}

static void
end_round(const CxAutotune *tuning, TimingRound *timing)
{
    int left = 0;
    if (next_plan(tuning, timing) >= 0)
        return;
    timing->turn = 0;
    timing->round++;
    drop_slower(tuning, timing);
    for (int k = 1; k < tuning->count; k++)
        left += takes_part(tuning, timing, k);
    if (left == 0 || timing->times[0].count >= rounds_of(timing))
        decide(tuning, timing);
}

bool
cx_autotune_is_open(const CxAutotune *tuning, int class)
{
    return tuning->heats[class].winner < 0;
}

/* ---- calls ---- */

static void
choose(CxAutotune *tuning, TimingRound *timing, CxTimedRun *run)
{
    bool is_alone = tuning->running++ == 0;
    run->is_counted = true;
    tuning->crowd += !is_alone;
    run->crowd = tuning->crowd;
    if (!is_alone || tuning->programs[0]->state->beside != 0)
        return;
    run->began = ci_os_time_ns();
    int plan = BUDGET * timing->lost > timing->spent ? -1 : next_plan(tuning, timing);
    run->plan = plan;
}

void
cx_autotune_begin(CxAutotune *tuning, int class, CxTimedRun *run)
{
    TimingRound *timing = &tuning->heats[class];

    *run = (CxTimedRun){.class = class};
    timing->calls += timing->winner < 0;
    if (timing->winner >= 0)
        run->plan = timing->winner;
    else
        choose(tuning, timing, run);
    CxProgram *program = tuning->programs[run->plan < 0 ? 0 : run->plan];
    run->program = (CxProgram *)Py_NewRef((PyObject *)(program ? program : tuning->programs[0]));
}

/* The time of a call; tests may set it. */
static int64_t
time_taken(const CxAutotune *tuning, const CxTimedRun *run)
{
    PyObject *clock = tuning->programs[0]->state->autotune_clock;
    int64_t taken = ci_os_time_ns() - run->began;

    if (clock == NULL)
        return taken;
    PyObject *said = PyObject_CallFunction(clock, "Oi", tuning->names[run->plan < 0 ? 0 : run->plan],
                                           run->class);
    long long value = said != NULL ? PyLong_AsLongLong(said) : -1;
    Py_XDECREF(said);
    if (PyErr_Occurred())
        PyErr_WriteUnraisable(clock);
    return value > 0 ? value : taken;
}

static void
note_time(CxAutotune *tuning, TimingRound *timing, const CxTimedRun *run, int64_t taken)
{
    timing->spent += taken;
    if (run->plan < 0)
        return;
    Times *times = &timing->times[run->plan];
    int64_t own = median_of(&timing->times[0]);
    if (run->plan > 0 && own > 0 && taken > own)
        timing->lost += taken - own;
    bool is_cold = !times->has_run && taken < COLD;
    times->has_run = true;
    if (!is_cold && times->count < ROUNDS)
        times->taken[times->count++] = taken;
    if (!is_cold)
        timing->turn++;
    end_round(tuning, timing);
}

/* A plan that has failed takes no part in any size class any more. */
static void
put_out(CxAutotune *tuning, int plan)
{
    PyObject *error = cx_take_exception();
    PyObject *why = error != NULL ? PyObject_Str(error) : NULL;

    if (why != NULL)
        Py_XSETREF(tuning->whys[plan], why);
    PyErr_Clear();
    Py_CLEAR(tuning->programs[plan]);
    for (int c = 0; c < CX_TRIAL_CLASSES; c++)
        if (tuning->heats[c].winner == plan)
            tuning->heats[c].winner = 0;
    if (error != NULL)
        cx_restore_exception(error);
}

/* With constant sizes there is only one class, so the other plans are freed. */
static void
drop_losers(CxAutotune *tuning, int winner)
{
    for (int k = 1; k < tuning->count && !tuning->programs[0]->is_symbolic; k++)
        if (k != winner)
            Py_CLEAR(tuning->programs[k]);
}

static void
report(const CxAutotune *tuning, PyObject *specialization, int class)
{
    PyObject *error = cx_take_exception();
    PyObject *reported = PyObject_CallFunction(tuning->done, "Oi", specialization, class);

    if (reported == NULL)
        PyErr_WriteUnraisable(tuning->done);
    Py_XDECREF(reported);
    if (error != NULL)
        cx_restore_exception(error);
}

void
cx_autotune_end(CxAutotune *tuning, PyObject *specialization, CxTimedRun *run, CxRunEnd how)
{
    TimingRound *timing = &tuning->heats[run->class];
    bool was_over = timing->winner >= 0;

    tuning->running -= run->is_counted;
    if (how == CX_RUN_FAILED && run->plan > 0) {
        put_out(tuning, run->plan);
        end_round(tuning, timing);
    } else if (run->began != 0 && !was_over) {
        if (how == CX_RUN_DONE && run->crowd == tuning->crowd)
            note_time(tuning, timing, run, time_taken(tuning, run));
        else if (++timing->untimed > MAX_UNTIMED) /* otherwise it would never end */
            timing->winner = 0;
    }
    if (!was_over && timing->winner >= 0) {
        drop_losers(tuning, timing->winner);
        report(tuning, specialization, run->class);
    }
    Py_CLEAR(run->program);
}

/* ---- reports ---- */

static PyObject *
plan_rows(const CxAutotune *tuning)
{
    PyObject *rows = PyList_New(tuning->count);
    for (int k = 0; rows != NULL && k < tuning->count; k++)
        cx_put_item(&rows, k, PyTuple_Pack(2, tuning->names[k], tuning->whys[k]));
    return rows;
}

static PyObject *
round_times(const CxAutotune *tuning, const TimingRound *timing)
{
    PyObject *rows = PyList_New(tuning->count);
    for (int k = 0; rows != NULL && k < tuning->count; k++) {
        const Times *times = &timing->times[k];
        cx_put_item(&rows, k, Py_BuildValue("(iL)", times->count, (long long)median_of(times)));
    }
    return rows;
}

PyObject *
cx_autotune_rows(const CxAutotune *tuning)
{
    if (tuning == NULL)
        Py_RETURN_NONE;
    PyObject *plans = plan_rows(tuning), *heats = PyList_New(0);
    bool failed = plans == NULL || heats == NULL;

    for (int c = 0; !failed && c < CX_TRIAL_CLASSES; c++) {
        const TimingRound *timing = &tuning->heats[c];
        if (timing->calls == 0 && timing->winner < 0)
            continue;
        PyObject *winner = timing->winner < 0 ? Py_None : tuning->names[timing->winner];
        PyObject *row = Py_BuildValue("(iOiN)", c, winner, timing->calls, round_times(tuning, timing));
        failed = row == NULL || PyList_Append(heats, row) < 0;
        Py_XDECREF(row);
    }
    if (!failed)
        return Py_BuildValue("(NN)", plans, heats);
    Py_XDECREF(plans);
    Py_XDECREF(heats);
    return NULL;
}

/* ---- the module's ---- */

PyObject *
cx_set_alongside(PyObject *module, PyObject *number)
{
    CxState *state = PyModule_GetState(module);
    long beside = PyLong_AsLong(number);

    if (beside < CX_ALONGSIDE_nothing || beside > CX_ALONGSIDE_ending)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "beside is 0, 1 or 2");
    state->beside = (int)beside;
    Py_RETURN_NONE;
}

PyObject *
cx_set_autotune_clock(PyObject *module, PyObject *clock)
{
    CxState *state = PyModule_GetState(module);
    Py_XSETREF(state->autotune_clock, clock == Py_None ? NULL : Py_NewRef(clock));
    Py_RETURN_NONE;
}
