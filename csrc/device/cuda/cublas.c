/* cuBLAS, opened at run time as the driver is: the package builds and runs without it. Only what is
 * used is declared, from the documented interface.
 *
 * It sees matrices by columns. A row-major matrix is its transpose there, so c = a b is asked for
 * as c' = b' a'. Accumulation is in the dtype's own precision, of halves in float. */
#include "base/os.h"
#include "device/cuda/library.h"
#include "device/cuda/matmul.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    TYPE_f32 = 0,
    TYPE_f64 = 1,
    TYPE_f16 = 2,
    TYPE_c64 = 4,
    TYPE_c128 = 5,
    COMPUTE_f32 = 68,
    COMPUTE_f64 = 70,
    ALGORITHM_default = -1
};

/* Of a product whose rows are shared out among those of a batch. */
enum { FEW_STEPS = 128, MANY_COLUMNS = 512, MANY_ROWS = 1 << 18, ROWS_OF_PART = 4096 };

#define CUBLAS_TABLE                                                                               \
    CUBLAS(create, cublasCreate_v2, (void **handle))                                               \
    CUBLAS(destroy, cublasDestroy_v2, (void *handle))                                              \
    CUBLAS(use_stream, cublasSetStream_v2, (void *handle, CUstream stream))                        \
    CUBLAS(product, cublasGemmStridedBatchedEx,                                                    \
           (void *handle, int transpose_a, int transpose_b, int m, int n, int k,                   \
            const void *alpha, CUdeviceptr a, int type_a, int lead_a, long long step_a,            \
            CUdeviceptr b, int type_b, int lead_b, long long step_b, const void *beta,             \
            CUdeviceptr c, int type_c, int lead_c, long long step_c, int batch, int compute,       \
            int algorithm))

struct CiCublas {
    void *handle; /* NULL: there is none */
#define CUBLAS(field, symbol, parameters) int(*field) parameters;
    CUBLAS_TABLE
#undef CUBLAS
};

/* ---- finding ---- */

static void *
open_library(void)
{
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11"};
    return ci_cuda_open_library(names, sizeof names / sizeof *names, "CINDUCTOR_CUBLAS");
}

/* Called with the context current. */
static CiCublas *
open_cublas(void)
{
    static const CiOsFunction functions[] = {
#define CUBLAS(field, name, parameters) {#name, offsetof(CiCublas, field)},
        CUBLAS_TABLE
#undef CUBLAS
    };
    CiCublas *cublas = calloc(1, sizeof *cublas);
    void *library = cublas ? open_library() : NULL;
    if (!library || ci_os_find_functions(library, functions, CI_OS_COUNT(functions), cublas))
        return cublas;
    if (cublas->create(&cublas->handle))
        cublas->handle = NULL;
    return cublas;
}

void
ci_cublas_shut(CiCudaState *state)
{
    if (state->cublas && state->cublas->handle)
        (void)state->cublas->destroy(state->cublas->handle);
    free(state->cublas);
    state->cublas = NULL;
}

/* ---- products ---- */

static int
type_of(CiDtype dtype, int *compute)
{
    *compute = dtype == CI_DTYPE_f64 || dtype == CI_DTYPE_c128 ? COMPUTE_f64 : COMPUTE_f32;
    switch (dtype) {
    case CI_DTYPE_f16:
        return TYPE_f16;
    case CI_DTYPE_f32:
        return TYPE_f32;
    case CI_DTYPE_f64:
        return TYPE_f64;
    case CI_DTYPE_c64:
        return TYPE_c64;
    case CI_DTYPE_c128:
        return TYPE_c128;
    default:
        return -1;
    }
}

/* The leading dimension of a matrix whose rows lie one after another (or whose columns do: then it
 * is transposed); false when neither does. */
static bool
find_form(const CiCudaMatrix *x, int64_t rows, int64_t columns, bool *is_transposed, int *lead)
{
    for (int pass = 0; pass < 2; pass++) {
        int64_t inner = pass ? x->row : x->column, outer = pass ? x->column : x->row,
                ninner = pass ? rows : columns, nouter = pass ? columns : rows;
        if ((inner != 1 && ninner > 1) || (outer < ninner && nouter > 1) || outer > INT32_MAX)
            continue;
        *is_transposed = pass;
        *lead = (int)(nouter > 1 ? outer : ninner);
        return true;
    }
    return false;
}

static CiCudaProduct
transposed(const CiCudaProduct *p)
{
    CiCudaMatrix a = {p->b.data, p->b.column, p->b.row, p->b.batch},
                 b = {p->a.data, p->a.column, p->a.row, p->a.batch},
                 c = {p->c.data, p->c.column, p->c.row, p->c.batch};
    return (CiCudaProduct){p->dtype, p->n, p->m, p->k, p->batch, a, b, c};
}

/* A product of f32 with many rows and few steps is asked for as a batch: by itself cuBLAS takes small tiles for it
 * (262,144 rows, 64 steps and 512 columns take 0.55 ms on an H200, as 64 products 0.50). With 65,536 rows, 64 columns
 * or 256 steps a batch is not faster. */
static void
share_rows(CiCudaProduct *p)
{
    if (p->dtype != CI_DTYPE_f32 || p->batch != 1 || p->k > FEW_STEPS || p->n < MANY_COLUMNS || p->m < MANY_ROWS ||
        p->m % ROWS_OF_PART)
        return;
    p->batch = p->m / ROWS_OF_PART;
    p->m = ROWS_OF_PART;
    p->a.batch = ROWS_OF_PART * p->a.row;
    p->b.batch = 0;
    p->c.batch = ROWS_OF_PART * p->c.row;
}

static int
multiply(const CiCublas *cublas, const CiCudaProduct *p, const bool *is_transposed, const int *lead)
{
    static const float one32[2] = {1, 0}, zero32[2] = {0, 0};
    static const double one64[2] = {1, 0}, zero64[2] = {0, 0};
    int compute, type = type_of(p->dtype, &compute);
    const void *one = compute == COMPUTE_f64 ? (const void *)one64 : one32,
               *zero = compute == COMPUTE_f64 ? (const void *)zero64 : zero32;
    return cublas->product(cublas->handle, is_transposed[1], is_transposed[0], (int)p->n, (int)p->m,
                           (int)p->k, one, p->b.data, type, lead[1], p->b.batch, p->a.data, type,
                           lead[0], p->a.batch, zero, p->c.data, type, lead[2], p->c.batch,
                           (int)p->batch, compute, ALGORITHM_default);
}

bool
ci_cublas_product(CiCudaState *state, const CiQueue *queue, const CiCudaProduct *product,
                  int *result)
{
    CiCudaProduct p = *product;
    bool is_transposed[3];
    int lead[3], compute;
    if (type_of(p.dtype, &compute) < 0 || p.k == 0 || p.m > INT32_MAX || p.n > INT32_MAX ||
        p.k > INT32_MAX || p.batch > INT32_MAX)
        return false;
    if (!find_form(&p.c, p.m, p.n, &is_transposed[2], &lead[2]))
        return false;
    if (is_transposed[2]) { /* its transpose is row-major */
        p = transposed(product);
        (void)find_form(&p.c, p.m, p.n, &is_transposed[2], &lead[2]);
    }
    if (is_transposed[2] || !find_form(&p.a, p.m, p.k, &is_transposed[0], &lead[0]) ||
        !find_form(&p.b, p.k, p.n, &is_transposed[1], &lead[1]))
        return false;
    share_rows(&p);
    pthread_mutex_lock(&state->lock);
    if (!state->cublas)
        state->cublas = open_cublas();
    bool is_there = state->cublas && state->cublas->handle;
    *result = is_there ? state->cublas->use_stream(state->cublas->handle, queue->stream) : 0;
    if (is_there && !*result)
        *result = multiply(state->cublas, &p, is_transposed, lead);
    pthread_mutex_unlock(&state->lock);
    return is_there;
}
