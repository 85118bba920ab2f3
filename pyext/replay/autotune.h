/* Finds the fastest plan of a program by timing the user's calls. */
#ifndef CX_AUTOTUNE_H
#define CX_AUTOTUNE_H

#include "program/program.h"
#include "replay/numpy_timing.h"

typedef struct CxRace CxRace;

/* One call of a trial: its plan, and whether it is timed. */
typedef struct CxTimedRun {
    CxProgram *program; /* holds a reference until the end; NULL: there is no trial */
    int plan, class;
    int64_t began; /* 0: it is not timed */
    int64_t crowd;
    bool is_counted;
} CxTimedRun;

/* True if the plans are still timed. */
bool cx_race_is_open(const CxRace *race, int class);
/* Calls the asker, once: the first call that could be part of a trial has alternatives searched. */
void cx_race_ask(PyObject **asker, PyObject *specialization);
/* rows: (name, program, reason why it takes no part or None) for each plan; the first is the
 * program itself. known: size class -> name of the plan that won before. done: called with the
 * specialization and the size class when a trial is decided. NULL with an exception. */
CxRace *cx_race_new(CxProgram *own, PyObject *rows, PyObject *known, PyObject *done);
void cx_race_free(CxRace *race);
int cx_race_traverse(const CxRace *race, visitproc visit, void *arg);
/* Chooses the plan for the next call of this size class. */
void cx_race_begin(CxRace *race, int class, CxTimedRun *lap);
/* NO_TIME: a check of the program, or a function it calls, has ended the call. FAILED: the plan
 * failed with the current exception, and takes no part any more. */
typedef enum CxLapEnd { CX_LAP_DONE, CX_LAP_NO_TIME, CX_LAP_FAILED } CxLapEnd;
void cx_race_end(CxRace *race, PyObject *specialization, CxTimedRun *lap, CxLapEnd how);
/* For reports: a list of plans as (name, why it is out or None), and a list of size classes. Each
 * class has its number, the name of the winner or None, the number of calls, and for each plan
 * the number of times and their median in nanoseconds. */
PyObject *cx_race_rows(const CxRace *race);

/* Functions of the module. set_beside(number): sets a CxBeside. set_race_clock(clock): None, or
 * a function of a plan's name and a size class that returns the nanoseconds of its call. */
PyObject *cx_set_beside(PyObject *module, PyObject *number);
PyObject *cx_set_race_clock(PyObject *module, PyObject *clock);

#endif
