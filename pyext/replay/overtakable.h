/* Calls of the original function that a program may overtake. */
#ifndef CX_OVERTAKABLE_H
#define CX_OVERTAKABLE_H

#include "replay/account.h"

extern PyType_Spec cx_overtakable_spec;

#endif
