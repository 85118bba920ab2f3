/* The straight-line code of a stage: the bodies of all its nests as one list of values without duplicates. A load of an
 * element that an earlier nest stored is replaced by the stored value. A scan is a value whose op is the scan and whose
 * argument is its operand. */
#ifndef CI_CODEGEN_STAGE_CODE_H
#define CI_CODEGEN_STAGE_CODE_H

#include "ir/kernel.h"

typedef struct CiValue {
    CiScalar op;
    int nest;       /* of a scan: its nest */
    bool is_needed; /* reached from a store, a fold or a placement that is read later */
} CiValue;

typedef struct CiStageCode {
    CiValue *values;
    int nvalues, capvalues;
    int *results; /* by nest: the value that it folds or stores */
} CiStageCode;

CiStageCode *ci_stage_code_new(CiContext *ctx, const CiKernel *kernel, const CiStage *stage);

#endif
