/* Accounts: the time that calls of one kind have taken in the original function. */
#ifndef CX_ACCOUNT_H
#define CX_ACCOUNT_H

#include "replay/kind.h"

extern PyType_Spec cx_account_spec;

/* C runs the calls of an account in the original function until `spent` has reached `due`. Then Python code decides how the
 * next call runs. Python code also decides about a call of a larger size class, and about the first calls whose sizes differ
 * from those of the call before, because it learns which sizes vary. */
typedef struct CxAccount {
    PyObject_HEAD
    CxState *state;
    CxKind kind;
    double spent, due, best; /* seconds; best: of one call, 0 if none was timed */
    double total;            /* seconds of all calls; a build resets `spent` */
    double price;            /* seconds that the latest build takes, or took */
    Py_ssize_t calls;
    int builds;
    int changes;     /* number of calls whose sizes or ints differed from the call before; at most CX_MAX_CHANGES */
    bool is_awaited; /* a build is */
    bool is_unasked; /* Python code has not seen the calls, and learns no sizes from them */
    bool is_changed; /* the latest call was counted in `changes` */
    bool is_larger;  /* the sizes of the latest call were of a larger class than those before */
    PyObject *program, *why, *break_budget;
} CxAccount;

/* The accounts of one function, the one used latest first. */
enum { CX_MAX_ACCOUNTS = 64, CX_MAX_CHANGES = 4 };
typedef struct CxAccounts {
    int count;
    CxAccount *list[CX_MAX_ACCOUNTS];
} CxAccounts;

/* The account of a kind, borrowed, or NULL. Records the call's sizes. *asks: Python code decides about the call. */
CxAccount *cx_accounts_find(CxAccounts *accounts, const CxKind *kind, bool *asks);
/* A new reference: the account of a kind, made where there is none. If there are too many, the one used longest ago is
 * dropped. */
PyObject *cx_accounts_open(CxState *state, CxAccounts *accounts, const CxKind *kind);
void cx_accounts_clear(CxAccounts *accounts);
PyObject *cx_accounts_list(const CxAccounts *accounts);
/* Counts a call. True if it is not timed: after many short calls, only some are timed, and represent the others. */
bool cx_account_skips(CxAccount *account);

/* The time of one call, without nested calls that are timed, too. */
typedef struct CxStopwatch {
    int64_t began;
    CxTimed before;
} CxStopwatch;

CxStopwatch cx_stopwatch_begin(CxState *state);
/* account: of the call, which has run in the original function, or NULL: a miss, whose own time is the compiler's. */
void cx_stopwatch_end(CxState *state, const CxStopwatch *watch, CxAccount *account);

/* Nanoseconds that this thread has spent in misses: capturing and building. */
int64_t cx_time_in_misses(CxState *state);

/* step_clock(seconds): moves the clock that tests step; None: calls and builds are timed again. */
PyObject *cx_step_clock(PyObject *module, PyObject *seconds);

#endif
