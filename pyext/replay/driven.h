/* Calls that a function's dispatcher runs, recognised without Python code. */
#ifndef CX_DRIVEN_H
#define CX_DRIVEN_H

#include "replay/kind.h"

typedef struct CxDriven {
    CxKinds kinds;          /* none without a driver */
    PyObject *driver, *fix; /* both NULL, or none */
} CxDriven;

/* fix(error) corrects the traceback of an exception from the dispatcher. */
void cx_driven_note(CxDriven *driven, PyObject *driver, PyObject *fix, const CxKind *kind);
void cx_driven_clear(CxDriven *driven);
int cx_driven_visit(const CxDriven *driven, visitproc visit, void *arg);
/* Calls the dispatcher, for a call of one of its kinds. */
PyObject *cx_driven_call(const CxDriven *driven, PyObject *const *args, size_t nargsf, PyObject *names);

#endif
