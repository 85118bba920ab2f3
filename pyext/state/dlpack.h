/* DLPack: memory of a device under everybody's protocol. */
#ifndef CX_DLPACK_H
#define CX_DLPACK_H

#include "state/stream.h"

extern PyMethodDef cx_dlpack_methods[];

#endif
