/* Shared by the files of the dummy: calls, memory of its devices, and streams. */
#ifndef DUMMY_CARD_H
#define DUMMY_CARD_H

#include "_testing.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define CARDS 2

/* _dummy.c: returns the status of a call that is set to fail, cannot be recorded, or has no such
 * device; else 0. */
int32_t dummy_enter(Call call);
int32_t dummy_enter_card(Call call, const CiQueue *queue);
/* Stores the reason; returns CI_ERR_DEVICE. */
int32_t dummy_refuse(const char *why);
extern pthread_mutex_t dummy_lock;

/* _memory.c. The index of the device that owns the memory, or -1. */
int dummy_card_of(const void *address);
void dummy_free_block(void *address);
int32_t dummy_allocate(const CiQueue *queue, size_t size, void **out);
int32_t dummy_share_allocate(const CiQueue *queue, size_t size, void **out);
void dummy_share_release(const CiQueue *queue, void *block);
int32_t dummy_share_name(const CiQueue *queue, const void *block, CiShareName *name);
int32_t dummy_share_open(const CiQueue *queue, const CiShareName *name, void **out, size_t *size);
int32_t dummy_host_allocate(const CiQueue *queue, size_t size, void **block);
void dummy_host_release(const CiQueue *queue, void *block, size_t size);

/* _streams.c: a stream is a thread and what it has yet to do. */
typedef struct Event {
    long recorded, done; /* numbers of records */
    int holders;         /* its owner, and tasks that use it */
    int32_t status;      /* of its stream, when it was recorded */
} Event;

typedef enum Kind {
    KIND_copy,
    KIND_free,
    KIND_launch,
    KIND_replay,
    KIND_record,
    KIND_wait,
    KIND_collective,
    KIND_end
} Kind;

typedef struct Task Task;
typedef struct Group Group; /* _groups.c */

/* Recorded launches. */
typedef struct Recording {
    Task *first, *last;
    int card, holders; /* its owner, and tasks that use it */
} Recording;

struct Task {
    Task *next;
    Kind kind;
    void *to;
    const void *from;
    size_t size;
    Event *event;
    Recording *recording;
    Group *group;
    CiCollective what; /* of the group */
    long number;
    CiExecutable *executable;
    CiLaunch launch;
    int32_t *status; /* of a launch whose caller waits for it */
    CiFault *fault;
};

typedef struct Stream Stream;
struct Stream {
    pthread_t thread;
    Task *first, *last;
    long given, done;
    int32_t status; /* of a launch or a collective whose caller did not wait; events of the stream have it, too */
    Stream *next;   /* of the same device */
};

extern pthread_cond_t dummy_changed; /* signals any change */
extern Stream *dummy_streams[CARDS]; /* all streams of each device */
Stream *dummy_new_stream(int card);
/* The queue's stream, or the device's own. */
Stream *dummy_stream_of(const CiQueue *queue);
void dummy_wait_for(Stream *stream, long number);
/* Returns a copy of the task, followed by `more` bytes; NULL if out of memory. */
Task *dummy_new_task(const Task *what, size_t more);
/* Appends a task to the stream; returns its number. */
long dummy_append(Stream *stream, Task *task);
/* Appends a copy of the task to the queue's stream. If `waits`, returns after it is done. */
int32_t dummy_give(const CiQueue *queue, const Task *what, bool waits);
/* Changes the number of holders; frees the event or recording when none is left. */
Event *dummy_count_event(Event *event, int by);
void dummy_count_recording(Recording *recording, int by);
void dummy_count_handle(int by);
/* The status of a task that failed since the last call, of a stream that has done what it was given. */
int32_t dummy_finish(Stream *stream);
/* A new event, recorded in the queue's stream; NULL if out of memory. */
Event *dummy_record(const CiQueue *queue);
void dummy_close_stream(const CiQueue *queue, Stream *stream);

/* _groups.c */
int32_t dummy_group_name(const CiQueue *queue, CiGroupName *name);
int32_t dummy_group_open(const CiQueue *queue, const CiGroupName *name, int rank, int count,
                         int64_t timeout_ms, void **group);
void dummy_group_close(const CiQueue *queue, void *group);
int32_t dummy_group_start(const CiQueue *queue, void *group, const CiCollective *what);
int32_t dummy_group_join(const CiQueue *queue, void *group);
/* Runs a collective of a group; called by its stream. */
int32_t dummy_run_collective(Group *group, const CiCollective *what);

#endif
