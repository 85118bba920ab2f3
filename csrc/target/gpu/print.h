/* Procs as kernels of a GPU, in the language of a dialect. A block runs the statements of its grid
 * loop. Each thread runs the statements outside of loops over threads, and its own iteration of a
 * loop over threads. */
#ifndef CI_TARGET_GPU_PRINT_H
#define CI_TARGET_GPU_PRINT_H

#include "target/c/c.h"
#include "target/gpu/dialect.h"

typedef struct CiGpuPrinter {
    CiCPrinter c; /* must be first: dialect functions get a pointer to it */
    const CiGpuDialect *gpu;
    /* State of the proc being printed. */
    int threads, together; /* threads per point; points per block */
    bool may_idle;         /* the last block may have fewer points than `together` */
    bool is_shared_out;    /* points are distributed over threads */
    bool reduces_again;      /* a reduction is inside a loop of the block, so its shared memory is reused */
    bool is_in_thread;     /* inside a loop over threads */
    const CiExpr *other;   /* when a pair of threads combines: the other thread */
    CiText shared;         /* declarations of shared memory, printed first */
    CiMap *declared;       /* their names, interned */
    int64_t shared_bytes;  /* bytes of the declared shared memory, without `rows` */
} CiGpuPrinter;

CiCPrinter *ci_gpu_printer_new(CiEmitter *base, CiSym *sym, const CiGpuDialect *gpu);
void ci_gpu_print_proc(CiCPrinter *p, CiText *out, const CiProc *proc);
/* source.c: prints all procs and the functions that they call. */
void ci_gpu_print_source(CiText *out, const CiKernels *kernels, const CiProcs *procs);

/* lanes.c: the name of the vector type. ci_gpu_print_lanes prints the loop over lanes that begins at `first` and returns
 * the loop's last statement. */
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

/* shared.c: prints a barrier of the threads of a point. ci_gpu_declare_shared declares an array in shared memory; false if
 * it was declared before: then threads may still read its old contents. */
void ci_gpu_print_barrier(CiGpuPrinter *p);
bool ci_gpu_declare_shared(CiGpuPrinter *p, CiDtype dtype, const char *name, int count);

/* tiles.c: prints copies to tiles and products of tiles. ci_cuda_add_tiles prints the CUDA functions that they call. */
bool ci_gpu_is_of_tiles(const CiStmt *stmt);
void ci_gpu_print_tiles(CiGpuPrinter *p, const CiStmt *stmt);
void ci_cuda_add_tiles(CiText *out, CiEmitter *e);

/* Launch properties of a proc. */
int ci_gpu_threads(const CiProc *proc);
int64_t ci_gpu_shared_bytes(const CiProc *proc);
/* The alignment, in bytes, that the proc requires of a parameter's memory; 0: that of its elements. */
int ci_gpu_alignment(const CiProc *proc, const CiMemory *param);

#endif
