/* The pass: kernels of a kind get the loops of its builder. */
#include "kernels/kernels.h"

#define BUILDER(build) build
#define NONE NULL

static void (*const builders[CI_TEMPLATE_COUNT][CI_FAMILY_COUNT])(CiBuild *b) = {
#define TEMPLATE(kind, cpu, gpu) [CI_TEMPLATE_##kind] = {[CI_FAMILY_cpu] = cpu, [CI_FAMILY_gpu] = gpu},
#include "ir/templates.def"
};

void
ci_template(CiBuild *b)
{
    void (*build)(CiBuild *b) = builders[b->proc->head.kind][b->machine->family];
    if (build && !b->proc->is_finish)
        build(b);
}
