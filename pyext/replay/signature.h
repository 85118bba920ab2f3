/* Binds arguments to parameters like Python. */
#ifndef CX_SIGNATURE_H
#define CX_SIGNATURE_H

#include "state/state.h"

typedef struct CxSignature {
    PyObject *names, *defaults; /* tuples */
    PyObject *missing;          /* borrowed: the default of a parameter that has none */
    uint8_t *kind;
    int count;
    int npositional;            /* parameters that positional arguments can fill */
    int var_args, var_keywords; /* parameter number, or -1 */
} CxSignature;

/* Tuples with an item for each parameter; kinds are inspect's. -1 with an exception: to be closed
 * none the less. */
int cx_signature_open(CxSignature *signature, PyObject *names, PyObject *kinds, PyObject *defaults,
                      PyObject *missing);
/* Can the parameter be given by its name alone? */
bool cx_signature_is_named(const CxSignature *signature, int number);
void cx_signature_clear(CxSignature *signature); /* of what may hold others: it binds nothing */
void cx_signature_close(CxSignature *signature);
/* Fills bound with new references. 1: bound; 0: Python itself will say what is wrong; -1: an
 * exception. */
int cx_signature_bind(const CxSignature *signature, PyObject *const *args, Py_ssize_t nargs,
                      PyObject *names, PyObject **bound);

#endif
