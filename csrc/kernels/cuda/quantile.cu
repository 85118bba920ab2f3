/* A quantile of each row from its sorted keys. IS_SINGLE: elements are f32. V: the integer type of other elements. */
#include "kernels/cuda/keys.cuh"
#include "kernels/cuda/sort.h"

#if IS_FLOAT && IS_SINGLE
typedef float S;
static __device__ S value(T x) { return __int_as_float((int)x); }
#elif IS_FLOAT
typedef double S;
static __device__ S value(T x) { return __longlong_as_double((long long)x); }
#else
typedef double S;
static __device__ S value(T x) { return (S)(V)x; }
#endif

extern "C" __global__ void __launch_bounds__(CI_SORT_THREADS)
kquantile(const K *keys, S *y, const Rows r, const L n, const double requested, const bool is_median)
{
    ci_await_kernels();
    const L row = (L)blockIdx.x*CI_SORT_THREADS + threadIdx.x;
    if (row >= r.rows)
        return;
    const K *own = keys + row*n;
    const S at = is_median ? (S)(n - 1)/2 : (S)(n - 1)*(S)requested;
    const L low = is_median ? (n - 1)/2 : (L)at, high = is_median ? n/2 : low + 1 < n ? low + 1 : low;
    const S a = value(back(own[low])), b = value(back(own[high])), last = value(back(own[n - 1]));
    const S t = at - (S)low, wide = b - a;
    S found = t >= (S)0.5 ? b - wide*(1 - t) : a + wide*t;
    if (is_median)
        found = 0 + (low == high ? a : (a + b)/2); /* a mean is no -0.0 */
    y[start(r, row)] = last != last ? last : found;
}
