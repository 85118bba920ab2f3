/* Structs shared by the files that call a program with torch tensors. */
#ifndef CX_TENSOR_PRIVATE_H
#define CX_TENSOR_PRIVATE_H

#include "program/call_sizes.h"
#include "state/torch_functions.h"

/* The source of an input of the program: an argument, or a constant tensor of the program. */
typedef struct CxTensorInput {
    int argument;
    PyObject *constant; /* or NULL */
    bool is_written;
} CxTensorInput;

typedef enum CxGiveKind {
    CX_GIVE_number,   /* a return of the program as an int */
    CX_GIVE_result,   /* a return of the program as it is */
    CX_GIVE_part,     /* a view of the memory of one */
    CX_GIVE_argument, /* the argument itself */
    CX_GIVE_view,     /* a view of the memory of one, from its first element on */
    CX_GIVE_size,     /* an int */
    CX_GIVE_constant
} CxGiveKind;

/* A value that a call returns. */
typedef struct CxGive {
    CxGiveKind kind;
    int index;          /* of the return or argument */
    CiDtype dtype;      /* in which a part or view sees the memory */
    int rank, at, count; /* numbers of the call: sizes, strides, offset; or the size */
    PyObject *constant;
} CxGive;

typedef struct CxTensorProgram {
    PyObject_HEAD vectorcallfunc vectorcall;
    CxProgram *program;
    PyObject *functions; /* capsule of torch */
    const CxTorch *torch;
    CxTorchDevice place;
    int32_t dlpack; /* DLPack's number of its type of device */
    PyObject *eager; /* called with the arguments if the program cannot run with them */
    /* The part of the graph whose tensors are on the host, if the device is another: a program whose results are
     * further arguments, and the arguments that it takes. Or NULL. */
    PyObject *host;
    int *host_arguments, nhost_arguments;
    CxTensorInput *inputs;
    int nargs; /* of the caller; results of `host` follow */
    CxGive *gives;
    int ngives, nnumbers;
    const CiExpr **numbers;
    int *owners; /* per result buffer: the returned value whose layout it gets, or -1 */
    CxSizeSource *places;
    int nplaces;
} CxTensorProgram;

static inline bool
cx_give_is_of_argument(const CxGive *give)
{
    return give->kind == CX_GIVE_argument || give->kind == CX_GIVE_view;
}

/* Memory of the device between steps, in a tensor of torch. */
typedef struct CxTensorBlock {
    void *data;
    CxHandle tensor;
} CxTensorBlock;

/* One call; arrays are per input unless it says otherwise. */
typedef struct CxTensorCall {
    CxRun run; /* first, because run.new_result gets its address */
    CxTensorProgram *program;
    CxCallSizes shown;
    CxDlTensor *tensors;
    PyObject **objects; /* owned */
    void **data;
    const int64_t **sizes, **strides;
    CxHandle *copies; /* in the strides of the graph, or NULL */
    bool *differs, *is_read;
    PyObject *list;    /* of the arguments, borrowed */
    bool is_wanted;    /* the program accepts the sizes */
    bool has_dropped;  /* arguments: eager cannot run with them */
    CiSlot *scalars;   /* per input that is a number */
    int64_t *numbers;  /* per number of the returned values */
    CxHandle *buffers; /* per result buffer */
    void **memory;     /* per result buffer */
    bool *has_layout;  /* per result buffer: its layout is its owner's */
    CxHandle *bases;   /* per return of the program, made when one is given */
    bool *is_taken;    /* per return: its base has been returned */
    CxHandle *made;    /* per give */
    PyObject **given;  /* per returned value that is an argument; owned */
    CxTensorBlock *blocks;
    int nblocks, capblocks;
} CxTensorCall;

/* tensor_call.c */
PyObject *cx_tensor_program_call(PyObject *self, PyObject *const *args, size_t nargs, PyObject *names);

/* tensor_memory.c: memory of a device between steps, and arguments that are not read again; as in CxRun. */
int32_t cx_tensor_take(void *arg, size_t bytes, void **block);
void cx_tensor_give(void *arg, void *block);
void cx_tensor_drop(void *arg, int input);
bool cx_tensor_put(void *arg, void *block, CxHandle tensor, void *data);
void cx_tensor_memory_close(CxTensorCall *call);

/* tensor_returns.c: allocates a result buffer; makes the list that the call returns. */
void *cx_tensor_new_result(void *arg, int number, const CiResultBuffer *buffer);
PyObject *cx_tensor_returns(CxTensorCall *call);
void cx_tensor_returns_close(CxTensorCall *call);

#endif
