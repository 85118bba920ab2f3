/* A program: what a call runs. Reference-counted, with memory of its own; immutable once made, so any number of
 * threads may run it at once. */
#ifndef CI_RUNTIME_PROGRAM_H
#define CI_RUNTIME_PROGRAM_H

#include "device/device.h"
#include "wrapper/wrapper.h"

typedef struct CiProgram CiProgram;

/* An array that leaves the program: allocated by the caller, in a dense stride order. */
typedef struct CiResultBuffer {
    CiDtype dtype;
    int rank;
    const int64_t *sizes;
    const int64_t *strides; /* elements */
} CiResultBuffer;

/* One returned value: a view of a result buffer or of an input. */
typedef struct CiReturn {
    CiDtype dtype;
    CiKind kind;
    bool is_whole;      /* the result buffer itself */
    int result_buffer;  /* number among result buffers, or -1 */
    int input;          /* or the input it is a view of, or -1 */
    int rank;
    int64_t offset;     /* elements */
    const int64_t *sizes, *strides;
} CiReturn;

typedef struct CiCall {
    void *const *inputs;            /* data of each graph input; NULL for scalars */
    const int64_t *const *sizes;    /* per input; read only where symbols need them (may be NULL without symbols) */
    const CiSlot *scalars;          /* per scalar input, in order */
    /* Returns memory for a result buffer, or NULL (an exception is the caller's own). */
    void *(*new_result)(void *arg, int number, const CiResultBuffer *result);
    void *arg;
    int max_threads;
    CiFault fault;                  /* out */
    unsigned float_flags;           /* out: FE_DIVBYZERO, FE_OVERFLOW, FE_UNDERFLOW, FE_INVALID left by kernels */
} CiCall;

CiProgram *ci_program_retain(CiProgram *program);
void ci_program_release(CiProgram *program);
int ci_program_result_buffer_count(const CiProgram *program);
int ci_program_return_count(const CiProgram *program);
/* Layout of return `position` for these symbol values (static programs: symbols NULL). Pointers live in the program or in `storage`
 * (at least 2*CI_MAX_RANK int64). */
void ci_program_return_at(const CiProgram *program, int position, const int64_t *symbols, int64_t *storage, CiReturn *out);
int ci_program_symbol_count(const CiProgram *program);
/* Fills values of the program's symbols from a call's sizes. */
void ci_program_symbols(const CiProgram *program, const CiCall *call, int64_t *symbols);
bool ci_program_is_static(const CiProgram *program);
int64_t ci_program_work(const CiProgram *program); /* elements touched by a static program: worth releasing a lock? */
int ci_program_kernel_count(const CiProgram *program);
/* The whole call, in C. 0 or a CiStatus. No setjmp, no lock of an interpreter; nothing is left allocated on failure. */
int32_t ci_program_run(CiProgram *program, CiCall *call);
/* One kernel with its buffers, for the Python wrapper: memory of the buffers the kernel takes, in its order. */
int32_t ci_program_launch(CiProgram *program, int kernel, void *const *buffers, const int64_t *symbols, const CiSlot *scalars, int max_threads, CiFault *fault);
int ci_program_extern_count(const CiProgram *program);
const CiExtern *ci_program_extern_at(const CiProgram *program, int position);

#endif
