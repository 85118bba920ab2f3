/* The Python function that a callable runs; its code and defaults may be assigned. */
#ifndef CX_FUNCTION_BODY_H
#define CX_FUNCTION_BODY_H

#include "replay/signature.h"

typedef struct CxBody {
    PyObject *function, *code, *defaults, *named; /* as they were; NULL for those that it lacks */
} CxBody;

/* The function, or NULL without an exception. */
PyObject *cx_python_function(PyObject *fn);
/* "model.py:12", as guards name the function; NULL without an exception if it has no code. */
PyObject *cx_body_location(PyObject *fn);
void cx_body_note(CxBody *body, PyObject *function); /* NULL clears it */
/* True if the function still has the recorded code and defaults, and the keyword defaults of the
 * signature. */
bool cx_body_is_same(const CxBody *body, const CxSignature *signature);

#endif
