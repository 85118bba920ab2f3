/* Recordings of a partition: what a device has been given once, kept to be given again.
 *
 * The law. A recording has the addresses, sizes and numbers that it was made with. Memory that others have
 * had or will have each call takes as if nothing were recorded: results are the caller's new arrays. Where
 * the addresses of these, all numbers and the stream are as they were, the recording does what launches
 * would do, and is replayed; else launches are made. So nothing that an earlier call has returned is ever
 * written again, and nothing is copied. Memory of the partition's own, which nobody else sees, belongs to the
 * recording: calls that replay it take none. Recordings for one stream, where they are done one after
 * another, share it where it is as large.
 *
 * What comes for the first time is launched, which loads and makes whatever launches need; the second time
 * it is recorded. The last CI_MOST_RECORDINGS keys are known: where more come in turn, none comes back in
 * time, and none is recorded.
 *
 * Results and what else is stored for others is new memory in each call. Where it is small the recording
 * stores in its own, from which it is copied; so its address is no part of the key.
 *
 * No thread waits for another: a recording that is in use, or its memory, is not replayed, launches do it. Where a device
 * fails at any of this launches are made, and the partition is not recorded any more. */
#ifndef CI_RUNTIME_RECORD_H
#define CI_RUNTIME_RECORD_H

#include <pthread.h>

#include "runtime/frame.h"

#define CI_MOST_RECORDINGS 16
#define CI_MOST_KEY 512 /* words */

/* What recordings have of a partition's own memory. */
typedef struct CiRecordMemory {
    int users;     /* recordings; 0: there is none */
    bool is_busy;  /* a run stores there and copies from it, or it is made or freed just now */
    CiQueue queue; /* that it was taken from */
    int64_t *bytes;
    void **blocks;
} CiRecordMemory;

typedef struct CiRecording {
    int64_t *key;
    int64_t used; /* when; 0: there is no key */
    bool is_busy; /* one run's, whose are the next two then */
    void *made;   /* the device's, or NULL */
    CiRecordMemory *memory; /* NULL: it has none of its own */
} CiRecording;

/* The lock is of all that follows it; no device is called under it. */
struct CiRecordings {
    pthread_mutex_t lock;
    int64_t time, replayed, launched; /* runs */
    char why_not[CI_WHY_NOT_RECORDED]; /* "": it is recorded; else for good */
    int words, ntemps; /* of a key, of the memory */
    CiRecording list[CI_MOST_RECORDINGS];
    CiRecordMemory memories[CI_MOST_RECORDINGS];
};

/* Of the program's memory; why_not: it is never recorded, or NULL. */
CiRecordings *ci_recordings_new(CiContext *ctx, int words, int ntemps, const char *why_not);
/* What a run does that has this key: NULL, launches are made; else the run's until it leaves, to be replayed
 * where it is `made`, else to be recorded. */
CiRecording *ci_recordings_enter(CiRecordings *recordings, const CiQueue *queue, const int64_t *key);
void ci_recordings_leave(CiRecordings *recordings, CiRecording *recording, bool is_replayed);
/* Gives a recording of the run's memory of these sizes, for the queue's stream; false: there is none. */
bool ci_recordings_take(CiRecordings *recordings, CiRecording *recording, const CiQueue *queue,
                        const int64_t *bytes);
/* Frees what the device has made, and the memory where nobody else has it. */
void ci_recordings_drop(CiRecordings *recordings, const CiQueue *queue, const CiRecording *had);
/* A function of the device failed: nothing is recorded from now on. */
void ci_recordings_refuse(CiRecordings *recordings, const CiQueue *queue, const char *function);
/* Fills all but what is the plan's. */
void ci_recordings_ask(CiRecordings *recordings, CiRecordingUse *out);
/* Nobody runs the program any more, and the device is done with it. */
void ci_recordings_close(CiRecordings *recordings, const CiQueue *queue);

/* recorded.c: the step that a partition begins with. *at becomes the last step of it where all is done;
 * else the steps that follow are to do it. */
int32_t ci_frame_run_partition(CiFrame *frame, const CiStep **at);

#endif
