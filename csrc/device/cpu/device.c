/* The CPU as a device: its memory is the host's, and nothing runs asynchronously. So streams have
 * nothing to do, and an event is the time at which it was recorded. */
#include "device/device.h"

#include "base/os.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Linux says so; elsewhere there is none. */
static void
find_name(char *out, size_t capacity)
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[256];
    out[0] = '\0';
    while (file && !out[0] && fgets(line, sizeof line, file)) {
        char *value = strstr(line, ": ");
        if (value && !strncmp(line, "model name", 10))
            snprintf(out, capacity, "%.*s", (int)strcspn(value + 2, "\n"), value + 2);
    }
    if (file)
        fclose(file);
}

static int32_t
properties(const CiQueue *queue, CiDeviceProperties *out)
{
    long units = sysconf(_SC_NPROCESSORS_ONLN), pages = sysconf(_SC_PHYS_PAGES),
         page = sysconf(_SC_PAGESIZE);
    (void)queue;
    *out = (CiDeviceProperties){.units = (int)units, .memory = (int64_t)pages * page};
    find_name(out->name, sizeof out->name);
    return CI_OK;
}

static int32_t
synchronize(const CiQueue *queue)
{
    (void)queue;
    return CI_OK;
}

static int32_t
stream_open(const CiQueue *queue, void **stream)
{
    (void)queue;
    *stream = NULL;
    return CI_OK;
}

static void
stream_close(const CiQueue *queue, void *stream)
{
    (void)queue, (void)stream;
}

static int32_t
event_open(const CiQueue *queue, void **event)
{
    (void)queue;
    *event = calloc(1, sizeof(int64_t));
    return *event ? CI_OK : CI_ERR_MEMORY;
}

static void
event_close(const CiQueue *queue, void *event)
{
    (void)queue;
    free(event);
}

static int32_t
event_record(const CiQueue *queue, void *event)
{
    (void)queue;
    *(int64_t *)event = ci_os_time_ns();
    return CI_OK;
}

static int32_t
event_wait(const CiQueue *queue, void *event)
{
    (void)queue, (void)event;
    return CI_OK;
}

static int32_t
event_elapsed(const CiQueue *queue, void *first, void *second, double *ms)
{
    (void)queue;
    *ms = (double)(*(int64_t *)second - *(int64_t *)first) / 1e6;
    return CI_OK;
}


extern const CiDevice ci_device_cpu;

const CiDevice ci_device_cpu = {
    .abi = CI_DEVICE_ABI,
    .name = "cpu",
    .doc = "the processor and its memory",
    .dlpack = 1,
    .properties = properties,
    .synchronize = synchronize,
    .stream_open = stream_open,
    .stream_close = stream_close,
    .event_open = event_open,
    .event_close = event_close,
    .event_record = event_record,
    .event_wait = event_wait,
    .event_synchronize = event_wait,
    .event_elapsed = event_elapsed,
};

const CiDevice *
ci_host_device(void)
{
    return &ci_device_cpu;
}
