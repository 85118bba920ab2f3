/* What the files of the dummy share: calls, its cards' memory, and streams. */
#ifndef DUMMY_CARD_H
#define DUMMY_CARD_H

#include "_testing.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define CARDS 2

/* _dummy.c: what a call answers that is told to fail, or cannot be recorded; or whose card is none. */
int32_t dummy_enter(Call call);
int32_t dummy_enter_card(Call call, const CiQueue *queue);
/* CI_ERR_DEVICE, and why. */
int32_t dummy_refuse(const char *why);
extern pthread_mutex_t dummy_lock;

/* _memory.c. The card whose memory it is; -1: nobody's. */
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

extern pthread_cond_t dummy_changed; /* anything did */
extern Stream *dummy_streams[CARDS]; /* of each card, all */
Stream *dummy_new_stream(int card);
/* That of the queue, or the card's own. */
Stream *dummy_stream_of(const CiQueue *queue);
void dummy_wait_for(Stream *stream, long number);
/* A copy of the task, with `more` bytes behind it; NULL without memory. */
Task *dummy_new_task(const Task *what, size_t more);
/* Puts a task behind what the stream has; its number. */
long dummy_append(Stream *stream, Task *task);
/* Gives the queue's stream a copy of the task; waits: until it is done. */
int32_t dummy_give(const CiQueue *queue, const Task *what, bool waits);
/* One more or less who has it, by one; behind the last one it is gone. */
Event *dummy_count_event(Event *event, int by);
void dummy_count_recording(Recording *recording, int by);
void dummy_count_handle(int by);

#endif
