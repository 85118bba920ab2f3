/* The interpreter's program: procs with values, index expressions, symbols and memory resolved to
 * slots. Everything needed is copied, so that the compilation's memory can be freed. */
#ifndef CI_DEVICE_INTERP_PROGRAM_H
#define CI_DEVICE_INTERP_PROGRAM_H

#include "codegen/codegen.h"
#include "device/device.h"
#include "device/interp/math.h"
#include "device/interp/ops.h"

/* An index expression over slots of an environment of int64. */
typedef struct CiFormula {
    CiExprKind kind;
    int slot; /* symbol */
    int64_t value;
    int nargs;
    const struct CiFormula *args;
    const int64_t *coefs;
} CiFormula;

/* An index expression: of one lane, or, where it names symbols that have a value in each, those. */
typedef struct CiInterpIndex {
    CiFormula formula;
    int nvarying;
    int slots[CI_MAX_OPERANDS], values[CI_MAX_OPERANDS];
} CiInterpIndex;

typedef struct CiInterpAccess {
    int memory;
    int element; /* values in one: vectors in memory are as many */
    CiInterpIndex index;
    CiFormula stride;
} CiInterpAccess;

typedef struct CiInterpTest {
    CiCompare compare;
    CiFormula left, right;
    int value;
} CiInterpTest;

typedef struct CiInterpStmt CiInterpStmt;
typedef struct CiInterpStmts {
    CiInterpStmt *stmts;
    int count, capacity;
} CiInterpStmts;

/* As CiStmt; what one kind does not use is zero. */
struct CiInterpStmt {
    CiStmtKind kind;
    CiInterpStmts body, other;
    int slot;       /* for: the variable; bind: the symbol */
    int other_slot; /* for, of a pair that is combined; number of iterations that the body runs at once */
    bool has_runs;  /* for: it does several */
    bool is_costly;   /* a reduction in which warps combine halves */
    bool is_own;    /* multiply: the threads have the left factor */
    CiRunMode run;
    CiFormula extent, live, limit;
    bool has_live, has_limit, is_atomic;
    int value, lanes; /* multiply: rows, columns */
    CiDtype dtype; /* of the value made, or stored */
    CiOp op;
    int args[CI_MAX_OPERANDS], nargs;
    CiInterpIndex expr;
    CiInterpAccess at;
    CiInterpAccess in[2];      /* apply: `nargs` operands; `limit` is how many elements, or steps of a multiply */
    int memory, partner, cell; /* alloc, swap; calls and running forms */
    int64_t low;               /* bind: least value */
    int number;
    _Alignas(16) unsigned char constant[16];
    CiInterpOp compute; /* of values, or of a value with what is stored or runs */
    CiInterpRoutine routine;
    void (*round)(float *block, int64_t count); /* what comes out, to a narrow float; or NULL */
    bool is_math, is_ufunc;
    int ufunc;      /* the number of its loop */
    bool is_one[2]; /* its operand is one value, the same in every lane */
    CiInterpTest *tests;
    int ntests;
};

/* A memory: a parameter, or bytes that an alloc asks for. */
typedef struct CiInterpMemory {
    CiDtype dtype;
    bool has_size;      /* of a parameter: it may name what the kernel does not take */
    int slot_of_scalar; /* of an argument; else -1 */
    int64_t lanes;
    bool is_shared;  /* by the threads of a block, or by units */
    bool is_partial; /* of a launch */
    CiFormula offset;
    CiFormula size, first;
} CiInterpMemory;

typedef struct CiInterpKernel {
    CiInterpStmts body;
    int nsizes, nslots;
    CiInterpMemory *memories; /* the launch's buffers first */
    int nbuffers, nparams, nmemories;
    int *swapped; /* memories that exchange theirs */
    int nswapped;
    size_t *values; /* where each value lies among those of a launch */
    int nvalues;
    size_t value_bytes;
} CiInterpKernel;

typedef struct CiInterpExecutable {
    CiExecutable base;
    CiContext *ctx; /* owns everything below */
    CiInterpMath math;
    bool is_checked; /* every access, as check.c says */
    CiInterpKernel *kernels;
    CiInterpKernel *finishes; /* that run when all units of a kernel have; without a body: none */
} CiInterpExecutable;

/* compile.c: fails through exe->ctx. */
void ci_interp_compile(CiInterpExecutable *exe, const CiKernels *kernels, const CiProcs *procs);
/* interp.c: of what the backend's `lower` makes. */
CiExecutable *ci_interp_build(CiContext *ctx, const CiQueue *queue, const CiKernels *kernels,
                              const CiOptions *options, CiBuildInfo *info);
/* launch.c */
int32_t ci_interp_launch(CiExecutable *executable, const CiLaunch *launch, CiFault *fault);

#endif
