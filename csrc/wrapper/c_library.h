/* Library calls of a program as C, which has routines of its own for some of them. */
#ifndef CI_WRAPPER_C_LIBRARY_H
#define CI_WRAPPER_C_LIBRARY_H

#include "wrapper/wrapper.h"

/* An expression; NULL: 0. */
void ci_print_c_expr(CiText *out, const CiExpr *e);
/* {a, b}; {0} of none. */
void ci_print_c_list(CiText *out, int count, const CiExpr *const *items);

/* Why C cannot do the call, or NULL. */
const char *ci_c_library_refuses(CiContext *ctx, const CiExternItem *call);
/* The routines of the program's calls; nothing if it has none. */
void ci_c_library_print_routines(CiText *out, const CiWrapper *wrapper);
void ci_c_library_print_call(CiText *out, const CiExternItem *call);

#endif
