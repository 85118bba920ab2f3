/* What the files that run the interpreter share. */
#ifndef CI_DEVICE_INTERP_RUN_H
#define CI_DEVICE_INTERP_RUN_H

#include "device/interp/program.h"

#define CI_INTERP_BLOCK_BYTES (CI_INTERP_BLOCK * 16)
#define CI_INTERP_EXTRA_BLOCKS 2

typedef struct CiInterpRun {
    const CiLaunch *launch;
    CiRuntime *runtime;
    CiFault *fault; /* may be NULL */
    void **memory;
    int64_t *env;     /* sizes, then the nest's index variables */
    int64_t *extents; /* of the nest that runs */
    char *blocks;     /* one per operation, 64-byte aligned */
    char *truth, *stored;
    int blocks_since_poll;
    int64_t last_poll;
} CiInterpRun;

/* block.c. Values that the body yields for lanes [start, start + count) at the point in env; valid
 * until the next call. */
void *ci_interp_block(CiInterpRun *r, const CiInterpNest *nest, int64_t start, int64_t count);
void ci_interp_store(CiInterpRun *r, const CiInterpNest *nest, const void *values, int64_t start,
                     int64_t count);
/* Zeros behind what was packed, up to what was counted. */
void ci_interp_pack_rest(CiInterpRun *r, const CiInterpNest *nest);
/* First and next point of axes [from, to); start says whether there is any. */
bool ci_interp_start(CiInterpRun *r, const CiInterpNest *nest, int from, int to);
bool ci_interp_next(CiInterpRun *r, const CiInterpNest *nest, int from, int to);
int32_t ci_interp_poll(CiInterpRun *r);

/* fold.c */
int32_t ci_interp_fold_inner(CiInterpRun *r, const CiInterpNest *nest);
int32_t ci_interp_fold_outer(CiInterpRun *r, const CiInterpNest *nest);

/* run.c: a whole nest of any shape. */
int32_t ci_interp_nest(CiInterpRun *r, const CiInterpNest *nest);

#endif
