/* Scatter with duplicate indices, as an external call of the compiler: `scatter(base, index,
 * values)` with the operation, or `place`, as key. There are three ways, all with reproducible results:
 *
 * Few targets: each warp combines a contiguous chunk of the points in its own copy of the targets, in
 * shared memory (privatization). Of 32 points those with the same target are combined in order. The
 * copies of a block, and then those of all blocks, are combined in order, too. The number of chunks
 * depends on sizes alone.
 *
 * Sums of floats at more targets: each target has a superaccumulator of integers, to which values are added by atomic
 * operations. Sums are exact and rounded once, so their order does not matter. The accumulators must fit in the
 * second-level cache, and be few compared with the points.
 *
 * Otherwise positions are sorted by their target element with a stable sort. Warps then reduce the
 * runs of equal targets; `place` stores the last value of each run. */
#include "device/cuda/library.h"
#include "kernels/cuda/texts.h"

#include <stdio.h>
#include <string.h>

enum {
    THREADS = 256,
    COPY_BYTES = CI_STATIC_SHARED_BYTES, /* shared memory of a block */
    MAX_WARPS = 8,
    MAX_CHUNKS = 4096,
    LEAST_CHUNK = 1024, /* points */
    MANY_POINTS = 16,   /* of each target: then the copies cost less than they save */
    MANY_COPIES = 4,    /* in a block: with fewer, accumulators are faster */
    TARGETS = 32,       /* that a block of kmerge combines */
    CLEARED = 4 * THREADS, /* numbers that a block of kclear clears */
    SUM_BYTES = 1 << 26, /* of all accumulators, */
    POINT_BYTES = 64    /* and for each point: sorting moves more */
};

enum { COPY, RUNS, COPIES, MERGE };
static const char *const names[] = {"kcopy", "kruns", "kcopies", "kmerge"};
static const CiCudaText kernels = {ci_cuda_scatter_text, names, 4, false};

enum { CLEAR, ADD, ROUND };
static const char *const sum_names[] = {"kclear", "kadd", "kround"};
static const CiCudaText sum_kernels = {ci_cuda_sums_text, sum_names, 3, false};

/* Accumulators of a type: how many numbers each one has, and the number of points that cannot overflow them. */
typedef struct Sums {
    CiDtype dtype;
    int limbs;
    int64_t max_points;
    const char *beginning;
} Sums;

static const Sums sums[] = {
    {CI_DTYPE_f32, 16, 1 << 23,
     "typedef float T;\ntypedef unsigned U;\n#define FRACTION 23\n#define PARTS 1\n#define PART_BITS 24\n#define LEAST -149\n"},
    {CI_DTYPE_f64, 130, 1 << 20,
     "typedef double T;\ntypedef unsigned long long U;\n#define FRACTION 52\n#define PARTS 2\n#define PART_BITS 27\n#define LEAST -1074\n"},
};

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
    bool is_arg_position = combine >= 0 && !strcmp(combines[combine].key, "place");
    bool is_float = dtype == CI_DTYPE_f32 || dtype == CI_DTYPE_f64,
         is_int = ci_dtype_class(dtype) == CI_CLASS_int || ci_dtype_class(dtype) == CI_CLASS_uint;
    return is_arg_position ? ci_dtype_class(dtype) != CI_CLASS_complex
                    : combine >= 0 && (is_float || is_int);
}

/* Prints the types of an element and of a sum, and the suffix of their literals. Placed values are
 * bits. Extremes of small integers are computed in a wider type; the other integers have GPU
 * instructions. */
static void
print_types(char *out, size_t capacity, CiDtype dtype, const Combine *combine)
{
    static const char *const signeds[] = {[1] = "signed char", [2] = "short", [4] = "int", [8] = "long long"};
    int size = ci_dtype_size(dtype);
    bool is_float = ci_dtype_class(dtype) == CI_CLASS_float && strcmp(combine->key, "place") != 0;
    const char *type = is_float          ? size == 4 ? "float" : "double"
                       : ci_dtype_class(dtype) == CI_CLASS_int ? signeds[size]
                                                               : ci_cuda_unsigned(size);
    snprintf(out, capacity,
             "typedef %s T;\ntypedef %s S;\n#define INFINITE ((S)%s)\n", type,
             is_float           ? "T"
             : combine->by_bits ? "unsigned long long"
                                : "long long",
             is_float ? "__int_as_float(0x7f800000)" : "(1ll << 62)");
}

static void
print_beginning(char *out, size_t capacity, CiDtype dtype, const Combine *combine)
{
    print_types(out, capacity, dtype, combine);
    size_t length = strlen(out);
    snprintf(out + length, capacity - length,
             "#define IS_PLACE %d\n#define IDENTITY %s\n#define COMBINE(a, b) (%s)\n",
             !strcmp(combine->key, "place"), combine->identity, combine->combine);
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
    return ci_cuda_load_text(s->queue, s->scope.state, &kernels, 16 * (int)dtype + combine,
                             beginning, functions);
}

/* ---- few targets ---- */

/* Bytes of a sum (S of the text). */
static int
sum_bytes(CiDtype dtype)
{
    return dtype == CI_DTYPE_f32 ? 4 : 8;
}

/* True if a block has at least as many copies of the targets. */
static bool
has_few_targets(const CiExternCall *call, int64_t targets, int64_t points, int copies)
{
    return strcmp(call->ext->key, "place") != 0 && points / MANY_POINTS >= targets &&
           targets * copies * sum_bytes(call->dtypes[3]) <= COPY_BYTES;
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
    if (ci_cuda_block_take(&s->scope, s->bytes, s->queue->stream, &s->block)) {
        s->block = 0;
        return CI_ERR_MEMORY;
    }
    void *copies[] = {&where, &v, &s->block, &n, &chunk, &targets, &warps},
         *merge[] = {&base, &s->block, &y, &blocks, &targets};
    ci_cuda_sort_launch(s, functions[COPIES], blocks, 1, 32 * warps, warps * elements * bytes, copies);
    ci_cuda_sort_launch(s, functions[MERGE], (elements + TARGETS - 1) / TARGETS, 1, THREADS, 0, merge);
    return CI_OK;
}

/* ---- exact sums ---- */

/* The accumulators that the call adds in; NULL: it adds in none. */
static const Sums *
find_sums(const CiExternCall *call, int64_t targets, int64_t points)
{
    for (size_t k = 0; k < sizeof sums / sizeof *sums; k++) {
        int64_t bytes = targets * (sums[k].limbs + 1) * 8;
        if (sums[k].dtype == call->dtypes[3] && !strcmp(call->ext->key, "add") && points < sums[k].max_points &&
            bytes <= SUM_BYTES && bytes / POINT_BYTES <= points)
            return &sums[k];
    }
    return NULL;
}

static int64_t
blocks_of(int64_t threads)
{
    return (threads + THREADS - 1) / THREADS;
}

static int32_t
add_exactly(CiCudaSort *s, const CiExternCall *call, const Sums *of, int64_t targets)
{
    const CUfunction *functions;
    void *base = call->operands[0], *where = call->operands[1], *v = call->operands[2], *y = call->result;
    int64_t points = s->from.length, limbs = targets * (of->limbs + 1);
    int32_t status = ci_cuda_load_text(s->queue, s->scope.state, &sum_kernels, (int)of->dtype, of->beginning, &functions);
    if (status)
        return status;
    s->bytes = (size_t)limbs * 8;
    if (ci_cuda_block_take(&s->scope, s->bytes, s->queue->stream, &s->block)) {
        s->block = 0;
        return CI_ERR_MEMORY;
    }
    void *clear[] = {&s->block, &limbs}, *add[] = {&where, &v, &s->block, &points, &targets},
         *round[] = {&base, &s->block, &y, &targets};
    ci_cuda_sort_launch(s, functions[CLEAR], (limbs + CLEARED - 1) / CLEARED, 1, THREADS, 0, clear);
    ci_cuda_sort_launch(s, functions[ADD], blocks_of(points), 1, THREADS, 0, add);
    ci_cuda_sort_launch(s, functions[ROUND], blocks_of(targets), 1, THREADS, 0, round);
    return CI_OK;
}

/* ---- by a sort ---- */

static int32_t
add_sorted(CiCudaSort *s, const CiExternCall *call)
{
    const CUfunction *functions;
    int32_t status = load_kernels(s, call, &functions);
    if (!status && s->from.length)
        status = ci_cuda_sort(s, call->operands[1], CI_DTYPE_u32, false);
    if (status)
        return status;
    void *base = call->operands[0], *v = call->operands[2], *y = call->result;
    int64_t elements = ci_extern_count(call, 3), n = s->from.length;
    CUdeviceptr keys = ci_cuda_sorted_keys(s), positions = ci_cuda_sorted_positions(s);
    void *copy[] = {&base, &y, &elements}, *runs[] = {&keys, &positions, &v, &y, &n};
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
                    .wants_positions = true,
                    .passes = passes_for(elements)};
    if (!elements)
        return CI_OK;
    if (elements > UINT32_MAX)
        return CI_ERR_MEMORY;
    int32_t status = ci_cuda_enter(&s.scope, queue);
    if (status)
        return status;
    const Sums *exact = find_sums(call, elements, s.from.length);
    if (has_few_targets(call, elements, s.from.length, exact ? MANY_COPIES : 1))
        status = combine_copies(&s, call, elements);
    else if (exact)
        status = add_exactly(&s, call, exact, elements);
    else
        status = add_sorted(&s, call);
    return ci_cuda_sort_finish(&s, status);
}
