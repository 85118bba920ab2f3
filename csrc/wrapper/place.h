/* The second half of wrapping: memory for lines that only say what to run. */
#ifndef CI_WRAPPER_PLACE_H
#define CI_WRAPPER_PLACE_H

#include "wrapper/wrapper.h"

/* early.c: copies to the host begin before what does not need them. needs: nothing is placed yet. */
void ci_wrapper_start_early(CiWrapper *wrapper);
/* Rewrites wrapper->lines with alloc, reuse and free lines around what uses each buffer.
 * needs: no such lines yet, regions nested.  keeps: the order of all other lines. */
void ci_wrapper_place(CiWrapper *wrapper);
/* Turns frees and allocations into reuse lines (reuse.c), where no more is held at most for it. */
void ci_wrapper_reuse(CiWrapper *wrapper);
/* Sets `match`, `open` and `frees` of lines of regions. needs: regions nested. */
void ci_wrapper_match(CiWrapper *wrapper);

#endif
