/* Build notes: the objects in the disk cache that kernels were built into before, so that the C
 * source need not be printed to compute its digest. A note's key covers everything that the source
 * depends on: the text of the kernels, the options, the compiler's own code and the code generators
 * after it. */
#ifndef CI_DEVICE_CPU_BUILD_NOTES_H
#define CI_DEVICE_CPU_BUILD_NOTES_H

#include "base/hash.h"
#include "device/cpu/compiler.h"
#include "device/cpu/cpu.h"

#define CI_CPU_MAX_KNOWN 128 /* kernels of a program */

typedef struct CiCpuKnownKernel {
    int32_t unit;    /* -1: it has no functions */
    int32_t printed; /* the id of the kernel whose functions it runs */
    char launch[240]; /* the numbers of its launch as text */
} CiCpuKnownKernel;

typedef struct CiCpuBuildNotes {
    char key[65]; /* its own: a note that lies under another name is none */
    int32_t nunits, nkernels;
    char units[CI_CPU_MAX_UNITS][65];            /* keys of objects */
    CiCpuKnownKernel kernels[CI_CPU_MAX_KNOWN]; /* by id */
} CiCpuBuildNotes;

/* Hashes the C compiler and its flags; every key of an object and of a note begins with this. */
void ci_cpu_hash_tools(CiContext *ctx, CiSha256 *hash, const CiSystemCompiler *compiler,
                       const CiOptions *options);
/* A new note with its key and no units. NULL if kernels cannot have notes: there are too many,
 * their text does not describe them completely, or this library cannot identify its own code. */
CiCpuBuildNotes *ci_cpu_known_new(CiContext *ctx, const CiSystemCompiler *compiler,
                             const CiKernels *kernels, const CiOptions *options);
/* Fills it as it was written; false where it was not, or is no note of these kernels. */
bool ci_cpu_known_read(CiCache *cache, CiCpuBuildNotes *known);
/* Bytes of it in the cache. */
size_t ci_cpu_known_size(const CiCpuBuildNotes *known);
void ci_cpu_known_write(CiCache *cache, const CiCpuBuildNotes *known);

#endif
