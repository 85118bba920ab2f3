/* Finding NCCL, and its calls for collectives. */
#include "device/cuda/nccl_library.h"

#include "base/os.h"
#include "device/cuda/library.h"

#include <stdlib.h>

#define TYPE_BYTE 0

CiNccl *
ci_nccl_load(void)
{
    static const char *const names[] = {"libnccl.so.2"};
    static const CiOsFunction functions[] = {
#define NCCL(field, name, parameters) {#name, offsetof(CiNccl, field)},
        NCCL_TABLE
#undef NCCL
        {"ncclGetErrorString", offsetof(CiNccl, text)},
    };
    CiNccl *nccl = calloc(1, sizeof *nccl);
    void *library = nccl ? ci_cuda_open_library(names, 1, "CINDUCTOR_NCCL") : NULL;
    if (!library)
        return nccl;
    nccl->is_found = !ci_os_find_functions(library, functions, CI_OS_COUNT(functions), nccl);
    return nccl;
}

/* Elements as NCCL has them: the parts of complex numbers by themselves. */
typedef struct Elements {
    int type;
    size_t count;
} Elements;

static Elements
elements_of(const CiCollective *what)
{
    static const int types[CI_DTYPE_COUNT] = {
        [CI_DTYPE_bool] = 1, [CI_DTYPE_i8] = 0,  [CI_DTYPE_i16] = -1, [CI_DTYPE_i32] = 2,
        [CI_DTYPE_i64] = 4,  [CI_DTYPE_u8] = 1,  [CI_DTYPE_u16] = -1, [CI_DTYPE_u32] = 3,
        [CI_DTYPE_u64] = 5,  [CI_DTYPE_f16] = 6, [CI_DTYPE_bf16] = 9, [CI_DTYPE_f32] = 7,
        [CI_DTYPE_f64] = 8,  [CI_DTYPE_c64] = 7, [CI_DTYPE_c128] = 8};
    bool is_complex = ci_dtype_class(what->dtype) == CI_CLASS_complex;
    bool is_refused = is_complex && what->reduce != CI_OP_add;
    return (Elements){is_refused ? -1 : types[what->dtype], (size_t)what->count * (is_complex ? 2 : 1)};
}

bool
ci_nccl_combines(const CiCollective *what)
{
    return elements_of(what).type >= 0;
}

static int
reduction_of(CiOp op)
{
    return op == CI_OP_add ? 0 : op == CI_OP_multiply ? 1 : op == CI_OP_maximum ? 2 : 3;
}

static int
exchange(const CiNccl *nccl, CiNcclComm comm, CUstream stream, const CiCollective *what, size_t bytes)
{
    int result = nccl->begin();
    if (!result && what->to >= 0)
        result = nccl->send(what->operand, bytes, TYPE_BYTE, what->to, comm, stream);
    if (!result && what->from >= 0)
        result = nccl->receive(what->result, bytes, TYPE_BYTE, what->from, comm, stream);
    int end = nccl->end();
    return result ? result : end;
}

int
ci_nccl_give(const CiNccl *nccl, CiNcclComm comm, CUstream stream, const CiCollective *what)
{
    Elements own = elements_of(what);
    size_t bytes = (size_t)what->count * what->size;
    int op = reduction_of(what->reduce);
    switch (what->op) {
    case CI_OP_all_reduce:
        return nccl->all_reduce(what->operand, what->result, own.count, own.type, op, comm, stream);
    case CI_OP_reduce_scatter:
        return nccl->reduce_scatter(what->operand, what->result, own.count, own.type, op, comm, stream);
    case CI_OP_all_gather:
        return nccl->all_gather(what->operand, what->result, bytes, TYPE_BYTE, comm, stream);
    case CI_OP_broadcast:
        return nccl->broadcast(what->operand, what->result, bytes, TYPE_BYTE, what->root, comm, stream);
    default:
        return exchange(nccl, comm, stream, what, bytes);
    }
}
