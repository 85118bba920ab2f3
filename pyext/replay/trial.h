/* Whether a compiled call is quicker than NumPy's own. */
#ifndef CX_TRIAL_H
#define CX_TRIAL_H

#include "program/program.h"

/* Threads may note times at once: a few more are kept then. */
typedef struct CxNumpyTiming {
    bool is_wanted, is_lost; /* lost: the function itself answers */
    bool asks_long;          /* calls that take long, too */
    int16_t counts[2];       /* calls timed: compiled ones, NumPy's */
    int64_t best[2];         /* nanoseconds */
} CxNumpyTiming;

/* Is a program worth a trial, which all else that it does gives NumPy's very bits: does it call
 * libraries, or serve any size? program may be NULL. */
CxNumpyTiming cx_trial_of(const CxProgram *program);
/* The same of a piece between two steps of Python's: any may be too little for what a call costs,
 * and NumPy's bits were those of such a function before. */
CxNumpyTiming cx_trial_of_piece(const CxProgram *program);
/* And of one that is interpreted because there is no compiler. */
CxNumpyTiming cx_trial_of_interpreted(const CxProgram *program);
/* The same of a program for calls that NumPy has answered, in so many nanoseconds at best: for one size NumPy is
 * not asked again. */
CxNumpyTiming cx_trial_after(const CxProgram *program, int64_t numpy);
/* The class of a call whose arrays have so many elements. */
enum { CX_TRIAL_CLASSES = 9 };
int cx_trial_class(int64_t elements);
/* Does the function itself answer the next call? */
bool cx_trial_is_numpys(const CxNumpyTiming *trial);
/* Are calls still being timed? */
bool cx_trial_is_open(const CxNumpyTiming *trial);
/* When a call begins: 0 when nobody asks any more. */
int64_t cx_numpy_timing_begin(const CxNumpyTiming *trial);
void cx_trial_end(CxNumpyTiming *trial, bool is_numpy, int64_t began);
/* In words, or None. */
PyObject *cx_trial_text(const CxNumpyTiming *trial);

#endif
