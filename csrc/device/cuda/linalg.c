/* numpy.linalg on device memory. Operands are copied into matrices by columns, which cuSOLVER factors in
 * place (small ones a kernel of kernels/cuda/linalg.cu), and parts of them are copied into the result.
 *
 * The host waits for the factorization, because it may fail. Such a call fails as a check does, and so does
 * one that cuSOLVER refuses: the original function then runs, and NumPy raises its own exception. */
#include "device/cuda/cusolver.h"
#include "device/cuda/library.h"
#include "kernels/cuda/texts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 256, MAX_STACK = 65535, SMALL = 64, MAX_BLOCKS = 8, TILE = 32 };

/* ---- kernels ---- */

typedef enum Kernel { VIEW, VALUES, FACTOR, SOLVE, DETERMINANT } Kernel;

/* The part of a matrix that a copy has; its other elements are 0. The identity reads no matrix. */
typedef enum Part { ALL, LOWER, UPPER, IDENTITY } Part;

/* A stack of matrices in memory; kernels take it by value. outer: where each begins. */
typedef struct MatrixView {
    CiCudaRows outer;
    int64_t row, column; /* elements between neighbours of a column, and of a row */
} MatrixView;

static const char *const names[] = {"kview", "kvalues", "kfactor", "ksolve", "kdeterminant"};
static const CiCudaText kernels = {ci_cuda_linalg_text, names, 5, false};

/* real_result: of a library call on complex matrices whose result is real. */
static int32_t
load_kernels(const CiQueue *queue, CiCudaState *state, CiDtype dtype, bool real_result,
             const CUfunction **functions)
{
    char beginning[100];
    snprintf(beginning, sizeof beginning,
             "typedef %s S;\n#define IS_COMPLEX %d\n#define GIVES_REAL %d\n",
             dtype == CI_DTYPE_f32 || dtype == CI_DTYPE_c64 ? "float" : "double",
             ci_dtype_class(dtype) == CI_CLASS_complex, real_result);
    return ci_cuda_load_text(queue, state, &kernels, (int)dtype * 2 + real_result, beginning, functions);
}

/* ---- memory ---- */

typedef struct Block {
    CUdeviceptr data;
    size_t bytes;
} Block;

typedef struct Run {
    const CiQueue *queue;
    const CiExternCall *call;
    CiCudaContextScope scope;
    CiCusolverScope solver;
    const CUfunction *kernels;
    CiDtype dtype;
    int64_t m, n, batch;
    CiCudaRows outer; /* of the matrices: sizes of their stack */
    CUdeviceptr info; /* an int for each matrix, and one more */
    Block blocks[MAX_BLOCKS];
    int nblocks;
    int result;     /* the driver's */
    bool has_failed; /* the host shall do it */
} Run;

/* ---- what is taken ---- */

static bool
is_of_lapack(CiDtype dtype)
{
    return dtype == CI_DTYPE_f32 || dtype == CI_DTYPE_f64 || dtype == CI_DTYPE_c64 || dtype == CI_DTYPE_c128;
}

static bool
is_empty(const CiBuffer *buffer)
{
    for (int d = 0; d < buffer->rank; d++)
        if (buffer->sizes[d]->high == 0)
            return true;
    return false;
}

bool
ci_cuda_takes_linalg(const CiExternItem *item)
{
    for (int k = 0; k < item->noperands; k++)
        if (!is_of_lapack(item->operands[k]->dtype) || item->operands[k]->kind == CI_BUFFER_scalar ||
            item->operands[k]->dtype != item->operands[0]->dtype)
            return false;
    return item->noperands >= 1 && item->ranks[0] >= 2 && !is_empty(item->operands[0]) && !is_empty(item->result) &&
           ci_cusolver_is_there();
}

/* ---- memory ---- */

static CUdeviceptr
take(Run *r, int64_t elements, size_t size)
{
    Block *block = &r->blocks[r->nblocks];
    block->bytes = (size_t)elements * size + 1;
    if (!r->result)
        r->result = ci_cuda_block_take(&r->scope, block->bytes, r->queue->stream, &block->data);
    r->nblocks += !r->result;
    return r->result ? 0 : block->data;
}

static CUdeviceptr
take_matrices(Run *r, int64_t m, int64_t n)
{
    return take(r, r->batch * m * n, (size_t)ci_dtype_size(r->dtype));
}

static size_t
real_size(const Run *r)
{
    return r->dtype == CI_DTYPE_f32 || r->dtype == CI_DTYPE_c64 ? sizeof(float) : sizeof(double);
}

/* ---- views ---- */

/* Where each matrix of operand k (the result follows the operands) begins, `axes` being a matrix's own:
 * repeated as the operand's stack is to be as large as r->outer. */
static CiCudaRows
stack_of(const Run *r, int k, int axes)
{
    const CiExternCall *call = r->call;
    CiCudaRows found = r->outer;
    int own = call->ranks[k] - axes;
    for (int d = 0; d < found.rank; d++) {
        int axis = d - (found.rank - own);
        found.strides[d] = axis < 0 || call->sizes[k][axis] == 1 ? 0 : call->strides[k][axis];
    }
    return found;
}

/* Operand k as a stack of matrices; a vector is one column. */
static MatrixView
view_of(const Run *r, int k, bool is_vector)
{
    const int64_t *strides = r->call->strides[k] + r->call->ranks[k];
    return (MatrixView){.outer = stack_of(r, k, is_vector ? 1 : 2),
                          .row = is_vector ? strides[-1] : strides[-2],
                          .column = is_vector ? 0 : strides[-1]};
}

/* Matrices one after another, of `lead` rows in memory. */
static MatrixView
packed(const Run *r, int64_t lead, int64_t columns)
{
    return (MatrixView){.outer = {.rank = 1, .sizes = {r->batch}, .strides = {lead * columns}},
                          .row = 1,
                          .column = lead};
}

/* A part of a flat result, which has matrices by rows. */
static MatrixView
flat(const Run *r, int64_t m, int64_t n)
{
    int k = r->call->noperands;
    int64_t step = r->call->strides[k][0];
    return (MatrixView){.outer = {.rank = 1, .sizes = {r->batch}, .strides = {m * n * step}},
                          .row = n * step,
                          .column = step};
}

static CUdeviceptr
operand(const Run *r, int k)
{
    return (CUdeviceptr)(uintptr_t)(k == r->call->noperands ? r->call->result : r->call->operands[k]);
}

/* The flat result from that element on. */
static CUdeviceptr
result_from(const Run *r, int64_t element)
{
    int k = r->call->noperands;
    return operand(r, k) + (CUdeviceptr)(element * r->call->strides[k][0] * ci_dtype_size(r->call->dtypes[k]));
}

/* ---- launches ---- */

static void
launch(Run *r, Kernel kernel, int64_t blocks, int64_t rows, int threads, void **parameters)
{
    if (!r->result && !r->has_failed && blocks && rows)
        r->result = r->scope.driver->launch(r->kernels[kernel], (unsigned)blocks, (unsigned)rows, 1,
                                            (unsigned)threads, 1, 1, 0, r->queue->stream, parameters, NULL);
}

static int64_t
part_of_stack(const Run *r, int64_t first)
{
    return r->batch - first < MAX_STACK ? r->batch - first : MAX_STACK;
}

static void
copy(Run *r, CUdeviceptr x, MatrixView from, CUdeviceptr y, MatrixView to, int64_t m, int64_t n,
     Part part)
{
    int64_t tiles = (m + TILE - 1) / TILE * ((n + TILE - 1) / TILE), first;
    int which = (int)part;
    void *parameters[] = {&x, &from, &y, &to, &m, &n, &first, &which};
    for (first = 0; first < r->batch; first += MAX_STACK)
        launch(r, VIEW, tiles, part_of_stack(r, first), THREADS, parameters);
}

/* Real numbers, into elements of the result. */
static void
copy_values(Run *r, CUdeviceptr x, int64_t count, CUdeviceptr y, CiCudaRows to)
{
    void *parameters[] = {&x, &y, &to, &count};
    launch(r, VALUES, (count + THREADS - 1) / THREADS, 1, THREADS, parameters);
}

/* ---- factorizations ---- */

static CUdeviceptr
address_of(CUdeviceptr base, int64_t element, size_t size)
{
    return base + (CUdeviceptr)element * size;
}

static void
note(Run *r, bool is_issued)
{
    r->has_failed |= !is_issued;
    r->result = r->result ? r->result : r->solver.result;
}

static bool
is_ok(const Run *r)
{
    return !r->result && !r->has_failed;
}

static CUdeviceptr
info_of(const Run *r, int64_t number)
{
    return address_of(r->info, number, sizeof(int32_t));
}

/* The host waits for the factorizations, and reads whether one failed. */
static void
check_info(Run *r)
{
    int32_t *info = is_ok(r) ? calloc((size_t)r->batch + 1, sizeof *info) : NULL;
    if (info)
        r->result = r->scope.driver->copy_out_on(info, r->info, (size_t)r->batch * sizeof *info, r->queue->stream);
    if (info && !r->result)
        r->result = r->scope.driver->synchronize(r->queue->stream);
    r->has_failed |= !info;
    for (int64_t k = 0; info && k < r->batch; k++)
        r->has_failed |= info[k] != 0;
    free(info);
}

/* Matrices by columns, in place; pivots[n] of each. */
static CUdeviceptr
factor(Run *r, CUdeviceptr a)
{
    CUdeviceptr pivots = take(r, r->batch * r->n, sizeof(int64_t));
    size_t size = (size_t)ci_dtype_size(r->dtype);
    int64_t first = 0;
    void *parameters[] = {&a, &pivots, &r->info, &r->n, &first};
    if (r->n <= SMALL)
        launch(r, FACTOR, r->batch, 1, THREADS, parameters);
    for (int64_t k = 0; r->n > SMALL && k < r->batch && is_ok(r); k++)
        note(r, ci_cusolver_lu(&r->solver, r->n, address_of(a, k * r->n * r->n, size),
                               address_of(pivots, k * r->n, sizeof(int64_t)), info_of(r, k)));
    return pivots;
}

static void
solve_factored(Run *r, CUdeviceptr a, CUdeviceptr pivots, CUdeviceptr b, int64_t columns)
{
    size_t size = (size_t)ci_dtype_size(r->dtype);
    int64_t first = 0;
    void *parameters[] = {&a, &pivots, &b, &r->n, &columns, &first};
    if (r->n <= SMALL)
        launch(r, SOLVE, r->batch, 1, THREADS, parameters);
    for (int64_t k = 0; r->n > SMALL && k < r->batch && is_ok(r); k++)
        note(r, ci_cusolver_lu_solve(&r->solver, r->n, columns, address_of(a, k * r->n * r->n, size),
                                     address_of(pivots, k * r->n, sizeof(int64_t)),
                                     address_of(b, k * r->n * columns, size), info_of(r, r->batch)));
}

static CUdeviceptr
packed_operand(Run *r, int64_t m, int64_t n)
{
    CUdeviceptr a = take_matrices(r, m, n);
    copy(r, operand(r, 0), view_of(r, 0, false), a, packed(r, m, n), m, n, ALL);
    return a;
}

/* ---- calls ---- */

static void
run_solve(Run *r)
{
    bool is_vector = !strcmp(r->call->ext->key, "vector"), is_inverse = r->call->noperands == 1;
    const int64_t *sizes = r->call->sizes[1];
    int64_t columns = is_vector ? 1 : is_inverse ? r->n : sizes[r->call->ranks[1] - 1];
    CUdeviceptr a = packed_operand(r, r->n, r->n), pivots = factor(r, a), b = take_matrices(r, r->n, columns);
    MatrixView from = view_of(r, 1, is_vector && !is_inverse);
    copy(r, operand(r, 1), from, b, packed(r, r->n, columns), r->n, columns,
         is_inverse ? IDENTITY : ALL);
    solve_factored(r, a, pivots, b, columns);
    check_info(r);
    copy(r, b, packed(r, r->n, columns), operand(r, r->call->noperands),
         view_of(r, r->call->noperands, is_vector), r->n, columns, ALL);
}

/* A singular matrix has a determinant. */
static void
run_determinant(Run *r)
{
    CUdeviceptr a = packed_operand(r, r->n, r->n), pivots = factor(r, a), y = operand(r, 1);
    bool in_parts = !strcmp(r->call->ext->name, "slogdet");
    CiCudaRows to = ci_cuda_elements(r->call, 1);
    int64_t first = 0;
    void *parameters[] = {&a, &pivots, &y, &to, &r->n, &r->batch, &in_parts, &first};
    launch(r, DETERMINANT, r->batch, 1, 32, parameters);
}

static void
run_cholesky(Run *r)
{
    bool is_upper = !strcmp(r->call->ext->key, "upper");
    size_t size = (size_t)ci_dtype_size(r->dtype);
    CUdeviceptr a = packed_operand(r, r->n, r->n);
    for (int64_t k = 0; k < r->batch && is_ok(r); k++)
        note(r, ci_cusolver_cholesky(&r->solver, is_upper, r->n, address_of(a, k * r->n * r->n, size), info_of(r, k)));
    check_info(r);
    copy(r, a, packed(r, r->n, r->n), operand(r, 1), view_of(r, 1, false), r->n, r->n,
         is_upper ? UPPER : LOWER);
}

/* The result is the eigenvalues, or flat: these, then the vectors. */
static void
run_eigen(Run *r)
{
    bool has_vectors = !strcmp(r->call->ext->name, "eigh");
    bool is_upper = *r->call->ext->key == 'U' || *r->call->ext->key == 'u';
    size_t size = (size_t)ci_dtype_size(r->dtype), real = real_size(r);
    CUdeviceptr a = packed_operand(r, r->n, r->n), w = take(r, r->batch * r->n, real);
    for (int64_t k = 0; k < r->batch && is_ok(r); k++)
        note(r, ci_cusolver_eigen(&r->solver, has_vectors, is_upper, r->n, address_of(a, k * r->n * r->n, size),
                                  address_of(w, k * r->n, real), info_of(r, k)));
    check_info(r);
    copy_values(r, w, r->batch * r->n, operand(r, 1), ci_cuda_elements(r->call, 1));
    if (has_vectors)
        copy(r, a, packed(r, r->n, r->n), result_from(r, r->batch * r->n), flat(r, r->n, r->n), r->n, r->n,
             ALL);
}

/* cuSOLVER wants no fewer rows than columns: else it is given the transpose, which swaps U and V. The
 * result is the singular values, or flat: U, these, V. */
static void
run_svd(Run *r)
{
    bool is_wide = r->m < r->n, has_vectors = !strcmp(r->call->ext->name, "svd");
    bool is_full = has_vectors && !strcmp(r->call->ext->key, "True");
    int64_t tall = is_wide ? r->n : r->m, few = is_wide ? r->m : r->n, kept = is_full ? tall : few;
    size_t size = (size_t)ci_dtype_size(r->dtype), real = real_size(r);
    CUdeviceptr a = take_matrices(r, tall, few), s = take(r, r->batch * few, real),
                u = take_matrices(r, tall, has_vectors ? kept : 0), v = take_matrices(r, few, has_vectors ? few : 0);
    MatrixView from = view_of(r, 0, false), turned = from;
    turned.row = from.column;
    turned.column = from.row;
    copy(r, operand(r, 0), is_wide ? turned : from, a, packed(r, tall, few), tall, few, ALL);
    for (int64_t k = 0; k < r->batch && is_ok(r); k++) {
        CiCusolverSvd x = {!has_vectors ? 'N' : is_full ? 'A' : 'S', tall, few,
                           address_of(a, k * tall * few, size), address_of(s, k * few, real),
                           address_of(u, k * tall * kept, size), address_of(v, k * few * few, size)};
        note(r, ci_cusolver_svd(&r->solver, &x, info_of(r, k)));
    }
    check_info(r);
    if (!has_vectors) {
        copy_values(r, s, r->batch * few, operand(r, 1), ci_cuda_elements(r->call, 1));
        return;
    }
    MatrixView of_u = flat(r, tall, kept), of_v = flat(r, few, few);
    int64_t u_count = tall * kept, v_count = few * few, s_at = r->batch * (is_wide ? v_count : u_count),
            last = s_at + r->batch * few, step = r->call->strides[1][0];
    CiCudaRows values = {.rank = 1, .sizes = {r->batch * few}, .strides = {step}};
    if (is_wide) { /* the results are the transposes */
        of_u.row = step;
        of_u.column = tall * step;
        of_v.row = step;
        of_v.column = few * step;
    }
    copy(r, u, packed(r, tall, kept), result_from(r, is_wide ? last : 0), of_u, tall, kept, ALL);
    copy_values(r, s, r->batch * few, result_from(r, s_at), values);
    copy(r, v, packed(r, few, few), result_from(r, is_wide ? 0 : last), of_v, few, few, ALL);
}

/* The result is R, or flat: Q, then R. Q begins as the reflectors. */
static void
run_qr(Run *r)
{
    bool has_q = strcmp(r->call->ext->key, "r") != 0;
    int64_t k = r->m < r->n ? r->m : r->n, rows = !strcmp(r->call->ext->key, "complete") ? r->m : k;
    size_t size = (size_t)ci_dtype_size(r->dtype);
    CUdeviceptr a = packed_operand(r, r->m, r->n), tau = take_matrices(r, k, 1),
                q = take_matrices(r, r->m, has_q ? rows : 0);
    for (int64_t i = 0; i < r->batch && is_ok(r); i++)
        note(r, ci_cusolver_qr(&r->solver, r->m, r->n, address_of(a, i * r->m * r->n, size),
                               address_of(tau, i * k, size), info_of(r, i)));
    if (has_q)
        copy(r, a, packed(r, r->m, r->n), q, packed(r, r->m, rows), r->m, k, ALL);
    for (int64_t i = 0; i < r->batch && has_q && is_ok(r); i++)
        note(r, ci_cusolver_q(&r->solver, r->m, rows, k, address_of(q, i * r->m * rows, size),
                              address_of(tau, i * k, size), info_of(r, i)));
    check_info(r);
    MatrixView to = has_q ? flat(r, rows, r->n) : view_of(r, 1, false);
    if (has_q)
        copy(r, q, packed(r, r->m, rows), operand(r, 1), flat(r, r->m, rows), r->m, rows, ALL);
    copy(r, a, packed(r, r->m, r->n), has_q ? result_from(r, r->batch * r->m * rows) : operand(r, 1), to, rows, r->n,
         UPPER);
}

/* ---- entry ---- */

static const struct {
    const char *name;
    void (*run)(Run *r);
} calls[] = {
#define LIBRARY(name, takes, run, records)
#define LINALG(name, function) {#name, run_##function},
#include "device/cuda/library.def"
};

/* The sizes of a stack: the first operand's, or the result's where operands are repeated. */
static void
take_sizes(Run *r)
{
    const CiExternCall *call = r->call;
    bool is_solve = !strcmp(call->ext->name, "solve");
    int from = is_solve ? 2 : 0, axes = is_solve && !strcmp(call->ext->key, "vector") ? 1 : 2;
    r->m = call->sizes[0][call->ranks[0] - 2];
    r->n = call->sizes[0][call->ranks[0] - 1];
    r->batch = 1;
    r->outer.rank = call->ranks[from] - axes;
    for (int d = 0; d < r->outer.rank; d++) {
        r->outer.sizes[d] = call->sizes[from][d];
        r->batch *= r->outer.sizes[d];
    }
}

static void
run_call(Run *r)
{
    r->info = take(r, r->batch + 1, sizeof(int32_t));
    if (!r->result)
        r->result = r->scope.driver->clear(r->info, 0, (size_t)r->batch + 1, r->queue->stream);
    r->has_failed = !ci_cusolver_begin(&r->solver, &r->scope, r->queue->stream, r->dtype);
    for (size_t k = 0; k < sizeof calls / sizeof *calls; k++)
        if (!strcmp(calls[k].name, r->call->ext->name))
            calls[k].run(r);
    ci_cusolver_end(&r->solver);
    while (r->nblocks--)
        (void)ci_cuda_block_give(&r->scope, r->blocks[r->nblocks].data, r->blocks[r->nblocks].bytes, r->queue->stream);
}

/* Matrices without elements are the host's. */
int32_t
ci_cuda_run_linalg(const CiQueue *queue, const CiExternCall *call)
{
    Run r = {.queue = queue, .call = call, .dtype = call->dtypes[0]};
    take_sizes(&r);
    if (!r.m || !r.n || !r.batch || !ci_extern_count(call, call->noperands))
        return CI_ERR_CHECK;
    int32_t status = ci_cuda_enter(&r.scope, queue);
    if (status)
        return status;
    bool real_result = ci_dtype_class(call->dtypes[call->noperands]) == CI_CLASS_float;
    status = load_kernels(queue, r.scope.state, r.dtype, real_result, &r.kernels);
    if (!status)
        run_call(&r);
    int32_t left = ci_cuda_leave(&r.scope, r.result);
    status = status ? status : left;
    return status || !r.has_failed ? status : CI_ERR_CHECK;
}
