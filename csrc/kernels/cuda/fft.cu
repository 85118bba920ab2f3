/* Copies rows to the operands of cuFFT and from its results. Macros: S (type of a part), IS_REAL (the array's elements are real),
 * TAKES_REAL and GIVES_REAL (elements of the transform's operand and result are real). */
#include "kernels/cuda/rows.cuh"

struct C {
    S re, im;
};
#if IS_REAL
typedef S T;
#else
typedef C T;
#endif
#if TAKES_REAL
typedef S A;
#else
typedef C A;
#endif
#if IS_REAL && !TAKES_REAL
static __device__ A enter(T x) { return C{x, 0}; }
#else
static __device__ A enter(T x) { return x; }
#endif
#if GIVES_REAL
typedef S B;
static __device__ B scale(B x, S f) { return x*f; }
#else
typedef C B;
static __device__ B scale(B x, S f) { return C{x.re*f, x.im*f}; }
#endif

extern "C" __global__ void __launch_bounds__(256)
kpack(const T *x, A *y, const Rows r, const L first)
{
    const L row = first + blockIdx.y, i = blockIdx.x*256LL + threadIdx.x;
    if (i < r.length)
        y[row*r.length + i] = enter(x[start(r, row) + i*r.step]);
}

extern "C" __global__ void __launch_bounds__(256)
kscale(const B *x, B *y, const Rows r, const S factor, const L first)
{
    const L row = first + blockIdx.y, i = blockIdx.x*256LL + threadIdx.x;
    if (i < r.length)
        y[start(r, row) + i*r.step] = scale(x[row*r.length + i], factor);
}

/* kpack_across and kscale_across are kpack and kscale for rows whose points are strided, in tiles of 32 rows by 32 points: a warp
 * accesses contiguous elements on both sides. */
extern "C" __global__ void __launch_bounds__(256)
kpack_across(const T *x, A *y, const Rows r, const L first)
{
    __shared__ A tile[32][33];
    const int lane = (int)threadIdx.x % 32, w = (int)threadIdx.x/32;
    const L row = (first + blockIdx.y)*32, i = blockIdx.x*32LL, from = start(r, row + lane);
    for (int k = w; k < 32; k += 8)
        if (row + lane < r.rows && i + k < r.length)
            tile[k][lane] = enter(x[from + (i + k)*r.step]);
    __syncthreads();
    for (int k = w; k < 32; k += 8)
        if (row + k < r.rows && i + lane < r.length)
            y[(row + k)*r.length + i + lane] = tile[lane][k];
}

extern "C" __global__ void __launch_bounds__(256)
kscale_across(const B *x, B *y, const Rows r, const S factor, const L first)
{
    __shared__ B tile[32][33];
    const int lane = (int)threadIdx.x % 32, w = (int)threadIdx.x/32;
    const L row = (first + blockIdx.y)*32, i = blockIdx.x*32LL, to = start(r, row + lane);
    for (int k = w; k < 32; k += 8)
        if (row + k < r.rows && i + lane < r.length)
            tile[k][lane] = x[(row + k)*r.length + i + lane];
    __syncthreads();
    for (int k = w; k < 32; k += 8)
        if (row + lane < r.rows && i + k < r.length)
            y[to + (i + k)*r.step] = scale(tile[lane][k], factor);
}
