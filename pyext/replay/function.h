/* The struct of a compiled function, shared by call.c and function.c. */
#ifndef CX_FUNCTION_H
#define CX_FUNCTION_H

#include "replay/account.h"
#include "replay/body.h"
#include "replay/device_call.h"
#include "replay/driven.h"
#include "replay/signature.h"
#include "replay/specialization.h"
#include "replay/watched.h"

typedef struct CxFunction {
    PyObject_HEAD vectorcallfunc vectorcall;
    CxState *state;
    CxSignature signature;
    PyObject *fn, *miss, *table, *dict, *weakrefs;
    PyObject *renew;   /* what gives the parameters again when the function has others, or NULL */
    CxBody body;
    PyObject *plain;        /* keys of calls that fn answers: plain.c */
    CxAccounts accounts;    /* of kinds of calls that no specialization fits */
    CxDriven driven;        /* those that a driver answers */
    CxDeviceVariants twins;          /* what answers where arguments are arrays of a device */
    /* These, and `table`: replaced and counted with the lock; a call holds what it began with. */
    const PyObject *latest; /* the specialization that answered last: only compared */
    PyObject *where;        /* "model.py:12", for texts; or NULL */
    int stance; /* a CxStance, its own; -1: it is compiled whatever the stance is */
    bool is_counted; /* in `stats` */
    CxWatched watched;
    int renewals; /* how often it has got other parameters */
    Py_ssize_t calls, failed_checks, plain_calls;
    int unusual; /* calls whose sizes were unusual for what there is, and that returned */
} CxFunction;

/* call.c: a vectorcallfunc. */
PyObject *cx_function_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names);
/* The table without a specialization, or with it at the front; NULL with an exception. */
PyObject *cx_table_with(PyObject *table, PyObject *spec, bool at_front);

#endif
