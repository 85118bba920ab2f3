/* numpy.fft along one axis, by cuFFT; without it the host does them. Rows that are not contiguous are
 * packed before (a real one as complex numbers if its whole transform is wanted). A result that is not
 * contiguous or that NumPy's `norm` scales is stored by a kernel after. */
#include "device/cuda/library.h"
#include "kernels/cuda/texts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 256, MAX_ROWS = 65535, FORWARD = -1, BACKWARD = 1 };

static const char *const kernel_names[] = {"kpack", "kscale"};
static const CiCudaText kernels = {ci_cuda_fft_text, kernel_names, 2, false};

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

/* ---- running ---- */

typedef struct Run {
    const CiQueue *queue;
    const CiCudaContextScope *stay;
    Transform t;
    CiCudaRows from, to;
    const CUfunction *kernels;
    CUdeviceptr in, out;
    bool is_double;
    int result;
} Run;

static void
launch(Run *r, CUfunction kernel, const CiCudaRows *rows, int64_t first, void **parameters)
{
    int64_t blocks = (rows->length + THREADS - 1) / THREADS, left = rows->rows - first;
    if (!r->result)
        r->result = r->stay->driver->launch(
            kernel, (unsigned)blocks, (unsigned)(left < MAX_ROWS ? left : MAX_ROWS), 1, THREADS,
            1, 1, 0, r->queue->stream, parameters, NULL);
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
    return ci_cuda_load_text(r->queue, r->stay->state, &kernels, variant, beginning, &r->kernels);
}

static void
pack_rows(Run *r, const void *x)
{
    for (int64_t first = 0; first < r->from.rows; first += MAX_ROWS) {
        void *parameters[] = {&x, &r->in, &r->from, &first};
        launch(r, r->kernels[0], &r->from, first, parameters);
    }
}

static void
scale_rows(Run *r, void *y)
{
    float single = (float)r->t.scale;
    void *factor = r->is_double ? (void *)&r->t.scale : (void *)&single;
    for (int64_t first = 0; first < r->to.rows; first += MAX_ROWS) {
        void *parameters[] = {&r->out, &y, &r->to, factor, &first};
        launch(r, r->kernels[1], &r->to, first, parameters);
    }
}

/* True if cuFFT may access the rows at `data`: they are contiguous, and aligned as it requires. */
static bool
is_packed(const CiCudaRows *rows, const void *data)
{
    int64_t expected = rows->length;
    for (int k = rows->rank - 1; k >= 0; k--) {
        if (rows->sizes[k] != 1 && rows->strides[k] != expected)
            return false;
        expected *= rows->sizes[k];
    }
    return (rows->step == 1 || rows->length == 1) && (uintptr_t)data % 16 == 0;
}

/* A transform to real numbers overwrites its operand. */
static bool
needs_packing(const Run *r, const void *x)
{
    bool is_widened = r->t.is_real && r->t.type != CI_CUFFT_real_to_complex;
    return is_widened || r->t.type == CI_CUFFT_complex_to_real || !is_packed(&r->from, x);
}

static int32_t
run_in_memory(Run *r, const CiExternCall *call, bool packs, bool stores)
{
    CiCufftWork work = {.type = r->t.type,
                        .direction = r->t.direction,
                        .is_double = r->is_double,
                        .n = r->t.n,
                        .rows = r->from.rows,
                        .in = r->in,
                        .out = r->out};
    if (packs)
        pack_rows(r, call->operands[0]);
    bool is_done = !r->result && ci_cufft_transform(r->stay->state, &work, r->queue->stream);
    if (stores)
        scale_rows(r, call->result);
    return is_done || r->result ? CI_OK : CI_ERR_DEVICE;
}

static int32_t
run(Run *r, const CiExternCall *call)
{
    size_t complex = r->is_double ? 16 : 8;
    bool packs = needs_packing(r, call->operands[0]),
         stores = r->t.scale != 1 || !is_packed(&r->to, call->result);
    size_t in = ((size_t)(r->from.rows * r->from.length) * complex + 255) / 256 * 256,
           out = stores ? (size_t)(r->to.rows * r->to.length) * complex : 0;
    CUdeviceptr block = 0;
    int32_t status = packs || stores ? load_kernels(r) : CI_OK;
    in = packs ? in : 0;
    if (!status && in + out)
        r->result = ci_cuda_block_take(r->stay, in + out, r->queue->stream, &block);
    if (status || r->result)
        return status;
    r->in = packs ? block : (CUdeviceptr)(uintptr_t)call->operands[0];
    r->out = stores ? block + in : (CUdeviceptr)(uintptr_t)call->result;
    status = run_in_memory(r, call, packs, stores);
    if (block)
        (void)ci_cuda_block_give(r->stay, block, in + out, r->queue->stream);
    return status;
}

int32_t
ci_cuda_run_fft(const CiQueue *queue, const CiExternCall *call)
{
    CiCudaContextScope stay;
    char norm[12];
    Run r = {.queue = queue, .stay = &stay, .is_double = is_of_doubles(call->dtypes[0])};
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
    int32_t status = ci_cuda_enter(&stay, queue);
    if (status)
        return status;
    status = run(&r, call);
    int32_t left = ci_cuda_leave(&stay, r.result);
    return status ? status : left;
}
