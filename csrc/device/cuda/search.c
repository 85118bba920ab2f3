/* np.searchsorted, by keys that are in the order of the elements: a thread looks for one value by
 * halves. np.convolve and np.correlate of short arrays of numbers: a thread adds one element up. */
#include "device/cuda/library.h"
#include "kernels/cuda/texts.h"

#include <stdio.h>
#include <string.h>

enum { THREADS = 256 };

static const char *const search_names[] = {"ksearch"}, *const slide_names[] = {"kslide"};
static const CiCudaText search_kernel = {ci_cuda_search_text, search_names, 1, false};
static const CiCudaText slide_kernel = {ci_cuda_slide_text, slide_names, 1, true};

/* One kernel, a thread for each of `count` elements. */
static int32_t
run(const CiQueue *queue, const CiCudaText *text, int variant, const char *beginning, int64_t count,
    void **parameters)
{
    CiCudaContextScope scope;
    const CUfunction *kernels;
    int result = 0;
    int32_t status = count ? ci_cuda_enter(&scope, queue) : CI_OK;
    if (status || !count)
        return status;
    status = ci_cuda_load_text(queue, scope.state, text, variant, beginning, &kernels);
    if (!status)
        result = scope.driver->launch(kernels[0], (unsigned)((count + THREADS - 1) / THREADS), 1, 1,
                                      THREADS, 1, 1, 0, queue->stream, parameters, NULL);
    int32_t left = ci_cuda_leave(&scope, result);
    return status ? status : left;
}

/* ---- searchsorted ---- */

bool
ci_cuda_takes_search(const CiExternItem *item)
{
    return item->noperands == 2 && ci_cuda_has_keys(item->operands[0]->dtype) &&
           item->operands[0]->dtype == item->operands[1]->dtype && item->ranks[0] == 1 &&
           item->operands[0]->kind != CI_BUFFER_scalar && item->operands[1]->kind != CI_BUFFER_scalar;
}

int32_t
ci_cuda_run_search(const CiQueue *queue, const CiExternCall *call)
{
    char beginning[400];
    CiCudaRows from = ci_cuda_elements(call, 1), to = ci_cuda_elements(call, 2);
    int64_t n = call->sizes[0][0], step = call->strides[0][0];
    bool right = !strcmp(call->ext->key, "right");
    void *a = call->operands[0], *v = call->operands[1], *y = call->result;
    void *parameters[] = {&a, &v, &y, &n, &step, &from, &to, &right};
    ci_cuda_print_keys(beginning, sizeof beginning, call->dtypes[0], true);
    return run(queue, &search_kernel, (int)call->dtypes[0], beginning, to.rows, parameters);
}

/* ---- convolve, correlate ---- */

bool
ci_cuda_takes_slide(const CiExternItem *item)
{
    CiDtype dtype = item->result->dtype;
    bool is_number = dtype == CI_DTYPE_f32 || dtype == CI_DTYPE_f64 ||
                     (ci_dtype_is_integral(dtype) && dtype != CI_DTYPE_bool);
    for (int k = 0; k < item->noperands; k++)
        is_number &= item->operands[k]->dtype == dtype && item->ranks[k] == 1 &&
                     item->operands[k]->kind != CI_BUFFER_scalar;
    return is_number && item->noperands == 2;
}

/* The longer one stays where it is; of a correlation the result is turned with them. */
int32_t
ci_cuda_run_slide(const CiQueue *queue, const CiExternCall *call)
{
    char beginning[100];
    int longer = call->sizes[1][0] > call->sizes[0][0];
    int64_t n = call->sizes[longer][0], m = call->sizes[!longer][0], count = call->sizes[2][0],
            a_step = call->strides[longer][0], v_step = call->strides[!longer][0],
            y_step = call->strides[2][0];
    bool is_turned = !strcmp(call->ext->name, "correlate"), is_backward = is_turned && longer;
    int64_t first = !strcmp(call->ext->key, "full") ? 0
                    : !strcmp(call->ext->key, "same") ? (m - 1) / 2
                                                      : m - 1;
    void *a = call->operands[longer], *v = call->operands[!longer], *y = call->result;
    void *parameters[] = {&a,     &n,      &a_step, &v,         &m,          &v_step, &y,
                          &count, &y_step, &first,  &is_turned, &is_backward};
    snprintf(beginning, sizeof beginning, "typedef %s T;\n",
             ci_cuda_number(call->dtypes[2]));
    return run(queue, &slide_kernel, (int)call->dtypes[2], beginning, count, parameters);
}
