/* Registers devices that are implemented outside cinductor. */
#ifndef CX_REGISTER_H
#define CX_REGISTER_H

#include "state/state.h"

PyObject *cx_register_device(PyObject *module, PyObject *args);

extern PyType_Spec cx_hook_spec; /* hook.c */

#endif
