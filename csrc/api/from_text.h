/* A level that is given as text. It replaces the output of the level before it, so that a dump of a
 * compile can be edited and run. */
#ifndef CI_API_FROM_TEXT_H
#define CI_API_FROM_TEXT_H

#include "api/compile.h"

/* NULL where that level is not given. Otherwise read back and verified; it takes and gives what
 * `made`, of the graph itself, does, and calls of a library are the graph's. Fail through ctx. */
CiLoops *ci_given_loops(const CiRequest *request, const CiLoops *made);
CiKernels *ci_given_kernels(const CiRequest *request, const CiKernels *made);
/* Gives kernels the procs or the source, where these are given. */
void ci_given_code(const CiRequest *request, CiKernels *kernels);
/* NULL where the lines are not given. They are lines of these kernels. */
CiWrapper *ci_given_lines(const CiRequest *request, const CiKernels *kernels, const CiShapeEnv *env);
/* The graph's environment in symbols of the loops. */
const CiShapeEnv *ci_given_env(const CiRequest *request, const CiLoops *loops);

#endif
