/* Stable radix sort of the rows of a view (device/cuda/sort.c). y: where the last pass stores the result; or NULL.
 * places: positions of the elements in their rows; NULL: elements are sorted alone. */
#include "kernels/cuda/keys.cuh"
#include "kernels/cuda/sort.h"

typedef unsigned long long M;

extern "C" __global__ void __launch_bounds__(CI_SORT_THREADS)
kzero(unsigned *counts, const L n)
{
    const L i = (L)blockIdx.x*CI_SORT_THREADS + threadIdx.x;
    if (i < n)
        counts[i] = 0;
}

extern "C" __global__ void __launch_bounds__(CI_SORT_THREADS)
kload(const T *x, K *keys, unsigned *places, unsigned *counts, M *status, const Rows r, const L tiles, const int passes, const int each, const L first)
{
    __shared__ unsigned seen[8][CI_SORT_THREADS];
    const L row = first + blockIdx.y, begin = (L)blockIdx.x*each*CI_SORT_THREADS;
    const int t = (int)threadIdx.x;
    for (int p = 0; p < passes; p++)
        seen[p][t] = 0;
    for (L tile = begin/CI_SORT_TILE; tile < tiles && tile*CI_SORT_TILE < begin + CI_SORT_THREADS*each; tile++)
        status[(row*tiles + tile)*CI_SORT_THREADS + t] = 0;
    __syncthreads();
    for (int k = 0; k < each; k++) {
        const L i = begin + CI_SORT_THREADS*k + t;
        if (i < r.length) {
            const K own = key(x[start(r, row) + i*r.step]);
            keys[row*r.length + i] = own;
            if (places)
                places[row*r.length + i] = (unsigned)i;
            for (int p = 0; p < passes; p++)
                atomicAdd(&seen[p][(unsigned)(own >> 8*p) & 255], 1u);
        }
    }
    __syncthreads();
    for (int p = 0; p < passes; p++)
        if (seen[p][t])
            atomicAdd(&counts[row*CI_SORT_COUNTS + CI_SORT_THREADS*p + t], seen[p][t]);
}

static __device__ unsigned add_before(unsigned value, unsigned *all)
{
    __shared__ unsigned ends[8];
    const int t = (int)threadIdx.x, lane = t % 32;
    unsigned sum = value;
    for (int h = 1; h < 32; h *= 2) {
        const unsigned other = __shfl_sync(0xffffffffu, sum, lane < h ? lane : lane - h);
        if (lane >= h)
            sum += other;
    }
    __syncthreads();
    if (lane == 31)
        ends[t/32] = sum;
    __syncthreads();
    unsigned before = 0;
    *all = 0;
    for (int w = 0; w < 8; w++) {
        before += w < t/32 ? ends[w] : 0;
        *all += ends[w];
    }
    return before + sum - value;
}

/* Digits of earlier tiles: a tile tells its own count, then the sum up to it, under a number that grows from pass to pass.
 * It waits only for tiles whose blocks have begun, and these tell their own counts before they wait. */
static __device__ M look_back(M *status, const unsigned tile, const M count, const int pass)
{
    const M is_own = 2*pass + 1, is_sum = is_own + 1, low = ((M)1 << 56) - 1;
    M before = 0;
    if (tile)
        *(volatile M *)(status + tile*(M)CI_SORT_THREADS) = is_own << 56 | count;
    for (M k = tile; k > 0;) {
        const M told = *(volatile M *)(status + (k - 1)*CI_SORT_THREADS);
        if (told >> 56 < is_own)
            continue;
        before += told & low;
        k = told >> 56 == is_sum ? 0 : k - 1;
    }
    *(volatile M *)(status + tile*(M)CI_SORT_THREADS) = is_sum << 56 | before + count;
    return before;
}

extern "C" __global__ void __launch_bounds__(CI_SORT_THREADS)
ksweep(const K *keys, const unsigned *places, K *to_keys, unsigned *to_places, unsigned *counts, M *status, void *y, const Rows r, const L n, const L tiles, const int pass, const L first)
{
    __shared__ unsigned seen[8][CI_SORT_THREADS], away[CI_SORT_THREADS], tile_here;
    __shared__ K tile_keys[CI_SORT_TILE];
    const L row = first + blockIdx.y;
    const int t = (int)threadIdx.x, w = t/32, lane = t % 32, shift = 8*pass;
    if (t == 0) /* in the order in which blocks begin: those before it are running */
        tile_here = atomicAdd(&counts[row*CI_SORT_COUNTS + CI_SORT_DIGITS + pass], 1u);
    for (int k = 0; k < 8; k++)
        seen[k][t] = 0;
    __syncthreads();
    const L tile = (L)tile_here*CI_SORT_TILE;
    const int size = n - tile < CI_SORT_TILE ? (int)(n - tile) : CI_SORT_TILE;
    K own[16];
    unsigned rank[16], to[16];
    for (int k = 0; k < 16; k++) {
        const int i = CI_SORT_WARP_TILE*w + 32*k + lane;
        own[k] = i < size ? keys[row*n + tile + i] : 0;
    }
    for (int k = 0; k < 16; k++) {
        const bool is_there = CI_SORT_WARP_TILE*w + 32*k + lane < size;
        const unsigned digit = (unsigned)(own[k] >> shift) & 255;
        unsigned peers = __ballot_sync(0xffffffffu, is_there);
        for (int bit = 0; bit < 8; bit++) {
            const bool is_set = digit >> bit & 1;
            const unsigned those = __ballot_sync(0xffffffffu, is_set);
            peers &= is_set ? those : ~those;
        }
        const unsigned before = __popcll(peers & ((1ull << lane) - 1));
        rank[k] = before + seen[w][digit];
        __syncwarp();
        if (is_there && before == 0)
            seen[w][digit] += __popcll(peers);
        __syncwarp();
    }
    __syncthreads();
    unsigned all, count = 0;
    for (int k = 0; k < 8; k++) {
        const unsigned more = seen[k][t];
        seen[k][t] = count;
        count += more;
    }
    const unsigned earlier = (unsigned)look_back(status + row*tiles*CI_SORT_THREADS + t, tile_here, count, pass);
    const unsigned here = add_before(count, &all), there = add_before(counts[row*CI_SORT_COUNTS + CI_SORT_THREADS*pass + t], &all) + earlier;
    away[t] = there - here;
    for (int k = 0; k < 8; k++)
        seen[k][t] += here;
    __syncthreads();
    for (int k = 0; k < 16; k++)
        if (CI_SORT_WARP_TILE*w + 32*k + lane < size) {
            rank[k] += seen[w][(unsigned)(own[k] >> shift) & 255];
            tile_keys[rank[k]] = own[k];
        }
    __syncthreads();
    for (int k = 0; k < 16; k++)
        if (CI_SORT_THREADS*k + t < size) {
            const K moved = tile_keys[CI_SORT_THREADS*k + t];
            to[k] = CI_SORT_THREADS*k + t + away[(unsigned)(moved >> shift) & 255];
            if (!y)
                to_keys[row*n + to[k]] = moved;
            else if (!places)
                ((T *)y)[start(r, row) + to[k]*r.step] = back(moved);
        }
    if (!places)
        return;
    __syncthreads();
    unsigned *const tile_places = (unsigned *)tile_keys;
    for (int k = 0; k < 16; k++)
        if (CI_SORT_WARP_TILE*w + 32*k + lane < size)
            tile_places[rank[k]] = places[row*n + tile + CI_SORT_WARP_TILE*w + 32*k + lane];
    __syncthreads();
    for (int k = 0; k < 16; k++)
        if (CI_SORT_THREADS*k + t < size && y)
            ((L *)y)[start(r, row) + to[k]*r.step] = tile_places[CI_SORT_THREADS*k + t];
        else if (CI_SORT_THREADS*k + t < size)
            to_places[row*n + to[k]] = tile_places[CI_SORT_THREADS*k + t];
}
