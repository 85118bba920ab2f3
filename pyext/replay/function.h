/* The struct of a compiled function, shared by call.c and function.c. */
#ifndef CX_FUNCTION_H
#define CX_FUNCTION_H

#include "replay/account.h"
#include "replay/first_calls.h"
#include "replay/function_body.h"
#include "replay/device_call.h"
#include "replay/split_calls.h"
#include "replay/signature.h"
#include "replay/specialization.h"
#include "replay/watched.h"

/* Calls of the kind for which NumPy was faster than the program. fn runs the next `count` of them without checking guards.
 * The results are right in any case, because fn is the original function; the guards are checked again after these calls. */
typedef struct CxLent {
    CxKind kind;
    const PyObject *table; /* the function's table at that time; only compared */
    int count;
} CxLent;

typedef struct CxFunction {
    PyObject_HEAD vectorcallfunc vectorcall;
    CxState *state;
    CxSignature signature;
    PyObject *fn, *miss, *table, *dict, *weakrefs;
    PyObject *refresh;   /* returns the parameters after code or defaults were assigned, or NULL */
    CxBody body;
    CxLent lent;
    CxFirstCalls first_calls;
    CxAccounts accounts;    /* for the kinds of calls that no specialization accepts */
    CxSplitCalls split_calls;        /* calls that a dispatcher runs */
    CxDeviceVariants variants;          /* variants for arguments that are device arrays */
    /* `latest` and `table` are replaced and counted with the GIL; a call holds a reference to
     * its own. */
    const PyObject *latest; /* the specialization that ran the last call; only compared */
    PyObject *where;        /* "model.py:12", for texts; or NULL */
    int stance; /* the function's own CxStance; -1: compiled in every stance */
    bool is_counted; /* in `stats` */
    CxWatched watched;
    int renewals; /* how often its parameters were refreshed */
    Py_ssize_t calls, failed_checks, plain_calls;
    int unusual; /* calls that returned but had unusual sizes for the specializations */
} CxFunction;

/* call.c: a vectorcallfunc. */
PyObject *cx_function_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names);
/* Returns the table without a specialization, or with it at the front; NULL with an exception. */
PyObject *cx_table_with(PyObject *table, PyObject *spec, bool at_front);

#endif
