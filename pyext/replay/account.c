/* Accounts of the kinds of calls that no specialization fits. */
#include "replay/account.h"

#include "base/os.h"
#include "state/docs.h"

/* ---- accounts ---- */

static CxAccount *
use(CxAccounts *accounts, int number)
{
    CxAccount *found = accounts->list[number];

    memmove(accounts->list + 1, accounts->list, sizeof found * (size_t)number);
    return accounts->list[0] = found;
}

/* The account used longest ago that pays for a capture. Another kind can take it over with what was paid, so that
 * calls of any number of kinds ask Python as often as they have paid for. NULL: there is none. */
static CxAccount *
taken_over(CxAccounts *accounts, const CxKind *kind)
{
    for (int k = accounts->count - 1; k >= 0; k--) {
        CxAccount *account = accounts->list[k];
        if (account->program != NULL || account->is_awaited || !isfinite(account->due))
            continue;
        account->kind = (CxKind){kind->kind, kind->sizes, account->kind.class};
        account->calls = account->builds = account->changes = 0;
        account->total = account->best = 0;
        Py_CLEAR(account->break_budget);
        return use(accounts, k);
    }
    return NULL;
}

static CxAccount *
find(CxAccounts *accounts, const CxKind *kind)
{
    for (int k = 0; k < accounts->count; k++)
        if (accounts->list[k]->kind.kind == kind->kind)
            return use(accounts, k);
    return accounts->count == CX_MAX_ACCOUNTS ? taken_over(accounts, kind) : NULL;
}

CxAccount *
cx_accounts_find(CxAccounts *accounts, const CxKind *kind, bool *asks)
{
    CxAccount *account = find(accounts, kind);

    *asks = true;
    if (account == NULL)
        return NULL;
    bool differs = account->changes < CX_MAX_CHANGES && account->kind.sizes != kind->sizes;
    account->is_larger = kind->class > account->kind.class;
    account->changes += differs && !(account->is_unasked && account->changes > 0); /* one before Python learns sizes */
    account->is_changed = differs;
    account->kind.sizes = kind->sizes;
    account->kind.class = account->is_larger ? kind->class : account->kind.class;
    *asks = account->spent >= account->due || (!account->is_unasked && (account->is_larger || differs));
    return account;
}

PyObject *
cx_accounts_open(CxState *state, CxAccounts *accounts, const CxKind *kind)
{
    PyTypeObject *type = (PyTypeObject *)state->account_type;
    CxAccount *account = find(accounts, kind);

    if (account != NULL)
        return Py_NewRef((PyObject *)account);
    account = (CxAccount *)type->tp_alloc(type, 0);
    if (account == NULL)
        return NULL;
    account->state = state;
    account->kind = *kind;
    if (accounts->count == CX_MAX_ACCOUNTS)
        Py_DECREF((PyObject *)accounts->list[--accounts->count]);
    memmove(accounts->list + 1, accounts->list, sizeof account * (size_t)accounts->count++);
    accounts->list[0] = (CxAccount *)Py_NewRef((PyObject *)account);
    return (PyObject *)account;
}

void
cx_accounts_clear(CxAccounts *accounts)
{
    while (accounts->count > 0)
        Py_DECREF((PyObject *)accounts->list[--accounts->count]);
}

PyObject *
cx_accounts_list(const CxAccounts *accounts)
{
    PyObject *list = PyList_New(accounts->count);

    for (int k = 0; list != NULL && k < accounts->count; k++)
        PyList_SET_ITEM(list, k, Py_NewRef((PyObject *)accounts->list[k]));
    return list;
}

enum { MANY = 64, SAMPLE = 8 };    /* calls; one of so many is timed */
static const double SHORT = 10e-6; /* seconds: a call that takes less */

bool
cx_account_skips(CxAccount *account)
{
    bool skips = account->calls >= MANY && account->calls % SAMPLE != 0 &&
                 account->total < SHORT * (double)account->calls;

    account->calls += skips;
    return skips;
}

/* seconds: of the call without what other accounts have noted; whole: with it; is_clean: nothing was captured. */
static void
note(CxAccount *account, double seconds, double whole, bool is_clean)
{
    enum { FEW = 4, MOST = 16 }; /* calls; times the mean: more is the time of other threads and processes */
    if (!(seconds >= 0)) /* the clock was set back */
        return;
    double mean = account->calls > 0 ? account->total / (double)account->calls : 0;

    if (account->calls == 0 || (is_clean && whole < account->best))
        account->best = whole;
    double weight = account->calls >= MANY && mean < SHORT ? SAMPLE : 1;
    account->spent += weight * (account->calls < FEW ? seconds : fmin(seconds, MOST * mean));
    account->total += weight * seconds;
    account->calls++;
}

/* ---- nested calls ---- */

static int
thread_of_time(void)
{
    return (int)((PyThread_get_thread_ident() * 0x9e3779b97f4a7c15u >> 32) % CX_TIMED);
}

/* Tests step a clock of their own, which each look at it moves on by a microsecond. */
static int64_t
time_now(CxState *state)
{
    return state->clock == 0 ? ci_os_time_ns() : (state->clock += 1000);
}

PyObject *
cx_step_clock(PyObject *module, PyObject *seconds)
{
    CxState *state = PyModule_GetState(module);
    double step = seconds == Py_None ? 0 : PyFloat_AsDouble(seconds);

    if (step == -1.0 && PyErr_Occurred())
        return NULL;
    state->clock = seconds == Py_None ? 0 : state->clock + 1 + (int64_t)(1e9 * step);
    Py_RETURN_NONE;
}

int64_t
cx_time_in_misses(CxState *state)
{
    return state->timed[thread_of_time()].aside;
}

/* The processor time is read once in so many ns, because that takes longer than a look at the clock. */
enum { TICK = 1000000 };

CxStopwatch
cx_stopwatch_begin(CxState *state)
{
    CxTimed *timed = &state->timed[thread_of_time()];
    int64_t now = time_now(state);

    if (state->clock == 0 && now - timed->read > TICK) {
        timed->read = now;
        timed->worked = ci_os_thread_ns();
    }
    return (CxStopwatch){now, *timed};
}

/* At most the ns that a call has worked: a long one may have waited for other processes, or for a file. */
static int64_t
worked_at_most(const CxState *state, const CxStopwatch *watch, int64_t elapsed)
{
    int64_t worked = state->clock == 0 && elapsed > TICK ? ci_os_thread_ns() - watch->before.worked : -1;
    return worked >= 0 && worked < elapsed ? worked : elapsed;
}

void
cx_stopwatch_end(CxState *state, const CxStopwatch *watch, CxAccount *account)
{
    CxTimed *now = &state->timed[thread_of_time()];
    int64_t elapsed = time_now(state) - watch->began, aside = now->aside - watch->before.aside;
    int64_t own = elapsed - (now->noted - watch->before.noted);

    now->noted = watch->before.noted + elapsed;
    if (account == NULL)
        now->aside += own > 0 ? own : 0;
    else {
        int64_t most = worked_at_most(state, watch, elapsed), whole = elapsed - aside;
        own = own < most ? own : most;
        whole = whole < most ? whole : most;
        note(account, 1e-9 * (double)own, 1e-9 * (double)whole, aside == 0);
    }
}

/* ---- the type ---- */

static void
account_dealloc(PyObject *self)
{
    CxAccount *account = (CxAccount *)self;

    Py_XDECREF(account->program);
    Py_XDECREF(account->why);
    Py_XDECREF(account->break_budget);
    cx_object_free(self);
}

static PyObject *
account_note(PyObject *self, PyObject *seconds)
{
    double took = PyFloat_AsDouble(seconds);

    CX_ENTRY();
    if (took == -1.0 && PyErr_Occurred())
        return NULL;
    note((CxAccount *)self, took, took, true);
    Py_RETURN_NONE;
}

static PyObject *
account_call(PyObject *self, PyObject *args)
{
    CxState *state = ((CxAccount *)self)->state;
    PyObject *fn = NULL, *positional = NULL, *keywords = NULL;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "OO!O!", &fn, &PyTuple_Type, &positional, &PyDict_Type, &keywords))
        return NULL;
    CxStopwatch watch = cx_stopwatch_begin(state);
    PyObject *result = PyObject_Call(fn, positional, keywords);
    cx_stopwatch_end(state, &watch, (CxAccount *)self);
    return result;
}

static PyMethodDef account_methods[] = {
    CX_METHOD(Account, call, account_call, METH_VARARGS),
    CX_METHOD(Account, note, account_note, METH_O),
    {NULL, NULL, 0, NULL},
};

static PyMemberDef account_members[] = {
    CX_MEMBER(Account, spent, T_DOUBLE, CxAccount, spent, 0),
    CX_MEMBER(Account, due, T_DOUBLE, CxAccount, due, 0),
    CX_MEMBER(Account, best, T_DOUBLE, CxAccount, best, 0),
    CX_MEMBER(Account, total, T_DOUBLE, CxAccount, total, 0),
    CX_MEMBER(Account, price, T_DOUBLE, CxAccount, price, 0),
    CX_MEMBER(Account, builds, T_INT, CxAccount, builds, 0),
    CX_MEMBER(Account, changes, T_INT, CxAccount, changes, 0),
    CX_MEMBER(Account, calls, T_PYSSIZET, CxAccount, calls, 0),
    CX_MEMBER(Account, is_awaited, T_BOOL, CxAccount, is_awaited, 0),
    CX_MEMBER(Account, is_unasked, T_BOOL, CxAccount, is_unasked, 0),
    CX_MEMBER(Account, is_changed, T_BOOL, CxAccount, is_changed, 0),
    CX_MEMBER(Account, program, T_OBJECT, CxAccount, program, 0),
    CX_MEMBER(Account, why, T_OBJECT, CxAccount, why, 0),
    CX_MEMBER(Account, break_budget, T_OBJECT, CxAccount, break_budget, 0),
    {NULL, 0, 0, 0, NULL},
};

CX_TYPE(cx_account_spec, Account, CxAccount, Py_TPFLAGS_DISALLOW_INSTANTIATION,
        CX_SLOT(Py_tp_dealloc, account_dealloc), CX_SLOT(Py_tp_methods, account_methods),
        CX_SLOT(Py_tp_members, account_members));
