/* A call of a compiled function. It binds arguments to parameters, tries the specializations by
 * their guards, and calls Python (miss) if none matches. The table of specializations is an
 * immutable tuple that is replaced as a whole, so a call in progress keeps its own. */
#include "replay/function.h"

#include "base/os.h"
#include "state/stance.h"

/* One call. It keeps the parameters with which it was bound, because code that it runs may
 * refresh the function. */
typedef struct Call {
    PyObject *const *args; /* as given */
    size_t nargsf;
    PyObject *names;
    PyObject *const *bound;
    int count, renewals, stance;
} Call;

/* after that many unusual calls they are compiled */
enum { MAX_UNUSUAL = 8 };

/* ---- the table ---- */

PyObject *
cx_table_with(PyObject *table, PyObject *spec, bool at_front)
{
    Py_ssize_t n = PyTuple_GET_SIZE(table), at = 0;
    bool is_there = false;

    for (Py_ssize_t k = 0; k < n; k++)
        is_there |= PyTuple_GET_ITEM(table, k) == spec;
    PyObject *made = PyTuple_New(n - is_there + at_front);
    if (made != NULL && at_front)
        PyTuple_SET_ITEM(made, at++, Py_NewRef(spec));
    for (Py_ssize_t k = 0; made != NULL && k < n; k++)
        if (PyTuple_GET_ITEM(table, k) != spec)
            PyTuple_SET_ITEM(made, at++, Py_NewRef(PyTuple_GET_ITEM(table, k)));
    return made;
}

/* Moves a specialization that ran two calls in a row to the front. Alternating calls do not
 * reorder the table. */
static void
note_use(CxFunction *f, PyObject *table, Py_ssize_t number)
{
    PyObject *spec = PyTuple_GET_ITEM(table, number);

    if (number != 0 && f->latest == spec && f->table == table) {
        PyObject *moved = cx_table_with(table, spec, true);
        if (moved != NULL)
            Py_SETREF(f->table, moved);
        else
            PyErr_Clear();
    }
    f->latest = spec;
}

/* ---- calls ---- */

/* True if the original function can take the arguments. Those of a function that is compiled in
 * every stance are on a device, where NumPy can neither read nor write them. */
static bool
takes_arguments(const CxFunction *f)
{
    return f->stance >= 0;
}

/* Runs the original function. CheckFailed if it cannot take the arguments: the caller repeats the
 * call with copies on the host. */
static PyObject *
call_original(const CxFunction *f, const Call *call)
{
    if (takes_arguments(f))
        return PyObject_Vectorcall(f->fn, call->args, call->nargsf, call->names);
    PyErr_SetString(cx_exception(f->state, "CheckFailed"), "NumPy has to run the call");
    return NULL;
}

/* Like call_original; the call is counted. */
static PyObject *
call_itself(CxFunction *f, const Call *call)
{
    f->plain_calls++;
    return call_original(f, call);
}

/* NumPy gives the warnings for a run that raised float flags: the original function runs again
 * in NumPy. Where flags become exceptions the function may handle them, so its own result counts.
 * For a call that cannot be repeated, cinductor gives the warning. */
static PyObject *
diagnose(CxFunction *f, const Call *call, PyObject *result, CxSpecialization *spec,
         unsigned suspects)
{
    PyObject *same = NULL;

    if (suspects & CX_CALLED_ONCE) {
        PyObject *job = PyMethod_Check(f->miss) ? PyMethod_GET_SELF(f->miss) : NULL;
        if (job == NULL)
            return result;
        same = PyObject_CallMethod(job, "warn_of_flags", "OI", (PyObject *)spec,
                                   suspects & ~(unsigned)CX_CALLED_ONCE);
    } else
        same = call_original(f, call);
    bool is_answer = same != NULL && !(suspects & CX_CALLED_ONCE) && cx_errstate_is_strict(f->state);
    if (same == NULL || is_answer)
        Py_SETREF(result, Py_XNewRef(same));
    Py_XDECREF(same);
    return result;
}

static PyObject *
call_miss_handler(CxFunction *f, const Call *call)
{
    Py_ssize_t nargs = PyVectorcall_NARGS(call->nargsf);
    PyObject *tuple = PyTuple_New(call->count), *positional = PyTuple_New(nargs),
             *keywords = PyDict_New(), *result = NULL;

    if (tuple == NULL || positional == NULL || keywords == NULL)
        goto done;
    for (int k = 0; k < call->count; k++)
        PyTuple_SET_ITEM(tuple, k, Py_NewRef(call->bound[k]));
    for (Py_ssize_t k = 0; k < nargs; k++)
        PyTuple_SET_ITEM(positional, k, Py_NewRef(call->args[k]));
    for (Py_ssize_t k = 0; call->names != NULL && k < PyTuple_GET_SIZE(call->names); k++)
        if (PyDict_SetItem(keywords, PyTuple_GET_ITEM(call->names, k), call->args[nargs + k]) < 0)
            goto done;
    PyObject *four[] = {(PyObject *)f, tuple, positional, keywords};
    CxStopwatch watch = cx_stopwatch_begin(f->state);
    result = PyObject_Vectorcall(f->miss, four, 4, NULL);
    cx_stopwatch_end(f->state, &watch, NULL);
    if (result == NULL)
        cx_keep_given_traceback();
done:
    Py_XDECREF(tuple);
    Py_XDECREF(positional);
    Py_XDECREF(keywords);
    return result;
}

/* The original function, whose time its account notes. */
static PyObject *
call_timed(CxFunction *f, CxAccount *account, const Call *call)
{
    if (cx_account_skips(account))
        return call_itself(f, call);
    Py_INCREF((PyObject *)account);
    CxStopwatch watch = cx_stopwatch_begin(f->state);
    PyObject *result = call_itself(f, call);

    cx_stopwatch_end(f->state, &watch, account);
    Py_DECREF((PyObject *)account);
    return result;
}

/* Lets NumPy run the next calls like this one, unless a program could give other bits. */
static void
lend(CxFunction *f, CxNumpyTiming *trial, const Call *call)
{
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(f->table); k++)
        if (cx_specialization_is_inexact((CxSpecialization *)PyTuple_GET_ITEM(f->table, k)))
            return;
    f->lent = (CxLent){cx_kind_of(call->bound, call->count), f->table, cx_trial_lend(trial)};
}

/* When a timed call began, later by what compiled functions in it have since spent in capturing and building, which is
 * `misses` before. 0: it is not timed. */
static int64_t
moved(CxFunction *f, int64_t began, int64_t misses)
{
    return began == 0 ? 0 : began + cx_time_in_misses(f->state) - misses;
}

/* Runs the original function instead of a program or dispatcher. */
static PyObject *
call_numpy(CxFunction *f, CxNumpyTiming *trial, const Call *call)
{
    lend(f, trial, call);
    int64_t began = cx_trial_is_open(trial) ? ci_os_time_ns() : 0, misses = cx_time_in_misses(f->state);
    PyObject *result = call_itself(f, call);

    if (result != NULL)
        cx_trial_end(trial, true, moved(f, began, misses));
    return result;
}

/* The dispatcher, or the original function where that is faster. */
static PyObject *
call_split(CxFunction *f, CxNumpyTiming *trial, const Call *call)
{
    if (cx_trial_chooses_numpy(trial))
        return call_numpy(f, trial, call);
    int64_t began = cx_trial_is_open(trial) ? ci_os_time_ns() : 0, misses = cx_time_in_misses(f->state);
    PyObject *result = cx_split_calls_run(&f->split_calls, call->args, call->nargsf, call->names);

    if (result != NULL)
        cx_trial_end(trial, false, moved(f, began, misses));
    return result;
}

/* A call of a kind that Python has not been asked about. asked: its bound, or 0. */
static PyObject *
call_unasked(CxFunction *f, CxAccount *account, const Call *call, double asked)
{
    CxBound *bound = (CxBound *)Py_XNewRef(f->first_calls.bound);
    double before = account->total;

    Py_INCREF((PyObject *)account);
    PyObject *result = call_timed(f, account, call);
    if (bound != NULL)
        cx_bound_note(bound, asked, account->total - before);
    if (result != NULL && account->is_unasked && account->spent >= account->due &&
        cx_first_calls_tell(&f->first_calls, (PyObject *)account, call->bound, call->count) < 0)
        Py_CLEAR(result);
    Py_DECREF((PyObject *)account);
    Py_XDECREF((PyObject *)bound);
    return result;
}

/* The account of a kind that is new. NULL without an exception: Python is asked about the call. */
static CxAccount *
begin_account(CxFunction *f, const CxKind *kind, double asked)
{
    CxAccount *account = asked < 0 ? NULL : (CxAccount *)cx_accounts_open(f->state, &f->accounts, kind);

    if (account == NULL) {
        PyErr_Clear();
        return NULL;
    }
    Py_DECREF((PyObject *)account); /* the function has it */
    account->due = f->first_calls.due;
    account->is_unasked = true;
    return account;
}

static PyObject *
call_miss(CxFunction *f, const Call *call)
{
    bool asks = true;

    if (f->split_calls.count + f->accounts.count == 0 && f->first_calls.bound == NULL)
        return call_miss_handler(f, call);
    CxKind kind = cx_kind_of(call->bound, call->count);
    CxNumpyTiming *trial = cx_split_calls_trial(&f->split_calls, &kind);
    if (trial != NULL)
        return call_split(f, trial, call);
    CxAccount *account = cx_accounts_find(&f->accounts, &kind, &asks);
    double asked = 0;
    if (account == NULL || (account->is_unasked && account->is_larger && !asks)) {
        asked = cx_first_calls_bound(&f->first_calls, call->bound, call->count);
        account = account == NULL ? begin_account(f, &kind, asked) : account;
        asks = asked < 0 || account == NULL;
    }
    if (!asks && account->is_unasked)
        return call_unasked(f, account, call, asked);
    return asks ? call_miss_handler(f, call) : call_timed(f, account, call);
}

static PyObject *
refuse(CxFunction *f, const Call *call, PyObject *table)
{
    PyObject *why = NULL;
    if (PyTuple_GET_SIZE(table) != 0)
        why = cx_specialization_why((CxSpecialization *)PyTuple_GET_ITEM(table, 0), call->bound,
                                    call->count);
    if (!PyErr_Occurred())
        PyErr_Format(cx_exception(f->state, "RecompileError"),
                     "the stance is fail_on_recompile, and %s%S; cinductor.set_stance('default') "
                     "compiles it",
                     why ? "" : "nothing was compiled before of ", why ? why : f->fn);
    Py_XDECREF(why);
    return NULL;
}

/* True if this call is like the latest one that NumPy ran. Under fail_on_recompile guards decide. */
static bool
is_lent(CxFunction *f, const Call *call)
{
    if (f->lent.count == 0)
        return false;
    CxKind kind = cx_kind_of(call->bound, call->count);
    bool is_like = f->lent.table == f->table && cx_kind_is(&f->lent.kind, &kind) &&
                   call->stance != CX_STANCE_fail_on_recompile;
    f->lent.count = is_like ? f->lent.count - 1 : 0;
    return is_like;
}

/* Handles a call that no specialization matches. */
static PyObject *
call_unknown(CxFunction *f, const Call *call, PyObject *table)
{
    if (f->renewals != call->renewals) /* a guard ran user code that changed the function */
        return Py_NewRef(f->state->missing);
    if (call->stance == CX_STANCE_eager_on_recompile)
        return call_itself(f, call);
    return call->stance == CX_STANCE_fail_on_recompile ? refuse(f, call, table)
                                                       : call_miss(f, call);
}

/* Makes one attempt. MISSING: the table changed while the call was being compiled, and the
 * caller tries again. */
static PyObject *
call_once(CxFunction *f, const Call *call)
{
    if (is_lent(f, call))
        return call_itself(f, call);
    PyObject *table = Py_NewRef(f->table), *result = NULL;
    CxSpecialization *spec = NULL;
    CxOutcome outcome = {.answer = CX_NO_MATCH};
    bool is_unusual = false;

    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(table) && outcome.answer < CX_MATCH; k++) {
        spec = (CxSpecialization *)PyTuple_GET_ITEM(table, k);
        result = cx_specialization_call(spec, call->bound, call->count, &outcome);
        if (outcome.answer >= CX_MATCH)
            note_use(f, table, k);
        is_unusual |= outcome.answer == CX_UNUSUAL;
        if (result == NULL && PyErr_Occurred())
            goto done;
    }
    if (outcome.answer == CX_NUMPYS) {
        result = call_numpy(f, outcome.trial, call);
        goto done;
    }
    is_unusual = is_unusual && outcome.answer < CX_MATCH && f->unusual < MAX_UNUSUAL && takes_arguments(f);
    f->failed_checks += is_unusual || outcome.answer == CX_CHECK_FAILED;
    if (is_unusual || outcome.answer == CX_CHECK_FAILED) {
        result = call_original(f, call);
        f->unusual += is_unusual && result != NULL;
    } else if (outcome.answer == CX_MATCH)
        result = outcome.suspects != 0 && result != NULL
                     ? diagnose(f, call, result, spec, outcome.suspects)
                     : result;
    else
        result = call_unknown(f, call, table);
done:
    Py_DECREF(table);
    return result;
}

/* ---- assignment to the function's code and defaults ---- */

/* Reads the parameters again; `refresh` drops the specializations. */
static int
refresh(CxFunction *f)
{
    PyObject *names = NULL, *kinds = NULL, *defaults = NULL, *made = NULL;
    CxSignature fresh = {0};

    cx_body_note(&f->body, f->body.function);
    cx_device_variants_clear(&f->variants);
    if (f->refresh == NULL)
        return 0;
    made = PyObject_CallOneArg(f->refresh, (PyObject *)f);
    if (made == NULL ||
        !PyArg_ParseTuple(made, "O!O!O!", &PyTuple_Type, &names, &PyTuple_Type, &kinds,
                          &PyTuple_Type, &defaults) ||
        cx_signature_open(&fresh, names, kinds, defaults, f->state->missing) < 0) {
        Py_XDECREF(made);
        return -1;
    }
    cx_signature_close(&f->signature);
    f->signature = fresh;
    f->renewals++;
    Py_DECREF(made);
    return 0;
}

/* The stance of the context or the process; if that is the default, the function's own. -1 with
 * an exception. */
static int
stance_of(CxFunction *f)
{
    if (f->stance < 0)
        return CX_STANCE_default;
    int is_watched = cx_is_watched(f->state, &f->watched, f->body.code, f->miss);
    if (is_watched != 0)
        return is_watched < 0 ? -1 : CX_STANCE_force_eager;
    int stance = cx_stance(f->state);
    return stance == CX_STANCE_default ? f->stance : stance;
}

/* Handles arguments that must first be bound to parameters. */
static PyObject *
call_bound(CxFunction *f, Call *call)
{
    PyObject *small[16] = {NULL}, **bound = small, *result = NULL;

    if (call->count > 16 && (bound = PyMem_Calloc((size_t)call->count, sizeof *bound)) == NULL)
        return PyErr_NoMemory();
    call->bound = bound;
    int status = cx_signature_bind(&f->signature, call->args, PyVectorcall_NARGS(call->nargsf),
                                   call->names, bound);
    if (status > 0)
        result = call_once(f, call);
    else if (status == 0) /* raises the TypeError with the message */
        result = PyObject_Vectorcall(f->fn, call->args, call->nargsf, call->names);
    for (int k = 0; k < call->count; k++)
        Py_XDECREF(bound[k]);
    if (bound != small)
        PyMem_Free(bound);
    return result;
}

static PyObject *
call_compiled(CxFunction *f, Call *call)
{
    Py_ssize_t nargs = PyVectorcall_NARGS(call->nargsf);
    PyObject *result = NULL;

    if (!cx_body_is_same(&f->body, &f->signature) && refresh(f) < 0)
        return NULL;
    call->count = f->signature.count;
    call->renewals = f->renewals;
    if (call->names != NULL || nargs != call->count || f->signature.npositional != call->count)
        return call_bound(f, call);
    /* All arguments are positional and complete: the caller's references are enough. */
    if (f->variants.count > 0 &&
        cx_device_variants_call(f->state, &f->variants, f->miss, call->args, nargs, &result))
        return result;
    call->bound = call->args;
    return call_once(f, call);
}

PyObject *
cx_function_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names)
{
    CxFunction *f = (CxFunction *)self;
    Call call = {.args = args, .nargsf = nargsf, .names = names};
    PyObject *result;

    CX_ENTRY();
    call.stance = stance_of(f);
    f->calls++;
    if (call.stance < 0)
        return NULL;
    if (call.stance == CX_STANCE_force_eager)
        return call_itself(f, &call);
    while ((result = call_compiled(f, &call)) == f->state->missing)
        Py_DECREF(result);
    return result;
}
