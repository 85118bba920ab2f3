/* The system's C compiler: finding it, running it. */
#ifndef CI_DEVICE_CPU_COMPILER_H
#define CI_DEVICE_CPU_COMPILER_H

#include "device/cpu/level.h"
#include "target/emit.h"

#define CI_CPU_MAX_WORDS 128
#define CI_CPU_LEVEL_FLAGS 24 /* of a level, at most */

typedef struct CiSystemCompiler {
    char path[4096];  /* what is run */
    char words[1024]; /* arguments of $CC after the program, each ended by NUL */
    int nwords;
    char stamp[4224];  /* of the program: resolved path, size and time of change */
    char identity[65]; /* of what compiles: enters cache keys; "": it is not known (fingerprint.c) */
} CiSystemCompiler;

/* $CC (its words split at spaces; no shell is involved), cc, gcc, clang: the first that exists. */
bool ci_compiler_find(CiSystemCompiler *compiler);
const char *ci_compiler_tried(void); /* "$CC, cc, gcc, clang" */
/* Fills the identity; asks the compiler once for all builds of a runtime where it may be a wrapper.
 * Fails with CI_ERR_COMPILE when it does not answer at all, or CI_ERR_INTERRUPTED. */
void ci_compiler_identify(CiContext *ctx, CiRuntime *runtime, CiSystemCompiler *compiler,
                          double timeout_s);

/* offline_toolchain.c: the parts of cache keys that depend on the compiler which last filled a cache for a CPU
 * level. With them, its kernels are found without a compiler. A recalled compiler has no path.
 * cache may be NULL. */
void ci_compiler_remember(CiCache *cache, CiCpuLevel level, const CiSystemCompiler *compiler);
bool ci_compiler_find_offline(CiCache *cache, CiCpuLevel level, CiSystemCompiler *compiler);

/* Compiles `source` in `directory` as kernel.c to kernel.so, whose path goes to out. Fails with
 * CI_ERR_COMPILE, naming the command and the compiler's first lines, or CI_ERR_INTERRUPTED. */
typedef struct CiCompileJob {
    const CiSystemCompiler *compiler;
    const CiText *source;
    const bool *is_linked; /* per CiLibrary */
    CiCpuLevel level;
    bool is_fast; /* numerics="fast" */
    const char *directory;
    double timeout_s;
    bool (*should_stop)(void *arg);
    void *should_stop_arg;
} CiCompileJob;

void ci_compiler_run(CiContext *ctx, const CiCompileJob *job, char *out, size_t capacity);
/* All flags as one text, for cache keys. */
const char *ci_compiler_flags_text(CiContext *ctx, CiCpuLevel level, bool is_fast);

#endif
