/* Devices: memory, streams and events, and how they are found. Memory is shared virtual memory, because cinductor computes addresses
 * inside of blocks. The host accesses it by copies only. A stream is a command queue. */
#include "_opencl.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const CiToolkit *kit;
OpenCL cl;
Device devices[MAX_DEVICES], every;
static int ndevices;

#define ASK(id, what, out) (void)cl.GetDeviceInfo(id, what, sizeof(out), &(out), NULL)

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
    ASK(device->id, CL_DEVICE_NAME, out->name);
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
        (void)status_of(cl.EnqueueSVMFree(queue_of(queue), 1, &block, NULL, NULL, 0, NULL, NULL));
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
static int32_t
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

static const CiDevice opencl_device = {.abi = CI_DEVICE_ABI,
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

/* ---- the loader and its devices ---- */

static bool
open_loader(void)
{
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL), *symbol;
#define CL(name)                                                                                   \
    if (!library || !(symbol = dlsym(library, "cl" #name)))                                        \
        return false;                                                                              \
    memcpy(&cl.name, &symbol, sizeof symbol);
    CL_TABLE
#undef CL
    return true;
}

/* NULL, or what results with NumPy's bits and addresses inside of blocks need and the device lacks. */
static const char *
why_not(cl_device_id id)
{
    char profile[32] = "";
    cl_device_fp_config f32 = 0, needed = CL_FP_DENORM | CL_FP_INF_NAN | CL_FP_ROUND_TO_NEAREST |
                                          CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT;
    cl_device_svm_capabilities memory = 0;
    ASK(id, CL_DEVICE_PROFILE, profile);
    ASK(id, CL_DEVICE_SINGLE_FP_CONFIG, f32);
    ASK(id, CL_DEVICE_SVM_CAPABILITIES, memory);
    return strcmp(profile, "FULL_PROFILE")                 ? "no full profile"
           : !(memory & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER) ? "no shared virtual memory"
           : (f32 & needed) != needed                      ? "f32 that is not rounded as in IEEE 754"
                                                           : NULL;
}

#define LESS(field) every.field = device->field < every.field ? device->field : every.field

/* The next device; false if no context or queue can be made. */
static bool
open_device(cl_device_id id)
{
    Device *device = &devices[ndevices];
    void *own;
    char driver[128] = "", name[128] = "", extensions[8192] = "";
    cl_int error;
    *device = (Device){.id = id};
    ASK(id, CL_DEVICE_NAME, name);
    ASK(id, CL_DRIVER_VERSION, driver);
    ASK(id, CL_DEVICE_EXTENSIONS, extensions);
    ASK(id, CL_DEVICE_GLOBAL_MEM_SIZE, device->memory);
    ASK(id, CL_DEVICE_LOCAL_MEM_SIZE, device->local_bytes);
    ASK(id, CL_DEVICE_MAX_WORK_GROUP_SIZE, device->group);
    ASK(id, CL_DEVICE_MAX_PARAMETER_SIZE, device->parameter_bytes);
    ASK(id, CL_DEVICE_MAX_COMPUTE_UNITS, device->units);
    snprintf(device->about, sizeof device->about, "%s, driver %s", name, driver);
    device->has_f64 = strstr(extensions, "cl_khr_fp64") != NULL;
    device->has_atomic64 = strstr(extensions, "cl_khr_int64_base_atomics") &&
                           strstr(extensions, "cl_khr_int64_extended_atomics");
    device->context = cl.CreateContext(NULL, 1, &id, NULL, NULL, &error);
    if (error || stream_open(&(CiQueue){.index = ndevices}, &own))
        return false;
    if (ndevices++ == 0)
        every = *device;
    LESS(has_f64);
    LESS(has_atomic64);
    LESS(local_bytes);
    LESS(parameter_bytes);
    LESS(group);
    return true;
}

/* Opens the devices of a platform. The reasons for those that are not used are added to `why`. */
static void
open_platform(cl_platform_id platform, char *why, size_t capacity)
{
    cl_device_id found[MAX_DEVICES];
    cl_uint count = 0;
    if (cl.GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, MAX_DEVICES, found, &count))
        return;
    for (cl_uint k = 0; k < count && k < MAX_DEVICES && ndevices < MAX_DEVICES; k++) {
        const char *reason = why_not(found[k]);
        size_t length = strlen(why);
        if (reason || !open_device(found[k]))
            snprintf(why + length, capacity - length, "; a device has %s",
                     reason ? reason : "no context");
    }
}

const char *
cinductor_connect(const CiToolkit *toolkit, const CiDevice **device, const CiCompiler **own)
{
    static char why[1024] = "no device of OpenCL that cinductor can use";
    cl_platform_id platforms[MAX_DEVICES];
    static CiCompiler compiler;
    cl_uint found = 0;
    kit = toolkit;
    if (kit->abi != CI_DEVICE_ABI)
        return "built for another version of cinductor";
    if (!open_loader())
        return "no OpenCL 2.0: libOpenCL.so.1 is not found or too old";
    if (cl.GetPlatformIDs(MAX_DEVICES, platforms, &found))
        found = 0;
    for (cl_uint k = 0; k < found && k < MAX_DEVICES; k++)
        open_platform(platforms[k], why, sizeof why);
    if (!ndevices)
        return why;
    adapt_dialect();
    compiler = kit->gpu_compiler(&opencl_vendor);
    *device = &opencl_device;
    *own = &compiler;
    return NULL;
}
