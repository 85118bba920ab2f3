/* Asks the processor (cpuid) and the system (xgetbv) which architecture level may be used: a level
 * counts only if the system saves the registers it needs. */
#include "device/cpu/level.h"

#include "target/c/c.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__GLIBC__)
#include <gnu/libc-version.h>
#endif

#if defined(__x86_64__)
static uint64_t
saved_registers(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

static bool
has_all(unsigned word, unsigned mask)
{
    return (word & mask) == mask;
}

static CiCpuLevel
native_level(void)
{
    unsigned a, b, c, d, b7, c1;
    const unsigned fma = 1u << 12, movbe = 1u << 22, osxsave = 1u << 27, avx = 1u << 28,
                   f16c = 1u << 29;
    const unsigned avx2 = 1u << 5, bmi = (1u << 3) | (1u << 8);
    const unsigned avx512 =
        (1u << 16) | (1u << 17) | (1u << 28) | (1u << 30) | (1u << 31); /* F DQ CD BW VL */
    if (!__get_cpuid(1, &a, &b, &c1, &d) || !__get_cpuid_count(7, 0, &a, &b7, &c, &d))
        return CI_CPU_x86_64_v2;
    if (!has_all(c1, fma | movbe | osxsave | avx | f16c) || !has_all(b7, avx2 | bmi))
        return CI_CPU_x86_64_v2;
    uint64_t saved = saved_registers();
    if ((saved & 0x6) != 0x6)
        return CI_CPU_x86_64_v2;
    return has_all(b7, avx512) && (saved & 0xe6) == 0xe6 ? CI_CPU_x86_64_v4 : CI_CPU_x86_64_v3;
}
#else
static CiCpuLevel
native_level(void)
{
    return CI_CPU_armv8;
}
#endif

typedef struct LevelRow {
    const char *name;
    int vector_bytes, vector_registers;
    const CiCInstructions *instructions;
} LevelRow;

static const LevelRow rows[CI_CPU_LEVEL_COUNT] = {
#define LEVEL(id, bytes, registers, name, instructions, ...) {name, bytes, registers, &ci_c_##instructions},
#include "device/cpu/levels.def"
};

/* One of this machine's family, or the generic one. */
CiCpuLevel
ci_cpu_level(const CiOptions *options)
{
    CiCpuLevel native = native_level();
    if (options && options->arch && !strcmp(options->arch, rows[CI_CPU_any].name))
        return CI_CPU_any;
    for (int k = 0; options && options->arch && k < (int)native; k++)
        if (!strcmp(options->arch, rows[k].name) && rows[k].instructions == rows[native].instructions)
            return (CiCpuLevel)k;
    return native;
}

const char *
ci_cpu_level_of_family(int k, bool *runs)
{
    CiCpuLevel native = native_level();
    if (k-- == 0) {
        *runs = true;
        return rows[CI_CPU_any].name;
    }
    for (int level = 0; level < CI_CPU_LEVEL_COUNT; level++)
        if (rows[level].instructions == rows[native].instructions && k-- == 0) {
            *runs = level <= (int)native;
            return rows[level].name;
        }
    return NULL;
}

int
ci_cpu_vector_bytes(CiCpuLevel level)
{
    return rows[level].vector_bytes;
}

const char *
ci_cpu_level_name(CiCpuLevel level)
{
    return rows[level].name;
}

const CiCInstructions *
ci_cpu_instructions(CiCpuLevel level)
{
    return rows[level].instructions;
}

void *
ci_cpu_math_open(void)
{
#if defined(__x86_64__)
    void *library = dlopen("libmvec.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library && !dlsym(library, "_ZGVbN4v_acoshf")) { /* before glibc 2.35 it has five functions */
        dlclose(library);
        return NULL;
    }
    return library;
#else
    return NULL;
#endif
}

bool
ci_cpu_has_routines(const CiOptions *options)
{
    void *library = ci_cpu_instructions(ci_cpu_level(options))->routines ? ci_cpu_math_open() : NULL;
    if (library)
        dlclose(library);
    return library != NULL;
}

const char *
ci_cpu_libc_version(void)
{
#if defined(__GLIBC__)
    return gnu_get_libc_version();
#else
    return "";
#endif
}

void
ci_cpu_fill_machine(CiMachine *machine, const CiOptions *options)
{
    const LevelRow *row = &rows[options ? ci_cpu_level(options) : 0]; /* asking the processor takes time */
    const CiCInstructions *instructions = row->instructions;
    *machine = ci_machine_of_cpu(row->vector_bytes, row->vector_registers);
    machine->why_not_vector = ci_c_why_not_vector;
    if (instructions->has_masks && instructions->has_masks(machine->vector_bytes))
        machine->has_pack = ci_c_has_pack;
}
