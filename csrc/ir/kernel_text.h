/* Functions that print or parse the parts of a kernel's text. */
#ifndef CI_IR_KERNEL_TEXT_H
#define CI_IR_KERNEL_TEXT_H

#include "ir/kernel.h"
#include "ir/loop_text.h"

void ci_kernel_io_axes(CiLoopIo *p, CiKernelAxis **axes, int *count);
/* The placements and stages of a kernel, or of a leaf in the tree of the kernel `whole`. */
void ci_kernel_io_stages(CiLoopIo *p, CiKernel *whole, CiKernel *kernel);

#endif
