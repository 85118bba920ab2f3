/* The pass: kernels of a kind get the loops of its builder. */
#include "kernels/kernels.h"

typedef struct Template {
    CiTemplate kind;
    CiFamily family;
    void (*build)(CiBuild *b);
} Template;

static const Template templates[] = {
#define TEMPLATE(kind, family, build) {CI_TEMPLATE_##kind, CI_FAMILY_##family, build},
#include "kernels/templates.def"
};

void
ci_template(CiBuild *b)
{
    CiProc *proc = b->proc;
    for (size_t k = 0; k < sizeof templates / sizeof *templates; k++)
        if (!proc->is_finish && proc->head.kind == templates[k].kind && b->machine->family == templates[k].family)
            templates[k].build(b);
}
