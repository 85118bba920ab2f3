/* cuFFT, opened at run time as the driver is: the package builds and runs without it. Only what is
 * used is declared, from the documented interface. Plans are kept: making one takes longer than most
 * transforms. */
#include "base/os.h"
#include "device/cuda/library.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_PLANS = 16, OF_DOUBLES = 0x40 }; /* of a transform's number */

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
    int number;
    CiCufftWork work; /* without addresses and direction, which are not its */
} Plan;

struct CiCufft {
    Plan plans[MAX_PLANS];
    int nplans;
#define CUFFT(field, symbol, parameters) int(*field) parameters;
    CUFFT_TABLE
#undef CUFFT
};

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
    static const CiOsFunction functions[] = {
#define CUFFT(field, name, parameters) {#name, offsetof(CiCufft, field)},
        CUFFT_TABLE
#undef CUFFT
    };
    return !ci_os_find_functions(library, functions, CI_OS_COUNT(functions), cufft);
}

/* The cuFFT state of the GPU, opened on first use; NULL without memory or library. */
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

bool
ci_cufft_is_there(void)
{
    return open_library() != NULL; /* it stays: loading it takes long */
}

void
ci_cufft_shut(CiCudaState *state)
{
    for (int k = 0; state->cufft && k < state->cufft->nplans; k++)
        (void)state->cufft->destroy(state->cufft->plans[k].number);
    free(state->cufft);
    state->cufft = NULL;
}

/* ---- plans ---- */

static int
make_plan(CiCufft *cufft, const CiCufftWork *work, Plan *plan)
{
    int n = (int)work->n, type = work->type + (work->is_double ? OF_DOUBLES : 0);
    plan->work = *work;
    return cufft->plan(&plan->number, 1, &n, &n, (int)work->in_step, (int)work->in_row, &n, (int)work->out_step,
                       (int)work->out_row, type, (int)work->rows);
}

static bool
is_plan_for(const CiCufftWork *plan, const CiCufftWork *work)
{
    return plan->type == work->type && plan->is_double == work->is_double && plan->n == work->n && plan->rows == work->rows &&
           plan->in_step == work->in_step && plan->in_row == work->in_row && plan->out_step == work->out_step &&
           plan->out_row == work->out_row;
}

/* The oldest goes where there is no more room. */
static int
find_plan(CiCufft *cufft, const CiCufftWork *work, int *number)
{
    for (int k = 0; k < cufft->nplans; k++)
        if (is_plan_for(&cufft->plans[k].work, work)) {
            *number = cufft->plans[k].number;
            return 0;
        }
    if (cufft->nplans == MAX_PLANS) {
        (void)cufft->destroy(cufft->plans[0].number);
        memmove(cufft->plans, cufft->plans + 1, sizeof *cufft->plans * (size_t)--cufft->nplans);
    }
    int result = make_plan(cufft, work, &cufft->plans[cufft->nplans]);
    if (!result)
        *number = cufft->plans[cufft->nplans++].number;
    return result;
}

static int
transform(CiCufft *cufft, const CiCufftWork *work, CUstream stream)
{
    int plan, result = find_plan(cufft, work, &plan);
    if (!result)
        result = cufft->use_stream(plan, stream);
    if (result)
        return result;
    switch (work->type) {
    case CI_CUFFT_complex:
        return (work->is_double ? cufft->z2z : cufft->c2c)(plan, work->in, work->out,
                                                           work->direction);
    case CI_CUFFT_real_to_complex:
        return (work->is_double ? cufft->d2z : cufft->r2c)(plan, work->in, work->out);
    default:
        return (work->is_double ? cufft->z2d : cufft->c2r)(plan, work->in, work->out);
    }
}

bool
ci_cufft_transform(CiCudaState *state, const CiCufftWork *work, CUstream stream)
{
    pthread_mutex_lock(&state->lock);
    CiCufft *cufft = cufft_of(state);
    bool is_done = cufft && !transform(cufft, work, stream);
    pthread_mutex_unlock(&state->lock);
    return is_done;
}
