/* Graph -> loops, define-by-run: each op is an inner function that emits the scalar value at an
 * index. */
#ifndef CI_LOWER_LOWER_H
#define CI_LOWER_LOWER_H

#include "base/options.h"
#include "ir/machine.h"

CiLoops *ci_lower(CiGraph *graph, const CiMachine *machine, const CiOptions *options);

#endif
