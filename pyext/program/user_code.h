/* Kernels that the user has written in C. */
#ifndef CX_USER_CODE_H
#define CX_USER_CODE_H

#include "program/program.h"

extern PyType_Spec cx_user_code_spec;
PyObject *cx_user_code(PyObject *module, PyObject *args);
/* A library call of such a kernel with memory of the queue's device. The callable's
 * `launch_on(index, shapes)` gives the code, its sizes, its units, how many operands are read,
 * and for each that is written, which stand after those, whether it is in the result. */
int32_t cx_user_code_call(CxState *state, PyObject *callable, const CiQueue *queue,
                          const CiExternCall *call);

#endif
