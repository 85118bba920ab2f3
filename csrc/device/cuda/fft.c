/* numpy.fft along one axis, by cuFFT; without it the host does them. cuFFT reads and stores rows with steps, of which one
 * call transforms those that are equally far apart. Operands that need many calls are packed before, and real ones whose
 * whole transform is wanted, as complex numbers. A kernel afterwards scales the result as NumPy's `norm` says, or stores one
 * that needs many calls. */
#include "device/cuda/library.h"
#include "kernels/cuda/texts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 256, MAX_ROWS = 65535, MAX_CALLS = 64, ALIGNMENT = 16, FORWARD = -1, BACKWARD = 1 };

enum { PACK, SCALE, ACROSS, TILE = 32 }; /* ACROSS + PACK, ACROSS + SCALE: in tiles */
static const char *const kernel_names[] = {"kpack", "kscale", "kpack_across", "kscale_across"};
static const CiCudaText kernels = {ci_cuda_fft_text, kernel_names, 4, false};

/* ---- what is asked for ---- */

typedef struct Transform {
    int type, direction, axis;
    bool is_real; /* what it takes */
    double scale;
    int64_t n; /* points of it */
} Transform;

static int
find_kind(const char *name, Transform *t)
{
    static const struct {
        const char *name;
        int type, direction;
    } kinds[] = {{"fft_fft", CI_CUFFT_complex, FORWARD},
                 {"fft_ifft", CI_CUFFT_complex, BACKWARD},
                 {"fft_rfft", CI_CUFFT_real_to_complex, FORWARD},
                 {"fft_irfft", CI_CUFFT_complex_to_real, BACKWARD}};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (!strcmp(kinds[k].name, name)) {
            t->type = kinds[k].type;
            t->direction = kinds[k].direction;
            return true;
        }
    return false;
}

/* `False None 0 ortho`: the length is the array's, the axis, the norm. */
static bool
read_transform(const CiExtern *ext, Transform *t, char norm[12])
{
    return find_kind(ext->name, t) && sscanf(ext->key, "False None %d %11s", &t->axis, norm) == 2;
}

static bool
is_of_doubles(CiDtype dtype)
{
    return dtype == CI_DTYPE_f64 || dtype == CI_DTYPE_c128;
}

bool
ci_cuda_takes_fft(const CiExternItem *item)
{
    Transform t;
    char norm[12];
    if (item->noperands != 1 || !read_transform(item->ext, &t, norm) ||
        item->operands[0]->kind == CI_BUFFER_scalar)
        return false;
    CiDtype from = item->operands[0]->dtype, to = item->result->dtype;
    bool is_float = from == CI_DTYPE_f32 || from == CI_DTYPE_f64 || from == CI_DTYPE_c64 ||
                    from == CI_DTYPE_c128,
         is_real = ci_dtype_class(from) == CI_CLASS_float;
    return is_float && is_of_doubles(from) == is_of_doubles(to) &&
           (t.type == CI_CUFFT_real_to_complex ? is_real : t.type == CI_CUFFT_complex || !is_real) &&
           ci_cufft_is_there();
}

static double
scale_of(const Transform *t, const char *norm)
{
    bool is_forward = t->direction == FORWARD;
    if (!strcmp(norm, "ortho"))
        return 1 / sqrt((double)t->n);
    return is_forward == !strcmp(norm, "forward") ? 1 / (double)t->n : 1;
}

/* ---- kernels ---- */

typedef struct Run {
    const CiQueue *queue;
    const CiCudaContextScope *scope;
    Transform t;
    CiCudaRows from, to;     /* the operand and the result, */
    CiCudaRows takes, gives; /* and the rows of cuFFT: these, or packed ones */
    bool packs, stores;
    const CUfunction *kernels;
    CUdeviceptr in, out; /* of takes and gives */
    bool is_double;
    int result;
} Run;

/* Bytes of an element that cuFFT takes, and of one that it gives. */
static int64_t
in_bytes(const Run *r)
{
    return (r->is_double ? 8 : 4) * (r->t.type == CI_CUFFT_real_to_complex ? 1 : 2);
}

static int64_t
out_bytes(const Run *r)
{
    return (r->is_double ? 8 : 4) * (r->t.type == CI_CUFFT_complex_to_real ? 1 : 2);
}

/* True if rows are closer to each other than the points of a row. */
static bool
is_across(const CiCudaRows *rows)
{
    return rows->rank && rows->rows >= TILE && llabs(rows->strides[rows->rank - 1]) < llabs(rows->step);
}

/* The kernel for all rows; `first`, one of the parameters, is the first row or tile of rows of a launch. */
static void
launch(Run *r, int kernel, const CiCudaRows *rows, int64_t *first, void **parameters)
{
    bool is_tiled = is_across(rows);
    int64_t side = is_tiled ? TILE : 1, points = is_tiled ? TILE : THREADS, most = (rows->rows + side - 1) / side,
            blocks = (rows->length + points - 1) / points;
    for (*first = 0; *first < most && !r->result; *first += MAX_ROWS) {
        int64_t left = most - *first;
        r->result = r->scope->driver->launch(r->kernels[kernel + (is_tiled ? ACROSS : 0)], (unsigned)blocks,
                                             (unsigned)(left < MAX_ROWS ? left : MAX_ROWS), 1, THREADS, 1, 1, 0,
                                             r->queue->stream, parameters, NULL);
    }
}

static void
print_beginning(char *out, size_t capacity, const Run *r)
{
    snprintf(out, capacity,
             "typedef %s S;\n#define IS_REAL %d\n#define TAKES_REAL %d\n#define GIVES_REAL %d\n",
             r->is_double ? "double" : "float", r->t.is_real, r->t.type == CI_CUFFT_real_to_complex,
             r->t.type == CI_CUFFT_complex_to_real);
}

static int32_t
load_kernels(Run *r)
{
    char beginning[200];
    int variant = (r->t.type * 2 + r->is_double) * 2 + r->t.is_real;
    print_beginning(beginning, sizeof beginning, r);
    return ci_cuda_load_text(r->queue, r->scope->state, &kernels, variant, beginning, &r->kernels);
}

static void
pack_rows(Run *r, const void *x)
{
    int64_t first;
    void *parameters[] = {&x, &r->in, &r->from, &first};
    launch(r, PACK, &r->from, &first, parameters);
}

static void
scale_rows(Run *r, void *y, const CiCudaRows *to)
{
    int64_t first;
    float single = (float)r->t.scale;
    void *factor = r->is_double ? (void *)&r->t.scale : (void *)&single;
    void *parameters[] = {&r->out, &y, (void *)(uintptr_t)to, factor, &first};
    launch(r, SCALE, to, &first, parameters);
}

/* ---- layouts ---- */

/* The axes beside the transformed one, where neighbours with equally distant rows are one: outer ones, for which there is a
 * call for each position, and the innermost, whose rows one call transforms. */
typedef struct Axes {
    int64_t sizes[CI_MAX_RANK + 1], in[CI_MAX_RANK + 1], out[CI_MAX_RANK + 1];
    int last;
} Axes;

static Axes
join_axes(const CiCudaRows *in, const CiCudaRows *out)
{
    Axes a = {.sizes = {1}, .in = {in->length}, .out = {out->length}};
    for (int k = 0; k < in->rank; k++) {
        int64_t size = in->sizes[k];
        if (size == 1)
            continue;
        bool is_one = a.sizes[a.last] == 1 || (a.in[a.last] == size * in->strides[k] && a.out[a.last] == size * out->strides[k]);
        a.last += !is_one;
        a.sizes[a.last] = is_one ? a.sizes[a.last] * size : size;
        a.in[a.last] = in->strides[k];
        a.out[a.last] = out->strides[k];
    }
    return a;
}

/* The rows in contiguous memory, one after another. */
static CiCudaRows
packed(const CiCudaRows *rows)
{
    CiCudaRows made = *rows;
    int64_t stride = made.length;
    made.step = 1;
    for (int k = made.rank - 1; k >= 0; k--) {
        made.strides[k] = stride;
        stride *= made.sizes[k];
    }
    return made;
}

/* True if there are no gaps between the elements. */
static bool
is_dense(const CiCudaRows *rows)
{
    int64_t last = (rows->length - 1) * rows->step;
    for (int k = 0; k < rows->rank; k++)
        last += (rows->sizes[k] - 1) * rows->strides[k];
    return last == rows->rows * rows->length - 1;
}

static bool
fits(int64_t stride)
{
    return stride > 0 && stride <= INT32_MAX;
}

/* True if cuFFT may access its rows, in few calls: they are aligned as it requires. */
static bool
is_direct(const Run *r)
{
    Axes a = join_axes(&r->takes, &r->gives);
    int64_t calls = 1;
    bool is_aligned = (r->packs || r->in % ALIGNMENT == 0) && (r->stores || r->out % ALIGNMENT == 0);
    for (int k = 0; k < a.last; k++) {
        calls *= a.sizes[k];
        is_aligned = is_aligned && a.in[k] * in_bytes(r) % ALIGNMENT == 0 && a.out[k] * out_bytes(r) % ALIGNMENT == 0;
    }
    return is_aligned && calls <= MAX_CALLS && fits(r->takes.step) && fits(r->gives.step) && fits(a.in[a.last]) &&
           fits(a.out[a.last]);
}

/* A transform to real numbers overwrites its operand. */
static void
choose_layouts(Run *r)
{
    bool is_widened = r->t.is_real && r->t.type != CI_CUFFT_real_to_complex;
    r->packs = is_widened || r->t.type == CI_CUFFT_complex_to_real;
    r->stores = r->t.scale != 1 && !is_dense(&r->to);
    r->takes = r->packs ? packed(&r->from) : r->from;
    r->gives = r->stores ? packed(&r->to) : r->to;
    if (!is_direct(r)) {
        r->packs = true;
        r->takes = packed(&r->from);
    }
    if (!is_direct(r)) {
        r->stores = true;
        r->gives = packed(&r->to);
    }
}

/* ---- running ---- */

/* One call of cuFFT, for the position `call` along the outer axes. */
static bool
transform_part(Run *r, const Axes *a, int64_t call)
{
    int64_t from = 0, to = 0;
    for (int k = a->last - 1; k >= 0; k--) {
        from += call % a->sizes[k] * a->in[k];
        to += call % a->sizes[k] * a->out[k];
        call /= a->sizes[k];
    }
    CiCufftWork work = {.type = r->t.type,
                        .direction = r->t.direction,
                        .is_double = r->is_double,
                        .n = r->t.n,
                        .rows = a->sizes[a->last],
                        .in_step = r->takes.step,
                        .in_row = a->in[a->last],
                        .out_step = r->gives.step,
                        .out_row = a->out[a->last],
                        .in = r->in + (CUdeviceptr)(from * in_bytes(r)),
                        .out = r->out + (CUdeviceptr)(to * out_bytes(r))};
    return ci_cufft_transform(r->scope->state, &work, r->queue->stream);
}

static int32_t
run_in_memory(Run *r, const CiExternCall *call)
{
    Axes a = join_axes(&r->takes, &r->gives);
    int64_t calls = 1;
    if (r->packs)
        pack_rows(r, call->operands[0]);
    bool is_done = !r->result;
    for (int k = 0; k < a.last; k++)
        calls *= a.sizes[k];
    for (int64_t k = 0; is_done && k < calls; k++)
        is_done = transform_part(r, &a, k);
    CiCudaRows all = {.rows = 1, .length = r->to.rows * r->to.length, .step = 1};
    if (r->stores || r->t.scale != 1)
        scale_rows(r, call->result, r->stores ? &r->to : &all);
    return is_done || r->result ? CI_OK : CI_ERR_DEVICE;
}

static int32_t
run(Run *r, const CiExternCall *call)
{
    r->in = (CUdeviceptr)(uintptr_t)call->operands[0];
    r->out = (CUdeviceptr)(uintptr_t)call->result;
    choose_layouts(r);
    size_t in = r->packs ? ((size_t)(r->from.rows * r->from.length * in_bytes(r)) + 255) / 256 * 256 : 0,
           out = r->stores ? (size_t)(r->to.rows * r->to.length * out_bytes(r)) : 0;
    CUdeviceptr block = 0;
    int32_t status = r->packs || r->stores || r->t.scale != 1 ? load_kernels(r) : CI_OK;
    if (!status && in + out)
        r->result = ci_cuda_block_take(r->scope, in + out, r->queue->stream, &block);
    if (status || r->result)
        return status;
    r->in = r->packs ? block : r->in;
    r->out = r->stores ? block + in : r->out;
    status = run_in_memory(r, call);
    if (block)
        (void)ci_cuda_block_give(r->scope, block, in + out, r->queue->stream);
    return status;
}

int32_t
ci_cuda_run_fft(const CiQueue *queue, const CiExternCall *call)
{
    CiCudaContextScope scope;
    char norm[12];
    Run r = {.queue = queue, .scope = &scope, .is_double = is_of_doubles(call->dtypes[0])};
    if (!read_transform(call->ext, &r.t, norm))
        return CI_ERR_UNSUPPORTED;
    r.from = ci_cuda_rows(call, 0, r.t.axis);
    r.to = ci_cuda_rows(call, 1, r.t.axis);
    r.t.is_real = ci_dtype_class(call->dtypes[0]) == CI_CLASS_float;
    r.t.n = r.t.type == CI_CUFFT_complex_to_real ? r.to.length : r.from.length;
    r.t.scale = scale_of(&r.t, norm);
    if (!r.to.rows || !r.to.length)
        return CI_OK;
    if (r.t.n > INT32_MAX || r.from.rows > INT32_MAX)
        return CI_ERR_MEMORY;
    int32_t status = ci_cuda_enter(&scope, queue);
    if (status)
        return status;
    status = run(&r, call);
    int32_t left = ci_cuda_leave(&scope, r.result);
    return status ? status : left;
}
