/* Finds devices by name, and reports their errors. */
#include "state/device_array.h"

/* The failed request and the memory available; NULL if the device has not refused one. */
static const char *
describe_memory(const CiQueue *queue, char *text, size_t capacity)
{
    const CiDevice *device = queue->backend->device;
    CiMemoryUse use;
    size_t left = 0, all = 0;

    ci_memory_use(queue, &use);
    if (use.refused == 0)
        return NULL;
    int length = snprintf(text, capacity,
                          "%s:%d has no %lld bytes: %lld are allocated in %lld blocks",
                          device->name, queue->index, (long long)use.refused,
                          (long long)use.allocated, (long long)use.blocks);
    if (use.limit > 0)
        length += snprintf(text + length, capacity - (size_t)length, ", the limit is %lld",
                           (long long)use.limit);
    if (device->memory_left != NULL && device->memory_left(queue, &left, &all) == CI_OK)
        snprintf(text + length, capacity - (size_t)length, ", %zu of %zu are left", left, all);
    return text;
}

int
cx_raise_device(CxState *state, const CiQueue *queue, int32_t status)
{
    const CiDevice *device = queue->backend->device;
    char text[512];
    const char *why = NULL;

    if (status == CI_ERR_DEVICE && device->last_error != NULL)
        why = device->last_error(queue, text, sizeof text);
    if (status == CI_ERR_MEMORY && device->allocate != NULL)
        why = describe_memory(queue, text, sizeof text);
    return cx_raise_status(state, (CiStatus)status, why);
}

CiQueue
cx_queue(CxState *state, const CiOptions *options, const CiBackend *backend)
{
    int index = cx_has_devices(options) ? 0 : (int)options->device_index;
    return (CiQueue){.backend = backend, .runtime = &state->runtime, .index = index};
}

int
cx_find_device(CxState *state, const char *text, CiQueue *queue)
{
    char name[64];
    const char *colon = strchr(text, ':');
    size_t length = colon != NULL ? (size_t)(colon - text) : strlen(text);
    snprintf(name, sizeof name, "%.*s", (int)length, text);
    const CiBackend *backend = ci_backend_find(state->runtime.registry, name, NULL);

    if (backend == NULL) {
        PyErr_Format(PyExc_ValueError, "there is no device '%s'; cinductor.devices() lists those of this machine", name);
        return -1;
    }
    *queue = (CiQueue){.backend = backend,
                       .runtime = &state->runtime,
                       .index = colon != NULL ? atoi(colon + 1) : 0};
    return 0;
}

int
cx_find_memory(CxState *state, const char *text, CiQueue *queue)
{
    if (text == NULL || cx_find_device(state, text, queue) < 0)
        return -1;
    if (ci_backend_has_memory(queue->backend))
        return 0;
    PyErr_Format(PyExc_ValueError, "device '%s' has no memory of its own", text);
    return -1;
}
