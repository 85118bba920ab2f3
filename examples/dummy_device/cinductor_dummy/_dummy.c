/* A device for cinductor that needs no hardware: two cards whose memory is malloc's, with streams
 * that are threads. What a stream is given is done in order. Kernels are those of cinductor's own C
 * compiler: they run on the addresses that `allocate` gives. What tests of cinductor want of it besides
 * stands in _testing.c: `enter`, which each function calls first, is all there is to it here.
 *
 * Memory that other processes open is a file without a name, which they reach through /proc while the
 * process that made it lives.
 *
 * The struct at the end is all that cinductor sees. */
#define _GNU_SOURCE
#include "_testing.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CARDS 2

/* ---- calls ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char error[128];              /* of the last call that failed */
static _Thread_local bool is_taking; /* this thread records */

/* What may be called while a thread records: launches, and its end. */
static bool
may_be_recorded(Call call)
{
    return call == CALL_launch || call == CALL_record_end;
}

/* What a call answers that is told to fail, or cannot be recorded. */
static int32_t
enter(Call call)
{
    bool is_refused = is_taking && !may_be_recorded(call);
    int32_t status = testing_call(call);
    pthread_mutex_lock(&lock);
    if (is_refused)
        snprintf(error, sizeof error, "%s while the thread records", testing_name(call));
    else if (status)
        snprintf(error, sizeof error, "the dummy was told to fail in %s", testing_name(call));
    pthread_mutex_unlock(&lock);
    return is_refused ? CI_ERR_DEVICE : status;
}

/* ---- memory: a list of blocks, each a card's ---- */

typedef struct Block Block;
struct Block {
    Block *next;
    char *at;
    size_t size;
    int card;
    bool is_mapped; /* of a file */
    int file;       /* that was made for it; 0: none, or another process's */
};

static Block *blocks;

/* The card whose memory it is; -1: nobody's. */
static int
card_of(const void *address)
{
    int card = -1;
    pthread_mutex_lock(&lock);
    for (Block *b = blocks; b && card < 0; b = b->next)
        if ((const char *)address >= b->at && (const char *)address <= b->at + b->size)
            card = b->card;
    pthread_mutex_unlock(&lock);
    return card;
}

static void
free_block(void *address)
{
    pthread_mutex_lock(&lock);
    for (Block **b = &blocks; *b; b = &(*b)->next)
        if ((*b)->at == address) {
            Block *found = *b;
            *b = found->next;
            if (found->is_mapped)
                munmap(found->at, found->size);
            else
                memset(found->at, 0xd7, found->size); /* whoever reads it later gets nonsense */
            if (found->file)
                close(found->file);
            if (!found->is_mapped)
                free(found->at);
            free(found);
            testing_lives(LIVE_blocks, -1);
            break;
        }
    pthread_mutex_unlock(&lock);
}

/* ---- streams: a thread and what it has yet to do ---- */

typedef struct Event {
    long recorded, done; /* by how many records */
    int holders;         /* whoever opened it, and tasks */
} Event;

typedef enum Kind {
    KIND_copy,
    KIND_free,
    KIND_launch,
    KIND_replay,
    KIND_record,
    KIND_wait,
    KIND_end
} Kind;

typedef struct Task Task;

/* Launches that were taken down. */
typedef struct Recording {
    Task *first, *last;
    int card, holders; /* whoever has it, and tasks */
} Recording;

struct Task {
    Task *next;
    Kind kind;
    void *to;
    const void *from;
    size_t size;
    Event *event;
    Recording *recording;
    long number;
    CiExecutable *executable;
    CiLaunch launch;
    int32_t *status; /* of a launch that somebody waits for */
    CiFault *fault;
};

typedef struct Stream Stream;
struct Stream {
    pthread_t thread;
    Task *first, *last;
    long given, done;
    int32_t status; /* of a launch that nobody waited for */
    Stream *next;   /* of the same card */
};

static pthread_cond_t changed = PTHREAD_COND_INITIALIZER; /* anything did */
static Stream *own[CARDS], *all[CARDS];

static void
count_handle(int by)
{
    pthread_mutex_lock(&lock);
    testing_lives(LIVE_handles, by);
    pthread_mutex_unlock(&lock);
}

/* One holder more or less; behind the last one it is gone. */
static Event *
hold(Event *event, int by)
{
    pthread_mutex_lock(&lock);
    event->holders += by;
    bool is_last = event->holders == 0;
    testing_lives(LIVE_handles, -(int)is_last);
    pthread_mutex_unlock(&lock);
    if (is_last)
        free(event);
    return event;
}

/* The same of a recording. */
static void
hold_recording(Recording *recording, int by)
{
    pthread_mutex_lock(&lock);
    recording->holders += by;
    bool is_last = recording->holders == 0;
    testing_lives(LIVE_recordings, -(int)is_last);
    pthread_mutex_unlock(&lock);
    if (!is_last)
        return;
    for (Task *next, *task = recording->first; task; task = next) {
        next = task->next;
        free(task);
    }
    free(recording);
}

static int32_t
run_recording(const Recording *recording)
{
    int32_t status = CI_OK;
    CiFault fault = {0};
    for (Task *task = recording->first; task && !status; task = task->next)
        status = task->executable->launch(task->executable, &task->launch, &fault);
    return status;
}

static void
run_task(Stream *stream, Task *task)
{
    CiFault fault = {0};
    int32_t status = CI_OK;
    switch (task->kind) {
    case KIND_copy:
        memcpy(task->to, task->from, task->size);
        break;
    case KIND_free:
        free_block(task->to);
        break;
    case KIND_launch:
        status = task->executable->launch(task->executable, &task->launch, &fault);
        break;
    case KIND_replay:
        status = run_recording(task->recording);
        break;
    case KIND_wait:
        pthread_mutex_lock(&lock);
        while (task->event->done < task->number)
            pthread_cond_wait(&changed, &lock);
        pthread_mutex_unlock(&lock);
        break;
    default:
        break;
    }
    pthread_mutex_lock(&lock);
    if (task->kind == KIND_record)
        task->event->done = task->number;
    if (task->status) {
        *task->status = status;
        *task->fault = fault;
    } else if (status) {
        stream->status = status;
    }
    pthread_mutex_unlock(&lock);
}

static void *
run_stream(void *arg)
{
    Stream *stream = arg;
    for (bool is_over = false; !is_over;) {
        pthread_mutex_lock(&lock);
        while (!stream->first)
            pthread_cond_wait(&changed, &lock);
        Task *task = stream->first;
        int us = testing_delay();
        pthread_mutex_unlock(&lock);
        if (us)
            nanosleep(&(struct timespec){us / 1000000, us % 1000000 * 1000L}, NULL);
        run_task(stream, task);
        is_over = task->kind == KIND_end;
        pthread_mutex_lock(&lock);
        stream->first = task->next;
        if (!stream->first)
            stream->last = NULL;
        stream->done++;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
        if (task->event)
            hold(task->event, -1);
        if (task->recording)
            hold_recording(task->recording, -1);
        free(task);
    }
    return NULL;
}

static Stream *
new_stream(int card)
{
    Stream *stream = calloc(1, sizeof *stream);
    if (!stream || pthread_create(&stream->thread, NULL, run_stream, stream)) {
        free(stream);
        return NULL;
    }
    pthread_mutex_lock(&lock);
    stream->next = all[card];
    all[card] = stream;
    pthread_mutex_unlock(&lock);
    return stream;
}

/* That of the queue, or the card's own. */
static Stream *
stream_of(const CiQueue *queue)
{
    static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
    if (queue->stream)
        return queue->stream;
    pthread_mutex_lock(&making);
    if (!own[queue->index])
        own[queue->index] = new_stream(queue->index);
    pthread_mutex_unlock(&making);
    return own[queue->index];
}

static void
wait_for(Stream *stream, long number)
{
    pthread_mutex_lock(&lock);
    while (stream->done < number)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

/* Puts a task behind what the stream has; its number. */
static long
append(Stream *stream, Task *task)
{
    pthread_mutex_lock(&lock);
    if (stream->last)
        stream->last->next = task;
    else
        stream->first = task;
    stream->last = task;
    long number = ++stream->given;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return number;
}

/* A copy of the task, with `more` bytes behind it; NULL without memory. */
static Task *
new_task(const Task *what, size_t more)
{
    Task *task = malloc(sizeof *task + more);
    if (!task)
        return NULL;
    *task = *what;
    if (task->event)
        hold(task->event, 1);
    if (task->recording)
        hold_recording(task->recording, 1);
    return task;
}

/* Gives the queue's stream a copy of the task; waits: until it is done. */
static int32_t
give(const CiQueue *queue, const Task *what, bool waits)
{
    Stream *stream = stream_of(queue);
    Task *task = stream ? new_task(what, 0) : NULL;
    if (!task)
        return CI_ERR_MEMORY;
    long number = append(stream, task);
    if (waits)
        wait_for(stream, number);
    return CI_OK;
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
    snprintf(out->name, sizeof out->name, "Dummy card %d", queue->index);
    return CI_OK;
}

/* What the call answers if it is told to fail, or the card is none. */
static int32_t
enter_card(Call call, const CiQueue *queue)
{
    int32_t status = enter(call);
    if (status || (queue->index >= 0 && queue->index < CARDS))
        return status;
    snprintf(error, sizeof error, "there are %d dummy cards", CARDS);
    return CI_ERR_DEVICE;
}

static void
add_block(Block *block)
{
    pthread_mutex_lock(&lock);
    block->next = blocks;
    blocks = block;
    testing_lives(LIVE_blocks, 1);
    pthread_mutex_unlock(&lock);
}

static int32_t
allocate(const CiQueue *queue, size_t size, void **out)
{
    int32_t status = enter_card(CALL_allocate, queue);
    if (status)
        return status;
    Block *block = calloc(1, sizeof *block);
    char *at = aligned_alloc(64, (size + 127) / 64 * 64);
    if (!block || !at) {
        free(block);
        free(at);
        return CI_ERR_MEMORY;
    }
    memset(at, 0xd7, size);
    *block = (Block){.at = at, .size = size, .card = queue->index};
    add_block(block);
    *out = at;
    return CI_OK;
}

/* A block over the file, which is the block's where it `is_made` here and else closed. */
static int32_t
map_file(const CiQueue *queue, int file, size_t size, bool is_made, void **out)
{
    Block *block = calloc(1, sizeof *block);
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (!block || at == MAP_FAILED || !is_made)
        close(file);
    if (block && at != MAP_FAILED) {
        *block = (Block){NULL, at, size, queue->index, true, is_made ? file : 0};
        add_block(block);
        *out = at;
        return CI_OK;
    }
    free(block);
    return CI_ERR_MEMORY;
}

static int32_t
share_allocate(const CiQueue *queue, size_t size, void **out)
{
    int32_t status = enter_card(CALL_share_allocate, queue);
    int file = status ? -1 : memfd_create("cinductor_dummy", MFD_CLOEXEC);
    size = size ? size : 1;
    if (file < 0)
        return status ? status : CI_ERR_MEMORY;
    if (ftruncate(file, (off_t)size)) {
        close(file);
        return CI_ERR_MEMORY;
    }
    return map_file(queue, file, size, true, out);
}

static void
share_release(const CiQueue *queue, void *block)
{
    (void)queue;
    free_block(block);
}

/* Where the file is to be found, and which one it is: the number may be another file's by then. */
static int32_t
share_name(const CiQueue *queue, const void *block, CiShareName *name)
{
    int32_t status = enter(CALL_share_name);
    struct stat is;
    int file = 0;
    (void)queue;
    pthread_mutex_lock(&lock);
    for (Block *b = blocks; b; b = b->next)
        file = b->at == block ? b->file : file;
    pthread_mutex_unlock(&lock);
    if (status || fstat(file, &is))
        return CI_ERR_DEVICE;
    memset(name, 0, sizeof *name);
    snprintf(name->bytes, sizeof name->bytes, "/proc/%ld/fd/%d %llu", (long)getpid(), file,
             (unsigned long long)is.st_ino);
    return CI_OK;
}

static int32_t
share_open(const CiQueue *queue, const CiShareName *name, void **out, size_t *size)
{
    int32_t status = enter_card(CALL_share_open, queue);
    char path[40];
    unsigned long long number = 0;
    struct stat is;
    if (status)
        return status;
    bool is_name = memchr(name->bytes, 0, sizeof name->bytes) &&
                   sscanf(name->bytes, "%39s %llu", path, &number) == 2;
    int file = is_name ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0 || fstat(file, &is) || is.st_ino != number) {
        if (file >= 0)
            close(file);
        snprintf(error, sizeof error, "no process shares such memory");
        return CI_ERR_DEVICE;
    }
    *size = (size_t)is.st_size;
    return map_file(queue, file, *size, false, out);
}

static void
release(const CiQueue *queue, void *block, size_t size)
{
    (void)size;
    (void)enter(CALL_release);
    (void)give(queue, &(Task){.kind = KIND_free, .to = block}, false);
}

static int32_t
copy(const CiQueue *queue, int call, const Task *task, const void *device)
{
    int32_t status = enter(call);
    if (!status && task->size && card_of(device) != queue->index) {
        snprintf(error, sizeof error, "a copy with memory of another card");
        status = CI_ERR_DEVICE;
    }
    return status || !task->size ? status : give(queue, task, true);
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

/* The host's memory is reached by copies as it is. */
static int32_t
host_allocate(const CiQueue *queue, size_t size, void **block)
{
    (void)queue;
    *block = malloc(size ? size : 1);
    pthread_mutex_lock(&lock);
    testing_lives(LIVE_blocks, *block != NULL);
    pthread_mutex_unlock(&lock);
    return *block ? CI_OK : CI_ERR_MEMORY;
}

static void
host_release(const CiQueue *queue, void *block, size_t size)
{
    (void)queue;
    memset(block, 0xd7, size);
    free(block);
    pthread_mutex_lock(&lock);
    testing_lives(LIVE_blocks, -1);
    pthread_mutex_unlock(&lock);
}

/* What a stream does later, with memory of these cards. */
static int32_t
copy_later(const CiQueue *queue, int call, const Task *task, const void *here, int card)
{
    int32_t status = enter(call);
    if (!status && task->size && card_of(here) != card) {
        snprintf(error, sizeof error, "a copy with memory of another card");
        status = CI_ERR_DEVICE;
    }
    return status || !task->size ? status : give(queue, task, false);
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
    if (size && card_of(there) != to->index)
        return copy_later(to, CALL_copy_across, &task, there, to->index);
    return copy_later(to, CALL_copy_across, &task, here, from->index);
}

static int32_t
finish(Stream *stream)
{
    wait_for(stream, stream->given);
    int32_t status = stream->status;
    stream->status = CI_OK;
    return status;
}

static int32_t
synchronize(const CiQueue *queue)
{
    int32_t status = enter_card(CALL_synchronize, queue);
    if (status)
        return status;
    if (queue->stream)
        return finish(queue->stream);
    for (Stream *s = all[queue->index]; s && !status; s = s->next)
        status = finish(s);
    return status;
}

static int32_t
stream_open(const CiQueue *queue, void **stream)
{
    int32_t status = enter_card(CALL_stream_open, queue);
    *stream = status ? NULL : new_stream(queue->index);
    count_handle(*stream != NULL);
    return status ? status : *stream ? CI_OK : CI_ERR_MEMORY;
}

static void
stream_close(const CiQueue *queue, void *what)
{
    Stream *stream = what;
    CiQueue of = {queue->backend, queue->runtime, queue->index, stream};
    (void)give(&of, &(Task){.kind = KIND_end}, false);
    pthread_join(stream->thread, NULL);
    count_handle(-1);
    pthread_mutex_lock(&lock);
    for (Stream **s = &all[queue->index]; *s; s = &(*s)->next)
        if (*s == stream) {
            *s = stream->next;
            break;
        }
    pthread_mutex_unlock(&lock);
    free(stream);
}

static int32_t
event_open(const CiQueue *queue, void **event)
{
    int32_t status = enter_card(CALL_event_open, queue);
    *event = status ? NULL : calloc(1, sizeof(Event));
    count_handle(*event != NULL);
    return status ? status : *event ? (hold(*event, 1), CI_OK) : CI_ERR_MEMORY;
}

static void
event_close(const CiQueue *queue, void *event)
{
    (void)queue;
    hold(event, -1);
}

static int32_t
event_record(const CiQueue *queue, void *what)
{
    Event *event = what;
    int32_t status = enter(CALL_event_record);
    if (status)
        return status;
    pthread_mutex_lock(&lock);
    long record = ++event->recorded;
    pthread_mutex_unlock(&lock);
    return give(queue, &(Task){.kind = KIND_record, .event = event, .number = record}, false);
}

static int32_t
event_wait(const CiQueue *queue, void *what)
{
    Event *event = what;
    int32_t status = enter(CALL_event_wait);
    Task task = {.kind = KIND_wait, .event = event, .number = event->recorded};
    return status ? status : give(queue, &task, false);
}

static int32_t
event_synchronize(const CiQueue *queue, void *what)
{
    Event *event = what;
    int32_t status = enter(CALL_event_synchronize);
    (void)queue;
    pthread_mutex_lock(&lock);
    while (!status && event->done < event->recorded)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return status;
}

/* A launch's arrays may be gone when it runs. */
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

/* The stream that launches are then given is the recording itself. */
static int32_t
record_begin(const CiQueue *queue, void **stream)
{
    int32_t status = enter_card(CALL_record_begin, queue);
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
    int32_t status = enter(CALL_record_end);
    (void)queue;
    is_taking = false;
    *recording = status ? NULL : stream;
    if (status)
        hold_recording(stream, -1);
    return status;
}

static int32_t
replay(const CiQueue *queue, void *recording)
{
    int32_t status = enter_card(CALL_replay, queue);
    if (!status && ((Recording *)recording)->card != queue->index) {
        snprintf(error, sizeof error, "a recording of another card");
        status = CI_ERR_DEVICE;
    }
    return status ? status
                  : give(queue, &(Task){.kind = KIND_replay, .recording = recording}, false);
}

static void
record_close(const CiQueue *queue, void *recording)
{
    (void)queue;
    hold_recording(recording, -1);
}

static int32_t
launch(const CiQueue *queue, CiExecutable *executable, const CiLaunch *asked, CiFault *fault)
{
    int32_t status = enter(CALL_launch), answer = CI_OK;
    CiQueue on = {queue->backend, queue->runtime, queue->index, asked->stream};
    Stream *stream = is_taking ? NULL : stream_of(&on);
    for (int k = 0; k < asked->nbuffers && !status; k++)
        if (card_of(asked->buffers[k]) != queue->index) {
            snprintf(error, sizeof error, "a kernel with memory of another card");
            status = CI_ERR_DEVICE;
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
        snprintf(error, sizeof error, "a kernel with checks, while the thread records");
        return CI_ERR_DEVICE;
    }
    Task *task = stream || is_taking ? new_task(&what, more) : NULL;
    if (!task)
        return CI_ERR_MEMORY;
    copy_arrays(task, asked);
    if (is_taking) {
        take_down(asked->stream, task);
        return CI_OK;
    }
    long number = append(stream, task);
    if (asked->may_fail)
        wait_for(stream, number);
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
    .doc = "two cards in memory of the host, each stream a thread",
    .count = count,
    .properties = properties,
    .allocate = allocate,
    .release = release,
    .copy_in = copy_in,
    .copy_out = copy_out,
    .host_allocate = host_allocate,
    .host_release = host_release,
    .copy_out_start = copy_out_start,
    .copy_across = copy_across,
    .synchronize = synchronize,
    .share_allocate = share_allocate,
    .share_release = share_release,
    .share_name = share_name,
    .share_open = share_open,
    .share_close = share_release,
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
