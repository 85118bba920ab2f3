/* Accounts of the kinds of calls that no specialization fits. A kind is a digest: two kinds that share one also
 * share an account, which changes when a call is compiled, and nothing else. */
#include "replay/account.h"

#include "base/os.h"
#include "state/docs.h"

/* ---- kinds ---- */

enum { DEEPEST = 4, MOST_ITEMS = 8 };

typedef struct Walk {
    CxKind kind;
    double largest;
} Walk;

static uint64_t
extended(uint64_t digest, uint64_t value)
{
    digest = (digest ^ value) * 0x9e3779b97f4a7c15u;
    return digest ^ digest >> 29;
}

static void
add_size(Walk *w, int64_t size)
{
    w->kind.sizes = extended(w->kind.sizes, (uint64_t)size);
    w->largest = fmax(w->largest, fabs((double)size));
}

static void
add_array(Walk *w, PyArrayObject *a)
{
    const PyArray_Descr *dtype = PyArray_DESCR(a);

    w->kind.kind = extended(w->kind.kind, (uint64_t)(unsigned)dtype->type_num);
    w->kind.kind = extended(w->kind.kind, (uint64_t)(unsigned char)dtype->byteorder);
    w->kind.kind = extended(w->kind.kind, (uint64_t)(unsigned)PyArray_FLAGS(a));
    for (int k = 0; k < PyArray_NDIM(a); k++) {
        npy_intp size = PyArray_DIM(a, k);
        w->kind.kind = extended(w->kind.kind, size < 2 ? (uint64_t)size : 2);
        add_size(w, size);
    }
    w->largest = fmax(w->largest, (double)PyArray_SIZE(a));
}

static void add_value(Walk *w, PyObject *value, int depth);

/* The first items: those of a long container may differ from call to call. */
static void
add_items(Walk *w, PyObject *value, int depth)
{
    Py_ssize_t count = PySequence_Fast_GET_SIZE(value);

    if (PyTuple_CheckExact(value))
        w->kind.kind = extended(w->kind.kind, (uint64_t)count);
    add_size(w, count);
    for (Py_ssize_t k = 0; k < count && k < MOST_ITEMS && depth < DEEPEST; k++)
        add_value(w, PySequence_Fast_GET_ITEM(value, k), depth + 1);
}

static void
add_dict(Walk *w, PyObject *dict, int depth)
{
    Py_ssize_t at = 0;
    PyObject *name = NULL, *item = NULL;

    add_size(w, PyDict_GET_SIZE(dict));
    for (int k = 0; k < MOST_ITEMS && depth < DEEPEST && PyDict_Next(dict, &at, &name, &item); k++) {
        add_value(w, name, depth + 1);
        add_value(w, item, depth + 1);
    }
}

/* Runs no code of the user's. */
static void
add_value(Walk *w, PyObject *value, int depth)
{
    PyTypeObject *cls = Py_TYPE(value);
    bool is_itself = value == Py_None || PyBool_Check(value) || PyType_Check(value) ||
                     cls == &PyFunction_Type || cls == &PyCFunction_Type;

    w->kind.kind = extended(w->kind.kind, (uint64_t)(uintptr_t)(is_itself ? (void *)value : (void *)cls));
    if (cls == &PyArray_Type)
        add_array(w, (PyArrayObject *)value);
    else if (cls == &PyLong_Type) {
        int overflow = 0;
        long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
        add_size(w, overflow ? INT64_MAX : number);
    } else if (cls == &PyUnicode_Type)
        w->kind.kind = extended(w->kind.kind, (uint64_t)PyObject_Hash(value));
    else if (cls == &PyTuple_Type || cls == &PyList_Type)
        add_items(w, value, depth);
    else if (cls == &PyDict_Type)
        add_dict(w, value, depth);
}

CxKind
cx_kind_of(PyObject *const *bound, int count)
{
    Walk walk = {.largest = 1};

    for (int k = 0; k < count; k++)
        add_value(&walk, bound[k], 0);
    walk.kind.class = ilogb(walk.largest);
    return walk.kind;
}

/* ---- accounts ---- */

static CxAccount *
find(CxAccounts *accounts, uint64_t kind)
{
    for (int k = 0; k < accounts->count; k++) {
        CxAccount *found = accounts->list[k];
        if (found->kind.kind != kind)
            continue;
        memmove(accounts->list + 1, accounts->list, sizeof found * (size_t)k);
        return accounts->list[0] = found;
    }
    return NULL;
}

CxAccount *
cx_accounts_find(CxAccounts *accounts, const CxKind *kind, bool *asks)
{
    CxAccount *account = find(accounts, kind->kind);

    *asks = true;
    if (account == NULL)
        return NULL;
    bool is_new_size = !account->varies && account->kind.sizes != kind->sizes;
    bool is_larger = kind->class > account->kind.class;
    account->varies |= is_new_size;
    account->kind.class = is_larger ? kind->class : account->kind.class;
    *asks = account->spent >= account->due || is_larger || (is_new_size && account->is_awaited);
    return account;
}

PyObject *
cx_accounts_open(CxState *state, CxAccounts *accounts, const CxKind *kind)
{
    PyTypeObject *type = (PyTypeObject *)state->account_type;
    CxAccount *account = find(accounts, kind->kind);

    if (account != NULL)
        return Py_NewRef((PyObject *)account);
    account = (CxAccount *)type->tp_alloc(type, 0);
    if (account == NULL)
        return NULL;
    account->state = state;
    account->kind = *kind;
    if (accounts->count == CX_MOST_ACCOUNTS)
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

CxStopwatch
cx_stopwatch_begin(const CxState *state)
{
    return (CxStopwatch){ci_os_time_ns(), state->timed[thread_of_time()]};
}

void
cx_stopwatch_end(CxState *state, const CxStopwatch *watch, CxAccount *account)
{
    CxTimed *now = &state->timed[thread_of_time()];
    int64_t elapsed = ci_os_time_ns() - watch->began, aside = now->aside - watch->before.aside;
    int64_t own = elapsed - (now->noted - watch->before.noted);

    now->noted = watch->before.noted + elapsed;
    if (account == NULL)
        now->aside += own > 0 ? own : 0;
    else
        note(account, 1e-9 * (double)own, 1e-9 * (double)(elapsed - aside), aside == 0);
}

/* ---- the type ---- */

static void
account_dealloc(PyObject *self)
{
    CxAccount *account = (CxAccount *)self;

    Py_XDECREF(account->program);
    Py_XDECREF(account->why);
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
    CX_MEMBER(Account, calls, T_PYSSIZET, CxAccount, calls, 0),
    CX_MEMBER(Account, varies, T_BOOL, CxAccount, varies, 0),
    CX_MEMBER(Account, is_awaited, T_BOOL, CxAccount, is_awaited, 0),
    CX_MEMBER(Account, program, T_OBJECT, CxAccount, program, 0),
    CX_MEMBER(Account, why, T_OBJECT, CxAccount, why, 0),
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot account_slots[] = {
    CX_SLOT(Py_tp_dealloc, account_dealloc),
    CX_SLOT(Py_tp_methods, account_methods),
    CX_SLOT(Py_tp_members, account_members),
    {Py_tp_doc, CX_DOC_Account},
    {0, NULL},
};

PyType_Spec cx_account_spec =
    CX_SPEC("Account", CxAccount, Py_TPFLAGS_DISALLOW_INSTANTIATION, account_slots);
