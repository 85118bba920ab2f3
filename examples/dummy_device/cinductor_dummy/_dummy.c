/* A device for cinductor that needs no hardware: two devices whose memory comes from malloc, with threads as
 * streams. A stream executes its tasks in order. Kernels are those of cinductor's own C compiler: they run
 * on the addresses that `allocate` returns.
 *
 * Additions for the tests of cinductor are in _testing.c; here only `dummy_enter` belongs to them, which
 * each function calls first.
 *
 * Its memory is in _memory.c, its streams are in _streams.c, its collectives in _groups.c.
 *
 * cinductor sees only the struct at the end. */
#define _GNU_SOURCE
#include "_card.h"

/* ---- calls ---- */

pthread_mutex_t dummy_lock = PTHREAD_MUTEX_INITIALIZER;
static char error[128];              /* of the last call that failed */
static _Thread_local bool is_taking; /* this thread records */

/* True for calls that are allowed while a thread records: launches, and the end of the
 * recording. */
static bool
may_be_recorded(Call call)
{
    return call == CALL_launch || call == CALL_record_end;
}

/* Returns the status of a call that is set to fail or cannot be recorded; else 0. */
int32_t
dummy_enter(Call call)
{
    bool is_refused = is_taking && !may_be_recorded(call);
    int32_t status = testing_call(call);
    pthread_mutex_lock(&dummy_lock);
    if (is_refused)
        snprintf(error, sizeof error, "%s while the thread records", testing_name(call));
    else if (status)
        snprintf(error, sizeof error, "the dummy was told to fail in %s", testing_name(call));
    pthread_mutex_unlock(&dummy_lock);
    return is_refused ? CI_ERR_DEVICE : status;
}

int32_t
dummy_refuse(const char *why)
{
    pthread_mutex_lock(&dummy_lock);
    snprintf(error, sizeof error, "%s", why);
    pthread_mutex_unlock(&dummy_lock);
    return CI_ERR_DEVICE;
}

/* Like dummy_enter; also fails if there is no such device. */
int32_t
dummy_enter_card(Call call, const CiQueue *queue)
{
    int32_t status = dummy_enter(call);
    if (status || (queue->index >= 0 && queue->index < CARDS))
        return status;
    snprintf(error, sizeof error, "there are %d dummy devices", CARDS);
    return CI_ERR_DEVICE;
}

/* ---- the device's functions ---- */

static int
count(const CiQueue *queue)
{
    (void)queue;
    return CARDS;
}

static int32_t
properties(const CiQueue *queue, CiDeviceProperties *out)
{
    *out = (CiDeviceProperties){.memory = (int64_t)1 << 30, .units = 1};
    memset(out->identity, 0xd0 + queue->index, sizeof out->identity);
    snprintf(out->name, sizeof out->name, "Dummy device %d", queue->index);
    return CI_OK;
}

static void
release(const CiQueue *queue, void *block, size_t size)
{
    (void)size;
    (void)dummy_enter(CALL_release);
    (void)dummy_give(queue, &(Task){.kind = KIND_free, .to = block}, false);
}

static int32_t
copy(const CiQueue *queue, int call, const Task *task, const void *device)
{
    int32_t status = dummy_enter(call);
    if (!status && task->size && dummy_card_of(device) != queue->index) {
        status = dummy_refuse("a copy with memory of another device");
    }
    return status || !task->size ? status : dummy_give(queue, task, true);
}

static int32_t
copy_in(const CiQueue *queue, void *device, const void *host, size_t size)
{
    Task task = {.kind = KIND_copy, .to = device, .from = host, .size = size};
    return copy(queue, CALL_copy_in, &task, device);
}

static int32_t
copy_out(const CiQueue *queue, void *host, const void *device, size_t size)
{
    Task task = {.kind = KIND_copy, .to = host, .from = device, .size = size};
    return copy(queue, CALL_copy_out, &task, device);
}

/* A copy that a stream executes later, in memory of these devices. */
static int32_t
copy_later(const CiQueue *queue, int call, const Task *task, const void *here, int card)
{
    int32_t status = dummy_enter(call);
    if (!status && task->size && dummy_card_of(here) != card) {
        status = dummy_refuse("a copy with memory of another device");
    }
    return status || !task->size ? status : dummy_give(queue, task, false);
}

static int32_t
copy_out_start(const CiQueue *queue, void *host, const void *device, size_t size)
{
    Task task = {.kind = KIND_copy, .to = host, .from = device, .size = size};
    return copy_later(queue, CALL_copy_out_start, &task, device, queue->index);
}

static int32_t
copy_across(const CiQueue *from, const CiQueue *to, void *there, const void *here, size_t size)
{
    Task task = {.kind = KIND_copy, .to = there, .from = here, .size = size};
    if (size && dummy_card_of(there) != to->index)
        return copy_later(to, CALL_copy_across, &task, there, to->index);
    return copy_later(to, CALL_copy_across, &task, here, from->index);
}

static int32_t
finish(Stream *stream)
{
    dummy_wait_for(stream, stream->given);
    return dummy_finish(stream);
}

static int32_t
synchronize(const CiQueue *queue)
{
    int32_t status = dummy_enter_card(CALL_synchronize, queue);
    if (status)
        return status;
    if (queue->stream)
        return finish(queue->stream);
    for (Stream *s = dummy_streams[queue->index]; s && !status; s = s->next)
        status = finish(s);
    return status;
}

static int32_t
stream_open(const CiQueue *queue, void **stream)
{
    int32_t status = dummy_enter_card(CALL_stream_open, queue);
    *stream = status ? NULL : dummy_new_stream(queue->index);
    dummy_count_handle(*stream != NULL);
    return status ? status : *stream ? CI_OK : CI_ERR_MEMORY;
}

static void
stream_close(const CiQueue *queue, void *stream)
{
    dummy_close_stream(queue, stream);
    dummy_count_handle(-1);
}

static int32_t
event_open(const CiQueue *queue, void **event)
{
    int32_t status = dummy_enter_card(CALL_event_open, queue);
    *event = status ? NULL : calloc(1, sizeof(Event));
    dummy_count_handle(*event != NULL);
    return status ? status : *event ? (dummy_count_event(*event, 1), CI_OK) : CI_ERR_MEMORY;
}

static void
event_close(const CiQueue *queue, void *event)
{
    (void)queue;
    dummy_count_event(event, -1);
}

static int32_t
event_record(const CiQueue *queue, void *what)
{
    Event *event = what;
    int32_t status = dummy_enter(CALL_event_record);
    if (status)
        return status;
    pthread_mutex_lock(&dummy_lock);
    long record = ++event->recorded;
    pthread_mutex_unlock(&dummy_lock);
    return dummy_give(queue, &(Task){.kind = KIND_record, .event = event, .number = record}, false);
}

static int32_t
event_wait(const CiQueue *queue, void *what)
{
    Event *event = what;
    int32_t status = dummy_enter(CALL_event_wait);
    Task task = {.kind = KIND_wait, .event = event, .number = event->recorded};
    return status ? status : dummy_give(queue, &task, false);
}

static int32_t
event_synchronize(const CiQueue *queue, void *what)
{
    Event *event = what;
    int32_t status = dummy_enter(CALL_event_synchronize);
    (void)queue;
    pthread_mutex_lock(&dummy_lock);
    while (!status && event->done < event->recorded)
        pthread_cond_wait(&dummy_changed, &dummy_lock);
    status = status ? status : event->status;
    pthread_mutex_unlock(&dummy_lock);
    return status;
}

/* Copies the launch's arrays, because they may be freed before it runs. */
static void
copy_arrays(Task *task, const CiLaunch *launch)
{
    char *at = (char *)(task + 1);
    size_t bytes = sizeof(void *) * (size_t)launch->nbuffers;
    task->launch.buffers = memcpy(at, launch->buffers, bytes);
    at += bytes;
    bytes = sizeof(int64_t) * (size_t)launch->nsizes;
    task->launch.sizes = bytes ? memcpy(at, launch->sizes, bytes) : at;
    at += bytes;
    bytes = sizeof(CiSlot) * (size_t)launch->nscalars;
    task->launch.scalars = bytes ? memcpy(at, launch->scalars, bytes) : (void *)at;
}

/* ---- recordings ---- */

/* Launches are then given the recording as their stream. */
static int32_t
record_begin(const CiQueue *queue, void **stream)
{
    int32_t status = dummy_enter_card(CALL_record_begin, queue);
    Recording *recording = status ? NULL : calloc(1, sizeof *recording);
    if (!recording)
        return status ? status : CI_ERR_MEMORY;
    *recording = (Recording){.card = queue->index, .holders = 1};
    testing_lives(LIVE_recordings, 1);
    is_taking = true;
    *stream = recording;
    return CI_OK;
}

static void
take_down(Recording *recording, Task *task)
{
    if (recording->last)
        recording->last->next = task;
    else
        recording->first = task;
    recording->last = task;
}

static int32_t
record_end(const CiQueue *queue, void *stream, void **recording)
{
    int32_t status = dummy_enter(CALL_record_end);
    (void)queue;
    is_taking = false;
    *recording = status ? NULL : stream;
    if (status)
        dummy_count_recording(stream, -1);
    return status;
}

static int32_t
replay(const CiQueue *queue, void *recording)
{
    int32_t status = dummy_enter_card(CALL_replay, queue);
    if (!status && ((Recording *)recording)->card != queue->index) {
        status = dummy_refuse("a recording of another device");
    }
    return status ? status
                  : dummy_give(queue, &(Task){.kind = KIND_replay, .recording = recording}, false);
}

static void
record_close(const CiQueue *queue, void *recording)
{
    (void)queue;
    dummy_count_recording(recording, -1);
}

static int32_t
launch(const CiQueue *queue, CiExecutable *executable, const CiLaunch *asked, CiFault *fault)
{
    int32_t status = dummy_enter(CALL_launch), answer = CI_OK;
    CiQueue on = {queue->backend, queue->runtime, queue->index, asked->stream};
    Stream *stream = is_taking ? NULL : dummy_stream_of(&on);
    for (int k = 0; k < asked->nbuffers && !status; k++)
        if (dummy_card_of(asked->buffers[k]) != queue->index) {
            status = dummy_refuse("a kernel with memory of another device");
        }
    if (status)
        return status;
    size_t more = sizeof(void *) * (size_t)asked->nbuffers +
                  sizeof(int64_t) * (size_t)asked->nsizes +
                  sizeof(CiSlot) * (size_t)(asked->nscalars + 1);
    Task what = {.kind = KIND_launch, .executable = executable, .launch = *asked};
    if (asked->may_fail) {
        what.status = &answer;
        what.fault = fault;
    }
    if (is_taking && asked->may_fail) {
        return dummy_refuse("a kernel with checks, while the thread records");
    }
    Task *task = stream || is_taking ? dummy_new_task(&what, more) : NULL;
    if (!task)
        return CI_ERR_MEMORY;
    copy_arrays(task, asked);
    if (is_taking) {
        take_down(asked->stream, task);
        return CI_OK;
    }
    long number = dummy_append(stream, task);
    if (asked->may_fail)
        dummy_wait_for(stream, number);
    return answer;
}

static const char *
last_error(const CiQueue *queue, char *out, size_t capacity)
{
    (void)queue;
    snprintf(out, capacity, "%s", error);
    return *error ? out : NULL;
}

static const CiDevice device = {
    .abi = CI_DEVICE_ABI,
    .name = "dummy",
    .doc = "two devices in memory of the host, each stream a thread",
    .count = count,
    .properties = properties,
    .allocate = dummy_allocate,
    .release = release,
    .copy_in = copy_in,
    .copy_out = copy_out,
    .host_allocate = dummy_host_allocate,
    .host_release = dummy_host_release,
    .copy_out_start = copy_out_start,
    .copy_across = copy_across,
    .synchronize = synchronize,
    .share_allocate = dummy_share_allocate,
    .share_release = dummy_share_release,
    .share_name = dummy_share_name,
    .share_open = dummy_share_open,
    .share_close = dummy_share_release,
    .stream_open = stream_open,
    .stream_close = stream_close,
    .event_open = event_open,
    .event_close = event_close,
    .event_record = event_record,
    .event_wait = event_wait,
    .event_synchronize = event_synchronize,
    .record_begin = record_begin,
    .record_end = record_end,
    .replay = replay,
    .record_close = record_close,
    .launch = launch,
    .group_name = dummy_group_name,
    .group_open = dummy_group_open,
    .group_close = dummy_group_close,
    .group_start = dummy_group_start,
    .group_join = dummy_group_join,
    .last_error = last_error,
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_dummy", "The dummy device.", -1, testing_methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC
PyInit__dummy(void)
{
    PyObject *module = PyModule_Create(&definition);
    PyObject *capsule = PyCapsule_New((void *)(uintptr_t)&device, "cinductor.CiDevice", NULL);
    if (!module || !capsule || PyModule_AddObjectRef(module, "DEVICE", capsule) < 0)
        Py_CLEAR(module);
    Py_XDECREF(capsule);
    return module;
}
