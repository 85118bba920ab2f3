/* The differences between the languages of GPUs. CUDA C++ is the row in cuda.c; another language is a
 * row of its own, in the tree or outside it.
 *
 * Texts are printed as they are. Words that may be empty end with a space where they are not. */
#ifndef CI_TARGET_GPU_DIALECT_H
#define CI_TARGET_GPU_DIALECT_H

#include "ir/proc.h"
#include "target/emit.h"

typedef struct CiGpuDialect {
    CiSpelling spelling;
    bool has_f64;
    /* Threads of a block that proceed together and exchange values by `ci_shuffle`, `ci_before` and
     * `ci_first`, which `helpers` prints: CI_WARP. 1: there are none. Threads then exchange values
     * through shared memory, and every barrier is one of the whole block. */
    int warp;
    int access_bytes;     /* of one access, in lanes; 1: no lanes. Lanes need a language with templates */
    int threads;          /* of a block that has a point per thread */
    bool has_wide_sizes;  /* sizes are parameters of 64 bits; else of 32 where these suffice */
    bool shared_is_first; /* shared memory is declared before all statements of a kernel */
    /* A barrier waits for threads that have ended, so that a check must not end one before it. */
    bool waits_for_ended;
    const char *global, *shared; /* words for pointers to memory of the device, of the block */
    const char *shared_array;    /* before the declaration of an array of the block's memory */
    const char *rows;            /* declares `rows`, the block's memory of so many bytes (%lld) */
    /* Declares `rows` in kernels with tiles, if `helpers` prints copies to tiles and products of tiles; else NULL. */
    const char *rows_of_tiles;
    const char *first; /* the first line of a kernel; NULL: none */
    const char *restrict_word;
    const char *thread, *block; /* unsigned numbers of the thread and of the block */
    const char *barrier, *warp_barrier;
    /* Before a kernel's name: its threads (%d), and as text (%s) ", N" for N blocks at once. */
    const char *kernel;
    /* The beginning of an atomic function's name, for elements of 32 and of 64 bits; NULL: there is
     * none. The rest is the row of atomic.def. */
    const char *atomic32, *atomic64;
    bool has_lower_atomics; /* the rest is in lower case */
    const char *long_word;  /* an integer of 64 bits, for an atomic function */
    /* Functions: the float of 32 bits, and how many bits of a number of 64 are set. */
    const char *float_of_bits, *count_bits;
    const char *prelude; /* before all else */
    /* Prints the functions that the source uses (ci_emit_uses) besides its own. NULL: there are none. */
    void (*helpers)(CiText *out, CiEmitter *e);
} CiGpuDialect;

/* Threads may combine at an element at once. */
bool (*ci_gpu_has_atomic(const CiGpuDialect *gpu))(CiOp op, CiDtype dtype);

extern const CiGpuDialect ci_gpu_cuda;

#endif
