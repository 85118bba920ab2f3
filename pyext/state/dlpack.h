/* DLPack: the exchange of device memory with other packages. */
#ifndef CX_DLPACK_H
#define CX_DLPACK_H

#include "state/stream.h"

/* DLTensor: borrowed memory with its layout. */
typedef struct CxDlTensor {
    void *data;
    int32_t device_type, device_id;
    int32_t ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides; /* in elements; strides NULL: C order */
    uint64_t byte_offset;
} CxDlTensor;

/* CI_DTYPE_none if the core has no such dtype. */
CiDtype cx_dlpack_dtype(const CxDlTensor *tensor);

extern PyMethodDef cx_dlpack_methods[];

#endif
