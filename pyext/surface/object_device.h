/* Devices that are Python objects. */
#ifndef CX_OBJECT_DEVICE_H
#define CX_OBJECT_DEVICE_H

#include "state/state.h"

#define CX_DEVICE_CAPSULE "cinductor.CiDevice"

/* A capsule of a device whose functions are the object's methods; NULL with an exception if it
 * lacks one. */
PyObject *cx_device_of_object(PyObject *object);

#endif
