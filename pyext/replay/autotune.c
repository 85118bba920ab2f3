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

struct CxRace {
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
add_plan(CxRace *race, CxProgram *own, PyObject *row)
{
    PyTypeObject *type = (PyTypeObject *)own->state->program_type;
    PyObject *name = NULL, *program = NULL, *why = NULL;
    int k = race->count;

    if (!PyTuple_Check(row) || !PyArg_ParseTuple(row, "UOO", &name, &program, &why))
        return -1;
    race->count++;
    race->names[k] = Py_NewRef(name);
    race->whys[k] = Py_NewRef(why);
    if (!PyObject_TypeCheck(program, type) || why != Py_None)
        return 0;
    if (gives_the_same(own, (CxProgram *)program))
        race->programs[k] = (CxProgram *)Py_NewRef(program);
    else
        Py_XSETREF(race->whys[k], PyUnicode_FromString("its results are stored in other memory"));
    return race->whys[k] != NULL ? 0 : -1;
}

static int
find_plan(const CxRace *race, PyObject *name)
{
    for (int k = 0; k < race->count; k++)
        if (race->programs[k] != NULL && PyUnicode_Check(name) &&
            PyUnicode_Compare(race->names[k], name) == 0)
            return k;
    return -1;
}

static int
take_known(CxRace *race, PyObject *known)
{
    PyObject *class = NULL, *name = NULL;
    Py_ssize_t at = 0;

    while (PyDict_Next(known, &at, &class, &name)) {
        long number = PyLong_AsLong(class);
        if (number == -1 && PyErr_Occurred())
            return -1;
        if (number >= 0 && number < CX_TRIAL_CLASSES)
            race->heats[number].winner = find_plan(race, name);
    }
    return 0;
}

CxRace *
cx_race_new(CxProgram *own, PyObject *rows, PyObject *known, PyObject *done)
{
    CxRace *race = PyMem_Calloc(1, sizeof *race);
    int failed = race == NULL;

    if (failed)
        PyErr_NoMemory();
    for (Py_ssize_t k = 0; !failed && k < PyList_GET_SIZE(rows) && k < MAX_PLANS; k++)
        failed = add_plan(race, own, PyList_GET_ITEM(rows, k)) < 0;
    if (!failed && (race->count == 0 || race->programs[0] != own)) {
        PyErr_SetString(PyExc_ValueError, "the first plan of a race is the program's own");
        failed = true;
    }
    for (int c = 0; !failed && c < CX_TRIAL_CLASSES; c++)
        race->heats[c].winner = -1;
    if (!failed && take_known(race, known) == 0) {
        race->done = Py_NewRef(done);
        return race;
    }
    cx_race_free(race);
    return NULL;
}

void
cx_race_free(CxRace *race)
{
    if (race == NULL)
        return;
    for (int k = 0; k < race->count; k++) {
        Py_XDECREF(race->programs[k]);
        Py_XDECREF(race->names[k]);
        Py_XDECREF(race->whys[k]);
    }
    Py_XDECREF(race->done);
    PyMem_Free(race);
}

int
cx_race_traverse(const CxRace *race, visitproc visit, void *arg)
{
    for (int k = 0; race != NULL && k < race->count; k++)
        Py_VISIT(race->programs[k]);
    if (race != NULL)
        Py_VISIT(race->done);
    return 0;
}

void
cx_race_ask(PyObject **asker, PyObject *specialization)
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
rounds_of(const TimingRound *heat)
{
    int64_t own = median_of(&heat->times[0]);
    return own > VERY_LONG ? FEWEST_ROUNDS : own > LONG ? FEW_ROUNDS : ROUNDS;
}

/* ---- rounds ---- */

static bool
takes_part(const CxRace *race, const TimingRound *heat, int plan)
{
    return race->programs[plan] != NULL && !heat->times[plan].is_out;
}

/* The plan of the next call; -1: the round is over. Each round starts one plan later. */
static int
next_plan(const CxRace *race, TimingRound *heat)
{
    for (; heat->turn < race->count; heat->turn++) {
        int plan = (heat->turn + heat->round) % race->count;
        if (takes_part(race, heat, plan))
            return plan;
    }
    return -1;
}

/* Drops plans that are clearly slower than the default, also in their best call. */
static void
drop_slower(const CxRace *race, TimingRound *heat)
{
    const Times *own = &heat->times[0];
    for (int k = 1; k < race->count; k++) {
        Times *times = &heat->times[k];
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
begin_final(const CxRace *race, TimingRound *heat, int best)
{
    heat->is_final = true;
    heat->round = 0;
    heat->times[0].count = heat->times[best].count = 0;
    for (int k = 1; k < race->count; k++)
        heat->times[k].is_out |= k != best;
}

static void
decide(const CxRace *race, TimingRound *heat)
{
    int best = 0;
    for (int k = 1; k < race->count; k++)
        if (takes_part(race, heat, k) && is_better(&heat->times[k], &heat->times[0]) &&
            median_of(&heat->times[k]) < median_of(&heat->times[best]))
            best = k;
    if (best > 0 && !heat->is_final)
        begin_final(race, heat, best);
    else
        heat->winner = best;
}

static void
end_round(const CxRace *race, TimingRound *heat)
{
    int left = 0;
    if (next_plan(race, heat) >= 0)
        return;
    heat->turn = 0;
    heat->round++;
    drop_slower(race, heat);
    for (int k = 1; k < race->count; k++)
        left += takes_part(race, heat, k);
    if (left == 0 || heat->times[0].count >= rounds_of(heat))
        decide(race, heat);
}

bool
cx_race_is_open(const CxRace *race, int class)
{
    return race->heats[class].winner < 0;
}

/* ---- calls ---- */

static void
choose(CxRace *race, TimingRound *heat, CxTimedRun *lap)
{
    bool is_alone = race->running++ == 0;
    lap->is_counted = true;
    race->crowd += !is_alone;
    lap->crowd = race->crowd;
    if (!is_alone || race->programs[0]->state->beside != 0)
        return;
    lap->began = ci_os_time_ns();
    int plan = BUDGET * heat->lost > heat->spent ? -1 : next_plan(race, heat);
    lap->plan = plan;
}

void
cx_race_begin(CxRace *race, int class, CxTimedRun *lap)
{
    TimingRound *heat = &race->heats[class];

    *lap = (CxTimedRun){.class = class};
    heat->calls += heat->winner < 0;
    if (heat->winner >= 0)
        lap->plan = heat->winner;
    else
        choose(race, heat, lap);
    CxProgram *program = race->programs[lap->plan < 0 ? 0 : lap->plan];
    lap->program = (CxProgram *)Py_NewRef((PyObject *)(program ? program : race->programs[0]));
}

/* The time of a call; tests may set it. */
static int64_t
time_taken(const CxRace *race, const CxTimedRun *lap)
{
    PyObject *clock = race->programs[0]->state->race_clock;
    int64_t taken = ci_os_time_ns() - lap->began;

    if (clock == NULL)
        return taken;
    PyObject *said = PyObject_CallFunction(clock, "Oi", race->names[lap->plan < 0 ? 0 : lap->plan],
                                           lap->class);
    long long value = said != NULL ? PyLong_AsLongLong(said) : -1;
    Py_XDECREF(said);
    if (PyErr_Occurred())
        PyErr_WriteUnraisable(clock);
    return value > 0 ? value : taken;
}

static void
note_time(CxRace *race, TimingRound *heat, const CxTimedRun *lap, int64_t taken)
{
    heat->spent += taken;
    if (lap->plan < 0)
        return;
    Times *times = &heat->times[lap->plan];
    int64_t own = median_of(&heat->times[0]);
    if (lap->plan > 0 && own > 0 && taken > own)
        heat->lost += taken - own;
    bool is_cold = !times->has_run && taken < COLD;
    times->has_run = true;
    if (!is_cold && times->count < ROUNDS)
        times->taken[times->count++] = taken;
    if (!is_cold)
        heat->turn++;
    end_round(race, heat);
}

/* A plan that has failed takes no part in any size class any more. */
static void
put_out(CxRace *race, int plan)
{
    PyObject *error = cx_take_exception();
    PyObject *why = error != NULL ? PyObject_Str(error) : NULL;

    if (why != NULL)
        Py_XSETREF(race->whys[plan], why);
    PyErr_Clear();
    Py_CLEAR(race->programs[plan]);
    for (int c = 0; c < CX_TRIAL_CLASSES; c++)
        if (race->heats[c].winner == plan)
            race->heats[c].winner = 0;
    if (error != NULL)
        cx_restore_exception(error);
}

/* With constant sizes there is only one class, so the other plans are freed. */
static void
drop_losers(CxRace *race, int winner)
{
    for (int k = 1; k < race->count && !race->programs[0]->is_symbolic; k++)
        if (k != winner)
            Py_CLEAR(race->programs[k]);
}

static void
tell(const CxRace *race, PyObject *specialization, int class)
{
    PyObject *error = cx_take_exception();
    PyObject *told = PyObject_CallFunction(race->done, "Oi", specialization, class);

    if (told == NULL)
        PyErr_WriteUnraisable(race->done);
    Py_XDECREF(told);
    if (error != NULL)
        cx_restore_exception(error);
}

void
cx_race_end(CxRace *race, PyObject *specialization, CxTimedRun *lap, CxLapEnd how)
{
    TimingRound *heat = &race->heats[lap->class];
    bool was_over = heat->winner >= 0;

    race->running -= lap->is_counted;
    if (how == CX_LAP_FAILED && lap->plan > 0) {
        put_out(race, lap->plan);
        end_round(race, heat);
    } else if (lap->began != 0 && !was_over) {
        if (how == CX_LAP_DONE && lap->crowd == race->crowd)
            note_time(race, heat, lap, time_taken(race, lap));
        else if (++heat->untimed > MAX_UNTIMED) /* otherwise it would never end */
            heat->winner = 0;
    }
    if (!was_over && heat->winner >= 0) {
        drop_losers(race, heat->winner);
        tell(race, specialization, lap->class);
    }
    Py_CLEAR(lap->program);
}

/* ---- reports ---- */

static PyObject *
plan_rows(const CxRace *race)
{
    PyObject *rows = PyList_New(race->count);
    for (int k = 0; rows != NULL && k < race->count; k++)
        cx_put_item(&rows, k, PyTuple_Pack(2, race->names[k], race->whys[k]));
    return rows;
}

static PyObject *
heat_times(const CxRace *race, const TimingRound *heat)
{
    PyObject *rows = PyList_New(race->count);
    for (int k = 0; rows != NULL && k < race->count; k++) {
        const Times *times = &heat->times[k];
        cx_put_item(&rows, k, Py_BuildValue("(iL)", times->count, (long long)median_of(times)));
    }
    return rows;
}

PyObject *
cx_race_rows(const CxRace *race)
{
    if (race == NULL)
        Py_RETURN_NONE;
    PyObject *plans = plan_rows(race), *heats = PyList_New(0);
    bool failed = plans == NULL || heats == NULL;

    for (int c = 0; !failed && c < CX_TRIAL_CLASSES; c++) {
        const TimingRound *heat = &race->heats[c];
        if (heat->calls == 0 && heat->winner < 0)
            continue;
        PyObject *winner = heat->winner < 0 ? Py_None : race->names[heat->winner];
        PyObject *row = Py_BuildValue("(iOiN)", c, winner, heat->calls, heat_times(race, heat));
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
cx_set_beside(PyObject *module, PyObject *number)
{
    CxState *state = PyModule_GetState(module);
    long beside = PyLong_AsLong(number);

    if (beside < CX_BESIDE_nothing || beside > CX_BESIDE_ending)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "beside is 0, 1 or 2");
    state->beside = (int)beside;
    Py_RETURN_NONE;
}

PyObject *
cx_set_race_clock(PyObject *module, PyObject *clock)
{
    CxState *state = PyModule_GetState(module);
    Py_XSETREF(state->race_clock, clock == Py_None ? NULL : Py_NewRef(clock));
    Py_RETURN_NONE;
}
