/* Rows that one block sorts: a bitonic network (Batcher 1968) over items of 8 neighbours in the
 * registers of each thread.
 *
 * Items less than 8 apart are compared within a thread, those of a warp by shuffles, others through
 * shared memory, which also turns the result so that neighbouring threads store neighbouring
 * elements. An item is a key, or a key and its position in the row, which makes the sort stable. The
 * order of the items before the sort has no effect, so loads are contiguous. */
#include "device/cuda/library.h"

#include <stdio.h>
#include <string.h>

enum { ITEMS = 8, WARP_ITEMS = 256 };

static const char keys_alone[] =
    "typedef K V;\n"
    "static const bool PLACES = false;\n"
    "static __device__ V item(K k, int) { return k; }\n"
    "static __device__ K key_of(V v) { return v; }\n"
    "static __device__ unsigned place_of(V) { return 0; }\n"
    "static __device__ bool before(V a, V b) { return a < b; }\n"
    "static __device__ V across(V v, int h) { return __shfl_xor_sync(0xffffffffu, v, h); }\n"
    "static __device__ void put(unsigned char *s, int, int i, V v) { ((V *)s)[i] = v; }\n"
    "static __device__ V take(unsigned char *s, int, int i) { return ((V *)s)[i]; }\n";
static const char keys_in_numbers[] =
    "typedef unsigned long long V;\n"
    "static const bool PLACES = true;\n"
    "static __device__ V item(K k, int i) { return (V)k << 32 | (unsigned)i; }\n"
    "static __device__ K key_of(V v) { return (K)(v >> 32); }\n"
    "static __device__ unsigned place_of(V v) { return (unsigned)v; }\n"
    "static __device__ bool before(V a, V b) { return a < b; }\n"
    "static __device__ V across(V v, int h) { return __shfl_xor_sync(0xffffffffu, v, h); }\n"
    "static __device__ void put(unsigned char *s, int, int i, V v) { ((V *)s)[i] = v; }\n"
    "static __device__ V take(unsigned char *s, int, int i) { return ((V *)s)[i]; }\n";
static const char keys_and_places[] =
    "struct V { K k; unsigned p; };\n"
    "static const bool PLACES = true;\n"
    "static __device__ V item(K k, int i) { return V{k, (unsigned)i}; }\n"
    "static __device__ K key_of(V v) { return v.k; }\n"
    "static __device__ unsigned place_of(V v) { return v.p; }\n"
    "static __device__ bool before(V a, V b) { return a.k < b.k || (a.k == b.k && a.p < b.p); }\n"
    "static __device__ V across(V v, int h) { return V{__shfl_xor_sync(0xffffffffu, v.k, h), "
    "__shfl_xor_sync(0xffffffffu, v.p, h)}; }\n"
    "static __device__ void put(unsigned char *s, int size, int i, V v) { ((K *)s)[i] = v.k; "
    "((unsigned *)(s + sizeof(K)*size))[i] = v.p; }\n"
    "static __device__ V take(unsigned char *s, int size, int i) { return V{((K *)s)[i], "
    "((unsigned *)(s + sizeof(K)*size))[i]}; }\n";

static const char network[] =
    "static __device__ void order(V &a, V &b, bool up)\n"
    "{\n"
    "    const bool turns = before(b, a) == up;\n"
    "    const V c = turns ? b : a;\n"
    "    b = turns ? a : b;\n"
    "    a = c;\n"
    "}\n"
    "template <int J> static __device__ void step(V *v, bool up, int k)\n"
    "{\n"
    "    #pragma unroll\n"
    "    for (int e = 0; e < 8; e++)\n"
    "        if (!(e & J))\n"
    "            order(v[e], v[e | J], k < 8 ? !(e & k) : up);\n"
    "}\n"
    "static __device__ void cross(V *v, unsigned char *s, int size, int threads, int apart, bool least)\n"
    "{\n"
    "    const int t = (int)threadIdx.x;\n"
    "    if (apart >= 32) {\n"
    "        __syncthreads();\n"
    "        #pragma unroll\n"
    "        for (int e = 0; e < 8; e++)\n"
    "            put(s, size, e*threads + t, v[e]);\n"
    "        __syncthreads();\n"
    "    }\n"
    "    #pragma unroll\n"
    "    for (int e = 0; e < 8; e++) {\n"
    "        const V other = apart < 32 ? across(v[e], apart) : take(s, size, e*threads + (t ^ apart));\n"
    "        v[e] = before(other, v[e]) == least ? other : v[e];\n"
    "    }\n"
    "}\n"
    "extern \"C\" __global__ void __launch_bounds__(512)\n"
    "krows(const T *x, K *keys, unsigned *places, void *y, const Rows r, const Rows to, const int size)\n"
    "{\n"
    "    extern __shared__ __align__(16) unsigned char rows[];\n"
    "    const L row = blockIdx.x, begin = start(r, row), end = start(to, row);\n"
    "    const int n = (int)r.length, t = (int)threadIdx.x, threads = size < 256 ? 32 : size/8;\n"
    "    V v[8];\n"
    "    #pragma unroll\n"
    "    for (int e = 0; e < 8; e++) {\n"
    "        const int i = size < 256 ? 8*t + e : e*threads + t;\n"
    "        v[e] = item(i < n ? key(x[begin + i*r.step]) : ~(K)0, i);\n"
    "    }\n"
    "    step<1>(v, true, 2);\n"
    "    step<2>(v, true, 4);\n"
    "    step<1>(v, true, 4);\n"
    "    for (int k = 8; k <= size; k *= 2) {\n"
    "        const bool up = !(8*t & k);\n"
    "        for (int j = k/2; j >= 8; j /= 2)\n"
    "            cross(v, rows, size, threads, j/8, up == !(8*t & j));\n"
    "        step<4>(v, up, 8);\n"
    "        step<2>(v, up, 8);\n"
    "        step<1>(v, up, 8);\n"
    "    }\n"
    "    __syncthreads();\n"
    "    #pragma unroll\n"
    "    for (int e = 0; e < 8; e++)\n"
    "        if (8*t + e < size)\n"
    "            put(rows, size, (8*t + e) ^ (t/4 & 31), v[e]);\n"
    "    __syncthreads();\n"
    "    for (int i = t; i < n; i += threads) {\n"
    "        const V own = take(rows, size, i ^ (i/32 & 31));\n"
    "        if (y && PLACES)\n"
    "            ((L *)y)[end + i*to.step] = place_of(own);\n"
    "        else if (y)\n"
    "            ((T *)y)[end + i*to.step] = back(key_of(own));\n"
    "        else {\n"
    "            keys[row*n + i] = key_of(own);\n"
    "            if (PLACES)\n"
    "                places[row*n + i] = place_of(own);\n"
    "        }\n"
    "    }\n"
    "}\n";

static const char *const names[] = {"krows"};
const CiCudaText ci_cuda_sort_rows = {network, NULL, names, 1, false};

void
ci_cuda_print_items(char *out, size_t capacity, int key_bytes, bool has_places)
{
    size_t length = strlen(out);
    snprintf(out + length, capacity - length, "%s",
             !has_places      ? keys_alone
             : key_bytes == 4 ? keys_in_numbers
                              : keys_and_places);
}

int
ci_cuda_item_bytes(int key_bytes, bool has_places)
{
    return key_bytes + (has_places ? 4 : 0);
}

int
ci_cuda_row_size(int64_t length)
{
    int size = ITEMS;
    while (size < length)
        size *= 2;
    return size;
}

int
ci_cuda_row_threads(int size)
{
    return size < WARP_ITEMS ? WARP_ITEMS / ITEMS : size / ITEMS;
}
