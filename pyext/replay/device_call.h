/* Calls with arrays of a device, answered without asking Python. */
#ifndef CX_DEVICE_CALL_H
#define CX_DEVICE_CALL_H

#include "state/device_array.h"

enum { CX_MOST_DEVICE_ARGUMENTS = 8, CX_MOST_TWINS = 4 };

/* What answers for calls whose arguments live so. */
typedef struct CxTwin {
    const CiDevice *device;
    int count;
    int8_t where[CX_MOST_DEVICE_ARGUMENTS]; /* index of the device of each; -1: a number or text */
    PyObject *function;                     /* that takes handles in their place */
} CxTwin;

typedef struct CxDeviceVariants {
    int count;
    CxTwin twins[CX_MOST_TWINS]; /* the last one noted first */
} CxDeviceVariants;

/* args: (twin, arguments): it answers for calls like this one; nothing happens where such calls are
 * not known here. (None, ()): nobody does. -1 with an exception. */
int cx_twins_note(const CxState *state, CxDeviceVariants *twins, PyObject *args);
void cx_twins_clear(CxDeviceVariants *twins);
int cx_twins_visit(const CxDeviceVariants *twins, visitproc visit, void *arg);
/* 1: *result is the call's, or NULL with an exception, which the job whose method `miss` is has made
 * the function's own; 0: it is not a call that is known here, or one that Python may refuse. */
int cx_device_variants_call(CxState *state, const CxDeviceVariants *twins, PyObject *miss, PyObject *const *args,
                  Py_ssize_t count, PyObject **result);

#endif
