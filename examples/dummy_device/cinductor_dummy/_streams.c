/* Streams of the dummy: a thread each, which executes its tasks in order. */
#include "_card.h"

#include <time.h>

pthread_cond_t dummy_changed = PTHREAD_COND_INITIALIZER; /* signals any change */
Stream *dummy_streams[CARDS];
static Stream *own[CARDS];

void
dummy_count_handle(int by)
{
    pthread_mutex_lock(&dummy_lock);
    testing_lives(LIVE_handles, by);
    pthread_mutex_unlock(&dummy_lock);
}

/* Changes the number of holders; frees the event when none is left. */
Event *
dummy_count_event(Event *event, int by)
{
    pthread_mutex_lock(&dummy_lock);
    event->holders += by;
    bool is_last = event->holders == 0;
    testing_lives(LIVE_handles, -(int)is_last);
    pthread_mutex_unlock(&dummy_lock);
    if (is_last)
        free(event);
    return event;
}

/* Like dummy_count_event, for a recording. */
void
dummy_count_recording(Recording *recording, int by)
{
    pthread_mutex_lock(&dummy_lock);
    recording->holders += by;
    bool is_last = recording->holders == 0;
    testing_lives(LIVE_recordings, -(int)is_last);
    pthread_mutex_unlock(&dummy_lock);
    if (!is_last)
        return;
    for (Task *next, *task = recording->first; task; task = next) {
        next = task->next;
        free(task);
    }
    free(recording);
}

int32_t
dummy_finish(Stream *stream)
{
    pthread_mutex_lock(&dummy_lock);
    int32_t status = stream->status;
    stream->status = CI_OK;
    pthread_mutex_unlock(&dummy_lock);
    return status;
}

/* Waits for the event; returns its status. */
static int32_t
wait_for_event(const Event *event, long number)
{
    pthread_mutex_lock(&dummy_lock);
    while (event->done < number)
        pthread_cond_wait(&dummy_changed, &dummy_lock);
    int32_t status = event->status;
    pthread_mutex_unlock(&dummy_lock);
    return status;
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
        dummy_free_block(task->to);
        break;
    case KIND_launch:
        status = task->executable->launch(task->executable, &task->launch, &fault);
        break;
    case KIND_replay:
        status = run_recording(task->recording);
        break;
    case KIND_wait:
        status = wait_for_event(task->event, task->number);
        break;
    case KIND_collective:
        status = stream->status ? stream->status : dummy_run_collective(task->group, &task->what);
        break;
    default:
        break;
    }
    pthread_mutex_lock(&dummy_lock);
    if (task->kind == KIND_record) {
        task->event->done = task->number;
        task->event->status = stream->status;
    }
    if (task->status) {
        *task->status = status;
        *task->fault = fault;
    } else if (status) {
        stream->status = status;
    }
    pthread_mutex_unlock(&dummy_lock);
}

static void *
run_stream(void *arg)
{
    Stream *stream = arg;
    for (bool is_over = false; !is_over;) {
        pthread_mutex_lock(&dummy_lock);
        while (!stream->first)
            pthread_cond_wait(&dummy_changed, &dummy_lock);
        Task *task = stream->first;
        int us = testing_delay();
        pthread_mutex_unlock(&dummy_lock);
        if (us)
            nanosleep(&(struct timespec){us / 1000000, us % 1000000 * 1000L}, NULL);
        run_task(stream, task);
        is_over = task->kind == KIND_end;
        if (task->event) /* the task must be freed before its waiters continue */
            dummy_count_event(task->event, -1);
        if (task->recording)
            dummy_count_recording(task->recording, -1);
        pthread_mutex_lock(&dummy_lock);
        stream->first = task->next;
        if (!stream->first)
            stream->last = NULL;
        stream->done++;
        pthread_cond_broadcast(&dummy_changed);
        pthread_mutex_unlock(&dummy_lock);
        free(task);
    }
    return NULL;
}

Stream *
dummy_new_stream(int card)
{
    Stream *stream = calloc(1, sizeof *stream);
    if (!stream || pthread_create(&stream->thread, NULL, run_stream, stream)) {
        free(stream);
        return NULL;
    }
    pthread_mutex_lock(&dummy_lock);
    stream->next = dummy_streams[card];
    dummy_streams[card] = stream;
    pthread_mutex_unlock(&dummy_lock);
    return stream;
}

/* The queue's stream, or the device's own. */
Stream *
dummy_stream_of(const CiQueue *queue)
{
    static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
    if (queue->stream)
        return queue->stream;
    pthread_mutex_lock(&making);
    if (!own[queue->index])
        own[queue->index] = dummy_new_stream(queue->index);
    pthread_mutex_unlock(&making);
    return own[queue->index];
}

void
dummy_wait_for(Stream *stream, long number)
{
    pthread_mutex_lock(&dummy_lock);
    while (stream->done < number)
        pthread_cond_wait(&dummy_changed, &dummy_lock);
    pthread_mutex_unlock(&dummy_lock);
}

/* Appends a task to the stream; returns its number. */
long
dummy_append(Stream *stream, Task *task)
{
    pthread_mutex_lock(&dummy_lock);
    if (stream->last)
        stream->last->next = task;
    else
        stream->first = task;
    stream->last = task;
    long number = ++stream->given;
    pthread_cond_broadcast(&dummy_changed);
    pthread_mutex_unlock(&dummy_lock);
    return number;
}

/* Returns a copy of the task, followed by `more` bytes; NULL if out of memory. */
Task *
dummy_new_task(const Task *what, size_t more)
{
    Task *task = malloc(sizeof *task + more);
    if (!task)
        return NULL;
    *task = *what;
    if (task->event)
        dummy_count_event(task->event, 1);
    if (task->recording)
        dummy_count_recording(task->recording, 1);
    return task;
}

Event *
dummy_record(const CiQueue *queue)
{
    Event *event = calloc(1, sizeof *event);
    if (!event)
        return NULL;
    dummy_count_handle(1);
    dummy_count_event(event, 1);
    event->recorded = 1;
    if (!dummy_give(queue, &(Task){.kind = KIND_record, .event = event, .number = 1}, false))
        return event;
    dummy_count_event(event, -1);
    return NULL;
}

void
dummy_close_stream(const CiQueue *queue, Stream *stream)
{
    CiQueue of = {queue->backend, queue->runtime, queue->index, stream};
    (void)dummy_give(&of, &(Task){.kind = KIND_end}, false);
    pthread_join(stream->thread, NULL);
    pthread_mutex_lock(&dummy_lock);
    for (Stream **s = &dummy_streams[queue->index]; *s; s = &(*s)->next)
        if (*s == stream) {
            *s = stream->next;
            break;
        }
    pthread_mutex_unlock(&dummy_lock);
    free(stream);
}

/* Appends a copy of the task to the queue's stream. If `waits`, returns after it is done, with what failed
 * before. */
int32_t
dummy_give(const CiQueue *queue, const Task *what, bool waits)
{
    Stream *stream = dummy_stream_of(queue);
    Task *task = stream ? dummy_new_task(what, 0) : NULL;
    if (!task)
        return CI_ERR_MEMORY;
    long number = dummy_append(stream, task);
    if (!waits)
        return CI_OK;
    dummy_wait_for(stream, number);
    return dummy_finish(stream);
}
