/* The pass: kernels of a kind get the loops of its builder. */
#include "kernels/kernels.h"

typedef struct Template {
    CiTemplate kind;
    CiFamily family;
    void (*build)(CiProcs *procs, CiBuild *b, const CiMachine *machine);
} Template;

static const Template templates[] = {
#define TEMPLATE(kind, family, build) {CI_TEMPLATE_##kind, CI_FAMILY_##family, build},
#include "kernels/templates.def"
};

void
ci_template(CiProcs *procs, CiProc *proc, const CiMachine *machine)
{
    CiBuild b = {procs->ctx, procs->sym, proc, &proc->body, {0}};
    for (size_t k = 0; k < sizeof templates / sizeof *templates; k++)
        if (proc->kernel && !proc->is_finish && proc->kernel->kind == templates[k].kind &&
            machine->family == templates[k].family)
            templates[k].build(procs, &b, machine);
}
