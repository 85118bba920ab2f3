/* Kernels around factorizations: linalg_kernels.c. */
#ifndef CI_DEVICE_CUDA_LINALG_H
#define CI_DEVICE_CUDA_LINALG_H

#include "device/cuda/library.h"

typedef enum CiLinalgKernel {
    CI_LINALG_view,
    CI_LINALG_values,
    CI_LINALG_factor,
    CI_LINALG_solve,
    CI_LINALG_determinant
} CiLinalgKernel;

/* The part of a matrix that a copy has; its other elements are 0. The identity reads no matrix. */
typedef enum CiLinalgPart {
    CI_LINALG_all,
    CI_LINALG_lower,
    CI_LINALG_upper,
    CI_LINALG_identity
} CiLinalgPart;

/* A stack of matrices in memory; kernels take it by value. outer: where each begins. */
typedef struct CiLinalgView {
    CiCudaRows outer;
    int64_t row, column; /* elements between neighbours of a column, and of a row */
} CiLinalgView;

/* real_result: of a library call on complex matrices whose result is real. */
int32_t ci_cuda_load_linalg(const CiQueue *queue, CiCudaState *state, CiDtype dtype, bool real_result,
                            const CUfunction **functions);

#endif
