/* Kernels that the user has written in C. */
#ifndef CX_USER_CODE_H
#define CX_USER_CODE_H

#include "program/program.h"

extern PyType_Spec cx_user_code_spec;
PyObject *cx_user_code(PyObject *module, PyObject *args);

#endif
