/* The driver: opening it, its context, its memory.
 *
 * A context belongs to the process that made it; a forked child gets CI_ERR_DEVICE with that
 * reason, never a crash. The context is pushed for each call and popped after it, so that another
 * library's choice of device stays as it was. */
#include "device/cuda/library.h"
#include "device/cuda/matmul.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    RESULT_no_memory = 2,
    RESULT_unusable = -1, /* ours: see why_not */
    RESULT_forked = -2,
    ATTRIBUTE_major = 75,
    ATTRIBUTE_minor = 76,
    ATTRIBUTE_units = 16,
    ATTRIBUTE_shared_optin = 97,
    POOL_release_threshold = 4,
    POOL_reserved = 5
};

#define KEEP_BYTES ((uint64_t)1 << 32) /* freed memory that the pool keeps at hand */
#define LEAST_BLOCK 256

const char *
ci_cuda_driver_open(CiCudaDriver *driver, char *out, size_t capacity)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *symbol;
    int count = 0, result;
    if (!library) {
        snprintf(out, capacity, "no CUDA driver: %s", dlerror());
        return out;
    }
#define DRIVER(field, name, parameters)                                                            \
    if (!(symbol = dlsym(library, #name))) {                                                       \
        snprintf(out, capacity, "the CUDA driver is too old: no " #name);                          \
        return out;                                                                                \
    }                                                                                              \
    memcpy(&driver->field, &symbol, sizeof symbol);
    CI_CUDA_DRIVER_TABLE
#undef DRIVER
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
open_device(CiCudaState *state)
{
    const CiCudaDriver *driver = &state->driver;
    int major = 0, minor = 0, result = driver->device_count(&state->count);
    if (!result)
        result = driver->device_get(&state->device, state->index);
    if (!result)
        result = driver->context_retain(&state->context, state->device);
    if (result)
        return result;
    (void)driver->device_attribute(&major, ATTRIBUTE_major, state->device);
    (void)driver->device_attribute(&minor, ATTRIBUTE_minor, state->device);
    (void)driver->device_attribute(&state->shared_limit, ATTRIBUTE_shared_optin, state->device);
    state->capability = 10 * major + minor;
    CUmemoryPool pool;
    uint64_t keep = KEEP_BYTES;
    if (!driver->pool(&pool, state->device))
        (void)driver->pool_attribute(pool, POOL_release_threshold, &keep);
    return 0;
}

static void
shut(CiDeviceState *base)
{
    CiCudaState *state = (CiCudaState *)base;
    if (state->context && state->process == getpid()) {
        ci_cublas_shut(state); /* its modules go with the context */
        (void)state->driver.context_release(state->device);
    }
    ci_cuda_forget_texts(state);
    pthread_mutex_destroy(&state->lock);
    pthread_mutex_destroy(&state->opening);
    free(state);
}

static CiCudaState *
new_state(int index)
{
    CiCudaState *state = calloc(1, sizeof *state);
    if (!state)
        return NULL;
    state->index = index;
    state->base.shut = shut;
    state->process = getpid();
    pthread_mutex_init(&state->lock, NULL);
    pthread_mutex_init(&state->opening, NULL);
    return state;
}

static void
open_state(CiCudaState *state)
{
    if (ci_cuda_driver_open(&state->driver, state->why_not, sizeof state->why_not))
        return;
    int result = open_device(state);
    if (result) {
        const char *text = NULL;
        state->driver.error_string(result, &text);
        snprintf(state->why_not, sizeof state->why_not, "no CUDA context: %s",
                 text ? text : "unknown error");
    }
}

/* A context takes a third of a second: one thread makes it, often beside a capture. */
static CiCudaState *
opened(CiCudaState *state)
{
    if (atomic_load(&state->is_open))
        return state;
    pthread_mutex_lock(&state->opening);
    if (!atomic_load(&state->is_open))
        open_state(state);
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

CiCudaState *
ci_cuda_state(const CiQueue *queue)
{
    CiCudaState *found = find_state(queue), *own;
    if (found)
        return opened(found);
    own = new_state(queue->index);
    if (!own)
        return NULL;
    CiDeviceState *first = atomic_load(&queue->runtime->states);
    do {
        found = find_state(queue);
        if (found) { /* another thread was first */
            shut(&own->base);
            return opened(found);
        }
        own->base.next = first;
    } while (!atomic_compare_exchange_weak(&queue->runtime->states, &first, &own->base));
    return opened(own);
}

int32_t
ci_cuda_enter(CiCudaState *state)
{
    int result = !state                       ? RESULT_no_memory
                 : state->why_not[0]          ? RESULT_unusable
                 : state->process != getpid() ? RESULT_forked
                                              : 0;
    if (!state)
        return CI_ERR_MEMORY;
    if (!result)
        result = state->driver.context_push(state->context);
    if (result)
        atomic_store(&state->last_error, result);
    return result ? CI_ERR_DEVICE : CI_OK;
}

int32_t
ci_cuda_leave(CiCudaState *state, int result)
{
    CUcontext ignored;
    (void)state->driver.context_pop(&ignored);
    if (result)
        atomic_store(&state->last_error, result);
    return !result ? CI_OK : result == RESULT_no_memory ? CI_ERR_MEMORY : CI_ERR_DEVICE;
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
    else
        state->driver.error_string(result, &text);
    snprintf(out, capacity, "%s", text ? text : "unknown error");
    return out;
}

/* ---- what there is ---- */

int
ci_cuda_count(const CiQueue *queue)
{
    CiCudaState *state = ci_cuda_state(queue);
    return state && !state->why_not[0] ? state->count : 0;
}

int32_t
ci_cuda_properties(const CiQueue *queue, CiDeviceProperties *out)
{
    CiCudaState *state = ci_cuda_state(queue);
    int32_t status = ci_cuda_enter(state);
    size_t bytes = 0;
    if (status)
        return status;
    *out = (CiDeviceProperties){.capability = state->capability};
    int result = state->driver.device_name(out->name, sizeof out->name, state->device);
    if (!result)
        result = state->driver.device_memory(&bytes, state->device);
    if (!result)
        result = state->driver.device_attribute(&out->units, ATTRIBUTE_units, state->device);
    out->memory = (int64_t)bytes;
    return ci_cuda_leave(state, result);
}

int32_t
ci_cuda_memory_left(const CiQueue *queue, size_t *left, size_t *all)
{
    CiCudaState *state = ci_cuda_state(queue);
    int32_t status = ci_cuda_enter(state);
    return status ? status : ci_cuda_leave(state, state->driver.memory_left(left, all));
}

/* ---- memory ---- */

int32_t
ci_cuda_reserved(const CiQueue *queue, size_t *bytes)
{
    CiCudaState *state = ci_cuda_state(queue);
    int32_t status = ci_cuda_enter(state);
    CUmemoryPool pool;
    uint64_t reserved = 0;
    if (status)
        return status;
    int result = state->driver.pool(&pool, state->device);
    if (!result)
        result = state->driver.pool_state(pool, POOL_reserved, &reserved);
    *bytes = (size_t)reserved;
    return ci_cuda_leave(state, result);
}

int32_t
ci_cuda_keep_memory(const CiQueue *queue, size_t bytes)
{
    CiCudaState *state = ci_cuda_state(queue);
    int32_t status = ci_cuda_enter(state);
    CUmemoryPool pool;
    uint64_t keep = bytes == SIZE_MAX ? KEEP_BYTES : bytes;
    if (status)
        return status;
    int result = state->driver.pool(&pool, state->device);
    if (!result)
        result = state->driver.pool_attribute(pool, POOL_release_threshold, &keep);
    if (!result)
        result = state->driver.pool_trim(pool, (size_t)keep);
    return ci_cuda_leave(state, result);
}

static CUdeviceptr
address(const void *block)
{
    return (CUdeviceptr)(uintptr_t)block;
}

int32_t
ci_cuda_allocate(const CiQueue *queue, size_t size, void **block)
{
    CiCudaState *state = ci_cuda_state(queue);
    CUdeviceptr made = 0;
    int32_t status = ci_cuda_enter(state);
    if (status)
        return status;
    status =
        ci_cuda_leave(state, state->driver.allocate(&made, size < LEAST_BLOCK ? LEAST_BLOCK : size,
                                                    queue->stream));
    *block = (void *)(uintptr_t)made;
    return status;
}

void
ci_cuda_release(const CiQueue *queue, void *block, size_t size)
{
    CiCudaState *state = find_state(queue);
    (void)size;
    if (state && block && !ci_cuda_enter(state))
        (void)ci_cuda_leave(state, state->driver.release(address(block), queue->stream));
}

int32_t
ci_cuda_copy_in(const CiQueue *queue, void *device, const void *host, size_t size)
{
    CiCudaState *state = ci_cuda_state(queue);
    int32_t status = size ? ci_cuda_enter(state) : CI_OK;
    if (status || !size)
        return status;
    if (!queue->stream)
        return ci_cuda_leave(state, state->driver.copy_in(address(device), host, size));
    int result = state->driver.copy_in_on(address(device), host, size, queue->stream);
    return ci_cuda_leave(state, result ? result : state->driver.synchronize(queue->stream));
}

int32_t
ci_cuda_copy_out(const CiQueue *queue, void *host, const void *device, size_t size)
{
    CiCudaState *state = ci_cuda_state(queue);
    int32_t status = size ? ci_cuda_enter(state) : CI_OK;
    if (status || !size)
        return status;
    if (!queue->stream)
        return ci_cuda_leave(state, state->driver.copy_out(host, address(device), size));
    int result = state->driver.copy_out_on(host, address(device), size, queue->stream);
    return ci_cuda_leave(state, result ? result : state->driver.synchronize(queue->stream));
}

int32_t
ci_cuda_synchronize(const CiQueue *queue)
{
    CiCudaState *state = ci_cuda_state(queue);
    int32_t status = ci_cuda_enter(state);
    if (status)
        return status;
    return ci_cuda_leave(state, queue->stream ? state->driver.synchronize(queue->stream)
                                              : state->driver.synchronize_all());
}
