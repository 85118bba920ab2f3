/* What C-like targets share: printing expressions, bodies, stages and kernels as source text. A target gives
 * a table of spellings and a few hooks; cpu/ and cuda/ own theirs. */
#ifndef CI_DEVICE_EMIT_H
#define CI_DEVICE_EMIT_H

#include "device/device.h"

/* The number of the slot in `scalars` that holds this scalar input. */
int ci_emit_scalar_slot(const CiLoops *loops, const CiBuffer *buffer);
/* One op's value as an expression of operand names in C: casts, constants, ops.def expressions with T, M(), S(), BITS
 * replaced. Support functions used are recorded in the emitter, to be printed first. */

#endif
