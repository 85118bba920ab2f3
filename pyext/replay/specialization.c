/* A Specialization: guards, a program and the recipe of the result; a compiled function replays
 * it without Python. */
#include "replay/specialization.h"

#include "base/os.h"
#include "graph/methods.h"
#include "graph/size.h"
#include "state/array.h"
#include "state/device_array.h"
#include "state/docs.h"

struct CxSpecialization {
    PyObject_HEAD CxState *state;
    CxProgram *program; /* NULL if nothing is computed */
    CxGuards *guards;
    CxResult *result;
    CxInput *inputs;
    int ninputs;
    bool acts; /* making the result may have effects */
    bool has_regions; /* the program has loops or branches */
    CxNumpyTiming trials[CX_TRIAL_CLASSES]; /* only the first with constant sizes */
    CxAutotune *tuning;         /* trials of its program's plans, or NULL */
    /* Called once, by the first call that could be part of a trial; or NULL. */
    PyObject *autotune_requester;
    /* The following fields are changed with the GIL, never during a run. */
    CxAsked asked; /* float flags that NumPy has been asked about */
    Py_ssize_t hits;
    int16_t refusals; /* consecutive calls whose checks failed */
    bool times_calls; /* the trial of the latest call is open */
};

/* After that many failed checks in a row, only every 64th call is run. */
enum { MAX_REFUSALS = 8, NOW_AND_THEN = 64 };

PyObject *
cx_specialization_new(CxState *state, CxProgram *program, CxGuards *guards, CxResult *result,
                      int ninputs, CxInput *inputs, unsigned flags)
{
    PyTypeObject *type = (PyTypeObject *)state->specialization_type;
    CxSpecialization *s = (CxSpecialization *)type->tp_alloc(type, 0);

    if (s == NULL) {
        cx_guards_free(guards);
        cx_result_free(result);
        PyMem_Free(inputs);
        return NULL;
    }
    s->state = state;
    s->program = (CxProgram *)Py_XNewRef(program);
    s->guards = guards;
    s->result = result;
    s->acts = cx_result_acts(result);
    s->inputs = inputs;
    s->ninputs = ninputs;
    s->has_regions = program != NULL && cx_has_regions(program);
    (void)cx_flags_to_report(state, &s->asked, flags);
    cx_trials_set(s->trials, cx_trial_of(program, cx_guards_make(guards)));
    return (PyObject *)s;
}

/* Temporary arrays of one call; small ones are on the stack. */
typedef struct Scratch {
    PyObject **values, **objects, **buffers;
    void **inputs;
    const int64_t **sizes;
    int64_t *table;
    CiSlot *scalars, *elements, *slots;
    char *block;
    CxFailure failure; /* the guard that does not hold */
    bool has_run;      /* the program has; now its result is made */
    bool can_undo;     /* until then the run can be undone, and the original function run the call */
    bool is_numpys;    /* it is to, because NumPy has warnings to give */
    double small[192];
} Scratch;

static int
scratch_open(Scratch *r, const CxSpecialization *s)
{
    size_t nvalues = (size_t)cx_guards_count(s->guards), n = (size_t)s->ninputs,
           nbuffers = s->program ? (size_t)s->program->nbuffers : 0,
           ntable = (size_t)cx_guards_table(s->guards);
    size_t size = sizeof(CiSlot) * (2 * n + nbuffers) +
                  sizeof(void *) * (nvalues + 3 * n + nbuffers) + sizeof(int64_t) * ntable;
    char *at = (char *)r->small;

    r->block = NULL;
    r->has_run = r->can_undo = r->is_numpys = false;
    if (size > sizeof r->small && (at = r->block = PyMem_Malloc(size)) == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    r->scalars = (CiSlot *)at;
    r->elements = r->scalars + n;
    r->slots = r->elements + n;
    r->values = (PyObject **)(r->slots + nbuffers);
    r->objects = r->values + nvalues;
    r->buffers = r->objects + n;
    r->inputs = (void **)(r->buffers + nbuffers);
    r->sizes = (const int64_t **)(r->inputs + n);
    r->table = (int64_t *)(r->sizes + n);
    memset(r->buffers, 0, sizeof(PyObject *) * nbuffers);
    return 0;
}

static int
fill_inputs(CxSpecialization *s, Scratch *r)
{
    int nscalars = 0;
    bool is_on_device = cx_is_on_device(&s->program->options, s->program->backend);

    for (int k = 0; k < s->ninputs; k++) {
        const CxInput *input = &s->inputs[k];
        r->inputs[k] = NULL;
        r->sizes[k] = NULL;
        if (input->symbol >= 0) {
            r->objects[k] = NULL;
            r->scalars[nscalars++].i = r->table[input->symbol];
            continue;
        }
        PyObject *value = r->values[input->source];
        r->objects[k] = value;
        if (is_on_device && input->kind != CI_KIND_python &&
            cx_check_device_input(s->state, &s->program->options, value, s->program->graph->inputs[k]->device) < 0)
            return -1;
        if (input->kind == CI_KIND_array) {
            r->inputs[k] = PyArray_DATA((PyArrayObject *)value);
            r->sizes[k] = (const int64_t *)PyArray_DIMS((PyArrayObject *)value);
        } else if (input->kind == CI_KIND_python) {
            if (cx_slot_from(value, input->dtype, &r->scalars[nscalars++]) < 0)
                return -1;
        } else {
            if (cx_scalar_element(value, &r->elements[k]) < 0)
                return -1;
            r->inputs[k] = &r->elements[k];
        }
    }
    return 0;
}

/* NULL without an exception if NumPy is to run the call. */
static PyObject *
run_and_make(CxSpecialization *s, Scratch *r, CxRun *run)
{
    r->has_run = cx_program_run(run) == 0;
    r->is_numpys = r->has_run && r->can_undo && run->float_flags != 0 &&
                   cx_flags_to_report(s->state, &s->asked, run->float_flags) != 0;
    return r->has_run && !r->is_numpys ? cx_result_make(s->result, run, r->values, r->table) : NULL;
}

/* Makes arrays where the program needs pointers, for the Python wrapper. */
static PyObject *
run_wrapped(CxSpecialization *s, Scratch *r, CxRun *run)
{
    for (int k = 0; k < s->ninputs; k++) {
        const CxInput *input = &s->inputs[k];
        r->objects[k] = input->symbol >= 0 ? PyLong_FromLongLong(r->table[input->symbol])
                        : input->kind == CI_KIND_scalar ? PyArray_FromScalar(r->objects[k], NULL)
                                                        : Py_NewRef(r->objects[k]);
        if (r->objects[k] == NULL) {
            while (k-- > 0)
                Py_DECREF(r->objects[k]);
            return NULL;
        }
    }
    PyObject *result = run_and_make(s, r, run);
    for (int k = 0; k < s->ninputs; k++)
        Py_DECREF(r->objects[k]);
    return result;
}

/* Checks the guards, and decides who runs the call. Fills the values and the table of the room. */
static CxMatchResult
match(CxSpecialization *s, PyObject *const *args, Py_ssize_t nargs, Scratch *scratch)
{
    int fits = cx_guards_check(s->guards, args, nargs, scratch->values, scratch->table, &scratch->failure);

    if (fits != 1)
        return fits == CX_GUARDS_UNUSUAL ? CX_UNUSUAL : CX_NO_MATCH;
    s->hits++;
    if (s->refusals >= MAX_REFUSALS && s->hits % NOW_AND_THEN != 0)
        return CX_CHECK_FAILED;
    return CX_MATCH;
}

/* The size class of a call: by the number of elements of its arrays, or the largest of its ints, which loops may count to. */
static int
class_of(CxSpecialization *s, const Scratch *scratch)
{
    int64_t elements = 0;
    bool is_asked = s->trials[0].is_wanted || s->tuning != NULL;

    if (!is_asked || !s->program->is_symbolic)
        return 0;
    for (int k = 0; k < s->ninputs; k++)
        if (s->inputs[k].symbol < 0 && s->inputs[k].kind == CI_KIND_array)
            elements += PyArray_SIZE((PyArrayObject *)scratch->values[s->inputs[k].source]);
    for (int k = 0; s->has_regions && k < s->ninputs; k++)
        if (s->inputs[k].symbol >= 0 && scratch->table[s->inputs[k].symbol] > elements)
            elements = scratch->table[s->inputs[k].symbol];
    return cx_trial_class(elements);
}

/* True if a run of the program is seen elsewhere. */
static bool
writes_or_draws(const CxSpecialization *s)
{
    return s->program->writes || cx_draws_any(s->guards);
}

/* True if the original function must not run a call that has been run: it would write, draw or
 * store twice. */
static bool
happens_once(const CxSpecialization *s)
{
    return writes_or_draws(s) || s->acts;
}

/* True if a run that has failed may have had effects. */
static bool
may_have_acted(const CxSpecialization *s, const Scratch *scratch)
{
    return writes_or_draws(s) || (scratch->has_run && s->acts);
}

static bool
is_on_device(const CxSpecialization *s)
{
    return cx_is_on_device(&s->program->options, s->program->backend);
}

/* True if the original function may run the call. A check has failed; or the program's buffers,
 * which have the largest possible size, could not be allocated and there was no effect. Never
 * with device arrays, whose memory NumPy cannot read. */
static bool
may_answer_itself(const CxSpecialization *s, const Scratch *scratch)
{
    if (is_on_device(s))
        return false;
    return PyErr_ExceptionMatches(cx_exception(s->state, "CheckFailed")) ||
           (PyErr_ExceptionMatches(PyExc_MemoryError) && !may_have_acted(s, scratch));
}

/* Runs one plan of the program. */
static PyObject *
run_plan(CxSpecialization *s, CxProgram *plan, Scratch *scratch, unsigned *flags)
{
    CxRun run = {.program = plan, .inputs = scratch->inputs, .input_objects = scratch->objects,
                 .sizes = scratch->sizes, .table = scratch->table,
                 .scalars = scratch->scalars, .slots = scratch->slots,
                 .buffers = scratch->buffers, .shapes = cx_result_shapes(s->result)};

    PyObject *result = plan->wrapper != NULL ? run_wrapped(s, scratch, &run) : run_and_make(s, scratch, &run);
    *flags = run.float_flags;
    cx_run_close(&run);
    return result;
}

/* True if the plan failed for a reason that another plan need not have. */
static bool
has_plan_failed(const CxSpecialization *s)
{
    return PyErr_ExceptionMatches(PyExc_MemoryError) ||
           (PyErr_ExceptionMatches(s->state->base_error) &&
            !PyErr_ExceptionMatches(cx_exception(s->state, "CheckFailed")));
}

/* Like run_plan, within a trial. If a plan fails before any effect, the default plan runs the
 * call. */
static PyObject *
run_raced(CxSpecialization *s, int class, Scratch *scratch, unsigned *flags)
{
    CxTimedRun timed;

    cx_autotune_begin(s->tuning, class, &timed);
    bool is_own = timed.program == s->program;
    PyObject *result = run_plan(s, timed.program, scratch, flags);
    bool has_failed = result == NULL && !is_own && has_plan_failed(s);
    cx_autotune_end(s->tuning, (PyObject *)s, &timed,
                    has_failed       ? CX_RUN_FAILED
                    : result == NULL ? CX_RUN_NO_TIME
                                 : CX_RUN_DONE);
    if (!has_failed || may_have_acted(s, scratch))
        return result;
    PyErr_Clear();
    return run_plan(s, s->program, scratch, flags);
}

/* Saves what the run will change if that may be asked for, or NULL. Where warnings are given once a line, only the first
 * call's are: a copy costs time. */
static PyObject *
save_for_undo(CxSpecialization *s, Scratch *scratch)
{
    bool draws = cx_draws_any(s->guards),
         is_asked = happens_once(s) && !is_on_device(s) && (s->hits == 1 || cx_filters_are_strict(s->state));

    if (!is_asked && !(draws && s->program->may_stop))
        return NULL;
    const CiGraph *writes = is_asked && s->program->writes ? s->program->graph : NULL;
    PyObject *saved = cx_undo_save(s->guards, scratch->values, writes, s->inputs);
    scratch->can_undo = is_asked && saved != NULL;
    if (saved == NULL && writes != NULL && !PyErr_Occurred() && draws && s->program->may_stop)
        saved = cx_undo_save(s->guards, scratch->values, NULL, NULL);
    return saved;
}

/* Runs the program. *is_stopped: the result is NULL because the original function is to run the call: a check has failed, or
 * there are warnings to give; there was no effect. race: the size class of the trial, or -1 for the default plan. */
static PyObject *
run_program(CxSpecialization *s, Scratch *scratch, int tuning, unsigned *suspects, bool *is_stopped)
{
    PyObject *result = NULL, *saved = save_for_undo(s, scratch);
    unsigned flags = 0;

    if (PyErr_Occurred() || fill_inputs(s, scratch) < 0)
        goto done;
    result = tuning < 0 ? run_plan(s, s->program, scratch, &flags)
                      : run_raced(s, tuning, scratch, &flags);
    if (flags != 0 && result != NULL)
        *suspects = cx_flags_to_report(s->state, &s->asked, flags);
    if (*suspects != 0 && happens_once(s))
        *suspects |= CX_CALLED_ONCE;
    if (result == NULL && (scratch->is_numpys || may_answer_itself(s, scratch))) {
        PyErr_Clear();
        *is_stopped = cx_undo(saved) == 0;
    }
done:
    Py_XDECREF(saved);
    return result;
}

/* The size class of the race in which a call takes part, or -1. */
static int
race_of(CxSpecialization *s, int class)
{
    if (s->program->wrapper != NULL)
        return -1;
    if (s->autotune_requester != NULL)
        cx_autotune_request(&s->autotune_requester, (PyObject *)s);
    return s->tuning != NULL ? class : -1;
}

PyObject *
cx_specialization_call(CxSpecialization *s, PyObject *const *args, Py_ssize_t nargs,
                       CxOutcome *outcome)
{
    Scratch scratch;
    PyObject *result = NULL;
    bool is_stopped = false;
    int64_t began = s->times_calls ? ci_os_time_ns() : 0;

    *outcome = (CxOutcome){.answer = CX_NO_MATCH};
    if (scratch_open(&scratch, s) < 0)
        return NULL;
    outcome->answer = match(s, args, nargs, &scratch);
    bool fits = outcome->answer == CX_MATCH;
    if (fits)
        cx_guards_finish(s->guards, scratch.table);
    int class = fits ? class_of(s, &scratch) : 0;
    bool is_racing = fits && s->tuning != NULL && cx_autotune_is_open(s->tuning, class);
    /* The winner is compared with NumPy. A program that is profiled runs, and is not timed. */
    bool is_timed = fits && !is_racing && (s->program == NULL || s->program->wrapper == NULL);
    outcome->trial = is_timed ? &s->trials[class] : NULL;
    if (outcome->trial != NULL && cx_trial_chooses_numpy(outcome->trial))
        outcome->answer = CX_NUMPYS;
    else if (fits && s->program != NULL && happens_once(s) && cx_errstate_acts(s->state) &&
             !is_on_device(s)) /* where no float flags are set */
        outcome->answer = CX_CHECK_FAILED; /* its float flags become exceptions, which it may handle */
    bool runs = outcome->answer == CX_MATCH;
    bool is_open = outcome->trial != NULL && cx_trial_is_open(outcome->trial);
    bool pays = runs && s->program != NULL && s->program->on_paid != NULL;
    s->times_calls = fits ? is_open || pays : s->times_calls;
    if (runs) {
        result = s->program == NULL
                     ? cx_result_make(s->result, NULL, scratch.values, scratch.table)
                     : run_program(s, &scratch, race_of(s, class), &outcome->suspects, &is_stopped);
        s->refusals = !is_stopped ? 0 : s->refusals + (s->refusals < MAX_REFUSALS);
        if (is_stopped)
            outcome->answer = CX_CHECK_FAILED;
    }
    if (is_open && outcome->trial->wants_estimate && result != NULL)
        cx_trial_expect(outcome->trial, cx_run_seconds(s->program, scratch.sizes, scratch.scalars));
    cx_guards_drop(s->guards, scratch.values);
    PyMem_Free(scratch.block);
    if (runs && is_open)
        cx_trial_end(outcome->trial, false, began);
    if (pays && began != 0 && result != NULL && s->program->on_paid != NULL)
        cx_program_pay(s->program, began);
    return result;
}

PyObject *
cx_specialization_why(CxSpecialization *s, PyObject *const *args, Py_ssize_t nargs)
{
    Scratch scratch;

    if (scratch_open(&scratch, s) < 0)
        return NULL;
    int holds = cx_guards_check(s->guards, args, nargs, scratch.values, scratch.table, &scratch.failure);
    PyObject *why = holds == 1 ? Py_NewRef(Py_None) : NULL;
    if (holds != 1 && holds >= 0)
        why = cx_guards_why_not(s->guards, &scratch.failure, scratch.values, scratch.table);
    cx_guards_drop(s->guards, scratch.values);
    PyMem_Free(scratch.block);
    return why;
}

void
cx_specialization_set_words(CxSpecialization *s, PyObject *names, PyObject *where)
{
    cx_guards_set_words(s->guards, names, where);
}

/* ---- the type ---- */

/* No tp_clear: a cycle through it also contains the function, which has one. */
static int
spec_traverse(PyObject *self, visitproc visit, void *arg)
{
    CxSpecialization *s = (CxSpecialization *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(s->program);
    Py_VISIT(s->autotune_requester);
    int failed = cx_autotune_traverse(s->tuning, visit, arg);
    if (failed == 0)
        failed = cx_guards_traverse(s->guards, visit, arg);
    return failed ? failed : cx_result_traverse(s->result, visit, arg);
}

/* Guards are freed without clearing, because nothing calls a specialization that is collected. */
static void
spec_dealloc(PyObject *self)
{
    CxSpecialization *s = (CxSpecialization *)self;

    PyObject_GC_UnTrack(self);
    cx_guards_free(s->guards);
    cx_result_free(s->result);
    PyMem_Free(s->inputs);
    cx_autotune_free(s->tuning);
    Py_XDECREF(s->autotune_requester);
    Py_XDECREF(s->program);
    cx_object_free(self);
}

static PyObject *
spec_why_not(PyObject *self, PyObject *args)
{
    PyObject *bound = NULL;
    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "O!:why_not", &PyTuple_Type, &bound))
        return NULL;
    return cx_specialization_why((CxSpecialization *)self, ((PyTupleObject *)bound)->ob_item,
                                 PyTuple_GET_SIZE(bound));
}

static PyObject *
spec_is_other_kind(PyObject *self, PyObject *args)
{
    CxSpecialization *s = (CxSpecialization *)self;
    PyObject *bound = NULL;
    Scratch scratch;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "O!:is_other_kind", &PyTuple_Type, &bound) ||
        scratch_open(&scratch, s) < 0)
        return NULL;
    bool is_other = cx_guards_is_other_kind(s->guards, ((PyTupleObject *)bound)->ob_item,
                                            PyTuple_GET_SIZE(bound), scratch.values, scratch.table);
    cx_guards_drop(s->guards, scratch.values);
    PyMem_Free(scratch.block);
    return PyBool_FromLong(is_other);
}

bool
cx_specialization_is_inexact(const CxSpecialization *s)
{
    return s->program != NULL && !cx_block_is_exact(s->state, s->program->graph->body);
}

static bool
varies(const CxSpecialization *s)
{
    return s->program == NULL || s->program->is_symbolic;
}

#define GETTER(name, made)                                                                         \
    static PyObject *get_##name(PyObject *self, void *closure)                                     \
    {                                                                                              \
        const CxSpecialization *s = (const CxSpecialization *)self;                                \
        (void)closure;                                                                             \
        return made;                                                                               \
    }

GETTER(guards, cx_guards_texts(s->guards))
GETTER(recipe, cx_result_rows(s->guards, s->result))
GETTER(saved, cx_saved_parts(s->program, s->guards, s->result, s->ninputs, s->inputs))
GETTER(why_numpy, cx_trials_text(s->trials))
GETTER(times, varies(s) ? Py_NewRef(Py_None) : cx_trials_times(s->trials))
GETTER(is_trying, PyBool_FromLong(cx_trials_are_open(s->trials, varies(s))))
GETTER(is_inexact, PyBool_FromLong(cx_specialization_is_inexact(s)))
GETTER(autotune_rows, cx_autotune_rows(s->tuning))

/* A method that begins another comparison with NumPy. */
#define COMPARES(name, trial_of)                                                                   \
    static PyObject *spec_##name(PyObject *self, PyObject *unused)                                 \
    {                                                                                              \
        CxSpecialization *s = (CxSpecialization *)self;                                            \
        (void)unused;                                                                              \
        cx_trials_set(s->trials, trial_of(s->program));                                            \
        Py_RETURN_NONE;                                                                            \
    }

COMPARES(try_numpy, cx_trial_of_piece)
COMPARES(doubt, cx_trial_of_unbuilt)

static PyObject *
spec_compare(PyObject *self, PyObject *args)
{
    CxSpecialization *s = (CxSpecialization *)self;
    double numpy = 0, compiled = 0;
    int calls = 0;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "di|d:compare", &numpy, &calls, &compiled))
        return NULL;
    cx_trials_set(s->trials, cx_trial_after(s->program, numpy, calls, compiled));
    Py_RETURN_NONE;
}

static PyObject *
spec_request_autotuning(PyObject *self, PyObject *asker)
{
    CxSpecialization *s = (CxSpecialization *)self;
    if (s->program != NULL && s->tuning == NULL)
        Py_XSETREF(s->autotune_requester, Py_NewRef(asker));
    Py_RETURN_NONE;
}

/* A call in progress continues without it. */
static PyObject *
spec_autotune(PyObject *self, PyObject *args)
{
    CxSpecialization *s = (CxSpecialization *)self;
    PyObject *rows = NULL, *known = NULL, *done = NULL;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "O!O!O:autotune", &PyList_Type, &rows, &PyDict_Type, &known, &done))
        return NULL;
    if (s->program == NULL || s->tuning != NULL)
        return PyErr_Format(PyExc_ValueError, "autotune() was called before, or there is no program");
    s->tuning = cx_autotune_new(s->program, rows, known, done);
    return s->tuning != NULL ? Py_NewRef(Py_None) : NULL;
}

static PyMethodDef spec_methods[] = {
    CX_METHOD(Specialization, compare, spec_compare, METH_VARARGS),
    CX_METHOD(Specialization, request_autotuning, spec_request_autotuning, METH_O),
    CX_METHOD(Specialization, autotune, spec_autotune, METH_VARARGS),
    CX_METHOD(Specialization, try_numpy, spec_try_numpy, METH_NOARGS),
    CX_METHOD(Specialization, doubt, spec_doubt, METH_NOARGS),
    CX_METHOD(Specialization, why_not, spec_why_not, METH_VARARGS),
    CX_METHOD(Specialization, is_other_kind, spec_is_other_kind, METH_VARARGS),
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef spec_getset[] = {
    CX_GETTER(Specialization, autotune_rows, get_autotune_rows, NULL, NULL),
    CX_GETTER(Specialization, guards, get_guards, NULL, NULL),
    CX_GETTER(Specialization, recipe, get_recipe, NULL, NULL),
    CX_GETTER(Specialization, why_numpy, get_why_numpy, NULL, NULL),
    CX_GETTER(Specialization, is_inexact, get_is_inexact, NULL, NULL),
    CX_GETTER(Specialization, is_trying, get_is_trying, NULL, NULL),
    CX_GETTER(Specialization, times, get_times, NULL, NULL),
    CX_GETTER(Specialization, saved, get_saved, NULL, NULL),
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef spec_members[] = {
    CX_MEMBER(Specialization, hits, T_PYSSIZET, CxSpecialization, hits, READONLY),
    CX_MEMBER(Specialization, program, T_OBJECT, CxSpecialization, program, READONLY),
    {NULL, 0, 0, 0, NULL},
};

CX_TYPE(cx_specialization_spec, Specialization, CxSpecialization,
        Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
        CX_SLOT(Py_tp_dealloc, spec_dealloc), CX_SLOT(Py_tp_traverse, spec_traverse),
        CX_SLOT(Py_tp_methods, spec_methods), CX_SLOT(Py_tp_getset, spec_getset),
        CX_SLOT(Py_tp_members, spec_members));
