/* Scatter with duplicate indices, as an external call of the compiler: `scatter(base, index,
 * values)` with the operation, or `place`, as key. Positions are sorted by their target element
 * with a stable sort. Warps then reduce the runs of equal targets, so that the result is
 * reproducible; `place` stores the last value of each run. */
#include "device/cuda/library.h"

#include <stdio.h>
#include <string.h>

enum { THREADS = 256 };

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
enum { COPY, RUNS };
static const char *const names[] = {"kcopy", "kruns"};
static const CiCudaText kernels = {scatter_text, NULL, names, 2, false};

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

static int64_t
count_of(const CiExternCall *call, int k)
{
    int64_t count = 1;
    for (int axis = 0; axis < call->ranks[k]; axis++)
        count *= call->sizes[k][axis];
    return count;
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
add_runs(CiCudaSort *s, const CiExternCall *call)
{
    char beginning[1000];
    const CUfunction *functions;
    int combine = find_combine(call->ext->key);
    CiDtype dtype = call->dtypes[3];
    print_beginning(beginning, sizeof beginning, dtype, &combines[combine]);
    int32_t status = ci_cuda_load_text(s->queue, s->stay.state, &kernels, 16 * (int)dtype + combine,
                                       beginning, &functions);
    if (status)
        return status;
    void *base = call->operands[0], *v = call->operands[2], *y = call->result;
    int64_t elements = count_of(call, 3), n = s->from.length;
    CUdeviceptr keys = ci_cuda_sorted_keys(s), places = ci_cuda_sorted_places(s);
    void *copy[] = {&base, &y, &elements}, *runs[] = {&keys, &places, &v, &y, &n};
    ci_cuda_sort_launch(s, functions[COPY], (elements + THREADS - 1) / THREADS, 1, THREADS, copy);
    if (n)
        ci_cuda_sort_launch(s, functions[RUNS], (n + THREADS - 1) / THREADS, 1, THREADS, runs);
    return CI_OK;
}

/* Elements are fewer than 2**32, and what is above stands in the upper half of a number. */
int32_t
ci_cuda_run_scatter(const CiQueue *queue, const CiExternCall *call)
{
    int64_t elements = count_of(call, 3);
    CiCudaSort s = {.queue = queue,
                    .from = {.rows = 1, .length = count_of(call, 1), .step = 2},
                    .has_places = true,
                    .passes = passes_for(elements)};
    if (!elements)
        return CI_OK;
    if (elements > UINT32_MAX)
        return CI_ERR_MEMORY;
    int32_t status = ci_cuda_enter(&s.stay, queue);
    if (status)
        return status;
    if (s.from.length)
        status = ci_cuda_sort(&s, call->operands[1], CI_DTYPE_u32, false);
    if (!status)
        status = add_runs(&s, call);
    return ci_cuda_sort_finish(&s, status);
}
