/* np.sort, np.argsort, partitions and quantiles along one axis, by keys: unsigned numbers in the order of the
 * elements. Each short row is sorted by one block (a bitonic network, Batcher 1968). Long rows are sorted by a stable radix sort, 8
 * bits of the key at a time from the lowest.
 *
 * The digits of all passes are counted first. In a pass each tile counts its digits and tells them, and then orders its
 * elements in shared memory, ranked by warp-wide votes. It learns from the tiles before it how many of each digit they
 * have (decoupled look-back), and writes its elements in runs. Equal elements stay in order of their positions; a
 * partition is a full sort. */
#include "device/cuda/library.h"
#include "kernels/cuda/sort.h"
#include "kernels/cuda/texts.h"

#include <stdio.h>
#include <string.h>

_Static_assert(CI_SORT_TILE_BYTES % (8 * CI_SORT_THREADS) == 0, "each thread has as many keys of a tile, of 4 or 8 bytes");
_Static_assert(CI_SORT_DIGITS == 8 * CI_SORT_THREADS && CI_SORT_COUNTS == CI_SORT_DIGITS + CI_SORT_THREADS, "keys have eight digits at most");

enum {
    THREADS = CI_SORT_THREADS,
    TILE_BYTES = CI_SORT_TILE_BYTES,
    COUNTS = CI_SORT_COUNTS,
    LOADED = 4096,       /* elements that a block counts, */
    MANY_LOADED = 16384, /* and of a long row, so that fewer add to the counts */
    LONG_ROW = 1 << 22,
    MAX_ROWS = 65535,
    SHORT_ROW = 4096, /* elements, the most that one block sorts */
    ITEMS = 8         /* of a thread of such a block */
};

/* ---- keys ---- */

bool
ci_cuda_has_keys(CiDtype dtype)
{
    return ci_dtype_class(dtype) != CI_CLASS_complex;
}

void
ci_cuda_print_keys(char *out, size_t capacity, CiDtype dtype, bool alike)
{
    int size = ci_dtype_size(dtype);
    CiClass class = ci_dtype_class(dtype);
    const char *infinity = dtype == CI_DTYPE_f64   ? "0x7ff0000000000000ull"
                           : dtype == CI_DTYPE_f32 ? "0x7f800000ull"
                           : dtype == CI_DTYPE_f16 ? "0x7c00ull"
                                                   : "0x7f80ull";
    snprintf(out, capacity,
             "typedef %s T;\ntypedef %s K;\n#define IS_FLOAT %d\n#define IS_SIGNED %d\n#define IS_ALIKE %d\n"
             "#define INFINITY_BITS %s\n",
             ci_cuda_unsigned(size), ci_cuda_unsigned(size == 8 ? 8 : 4), class == CI_CLASS_float,
             class == CI_CLASS_int, alike, infinity);
}

/* The types of elements that quantiles are computed from. */
static void
print_values(char *out, size_t capacity, CiDtype dtype)
{
    static const char *const types[] = {
        [1] = "signed char", [2] = "short", [4] = "int", [8] = "long long"};
    snprintf(out, capacity, "#define IS_SINGLE %d\ntypedef %s V;\n", dtype == CI_DTYPE_f32,
             ci_dtype_class(dtype) == CI_CLASS_int ? types[ci_dtype_size(dtype)] : "T");
}

/* ---- kernels ---- */

enum { ZERO, LOAD, SWEEP };
static const char *const row_names[] = {"krows"};
static const char *const sort_names[] = {"kzero", "kload", "ksweep"};
static const char *const quantile_names[] = {"kquantile"};
static const CiCudaText row_kernels = {ci_cuda_sort_rows_text, row_names, 1, false};
static const CiCudaText sort_kernels = {ci_cuda_sort_text, sort_names, 3, false};
static const CiCudaText quantile_kernels = {ci_cuda_quantile_text, quantile_names, 1, false};

/* The length of a short row rounded up to a power of two. */
static int
row_size(int64_t length)
{
    int size = ITEMS;
    while (size < length)
        size *= 2;
    return size;
}

static int
row_threads(int size)
{
    return size < 32 * ITEMS ? 32 : size / ITEMS;
}

void
ci_cuda_sort_launch(CiCudaSort *s, CUfunction kernel, int64_t blocks, int64_t rows, int threads,
                    int64_t shared_bytes, void **parameters)
{
    if (!s->result)
        s->result = ci_cuda_launch_early(&s->scope, kernel, (unsigned)blocks, (unsigned)rows, (unsigned)threads,
                                         (unsigned)shared_bytes, s->queue->stream, parameters);
}

/* ---- memory ---- */

static bool
is_short(const CiCudaSort *s)
{
    return s->from.length <= SHORT_ROW;
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
    size_t keys = whole(count * s->key_bytes), positions = s->wants_positions ? whole(4 * count) : 0,
           counts = is_short(s) ? 0 : whole(4 * COUNTS * s->from.rows),
           states = is_short(s) ? 0 : whole(8 * THREADS * s->from.rows * s->tiles),
           all = (size_t)copies * (keys + positions) + counts + states;
    int result = all ? ci_cuda_block_take(&s->scope, all, s->queue->stream, &s->block) : 0;
    int32_t status = result ? CI_ERR_MEMORY : CI_OK;
    CUdeviceptr at = s->block;
    for (int k = 0; k < copies; k++, at += keys + positions) {
        s->keys[k] = at;
        s->positions[k] = s->wants_positions ? at + keys : 0;
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
    int size = row_size(s->from.length);
    void *parameters[] = {&x, &s->keys[0], &s->positions[0], &y, &s->from, (void *)(uintptr_t)to, &size};
    ci_cuda_sort_launch(s, s->kernels[0], s->from.rows, 1, row_threads(size),
                        (int64_t)size * (s->key_bytes + (s->wants_positions ? 4 : 0)), parameters);
}

/* From the first keys and places to the second, which are then the first; the last time to the result. */
static void
sort_digit(CiCudaSort *s, CUdeviceptr x, int pass, int64_t first, int64_t rows)
{
    int64_t *n = &s->from.length;
    int from = pass % 2, to = !from;
    CUdeviceptr y = s->to && pass == s->passes - 1 ? s->y : 0;
    void *result = (void *)(uintptr_t)(s->to ? s->to : &s->from);
    void *parameters[] = {&x, &s->keys[from], &s->positions[from], &s->keys[to], &s->positions[to], &s->counts, &s->states,
                          &y, &s->from,       result,           n,            &s->tiles,      &pass,      &first};
    ci_cuda_sort_launch(s, s->kernels[SWEEP], s->tiles, rows, THREADS, 0, parameters);
}

/* The first pass reads the elements themselves, where they are neighbours. */
static void
sort_long(CiCudaSort *s, CUdeviceptr x)
{
    int64_t counts = COUNTS * s->from.rows;
    int each = s->from.length >= LONG_ROW ? MANY_LOADED : LOADED;
    bool are_contiguous = s->from.step == 1;
    CUdeviceptr keys = are_contiguous ? 0 : s->keys[0];
    void *zero[] = {&s->counts, &counts};
    ci_cuda_sort_launch(s, s->kernels[ZERO], (counts + THREADS - 1) / THREADS, 1, THREADS, 0, zero);
    for (int64_t first = 0, rows; first < s->from.rows; first += rows) {
        rows = s->from.rows - first < MAX_ROWS ? s->from.rows - first : MAX_ROWS;
        int64_t blocks = (s->from.length + each - 1) / each;
        void *load[] = {&x,       &keys,     &s->positions[0], &s->counts, &s->states,
                        &s->from, &s->tiles, &s->passes,    &each,      &first};
        ci_cuda_sort_launch(s, s->kernels[LOAD], blocks, rows, THREADS, 0, load);
        for (int k = 0; k < s->passes; k++)
            sort_digit(s, k == 0 && are_contiguous ? x : 0, k, first, rows);
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
ci_cuda_sorted_positions(const CiCudaSort *s)
{
    return s->positions[sorted_copy(s)];
}

int32_t
ci_cuda_sort(CiCudaSort *s, const void *elements, CiDtype dtype, bool alike)
{
    char beginning[400];
    s->key_bytes = ci_dtype_size(dtype) == 8 ? 8 : 4;
    s->passes = s->passes ? s->passes : ci_dtype_size(dtype);
    s->tiles = (s->from.length * s->key_bytes + TILE_BYTES - 1) / TILE_BYTES;
    if (s->from.length > UINT32_MAX)
        return CI_ERR_MEMORY;
    ci_cuda_print_keys(beginning, sizeof beginning, dtype, alike);
    size_t length = strlen(beginning);
    snprintf(beginning + length, sizeof beginning - length, "#define PLACES %d\n#define IS_NARROW %d\n",
             s->wants_positions, s->key_bytes == 4);
    int kind = 4 * (int)dtype + 2 * alike + s->wants_positions;
    int32_t status =
        ci_cuda_load_text(s->queue, s->scope.state, is_short(s) ? &row_kernels : &sort_kernels,
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
        (void)ci_cuda_block_give(&s->scope, s->block, s->bytes, s->queue->stream);
    int32_t left = ci_cuda_leave(&s->scope, s->result);
    return status ? status : left;
}

/* ---- calls ---- */

static bool
wants_positions(const CiExtern *ext)
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
                    .wants_positions = wants_positions(call->ext)};
    if (!s.from.rows || !s.from.length)
        return CI_OK;
    int32_t status = ci_cuda_enter(&s.scope, queue);
    if (status)
        return status;
    status = ci_cuda_sort(&s, call->operands[0], call->dtypes[0], s.wants_positions);
    return ci_cuda_sort_finish(&s, status);
}

/* ---- quantiles ---- */

typedef struct Quantile {
    int axis;
    double requested; /* of 1 */
    bool is_median;
} Quantile;

/* `0 False` of a median; `False False 90 1 linear False` of a percentile of one number. */
static bool
read_quantile(const CiExtern *ext, int rank, Quantile *q)
{
    char axis[24], method[24];
    q->is_median = !strcmp(ext->name, "median");
    if (q->is_median ? sscanf(ext->key, "%23s", axis) != 1
                     : sscanf(ext->key, "False False %lf %23s %23s", &q->requested, axis, method) != 3)
        return false;
    q->requested /= strcmp(ext->name, "percentile") ? 1 : 100;
    bool is_all = !strcmp(axis, "None") && rank == 1;
    q->axis = is_all ? 0 : ci_extern_axis(axis, rank);
    return q->axis >= 0 && (q->is_median || (!strcmp(method, "linear") && q->requested >= 0 && q->requested <= 1));
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
    char beginning[400];
    const CUfunction *kernels;
    CiDtype dtype = call->dtypes[0];
    ci_cuda_print_keys(beginning, sizeof beginning, dtype, false);
    print_values(beginning + strlen(beginning), sizeof beginning - strlen(beginning), dtype);
    int32_t status = ci_cuda_load_text(s->queue, s->scope.state, &quantile_kernels, (int)dtype, beginning,
                                       &kernels);
    if (status)
        return status;
    CUdeviceptr y = (CUdeviceptr)(uintptr_t)call->result;
    double requested = q->requested;
    bool is_median = q->is_median;
    void *parameters[] = {&s->keys[sorted_copy(s)], &y, (void *)(uintptr_t)to, &s->from.length,
                          &requested, &is_median};
    ci_cuda_sort_launch(s, kernels[0], (to->rows + THREADS - 1) / THREADS, 1, THREADS, 0, parameters);
    return CI_OK;
}

int32_t
ci_cuda_run_quantile(const CiQueue *queue, const CiExternCall *call)
{
    Quantile q = {.requested = 0};
    if (!read_quantile(call->ext, call->ranks[0], &q))
        return CI_ERR_UNSUPPORTED;
    CiCudaRows to = ci_cuda_elements(call, 1);
    CiCudaSort s = {.queue = queue,
              .from = ci_cuda_rows(call, 0, q.axis)};
    if (!s.from.rows || !s.from.length)
        return CI_OK;
    int32_t status = ci_cuda_enter(&s.scope, queue);
    if (status)
        return status;
    status = ci_cuda_sort(&s, call->operands[0], call->dtypes[0], false);
    if (!status)
        status = choose(&s, call, &q, &to);
    return ci_cuda_sort_finish(&s, status);
}
