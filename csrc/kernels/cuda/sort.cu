/* Stable radix sort of the rows of a view (device/cuda/sort.c). y: where the last pass stores the result; or NULL.
 * PLACES: positions of the elements in their rows go along; 0: elements are sorted alone. */
#include "kernels/cuda/keys.cuh"
#include "kernels/cuda/sort.h"

typedef unsigned long long M;
enum { EACH = CI_SORT_TILE_BYTES/sizeof(K)/CI_SORT_THREADS, TILE = EACH*CI_SORT_THREADS }; /* keys of a thread, of a block */

extern "C" __global__ void __launch_bounds__(CI_SORT_THREADS)
kzero(unsigned *counts, const L n)
{
    ci_await_kernels();
    const L i = (L)blockIdx.x*CI_SORT_THREADS + threadIdx.x;
    if (i < n)
        counts[i] = 0;
}

/* Counts the digits of `each` elements a block, and stores the elements' keys where `keys` is not NULL. */
extern "C" __global__ void __launch_bounds__(CI_SORT_THREADS)
kload(const T *x, K *keys, unsigned *positions, unsigned *counts, M *status, const Rows r, const L tiles, const int passes, const int each, const L first)
{
    ci_await_kernels();
    __shared__ unsigned seen[sizeof(K)][CI_SORT_THREADS];
    const L row = first + blockIdx.y, begin = (L)blockIdx.x*each;
    const T *const from = x + start(r, row) + begin*r.step;
    const int t = (int)threadIdx.x, size = r.length - begin < each ? (int)(r.length - begin) : each;
    for (int p = 0; p < passes; p++)
        seen[p][t] = 0;
    for (L k = (begin + TILE - 1)/TILE; k < tiles && k*TILE < begin + each; k++)
        status[(row*tiles + k)*CI_SORT_THREADS + t] = 0;
    __syncthreads();
    for (int k = t; k < size; k += 8*CI_SORT_THREADS) {
        K own[8];
        if (r.step == 1 && k + 7*CI_SORT_THREADS < size)
            #pragma unroll
            for (int e = 0; e < 8; e++)
                own[e] = from[k + CI_SORT_THREADS*e];
        else
            #pragma unroll
            for (int e = 0; e < 8; e++)
                own[e] = k + CI_SORT_THREADS*e < size ? from[(k + CI_SORT_THREADS*e)*r.step] : 0;
        #pragma unroll
        for (int e = 0; e < 8; e++) {
            const L i = begin + k + CI_SORT_THREADS*e;
            if (k + CI_SORT_THREADS*e >= size)
                continue;
            own[e] = key((T)own[e]);
            if (keys)
                keys[row*r.length + i] = own[e];
            if (keys && PLACES)
                positions[row*r.length + i] = (unsigned)i;
            #pragma unroll
            for (int p = 0; p < (int)sizeof(K); p++)
                if (p < passes)
                    atomicAdd(&seen[p][(unsigned)(own[e] >> 8*p) & 255], 1u);
        }
    }
    __syncthreads();
    for (int p = 0; p < passes; p++)
        if (seen[p][t])
            atomicAdd(&counts[row*CI_SORT_COUNTS + CI_SORT_THREADS*p + t], seen[p][t]);
}

/* The sum of the values of threads before this one. */
static __device__ unsigned add_before(unsigned value)
{
    __shared__ unsigned ends[8];
    const int t = (int)threadIdx.x, lane = t % 32;
    unsigned sum = value, before = 0;
    for (int h = 1; h < 32; h *= 2) {
        const unsigned other = __shfl_sync(0xffffffffu, sum, lane < h ? lane : lane - h);
        if (lane >= h)
            sum += other;
    }
    __syncthreads();
    if (lane == 31)
        ends[t/32] = sum;
    __syncthreads();
    for (int w = 0; w < 8; w++)
        before += w < t/32 ? ends[w] : 0;
    return before + sum - value;
}

/* Digits of earlier tiles: a tile tells its own count, then the sum up to it, under a number that grows from pass to pass.
 * It waits only for tiles whose blocks have begun, and these tell their own counts before they wait. It reads four of them at
 * a time, so that the tiles of a short row wait less often. */
static __device__ void publish(M *status, const unsigned tile, const M count, const int pass)
{
    *(volatile M *)(status + tile*(M)CI_SORT_THREADS) = (M)(2*pass + 1 + (tile == 0)) << 56 | count;
}

static __device__ M look_back(M *status, const unsigned tile, const M count, const int pass)
{
    const M is_own = 2*pass + 1, is_sum = is_own + 1, low = ((M)1 << 56) - 1;
    M before = 0;
    for (M k = tile; k > 0;) {
        M found_counts[4], left = k;
        #pragma unroll
        for (int j = 0; j < 4; j++)
            found_counts[j] = k > j ? *(volatile M *)(status + (k - 1 - j)*CI_SORT_THREADS) : 0;
        #pragma unroll
        for (int j = 0; j < 4; j++) {
            const bool is_next = left && left == k - j && found_counts[j] >> 56 >= is_own;
            before += is_next ? found_counts[j] & low : 0;
            left = !is_next ? left : found_counts[j] >> 56 == is_sum ? 0 : left - 1;
        }
        k = left;
    }
    if (tile)
        *(volatile M *)(status + tile*(M)CI_SORT_THREADS) = is_sum << 56 | before + count;
    return before;
}

/* The keys of a thread, of which each warp has neighbours. x: the elements, or NULL: `keys` has their keys. */
static __device__ __forceinline__ void load_keys(K *own, const T *x, const K *keys, const int mine, const int size)
{
    #pragma unroll
    for (int k = 0; k < EACH; k++)
        own[k] = mine + 32*k >= size ? 0 : x ? x[mine + 32*k] : keys[mine + 32*k];
    #pragma unroll
    for (int k = 0; k < EACH; k++)
        own[k] = x ? key((T)own[k]) : own[k];
}

/* The positions of the keys in the order of their digits. seen: how many keys with each digit come before those of the warp. */
static __device__ __forceinline__ void rank_keys(unsigned short *rank, const K *own, unsigned *seen, const int mine, const int size, const int shift)
{
    #pragma unroll
    for (int k = 0; k < EACH; k++) {
        const bool is_there = mine + 32*k < size;
        const unsigned digit = (unsigned)(own[k] >> shift) & 255;
        unsigned peers = __ballot_sync(0xffffffffu, is_there);
        #pragma unroll
        for (int bit = 0; bit < 8; bit++) {
            const bool is_set = digit >> bit & 1;
            const unsigned those = __ballot_sync(0xffffffffu, is_set);
            peers &= is_set ? those : ~those;
        }
        const unsigned before = __popcll(peers & ((1ull << threadIdx.x % 32) - 1));
        rank[k] = (unsigned short)(before + seen[digit]);
        __syncwarp();
        if (is_there && before == 0)
            seen[digit] += __popcll(peers);
        __syncwarp();
    }
}

/* One pass. x: the first one reads the elements themselves, which are neighbours; or NULL. Three blocks run on a
 * multiprocessor; with positions more registers are needed. */
extern "C" __global__ void __launch_bounds__(CI_SORT_THREADS, PLACES ? 2 : 3)
ksweep(const T *x, const K *keys, const unsigned *positions, K *to_keys, unsigned *to_positions, unsigned *counts, M *status, void *y, const Rows from, const Rows r, const L n, const L tiles, const int pass, const L first)
{
    ci_await_kernels();
    __shared__ __align__(16) K tile_keys[TILE];
    __shared__ unsigned away[CI_SORT_THREADS], tile_here;
    const L row = first + blockIdx.y;
    const int t = (int)threadIdx.x, w = t/32, lane = t % 32, shift = 8*pass;
    unsigned *const all = (unsigned *)tile_keys, *const seen = all + CI_SORT_THREADS*w; /* until the keys are ranked */
    if (t == 0) /* in the order in which blocks begin: those before it are running */
        tile_here = atomicAdd(&counts[row*CI_SORT_COUNTS + CI_SORT_DIGITS + pass], 1u);
    for (int k = 0; k < 8; k++)
        all[CI_SORT_THREADS*k + t] = 0;
    __syncthreads();
    const L tile = (L)tile_here*TILE;
    const int size = n - tile < TILE ? (int)(n - tile) : TILE, mine = 32*EACH*w + lane;
    K own[EACH];
    unsigned short rank[EACH];
    load_keys(own, x ? x + start(from, row) + tile : 0, keys + row*n + tile, mine, size);
    #pragma unroll
    for (int k = 0; k < EACH; k++)
        if (mine + 32*k < size)
            atomicAdd(&seen[(unsigned)(own[k] >> shift) & 255], 1u);
    __syncthreads();
    unsigned count = 0;
    for (int k = 0; k < 8; k++) {
        const unsigned more = all[CI_SORT_THREADS*k + t];
        all[CI_SORT_THREADS*k + t] = count;
        count += more;
    }
    publish(status + row*tiles*CI_SORT_THREADS + t, tile_here, count, pass);
    const unsigned here = add_before(count);
    for (int k = 0; k < 8; k++)
        all[CI_SORT_THREADS*k + t] += here;
    __syncthreads();
    rank_keys(rank, own, seen, mine, size, shift);
    __syncthreads();
    #pragma unroll
    for (int k = 0; k < EACH; k++)
        if (mine + 32*k < size)
            tile_keys[rank[k]] = own[k];
    const unsigned there = add_before(counts[row*CI_SORT_COUNTS + CI_SORT_THREADS*pass + t]);
    away[t] = there - here + (unsigned)look_back(status + row*tiles*CI_SORT_THREADS + t, tile_here, count, pass);
    __syncthreads();
    if (!y) {
        K *const row_there = to_keys + row*n;
        #pragma unroll
        for (int k = 0; k < EACH; k++)
            if (CI_SORT_THREADS*k + t < size) {
                const K moved = tile_keys[CI_SORT_THREADS*k + t];
                row_there[CI_SORT_THREADS*k + t + away[(unsigned)(moved >> shift) & 255]] = moved;
            }
    }
    else if (!PLACES) {
        T *const row_there = (T *)y + start(r, row);
        #pragma unroll
        for (int k = 0; k < EACH; k++)
            if (CI_SORT_THREADS*k + t < size) {
                const K moved = tile_keys[CI_SORT_THREADS*k + t];
                row_there[(CI_SORT_THREADS*k + t + away[(unsigned)(moved >> shift) & 255])*r.step] = back(moved);
            }
    }
#if PLACES
    unsigned to[EACH];
    #pragma unroll
    for (int k = 0; k < EACH; k++)
        to[k] = CI_SORT_THREADS*k + t + away[(unsigned)(tile_keys[CI_SORT_THREADS*k + t] >> shift) & 255];
    __syncthreads();
    unsigned *const tile_positions = (unsigned *)tile_keys;
    #pragma unroll
    for (int k = 0; k < EACH; k++)
        if (mine + 32*k < size)
            tile_positions[rank[k]] = x ? (unsigned)(tile + mine + 32*k) : positions[row*n + tile + mine + 32*k];
    __syncthreads();
    L *const row_there = (L *)y + (y ? start(r, row) : 0);
    #pragma unroll
    for (int k = 0; k < EACH; k++)
        if (CI_SORT_THREADS*k + t < size && y)
            row_there[to[k]*r.step] = tile_positions[CI_SORT_THREADS*k + t];
        else if (CI_SORT_THREADS*k + t < size)
            to_positions[row*n + to[k]] = tile_positions[CI_SORT_THREADS*k + t];
#endif
}
