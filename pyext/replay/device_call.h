/* Calls with device arrays that run without Python code. */
#ifndef CX_DEVICE_CALL_H
#define CX_DEVICE_CALL_H

#include "state/device_array.h"

enum { CX_MAX_DEVICE_ARGUMENTS = 8, CX_MAX_DEVICE_VARIANTS = 4 };

/* The device variant for calls whose arguments are on these devices. */
typedef struct CxDeviceVariant {
    const CiDevice *device;
    int count;
    /* Index of each argument's device; -1: a number or text. */
    int8_t where[CX_MAX_DEVICE_ARGUMENTS];
    PyObject *function;                     /* takes handles in place of the arrays */
} CxDeviceVariant;

typedef struct CxDeviceVariants {
    int count;
    CxDeviceVariant variants[CX_MAX_DEVICE_VARIANTS]; /* the latest one first */
} CxDeviceVariants;

/* args: (variant, arguments): uses the variant for calls like this one; does nothing for calls
 * that are not supported here. (None, ()): forgets all. -1 with an exception. */
int cx_device_variants_note(const CxState *state, CxDeviceVariants *variants, PyObject *args);
void cx_device_variants_clear(CxDeviceVariants *variants);
int cx_device_variants_visit(const CxDeviceVariants *variants, visitproc visit, void *arg);
/* 1: *result is the result, or NULL with an exception, which the job (whose method `miss` is)
 * has completed; 0: the call is not known here, or Python may refuse it. */
int cx_device_variants_call(CxState *state, const CxDeviceVariants *variants, PyObject *miss, PyObject *const *args,
                  Py_ssize_t count, PyObject **result);

#endif
