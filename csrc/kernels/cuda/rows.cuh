/* Rows of a view along one axis, as CiCudaRows of device/cuda/library.h has them, and the position of a row's first
 * element. */
#include "kernels/cuda/await.cuh"
typedef long long L;
struct Rows {
    L rows, length, step;
    L sizes[32], strides[32];
    int rank;
};
static __device__ L
start(const Rows &r, L row)
{
    L at = 0;
    for (int k = r.rank - 1; k >= 0; k--) {
        at += row % r.sizes[k] * r.strides[k];
        row /= r.sizes[k];
    }
    return at;
}
