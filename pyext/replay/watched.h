/* Whether a tool looks at the lines that a call runs: then the original function answers. */
#ifndef CX_WATCHED_H
#define CX_WATCHED_H

#include "state/state.h"

/* What is known of a function. */
typedef struct CxWatched {
    uint64_t version; /* of sys.monitoring when the job was asked last */
    bool is_watched;  /* what it answered */
    bool is_told;     /* the job knows that NumPy answers */
} CxWatched;

/* A trace function of this thread, or a tool of sys.monitoring, sees the lines. miss: that of the compiled
 * function, a method of the job, which is asked. -1 with an exception. */
int cx_is_watched(CxState *state, CxWatched *watched, PyObject *miss);

#endif
