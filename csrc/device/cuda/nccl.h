/* Groups of GPUs: NCCL, opened at run time as the driver is. */
#ifndef CI_DEVICE_CUDA_NCCL_H
#define CI_DEVICE_CUDA_NCCL_H

#include "device/cuda/driver.h"

int32_t ci_cuda_group_name(const CiQueue *queue, CiGroupName *name);
int32_t ci_cuda_group_open(const CiQueue *queue, const CiGroupName *name, int rank, int count,
                           int64_t timeout_ms, void **group);
void ci_cuda_group_close(const CiQueue *queue, void *group);
int32_t ci_cuda_group_start(const CiQueue *queue, void *group, const CiCollective *what);
int32_t ci_cuda_group_join(const CiQueue *queue, void *group);
/* Ends the groups that are left, with their context current. */
void ci_nccl_shut(CiCudaState *state);

#endif
