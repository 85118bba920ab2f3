/* The straight-line code of a stage: the bodies of its nests as one list without duplicates, in
 * which what an earlier nest stored at the same index is its value. A scan is a value whose op is
 * the scan and whose argument is what it folds. */
#ifndef CI_CODEGEN_STAGE_CODE_H
#define CI_CODEGEN_STAGE_CODE_H

#include "ir/kernel.h"

typedef struct CiValue {
    CiScalar op;
    int nest;       /* scan: the nest */
    bool is_needed; /* reached from a store, a fold or a placement that is read later */
} CiValue;

typedef struct CiStageCode {
    CiValue *values;
    int nvalues, capvalues;
    int *results; /* per nest: what it folds, or stores */
} CiStageCode;

CiStageCode *ci_stage_code_new(CiContext *ctx, const CiKernel *kernel, const CiStage *stage);

#endif
