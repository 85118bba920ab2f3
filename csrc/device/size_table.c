/* Tables of expressions over the sizes of a kernel. */
#include "device/size_table.h"

#include <stdlib.h>
#include <string.h>

#define MOST_VALUES 1024

CiSizeTable
ci_size_table_new(CiContext *ctx, const CiKernel *kernel, int count, const CiExpr *const *exprs)
{
    CiValuesBuilder builder;
    CiSizeTable table = {.count = count};
    ci_values_begin(&builder, ctx, &table.values);
    for (int k = 0; k < kernel->nsize_args; k++)
        ci_values_add_symbol(&builder, kernel->size_args[k], false);
    for (int k = 0; k < count; k++)
        table.numbers[k] = exprs[k] ? ci_values_number(&builder, exprs[k]) : ci_values_constant(&builder, 0);
    if (table.values.count > MOST_VALUES)
        ci_fail(ctx, CI_ERR_UNSUPPORTED, "the size of a launch is too long an expression");
    return table;
}

CiSizeTable *
ci_size_table_of_launch(CiContext *ctx, const CiKernel *kernel, const CiLaunchExprs *launch)
{
    const CiSizeTable table = ci_size_table_new(ctx, kernel, CI_LAUNCH_COUNT, launch->of);
    const CiSegment *code = &table.values.segments[0];
    size_t values = sizeof(int64_t) * (size_t)table.values.count, codes = sizeof(CiValueCode) * (size_t)code->ncode;
    CiSizeTable *copy = calloc(1, sizeof *copy + sizeof *code + codes + values);
    if (!copy)
        return NULL;
    *copy = table;
    copy->values.segments = (CiSegment *)(copy + 1);
    *copy->values.segments = *code;
    copy->values.segments->code = (CiValueCode *)(copy->values.segments + 1);
    copy->values.initial = (int64_t *)((char *)copy->values.segments->code + codes);
    if (codes)
        memcpy(copy->values.segments->code, code->code, codes);
    if (values)
        memcpy(copy->values.initial, table.values.initial, values);
    return copy;
}

void
ci_size_table_fill(const CiSizeTable *table, const int64_t *sizes, int64_t *out)
{
    const CiValues *values = &table->values;
    int64_t made[MOST_VALUES];
    for (int k = 0; k < table->count && !values->segments[0].ncode; k++)
        out[k] = table->numbers[k] < values->nsymbols ? sizes[table->numbers[k]] : values->initial[table->numbers[k]];
    if (!values->segments[0].ncode)
        return;
    memcpy(made, values->initial, sizeof *made * (size_t)values->count);
    for (int k = 0; k < values->nsymbols; k++)
        made[k] = sizes[k];
    ci_values_run(&values->segments[0], values->segments[0].ncode, made);
    for (int k = 0; k < table->count; k++)
        out[k] = made[table->numbers[k]];
}
