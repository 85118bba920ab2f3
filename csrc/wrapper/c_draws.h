/* Random draws of a program as C. */
#ifndef CI_WRAPPER_C_DRAWS_H
#define CI_WRAPPER_C_DRAWS_H

#include "wrapper/wrapper.h"

bool ci_is_draw(const CiExternItem *call);
/* Why C cannot draw so, or NULL. */
const char *ci_c_draw_refuses(CiContext *ctx, const CiExternItem *call);
/* The name of the draw's routine, which gets its operands and its result. */
const char *ci_c_draw_routine(CiContext *ctx, const CiExternItem *call);
/* The routines of the program's draws; nothing if it has none. They follow those of c_library.h. */
void ci_c_draws_print(CiText *out, const CiWrapper *wrapper);

#endif
