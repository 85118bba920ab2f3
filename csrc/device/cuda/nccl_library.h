/* NCCL, opened at run time as the driver is: the package builds and runs without it. Only what is used is
 * declared, from the documented interface. */
#ifndef CI_DEVICE_CUDA_NCCL_LIBRARY_H
#define CI_DEVICE_CUDA_NCCL_LIBRARY_H

#include "device/cuda/driver.h"

typedef struct ncclComm *CiNcclComm;

#define NCCL_TABLE                                                                                 \
    NCCL(name, ncclGetUniqueId, (CiGroupName * name))                                              \
    NCCL(open, ncclCommInitRank, (CiNcclComm * comm, int count, CiGroupName name, int rank))         \
    NCCL(abort, ncclCommAbort, (CiNcclComm comm))                                                    \
    NCCL(state, ncclCommGetAsyncError, (CiNcclComm comm, int *result))                               \
    NCCL(begin, ncclGroupStart, (void))                                                            \
    NCCL(end, ncclGroupEnd, (void))                                                                \
    NCCL(all_reduce, ncclAllReduce,                                                                \
         (const void *from, void *to, size_t count, int type, int op, CiNcclComm comm,               \
          CUstream stream))                                                                        \
    NCCL(all_gather, ncclAllGather,                                                                \
         (const void *from, void *to, size_t count, int type, CiNcclComm comm, CUstream stream))     \
    NCCL(reduce_scatter, ncclReduceScatter,                                                        \
         (const void *from, void *to, size_t count, int type, int op, CiNcclComm comm,               \
          CUstream stream))                                                                        \
    NCCL(broadcast, ncclBroadcast,                                                                 \
         (const void *from, void *to, size_t count, int type, int root, CiNcclComm comm,             \
          CUstream stream))                                                                        \
    NCCL(send, ncclSend,                                                                           \
         (const void *from, size_t count, int type, int peer, CiNcclComm comm, CUstream stream))     \
    NCCL(receive, ncclRecv,                                                                        \
         (void *to, size_t count, int type, int peer, CiNcclComm comm, CUstream stream))

struct CiNccl {
    bool is_found;
#define NCCL(field, symbol, parameters) int(*field) parameters;
    NCCL_TABLE
#undef NCCL
    const char *(*text)(int result);
};

/* Opens the library; `is_found` is false if it or a function of it is missing. NULL without memory. */
CiNccl *ci_nccl_load(void);
/* False for a reduction that it does not have for the dtype. */
bool ci_nccl_combines(const CiCollective *what);
/* Gives the stream a collective; NCCL's result. */
int ci_nccl_give(const CiNccl *nccl, CiNcclComm comm, CUstream stream, const CiCollective *what);

#endif
