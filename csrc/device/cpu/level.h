/* Architecture levels, and the vector mathematics of the C library at each. Shared by both CPU
 * backends, so that they call the same routines. */
#ifndef CI_DEVICE_CPU_LEVEL_H
#define CI_DEVICE_CPU_LEVEL_H

#include "device/device.h"
#include "target/c/instructions.h"

typedef enum CiCpuLevel {
#define LEVEL(id, bytes, registers, name, instructions, ...) CI_CPU_##id,
#include "device/cpu/levels.def"
    CI_CPU_LEVEL_COUNT
} CiCpuLevel;

/* The level that the options request, at most what this CPU and its system support. */
CiCpuLevel ci_cpu_level(const CiOptions *options);
/* The names of the levels of this machine's family, from the lowest on; NULL: there is no k-th.
 * runs: this CPU has it. */
const char *ci_cpu_level_of_family(int k, bool *runs);
int ci_cpu_vector_bytes(CiCpuLevel level);
const char *ci_cpu_level_name(CiCpuLevel level); /* "x86-64-v3" */
const CiCInstructions *ci_cpu_instructions(CiCpuLevel level);
/* Opens libmvec; NULL where the system has none, or an old one. The caller closes it with dlclose. */
void *ci_cpu_math_open(void);
/* True if generated code can call libmvec at the options' level; else it calls scalar functions of the
 * C library. */
bool ci_cpu_has_routines(const CiOptions *options);
/* "2.36", or "" where the C library does not tell. */
const char *ci_cpu_libc_version(void);
/* The machine of the level, with its instructions. options: NULL: of the first level. */
void ci_cpu_fill_machine(CiMachine *machine, const CiOptions *options);

#endif
