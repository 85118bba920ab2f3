/* A program: what a call runs. Reference-counted, with memory of its own; immutable once made, except
 * for its recordings, so any number of threads may run it at once.
 *
 * Location of memory. For backends that share the host's memory everything is host memory. For a
 * backend with `allocate`, array inputs and result buffers are contiguous memory of the graph's
 * devices, allocated by the caller. If the wrapper was made with `host_arrays`, they are host
 * memory and the program copies.
 *
 * Symbols are numbered: the extents of inputs in the order of the wrapper's symbol lines, then the
 * variables of loops around kernels and what data define, in order of their lines. A static program
 * has no extents among them. */
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
    int device;             /* number of the one whose memory it is to be */
} CiResultBuffer;

/* One returned value: a view of a result buffer or of an input. */
typedef struct CiReturn {
    CiDtype dtype;
    CiKind kind;
    bool is_whole;     /* the result buffer itself */
    int result_buffer; /* number among result buffers, or -1 */
    int input;         /* or the input it is a view of, or -1 */
    int rank;
    int64_t offset; /* elements */
    const int64_t *sizes, *strides;
} CiReturn;

typedef struct CiCall {
    void *const *inputs; /* data of each graph input; NULL for scalars */
    const int64_t *const
        *sizes; /* per input; read only where symbols need them (may be NULL without symbols) */
    const CiSlot *scalars; /* per scalar input, in order */
    /* Returns memory for a result buffer, or NULL (an exception is the caller's own). */
    void *(*new_result)(void *arg, int number, const CiResultBuffer *result);
    /* Memory for values between steps, and its end: all of the program's one device, and large buffers of the host; take
     * returns a status. NULL: from the device and the runtime. */
    int32_t (*take)(void *arg, size_t bytes, void **block);
    void (*give)(void *arg, void *block);
    /* The program does not read this input again; NULL: the caller keeps all. */
    void (*drop)(void *arg, int input);
    void *arg;
    int max_threads;
    void *const *streams; /* per device of the program; NULL, all or one: the device's own */
    int64_t *symbols;   /* out, unless NULL: the values of all symbols when the call ended */
    bool has_symbols;   /* in, too: ci_program_symbols has filled them, sizes are not read */
    const char *reason; /* out: of CI_ERR_CHECK, what did not hold; the program's */
    char *message; /* out, of message_size bytes or NULL: of CI_ERR_ASSERT, what does not hold;
                      of a call without memory, what it would hold */
    size_t message_size;
    const char *unrecorded; /* out: why a device's work is not recorded from now on; the program's. NULL: as before */
    CiFault fault; /* out */
    int64_t peak;  /* out: of a watched run, bytes that the program held at most */
    unsigned
        float_flags; /* out: FE_DIVBYZERO, FE_OVERFLOW, FE_UNDERFLOW, FE_INVALID left by kernels */
} CiCall;

/* One device of a program, and what is built for it: NULL where no kernel runs there. */
typedef struct CiProgramDevice {
    CiQueue queue;
    CiExecutable *executable;
} CiProgramDevice;

/* Flattens a wrapper into a program of its own memory, for its devices by number. Owns their
 * executables from then on and retains the externs; options say what runs are held against; the
 * wrapper's context may go. On failure *program is NULL, nothing is taken and message (of capacity
 * bytes) tells why. */
CiStatus ci_program_open(const CiWrapper *wrapper, const CiOptions *options,
                         const CiProgramDevice *devices, int count, CiProgram **program,
                         char *message, size_t capacity);
int ci_program_device_count(const CiProgram *program);
/* True if `ci_program_end` may wait for a device, which may wait for what other threads give it. */
bool ci_program_waits(const CiProgram *program);
/* Waits for its devices and closes its executables; nothing can be done with it then but a release. */
void ci_program_end(CiProgram *program);
/* Ends and frees it. */
void ci_program_release(CiProgram *program);
int ci_program_result_buffer_count(const CiProgram *program);
int ci_program_return_count(const CiProgram *program);
/* Layout of return `position` for these values of all symbols (NULL: not known; right for programs
 * whose results need none). Pointers
 * live in the program or in `storage` (at least 2*CI_MAX_RANK int64). */
void ci_program_return_at(const CiProgram *program, int position, const int64_t *symbols,
                          int64_t *storage, CiReturn *out);
int ci_program_symbol_count(const CiProgram *program);
/* Fills values of the program's symbols from a call's sizes. */
void ci_program_symbols(const CiProgram *program, const CiCall *call, int64_t *symbols);
bool ci_program_is_static(const CiProgram *program);
/* Elements touched by one call: worth releasing a lock? INT64_MAX when sizes or loops leave it
 * open. */
int64_t ci_program_work(const CiProgram *program);
/* The result of recording a part of the program (option graphs), in the order of the wrapper's
 * partitions; none if nothing is recorded. Counts are of runs, separately for each partition. */
#define CI_WHY_NOT_RECORDED 256
typedef struct CiRecordingUse {
    int launches, device;
    int64_t replayed, launched;
    int recordings;                    /* there are now */
    int copied;                        /* arguments that are copied before a replay */
    char why_not[CI_WHY_NOT_RECORDED]; /* "": it is recorded where a run has what an earlier one had */
} CiRecordingUse;
int ci_program_partition_count(const CiProgram *program);
void ci_program_partition_at(const CiProgram *program, int position, CiRecordingUse *out);
/* Kernel numbers (CiKernel.id, the k<id> of the printed wrapper) are below this; library calls have
 * one too. */
int ci_program_kernel_count(const CiProgram *program);
/* The arguments of k<id> as printed: buffers, then scalars (numbers of slots), then all symbols if
 * there are any. -1 buffers: no such kernel. */
int ci_program_kernel_buffer_count(const CiProgram *program, int kernel);
int ci_program_kernel_scalar_count(const CiProgram *program, int kernel);
int ci_program_kernel_scalar_at(const CiProgram *program, int kernel, int position);
/* The whole call, in C. 0 or a CiStatus. No setjmp, no lock of an interpreter; nothing is left
 * allocated on failure. */
int32_t ci_program_run(CiProgram *program, CiCall *call);
/* One kernel with its buffers, for the Python wrapper: memory of the buffers the kernel takes, in
 * its order. */
int32_t ci_program_launch(CiProgram *program, int kernel, void *const *buffers,
                          const int64_t *symbols, const CiSlot *scalars, int max_threads,
                          CiFault *fault);
/* Externs as numbered in the printed wrapper. The program holds a reference to their data. */
int ci_program_extern_count(const CiProgram *program);
const CiExtern *ci_program_extern_at(const CiProgram *program, int position);

#endif
