/* Groups of GPUs: NCCL, opened at run time as the driver is. */
#ifndef CI_DEVICE_CUDA_NCCL_H
#define CI_DEVICE_CUDA_NCCL_H

#include "device/cuda/driver.h"

/* Functions of CiDevice, with the context current. They return results of the driver, or
 * CI_CUDA_GROUP_FAILED. */
int ci_nccl_name(CiCudaState *state, CiGroupName *name);
int ci_nccl_open(CiCudaState *state, const CiGroupName *name, int rank, int count, int64_t timeout_ms,
                 CiCudaGroup **out);
void ci_nccl_close(CiCudaState *state, CiCudaGroup *group);
int ci_nccl_start(const CiCudaContextScope *scope, CUstream stream, CiCudaGroup *group,
                  const CiCollective *what);
int ci_nccl_join(const CiCudaContextScope *scope, CUstream stream, const CiCudaGroup *group);
/* Closes the groups that are left. */
void ci_nccl_shut(CiCudaState *state);

#endif
