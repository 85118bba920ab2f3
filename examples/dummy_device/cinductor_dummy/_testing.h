/* Additions for tests: calls are counted, tasks of streams are delayed, each call can be set to fail, and live
 * objects are counted. A device of yours needs none of it. */
#ifndef DUMMY_TESTING_H
#define DUMMY_TESTING_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "device/device.h"

#define CALLS(CALL)                                                                                \
    CALL(allocate)                                                                                 \
    CALL(release)                                                                                  \
    CALL(copy_in)                                                                                  \
    CALL(copy_out)                                                                                 \
    CALL(copy_out_start)                                                                           \
    CALL(copy_across)                                                                              \
    CALL(synchronize)                                                                              \
    CALL(stream_open)                                                                              \
    CALL(event_open)                                                                               \
    CALL(event_record)                                                                             \
    CALL(event_wait)                                                                               \
    CALL(event_synchronize)                                                                        \
    CALL(share_allocate)                                                                           \
    CALL(share_name)                                                                               \
    CALL(share_open)                                                                               \
    CALL(record_begin)                                                                             \
    CALL(record_end)                                                                               \
    CALL(replay)                                                                                   \
    CALL(launch)                                                                                   \
    CALL(group_open)                                                                               \
    CALL(group_start)                                                                              \
    CALL(group_join)

typedef enum Call {
#define CALL(name) CALL_##name,
    CALLS(CALL)
#undef CALL
        CALL_COUNT
} Call;

/* Blocks; streams and events that were opened; recordings. */
typedef enum Live { LIVE_blocks, LIVE_handles, LIVE_recordings, LIVE_COUNT } Live;

/* Counts a call. Returns its status if it is set to fail, else 0. */
int32_t testing_call(Call call);
const char *testing_name(Call call);
void testing_lives(Live what, int by);
/* Returns the delay before each task of a stream, in microseconds. */
int testing_delay(void);

extern PyMethodDef testing_methods[];

#endif
