/* The driver: opening it, and its context.
 *
 * A context belongs to the process that made it; a forked child gets CI_ERR_DEVICE with that
 * reason, never a crash. Another library's choice of device stays as it was: over its context ours
 * is pushed for each call and popped after it. Where a thread has none, the first device's becomes
 * its own and stays, for that is what CUDA's runtime would give it; calls then change nothing. */
#include "device/cuda/cusolver.h"
#include "device/cuda/library.h"
#include "device/cuda/matmul.h"
#include "device/cuda/nccl.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    RESULT_unusable = -1, /* ours: see why_not */
    RESULT_forked = -2,
    ATTRIBUTE_major = 75,
    ATTRIBUTE_minor = 76,
    ATTRIBUTE_shared_optin = 97,
    POOL_release_threshold = 4
};

const char *
ci_cuda_driver_open(CiCudaDriver *driver, char *out, size_t capacity)
{
    static const CiOsFunction functions[] = {
#define DRIVER(field, name, parameters) {#name, offsetof(CiCudaDriver, field)},
        CI_CUDA_DRIVER_TABLE
#undef DRIVER
    };
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    int count = 0, result;
    if (!library) {
        snprintf(out, capacity, "no CUDA driver: %s", dlerror());
        return out;
    }
    const char *missing = ci_os_find_functions(library, functions, CI_OS_COUNT(functions), driver);
    if (missing) {
        snprintf(out, capacity, "the CUDA driver is too old: no %s", missing);
        return out;
    }
    result = driver->init(0);
    if (!result)
        result = driver->device_count(&count);
    if (!result && count > 0)
        return NULL;
    const char *text = "no device";
    if (result)
        driver->error_string(result, &text);
    snprintf(out, capacity, "no CUDA device: %s", text ? text : "unknown error");
    return out;
}

static int
know_device(CiCudaState *state)
{
    const CiCudaDriver *driver = &state->driver;
    int major = 0, minor = 0, result = driver->device_count(&state->count);
    if (!result)
        result = driver->device_get(&state->device, state->index);
    if (result)
        return result;
    (void)driver->device_attribute(&major, ATTRIBUTE_major, state->device);
    (void)driver->device_attribute(&minor, ATTRIBUTE_minor, state->device);
    (void)driver->device_attribute(&state->shared_limit, ATTRIBUTE_shared_optin, state->device);
    state->capability = 10 * major + minor;
    return 0;
}

static int
open_device(CiCudaState *state)
{
    const CiCudaDriver *driver = &state->driver;
    CUmemoryPool pool;
    uint64_t keep = CI_CUDA_KEEP_BYTES;
    int result = driver->context_retain(&state->context, state->device);
    if (!result && !driver->pool(&pool, state->device))
        (void)driver->pool_attribute(pool, POOL_release_threshold, &keep);
    return result;
}

static void
free_state(CiCudaState *state)
{
    pthread_mutex_destroy(&state->lock);
    pthread_mutex_destroy(&state->recording);
    pthread_mutex_destroy(&state->grouping);
    free(state->nccl);
    pthread_mutex_destroy(&state->knowing);
    pthread_mutex_destroy(&state->opening);
    pthread_mutex_destroy(&state->blocks.lock);
    pthread_mutex_destroy(&state->host_blocks.lock);
    ci_os_mark_free(state->mark);
    free(state);
}

static void
shut(CiDeviceState *base)
{
    CiCudaState *state = (CiCudaState *)base;
    const CiCudaDriver *driver = &state->driver;
    CUcontext now = NULL;
    if (state->context && ci_os_is_marked(state->mark)) {
        CiCudaContextScope scope = {.state = state, .driver = driver};
        if (!driver->context_push(state->context)) {
            (void)ci_cuda_blocks_bound(&scope, 0);
            if (state->record_stream)
                (void)driver->stream_close(state->record_stream);
            ci_nccl_shut(state);
            ci_cublas_shut(state); /* modules go with the context */
            ci_cufft_shut(state);
            ci_cusolver_shut(state);
            (void)driver->context_pop(&now);
        }
        (void)driver->context_release(state->device);
    }
    ci_cuda_forget_texts(state);
    free_state(state);
}

static CiCudaState *
new_state(int index)
{
    CiCudaState *state = calloc(1, sizeof *state);
    if (!state)
        return NULL;
    state->index = index;
    state->base.shut = shut;
    state->mark = ci_os_mark_new();
    state->blocks.most = SIZE_MAX;
    state->host_blocks.most = CI_CUDA_HOST_BYTES;
    pthread_mutex_init(&state->lock, NULL);
    pthread_mutex_init(&state->recording, NULL);
    pthread_mutex_init(&state->grouping, NULL);
    pthread_mutex_init(&state->knowing, NULL);
    pthread_mutex_init(&state->opening, NULL);
    pthread_mutex_init(&state->blocks.lock, NULL);
    pthread_mutex_init(&state->host_blocks.lock, NULL);
    if (state->mark)
        return state;
    free_state(state);
    return NULL;
}

static void
note_failure(CiCudaState *state, int result)
{
    const char *text = NULL;
    if (!result)
        return;
    state->driver.error_string(result, &text);
    snprintf(state->why_not, sizeof state->why_not, "no CUDA context: %s",
             text ? text : "unknown error");
}

static CiCudaState *
known(CiCudaState *state)
{
    if (atomic_load(&state->is_known))
        return state;
    pthread_mutex_lock(&state->knowing);
    if (!atomic_load(&state->is_known) &&
        !ci_cuda_driver_open(&state->driver, state->why_not, sizeof state->why_not))
        note_failure(state, know_device(state));
    atomic_store(&state->is_known, true);
    pthread_mutex_unlock(&state->knowing);
    return state;
}

/* A context takes a third of a second: one thread makes it, often beside a capture, and beside NVRTC. */
static CiCudaState *
opened(CiCudaState *state)
{
    if (atomic_load(&state->is_open))
        return state;
    (void)known(state);
    pthread_mutex_lock(&state->opening);
    if (!atomic_load(&state->is_open) && !state->why_not[0])
        note_failure(state, open_device(state));
    atomic_store(&state->is_open, true);
    pthread_mutex_unlock(&state->opening);
    return state;
}

static CiCudaState *
find_state(const CiQueue *queue)
{
    for (CiDeviceState *state = atomic_load(&queue->runtime->states); state; state = state->next)
        if (state->shut == shut && ((CiCudaState *)state)->index == queue->index)
            return (CiCudaState *)state;
    return NULL;
}

/* That of the queue, of which nothing is known yet maybe. */
static CiCudaState *
state_of(const CiQueue *queue)
{
    CiCudaState *found = find_state(queue), *own;
    if (found)
        return found;
    own = new_state(queue->index);
    if (!own)
        return NULL;
    CiDeviceState *first = atomic_load(&queue->runtime->states);
    do {
        found = find_state(queue);
        if (found) { /* another thread was first */
            free_state(own);
            return found;
        }
        own->base.next = first;
    } while (!atomic_compare_exchange_weak(&queue->runtime->states, &first, &own->base));
    return own;
}

CiCudaState *
ci_cuda_state(const CiQueue *queue)
{
    CiCudaState *state = state_of(queue);
    return state ? opened(state) : NULL;
}

CiCudaState *
ci_cuda_known(const CiQueue *queue)
{
    CiCudaState *state = state_of(queue);
    return state ? known(state) : NULL;
}

static int
make_current(CiCudaContextScope *scope)
{
    CUcontext own = scope->state->context, now = NULL;
    int result = scope->driver->context_now(&now);
    if (result || now == own)
        return result;
    if (!now && scope->state->index == 0)
        return scope->driver->context_set(own);
    result = scope->driver->context_push(own);
    scope->is_pushed = !result;
    return result;
}

static int32_t
status_of(CiCudaState *state, int result)
{
    if (result)
        atomic_store(&state->last_error, result);
    return !result ? CI_OK : result == CI_CUDA_NO_MEMORY ? CI_ERR_MEMORY : CI_ERR_DEVICE;
}

int32_t
ci_cuda_enter(CiCudaContextScope *scope, const CiQueue *queue)
{
    CiCudaState *state = ci_cuda_state(queue);
    if (!state)
        return CI_ERR_MEMORY;
    *scope = (CiCudaContextScope){.state = state, .driver = &state->driver};
    int result = state->why_not[0]              ? RESULT_unusable
                 : !ci_os_is_marked(state->mark) ? RESULT_forked
                                                 : make_current(scope);
    return result ? status_of(state, result) : CI_OK;
}

int32_t
ci_cuda_leave(const CiCudaContextScope *scope, int result)
{
    CUcontext ignored;
    if (scope->is_pushed)
        (void)scope->driver->context_pop(&ignored);
    return result ? status_of(scope->state, result) : CI_OK;
}

void
ci_cuda_unload(const CiQueue *queue, CUmodule module)
{
    CiCudaContextScope scope;
    if (module && !ci_cuda_enter(&scope, queue))
        (void)ci_cuda_leave(&scope, scope.driver->module_unload(module));
}

const char *
ci_cuda_last_error(const CiQueue *queue, char *out, size_t capacity)
{
    CiCudaState *state = find_state(queue);
    int result = state ? atomic_load(&state->last_error) : 0;
    const char *text = NULL;
    if (!result)
        return NULL;
    if (result == RESULT_unusable)
        text = state->why_not;
    else if (result == RESULT_forked)
        text = "a process made by fork cannot use its parent's CUDA context";
    else if (result == CI_CUDA_GROUP_FAILED)
        text = state->group_error;
    else
        state->driver.error_string(result, &text);
    snprintf(out, capacity, "%s", text ? text : "unknown error");
    return out;
}
