/* Kernels around factorizations: copy views to matrices by columns and back, factor and solve each small matrix with one block,
 * and compute determinants. Macros: S (type of a part), IS_COMPLEX (an element has two parts), GIVES_REAL (kvalues gives parts). */
#include "kernels/cuda/rows.cuh"

enum { ALL, LOWER, UPPER, IDENTITY };
/* extent: what pivots are chosen by, as LAPACK does; over: without overflow in between. */
#if IS_COMPLEX
struct T {
    S re, im;
};
static __device__ T minus(T a, T b) { return {a.re - b.re, a.im - b.im}; }
static __device__ T times(T a, T b) { return {a.re*b.re - a.im*b.im, a.re*b.im + a.im*b.re}; }
static __device__ T over(T a, T b)
{
    const bool by_im = fabs(b.im) > fabs(b.re);
    const S r = by_im ? b.re/b.im : b.im/b.re, d = by_im ? b.re*r + b.im : b.re + b.im*r;
    return by_im ? T{(a.re*r + a.im)/d, (a.im*r - a.re)/d} : T{(a.re + a.im*r)/d, (a.im - a.re*r)/d};
}
static __device__ S extent(T a) { return fabs(a.re) + fabs(a.im); }
static __device__ S length(T a) { return hypot(a.re, a.im); }
static __device__ T unit(T a) { const S r = length(a); return r == 0 ? T{0, 0} : T{a.re/r, a.im/r}; }
static __device__ T number(S a) { return {a, 0}; }
#else
typedef S T;
static __device__ T minus(T a, T b) { return a - b; }
static __device__ T times(T a, T b) { return a * b; }
static __device__ T over(T a, T b) { return a / b; }
static __device__ S extent(T a) { return fabs(a); }
static __device__ S length(T a) { return fabs(a); }
static __device__ T unit(T a) { return a < 0 ? -1 : a == 0 ? 0 : 1; }
static __device__ T number(S a) { return a; }
#endif
#if GIVES_REAL
typedef S R;
static __device__ R enter(S x) { return x; }
#else
typedef T R;
static __device__ R enter(S x) { return number(x); }
#endif

/* A tile of 32 by 32 elements is copied through shared memory, so that reads and writes are contiguous. */
struct View { Rows outer; L row, column; };
extern "C" __global__ void __launch_bounds__(256)
kview(const T *x, const View from, T *y, const View to, const L m, const L n, const L first, const int part)
{
    __shared__ T tile[32][33];
    const L tiles = (n + 31)/32, top = blockIdx.x/tiles*32, left = blockIdx.x%tiles*32;
    const int lane = (int)threadIdx.x%32, group = (int)threadIdx.x/32;
    const T *const source = x + start(from.outer, first + blockIdx.y);
    T *const target = y + start(to.outer, first + blockIdx.y);
    for (int k = group; k < 32; k += 8) {
        const int r = from.column == 1 ? k : lane, c = from.column == 1 ? lane : k;
        const L i = top + r, j = left + c;
        if (i < m && j < n)
            tile[r][c] = part == IDENTITY ? number(i == j) : part == LOWER && j > i || part == UPPER && j < i ? number(0)
                       : source[i*from.row + j*from.column];
    }
    __syncthreads();
    for (int k = group; k < 32; k += 8) {
        const int r = to.column == 1 ? k : lane, c = to.column == 1 ? lane : k;
        const L i = top + r, j = left + c;
        if (i < m && j < n)
            target[i*to.row + j*to.column] = tile[r][c];
    }
}

extern "C" __global__ void __launch_bounds__(256)
kvalues(const S *x, R *y, const Rows to, const L count)
{
    const L e = blockIdx.x*256LL + threadIdx.x;
    if (e < count)
        y[start(to, e)] = enter(x[e]);
}

extern "C" __global__ void __launch_bounds__(256)
kfactor(T *all, L *pivots, int *info, const L n, const L first)
{
    __shared__ int best;
    const L b = first + blockIdx.x;
    T *const a = all + b*n*n;
    const int t = (int)threadIdx.x;
    int failed = 0;
    for (int k = 0; k < n; k++) {
        if (t < 32) {
            S most = -1;
            int at = k;
            for (int i = k + t; i < n; i += 32)
                if (extent(a[i + k*n]) > most) {
                    most = extent(a[i + k*n]);
                    at = i;
                }
            for (int h = 16; h; h /= 2) {
                const S other = __shfl_xor_sync(0xffffffffu, most, h);
                const int where = __shfl_xor_sync(0xffffffffu, at, h);
                if (other > most || (other == most && where < at)) {
                    most = other;
                    at = where;
                }
            }
            if (t == 0) {
                best = at;
                pivots[b*n + k] = at + 1;
            }
        }
        __syncthreads();
        const int p = best;
        for (int j = t; j < n && p != k; j += 256) {
            const T had = a[k + j*n];
            a[k + j*n] = a[p + j*n];
            a[p + j*n] = had;
        }
        __syncthreads();
        const T pivot = a[k + k*n];
        const bool is_zero = extent(pivot) == 0;
        const int left = (int)n - k - 1;
        failed = is_zero && !failed ? k + 1 : failed;
        for (int i = k + 1 + t; i < n && !is_zero; i += 256)
            a[i + k*n] = over(a[i + k*n], pivot);
        __syncthreads();
        for (int e = t; e < left*left && !is_zero; e += 256) {
            const int i = k + 1 + e%left, j = k + 1 + e/left;
            a[i + j*n] = minus(a[i + j*n], times(a[i + k*n], a[k + j*n]));
        }
        __syncthreads();
    }
    if (t == 0)
        info[b] = failed;
}

extern "C" __global__ void __launch_bounds__(256)
ksolve(const T *all, const L *pivots, T *right, const L n, const L columns, const L first)
{
    const L b = first + blockIdx.x;
    const T *const a = all + b*n*n;
    for (L c = threadIdx.x; c < columns; c += 256) {
        T *const x = right + (b*columns + c)*n;
        for (int i = 0; i < n; i++) {
            const int p = (int)pivots[b*n + i] - 1;
            const T had = x[i];
            x[i] = x[p];
            x[p] = had;
        }
        for (int j = 0; j < n; j++)
            for (int i = j + 1; i < n; i++)
                x[i] = minus(x[i], times(a[i + j*n], x[j]));
        for (int j = (int)n - 1; j >= 0; j--) {
            x[j] = over(x[j], a[j + j*n]);
            for (int i = 0; i < j; i++)
                x[i] = minus(x[i], times(a[i + j*n], x[j]));
        }
    }
}

extern "C" __global__ void __launch_bounds__(32)
kdeterminant(const T *all, const L *pivots, T *y, const Rows to, const L n, const L batch, const bool in_parts, const L first)
{
    __shared__ T signs[32];
    __shared__ S logs[32];
    const L b = first + blockIdx.x;
    const int t = (int)threadIdx.x;
    T sign = number(1);
    S sum = 0;
    for (L i = t; i < n; i += 32) {
        const T d = all[(b*n + i)*n + i];
        sign = times(sign, times(unit(d), number(pivots[b*n + i] == i + 1 ? 1 : -1)));
        sum += log(length(d));
    }
    signs[t] = sign;
    logs[t] = sum;
    __syncthreads();
    if (t)
        return;
    for (int k = 1; k < 32; k++) {
        sign = times(sign, signs[k]);
        sum += logs[k];
    }
    y[start(to, b)] = in_parts ? sign : times(sign, number(exp(sum)));
    if (in_parts)
        y[start(to, batch + b)] = number(sum);
}
