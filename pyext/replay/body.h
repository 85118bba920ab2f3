/* The Python function that a callable runs; its code and defaults may be assigned. */
#ifndef CX_BODY_H
#define CX_BODY_H

#include "replay/signature.h"

typedef struct CxBody {
    PyObject *function, *code, *defaults, *named; /* as they were; NULL: there are none */
} CxBody;

/* The function, or NULL without an exception. */
PyObject *cx_python_function(PyObject *fn);
/* "model.py:12", as guards name it; NULL without an exception for what has no code. */
PyObject *cx_body_place(PyObject *fn);
void cx_body_note(CxBody *body, PyObject *function); /* NULL: forgets all */
/* Has the function what was noted, and the keyword defaults of the signature? */
bool cx_body_is_same(const CxBody *body, const CxSignature *signature);

#endif
