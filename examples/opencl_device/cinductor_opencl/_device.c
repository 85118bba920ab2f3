/* Memory, streams and events. Memory is shared virtual memory, because cinductor computes addresses
 * inside of blocks.
 *
 * The host accesses it by copies only. A stream is a command queue. */
#include "_opencl.h"

#include <stdio.h>
#include <stdlib.h>

static _Thread_local cl_int last_result;

int32_t
status_of(int error)
{
    last_result = error ? error : last_result;
    return error == CL_MEM_OBJECT_ALLOCATION_FAILURE || error == CL_OUT_OF_RESOURCES ||
                   error == CL_OUT_OF_HOST_MEMORY
               ? CI_ERR_MEMORY
           : error ? CI_ERR_DEVICE
                   : CI_OK;
}

static const char *
last_error(const CiQueue *queue, char *out, size_t capacity)
{
    (void)queue;
    snprintf(out, capacity, "OpenCL error %d", (int)last_result);
    return last_result ? out : NULL;
}

static int
count(const CiQueue *queue)
{
    (void)queue;
    return ndevices;
}

static int32_t
properties(const CiQueue *queue, CiDeviceProperties *out)
{
    const Device *device = &devices[queue->index];
    *out = (CiDeviceProperties){.memory = (int64_t)device->memory, .units = (int)device->units};
    snprintf(out->name, sizeof out->name, "%s", device->name);
    return CI_OK;
}

/* ---- memory ---- */

static int32_t
allocate(const CiQueue *queue, size_t size, void **block)
{
    *block = cl.SVMAlloc(devices[queue->index].context, CL_MEM_READ_WRITE, size ? size : 1, 128);
    return *block ? CI_OK : CI_ERR_MEMORY;
}

static void
release(const CiQueue *queue, void *block, size_t size)
{
    (void)size;
    if (block)
        (void)status_of(
            cl.EnqueueSVMFree(queue_of(queue), 1, &block, NULL, NULL, 0, NULL, NULL));
}

static int32_t
copy(const CiQueue *queue, void *to, const void *from, size_t size)
{
    return size ? status_of(cl.EnqueueSVMMemcpy(queue_of(queue), CL_TRUE, to, from, size, 0, NULL,
                                                NULL))
                : CI_OK;
}

/* ---- streams ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

cl_command_queue
queue_of(const CiQueue *queue)
{
    return (queue->stream ? (Stream *)queue->stream : devices[queue->index].streams)->queue;
}

/* New streams follow the device's own in its list. */
int32_t
stream_open(const CiQueue *queue, void **stream)
{
    static const cl_queue_properties timed[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0};
    Device *device = &devices[queue->index];
    cl_int error = CL_OUT_OF_HOST_MEMORY;
    Stream *made = calloc(1, sizeof *made);
    if (made)
        made->queue = cl.CreateCommandQueueWithProperties(device->context, device->id, timed, &error);
    if (error) {
        free(made);
        return status_of(error);
    }
    pthread_mutex_lock(&lock);
    Stream **at = device->streams ? &device->streams->next : &device->streams;
    made->next = *at;
    *stream = *at = made;
    pthread_mutex_unlock(&lock);
    return CI_OK;
}

static void
stream_close(const CiQueue *queue, void *stream)
{
    Stream *closed = stream, **at = &devices[queue->index].streams;
    (void)cl.Finish(closed->queue);
    pthread_mutex_lock(&lock);
    while (*at != closed)
        at = &(*at)->next;
    *at = closed->next;
    pthread_mutex_unlock(&lock);
    (void)cl.ReleaseCommandQueue(closed->queue);
    free(closed);
}

static int32_t
synchronize(const CiQueue *queue)
{
    if (queue->stream)
        return status_of(cl.Finish(queue_of(queue)));
    cl_int error = CL_SUCCESS;
    pthread_mutex_lock(&lock);
    for (Stream *at = devices[queue->index].streams; at && !error; at = at->next)
        error = cl.Finish(at->queue);
    pthread_mutex_unlock(&lock);
    return status_of(error);
}

/* ---- events: the address of a marker of a queue; NULL: not recorded ---- */

static int32_t
event_open(const CiQueue *queue, void **event)
{
    (void)queue;
    *event = calloc(1, sizeof(cl_event));
    return *event ? CI_OK : CI_ERR_MEMORY;
}

/* Puts a marker in place of the event's. Returns what was there; with marker NULL and `keeps`, a new
 * reference to it. */
static cl_event
exchange(cl_event *event, cl_event marker, bool keeps)
{
    pthread_mutex_lock(&lock);
    cl_event before = *event;
    if (keeps && before)
        (void)cl.RetainEvent(before);
    else
        *event = marker;
    pthread_mutex_unlock(&lock);
    return before;
}

static void
event_close(const CiQueue *queue, void *event)
{
    cl_event marker = exchange(event, NULL, false);
    (void)queue;
    if (marker)
        (void)cl.ReleaseEvent(marker);
    free(event);
}

/* Other queues wait for the marker, so this queue must have begun. */
static int32_t
event_record(const CiQueue *queue, void *event)
{
    cl_event marker = NULL;
    cl_int error = cl.EnqueueMarkerWithWaitList(queue_of(queue), 0, NULL, &marker);
    if (!error && (marker = exchange(event, marker, false)))
        (void)cl.ReleaseEvent(marker);
    return status_of(error ? error : cl.Flush(queue_of(queue)));
}

/* Makes a queue wait, or with NULL the host. */
static int32_t
wait_for(cl_command_queue queue, void *event)
{
    cl_event marker = exchange(event, NULL, true);
    if (!marker)
        return CI_OK;
    cl_int error = queue ? cl.EnqueueBarrierWithWaitList(queue, 1, &marker, NULL)
                         : cl.WaitForEvents(1, &marker);
    (void)cl.ReleaseEvent(marker);
    return status_of(error);
}

static int32_t
event_wait(const CiQueue *queue, void *event)
{
    return wait_for(queue_of(queue), event);
}

static int32_t
event_synchronize(const CiQueue *queue, void *event)
{
    (void)queue;
    return wait_for(NULL, event);
}

static int32_t
event_elapsed(const CiQueue *queue, void *first, void *second, double *ms)
{
    cl_ulong times[2] = {0, 0};
    void *events[2] = {first, second};
    cl_int error = CL_SUCCESS;
    (void)queue;
    for (int k = 0; k < 2 && !error; k++)
        error = cl.GetEventProfilingInfo(*(cl_event *)events[k], CL_PROFILING_COMMAND_END,
                                         sizeof *times, &times[k], NULL);
    *ms = ((double)times[1] - (double)times[0]) * 1e-6;
    return status_of(error);
}

const CiDevice opencl_device = {.abi = CI_DEVICE_ABI,
                                .name = "opencl",
                                .doc = "devices of OpenCL, through the ICD loader",
                                .count = count,
                                .properties = properties,
                                .allocate = allocate,
                                .release = release,
                                .copy_in = copy,
                                .copy_out = copy,
                                .synchronize = synchronize,
                                .stream_open = stream_open,
                                .stream_close = stream_close,
                                .event_open = event_open,
                                .event_close = event_close,
                                .event_record = event_record,
                                .event_wait = event_wait,
                                .event_synchronize = event_synchronize,
                                .event_elapsed = event_elapsed,
                                .last_error = last_error};
