/* The pass: kernels of a kind get the loops of its builder. */
#include "kernels/kernels.h"

#include <string.h>

typedef struct Template {
    CiTemplate kind;
    const char *family;
    void (*build)(CiProcs *procs, CiBuild *b, const CiFamily *family);
} Template;

static const Template templates[] = {
#define TEMPLATE(kind, family, build) {CI_TEMPLATE_##kind, family, build},
#include "kernels/templates.def"
};

void
ci_template(CiProcs *procs, CiProc *proc, const CiFamily *family)
{
    CiBuild b = {procs->ctx, procs->sym, proc, &proc->body, {0}};
    for (size_t k = 0; k < sizeof templates / sizeof *templates; k++)
        if (proc->kernel && !proc->is_finish && proc->kernel->kind == templates[k].kind &&
            strcmp(family->name, templates[k].family) == 0)
            templates[k].build(procs, &b, family);
}
