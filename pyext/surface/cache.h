/* The disk cache as Python sees it. */
#ifndef CX_CACHE_H
#define CX_CACHE_H

#include "state/state.h"

extern PyMethodDef cx_cache_methods[]; /* of the module */

#endif
