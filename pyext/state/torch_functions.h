/* Functions of the loaded torch, found by name at run time: C functions of its library, and its
 * DLPack exchange table. Building this needs no torch. */
#ifndef CX_TORCH_FUNCTIONS_H
#define CX_TORCH_FUNCTIONS_H

#include "state/dlpack.h"

/* A tensor of torch. */
typedef struct CxHandle *CxHandle;

/* A device, by torch's numbers. Zeros: the host. */
typedef struct CxTorchDevice {
    int32_t type, index;
} CxTorchDevice;

/* Functions of the library return 0; on an error they return its number and change nothing. */
typedef struct CxTorch {
    CxState *state;
    void *library;
    /* The memory and layout of a tensor, borrowed. Needs the GIL; not 0 with an exception. */
    int (*view)(void *object, CxDlTensor *out);
    /* The current stream of a device by DLPack's numbers. Needs the GIL; not 0 with an exception. */
    int (*stream)(int32_t type, int32_t index, void **stream);
    int32_t (*empty_strided)(int64_t rank, const int64_t *sizes, const int64_t *strides, int32_t dtype,
                             int32_t device_type, int32_t device, CxHandle *made);
    int32_t (*from_memory)(void *data, int64_t rank, const int64_t *sizes, const int64_t *strides,
                           int64_t offset, int32_t dtype, int32_t device_type, int32_t device,
                           CxHandle *made, int32_t layout, const uint8_t *opaque, int64_t opaque_size);
    int32_t (*reinterpret)(CxHandle tensor, int64_t rank, const int64_t *sizes, const int64_t *strides,
                           int64_t offset, CxHandle *made);
    int32_t (*view_dtype)(CxHandle tensor, int32_t dtype, CxHandle *made);
    int32_t (*clone)(CxHandle tensor, CxHandle *made); /* strides stay */
    int32_t (*copy)(CxHandle into, CxHandle from, int32_t non_blocking);
    int32_t (*data_of)(CxHandle tensor, void **data);
    int32_t (*delete)(CxHandle tensor);
    int32_t (*new_undefined)(CxHandle *made); /* no tensor, for an argument without one */
    int32_t (*rank_of)(CxHandle tensor, int64_t *rank);
    int32_t (*sizes_of)(CxHandle tensor, int64_t **sizes);
    int32_t (*strides_of)(CxHandle tensor, int64_t **strides);
    int32_t (*dtype_of)(CxHandle tensor, int32_t *dtype);
    /* The dispatcher and what its arguments are made of, which are given up to it. NULL: it is not there. */
    int32_t (*dispatch)(const char *name, const char *overload, uint64_t *stack, uint64_t version);
    int32_t (*new_list)(size_t size, void **list);
    int32_t (*push)(void *list, uint64_t value);
    int32_t (*delete_list)(void *list);
    int32_t (*new_value)(uint64_t **value); /* of an optional argument; NULL before torch 2.13: C++'s `new` makes it */
    void *(*new_object)(size_t size, const void *nothrow);
    const void *nothrow;
    uint64_t version;
    int32_t cuda; /* torch's number of that type of device */
    int32_t dtypes[CI_DTYPE_COUNT];
    PyObject *types;          /* tuple of the types whose objects are plain tensors */
    PyObject *is_conj, *is_neg; /* whether a tensor is lazily conjugated or negated */
    /* Converts a list of capsules of handles, which it owns, to a list of tensors. */
    PyObject *wrap;
} CxTorch;

extern PyMethodDef cx_torch_methods[];

/* From the result of torch_functions(); NULL with an exception. */
const CxTorch *cx_torch_of(PyObject *capsule);
/* Memory for the value of an optional argument; NULL if there is none. */
uint64_t *cx_torch_new_value(const CxTorch *torch);
/* The device of a queue; of the host for NULL and where the device has no memory of its own. */
CxTorchDevice cx_torch_device(const CxTorch *torch, const CiQueue *queue);
typedef CxHandle CxTorchTensor(const CxTorch *torch, CxTorchDevice place, void *data, CiDtype dtype, int rank,
                               const int64_t *sizes, const int64_t *strides);
/* A tensor over memory of the device with that layout, which it does not own. NULL: torch cannot make one. */
CxTorchTensor cx_torch_from_memory;
/* A tensor with those elements, to be read: over the memory, or a copy of the host's if an axis is reversed. */
CxTorchTensor cx_torch_operand;
/* Tensors of Python: takes over the handles, which become NULL. NULL with an exception; the handles stay the caller's
 * if torch refuses them as they are, before it takes one. */
PyObject *cx_torch_wrap(const CxTorch *torch, CxHandle *handles, int count);
/* True if a tensor has this dtype, and these sizes and strides. Strides of axes with one element do not count, and
 * none if strides is NULL. */
bool cx_torch_has_layout(const CxTorch *torch, CxHandle tensor, CiDtype dtype, int rank, const int64_t *sizes,
                         const int64_t *strides);

#endif
