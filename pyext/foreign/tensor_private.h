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
    CX_GIVE_result,   /* a return of the program, unchanged */
    CX_GIVE_part,     /* a view of the memory of a return */
    CX_GIVE_argument, /* the argument itself */
    CX_GIVE_view,     /* a view of an argument's memory, from its first element on */
    CX_GIVE_size,     /* an int */
    CX_GIVE_constant
} CxGiveKind;

/* A value that a call returns. */
typedef struct CxGive {
    CxGiveKind kind;
    int index;          /* number of the return or argument */
    CiDtype dtype;      /* dtype of a part or view */
    int rank, at, count; /* position and count in `numbers`: sizes, strides, offset; or the size */
    PyObject *constant;
} CxGive;

typedef struct CxTensorProgram {
    PyObject_HEAD vectorcallfunc vectorcall;
    CxProgram *program;
    PyObject *functions; /* capsule of torch */
    const CxTorch *torch;
    CxTorchDevice place;
    int32_t dlpack; /* DLPack's device type */
    PyObject *eager; /* called with the arguments if the program cannot run with them */
    /* If the device is not the host: the program for the part of the graph whose tensors are on the host, and the
     * arguments that it takes. Its results are further arguments of `program`. Or NULL. */
    PyObject *host;
    int *host_arguments, nhost_arguments;
    CxTensorInput *inputs;
    int nargs; /* number of the caller's arguments; results of `host` follow them */
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

/* The state of one call. Arrays have an item per input unless their comment says otherwise. */
typedef struct CxTensorCall {
    CxRun run; /* first, because run.new_result gets its address */
    CxTensorProgram *program;
    CxCallSizes shown;
    CxDlTensor *tensors;
    PyObject **objects; /* owned */
    void **data;
    const int64_t **sizes, **strides;
    CxHandle *copies; /* copies with the graph's strides, or NULL */
    bool *differs, *is_read;
    PyObject *list;    /* of the arguments, borrowed */
    bool is_wanted;    /* the program accepts the sizes */
    bool has_dropped;  /* arguments were released, so eager cannot run any more */
    CiSlot *scalars;   /* per input that is a number */
    int64_t *numbers;  /* per number of the returned values */
    CxHandle *buffers; /* per result buffer */
    void **memory;     /* per result buffer */
    bool *has_layout;  /* per result buffer: its layout is its owner's */
    CxHandle *bases;   /* per return of the program: its tensor, created on demand */
    bool *is_taken;    /* per return: its base has been returned */
    CxHandle *made;    /* per give */
    PyObject **given;  /* per returned value that is an argument; owned */
    CxTensorBlock *blocks;
    int nblocks, capblocks;
} CxTensorCall;

/* tensor_call.c */
PyObject *cx_tensor_program_call(PyObject *self, PyObject *const *args, size_t nargs, PyObject *names);

/* tensor_memory.c: the functions take, give, drop and put of CxRun, and their end. */
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
