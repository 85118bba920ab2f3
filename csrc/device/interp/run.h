/* What the files that run the interpreter share. */
#ifndef CI_DEVICE_INTERP_RUN_H
#define CI_DEVICE_INTERP_RUN_H

#include "device/interp/program.h"

typedef struct CiInterpRun {
    const CiInterpKernel *kernel;
    const CiLaunch *launch;
    CiRuntime *runtime;
    CiFault *fault; /* may be NULL */
    void **memory;
    size_t *capacity; /* of memory that allocs have taken; 0: none */
    int64_t *env;     /* sizes, then loop variables and bound symbols */
    char *values;     /* aligned to 64 bytes */
    int trips_since_poll;
    int64_t last_poll;
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

/* value.c: a let, a store, a call, in the lanes that are live. */
void ci_interp_let(CiInterpRun *r, const CiInterpStmt *stmt);
void ci_interp_access(CiInterpRun *r, const CiInterpStmt *stmt);

/* run.c: CI_OK, or why the kernel ends. */
int32_t ci_interp_run(CiInterpRun *r);

#endif
