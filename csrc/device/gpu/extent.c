/* Sizes of a launch: expressions over a kernel's sizes, kept with the executable, which outlives
 * the compilation. */
#include "device/gpu/gpu.h"

#include <string.h>

CiGpuExtent
ci_gpu_extent_new(CiContext *ctx, int nsizes, const CiExpr *const *sizes, const CiExpr *e)
{
    CiValuesBuilder builder;
    CiGpuExtent extent;
    ci_values_begin(&builder, ctx, &extent.values);
    for (int k = 0; k < nsizes; k++)
        ci_values_add_symbol(&builder, sizes[k], false);
    extent.number = ci_values_number(&builder, e);
    if (extent.values.count > CI_GPU_MAX_PARAMETERS)
        ci_fail(ctx, CI_ERR_UNSUPPORTED, "the size of a launch is too long an expression");
    return extent;
}

int64_t
ci_gpu_extent_value(const CiGpuExtent *extent, const int64_t *sizes)
{
    const CiValues *values = &extent->values;
    int64_t table[CI_GPU_MAX_PARAMETERS];
    memcpy(table, values->initial, sizeof *table * (size_t)values->count);
    for (int k = 0; k < values->nsymbols; k++)
        table[k] = sizes[k];
    ci_values_run(&values->segments[0], values->segments[0].ncode, table);
    return table[extent->number];
}
