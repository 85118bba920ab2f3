/* numpy.fft along one axis by cuFFT, opened at run time as the driver is; without it the host does
 * them. Only what is used is declared, from the documented interface.
 *
 * Rows are packed on the way in (a real one as complex numbers where all of its transform is asked
 * for), and scaled on the way out, as NumPy's `norm` says. Plans are kept: making one takes longer
 * than most transforms. */
#include "device/cuda/library.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 256, MOST_ROWS = 65535, MOST_PLANS = 16, FORWARD = -1, BACKWARD = 1 };

/* By what a transform takes and gives: complex, real; of doubles 0x40 more. */
enum { COMPLEX = 0x29, REAL_TO_COMPLEX = 0x2a, COMPLEX_TO_REAL = 0x2c, OF_DOUBLES = 0x40 };

#define CUFFT_TABLE                                                                                \
    CUFFT(plan, cufftPlanMany,                                                                     \
          (int *plan, int rank, int *sizes, int *in, int in_step, int in_row, int *out,            \
           int out_step, int out_row, int type, int rows))                                         \
    CUFFT(destroy, cufftDestroy, (int plan))                                                       \
    CUFFT(use_stream, cufftSetStream, (int plan, CUstream stream))                                 \
    CUFFT(c2c, cufftExecC2C, (int plan, CUdeviceptr in, CUdeviceptr out, int direction))           \
    CUFFT(z2z, cufftExecZ2Z, (int plan, CUdeviceptr in, CUdeviceptr out, int direction))           \
    CUFFT(r2c, cufftExecR2C, (int plan, CUdeviceptr in, CUdeviceptr out))                          \
    CUFFT(d2z, cufftExecD2Z, (int plan, CUdeviceptr in, CUdeviceptr out))                          \
    CUFFT(c2r, cufftExecC2R, (int plan, CUdeviceptr in, CUdeviceptr out))                          \
    CUFFT(z2d, cufftExecZ2D, (int plan, CUdeviceptr in, CUdeviceptr out))

typedef struct Plan {
    int number, type;
    int64_t n, rows;
} Plan;

struct CiCufft {
    Plan plans[MOST_PLANS];
    int nplans;
#define CUFFT(field, symbol, parameters) int(*field) parameters;
    CUFFT_TABLE
#undef CUFFT
};

static const char fft_text[] =
    "extern \"C\" __global__ void __launch_bounds__(256)\n"
    "kpack(const T *x, A *y, const Rows r, const L first)\n"
    "{\n"
    "    const L row = first + blockIdx.y, i = blockIdx.x*256LL + threadIdx.x;\n"
    "    if (i < r.length)\n"
    "        y[row*r.length + i] = enter(x[start(r, row) + i*r.step]);\n"
    "}\n"
    "extern \"C\" __global__ void __launch_bounds__(256)\n"
    "kscale(const B *x, B *y, const Rows r, const S factor, const L first)\n"
    "{\n"
    "    const L row = first + blockIdx.y, i = blockIdx.x*256LL + threadIdx.x;\n"
    "    if (i < r.length)\n"
    "        y[start(r, row) + i*r.step] = scale(x[row*r.length + i], factor);\n"
    "}\n";
static const char *const kernel_names[] = {"kpack", "kscale"};
static const CiCudaText kernels = {fft_text, NULL, kernel_names, 2, false};

/* ---- finding ---- */

static void *
open_library(void)
{
    static const char *const names[] = {"libcufft.so.12", "libcufft.so.11", "libcufft.so.10"};
    return ci_cuda_open_library(names, sizeof names / sizeof *names, "CINDUCTOR_CUFFT");
}

static bool
find_symbols(CiCufft *cufft, void *library)
{
    void *symbol;
#define CUFFT(field, name, parameters)                                                             \
    if (!(symbol = dlsym(library, #name)))                                                         \
        return false;                                                                              \
    memcpy(&cufft->field, &symbol, sizeof symbol);
    CUFFT_TABLE
#undef CUFFT
    return true;
}

/* That of the card, opened when first asked for; NULL without memory or library. */
static CiCufft *
cufft_of(CiCudaState *state)
{
    void *library = state->cufft ? NULL : open_library();
    if (state->cufft || !library)
        return state->cufft;
    CiCufft *cufft = calloc(1, sizeof *cufft);
    if (cufft && !find_symbols(cufft, library)) {
        free(cufft);
        cufft = NULL;
    }
    return state->cufft = cufft;
}

void
ci_cufft_shut(CiCudaState *state)
{
    for (int k = 0; state->cufft && k < state->cufft->nplans; k++)
        (void)state->cufft->destroy(state->cufft->plans[k].number);
    free(state->cufft);
    state->cufft = NULL;
}

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
    } kinds[] = {{"fft_fft", COMPLEX, FORWARD},
                 {"fft_ifft", COMPLEX, BACKWARD},
                 {"fft_rfft", REAL_TO_COMPLEX, FORWARD},
                 {"fft_irfft", COMPLEX_TO_REAL, BACKWARD}};
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
           (t.type == REAL_TO_COMPLEX ? is_real : t.type == COMPLEX || !is_real) &&
           open_library(); /* it stays: loading it takes long */
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
    const CiCudaStay *stay;
    Transform t;
    CiCudaRows from, to;
    const CUfunction *kernels;
    CUdeviceptr in, out;
    bool is_double;
    int result;
} Run;

static int
make_plan(const Run *r, CiCufft *cufft, Plan *plan)
{
    int n = (int)r->t.n, half = n / 2 + 1,
        in = r->t.type == COMPLEX_TO_REAL ? half : n, out = r->t.type == REAL_TO_COMPLEX ? half : n;
    *plan = (Plan){.type = r->t.type + (r->is_double ? OF_DOUBLES : 0),
                   .n = r->t.n,
                   .rows = r->from.rows};
    return cufft->plan(&plan->number, 1, &n, NULL, 1, in, NULL, 1, out, plan->type,
                       (int)r->from.rows);
}

/* Called with the lock: the oldest goes where there is no more room. */
static int
find_plan(const Run *r, CiCufft *cufft, int *number)
{
    int type = r->t.type + (r->is_double ? OF_DOUBLES : 0), result = 0;
    for (int k = 0; k < cufft->nplans; k++)
        if (cufft->plans[k].type == type && cufft->plans[k].n == r->t.n &&
            cufft->plans[k].rows == r->from.rows) {
            *number = cufft->plans[k].number;
            return 0;
        }
    if (cufft->nplans == MOST_PLANS) {
        (void)cufft->destroy(cufft->plans[0].number);
        memmove(cufft->plans, cufft->plans + 1, sizeof *cufft->plans * --cufft->nplans);
    }
    result = make_plan(r, cufft, &cufft->plans[cufft->nplans]);
    if (!result)
        *number = cufft->plans[cufft->nplans++].number;
    return result;
}

static int
transform(const Run *r, CiCufft *cufft)
{
    int plan, result = find_plan(r, cufft, &plan);
    if (!result)
        result = cufft->use_stream(plan, r->queue->stream);
    if (result)
        return result;
    switch (r->t.type) {
    case COMPLEX:
        return (r->is_double ? cufft->z2z : cufft->c2c)(plan, r->in, r->out, r->t.direction);
    case REAL_TO_COMPLEX:
        return (r->is_double ? cufft->d2z : cufft->r2c)(plan, r->in, r->out);
    default:
        return (r->is_double ? cufft->z2d : cufft->c2r)(plan, r->in, r->out);
    }
}

static void
launch(Run *r, CUfunction kernel, const CiCudaRows *rows, int64_t first, void **parameters)
{
    int64_t blocks = (rows->length + THREADS - 1) / THREADS, left = rows->rows - first;
    if (!r->result)
        r->result = r->stay->driver->launch(
            kernel, (unsigned)blocks, (unsigned)(left < MOST_ROWS ? left : MOST_ROWS), 1, THREADS,
            1, 1, 0, r->queue->stream, parameters, NULL);
}

static void
print_beginning(char *out, size_t capacity, const Run *r)
{
    const char *s = r->is_double ? "double" : "float";
    bool gives_real = r->t.type == COMPLEX_TO_REAL, takes_real = r->t.type == REAL_TO_COMPLEX;
    snprintf(out, capacity,
             "%stypedef %s S;\nstruct C { S re, im; };\ntypedef %s T;\ntypedef %s A;\ntypedef %s B;\n"
             "static __device__ A enter(T x) { return %s; }\n"
             "static __device__ B scale(B x, S f) { return %s; }\n",
             ci_cuda_rows_text, s, r->t.is_real ? "S" : "C", takes_real ? "S" : "C",
             gives_real ? "S" : "C", r->t.is_real && !takes_real ? "C{x, 0}" : "x",
             gives_real ? "x*f" : "C{x.re*f, x.im*f}");
}

static int32_t
load_kernels(Run *r)
{
    char beginning[2000];
    int variant = (r->t.type * 2 + r->is_double) * 2 + r->t.is_real;
    print_beginning(beginning, sizeof beginning, r);
    return ci_cuda_load_text(r->queue, r->stay->state, &kernels, variant, beginning, &r->kernels);
}

static void
pack_rows(Run *r, const void *x)
{
    for (int64_t first = 0; first < r->from.rows; first += MOST_ROWS) {
        void *parameters[] = {&x, &r->in, &r->from, &first};
        launch(r, r->kernels[0], &r->from, first, parameters);
    }
}

static void
scale_rows(Run *r, void *y)
{
    float single = (float)r->t.scale;
    void *factor = r->is_double ? (void *)&r->t.scale : (void *)&single;
    for (int64_t first = 0; first < r->to.rows; first += MOST_ROWS) {
        void *parameters[] = {&r->out, &y, &r->to, factor, &first};
        launch(r, r->kernels[1], &r->to, first, parameters);
    }
}

static int32_t
run_in_memory(Run *r, const CiExternCall *call)
{
    CiCudaState *state = r->stay->state;
    pack_rows(r, call->operands[0]);
    pthread_mutex_lock(&state->lock);
    CiCufft *cufft = cufft_of(state);
    bool is_done = cufft && !r->result && !transform(r, cufft);
    pthread_mutex_unlock(&state->lock);
    scale_rows(r, call->result);
    return is_done || r->result ? CI_OK : CI_ERR_DEVICE;
}

static int32_t
run(Run *r, const CiExternCall *call)
{
    size_t complex = r->is_double ? 16 : 8;
    size_t in = ((size_t)(r->from.rows * r->from.length) * complex + 255) / 256 * 256,
           out = (size_t)(r->to.rows * r->to.length) * complex;
    CUdeviceptr block = 0;
    int32_t status = load_kernels(r);
    if (!status)
        r->result = ci_cuda_block_take(r->stay, in + out, r->queue->stream, &block);
    if (status || r->result)
        return status;
    r->in = block;
    r->out = r->in + in;
    status = run_in_memory(r, call);
    (void)ci_cuda_block_give(r->stay, block, in + out, r->queue->stream);
    return status;
}

int32_t
ci_cuda_run_fft(const CiQueue *queue, const CiExternCall *call)
{
    CiCudaStay stay;
    char norm[12];
    Run r = {.queue = queue, .stay = &stay, .is_double = is_of_doubles(call->dtypes[0])};
    if (!read_transform(call->ext, &r.t, norm))
        return CI_ERR_UNSUPPORTED;
    r.from = ci_cuda_rows(call, 0, r.t.axis);
    r.to = ci_cuda_rows(call, 1, r.t.axis);
    r.t.is_real = ci_dtype_class(call->dtypes[0]) == CI_CLASS_float;
    r.t.n = r.t.type == COMPLEX_TO_REAL ? r.to.length : r.from.length;
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
