/* Procs as kernels of a GPU, in the language of a dialect. A block runs the statements of its grid
 * loop. Each thread runs the statements outside of loops over threads, and its own iteration of a
 * loop over threads. */
#ifndef CI_TARGET_GPU_PRINT_H
#define CI_TARGET_GPU_PRINT_H

#include "target/c/c.h"
#include "target/gpu/dialect.h"

typedef struct CiGpuPrinter {
    CiCPrinter c; /* first: what dialects are given */
    const CiGpuDialect *gpu;
    /* of the proc being printed */
    int threads, together; /* of a point; points that share a block of the GPU */
    bool may_idle;         /* the last block may have more of them than there are */
    bool is_shared_out;    /* points are, to threads */
    bool reduces_again;      /* in a loop of the block's */
    bool is_in_thread;     /* of a loop over threads */
    const CiExpr *other;   /* of a pair that is combined: the thread that is not this one */
    CiText shared;         /* declarations of shared memory that come first */
    CiMap *declared;       /* their names, interned */
    int64_t shared_bytes;  /* of what is declared, without rows */
} CiGpuPrinter;

CiCPrinter *ci_gpu_printer_new(CiEmitter *base, CiSym *sym, const CiGpuDialect *gpu);
void ci_gpu_print_proc(CiCPrinter *p, CiText *out, const CiProc *proc);
/* source.c: all procs, and what they call. */
void ci_gpu_print_source(CiText *out, const CiKernels *kernels, const CiProcs *procs);

/* lanes.c: the type of so many elements; a loop over lanes, from its first statement on, returning the last one. */
const char *ci_gpu_lanes_type(CiCPrinter *p, const char *element, int lanes);
const CiStmt *ci_gpu_print_lanes(CiCPrinter *p, const CiStmt *first);
void ci_gpu_print_choice(CiCPrinter *p, const CiStmt *let);
/* atomic.c */
void ci_gpu_print_atomic(CiCPrinter *p, const CiStmt *store);

/* block_reduce.c: combines the partial results of threads into one that each of them gets. */
void ci_gpu_print_block_reduce(CiGpuPrinter *p, const CiStmt *reduction);
/* Combines each thread's value with those of the threads before it. */
void ci_gpu_print_prefix(CiGpuPrinter *p, const CiStmt *prefix);
void ci_gpu_print_registers(CiGpuPrinter *p, const CiStmt *registers);

/* shared.c: a barrier of the threads of a point. Declares an array of shared memory; false where it
 * has been declared before, so that threads may still read it. */
void ci_gpu_print_barrier(CiGpuPrinter *p);
bool ci_gpu_declare_shared(CiGpuPrinter *p, CiDtype dtype, const char *name, int count);

/* tiles.c: copies to tiles, and products of tiles. The functions that the source calls for them, in CUDA. */
bool ci_gpu_is_of_tiles(const CiStmt *stmt);
void ci_gpu_print_tiles(CiGpuPrinter *p, const CiStmt *stmt);
void ci_cuda_add_tiles(CiText *out, CiEmitter *e);

/* Launch properties of a proc. */
int ci_gpu_threads(const CiProc *proc);
int64_t ci_gpu_shared_bytes(const CiProc *proc);
/* Bytes that the memory of a parameter must be aligned to, 0: as its elements are. */
int ci_gpu_alignment(const CiProc *proc, const CiMemory *param);

#endif
