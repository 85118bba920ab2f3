/* Binds arguments to parameters like Python. */
#ifndef CX_SIGNATURE_H
#define CX_SIGNATURE_H

#include "state/state.h"

typedef struct CxSignature {
    PyObject *names, *defaults; /* tuples */
    PyObject *missing;          /* borrowed; marks a parameter without a default */
    uint8_t *kind;
    int count;
    int npositional;            /* parameters that positional arguments can fill */
    int var_args, var_keywords; /* index of the parameter, or -1 */
} CxSignature;

/* Tuples with an item for each parameter; kinds are those of inspect. -1 with an exception; it
 * must be closed also then. */
int cx_signature_open(CxSignature *signature, PyObject *names, PyObject *kinds, PyObject *defaults,
                      PyObject *missing);
/* True if the parameter can be passed by keyword. */
bool cx_signature_is_named(const CxSignature *signature, int number);
/* Releases references; afterwards it binds nothing. */
void cx_signature_clear(CxSignature *signature);
void cx_signature_close(CxSignature *signature);
/* Fills bound with new references. 1: bound; 0: the call is invalid, and Python will raise; -1:
 * an exception. */
int cx_signature_bind(const CxSignature *signature, PyObject *const *args, Py_ssize_t nargs,
                      PyObject *names, PyObject **bound);

#endif
