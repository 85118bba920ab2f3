/* Scatter with duplicate indices, as an external call of the compiler: `scatter(base, index,
 * values)` with the operation, or `place`, as key. There are two ways, both with reproducible results:
 *
 * Few targets: each warp combines a contiguous chunk of the points in its own copy of the targets, in
 * shared memory (privatization). Of 32 points those with the same target are combined in order. The
 * copies of a block, and then those of all blocks, are combined in order, too. The number of chunks
 * depends on sizes alone.
 *
 * Many targets: positions are sorted by their target element with a stable sort. Warps then reduce the
 * runs of equal targets; `place` stores the last value of each run. */
#include "device/cuda/library.h"

#include <stdio.h>
#include <string.h>

enum {
    THREADS = 256,
    COPY_BYTES = CI_STATIC_SHARED_BYTES, /* shared memory of a block */
    MAX_WARPS = 8,
    MAX_CHUNKS = 4096,
    LEAST_CHUNK = 1024, /* points */
    MANY_POINTS = 16,   /* of each target: then the copies cost less than they save */
    TARGETS = 32        /* that a block of kmerge combines */
};

static const char scatter_text[] =
    "extern \"C\" __global__ void __launch_bounds__(256)\n"
    "kcopy(const T *x, T *y, const L n)\n"
    "{\n"
    "    const L i = blockIdx.x*256LL + threadIdx.x;\n"
    "    if (i < n)\n"
    "        y[i] = x[i];\n"
    "}\n"
    "extern \"C\" __global__ void __launch_bounds__(256)\n"
    "kruns(const unsigned *keys, const unsigned *places, const T *v, T *y, const L n)\n"
    "{\n"
    "    const int lane = (int)threadIdx.x % 32;\n"
    "    const L first = blockIdx.x*256LL + threadIdx.x - lane, own = first + lane;\n"
    "    const unsigned k = own < n ? keys[own] : 0;\n"
    "    unsigned heads = __ballot_sync(0xffffffffu, own < n && (own == 0 || keys[own - 1] != k));\n"
    "    while (heads) {\n"
    "        const int head = __popcll((heads & -heads) - 1);\n"
    "        const unsigned at = __shfl_sync(0xffffffffu, k, head);\n"
    "        S sum = identity();\n"
    "        L last = -1;\n"
    "        bool goes_on = true;\n"
    "        for (L j = first + head + lane; goes_on; j += 32) {\n"
    "            const bool is_there = j < n && keys[j] == at;\n"
    "            if (is_there) {\n"
    "                sum = combine(sum, get(v[places[j]]));\n"
    "                last = j;\n"
    "            }\n"
    "            goes_on = __ballot_sync(0xffffffffu, is_there) == 0xffffffffu;\n"
    "        }\n"
    "        for (int h = 1; h < 32; h *= 2) {\n"
    "            const S other = __shfl_xor_sync(0xffffffffu, sum, h);\n"
    "            const L later = __shfl_xor_sync(0xffffffffu, last, h);\n"
    "            sum = lane & h ? combine(other, sum) : combine(sum, other);\n"
    "            last = later > last ? later : last;\n"
    "        }\n"
    "        if (lane == 0)\n"
    "            y[at] = IS_PLACE ? v[places[last]] : put(combine(get(y[at]), sum));\n"
    "        heads &= heads - 1;\n"
    "    }\n"
    "}\n";
static const char copies_text[] =
    "extern \"C\" __global__ void __launch_bounds__(256)\n"
    "kcopies(const L *where, const T *v, S *partials, const L n, const L chunk, const int targets, const int warps)\n"
    "{\n"
    "    extern __shared__ __align__(16) unsigned char rows[];\n"
    "    const int t = (int)threadIdx.x, w = t/32, lane = t % 32;\n"
    "    S *const all = (S *)rows, *const own = all + w*targets;\n"
    "    for (int i = lane; i < targets; i += 32)\n"
    "        own[i] = identity();\n"
    "    __syncwarp();\n"
    "    const L begin = ((L)blockIdx.x*warps + w)*chunk, end = begin + chunk < n ? begin + chunk : n;\n"
    "    for (L at = begin; at < end; at += 128) {\n"
    "        int to[4];\n"
    "        S value[4];\n"
    "        #pragma unroll\n"
    "        for (int k = 0; k < 4; k++) {\n"
    "            const L i = at + 32*k + lane;\n"
    "            to[k] = i < end ? (int)where[i] : -1;\n"
    "            value[k] = i < end ? get(v[i]) : identity();\n"
    "        }\n"
    "        #pragma unroll\n"
    "        for (int k = 0; k < 4; k++) {\n"
    "            const unsigned peers = __match_any_sync(0xffffffffu, (unsigned)to[k]);\n"
    "            const int rank = to[k] < 0 ? -1 : (int)__popcll(peers & ((1ull << lane) - 1));\n"
    "            for (int r = 0; __ballot_sync(0xffffffffu, rank == r); r++) {\n"
    "                if (rank == r)\n"
    "                    own[to[k]] = combine(own[to[k]], value[k]);\n"
    "                __syncwarp();\n"
    "            }\n"
    "        }\n"
    "    }\n"
    "    __syncthreads();\n"
    "    for (int i = t; i < targets; i += 32*warps) {\n"
    "        S sum = all[i];\n"
    "        for (int u = 1; u < warps; u++)\n"
    "            sum = combine(sum, all[u*targets + i]);\n"
    "        partials[(L)blockIdx.x*targets + i] = sum;\n"
    "    }\n"
    "}\n"
    "extern \"C\" __global__ void __launch_bounds__(256)\n"
    "kmerge(const T *base, const S *partials, T *y, const L blocks, const int targets)\n"
    "{\n"
    "    __shared__ S ends[8][32];\n"
    "    const int lane = (int)threadIdx.x % 32, w = (int)threadIdx.x/32, i = (int)blockIdx.x*32 + lane;\n"
    "    const L part = (blocks + 7)/8, last = (w + 1)*part < blocks ? (w + 1)*part : blocks;\n"
    "    S sum = identity();\n"
    "    for (L b = w*part; i < targets && b < last; b++)\n"
    "        sum = combine(sum, partials[b*targets + i]);\n"
    "    ends[w][lane] = sum;\n"
    "    __syncthreads();\n"
    "    if (w || i >= targets)\n"
    "        return;\n"
    "    S all = get(base[i]);\n"
    "    for (int u = 0; u < 8; u++)\n"
    "        all = combine(all, ends[u][lane]);\n"
    "    y[i] = put(all);\n"
    "}\n";
enum { COPY, RUNS, COPIES, MERGE };
static const char *const names[] = {"kcopy", "kruns", "kcopies", "kmerge"};
static const CiCudaText kernels = {scatter_text, copies_text, names, 4, false};

/* The operation on numbers and its identity. by_bits: for integers use the unsigned operation,
 * which may overflow. */
typedef struct Combine {
    const char *key, *identity, *combine;
    bool by_bits;
} Combine;

static const Combine combines[] = {
    {"add", "0", "a + b", true},
    {"multiply", "1", "a * b", true},
    {"maximum", "-INFINITE", "a > b || a != a ? a : b", false},
    {"minimum", "INFINITE", "a < b || a != a ? a : b", false},
    {"bitwise_and", "~0ull", "a & b", true},
    {"bitwise_or", "0", "a | b", true},
    {"bitwise_xor", "0", "a ^ b", true},
    {"place", "0", "a", true},
};

static int
find_combine(const char *key)
{
    for (int k = 0; k < (int)(sizeof combines / sizeof *combines); k++)
        if (!strcmp(combines[k].key, key))
            return k;
    return -1;
}

bool
ci_cuda_takes_scatter(const CiExternItem *item)
{
    CiDtype dtype = item->result->dtype;
    int combine = item->noperands == 3 ? find_combine(item->ext->key) : -1;
    bool is_place = combine >= 0 && !strcmp(combines[combine].key, "place");
    bool is_float = dtype == CI_DTYPE_f32 || dtype == CI_DTYPE_f64,
         is_int = ci_dtype_class(dtype) == CI_CLASS_int || ci_dtype_class(dtype) == CI_CLASS_uint;
    return is_place ? ci_dtype_class(dtype) != CI_CLASS_complex
                    : combine >= 0 && (is_float || is_int);
}

/* Prints the types of an element and of a sum, and the suffix of their literals. Placed values are
 * bits. Extremes of small integers are computed in a wider type; the other integers have GPU
 * instructions. */
static void
print_types(char *out, size_t capacity, CiDtype dtype, const Combine *combine)
{
    static const char *const signeds[] = {[1] = "signed char", [2] = "short", [4] = "int", [8] = "L"};
    int size = ci_dtype_size(dtype);
    bool is_float = ci_dtype_class(dtype) == CI_CLASS_float && strcmp(combine->key, "place") != 0;
    const char *type = is_float          ? size == 4 ? "float" : "double"
                       : ci_dtype_class(dtype) == CI_CLASS_int ? signeds[size]
                                                               : ci_cuda_unsigned(size);
    snprintf(out, capacity,
             "typedef long long L;\ntypedef %s T;\ntypedef %s S;\n#define INFINITE ((S)%s)\n", type,
             is_float           ? "T"
             : combine->by_bits ? "unsigned long long"
                                : "L",
             is_float ? "__int_as_float(0x7f800000)" : "(1ll << 62)");
}

static void
print_beginning(char *out, size_t capacity, CiDtype dtype, const Combine *combine)
{
    print_types(out, capacity, dtype, combine);
    size_t length = strlen(out);
    snprintf(out + length, capacity - length,
             "static const bool IS_PLACE = %s;\n"
             "static __device__ S identity() { return (S)(%s); }\n"
             "static __device__ S get(T x) { return (S)x; }\n"
             "static __device__ T put(S x) { return (T)x; }\n"
             "static __device__ S combine(S a, S b) { return %s; }\n",
             strcmp(combine->key, "place") ? "false" : "true", combine->identity, combine->combine);
}

/* Bits of the highest element that there is. */
static int
passes_for(int64_t elements)
{
    int passes = 1;
    while (passes < 4 && elements > INT64_C(1) << 8 * passes)
        passes++;
    return passes;
}

static int32_t
load_kernels(CiCudaSort *s, const CiExternCall *call, const CUfunction **functions)
{
    char beginning[1000];
    int combine = find_combine(call->ext->key);
    CiDtype dtype = call->dtypes[3];
    print_beginning(beginning, sizeof beginning, dtype, &combines[combine]);
    return ci_cuda_load_text(s->queue, s->stay.state, &kernels, 16 * (int)dtype + combine,
                             beginning, functions);
}

/* ---- few targets ---- */

/* Bytes of a sum (S of the text). */
static int
sum_bytes(CiDtype dtype)
{
    return dtype == CI_DTYPE_f32 ? 4 : 8;
}

static bool
has_few_targets(const CiExternCall *call, int64_t targets, int64_t points)
{
    return strcmp(call->ext->key, "place") != 0 && points / MANY_POINTS >= targets &&
           targets * sum_bytes(call->dtypes[3]) <= COPY_BYTES;
}

static int32_t
combine_copies(CiCudaSort *s, const CiExternCall *call, int64_t elements)
{
    const CUfunction *functions;
    int32_t status = load_kernels(s, call, &functions);
    void *base = call->operands[0], *where = call->operands[1], *v = call->operands[2],
         *y = call->result;
    int bytes = sum_bytes(call->dtypes[3]), targets = (int)elements;
    int64_t n = s->from.length, most = COPY_BYTES / (elements * bytes),
            chunk = (n + MAX_CHUNKS - 1) / MAX_CHUNKS;
    int warps = most < MAX_WARPS ? (int)most : MAX_WARPS;
    chunk = chunk > LEAST_CHUNK ? chunk : LEAST_CHUNK;
    int64_t chunks = (n + chunk - 1) / chunk, blocks = (chunks + warps - 1) / warps;
    if (status)
        return status;
    s->bytes = (size_t)(blocks * elements * bytes);
    if (ci_cuda_block_take(&s->stay, s->bytes, s->queue->stream, &s->block)) {
        s->block = 0;
        return CI_ERR_MEMORY;
    }
    void *copies[] = {&where, &v, &s->block, &n, &chunk, &targets, &warps},
         *merge[] = {&base, &s->block, &y, &blocks, &targets};
    ci_cuda_sort_launch(s, functions[COPIES], blocks, 1, 32 * warps, warps * elements * bytes, copies);
    ci_cuda_sort_launch(s, functions[MERGE], (elements + TARGETS - 1) / TARGETS, 1, THREADS, 0, merge);
    return CI_OK;
}

/* ---- many targets ---- */

static int32_t
add_runs(CiCudaSort *s, const CiExternCall *call)
{
    const CUfunction *functions;
    int32_t status = load_kernels(s, call, &functions);
    if (status)
        return status;
    void *base = call->operands[0], *v = call->operands[2], *y = call->result;
    int64_t elements = ci_extern_count(call, 3), n = s->from.length;
    CUdeviceptr keys = ci_cuda_sorted_keys(s), places = ci_cuda_sorted_places(s);
    void *copy[] = {&base, &y, &elements}, *runs[] = {&keys, &places, &v, &y, &n};
    ci_cuda_sort_launch(s, functions[COPY], (elements + THREADS - 1) / THREADS, 1, THREADS, 0, copy);
    if (n)
        ci_cuda_sort_launch(s, functions[RUNS], (n + THREADS - 1) / THREADS, 1, THREADS, 0, runs);
    return CI_OK;
}

/* Elements are fewer than 2**32, and what is above stands in the upper half of a number. */
int32_t
ci_cuda_run_scatter(const CiQueue *queue, const CiExternCall *call)
{
    int64_t elements = ci_extern_count(call, 3);
    CiCudaSort s = {.queue = queue,
                    .from = {.rows = 1, .length = ci_extern_count(call, 1), .step = 2},
                    .has_places = true,
                    .passes = passes_for(elements)};
    if (!elements)
        return CI_OK;
    if (elements > UINT32_MAX)
        return CI_ERR_MEMORY;
    int32_t status = ci_cuda_enter(&s.stay, queue);
    if (status)
        return status;
    bool is_few = has_few_targets(call, elements, s.from.length);
    if (is_few)
        status = combine_copies(&s, call, elements);
    else if (s.from.length)
        status = ci_cuda_sort(&s, call->operands[1], CI_DTYPE_u32, false);
    if (!status && !is_few)
        status = add_runs(&s, call);
    return ci_cuda_sort_finish(&s, status);
}
