/* vsnprintf with a fast path for the conversions of texts of programs. */
#ifndef CI_BASE_FORMAT_H
#define CI_BASE_FORMAT_H

#include "base/context.h"

#include <stdarg.h>

int ci_vsnprintf(char *chars, size_t space, const char *format, va_list args) CI_PRINTF(3, 0);

#endif
