/* Element numbers of lanes. */
#include "device/interp/run.h"

void
ci_interp_numbers(CiInterpRun *r, const CiInterpIndex *index, int64_t stride, int64_t *out,
                  int64_t count)
{
    if (!index->nvarying) {
        int64_t first = ci_formula_evaluate(&index->formula, r->env);
        for (int64_t k = 0; k < count; k++)
            out[k] = first + k * stride;
        return;
    }
    for (int64_t k = 0; k < count; k++) {
        for (int v = 0; v < index->nvarying; v++)
            r->env[index->slots[v]] = ((const int64_t *)ci_interp_value(r, index->values[v]))[k];
        out[k] = ci_formula_evaluate(&index->formula, r->env) + k * stride;
    }
}
