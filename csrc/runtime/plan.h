/* The inside of a program: what flatten.c makes, execute.c runs and program.c answers from.
 * Everything is numbers: slots for pointers, value numbers (sym/values.h) for sizes, steps for
 * lines.
 *
 * Slots: the graph's inputs first, by parameter number, then one per buffer the program makes. A
 * slot of the program's own is NULL while it holds nothing, so a failed call frees whatever is not.
 */
#ifndef CI_RUNTIME_PLAN_H
#define CI_RUNTIME_PLAN_H


#include "runtime/program.h"
#include "sym/values.h"

/* The lines with an effect at run time, and the jumps that implement blocks. Fields by kind:
 *
 *   alloc, alloc_result, reuse, free, copy: slot, other, value (bytes), number (of the result).
 *   drop: slot (the input).
 *   part: slot, other, value (offset in bytes). leave: slot.
 *   swap, copies of all kinds: slot, other. wait: slot. launch, extern: number. join: number of the extern.
 *   check: slot, number (of the text).
 *   for, batch, next: number (the loop's segment), value (extent), variable.
 *   define: slot, number (segment), value (limit), other (value number of the least), variable.
 *   partition: number, target.
 *   unless: jumps if the bool in slot is false. */
typedef enum CiStepKind {
#define LINE(kind, buffer, other, block, record, text, python, c) CI_STEP_##kind,
#include "wrapper/lines.def"
    CI_STEP_partition, /* its recordable steps follow, up to the one before its target */
    CI_STEP_next,
    CI_STEP_batch, /* a `for` whose turns may run at the same time, up to the step before its target */
    CI_STEP_unless,
    CI_STEP_jump
} CiStepKind;

typedef struct CiStep {
    CiStepKind kind;
    int slot, other;
    int number;   /* launch, extern, alloc_result: which */
    int value;    /* bytes; extent */
    int variable; /* for, next, define: value number */
    int target;   /* where it jumps; define: number of the reason */
} CiStep;

typedef struct CiPlanLaunch {
    CiLaunch
        launch; /* buffers, scalars, threads are the call's; with symbols also sizes and counts */
    const int *slots;
    int nbuffers, device;
    int sizes, unit_work;
    int *scalars; /* slots of run-time scalars it reads */
    int nscalars, capscalars;
    int first_reason; /* of the checks in it: a fault's node counts from there */
} CiPlanLaunch;

typedef struct CiPlanExtern {
    CiExtern ext;
    CiOp op;
    CiSide side; /* whose memory it works on */
    int noperands;
    int *slots;   /* operands, then the result */
    bool is_whole;  /* the call makes all of a buffer, whose memory has nothing else */
    bool is_result; /* the buffer is a result of the program */
    bool has_join;  /* a later step waits for the collective */
    int *offsets; /* elements */
    int *sizes, *strides;
    int *ranks;
    CiDtype *dtypes;
    unsigned quiet; /* CiLoc.quiet */
} CiPlanExtern;

typedef struct CiPlanSlot {
    bool is_own; /* allocated and freed by the program */
    bool is_part; /* of what another slot holds */
    CiSide side;
    int bytes;
    /* Of host memory that a device reaches by itself: that device's side; and the slot of the event of a
     * copy that is on its way there. */
    CiSide pinned;
    int event;
    bool is_event; /* it holds no memory */
    const char *name; /* of the program's and of results: the buffer, and the user's line */
} CiPlanSlot;

typedef struct CiRecordings CiRecordings; /* record.h */

/* A number of the caller's that a launch is told. */
typedef struct CiPlanScalar {
    int slot;  /* in CiCall.scalars */
    int words; /* of 8 bytes */
} CiPlanScalar;

/* A run of steps that a device can record (wrapper/partition.h), in the order of hoist.c, with the
 * inputs that determine its effect. */
typedef struct CiPlanPartition {
    int device, nlaunches;
    bool is_never; /* replayed */
    int *slots; /* whose addresses it uses: of memory that others have had */
    int nslots, capslots;
    int *slot_bytes; /* value number of the bytes of each, of a dense input that it only reads; else -1 */
    int capbytes, nbytes;
    int *temps; /* slots of memory that is born in it: nborn for others, then its own */
    int ntemps, captemps, nborn;
    int64_t max_copied; /* most bytes of an array that is copied before or after a replay */
    int *values; /* of its symbols */
    int nvalues, capvalues;
    CiPlanScalar *scalars;
    int nscalars, capscalars;
    CiRecordings *recordings; /* changes from run to run, under its own lock (record.h) */
} CiPlanPartition;

typedef struct CiPlanResult {
    CiResultBuffer buffer; /* of a static program, whole */
    int sizes, strides;
} CiPlanResult;

typedef struct CiPlanReturn {
    CiReturn value; /* of a static program, whole */
    int offset, sizes, strides;
} CiPlanReturn;

typedef struct CiPlanSource { /* of an extent, or of an integer argument (axis -1) */
    int input, axis;
    int scalar; /* its slot in CiCall.scalars */
} CiPlanSource;

struct CiRunVerifier;
struct CiProgram {
    CiContext *ctx;
    CiProgramDevice devices[CI_MAX_DEVICES];
    int ndevices;
    CiValues values;
    CiPlanSource *sources;
    int nsources, capsources;
    /* Layouts of returned values are the first values, and the first code of each segment. */
    int return_values;
    int *return_code; /* per segment */
    bool needs_table; /* symbols of any kind: each call has a table of its own */

    int ninputs, nslots;
    int *scalar_inputs; /* inputs that are run-time scalars, in order of their slots in
                           CiCall.scalars */
    int nscalars, capscalars;
    CiPlanSlot *slots;
    int capslots;
    CiStep *steps;
    int nsteps, capsteps;
    CiPlanLaunch *launches; /* by kernel number; nbuffers -1 where there is none */
    int nlaunches;
    CiPlanExtern *externs;
    int nexterns;
    const char **reasons; /* why checks fail */
    int nreasons, capreasons;
    CiPlanResult *results;
    int nresults, capresults;
    CiPlanReturn *returns;
    int nreturns;
    int max_arguments; /* pointers one launch or extern takes */
    int max_rows;      /* operands of one extern, and its result */
    CiPlanPartition *partitions;
    int npartitions, cappartitions;
    int64_t work;
    struct CiRunVerifier *verifier; /* what runs are held against, or NULL */
};

#define CI_RETURN_VALUE_LIMIT 1024

/* Fills a program, zeroed but for ctx and devices. Fails through program->ctx. */
void ci_program_flatten(CiProgram *program, const CiWrapper *wrapper, const CiOptions *options);
/* A launch with everything filled that depends on values. */
void ci_plan_launch_fill(const CiPlanLaunch *plan, const int64_t *values, CiLaunch *launch);

#endif
