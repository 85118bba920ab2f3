/* The kinds of templates, by number. */
#include "analysis/templates.h"

static const CiTemplateKind *const kinds[CI_TEMPLATE_COUNT] = {
#define TEMPLATE(kind, cpu, gpu) [CI_TEMPLATE_##kind] = &ci_template_##kind,
#include "ir/templates.def"
};

bool
ci_template_label(CiSym *sym, const CiMachine *machine, CiKernel *kernel)
{
    for (int k = CI_TEMPLATE_none + 1; k < CI_TEMPLATE_COUNT; k++)
        if (kinds[k]->fits(sym, machine, kernel)) {
            kernel->kind = (CiTemplate)k;
            kinds[k]->label(sym, machine, kernel);
            return true;
        }
    return false;
}

bool
ci_template_fits_whole(CiSym *sym, const CiMachine *machine, const CiKernel *kernel)
{
    for (int k = CI_TEMPLATE_none + 1; k < CI_TEMPLATE_COUNT; k++)
        if (kinds[k]->is_whole && kinds[k]->fits(sym, machine, kernel))
            return true;
    return false;
}

bool
ci_template_is_whole(const CiKernel *kernel)
{
    return kernel->kind && kinds[kernel->kind]->is_whole;
}

const char *
ci_template_measure(CiSym *sym, const CiKernel *kernel, CiTemplateMeasure *out)
{
    *out = (CiTemplateMeasure){0};
    return kernel->kind ? kinds[kernel->kind]->measure(sym, kernel, out) : NULL;
}

const CiExpr *
ci_template_scratch(CiSym *sym, const CiMachine *machine, const CiKernel *kernel, const CiExpr *rows)
{
    bool has_own = kernel->kind && kinds[kernel->kind]->scratch;
    return has_own ? kinds[kernel->kind]->scratch(sym, machine, kernel) : rows;
}

const CiExpr *
ci_kernel_finish_units(CiSym *sym, const CiKernel *kernel)
{
    CiTemplateMeasure measure;
    if (!ci_kernel_is_split(kernel) || kernel->is_chained)
        return NULL;
    (void)ci_template_measure(sym, kernel, &measure);
    if (measure.finish_units)
        return measure.finish_units;
    return ci_kernel_runs(kernel) ? ci_kernel_units(sym, kernel) : ci_kernel_points(sym, kernel);
}
