/* The inner loops of NumPy's ufuncs, supplied by the binding. */
#ifndef CI_DEVICE_UFUNC_H
#define CI_DEVICE_UFUNC_H

#include "host/cache.h"
#include "ir/op.h"
#include "vmath/vmath.h"

#include <stdatomic.h>
#include <stdbool.h>

/* NumPy's PyUFuncGenericFunction and the data that goes with it; a loop of NULL: there is none. */
typedef struct CiUfuncLoop {
    void (*loop)(char **operands, const intptr_t *count, const intptr_t *steps, void *data);
    void *data;
    bool keeps_flags; /* the float flags set before: NumPy's loops may clear them */
} CiUfuncLoop;

/* Calls a loop; the float flags set before are kept. */
void ci_ufunc_call(CiUfuncLoop loop, char **operands, const intptr_t *count, const intptr_t *steps);

/* A function of float16: NumPy's loop, and what it gives for each operand (ufunc_table.c). Zeroed
 * before it is opened. */
typedef struct CiUfuncTable {
    CiUfuncLoop numpys;
    _Atomic(uint32_t *) entries; /* NULL: not made */
    _Atomic int64_t computed;    /* elements that the loop was called for before */
} CiUfuncTable;

/* The loop that looks values up; the table outlives its calls. */
CiUfuncLoop ci_ufunc_table_open(CiUfuncTable *table, CiUfuncLoop numpys);
void ci_ufunc_table_close(CiUfuncTable *table);

/* Where verdicts of earlier processes are (ufunc_decisions.c). */
typedef struct CiUfuncVerdicts {
    CiCache *const *cache; /* the runtime's, which may be NULL */
    char libraries[65];    /* a digest of NumPy, the C library and the processor */
} CiUfuncVerdicts;

/* A function on vectors in the place of NumPy's loop (ufunc_vector.c). Zeroed before it is opened. */
typedef struct CiUfuncVector {
    CiUfuncLoop numpys;
    const CiVmathRow *rows; /* the variants */
    int nrows;
    _Atomic(const CiVmathRow *) row; /* the one with NumPy's bits; NULL: not tested */
    _Atomic int64_t computed;        /* elements that the loop was called for before the test */
    const CiUfuncVerdicts *verdicts; /* NULL: none are kept */
} CiUfuncVector;

/* numpys: any loop of NumPy's. */
void ci_ufunc_verdicts_open(CiUfuncVerdicts *verdicts, CiCache *const *cache, CiUfuncLoop numpys);
/* How many operands of a function have been compared, and the variant with NumPy's bits, or -1; 0: no
 * verdict is there. */
int64_t ci_ufunc_decision_read(const CiUfuncVector *vector, int *variant);
void ci_ufunc_decision_write(const CiUfuncVector *vector, int variant, int64_t points);

/* The loop that runs the function after a test; NumPy's if there is none. The vector outlives its
 * calls. */
CiUfuncLoop ci_ufunc_vector_open(CiUfuncVector *vector, CiOp op, CiDtype dtype, CiUfuncLoop numpys,
                                 const CiUfuncVerdicts *verdicts);
/* Tests unless that has been done, by this process or an earlier one. The variant that has NumPy's bits; NULL: none has. */
const CiVmathRow *ci_ufunc_vector_decide(CiUfuncVector *vector);
/* Compares blocks of CI_VMATH_BLOCK first operands: `first` and every `step`th pattern after it;
 * step 0: random numbers, of which `first` is the seed. The number of blocks that differ, and an
 * operand of the first one. */
int64_t ci_ufunc_vector_check(const CiUfuncVector *vector, const CiVmathRow *row, uint64_t first,
                              uint64_t step, int64_t blocks, uint64_t *example);

/* How many a runtime has: ci_op_ufunc_loop says which is which. */
#define CI_UFUNC_LOOPS (CI_UFUNC_COUNT * CI_DTYPE_COUNT)

/* `count` contiguous elements; step: bytes from one element of an operand to the next, 0 if it is
 * one for all. b: NULL for one operand. The float flags set before are kept. Part of the kernel contract (CiRun.apply). */
void ci_ufunc_apply(const CiUfuncLoop *loops, int32_t number, int64_t count, void *out,
                    const void *a, int64_t a_step, const void *b, int64_t b_step);

#endif
