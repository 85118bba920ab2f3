/* cuSOLVER, opened at run time as the driver is: the package builds and runs without it. Only what is
 * used is declared, from the documented interface. Matrices are by columns, one after another, and a
 * factorization overwrites its own. */
#include "device/cuda/cusolver.h"

#include "base/os.h"

#include <stdlib.h>

enum { REAL_f32 = 0, REAL_f64 = 1, COMPLEX_f32 = 4, COMPLEX_f64 = 5, AS_IT_IS = 0 };

/* The device's workspace and the host's, at the end of the parameters of a factorization. */
#define WORK CUdeviceptr work, size_t bytes, void *host_work, size_t host_bytes, CUdeviceptr info
#define SIZES size_t *bytes, size_t *host_bytes
#define Q_SIZE (void *handle, int m, int columns, int k, CUdeviceptr a, int lead, CUdeviceptr tau, int *elements)
#define Q                                                                                          \
    (void *handle, int m, int columns, int k, CUdeviceptr a, int lead, CUdeviceptr tau, CUdeviceptr work,   \
     int elements, CUdeviceptr info)

#define CUSOLVER_TABLE                                                                             \
    CUSOLVER(create, cusolverDnCreate, (void **handle))                                            \
    CUSOLVER(destroy, cusolverDnDestroy, (void *handle))                                           \
    CUSOLVER(use_stream, cusolverDnSetStream, (void *handle, CUstream stream))                     \
    CUSOLVER(create_parameters, cusolverDnCreateParams, (void **parameters))                       \
    CUSOLVER(destroy_parameters, cusolverDnDestroyParams, (void *parameters))                      \
    CUSOLVER(lu_size, cusolverDnXgetrf_bufferSize,                                                 \
             (void *handle, void *parameters, int64_t m, int64_t n, int type, CUdeviceptr a,       \
              int64_t lead, int compute, SIZES))                                                   \
    CUSOLVER(lu, cusolverDnXgetrf,                                                                 \
             (void *handle, void *parameters, int64_t m, int64_t n, int type, CUdeviceptr a,       \
              int64_t lead, CUdeviceptr pivots, int compute, WORK))                                \
    CUSOLVER(lu_solve, cusolverDnXgetrs,                                                           \
             (void *handle, void *parameters, int transpose, int64_t n, int64_t columns, int type, \
              CUdeviceptr a, int64_t lead, CUdeviceptr pivots, int type_b, CUdeviceptr b,          \
              int64_t lead_b, CUdeviceptr info))                                                   \
    CUSOLVER(cholesky_size, cusolverDnXpotrf_bufferSize,                                           \
             (void *handle, void *parameters, int upper, int64_t n, int type, CUdeviceptr a,       \
              int64_t lead, int compute, SIZES))                                                   \
    CUSOLVER(cholesky, cusolverDnXpotrf,                                                           \
             (void *handle, void *parameters, int upper, int64_t n, int type, CUdeviceptr a,       \
              int64_t lead, int compute, WORK))                                                    \
    CUSOLVER(eigen_size, cusolverDnXsyevd_bufferSize,                                              \
             (void *handle, void *parameters, int vectors, int upper, int64_t n, int type,         \
              CUdeviceptr a, int64_t lead, int type_w, CUdeviceptr w, int compute, SIZES))         \
    CUSOLVER(eigen, cusolverDnXsyevd,                                                              \
             (void *handle, void *parameters, int vectors, int upper, int64_t n, int type,         \
              CUdeviceptr a, int64_t lead, int type_w, CUdeviceptr w, int compute, WORK))          \
    CUSOLVER(svd_size, cusolverDnXgesvd_bufferSize,                                                \
             (void *handle, void *parameters, signed char job_u, signed char job_v, int64_t m,     \
              int64_t n, int type, CUdeviceptr a, int64_t lead, int type_s, CUdeviceptr s,         \
              int type_u, CUdeviceptr u, int64_t lead_u, int type_v, CUdeviceptr v, int64_t lead_v, \
              int compute, SIZES))                                                                 \
    CUSOLVER(svd, cusolverDnXgesvd,                                                                \
             (void *handle, void *parameters, signed char job_u, signed char job_v, int64_t m,     \
              int64_t n, int type, CUdeviceptr a, int64_t lead, int type_s, CUdeviceptr s,         \
              int type_u, CUdeviceptr u, int64_t lead_u, int type_v, CUdeviceptr v, int64_t lead_v, \
              int compute, WORK))                                                                  \
    CUSOLVER(qr_size, cusolverDnXgeqrf_bufferSize,                                                 \
             (void *handle, void *parameters, int64_t m, int64_t n, int type, CUdeviceptr a,       \
              int64_t lead, int type_tau, CUdeviceptr tau, int compute, SIZES))                    \
    CUSOLVER(qr, cusolverDnXgeqrf,                                                                 \
             (void *handle, void *parameters, int64_t m, int64_t n, int type, CUdeviceptr a,       \
              int64_t lead, int type_tau, CUdeviceptr tau, int compute, WORK))                     \
    CUSOLVER(q_size_f32, cusolverDnSorgqr_bufferSize, Q_SIZE)                                      \
    CUSOLVER(q_size_f64, cusolverDnDorgqr_bufferSize, Q_SIZE)                                      \
    CUSOLVER(q_size_c64, cusolverDnCungqr_bufferSize, Q_SIZE)                                      \
    CUSOLVER(q_size_c128, cusolverDnZungqr_bufferSize, Q_SIZE)                                     \
    CUSOLVER(q_f32, cusolverDnSorgqr, Q)                                                           \
    CUSOLVER(q_f64, cusolverDnDorgqr, Q)                                                           \
    CUSOLVER(q_c64, cusolverDnCungqr, Q)                                                           \
    CUSOLVER(q_c128, cusolverDnZungqr, Q)

struct CiCusolver {
    void *handle, *parameters; /* NULL: there is none */
#define CUSOLVER(field, symbol, parameters) int(*field) parameters;
    CUSOLVER_TABLE
#undef CUSOLVER
};

/* ---- finding ---- */

static void *
open_library(void)
{
    static const char *const names[] = {"libcusolver.so.12", "libcusolver.so.11"};
    return ci_cuda_open_library(names, sizeof names / sizeof *names, "CINDUCTOR_CUSOLVER");
}

static bool
find_symbols(CiCusolver *cusolver, void *library)
{
    static const CiOsFunction functions[] = {
#define CUSOLVER(field, name, parameters) {#name, offsetof(CiCusolver, field)},
        CUSOLVER_TABLE
#undef CUSOLVER
    };
    return !ci_os_find_functions(library, functions, CI_OS_COUNT(functions), cusolver);
}

bool
ci_cusolver_is_there(void)
{
    return open_library() != NULL; /* it stays: loading it takes long */
}

/* Of the GPU, opened on first use, with the context current; without a handle where that fails. */
static CiCusolver *
cusolver_of(CiCudaState *state)
{
    if (state->cusolver)
        return state->cusolver;
    void *library = open_library();
    CiCusolver *cusolver = calloc(1, sizeof *cusolver);
    state->cusolver = cusolver;
    if (!cusolver || !library || !find_symbols(cusolver, library))
        return cusolver;
    if (cusolver->create_parameters(&cusolver->parameters))
        cusolver->parameters = NULL;
    else if (cusolver->create(&cusolver->handle))
        cusolver->handle = NULL;
    return cusolver;
}

void
ci_cusolver_shut(CiCudaState *state)
{
    CiCusolver *cusolver = state->cusolver;
    if (cusolver && cusolver->handle)
        (void)cusolver->destroy(cusolver->handle);
    if (cusolver && cusolver->parameters)
        (void)cusolver->destroy_parameters(cusolver->parameters);
    free(cusolver);
    state->cusolver = NULL;
}

bool
ci_cusolver_begin(CiCusolverScope *s, const CiCudaContextScope *scope, CUstream stream, CiDtype dtype)
{
    pthread_mutex_lock(&scope->state->lock);
    s->cusolver = cusolver_of(scope->state);
    s->scope = scope;
    s->stream = stream;
    s->type = dtype == CI_DTYPE_f32   ? REAL_f32
              : dtype == CI_DTYPE_f64 ? REAL_f64
              : dtype == CI_DTYPE_c64 ? COMPLEX_f32
                                      : COMPLEX_f64;
    s->real = dtype == CI_DTYPE_f32 || dtype == CI_DTYPE_c64 ? REAL_f32 : REAL_f64;
    s->element = (size_t)ci_dtype_size(dtype);
    return s->cusolver && s->cusolver->handle && !s->cusolver->use_stream(s->cusolver->handle, stream);
}

void
ci_cusolver_end(const CiCusolverScope *s)
{
    pthread_mutex_unlock(&s->scope->state->lock);
}

/* ---- workspaces ---- */

typedef struct Work {
    CUdeviceptr block;
    void *host;
    size_t bytes, host_bytes;
} Work;

/* `sized`: what the query of its sizes returned. */
static bool
take_work(CiCusolverScope *s, int sized, Work *work)
{
    work->block = 0;
    work->host = NULL;
    if (sized)
        return false;
    work->bytes = work->bytes ? work->bytes : s->element;
    s->result = ci_cuda_block_take(s->scope, work->bytes, s->stream, &work->block);
    work->host = s->result ? NULL : malloc(work->host_bytes + 1);
    return work->host != NULL;
}

/* The host's workspace is used until the stream has done its work. */
static bool
give_work(CiCusolverScope *s, const Work *work, bool is_done)
{
    if (work->host_bytes && work->host)
        s->result = s->scope->driver->synchronize(s->stream);
    free(work->host);
    if (work->block)
        (void)ci_cuda_block_give(s->scope, work->block, work->bytes, s->stream);
    return is_done && !s->result;
}

#define END work.block, work.bytes, work.host, work.host_bytes, info
#define SIZED &work.bytes, &work.host_bytes

/* ---- factorizations ---- */

bool
ci_cusolver_lu(CiCusolverScope *s, int64_t n, CUdeviceptr a, CUdeviceptr pivots, CUdeviceptr info)
{
    const CiCusolver *c = s->cusolver;
    Work work = {0};
    int sized = c->lu_size(c->handle, c->parameters, n, n, s->type, a, n, s->type, SIZED);
    bool is_done = take_work(s, sized, &work) &&
                   !c->lu(c->handle, c->parameters, n, n, s->type, a, n, pivots, s->type, END);
    return give_work(s, &work, is_done);
}

bool
ci_cusolver_lu_solve(CiCusolverScope *s, int64_t n, int64_t columns, CUdeviceptr a, CUdeviceptr pivots,
                     CUdeviceptr b, CUdeviceptr info)
{
    const CiCusolver *c = s->cusolver;
    return !c->lu_solve(c->handle, c->parameters, AS_IT_IS, n, columns, s->type, a, n, pivots, s->type, b,
                        n, info);
}

bool
ci_cusolver_cholesky(CiCusolverScope *s, bool is_upper, int64_t n, CUdeviceptr a, CUdeviceptr info)
{
    const CiCusolver *c = s->cusolver;
    Work work = {0};
    int sized = c->cholesky_size(c->handle, c->parameters, is_upper, n, s->type, a, n, s->type, SIZED);
    bool is_done = take_work(s, sized, &work) &&
                   !c->cholesky(c->handle, c->parameters, is_upper, n, s->type, a, n, s->type, END);
    return give_work(s, &work, is_done);
}

bool
ci_cusolver_eigen(CiCusolverScope *s, bool has_vectors, bool is_upper, int64_t n, CUdeviceptr a,
                  CUdeviceptr w, CUdeviceptr info)
{
    const CiCusolver *c = s->cusolver;
    Work work = {0};
    int sized = c->eigen_size(c->handle, c->parameters, has_vectors, is_upper, n, s->type, a, n, s->real,
                              w, s->type, SIZED);
    bool is_done = take_work(s, sized, &work) &&
                   !c->eigen(c->handle, c->parameters, has_vectors, is_upper, n, s->type, a, n, s->real, w,
                             s->type, END);
    return give_work(s, &work, is_done);
}

bool
ci_cusolver_svd(CiCusolverScope *s, const CiCusolverSvd *x, CUdeviceptr info)
{
    const CiCusolver *c = s->cusolver;
    signed char job = (signed char)x->job;
    int64_t lead_v = x->job == 'A' ? x->n : x->m < x->n ? x->m : x->n;
    Work work = {0};
    int sized = c->svd_size(c->handle, c->parameters, job, job, x->m, x->n, s->type, x->a, x->m, s->real,
                            x->s, s->type, x->u, x->m, s->type, x->v, lead_v, s->type, SIZED);
    bool is_done = take_work(s, sized, &work) &&
                   !c->svd(c->handle, c->parameters, job, job, x->m, x->n, s->type, x->a, x->m, s->real,
                           x->s, s->type, x->u, x->m, s->type, x->v, lead_v, s->type, END);
    return give_work(s, &work, is_done);
}

bool
ci_cusolver_qr(CiCusolverScope *s, int64_t m, int64_t n, CUdeviceptr a, CUdeviceptr tau,
               CUdeviceptr info)
{
    const CiCusolver *c = s->cusolver;
    Work work = {0};
    int sized =
        c->qr_size(c->handle, c->parameters, m, n, s->type, a, m, s->type, tau, s->type, SIZED);
    bool is_done = take_work(s, sized, &work) &&
                   !c->qr(c->handle, c->parameters, m, n, s->type, a, m, s->type, tau, s->type, END);
    return give_work(s, &work, is_done);
}

bool
ci_cusolver_q(CiCusolverScope *s, int64_t m, int64_t columns, int64_t k, CUdeviceptr a, CUdeviceptr tau,
              CUdeviceptr info)
{
    const CiCusolver *c = s->cusolver;
    int(*const size) Q_SIZE = s->type == REAL_f32      ? c->q_size_f32
                              : s->type == REAL_f64    ? c->q_size_f64
                              : s->type == COMPLEX_f32 ? c->q_size_c64
                                                       : c->q_size_c128;
    int(*const make) Q = s->type == REAL_f32      ? c->q_f32
                         : s->type == REAL_f64    ? c->q_f64
                         : s->type == COMPLEX_f32 ? c->q_c64
                                                  : c->q_c128;
    Work work = {0};
    int elements = 0;
    bool fits = m <= INT32_MAX && columns <= INT32_MAX;
    int sized = !fits || size(c->handle, (int)m, (int)columns, (int)k, a, (int)m, tau, &elements);
    work.bytes = (size_t)elements * s->element;
    bool is_done = take_work(s, sized, &work) &&
                   !make(c->handle, (int)m, (int)columns, (int)k, a, (int)m, tau, work.block, elements, info);
    return give_work(s, &work, is_done);
}
