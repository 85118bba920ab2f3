/* Procs as CUDA C++. A block runs the statements of its grid loop. Each thread runs the statements
 * outside of loops over threads, and its own iteration of a loop over threads. */
#ifndef CI_TARGET_CUDA_PRINT_H
#define CI_TARGET_CUDA_PRINT_H

#include "target/c/c.h"

typedef struct CiCudaPrinter {
    CiCPrinter c; /* first: what dialects are given */
    /* of the proc being printed */
    int threads, together; /* of a point; points that share a block of the GPU */
    bool may_idle;         /* the last block may have more of them than there are */
    bool is_shared_out;    /* points are, to threads */
    bool meets_again;      /* in a loop of the block's */
    bool is_in_thread;     /* of a loop over threads */
    const CiExpr *other;   /* of a pair that meets: who is not this thread */
} CiCudaPrinter;

CiCPrinter *ci_cuda_printer_new(CiEmitter *base, CiSym *sym);
void ci_cuda_print_proc(CiCPrinter *p, CiText *out, const CiProc *proc);
/* source.c: all procs, and what they call. */
void ci_cuda_print_source(CiText *out, const CiKernels *kernels, const CiProcs *procs);

/* lanes.c: neighbouring lets and stores in lanes as one loop over them; the last one. */
const CiStmt *ci_cuda_print_lanes(CiCPrinter *p, const CiStmt *first);
void ci_cuda_print_choice(CiCPrinter *p, const CiStmt *let);
bool ci_cuda_is_in_lanes(const CiCPrinter *p, const CiStmt *stmt);
/* Helper functions in C++, printed before the kernels that use them. */
extern const char ci_cuda_lanes_helper[];

/* function.c. The name of what is within 2 ULP; and the text of C++ that the kernels ask for. */
const char *ci_cuda_function(CiContext *ctx, CiOp op, CiDtype dtype);
void ci_cuda_add_functions(CiText *out, const char *kernels);

/* atomic.c: what threads may combine at one element at once. */
bool ci_cuda_has_atomic(CiOp op, CiDtype dtype);
void ci_cuda_print_atomic(CiCPrinter *p, const CiStmt *store);

/* block_reduce.c: parts that threads hold become one that all hold. */
void ci_cuda_print_block_reduce(CiCudaPrinter *p, const CiStmt *meet);
/* And each holds what those before it have, too. */
void ci_cuda_print_prefix(CiCudaPrinter *p, const CiStmt *prefix);

/* Launch properties of a proc. */
const CiExpr *ci_cuda_blocks(CiSym *sym, const CiProc *proc);
int ci_cuda_threads(const CiProc *proc);
int64_t ci_cuda_shared_bytes(const CiProc *proc);
/* Lanes of the access move at once, memory being aligned to all of them. lane_symbols: those that
 * have a value in each lane. */
CiMap *ci_cuda_lane_symbols(CiContext *ctx, const CiProc *proc);
bool ci_cuda_moves_at_once(CiSym *sym, const CiMap *lane_symbols, const CiStmt *stmt, CiType type);
/* Bytes that the memory of a parameter must be aligned to, 0: as its elements are. */
int ci_cuda_alignment(CiContext *ctx, CiSym *sym, const CiProc *proc, const CiMemory *param);

#endif
