/* Which plan of a program is quickest: calls are answered by one after another, and timed. */
#ifndef CX_RACE_H
#define CX_RACE_H

#include "program/program.h"
#include "replay/trial.h"

typedef struct CxRace CxRace;

/* One call in a race: which plan answers it, and whether it is timed. */
typedef struct CxTimedRun {
    CxProgram *program; /* a reference until the end; NULL: there is no race */
    int plan, class;
    int64_t began; /* 0: it is not timed */
    int64_t crowd;
    bool is_counted;
} CxTimedRun;

/* The first call that could be one of a race has alternatives looked for: the asker is called, once. */
void cx_race_ask(PyObject **asker, PyObject *specialization);
/* rows: (name, program, why it takes no part or None) of each plan, the program's own first, whose
 * program is own; known: class of sizes -> name of the plan that has won before. done: called with
 * the specialization and a class of sizes when it is decided; NULL with an exception. */
CxRace *cx_race_new(CxProgram *own, PyObject *rows, PyObject *known, PyObject *done);
void cx_race_free(CxRace *race);
int cx_race_traverse(const CxRace *race, visitproc visit, void *arg);
/* The plan for the next call of this class of sizes. */
void cx_race_begin(CxRace *race, int class, CxTimedRun *lap);
/* NO_TIME: a check of the program, or what it calls, has ended the call; FAILED: the plan has, as the
 * exception that is set says, and takes no part any more. */
typedef enum CxLapEnd { CX_LAP_DONE, CX_LAP_NO_TIME, CX_LAP_FAILED } CxLapEnd;
void cx_race_end(CxRace *race, PyObject *specialization, CxTimedRun *lap, CxLapEnd how);
/* For reports: plans (name, why it is out or None), and for each class that has been met its number,
 * the winner's name or None, the calls, and for each plan the number of times taken, their median in
 * nanoseconds. */
PyObject *cx_race_rows(const CxRace *race);

/* Of the module. set_beside(number): a CxBeside. set_race_clock(clock): None, or what is called with a
 * plan's name and a class of sizes, and gives the nanoseconds that its call has taken. */
PyObject *cx_set_beside(PyObject *module, PyObject *number);
PyObject *cx_set_race_clock(PyObject *module, PyObject *clock);

#endif
