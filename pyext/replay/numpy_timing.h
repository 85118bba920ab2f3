/* Decides whether a compiled call is faster than NumPy. */
#ifndef CX_NUMPY_TIMING_H
#define CX_NUMPY_TIMING_H

#include "program/program.h"

/* Threads may record times concurrently; then a few more times than needed are recorded. */
typedef struct CxNumpyTiming {
    bool is_wanted, is_lost; /* lost: NumPy was faster, and the original function runs */
    bool times_long_calls;   /* calls that take long are timed, too */
    bool is_earlier;         /* NumPy's time is that of calls before the program existed */
    bool wants_estimate;     /* NumPy's time is to be expected from the sizes of a call (cx_trial_expect) */
    int16_t counts[2];       /* calls timed: compiled, NumPy */
    int16_t calls;           /* since it was decided; not counted after the last review */
    int64_t best[2];         /* nanoseconds; of NumPy while no call is timed: expected, or 0 */
    int64_t spent;           /* nanoseconds of the compiled calls: NumPy is timed when it is expected to take less */
    float far;               /* NumPy is not timed if it is expected to be slower by this factor */
} CxNumpyTiming;

/* Starts a trial if a program is worth timing: it calls libraries or accepts any size, or each call reads all
 * of its arguments (reads_all), and it gives exactly NumPy's bits. program may be NULL. */
CxNumpyTiming cx_trial_of(const CxProgram *program, bool reads_all);
/* Like cx_trial_of, for a piece between two Python steps. Any piece may compute less than its call
 * costs, and the same function has given NumPy's bits before. */
CxNumpyTiming cx_trial_of_piece(const CxProgram *program);
/* Like cx_trial_of, for a program that is interpreted or made of stencils because there is no compiler. */
CxNumpyTiming cx_trial_of_unbuilt(const CxProgram *program);
/* Like cx_trial_of, for any program that gives NumPy's bits. A program for constant sizes is compared with `numpy`,
 * the seconds of the fastest of `calls` earlier calls in NumPy. If there were too few, NumPy is timed. Except: NumPy is not
 * timed for compiled loops whose calls were not short, if the program is much faster than these calls and the estimate.
 * compiled: the program's seconds if earlier ones are known, or 0. */
CxNumpyTiming cx_trial_after(const CxProgram *program, double numpy, int calls, double compiled);
/* The size class of a call whose arrays have this many elements. */
enum { CX_TRIAL_CLASSES = 9 };
int cx_trial_class(int64_t elements);
/* True if the program has loops or branches. */
bool cx_has_regions(const CxProgram *program);
/* Where an estimate is wanted: the seconds that a call of the class is expected to take in NumPy; HUGE_VAL: unknown. */
void cx_trial_expect(CxNumpyTiming *trial, double numpy);
/* Counts a call, and begins another trial when that is due. True if the original function runs the call. */
bool cx_trial_chooses_numpy(CxNumpyTiming *trial);
/* The number of further calls that the original function runs without a new decision. Counts them. */
int cx_trial_lend(CxNumpyTiming *trial);
/* True if calls are timed. */
bool cx_trial_is_open(const CxNumpyTiming *trial);
/* A call has ended, which began at this time; 0: it was not timed. */
void cx_trial_end(CxNumpyTiming *trial, bool is_numpy, int64_t began);

/* The trials of a program, by size class. */
void cx_trials_set(CxNumpyTiming *trials, CxNumpyTiming trial);
/* True if calls are still timed. varies: only in classes of which calls were timed. */
bool cx_trials_are_open(const CxNumpyTiming *trials, bool varies);
/* Seconds, compiled and in NumPy, in the first class; None if they were not compared. */
PyObject *cx_trials_times(const CxNumpyTiming *trials);
/* Why NumPy runs calls: a text, or None. */
PyObject *cx_trials_text(const CxNumpyTiming *trials);

#endif
