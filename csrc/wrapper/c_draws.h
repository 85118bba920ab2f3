/* Prints a program's random draws as C. */
#ifndef CI_WRAPPER_C_DRAWS_H
#define CI_WRAPPER_C_DRAWS_H

#include "wrapper/wrapper.h"

bool ci_is_draw(const CiExternItem *call);
/* NULL, or why the draw cannot be printed as C. */
const char *ci_c_draw_refuses(CiContext *ctx, const CiExternItem *call);
/* The name of the draw's C function. Its arguments are the operands and the result. */
const char *ci_c_draw_routine(CiContext *ctx, const CiExternItem *call);
/* Prints the functions of the program's draws, after those of c_library.h. */
void ci_c_draws_print(CiText *out, const CiWrapper *wrapper);

#endif
