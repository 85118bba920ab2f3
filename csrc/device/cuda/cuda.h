/* Shared declarations of the CUDA backend. Kernels are procs (csrc/codegen), printed by
 * csrc/target/gpu. */
#ifndef CI_DEVICE_CUDA_CUDA_H
#define CI_DEVICE_CUDA_CUDA_H

#include "device/gpu/gpu.h"

/* backend.c */
void ci_cuda_fill_machine(CiMachine *machine, const CiOptions *options);

/* user.c: the compiler's build_text. */
CiUserCode *ci_cuda_build_text(CiContext *ctx, const CiQueue *queue, const char *source,
                               const CiOptions *options);

/* offload.c: the compiler's why_slower. */
const char *ci_cuda_why_slower(const CiKernels *kernels, bool host_arrays);

/* ---- specialize.c: kernels for a class of sizes ---- */

#define CI_CUDA_MULTIPLE 8
#define CI_CUDA_MAX_SIZES 16

typedef struct CiCudaClass {
    unsigned char of[CI_CUDA_MAX_SIZES]; /* per size argument; 0: none */
} CiCudaClass;

bool ci_cuda_can_specialize(const CiKernel *kernel);
/* False when a size is in no class, which the kernel for all sizes then serves. */
bool ci_cuda_find_class(const CiKernel *kernel, const int64_t *sizes, CiCudaClass *class);
/* The divisor that turns the kernel's k-th size into the variant's. */
int64_t ci_cuda_class_divisor(const CiCudaClass *class, int k);
/* The variant alone, from the text of the kernel (ci_kernels_print_alone) and that text parsed.
 * With verify it is verified like any kernel. */
CiKernels *ci_cuda_parse_variant(CiContext *ctx, const char *text, const CiKernels *generic,
                                 const CiCudaClass *class, bool verify);

#endif
