/* Library calls of a program as C, which has routines of its own for some of them. */
#ifndef CI_WRAPPER_C_LIBRARY_H
#define CI_WRAPPER_C_LIBRARY_H

#include "wrapper/wrapper.h"

/* Why C cannot do the call, or NULL. */
const char *ci_c_library_refuses(CiContext *ctx, const CiExternItem *call);
/* The name of the call's routine, which gets its operands and its result; how: the last argument.
 */
const char *ci_c_library_routine(CiContext *ctx, const CiExternItem *call, int *how);
/* The routines of the program's calls; nothing if it has none. */
void ci_c_library_print_routines(CiText *out, const CiWrapper *wrapper);

#endif
