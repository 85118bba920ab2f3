/* The differences between the languages of GPUs. The table for CUDA C++ is in cuda.c; a table for another language may be
 * in the tree or outside it. Texts are printed unchanged; a word that may be empty ends with a space if it is not. */
#ifndef CI_TARGET_GPU_DIALECT_H
#define CI_TARGET_GPU_DIALECT_H

#include "ir/proc.h"
#include "target/emit.h"

typedef struct CiGpuDialect {
    CiSpelling spelling;
    bool has_f64;
    /* Threads of a warp: CI_WARP, whose threads exchange values by `ci_shuffle`, `ci_before` and `ci_first` (printed by
     * `helpers`); or 1 if the language has no warps. Then threads exchange values through shared memory, and every barrier
     * is of the whole block. */
    int warp;
    int access_bytes;     /* the widest access in lanes; 1: scalar only. Lanes need templates */
    int threads;          /* threads of a block, if each thread has one point */
    bool has_wide_sizes;  /* size parameters always have 64 bits; else 32 if these suffice */
    bool shared_is_first; /* shared memory is declared before all statements of a kernel */
    /* A barrier also waits for threads that have returned: a failing check must not return before a barrier. */
    bool waits_for_ended;
    const char *global, *shared; /* qualifiers of pointers to global and to shared memory */
    const char *shared_array;    /* qualifier of an array in shared memory */
    const char *rows;            /* declares `rows`, shared memory of %lld bytes */
    /* Declares `rows` in kernels with tiles, if `helpers` prints copies to tiles and products of tiles; else NULL. */
    const char *rows_of_tiles;
    const char *first; /* first line of a kernel's body; NULL: none */
    const char *restrict_word;
    const char *thread, *block; /* unsigned index of the thread, and of the block */
    const char *barrier, *warp_barrier;
    /* Printed before a kernel's name. %d: its threads; %s: ", N" if N blocks should run on one multiprocessor. */
    const char *kernel;
    /* The prefix of the atomic functions for 32 and for 64 bits; NULL: there are none. atomic.def has the suffixes. */
    const char *atomic32, *atomic64;
    bool has_lower_atomics; /* suffixes are in lower case */
    const char *long_word;  /* type of a 64-bit integer argument of an atomic function */
    /* Functions: a float from its 32 bits; the number of set bits of a 64-bit integer. */
    const char *float_of_bits, *count_bits;
    const char *prelude; /* printed first */
    /* Prints the definitions of the dialect's functions that the source uses (ci_emit_uses). NULL: there are none. */
    void (*helpers)(CiText *out, CiEmitter *e);
} CiGpuDialect;

/* Returns the predicate: true if the language has an atomic operation for op and dtype. */
bool (*ci_gpu_has_atomic(const CiGpuDialect *gpu))(CiOp op, CiDtype dtype);

extern const CiGpuDialect ci_gpu_cuda;

#endif
