/* Prints a program's library calls as C. Some have a C function of their own. */
#ifndef CI_WRAPPER_C_LIBRARY_H
#define CI_WRAPPER_C_LIBRARY_H

#include "wrapper/wrapper.h"

/* NULL, or why the call cannot be printed as C. */
const char *ci_c_library_refuses(CiContext *ctx, const CiExternItem *call);
/* The name of the call's C function. Its arguments are the operands, the result, and *how. */
const char *ci_c_library_routine(CiContext *ctx, const CiExternItem *call, int *how);
/* Prints the functions of the program's calls. */
void ci_c_library_print_routines(CiText *out, const CiWrapper *wrapper);

#endif
