/* The stance of compiled functions: a number that Python's set_stance sets. */
#ifndef CX_STANCE_H
#define CX_STANCE_H

#include "state/state.h"

typedef enum CxStance {
    CX_STANCE_default,
    CX_STANCE_force_eager,
    CX_STANCE_eager_on_recompile,
    CX_STANCE_fail_on_recompile
} CxStance;

int cx_stances_init(CxState *state);
extern PyMethodDef cx_stance_methods[]; /* of the module */

/* The stance of a call that begins now; -1 with an exception. */
int cx_stance(CxState *state);

#endif
