/* Expressions over the sizes of a kernel, such as the numbers of its launch, kept with the executable, which outlives
 * the compilation. */
#ifndef CI_DEVICE_SIZE_TABLE_H
#define CI_DEVICE_SIZE_TABLE_H

#include "ir/proc.h"
#include "sym/values.h"

typedef struct CiSizeTable {
    CiValues values; /* the sizes, and what is made of them */
    int count, numbers[CI_LAUNCH_COUNT];
} CiSizeTable;

/* NULL stands for 0. */
CiSizeTable ci_size_table_new(CiContext *ctx, const CiKernel *kernel, int count, const CiExpr *const *exprs);
/* The numbers of a launch, by CiLaunchNumber, in one block, which the caller frees; NULL without memory. */
CiSizeTable *ci_size_table_of_launch(CiContext *ctx, const CiKernel *kernel, const CiLaunchExprs *launch);
/* Computes them at a launch with these sizes. */
void ci_size_table_fill(const CiSizeTable *table, const int64_t *sizes, int64_t *out);

#endif
