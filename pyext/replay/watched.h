/* Detects debuggers, profilers and coverage tools, which record the lines of a call. Then the original function runs. */
#ifndef CX_WATCHED_H
#define CX_WATCHED_H

#include "state/state.h"

/* The state of one compiled function. */
typedef struct CxWatched {
    uint64_t version; /* of sys.monitoring when the job was last asked */
    bool is_watched;  /* the job's answer */
    bool is_noted;     /* the job knows that NumPy runs the calls */
} CxWatched;

/* 1 if a trace function of this thread or a tool of sys.monitoring records lines; -1 with an
 * exception. code: the function's, or NULL. miss: the compiled function's method of its job, whose
 * other methods are called. */
int cx_is_watched(CxState *state, CxWatched *watched, PyObject *code, PyObject *miss);

#endif
