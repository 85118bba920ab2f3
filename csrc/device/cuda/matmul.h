/* Matrix products on device memory: by cuBLAS if its library is found and supports the operands'
 * layout, else by cinductor's kernel. */
#ifndef CI_DEVICE_CUDA_MATMUL_H
#define CI_DEVICE_CUDA_MATMUL_H

#include "device/cuda/driver.h"

/* A matrix in memory: elements between neighbours of a column, of a row, and between matrices. */
typedef struct CiCudaMatrix {
    CUdeviceptr data;
    int64_t row, column, batch;
} CiCudaMatrix;

/* c[m,n] = a[m,k] b[k,n], `batch` times. */
typedef struct CiCudaProduct {
    CiDtype dtype;
    int64_t m, n, k, batch;
    CiCudaMatrix a, b, c;
} CiCudaProduct;

/* cublas.c. False when cuBLAS is not there or does not take this product; *result is its answer. */
bool ci_cublas_product(CiCudaState *state, const CiQueue *queue, const CiCudaProduct *product,
                       int *result);
void ci_cublas_shut(CiCudaState *state);

/* matmul.c. */
int32_t ci_cuda_product(const CiQueue *queue, CiCudaState *state, CiCudaProduct *p, int *result);

#endif
