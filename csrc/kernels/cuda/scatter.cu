/* Scatter with duplicate indices (device/cuda/scatter.c). Macros: T (element), S (sum), INFINITE (the largest sum, as a literal),
 * IDENTITY and COMBINE(a, b) (the operation), IS_PLACE (the last value of each target is stored). */
#include "kernels/cuda/await.cuh"
typedef long long L;
static __device__ S identity() { return (S)(IDENTITY); }
static __device__ S get(T x) { return (S)x; }
static __device__ T put(S x) { return (T)x; }
static __device__ S combine(S a, S b) { return COMBINE(a, b); }

extern "C" __global__ void __launch_bounds__(256)
kcopy(const T *x, T *y, const L n)
{
    ci_await_kernels();
    const L i = blockIdx.x*256LL + threadIdx.x;
    if (i < n)
        y[i] = x[i];
}

extern "C" __global__ void __launch_bounds__(256)
kruns(const unsigned *keys, const unsigned *positions, const T *v, T *y, const L n)
{
    ci_await_kernels();
    const int lane = (int)threadIdx.x % 32;
    const L first = blockIdx.x*256LL + threadIdx.x - lane, own = first + lane;
    const unsigned k = own < n ? keys[own] : 0;
    unsigned heads = __ballot_sync(0xffffffffu, own < n && (own == 0 || keys[own - 1] != k));
    while (heads) {
        const int head = __popcll((heads & -heads) - 1);
        const unsigned at = __shfl_sync(0xffffffffu, k, head);
        S sum = identity();
        L last = -1;
        bool goes_on = true;
        for (L j = first + head + lane; goes_on; j += 32) {
            const bool is_there = j < n && keys[j] == at;
            if (is_there) {
                sum = combine(sum, get(v[positions[j]]));
                last = j;
            }
            goes_on = __ballot_sync(0xffffffffu, is_there) == 0xffffffffu;
        }
        for (int h = 1; h < 32; h *= 2) {
            const S other = __shfl_xor_sync(0xffffffffu, sum, h);
            const L later = __shfl_xor_sync(0xffffffffu, last, h);
            sum = lane & h ? combine(other, sum) : combine(sum, other);
            last = later > last ? later : last;
        }
        if (lane == 0)
            y[at] = IS_PLACE ? v[positions[last]] : put(combine(get(y[at]), sum));
        heads &= heads - 1;
    }
}

extern "C" __global__ void __launch_bounds__(256)
kcopies(const L *where, const T *v, S *partials, const L n, const L chunk, const int targets, const int warps)
{
    ci_await_kernels();
    extern __shared__ __align__(16) unsigned char rows[];
    const int t = (int)threadIdx.x, w = t/32, lane = t % 32;
    S *const all = (S *)rows, *const own = all + w*targets;
    for (int i = lane; i < targets; i += 32)
        own[i] = identity();
    __syncwarp();
    const L begin = ((L)blockIdx.x*warps + w)*chunk, end = begin + chunk < n ? begin + chunk : n;
    for (L at = begin; at < end; at += 128) {
        int to[4];
        S value[4];
        #pragma unroll
        for (int k = 0; k < 4; k++) {
            const L i = at + 32*k + lane;
            to[k] = i < end ? (int)where[i] : -1;
            value[k] = i < end ? get(v[i]) : identity();
        }
        #pragma unroll
        for (int k = 0; k < 4; k++) {
            const unsigned peers = __match_any_sync(0xffffffffu, (unsigned)to[k]);
            const int rank = to[k] < 0 ? -1 : (int)__popcll(peers & ((1ull << lane) - 1));
            for (int r = 0; __ballot_sync(0xffffffffu, rank == r); r++) {
                if (rank == r)
                    own[to[k]] = combine(own[to[k]], value[k]);
                __syncwarp();
            }
        }
    }
    __syncthreads();
    for (int i = t; i < targets; i += 32*warps) {
        S sum = all[i];
        for (int u = 1; u < warps; u++)
            sum = combine(sum, all[u*targets + i]);
        partials[(L)blockIdx.x*targets + i] = sum;
    }
}

extern "C" __global__ void __launch_bounds__(256)
kmerge(const T *base, const S *partials, T *y, const L blocks, const int targets)
{
    ci_await_kernels();
    __shared__ S ends[8][32];
    const int lane = (int)threadIdx.x % 32, w = (int)threadIdx.x/32, i = (int)blockIdx.x*32 + lane;
    const L part = (blocks + 7)/8, last = (w + 1)*part < blocks ? (w + 1)*part : blocks;
    S sum = identity();
    for (L b = w*part; i < targets && b < last; b++)
        sum = combine(sum, partials[b*targets + i]);
    ends[w][lane] = sum;
    __syncthreads();
    if (w || i >= targets)
        return;
    S all = get(base[i]);
    for (int u = 0; u < 8; u++)
        all = combine(all, ends[u][lane]);
    y[i] = put(all);
}
