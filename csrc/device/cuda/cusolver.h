/* Factorizations by cuSOLVER. Matrices are by columns, one after another. */
#ifndef CI_DEVICE_CUDA_CUSOLVER_H
#define CI_DEVICE_CUDA_CUSOLVER_H

#include "device/cuda/library.h"

typedef struct CiCusolver CiCusolver;

/* Some factorizations of matrices of one dtype, in order of a stream. Other threads wait for its end. */
typedef struct CiCusolverScope {
    CiCusolver *cusolver;
    const CiCudaContextScope *scope;
    CUstream stream;
    int type, real; /* cuSOLVER's number of the dtype, and of its parts' */
    size_t element;
    int result; /* the driver's, where one of its calls has failed */
} CiCusolverScope;

/* A = U diag(s) V, where m >= n. job: 'A': all columns of U and rows of V, 'S': the first n, 'N': none. */
typedef struct CiCusolverSvd {
    char job;
    int64_t m, n;
    CUdeviceptr a, s, u, v;
} CiCusolverSvd;

bool ci_cusolver_is_there(void);
void ci_cusolver_shut(CiCudaState *state);
/* False: it cannot be used. Ends by ci_cusolver_end in both cases. */
bool ci_cusolver_begin(CiCusolverScope *s, const CiCudaContextScope *scope, CUstream stream, CiDtype dtype);
void ci_cusolver_end(const CiCusolverScope *s);

/* These return false if the work could not be issued. info: an int of the device's, 0 if all went well;
 * else the matrix is singular, not positive definite, or the iteration did not converge. pivots: n 64-bit
 * integers. */
bool ci_cusolver_lu(CiCusolverScope *s, int64_t n, CUdeviceptr a, CUdeviceptr pivots, CUdeviceptr info);
bool ci_cusolver_lu_solve(CiCusolverScope *s, int64_t n, int64_t columns, CUdeviceptr a,
                          CUdeviceptr pivots, CUdeviceptr b, CUdeviceptr info);
bool ci_cusolver_cholesky(CiCusolverScope *s, bool is_upper, int64_t n, CUdeviceptr a, CUdeviceptr info);
bool ci_cusolver_eigen(CiCusolverScope *s, bool has_vectors, bool is_upper, int64_t n, CUdeviceptr a,
                       CUdeviceptr w, CUdeviceptr info);
bool ci_cusolver_svd(CiCusolverScope *s, const CiCusolverSvd *x, CUdeviceptr info);
/* R in the upper triangle of the matrix, reflectors below it; and Q of the first k reflectors. */
bool ci_cusolver_qr(CiCusolverScope *s, int64_t m, int64_t n, CUdeviceptr a, CUdeviceptr tau,
                    CUdeviceptr info);
bool ci_cusolver_q(CiCusolverScope *s, int64_t m, int64_t columns, int64_t k, CUdeviceptr a, CUdeviceptr tau,
                   CUdeviceptr info);

#endif
