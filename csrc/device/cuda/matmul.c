/* np.matmul with the device's memory. Axes before the last two are batches: the last of them goes
 * along in one call, the others are loops.
 *
 * Without cuBLAS, and for dtypes and strides that it does not take, kernels/cuda/matmul.cu computes the product. */
#include "device/cuda/matmul.h"

#include "device/cuda/library.h"
#include "kernels/cuda/texts.h"

#include <stdio.h>
#include <string.h>

#define TILE 64
#define THREADS 256
#define MAX_BLOCKS 65535 /* along the second axis of a grid */

/* ---- our own kernel ---- */

static void
print_element(char *out, size_t capacity, CiDtype dtype)
{
    bool is_small = ci_dtype_is_integral(dtype) && ci_dtype_size(dtype) < 4;
    if (dtype == CI_DTYPE_f16)
        snprintf(out, capacity, "#define IS_HALF 1\n");
    else if (ci_dtype_class(dtype) == CI_CLASS_complex)
        snprintf(out, capacity, "#define IS_COMPLEX 1\ntypedef %s P;\n",
                 dtype == CI_DTYPE_c64 ? "float" : "double");
    else
        snprintf(out, capacity, "typedef %s T;\ntypedef %s S;\n", ci_cuda_number(dtype),
                 is_small ? "unsigned" : ci_cuda_number(dtype));
}

static const char *const names[] = {"kmatmul"};
/* products and sums in one rounding, as BLAS has them */
static const CiCudaText kernel = {ci_cuda_matmul_text, names, 1, true};

static int
launch(const CiQueue *queue, const CiCudaState *state, CUfunction function, CiCudaProduct *p)
{
    int64_t tiles = (p->m + TILE - 1) / TILE * ((p->n + TILE - 1) / TILE), first;
    void *parameters[] = {
        &p->a.data, &p->b.data,   &p->c.data,  &p->m,     &p->n,        &p->k,
        &p->a.row,  &p->a.column, &p->a.batch, &p->b.row, &p->b.column, &p->b.batch,
        &p->c.row,  &p->c.column, &p->c.batch, &first,
    };
    int result = 0;
    for (first = 0; first < p->batch && !result; first += MAX_BLOCKS) {
        int64_t count = p->batch - first < MAX_BLOCKS ? p->batch - first : MAX_BLOCKS;
        result = state->driver.launch(function, (unsigned)tiles, (unsigned)count, 1,
                                      THREADS, 1, 1, 0, queue->stream, parameters, NULL);
    }
    return result;
}

static int32_t
run_own(const CiQueue *queue, CiCudaState *state, CiCudaProduct *p, int *result)
{
    char beginning[1000];
    const CUfunction *functions;
    print_element(beginning, sizeof beginning, p->dtype);
    int32_t status =
        ci_cuda_load_text(queue, state, &kernel, (int)p->dtype, beginning, &functions);
    if (!status)
        *result = launch(queue, state, functions[0], p);
    return status;
}

int32_t
ci_cuda_product(const CiQueue *queue, CiCudaState *state, CiCudaProduct *p, int *result)
{
    if (ci_cublas_product(state, queue, p, result))
        return CI_OK;
    return run_own(queue, state, p, result);
}

/* ---- calls ---- */

bool
ci_cuda_takes_product(const CiExternItem *item)
{
    if (item->noperands != 2 || item->result->dtype == CI_DTYPE_bool)
        return false;
    for (int k = 0; k < 2; k++)
        if (item->operands[k]->dtype != item->result->dtype || item->ranks[k] < 1 ||
            item->operands[k]->kind == CI_BUFFER_scalar)
            return false;
    return true;
}

/* Operand k (2: the result) as a matrix. A vector is one row on the left, one column on the right;
 * the result lacks the axes that vectors have not. */
static void
find_matrix(const CiExternCall *call, int k, bool has_rows, bool has_columns, CiCudaMatrix *x)
{
    const int64_t *strides = call->strides[k];
    int axis = call->ranks[k];
    x->column = has_columns ? strides[--axis] : 0;
    x->row = has_rows ? strides[--axis] : 0;
    x->data = (CUdeviceptr)(uintptr_t)(k == 2 ? call->result : call->operands[k]);
}

/* Elements that operand k moves along batch axis `axis` of the result's nbatch. */
static int64_t
batch_step(const CiExternCall *call, int k, int matrix_axes, int nbatch, int axis)
{
    int own = axis - (nbatch - (call->ranks[k] - matrix_axes));
    return own < 0 || call->sizes[k][own] == 1 ? 0 : call->strides[k][own];
}

/* The batch axes but the last, one after another. */
static int32_t
run_batches(const CiQueue *queue, CiCudaState *state, const CiExternCall *call,
            const int *matrix_axes, CiCudaProduct *p, int *result)
{
    int nbatch = call->ranks[2] - matrix_axes[2];
    CiCudaMatrix *const all[3] = {&p->a, &p->b, &p->c};
    int64_t count = 1, size = ci_dtype_size(p->dtype);
    int32_t status = CI_OK;
    for (int axis = 0; axis + 1 < nbatch; axis++)
        count *= call->sizes[2][axis];
    p->batch = nbatch ? call->sizes[2][nbatch - 1] : 1;
    for (int k = 0; k < 3; k++)
        all[k]->batch = nbatch ? batch_step(call, k, matrix_axes[k], nbatch, nbatch - 1) : 0;
    for (int64_t number = 0; number < count && !status && !*result; number++) {
        CiCudaProduct own = *p;
        CiCudaMatrix *const mine[3] = {&own.a, &own.b, &own.c};
        int64_t rest = number;
        for (int axis = nbatch - 2; axis >= 0; axis--) {
            int64_t at = rest % call->sizes[2][axis];
            rest /= call->sizes[2][axis];
            for (int k = 0; k < 3; k++)
                mine[k]->data +=
                    (CUdeviceptr)(at * size * batch_step(call, k, matrix_axes[k], nbatch, axis));
        }
        status = ci_cuda_product(queue, state, &own, result);
    }
    return status;
}

int32_t
ci_cuda_run_product(const CiQueue *queue, const CiExternCall *call)
{
    CiCudaContextScope scope;
    bool has_rows = call->ranks[0] > 1, has_columns = call->ranks[1] > 1;
    int result = 0,
        matrix_axes[3] = {has_rows ? 2 : 1, has_columns ? 2 : 1, has_rows + has_columns};
    CiCudaProduct p = {.dtype = call->dtypes[2],
                       .m = has_rows ? call->sizes[0][call->ranks[0] - 2] : 1,
                       .n = has_columns ? call->sizes[1][call->ranks[1] - 1] : 1,
                       .k = call->sizes[0][call->ranks[0] - 1]};
    find_matrix(call, 0, has_rows, true, &p.a);
    find_matrix(call, 1, true, has_columns, &p.b);
    find_matrix(call, 2, has_rows, has_columns, &p.c);
    for (int axis = 0; axis < call->ranks[2]; axis++)
        if (call->sizes[2][axis] == 0)
            return CI_OK;
    int32_t status = ci_cuda_enter(&scope, queue);
    if (status)
        return status;
    status = run_batches(queue, scope.state, call, matrix_axes, &p, &result);
    int32_t left = ci_cuda_leave(&scope, result);
    return status ? status : left;
}
