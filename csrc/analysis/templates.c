/* The kinds of templates, by number. */
#include "analysis/templates.h"

static const CiTemplateKind *const kinds[CI_TEMPLATE_COUNT] = {
#define TEMPLATE(kind, cpu, gpu) [CI_TEMPLATE_##kind] = &ci_template_##kind,
#include "ir/templates.def"
};

CiTemplate
ci_template_fit(CiSym *sym, const CiMachine *machine, const CiKernel *kernel)
{
    for (int k = CI_TEMPLATE_none + 1; k < CI_TEMPLATE_COUNT; k++)
        if (kinds[k]->fits(sym, machine, kernel))
            return (CiTemplate)k;
    return CI_TEMPLATE_none;
}

void
ci_template_label(CiLabeller *l)
{
    kinds[l->kernel->kind]->label(l);
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
ci_template_why_not(CiSym *sym, const CiKernel *kernel)
{
    return kernel->kind ? kinds[kernel->kind]->why_not(sym, kernel) : NULL;
}
