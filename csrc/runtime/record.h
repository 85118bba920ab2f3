/* Recordings of a partition: the work that a device was given once, kept for replay.
 *
 * The rule. A recording has the addresses, sizes and numbers that it was made with. Each call
 * allocates the memory that lives beyond the partition as if nothing were recorded: results are new
 * arrays of the caller. If the addresses of this memory, all numbers and the stream are those of
 * the recording, it has the same effect as the launches, and is replayed; otherwise launches are
 * made. So a result of an earlier call is never overwritten, and nothing is copied. Memory that
 * lives only in the partition belongs to the recording: replays allocate none. Recordings for one
 * stream run one after another, and share this memory if it has the same sizes.
 *
 * A key that comes for the first time is launched, which loads everything that launches need; the
 * second time it is recorded. The last CI_MAX_RECORDINGS keys are remembered. If more keys
 * alternate, none returns in time, and none is recorded.
 *
 * Results and other memory for later steps are new in each call. If such memory is small, the
 * recording stores in its own buffer, from which it is copied; its address is then not part of the
 * key. If for CI_PLACED calls it was in one of two places, its address becomes part of the key, and
 * nothing is copied. A small argument that is only read is copied to a buffer of the recording before each
 * replay, from its third address on. Such arguments are at most half as many as the launches.
 *
 * No thread waits for another: if a recording or its memory is in use, launches are made instead.
 * If a device fails at any of this, launches are made, and the partition is never recorded
 * again. */
#ifndef CI_RUNTIME_RECORD_H
#define CI_RUNTIME_RECORD_H

#include <pthread.h>

#include "runtime/frame.h"

#define CI_MAX_RECORDINGS 16
#define CI_MAX_KEY 512 /* words */
#define CI_PLACED 8
#define CI_UNPLACED 1000 /* calls that are copied after that, if keys with such addresses did not return */

/* The words of a key. */
typedef enum CiKeyWord {
    CI_WORD_stays,    /* part of every key */
    CI_WORD_argument, /* the address of an argument that may be copied */
    CI_WORD_result    /* that of memory for later steps that may be copied */
} CiKeyWord;

/* The last two addresses of such memory, and how many calls had one that was known. */
typedef struct CiPlaces {
    int64_t known[2];
    int calls;
} CiPlaces;

/* Memory that lives only in the partition, shared by recordings. */
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
    bool lacks_memory;                 /* the last run that had a recording made launches */
    int words, nblocks; /* of a key, of the memory */
    bool *is_moving;    /* words of the key: addresses that differ from call to call, so 0 stands for all */
    int nmoving, max_moving;
    CiPlaces *places; /* of words that are results */
    int nmissed;      /* runs with such an address for which there was no recording */
    CiRecording list[CI_MAX_RECORDINGS];
    CiRecordMemory memories[CI_MAX_RECORDINGS];
};

/* Of the program's memory; why_not: it is never recorded, or NULL. */
CiRecordings *ci_recordings_new(CiContext *ctx, int words, int nblocks, int max_moving, const char *why_not);
/* Decides for a run with this key, in which addresses of copied memory become 0. NULL: the run makes launches. Otherwise the recording belongs to
 * the run until it leaves: the run replays it if it is `made`, else records it. */
CiRecording *ci_recordings_enter(CiRecordings *recordings, const CiQueue *queue, int64_t *key, const CiKeyWord *words);
void ci_recordings_leave(CiRecordings *recordings, CiRecording *recording, bool is_replayed);
/* Gives a recording of the run's memory of these sizes, for the queue's stream; false: there is none. */
bool ci_recordings_take(CiRecordings *recordings, CiRecording *recording, const CiQueue *queue,
                        const int64_t *bytes);
/* Frees the device's recording, and the memory if no other recording uses it. */
void ci_recordings_drop(CiRecordings *recordings, const CiQueue *queue, const CiRecording *had);
/* A function of the device failed: nothing is recorded from now on. */
void ci_recordings_refuse(CiRecordings *recordings, const CiQueue *queue, const char *function);
/* Fills all but what is the plan's. */
void ci_recordings_query(CiRecordings *recordings, CiRecordingUse *out);
/* Called when no run of the program is left and the device is idle. */
void ci_recordings_close(CiRecordings *recordings, const CiQueue *queue);

/* partition_run.c: the step that a partition begins with. *at becomes the last step of it where all is done;
 * else the steps that follow are to do it. */
int32_t ci_frame_run_partition(CiFrame *frame, const CiStep **at);

#endif
