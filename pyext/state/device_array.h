/* Ndarrays whose data pointer is an address of a device: only shape, dtype and strides may be
 * looked at. */
#ifndef CX_DEVICE_ARRAY_H
#define CX_DEVICE_ARRAY_H

#include "state/state.h"

extern PyType_Spec cx_device_memory_spec;
extern PyMethodDef cx_device_methods[];
bool cx_is_device_array(const CxState *state, PyObject *array);
PyObject *cx_device_array_new(CxState *state, const CiQueue *queue, CiDtype dtype, int rank,
                              const int64_t *sizes, const int64_t *strides);
/* Programs of these options run on arrays of the device, without copies. */
static inline bool
cx_is_on_device(const CiOptions *options, const CiBackend *backend)
{
    return options->device_arrays && ci_backend_has_memory(backend);
}
/* -1, with an exception, for an input that such a program cannot read. */
int cx_check_device_input(const CxState *state, PyObject *value);
/* -1, with what the device said. */
int cx_raise_device(CxState *state, const CiQueue *queue, int32_t status);
/* The device and stream that programs of these options run on. */
CiQueue cx_queue(CxState *state, const CiOptions *options, const CiBackend *backend);

#endif
