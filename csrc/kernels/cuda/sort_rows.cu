/* Sorts each row by one block, with a bitonic network (Batcher 1968) over 8 items in the registers of each thread. Macros: PLACES
 * (an item is a key and its position, which makes the sort stable; else a key), IS_NARROW (keys have 32 bits).
 *
 * Items less than 8 apart are compared within a thread, those of a warp by shuffles, others through shared memory. Shared
 * memory also transposes the result, so that stores are contiguous. Loads are contiguous: the order before the sort is free. */
#include "kernels/cuda/keys.cuh"

#if !PLACES || IS_NARROW /* the item is a number: a key, or a key of 32 bits above its position */
#if PLACES
typedef unsigned long long V;
static __device__ V item(K k, int i) { return (V)k << 32 | (unsigned)i; }
static __device__ K key_of(V v) { return (K)(v >> 32); }
static __device__ unsigned position_of(V v) { return (unsigned)v; }
#else
typedef K V;
static __device__ V item(K k, int) { return k; }
static __device__ K key_of(V v) { return v; }
static __device__ unsigned position_of(V) { return 0; }
#endif
static __device__ bool before(V a, V b) { return a < b; }
static __device__ V across(V v, int h) { return __shfl_xor_sync(0xffffffffu, v, h); }
static __device__ void put(unsigned char *s, int, int i, V v) { ((V *)s)[i] = v; }
static __device__ V take(unsigned char *s, int, int i) { return ((V *)s)[i]; }
#else
struct V {
    K k;
    unsigned p;
};
static __device__ V item(K k, int i) { return V{k, (unsigned)i}; }
static __device__ K key_of(V v) { return v.k; }
static __device__ unsigned position_of(V v) { return v.p; }
static __device__ bool before(V a, V b) { return a.k < b.k || (a.k == b.k && a.p < b.p); }
static __device__ V
across(V v, int h)
{
    return V{__shfl_xor_sync(0xffffffffu, v.k, h), __shfl_xor_sync(0xffffffffu, v.p, h)};
}
static __device__ void
put(unsigned char *s, int size, int i, V v)
{
    ((K *)s)[i] = v.k;
    ((unsigned *)(s + sizeof(K)*size))[i] = v.p;
}
static __device__ V
take(unsigned char *s, int size, int i)
{
    return V{((K *)s)[i], ((unsigned *)(s + sizeof(K)*size))[i]};
}
#endif

static __device__ void order(V &a, V &b, bool up)
{
    const bool turns = before(b, a) == up;
    const V c = turns ? b : a;
    b = turns ? a : b;
    a = c;
}

template <int J> static __device__ void step(V *v, bool up, int k)
{
    #pragma unroll
    for (int e = 0; e < 8; e++)
        if (!(e & J))
            order(v[e], v[e | J], k < 8 ? !(e & k) : up);
}

static __device__ void cross(V *v, unsigned char *s, int size, int threads, int apart, bool least)
{
    const int t = (int)threadIdx.x;
    if (apart >= 32) {
        __syncthreads();
        #pragma unroll
        for (int e = 0; e < 8; e++)
            put(s, size, e*threads + t, v[e]);
        __syncthreads();
    }
    #pragma unroll
    for (int e = 0; e < 8; e++) {
        const V other = apart < 32 ? across(v[e], apart) : take(s, size, e*threads + (t ^ apart));
        v[e] = before(other, v[e]) == least ? other : v[e];
    }
}

extern "C" __global__ void __launch_bounds__(512)
krows(const T *x, K *keys, unsigned *positions, void *y, const Rows r, const Rows to, const int size)
{
    ci_await_kernels();
    extern __shared__ __align__(16) unsigned char rows[];
    const L row = blockIdx.x, begin = start(r, row), end = start(to, row);
    const int n = (int)r.length, t = (int)threadIdx.x, threads = size < 256 ? 32 : size/8;
    V v[8];
    #pragma unroll
    for (int e = 0; e < 8; e++) {
        const int i = size < 256 ? 8*t + e : e*threads + t;
        v[e] = item(i < n ? key(x[begin + i*r.step]) : ~(K)0, i);
    }
    step<1>(v, true, 2);
    step<2>(v, true, 4);
    step<1>(v, true, 4);
    for (int k = 8; k <= size; k *= 2) {
        const bool up = !(8*t & k);
        for (int j = k/2; j >= 8; j /= 2)
            cross(v, rows, size, threads, j/8, up == !(8*t & j));
        step<4>(v, up, 8);
        step<2>(v, up, 8);
        step<1>(v, up, 8);
    }
    __syncthreads();
    #pragma unroll
    for (int e = 0; e < 8; e++)
        if (8*t + e < size)
            put(rows, size, (8*t + e) ^ (t/4 & 31), v[e]);
    __syncthreads();
    for (int i = t; i < n; i += threads) {
        const V own = take(rows, size, i ^ (i/32 & 31));
        if (y && PLACES)
            ((L *)y)[end + i*to.step] = position_of(own);
        else if (y)
            ((T *)y)[end + i*to.step] = back(key_of(own));
        else {
            keys[row*n + i] = key_of(own);
            if (PLACES)
                positions[row*n + i] = position_of(own);
        }
    }
}
