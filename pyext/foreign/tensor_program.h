/* The type TensorProgram, for programs that are called with torch tensors. */
#ifndef CX_TENSOR_PROGRAM_H
#define CX_TENSOR_PROGRAM_H

#include "state/state.h"

extern PyType_Spec cx_tensor_program_spec;

#endif
