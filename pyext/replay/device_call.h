/* Calls with device arrays that run without Python code. */
#ifndef CX_DEVICE_CALL_H
#define CX_DEVICE_CALL_H

#include "state/device_array.h"

enum { CX_MAX_DEVICE_ARGUMENTS = 8, CX_MAX_TWINS = 4 };

/* The device variant for calls whose arguments are on these devices. */
typedef struct CxTwin {
    const CiDevice *device;
    int count;
    /* Index of each argument's device; -1: a number or text. */
    int8_t where[CX_MAX_DEVICE_ARGUMENTS];
    PyObject *function;                     /* takes handles in place of the arrays */
} CxTwin;

typedef struct CxDeviceVariants {
    int count;
    CxTwin twins[CX_MAX_TWINS]; /* the latest one first */
} CxDeviceVariants;

/* args: (variant, arguments): uses the variant for calls like this one; does nothing for calls
 * that are not supported here. (None, ()): forgets all. -1 with an exception. */
int cx_twins_note(const CxState *state, CxDeviceVariants *twins, PyObject *args);
void cx_twins_clear(CxDeviceVariants *twins);
int cx_twins_visit(const CxDeviceVariants *twins, visitproc visit, void *arg);
/* 1: *result is the result, or NULL with an exception, which the job (whose method `miss` is)
 * has completed; 0: the call is not known here, or Python may refuse it. */
int cx_device_variants_call(CxState *state, const CxDeviceVariants *twins, PyObject *miss, PyObject *const *args,
                  Py_ssize_t count, PyObject **result);

#endif
