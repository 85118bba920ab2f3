/* Shared declarations of the interpreter's run-time files. */
#ifndef CI_DEVICE_INTERP_RUN_H
#define CI_DEVICE_INTERP_RUN_H

#include "device/interp/program.h"

/* The last access of an element, for checks among units and threads that may run in parallel. */
typedef struct CiInterpMark {
    int32_t loop, epoch;   /* a mark of an earlier loop says nothing; between two barriers */
    int64_t block, thread; /* or several */
    bool is_atomic;        /* what was stored has been combined at once */
} CiInterpMark;

typedef struct CiInterpChecks {
    int64_t *sizes;       /* by memory: elements from the first on; -1: not known */
    int64_t *firsts;      /* the first's number */
    CiInterpMark **marks; /* by memory: two for each element, once there are: stored, loaded */
    CiInterpMark now;     /* loops that have begun; block -1: outside of them */
    bool is_shared_out;   /* to threads: all of them run what is outside loops over them */
    bool is_sequential;      /* what it touches of partials, units before have handed on */
} CiInterpChecks;

typedef struct CiInterpRun {
    const CiInterpKernel *kernel;
    const CiLaunch *launch;
    CiRuntime *runtime;
    CiFault *fault; /* may be NULL */
    void **memory;
    size_t *capacity; /* of memory that allocs have taken; 0: none */
    int64_t *env;     /* sizes, then loop variables and bound symbols */
    char *values;     /* aligned to 64 bytes */
    int64_t ticket; /* units that have published */
    int iterations_since_poll;
    int64_t last_poll;
    CiInterpChecks *checks; /* NULL: none */
    int32_t failure;        /* that a check has found */
} CiInterpRun;

static inline void *
ci_interp_value(const CiInterpRun *r, int value)
{
    return r->values + r->kernel->values[value];
}

/* index.c */
int64_t ci_formula_evaluate(const CiFormula *formula, const int64_t *env);
/* Element numbers of `count` lanes. */
void ci_interp_numbers(CiInterpRun *r, const CiInterpIndex *index, int64_t stride, int64_t *out,
                       int64_t count);

/* check.c. An access of `count` lanes; sets `failure`. */
void ci_interp_check(CiInterpRun *r, const CiInterpStmt *stmt, int64_t count);
/* Checks `count` consecutive elements. */
void ci_interp_check_line(CiInterpRun *r, const CiInterpAccess *at, int64_t count, bool is_store);
/* Memory begins, of so many elements. */
void ci_interp_begin_marks(CiInterpRun *r, int memory, int64_t size);
void ci_interp_swap_marks(CiInterpRun *r, int memory, int partner);
int32_t ci_interp_open_checks(CiInterpRun *r, CiInterpChecks *checks);
void ci_interp_close_checks(CiInterpRun *r);

/* value.c: a let, a store, a call, in the lanes that are live; a ufunc's loop over memory. */
void ci_interp_let(CiInterpRun *r, const CiInterpStmt *stmt);
void ci_interp_access(CiInterpRun *r, const CiInterpStmt *stmt);
void ci_interp_apply(CiInterpRun *r, const CiInterpStmt *stmt);

/* tiles.c */
void ci_interp_copy(CiInterpRun *r, const CiInterpStmt *stmt);
void ci_interp_multiply(CiInterpRun *r, const CiInterpStmt *stmt);

/* run.c: CI_OK, or why the kernel ends. */
int32_t ci_interp_run(CiInterpRun *r);

#endif
