/* A launch of the interpreter: values and memory for it, then the statements of its proc. */
#include "device/interp/run.h"

#include "base/os.h"

#include <string.h>

#define PIECE 512 /* bytes */

/* Which of the exchanged memories lies here by right. */
static int
find_own(const CiInterpRun *r, const CiInterpKernel *kernel, const void *memory)
{
    for (int k = 0; k < kernel->nswapped; k++)
        if (r->launch->buffers[kernel->swapped[k]] == memory)
            return kernel->swapped[k];
    return -1;
}

static size_t
bytes_of(const CiInterpRun *r, const CiInterpMemory *memory)
{
    return (size_t)ci_formula_evaluate(&memory->size, r->env) *
           (size_t)ci_dtype_size(memory->dtype);
}

/* After the statements, moves the contents of swapped memories back to their buffers: along each
 * cycle of the permutation, a piece at a time. */
static void
move_back(CiInterpRun *r, const CiInterpKernel *kernel)
{
    char kept[PIECE];
    for (int k = 0; k < kernel->nswapped; k++) {
        int start = kernel->swapped[k];
        size_t bytes = bytes_of(r, &kernel->memories[start]);
        char *const *own = (char *const *)r->launch->buffers;
        for (size_t done = 0; done < bytes && r->memory[start] != own[start]; done += PIECE) {
            size_t size = bytes - done < PIECE ? bytes - done : PIECE;
            int to = start, from;
            memcpy(kept, own[start] + done, size);
            for (; (from = find_own(r, kernel, r->memory[to])) != start; to = from)
                memcpy(own[to] + done, own[from] + done, size);
            memcpy(own[to] + done, kept, size);
        }
        for (int to = start, from; r->memory[to] != own[to]; to = from) {
            from = find_own(r, kernel, r->memory[to]);
            r->memory[to] = own[to];
        }
    }
}

/* Scalars in the form of memory, 16 bytes each. */
static void
take_arguments(CiInterpRun *r, char *scalars)
{
    for (int k = 0; k < r->kernel->nmemories; k++) {
        const CiInterpMemory *memory = &r->kernel->memories[k];
        if (memory->slot_of_scalar < 0)
            continue;
        const CiSlot *slot = &r->launch->scalars[memory->slot_of_scalar];
        CiConst value = {slot->i, slot->f, 0};
        if (ci_dtype_class(memory->dtype) == CI_CLASS_complex)
            value = (CiConst){0, slot->c[0], slot->c[1]};
        ci_const_store(memory->dtype, value, scalars + 16 * k);
        r->memory[k] = scalars + 16 * k;
    }
}

/* Partial results that units leave for later ones: one allocation for both procs of a launch. */
typedef struct Partials {
    char *memory;
    size_t bytes;
} Partials;

static int32_t
take_partials(CiInterpRun *r, Partials *partials)
{
    size_t bytes = 0;
    for (int k = 0; k < r->kernel->nparams; k++)
        if (r->kernel->memories[k].is_partial)
            bytes +=
                CI_PARTIAL_STEP * (size_t)ci_formula_evaluate(&r->kernel->memories[k].size, r->env);
    if (bytes && !partials->memory) {
        partials->memory = ci_allocator_take(r->runtime->allocator, bytes);
        partials->bytes = bytes;
        if (!partials->memory)
            return CI_ERR_MEMORY;
        memset(partials->memory, 0, bytes); /* no unit has published yet */
    }
    for (int k = 0; k < r->kernel->nparams; k++)
        if (r->kernel->memories[k].is_partial)
            r->memory[k] =
                partials->memory + ci_formula_evaluate(&r->kernel->memories[k].offset, r->env);
    return CI_OK;
}

static int32_t
run_kernel(CiInterpRun *r, char *scalars, Partials *partials, bool is_checked)
{
    const CiInterpKernel *kernel = r->kernel;
    for (int k = kernel->nsizes; k < kernel->nslots; k++)
        r->env[k] = kernel->initial[k];
    for (int k = 0; k < kernel->nsizes; k++)
        r->env[k] = r->launch->sizes[k];
    for (int k = 0; k < kernel->nbuffers; k++)
        r->memory[k] = r->launch->buffers[k];
    take_arguments(r, scalars);
    CiInterpChecks checks = {0};
    int32_t status = take_partials(r, partials);
    if (!status && is_checked)
        status = ci_interp_open_checks(r, &checks);
    if (!status)
        status = ci_interp_run(r);
    if (r->checks)
        ci_interp_close_checks(r);
    if (!status && kernel->nswapped)
        move_back(r, kernel);
    for (int k = 0; k < kernel->nmemories; k++)
        if (r->capacity[k])
            ci_allocator_give(r->runtime->allocator, r->memory[k], r->capacity[k]);
    return status;
}

/* One piece of memory holds everything a launch needs but what its statements allocate. */
static int32_t
launch_one(CiExecutable *executable, const CiInterpKernel *kernel, const CiLaunch *launch,
           Partials *partials, CiFault *fault)
{
    size_t nmemories = (size_t)kernel->nmemories + 1, values = kernel->value_bytes + 64;
    size_t memories = (sizeof(void *) + sizeof(size_t) + 16) * nmemories;
    size_t total = values + memories + sizeof(int64_t) * (size_t)(kernel->nslots + 1);
    char *space = ci_allocator_take(executable->queue.runtime->allocator, total);
    if (!space)
        return CI_ERR_MEMORY;
    memset(space + values, 0, total - values);
    CiInterpRun run = {.kernel = kernel,
                       .launch = launch,
                       .runtime = executable->queue.runtime,
                       .fault = fault,
                       .values = space};
    char *scalars = space + values;
    run.memory = (void **)(scalars + 16 * nmemories);
    run.capacity = (size_t *)(run.memory + nmemories);
    run.env = (int64_t *)(run.capacity + nmemories);
    run.last_poll = ci_os_time_ns();
    int32_t status =
        run_kernel(&run, scalars, partials, ((CiInterpExecutable *)executable)->is_checked);
    ci_allocator_give(executable->queue.runtime->allocator, space, total);
    return status;
}

int32_t
ci_interp_launch(CiExecutable *executable, const CiLaunch *launch, CiFault *fault)
{
    const CiInterpExecutable *exe = (CiInterpExecutable *)executable;
    const CiInterpKernel *finish = &exe->finishes[launch->kernel];
    Partials partials = {NULL, 0};
    if (fault)
        fault->kind = 0;
    int32_t status =
        launch_one(executable, &exe->kernels[launch->kernel], launch, &partials, fault);
    if (!status && finish->body.count)
        status = launch_one(executable, finish, launch, &partials, fault);
    if (partials.memory)
        ci_allocator_give(executable->queue.runtime->allocator, partials.memory, partials.bytes);
    return status;
}
