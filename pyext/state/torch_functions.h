/* Functions of the torch that is loaded, found by their names at run time: C functions of its library,
 * and its exchange table of DLPack. Nothing of torch is needed to build this. */
#ifndef CX_TORCH_FUNCTIONS_H
#define CX_TORCH_FUNCTIONS_H

#include "state/dlpack.h"

/* A tensor of torch's, owned by whoever has it. */
typedef struct CxHandle *CxHandle;

/* Those of the library return 0, or the number of an error and change nothing. */
typedef struct CxTorch {
    CxState *state;
    void *library;
    /* The memory and layout of a tensor, borrowed; lock held; not 0 with an exception. */
    int (*view)(void *object, CxDlTensor *out);
    int32_t (*empty_strided)(int64_t rank, const int64_t *sizes, const int64_t *strides, int32_t dtype,
                             int32_t device_type, int32_t device, CxHandle *made);
    int32_t (*from_memory)(void *data, int64_t rank, const int64_t *sizes, const int64_t *strides,
                           int64_t offset, int32_t dtype, int32_t device_type, int32_t device,
                           CxHandle *made, int32_t layout, const uint8_t *opaque, int64_t opaque_size);
    int32_t (*reinterpret)(CxHandle tensor, int64_t rank, const int64_t *sizes, const int64_t *strides,
                           int64_t offset, CxHandle *made);
    int32_t (*clone)(CxHandle tensor, CxHandle *made); /* strides stay */
    int32_t (*copy)(CxHandle into, CxHandle from, int32_t non_blocking);
    int32_t (*data_of)(CxHandle tensor, void **data);
    int32_t (*delete)(CxHandle tensor);
    int32_t dtypes[CI_DTYPE_COUNT];
    PyObject *types;          /* tuple of the types whose objects are plain tensors */
    PyObject *is_conj, *is_neg; /* whether its values are not those in its memory */
    PyObject *wrap;           /* list of capsules of handles, which are taken over -> list of tensors */
} CxTorch;

extern PyMethodDef cx_torch_methods[];

/* Of what torch_functions() returned; NULL with an exception. */
const CxTorch *cx_torch_of(PyObject *capsule);
/* Elements of the host under that layout, which stay whose they are. NULL: torch cannot. */
CxHandle cx_torch_from_memory(const CxTorch *torch, void *data, CiDtype dtype, int rank,
                              const int64_t *sizes, const int64_t *strides);

#endif
