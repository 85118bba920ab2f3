/* Finds the fastest plan of a program by timing the user's calls. */
#ifndef CX_AUTOTUNE_H
#define CX_AUTOTUNE_H

#include "program/program.h"
#include "replay/numpy_timing.h"

typedef struct CxAutotune CxAutotune;

/* One call of a trial: its plan, and whether it is timed. */
typedef struct CxTimedRun {
    CxProgram *program; /* holds a reference until the end; NULL: there is no trial */
    int plan, class;
    int64_t began; /* 0: it is not timed */
    int64_t crowd;
    bool is_counted;
} CxTimedRun;

/* True if the plans are still timed. */
bool cx_autotune_is_open(const CxAutotune *tuning, int class);
/* Calls the asker, once: the first call that could be part of a trial has alternatives searched. */
void cx_autotune_request(PyObject **asker, PyObject *specialization);
/* rows: (name, program, reason why it takes no part or None) for each plan; the first is the
 * program itself. known: size class -> name of the plan that won before. done: called with the
 * specialization and the size class when a trial is decided. NULL with an exception. */
CxAutotune *cx_autotune_new(CxProgram *own, PyObject *rows, PyObject *known, PyObject *done);
void cx_autotune_free(CxAutotune *tuning);
int cx_autotune_traverse(const CxAutotune *tuning, visitproc visit, void *arg);
/* Chooses the plan for the next call of this size class. */
void cx_autotune_begin(CxAutotune *tuning, int class, CxTimedRun *run);
/* NO_TIME: a check of the program, or a function it calls, has ended the call. FAILED: the plan
 * failed with the current exception, and takes no part any more. */
typedef enum CxRunEnd { CX_RUN_DONE, CX_RUN_NO_TIME, CX_RUN_FAILED } CxRunEnd;
void cx_autotune_end(CxAutotune *tuning, PyObject *specialization, CxTimedRun *run, CxRunEnd how);
/* For reports: a list of plans as (name, why it is out or None), and a list of size classes. Each
 * class has its number, the name of the winner or None, the number of calls, and for each plan
 * the number of times and their median in nanoseconds. */
PyObject *cx_autotune_rows(const CxAutotune *tuning);

/* Functions of the module. set_alongside(number): sets a CxAlongside. set_autotune_clock(clock): None, or
 * a function of a plan's name and a size class that returns the nanoseconds of its call. */
PyObject *cx_set_alongside(PyObject *module, PyObject *number);
PyObject *cx_set_autotune_clock(PyObject *module, PyObject *clock);

#endif
