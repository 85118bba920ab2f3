/* np.sort, np.argsort, partitions and quantiles along one axis, by keys: unsigned numbers in the
 * order of the elements. Each short row is sorted by one block (sort_rows.c). Long rows are sorted by a stable radix
 * sort, 8 bits of the key at a time from the lowest. The digits of all passes are counted first. In a pass each tile
 * counts its digits and tells them, and then orders its elements in shared memory, ranked by warp-wide votes. It learns
 * from the tiles before it how many of each digit they have (decoupled look-back), and writes its elements in runs.
 * Equal elements stay in order of their positions; a partition is a full sort. */
#include "device/cuda/library.h"

#include <stdio.h>
#include <string.h>

/* Numbers that also stand in the text of kernels, where TEXT(name) is the number. */
#define THREADS 256      /* of a block: one for each value of a digit */
#define TILE_BYTES 24576 /* keys of a block */
#define DIGITS 2048      /* counts of a row: of the digits of each pass, */
#define COUNTS 2304      /* then tiles that have begun in each */
_Static_assert(TILE_BYTES % (8 * THREADS) == 0, "each thread has as many keys of a tile, of 4 or 8 bytes");
_Static_assert(DIGITS == 8 * THREADS && COUNTS == DIGITS + THREADS, "keys have eight digits at most");
#define NUMBER(name) #name
#define TEXT(name) NUMBER(name)
enum {
    LOADED = 4096,      /* elements that a block counts, */
    MANY_LOADED = 16384, /* and of a long row, so that fewer add to the counts */
    LONG_ROW = 1 << 22,
    MAX_ROWS = 65535
};

/* ---- keys ---- */

bool
ci_cuda_has_keys(CiDtype dtype)
{
    return ci_dtype_class(dtype) != CI_CLASS_complex;
}

/* A float's bits are in the order of magnitude: of those with a sign all are turned. */
void
ci_cuda_print_keys(char *out, size_t capacity, CiDtype dtype, bool alike)
{
    int size = ci_dtype_size(dtype);
    CiClass class = ci_dtype_class(dtype);
    unsigned long long sign = 1ull << (8 * size - 1),
                       infinity = dtype == CI_DTYPE_f64   ? 0x7ff0000000000000ull
                                  : dtype == CI_DTYPE_f32 ? 0x7f800000ull
                                  : dtype == CI_DTYPE_f16 ? 0x7c00ull
                                                          : 0x7f80ull;
    int length = snprintf(out, capacity,
                          "%stypedef %s T;\ntypedef %s K;\ntypedef unsigned long long M;\nstatic const K SIGN = %lluull, "
                          "INFINITE = %lluull;\n",
                          ci_cuda_rows_text, ci_cuda_unsigned(size),
                          ci_cuda_unsigned(size == 8 ? 8 : 4), sign, infinity);
    const char *text =
        class == CI_CLASS_float
            ? "static __device__ K key(T x) { const K a = x & ~SIGN; if (a > INFINITE) return "
              "(T)~(T)0; if (ALIKE && !a) x = 0; return x & SIGN ? (T)~x : (K)(x | SIGN); }\n"
              "static __device__ T back(K k) { return k & SIGN ? (T)(k ^ SIGN) : (T)~k; }\n"
        : class == CI_CLASS_int ? "static __device__ K key(T x) { return x ^ SIGN; }\n"
                                  "static __device__ T back(K k) { return (T)(k ^ SIGN); }\n"
                                : "static __device__ K key(T x) { return x; }\n"
                                  "static __device__ T back(K k) { return (T)k; }\n";
    if (class == CI_CLASS_float)
        length += snprintf(out + length, capacity - (size_t)length,
                           "static const bool ALIKE = %s;\n", alike ? "true" : "false");
    snprintf(out + length, capacity - (size_t)length, "%s", text);
}

/* Elements as numbers that quantiles are computed in. */
static void
print_values(char *out, size_t capacity, CiDtype dtype)
{
    static const char *const types[] = {
        [1] = "signed char", [2] = "short", [4] = "int", [8] = "long long"};
    bool is_signed = ci_dtype_class(dtype) == CI_CLASS_int;
    if (dtype == CI_DTYPE_f32)
        snprintf(out, capacity, "typedef float S;\nstatic __device__ S value(T x) { return "
                                "__int_as_float((int)x); }\n");
    else if (dtype == CI_DTYPE_f64)
        snprintf(out, capacity, "typedef double S;\nstatic __device__ S value(T x) { return "
                                "__longlong_as_double((long long)x); }\n");
    else
        snprintf(out, capacity, "typedef double S;\nstatic __device__ S value(T x) { return (S)(%s)x; }\n",
                 is_signed ? types[ci_dtype_size(dtype)] : "T");
}

/* ---- kernels ---- */

static const char rows_text[] =
    "enum { EACH = " TEXT(TILE_BYTES) "/sizeof(K)/" TEXT(THREADS) ", TILE = EACH*" TEXT(THREADS) " };\n"
    "extern \"C\" __global__ void __launch_bounds__(" TEXT(THREADS) ")\n"
    "kzero(unsigned *counts, const L n)\n"
    "{\n"
    "    const L i = blockIdx.x*" TEXT(THREADS) "LL + threadIdx.x;\n"
    "    if (i < n)\n"
    "        counts[i] = 0;\n"
    "}\n"
    "extern \"C\" __global__ void __launch_bounds__(" TEXT(THREADS) ")\n"
    "kload(const T *x, K *keys, unsigned *places, unsigned *counts, M *status, const Rows r, const L tiles, const int passes, const int each, const L first)\n"
    "{\n"
    "    __shared__ unsigned seen[8][" TEXT(THREADS) "];\n"
    "    const L row = first + blockIdx.y, begin = (L)blockIdx.x*each;\n"
    "    const int t = (int)threadIdx.x;\n"
    "    for (int p = 0; p < passes; p++)\n"
    "        seen[p][t] = 0;\n"
    "    for (L k = (begin + TILE - 1)/TILE; k < tiles && k*TILE < begin + each; k++)\n"
    "        status[(row*tiles + k)*" TEXT(THREADS) " + t] = 0;\n"
    "    __syncthreads();\n"
    "    for (int k = t; k < each; k += 4*" TEXT(THREADS) ") {\n"
    "        K own[4];\n"
    "        #pragma unroll\n"
    "        for (int e = 0; e < 4; e++) {\n"
    "            const L i = begin + k + " TEXT(THREADS) "*e;\n"
    "            own[e] = i < r.length ? key(x[start(r, row) + i*r.step]) : 0;\n"
    "        }\n"
    "        #pragma unroll\n"
    "        for (int e = 0; e < 4; e++) {\n"
    "            const L i = begin + k + " TEXT(THREADS) "*e;\n"
    "            if (i >= r.length)\n"
    "                continue;\n"
    "            if (keys)\n"
    "                keys[row*r.length + i] = own[e];\n"
    "            if (keys && PLACES)\n"
    "                places[row*r.length + i] = (unsigned)i;\n"
    "            for (int p = 0; p < passes; p++)\n"
    "                atomicAdd(&seen[p][(unsigned)(own[e] >> 8*p) & 255], 1u);\n"
    "        }\n"
    "    }\n"
    "    __syncthreads();\n"
    "    for (int p = 0; p < passes; p++)\n"
    "        if (seen[p][t])\n"
    "            atomicAdd(&counts[row*" TEXT(COUNTS) " + " TEXT(THREADS) "*p + t], seen[p][t]);\n"
    "}\n"
    "/* The sum of the values of threads before this one. */\n"
    "static __device__ unsigned add_before(unsigned value)\n"
    "{\n"
    "    __shared__ unsigned ends[8];\n"
    "    const int t = (int)threadIdx.x, lane = t % 32;\n"
    "    unsigned sum = value, before = 0;\n"
    "    for (int h = 1; h < 32; h *= 2) {\n"
    "        const unsigned other = __shfl_sync(0xffffffffu, sum, lane < h ? lane : lane - h);\n"
    "        if (lane >= h)\n"
    "            sum += other;\n"
    "    }\n"
    "    __syncthreads();\n"
    "    if (lane == 31)\n"
    "        ends[t/32] = sum;\n"
    "    __syncthreads();\n"
    "    for (int w = 0; w < 8; w++)\n"
    "        before += w < t/32 ? ends[w] : 0;\n"
    "    return before + sum - value;\n"
    "}\n"
    "/* Digits of earlier tiles: a tile tells its own count, then the sum up to it, under a number that grows from pass to pass.\n"
    " * It waits only for tiles whose blocks have begun, and these tell their own counts before they wait. It reads four of them at\n"
    " * a time, so that the tiles of a short row wait less often. */\n"
    "static __device__ void tell(M *status, const unsigned tile, const M count, const int pass)\n"
    "{\n"
    "    *(volatile M *)(status + tile*(M)" TEXT(THREADS) ") = (M)(2*pass + 1 + (tile == 0)) << 56 | count;\n"
    "}\n"
    "static __device__ M look_back(M *status, const unsigned tile, const M count, const int pass)\n"
    "{\n"
    "    const M is_own = 2*pass + 1, is_sum = is_own + 1, low = ((M)1 << 56) - 1;\n"
    "    M before = 0;\n"
    "    for (M k = tile; k > 0;) {\n"
    "        M told[4], left = k;\n"
    "        #pragma unroll\n"
    "        for (int j = 0; j < 4; j++)\n"
    "            told[j] = k > j ? *(volatile M *)(status + (k - 1 - j)*" TEXT(THREADS) ") : 0;\n"
    "        #pragma unroll\n"
    "        for (int j = 0; j < 4; j++) {\n"
    "            const bool is_next = left && left == k - j && told[j] >> 56 >= is_own;\n"
    "            before += is_next ? told[j] & low : 0;\n"
    "            left = !is_next ? left : told[j] >> 56 == is_sum ? 0 : left - 1;\n"
    "        }\n"
    "        k = left;\n"
    "    }\n"
    "    if (tile)\n"
    "        *(volatile M *)(status + tile*(M)" TEXT(THREADS) ") = is_sum << 56 | before + count;\n"
    "    return before;\n"
    "}\n";
static const char radix_text[] =
    "extern \"C\" __global__ void __launch_bounds__(" TEXT(THREADS) ", PLACES ? 2 : 3)\n" /* more blocks have too few registers */
    "ksweep(const T *x, const K *keys, const unsigned *places, K *to_keys, unsigned *to_places, unsigned *counts, M *status, void *y, const Rows from, const Rows r, const L n, const L tiles, const int pass, const L first)\n"
    "{\n"
    "    __shared__ __align__(16) K tile_keys[TILE];\n"
    "    __shared__ unsigned away[" TEXT(THREADS) "], tile_here;\n"
    "    const L row = first + blockIdx.y;\n"
    "    const int t = (int)threadIdx.x, w = t/32, lane = t % 32, shift = 8*pass;\n"
    "    unsigned *const all = (unsigned *)tile_keys, *const seen = all + " TEXT(THREADS) "*w; /* until the keys are ranked */\n"
    "    if (t == 0) /* in the order in which blocks begin: those before it are running */\n"
    "        tile_here = atomicAdd(&counts[row*" TEXT(COUNTS) " + " TEXT(DIGITS) " + pass], 1u);\n"
    "    for (int k = t; k < 8*" TEXT(THREADS) "; k += " TEXT(THREADS) ")\n"
    "        all[k] = 0;\n"
    "    __syncthreads();\n"
    "    const L tile = tile_here*(L)TILE;\n"
    "    const int size = n - tile < TILE ? (int)(n - tile) : TILE, mine = 32*EACH*w + lane;\n"
    "    K own[EACH];\n"
    "    unsigned short rank[EACH];\n"
    "    #pragma unroll\n"
    "    for (int k = 0; k < EACH; k++)\n"
    "        own[k] = mine + 32*k >= size ? 0 : x ? (K)x[start(from, row) + tile + mine + 32*k] : keys[row*n + tile + mine + 32*k];\n"
    "    #pragma unroll\n"
    "    for (int k = 0; k < EACH; k++) {\n"
    "        own[k] = x ? key((T)own[k]) : own[k];\n"
    "        if (mine + 32*k < size)\n"
    "            atomicAdd(&seen[(unsigned)(own[k] >> shift) & 255], 1u);\n"
    "    }\n"
    "    __syncthreads();\n"
    "    unsigned count = 0;\n"
    "    for (int k = 0; k < 8; k++) {\n"
    "        const unsigned more = all[" TEXT(THREADS) "*k + t];\n"
    "        all[" TEXT(THREADS) "*k + t] = count;\n"
    "        count += more;\n"
    "    }\n"
    "    tell(status + row*tiles*" TEXT(THREADS) " + t, tile_here, count, pass);\n"
    "    const unsigned here = add_before(count);\n"
    "    for (int k = 0; k < 8; k++)\n"
    "        all[" TEXT(THREADS) "*k + t] += here;\n"
    "    __syncthreads();\n"
    "    #pragma unroll\n"
    "    for (int k = 0; k < EACH; k++) {\n"
    "        const bool is_there = mine + 32*k < size;\n"
    "        const unsigned digit = (unsigned)(own[k] >> shift) & 255;\n"
    "        unsigned peers = __ballot_sync(0xffffffffu, is_there);\n"
    "        #pragma unroll\n"
    "        for (int bit = 0; bit < 8; bit++) {\n"
    "            const bool is_set = digit >> bit & 1;\n"
    "            const unsigned those = __ballot_sync(0xffffffffu, is_set);\n"
    "            peers &= is_set ? those : ~those;\n"
    "        }\n"
    "        const unsigned before = __popcll(peers & ((1ull << lane) - 1));\n"
    "        rank[k] = (unsigned short)(before + seen[digit]);\n"
    "        __syncwarp();\n"
    "        if (is_there && before == 0)\n"
    "            seen[digit] += __popcll(peers);\n"
    "        __syncwarp();\n"
    "    }\n"
    "    __syncthreads();\n"
    "    #pragma unroll\n"
    "    for (int k = 0; k < EACH; k++)\n"
    "        if (mine + 32*k < size)\n"
    "            tile_keys[rank[k]] = own[k];\n"
    "    const unsigned there = add_before(counts[row*" TEXT(COUNTS) " + " TEXT(THREADS) "*pass + t]);\n"
    "    away[t] = there - here + (unsigned)look_back(status + row*tiles*" TEXT(THREADS) " + t, tile_here, count, pass);\n"
    "    __syncthreads();\n"
    "    unsigned to[PLACES ? EACH : 1];\n"
    "    #pragma unroll\n"
    "    for (int k = 0; k < EACH; k++)\n"
    "        if (" TEXT(THREADS) "*k + t < size) {\n"
    "            const K moved = tile_keys[" TEXT(THREADS) "*k + t];\n"
    "            const unsigned at = " TEXT(THREADS) "*k + t + away[(unsigned)(moved >> shift) & 255];\n"
    "            if (!y)\n"
    "                to_keys[row*n + at] = moved;\n"
    "            else if (!PLACES)\n"
    "                ((T *)y)[start(r, row) + at*r.step] = back(moved);\n"
    "            if (PLACES)\n"
    "                to[k] = at;\n"
    "        }\n"
    "    if (!PLACES)\n"
    "        return;\n"
    "    __syncthreads();\n"
    "    unsigned *const tile_places = (unsigned *)tile_keys;\n"
    "    #pragma unroll\n"
    "    for (int k = 0; k < EACH; k++)\n"
    "        if (mine + 32*k < size)\n"
    "            tile_places[rank[k]] = x ? (unsigned)(tile + mine + 32*k) : places[row*n + tile + mine + 32*k];\n"
    "    __syncthreads();\n"
    "    #pragma unroll\n"
    "    for (int k = 0; k < EACH; k++)\n"
    "        if (" TEXT(THREADS) "*k + t < size && y)\n"
    "            ((L *)y)[start(r, row) + to[PLACES ? k : 0]*r.step] = tile_places[" TEXT(THREADS) "*k + t];\n"
    "        else if (" TEXT(THREADS) "*k + t < size)\n"
    "            to_places[row*n + to[PLACES ? k : 0]] = tile_places[" TEXT(THREADS) "*k + t];\n"
    "}\n";
static const char quantile_text[] =
    "extern \"C\" __global__ void __launch_bounds__(" TEXT(THREADS) ")\n"
    "kquantile(const K *keys, S *y, const Rows r, const L n, const double asked, const bool is_median)\n"
    "{\n"
    "    const L row = blockIdx.x*" TEXT(THREADS) "LL + threadIdx.x;\n"
    "    if (row >= r.rows)\n"
    "        return;\n"
    "    const K *own = keys + row*n;\n"
    "    const S at = is_median ? (S)(n - 1)/2 : (S)(n - 1)*(S)asked;\n"
    "    const L low = is_median ? (n - 1)/2 : (L)at, high = is_median ? n/2 : low + 1 < n ? low + 1 : low;\n"
    "    const S a = value(back(own[low])), b = value(back(own[high])), last = value(back(own[n - 1]));\n"
    "    const S t = at - (S)low, wide = b - a;\n"
    "    S found = t >= (S)0.5 ? b - wide*(1 - t) : a + wide*t;\n"
    "    if (is_median)\n"
    "        found = 0 + (low == high ? a : (a + b)/2); /* a mean is no -0.0 */\n"
    "    y[start(r, row)] = last != last ? last : found;\n"
    "}\n";

enum { ZERO, LOAD, SWEEP };
static const char *const sort_names[] = {"kzero", "kload", "ksweep"};
static const char *const quantile_names[] = {"kquantile"};
static const CiCudaText sort_kernels = {rows_text, radix_text, sort_names, 3, false};
static const CiCudaText quantile_kernels = {quantile_text, NULL, quantile_names, 1, false};

void
ci_cuda_sort_launch(CiCudaSort *s, CUfunction kernel, int64_t blocks, int64_t rows, int threads,
                    int64_t shared_bytes, void **parameters)
{
    if (!s->result)
        s->result = s->stay.driver->launch(kernel, (unsigned)blocks, (unsigned)rows, 1,
                                           (unsigned)threads, 1, 1, (unsigned)shared_bytes,
                                           s->queue->stream, parameters, NULL);
}

/* ---- memory ---- */

static bool
is_short(const CiCudaSort *s)
{
    return s->from.length <= CI_CUDA_SHORT_ROW;
}

/* True if blocks store the result themselves, so that no keys are needed in memory. */
static bool
is_direct(const CiCudaSort *s)
{
    return is_short(s) && s->to;
}

static size_t
whole(int64_t bytes)
{
    return ((size_t)bytes + 255) / 256 * 256;
}

static int32_t
take_memory(CiCudaSort *s)
{
    int64_t count = s->from.rows * s->from.length;
    int copies = is_direct(s) ? 0 : is_short(s) ? 1 : 2;
    size_t keys = whole(count * s->key_bytes), places = s->has_places ? whole(4 * count) : 0,
           counts = is_short(s) ? 0 : whole(4 * COUNTS * s->from.rows),
           states = is_short(s) ? 0 : whole(8 * THREADS * s->from.rows * s->tiles),
           all = (size_t)copies * (keys + places) + counts + states;
    int result = all ? ci_cuda_block_take(&s->stay, all, s->queue->stream, &s->block) : 0;
    int32_t status = result ? CI_ERR_MEMORY : CI_OK;
    CUdeviceptr at = s->block;
    for (int k = 0; k < copies; k++, at += keys + places) {
        s->keys[k] = at;
        s->places[k] = s->has_places ? at + keys : 0;
    }
    s->counts = at;
    s->states = at + counts;
    s->bytes = all;
    s->block = status ? 0 : s->block;
    return status;
}

/* ---- steps ---- */

static void
sort_short(CiCudaSort *s, CUdeviceptr x)
{
    const CiCudaRows *to = is_direct(s) ? s->to : &s->from;
    CUdeviceptr y = is_direct(s) ? s->y : 0;
    int size = ci_cuda_row_size(s->from.length);
    void *parameters[] = {&x, &s->keys[0], &s->places[0], &y, &s->from, (void *)(uintptr_t)to, &size};
    ci_cuda_sort_launch(s, s->kernels[0], s->from.rows, 1, ci_cuda_row_threads(size),
                        (int64_t)size * ci_cuda_item_bytes(s->key_bytes, s->has_places), parameters);
}

/* From the first keys and places to the second, which are then the first; the last time to the result. */
static void
sort_digit(CiCudaSort *s, CUdeviceptr x, int pass, int64_t first, int64_t rows)
{
    int64_t *n = &s->from.length;
    int from = pass % 2, to = !from;
    CUdeviceptr y = s->to && pass == s->passes - 1 ? s->y : 0;
    void *result = (void *)(uintptr_t)(s->to ? s->to : &s->from);
    void *parameters[] = {&x,         &s->keys[from], &s->places[from], &s->keys[to], &s->places[to], &s->counts, &s->states,
                          &y,         &s->from,       result,           n,            &s->tiles,      &pass,      &first};
    ci_cuda_sort_launch(s, s->kernels[SWEEP], s->tiles, rows, THREADS, 0, parameters);
}

/* The first pass reads the elements themselves, where they are neighbours. */
static void
sort_long(CiCudaSort *s, CUdeviceptr x)
{
    int64_t counts = COUNTS * s->from.rows;
    int each = s->from.length >= LONG_ROW ? MANY_LOADED : LOADED;
    bool are_near = s->from.step == 1;
    CUdeviceptr keys = are_near ? 0 : s->keys[0];
    void *zero[] = {&s->counts, &counts};
    ci_cuda_sort_launch(s, s->kernels[ZERO], (counts + THREADS - 1) / THREADS, 1, THREADS, 0, zero);
    for (int64_t first = 0, rows; first < s->from.rows; first += rows) {
        rows = s->from.rows - first < MAX_ROWS ? s->from.rows - first : MAX_ROWS;
        int64_t blocks = (s->from.length + each - 1) / each;
        void *load[] = {&x,       &keys,     &s->places[0], &s->counts, &s->states,
                        &s->from, &s->tiles, &s->passes,    &each,      &first};
        ci_cuda_sort_launch(s, s->kernels[LOAD], blocks, rows, THREADS, 0, load);
        for (int k = 0; k < s->passes; k++)
            sort_digit(s, k == 0 && are_near ? x : 0, k, first, rows);
    }
}

static int
sorted_copy(const CiCudaSort *s)
{
    return is_short(s) ? 0 : s->passes % 2;
}

CUdeviceptr
ci_cuda_sorted_keys(const CiCudaSort *s)
{
    return s->keys[sorted_copy(s)];
}

CUdeviceptr
ci_cuda_sorted_places(const CiCudaSort *s)
{
    return s->places[sorted_copy(s)];
}

int32_t
ci_cuda_sort(CiCudaSort *s, const void *elements, CiDtype dtype, bool alike)
{
    char beginning[4000];
    s->key_bytes = ci_dtype_size(dtype) == 8 ? 8 : 4;
    s->passes = s->passes ? s->passes : ci_dtype_size(dtype);
    s->tiles = (s->from.length * s->key_bytes + TILE_BYTES - 1) / TILE_BYTES;
    if (s->from.length > UINT32_MAX)
        return CI_ERR_MEMORY;
    ci_cuda_print_keys(beginning, sizeof beginning, dtype, alike);
    if (is_short(s))
        ci_cuda_print_items(beginning, sizeof beginning, s->key_bytes, s->has_places);
    else
        snprintf(beginning + strlen(beginning), sizeof beginning - strlen(beginning), "static const bool PLACES = %s;\n",
                 s->has_places ? "true" : "false");
    int kind = 4 * (int)dtype + 2 * alike + s->has_places;
    int32_t status =
        ci_cuda_load_text(s->queue, s->stay.state, is_short(s) ? &ci_cuda_sort_rows : &sort_kernels,
                          kind, beginning, &s->kernels);
    if (!status)
        status = take_memory(s);
    if (status)
        return status;
    CUdeviceptr x = (CUdeviceptr)(uintptr_t)elements;
    if (is_short(s))
        sort_short(s, x);
    else
        sort_long(s, x);
    return CI_OK;
}

int32_t
ci_cuda_sort_finish(CiCudaSort *s, int32_t status)
{
    if (s->block)
        (void)ci_cuda_block_give(&s->stay, s->block, s->bytes, s->queue->stream);
    int32_t left = ci_cuda_leave(&s->stay, s->result);
    return status ? status : left;
}

/* ---- calls ---- */

static bool
has_places(const CiExtern *ext)
{
    return !strncmp(ext->name, "arg", 3);
}

static int
axis_of(const CiExternCall *call)
{
    const char *text = strstr(call->ext->key, "axis=");
    return text ? ci_extern_axis(text + 5, call->ranks[0]) : -1;
}

bool
ci_cuda_takes_sort(const CiExternItem *item)
{
    return item->noperands == 1 && ci_cuda_has_keys(item->operands[0]->dtype) &&
           item->operands[0]->kind != CI_BUFFER_scalar && item->ranks[0] > 0;
}

int32_t
ci_cuda_run_sort(const CiQueue *queue, const CiExternCall *call)
{
    int axis = axis_of(call);
    if (axis < 0)
        return CI_ERR_UNSUPPORTED;
    CiCudaRows to = ci_cuda_rows(call, 1, axis);
    CiCudaSort s = {.queue = queue,
                    .from = ci_cuda_rows(call, 0, axis),
                    .to = &to,
                    .y = (CUdeviceptr)(uintptr_t)call->result,
                    .has_places = has_places(call->ext)};
    if (!s.from.rows || !s.from.length)
        return CI_OK;
    int32_t status = ci_cuda_enter(&s.stay, queue);
    if (status)
        return status;
    status = ci_cuda_sort(&s, call->operands[0], call->dtypes[0], s.has_places);
    return ci_cuda_sort_finish(&s, status);
}

/* ---- quantiles ---- */

typedef struct Quantile {
    int axis;
    double asked; /* of 1 */
    bool is_median;
} Quantile;

/* `0 False` of a median; `False False 90 1 linear False` of a percentile of one number. */
static bool
read_quantile(const CiExtern *ext, int rank, Quantile *q)
{
    char axis[24], method[24];
    q->is_median = !strcmp(ext->name, "median");
    if (q->is_median ? sscanf(ext->key, "%23s", axis) != 1
                     : sscanf(ext->key, "False False %lf %23s %23s", &q->asked, axis, method) != 3)
        return false;
    q->asked /= strcmp(ext->name, "percentile") ? 1 : 100;
    bool is_all = !strcmp(axis, "None") && rank == 1;
    q->axis = is_all ? 0 : ci_extern_axis(axis, rank);
    return q->axis >= 0 && (q->is_median || (!strcmp(method, "linear") && q->asked >= 0 && q->asked <= 1));
}

bool
ci_cuda_takes_quantile(const CiExternItem *item)
{
    Quantile q;
    CiDtype from = item->operands[0]->dtype, to = item->result->dtype;
    bool is_float = from == CI_DTYPE_f32 || from == CI_DTYPE_f64;
    return ci_cuda_takes_sort(item) && read_quantile(item->ext, item->ranks[0], &q) &&
           (is_float ? to == from : ci_dtype_is_integral(from) && to == CI_DTYPE_f64);
}

static int32_t
choose(CiCudaSort *s, const CiExternCall *call, const Quantile *q, const CiCudaRows *to)
{
    char beginning[3000];
    const CUfunction *kernels;
    CiDtype dtype = call->dtypes[0];
    ci_cuda_print_keys(beginning, sizeof beginning, dtype, false);
    print_values(beginning + strlen(beginning), sizeof beginning - strlen(beginning), dtype);
    int32_t status = ci_cuda_load_text(s->queue, s->stay.state, &quantile_kernels, (int)dtype, beginning,
                                       &kernels);
    if (status)
        return status;
    CUdeviceptr y = (CUdeviceptr)(uintptr_t)call->result;
    double asked = q->asked;
    bool is_median = q->is_median;
    void *parameters[] = {&s->keys[sorted_copy(s)], &y, (void *)(uintptr_t)to, &s->from.length,
                          &asked, &is_median};
    ci_cuda_sort_launch(s, kernels[0], (to->rows + THREADS - 1) / THREADS, 1, THREADS, 0, parameters);
    return CI_OK;
}

int32_t
ci_cuda_run_quantile(const CiQueue *queue, const CiExternCall *call)
{
    Quantile q = {.asked = 0};
    if (!read_quantile(call->ext, call->ranks[0], &q))
        return CI_ERR_UNSUPPORTED;
    CiCudaRows to = ci_cuda_elements(call, 1);
    CiCudaSort s = {.queue = queue,
              .from = ci_cuda_rows(call, 0, q.axis)};
    if (!s.from.rows || !s.from.length)
        return CI_OK;
    int32_t status = ci_cuda_enter(&s.stay, queue);
    if (status)
        return status;
    status = ci_cuda_sort(&s, call->operands[0], call->dtypes[0], false);
    if (!status)
        status = choose(&s, call, &q, &to);
    return ci_cuda_sort_finish(&s, status);
}
