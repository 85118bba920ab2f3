/* The parts of a kernel's text. */
#ifndef CI_IR_KERNEL_TEXT_H
#define CI_IR_KERNEL_TEXT_H

#include "ir/kernel.h"
#include "ir/loop_text.h"

void ci_kernel_io_axes(CiLoopIo *p, CiKernelAxis **axes, int *count);
/* Placements and stages of a kernel, or of a leaf in the whole one's tree. */
void ci_kernel_io_stages(CiLoopIo *p, CiKernel *whole, CiKernel *kernel);

#endif
