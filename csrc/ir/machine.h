/* The machine that kernels are generated for, as plain data. A backend copies a row of machine.def and sets the values that it
 * finds on the actual device. */
#ifndef CI_IR_MACHINE_H
#define CI_IR_MACHINE_H

#include <limits.h>

#include "ir/loop.h"

/* Constants that machine.def shares with other code. */
#define CI_CACHE_LINE 64 /* bytes */
/* Lanes in a tile of an outer axis with several stages, small enough that the tile's rows stay in the L1 cache. */
#define CI_STAGE_TILE 64
/* Lanes of the interpreter's values. */
#define CI_INTERP_LANES 256
/* Threads of a warp, which exchange values by shuffles. */
#define CI_WARP 32
/* Bytes of shared memory that a block may use without a request. */
#define CI_STATIC_SHARED_BYTES 49152
/* Bytes that a block of sm_90 may request. */
#define CI_MOST_SHARED_BYTES 232448

/* Bits of CiMachine.dtypes. */
#define CI_DTYPE_BIT(dtype) (UINT32_C(1) << (dtype))
#define CI_DTYPES_ALL (CI_DTYPE_BIT(CI_DTYPE_COUNT) - 1)
_Static_assert(CI_DTYPE_COUNT < 32, "CiMachine.dtypes has a bit for each dtype");

#define CI_FAMILIES(F) F(cpu) F(gpu) F(interp)
typedef enum CiFamily {
#define F(name) CI_FAMILY_##name,
    CI_FAMILIES(F)
#undef F
    CI_FAMILY_COUNT
} CiFamily;

/* Columns of choices.def. */
typedef enum CiColumn { CI_COLUMN_lanes, CI_COLUMN_threads, CI_COLUMN_COUNT } CiColumn;

#define CI_MACHINES(M) M(generic) M(cpu) M(interp) M(sm_90)
typedef enum CiMachineId {
#define M(name) CI_MACHINE_##name,
    CI_MACHINES(M)
#undef M
    CI_MACHINE_COUNT
} CiMachineId;

typedef struct CiMachine {
#define PARAMETER(type, name, generic, cpu, interp, sm_90, doc) type name;
#include "ir/machine.def"
    /* Returns NULL if vector instructions compute the operation in lanes, else the reason; then the C compiler may vectorize
     * the loop. The pointer is NULL if all operations have such instructions. */
    const char *(*why_not_vector)(CiContext *ctx, CiOp op, CiDtype operand, CiDtype result);
    /* True if instructions compress vectors of the dtype. NULL: none do. */
    bool (*has_pack)(CiDtype dtype);
    /* True if threads may combine at one element at once, in any order. NULL: never. */
    bool (*has_atomic)(CiOp op, CiDtype dtype);
    const struct CiGpuDialect *dialect; /* of a GPU: the language of its kernels; else NULL */
    /* The device as the program uses it. */
    const char *device, *backend; /* "cpu", "c" */
    bool has_memory;              /* the device has its own memory */
    bool host_arrays;   /* arguments and results are in host memory and are copied */
    bool starts_copies; /* copies to the host are asynchronous */
    bool stores_to_host; /* kernels can store directly to that host memory */
    bool records;       /* launches are recorded and replayed (CUDA graphs) */
    /* True for library calls that the device executes on its own memory (NULL: none), and for those of them that can be
     * recorded (NULL: all). */
    bool (*takes_extern)(const CiExternItem *item);
    bool (*records_extern)(const CiExternItem *item);
    bool has_collectives;
    const int64_t *choices; /* values of choices.def that the user sets; NULL: the column's */
    bool *requested; /* by row of choices.def: it had an effect on this compile; NULL: not recorded */
} CiMachine;

/* A row of machine.def; names, functions and choices are not set. */
CiMachine ci_machine(CiMachineId id);
/* The row `cpu` with the size and number of vector registers set. */
CiMachine ci_machine_of_cpu(int vector_bytes, int vector_registers);

#endif
