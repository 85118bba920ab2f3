/* Kernels that the user has written in C. */
#ifndef CX_USER_CODE_H
#define CX_USER_CODE_H

#include "program/program.h"

extern PyType_Spec cx_user_code_spec;
PyObject *cx_user_code(PyObject *module, PyObject *args);
/* Runs a user kernel as a library call on memory of the call's queue. The callable's
 * `launch_on(index, shapes)` returns the code, its sizes, its units, the number of operands that
 * are read, and for each written operand (these follow) whether it is part of the result. */
int32_t cx_user_code_call(CxState *state, PyObject *callable, const CiExternCall *call);

#endif
