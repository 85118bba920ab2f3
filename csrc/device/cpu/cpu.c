/* The C backend: what it can do, and the struct of its functions. Building is in build.c, running
 * in launch.c. */
#include "device/cpu/cpu.h"

#include "device/cpu/compiler.h"
#include "device/cpu/level.h"
#include "device/cpu/source.h"

#include <stdio.h>
#include <stdlib.h>

static const char *
why_not_available(const CiOptions *options, char *out, size_t capacity)
{
    CiSystemCompiler compiler;
    (void)options;
    if (!ci_compiler_find(&compiler)) {
        snprintf(out, capacity, "no C compiler: tried %s", ci_compiler_tried());
        return out;
    }
    return NULL;
}

static void
emit(CiText *out, const CiKernels *kernels, const CiOptions *options)
{
    ci_cpu_emit_source(out, kernels, ci_cpu_lower(kernels, options), options, NULL);
}

extern const CiCompiler ci_compiler_c;

const CiCompiler ci_compiler_c = {
    .abi = CI_DEVICE_ABI,
    .name = "c",
    .doc = "C source, the system's C compiler, mathematics of the C library",
    .why_not_available = why_not_available,
    .fill_machine = ci_cpu_fill_machine,
    .lower = ci_cpu_lower,
    .emit = emit,
    .build = ci_cpu_build,
    .build_text = ci_cpu_build_text,
};
