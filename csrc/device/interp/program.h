/* What the interpreter runs: nests with their bodies, index expressions and symbols resolved to
 * slots. Fusion is forgotten: nests run one after another over their whole domain, every buffer
 * made inside a kernel is memory of its own. */
#ifndef CI_DEVICE_INTERP_PROGRAM_H
#define CI_DEVICE_INTERP_PROGRAM_H

#include "device/interp/math.h"
#include "device/interp/ops.h"

#define CI_INTERP_BLOCK 256

/* An index expression over slots of an environment of int64. */
typedef struct CiFormula {
    CiExprKind kind;
    int slot; /* symbol */
    int64_t value;
    int nargs;
    const struct CiFormula *args;
    const int64_t *coefs;
} CiFormula;

int64_t ci_formula_evaluate(const CiFormula *formula, const int64_t *env);

/* An element number along the lanes: base + lane*stride where linear, else evaluated for each lane.
 */
typedef struct CiInterpIndex {
    bool is_linear;
    CiFormula base, stride; /* linear: base at lane variable 0 */
    CiFormula whole;
    int nbinds; /* symbols that data gives: their slots, and the operations that made them */
    int slots[CI_MAX_OPERANDS], binds[CI_MAX_OPERANDS];
    CiFormula limits[CI_MAX_OPERANDS]; /* what they are below */
} CiInterpIndex;

typedef enum CiInterpKind {
    CI_INTERP_load,
    CI_INTERP_slot,
    CI_INTERP_index,
    CI_INTERP_const,
    CI_INTERP_op,
    CI_INTERP_math
} CiInterpKind;

typedef struct CiInterpScalar {
    CiInterpKind kind;
    CiDtype dtype;
    int args[CI_MAX_OPERANDS], nargs;
    int memory; /* load: which memory; slot: number among scalars */
    CiInterpIndex index;
    _Alignas(16) unsigned char value[16]; /* const, as in a block */
    CiInterpOp op;
    CiInterpRoutine routine;
    bool rounds; /* mathematics of halves */
} CiInterpScalar;

typedef enum CiInterpShape {
    CI_SHAPE_point,
    CI_SHAPE_scan,
    CI_SHAPE_inner,
    CI_SHAPE_outer
} CiInterpShape;

typedef struct CiInterpNest {
    CiInterpShape shape; /* inner: lanes along the reduce axis; outer: along the last point axis */
    int naxes, npoint, first_slot;
    int lane_axis; /* -1: none */
    CiFormula *extents;
    CiInterpScalar *ops;
    int nops, result;
    CiOp fold;
    CiFoldOrder order;
    bool is_ordered, is_arg, needs_truth;
    CiDtype dtype; /* values folded, in a block */
    CiDtype target_dtype;
    CiInterpOp combine, store_cast;
    int target;
    CiInterpIndex store;
    CiInterpOp placed; /* values are combined with what is there, or NULL */
    int pack_slot;     /* values are packed: the slot of their count; else -1 */
    int pack_value, pack_mask;
    CiFormula pack_limit;
} CiInterpNest;

/* A kernel is a list of nodes: nests alone, or those of a tree. */
typedef struct CiInterpNode CiInterpNode;
typedef struct CiInterpNodes {
    CiInterpNode *nodes;
    int count, capacity;
} CiInterpNodes;

struct CiInterpNode {
    CiTreeKind kind;
    CiInterpNest *nests; /* leaf */
    int nnests;
    int slot; /* for, check of a symbol */
    CiFormula extent;
    int condition;             /* while, if, check: memory */
    int number;                /* check: of the fault */
    bool is_symbol, has_limit; /* check: an i64, at least low and below extent, goes to slot */
    int64_t low;
    CiInterpNodes body, other; /* as CiTreeNode's */
    int *swaps;                /* memories, two for each swap */
    int nswaps;
};

typedef struct CiInterpKernel {
    CiInterpNodes nodes;
    int nsizes, nslots; /* sizes, then variables of the tree, then those of a nest */
    int nbuffers;       /* memories 0.. are the launch's; behind them the temporaries */
    int ntemps;
    CiFormula *temp_bytes;
    int *swapped; /* memories that exchange theirs, and their sizes */
    CiFormula *swapped_bytes;
    int nswapped;
    int max_ops;
} CiInterpKernel;

typedef struct CiInterpExecutable {
    CiExecutable base;
    CiContext *ctx; /* owns everything below */
    CiInterpMath math;
    int nkernels;
    CiInterpKernel *kernels;
} CiInterpExecutable;

/* compile.c: fails through exe->ctx. */
void ci_interp_compile(CiInterpExecutable *exe, const CiKernels *kernels);
/* launch.c */
int32_t ci_interp_launch(CiExecutable *executable, const CiLaunch *launch, CiFault *fault);

#endif
