/* Questions about kernels. Slow on purpose: a kernel has few buffers. */
#include "ir/kernel.h"

const char *
ci_stored_name(CiStored stored)
{
    static const char *const names[] = {
#define STORED(name) #name,
#include "ir/kernel.def"
    };
    return names[stored];
}

const char *const ci_template_names[CI_TEMPLATE_COUNT] = {
    "",
#define TEMPLATE(kind, cpu, gpu) #kind,
#include "ir/templates.def"
};

bool
ci_kernel_runs(const CiKernel *kernel)
{
    for (int n = 0; kernel->nstages && n < kernel->stages[0].nnests; n++) {
        const CiNest *nest = kernel->stages[0].nests[n];
        if (ci_nest_is_scan(nest) || nest->body.ops[nest->body.result].op == CI_OP_pack)
            return true;
    }
    return false;
}

void
ci_kernels_visit(const CiKernels *kernels, void (*visit)(void *arg, const CiKernel *kernel),
                 void *arg)
{
    for (int k = 0; k < kernels->nkernels; k++) {
        const CiKernel *kernel = kernels->kernels[k];
        for (int side = 0; side < 2; side++)
            if (kernel->inner[side])
                ci_kernels_visit(kernel->inner[side], visit, arg);
        visit(arg, kernel);
    }
}

static void
count_kernel(void *arg, const CiKernel *kernel)
{
    int *count = arg;
    *count = kernel->id >= *count ? kernel->id + 1 : *count;
}

int
ci_kernels_count(const CiKernels *kernels)
{
    int count = 0;
    ci_kernels_visit(kernels, count_kernel, &count);
    return count;
}

bool
ci_kernel_has_loops(const CiKernel *kernel)
{
    return !kernel->ext && !kernel->region && !kernel->check;
}

const CiPlacement *
ci_kernel_find_placement(const CiKernel *kernel, const CiBuffer *buffer)
{
    for (int k = 0; k < kernel->nplacements; k++)
        if (kernel->placements[k].buffer == buffer)
            return kernel->placements[k].stored == CI_STORED_memory ? NULL : &kernel->placements[k];
    return NULL;
}

int
ci_kernel_buffer_position(const CiKernel *kernel, const CiBuffer *buffer)
{
    for (int k = 0; k < kernel->nbuffers; k++)
        if (kernel->buffers[k] == buffer)
            return k;
    return -1;
}

const CiKernels *
ci_kernel_tree(const CiKernel *kernel)
{
    return kernel->nstages == 1 ? kernel->stages[0].tree : NULL;
}

bool
ci_kernel_is_region(const CiKernel *kernel, CiItemKind kind)
{
    return kernel->region && kernel->region->kind == kind;
}

static void
visit_tree(const CiKernels *tree, void (*visit)(void *arg, const CiNest *nest), void *arg)
{
    for (int k = 0; tree && k < tree->nkernels; k++) {
        const CiKernel *kernel = tree->kernels[k];
        bool is_while = ci_kernel_is_region(kernel, CI_ITEM_while);
        ci_kernel_visit_nests(kernel, visit, arg);
        visit_tree(kernel->inner[is_while], visit, arg);
        visit_tree(kernel->inner[!is_while], visit, arg);
    }
}

CiNest *
ci_kernel_next_nest(const CiKernel *kernel, CiNestAt *at)
{
    for (at->nest++; at->stage < kernel->nstages; at->stage++, at->nest = 0)
        if (at->nest < kernel->stages[at->stage].nnests)
            return kernel->stages[at->stage].nests[at->nest];
    return NULL;
}

void
ci_kernel_visit_nests(const CiKernel *kernel, void (*visit)(void *arg, const CiNest *nest),
                      void *arg)
{
    CiNestAt at = CI_BEFORE_NESTS;
    for (const CiNest *nest; (nest = ci_kernel_next_nest(kernel, &at));)
        visit(arg, nest);
    if (ci_kernel_tree(kernel))
        visit_tree(ci_kernel_tree(kernel), visit, arg);
}

void
ci_kernel_visit_uses(const CiKernel *kernel,
                     void (*visit)(void *arg, CiBuffer *buffer, bool is_stored), void *arg)
{
    for (int k = 0; k < kernel->nbuffers; k++)
        visit(arg, kernel->buffers[k], kernel->is_stored[k]);
    for (int k = 0; kernel->ext && k < kernel->ext->noperands; k++)
        visit(arg, kernel->ext->operands[k], false);
    if (kernel->ext)
        visit(arg, kernel->ext->result, true);
    if (kernel->check)
        visit(arg, kernel->check->buffer, false);
    if (kernel->region && kernel->region->condition)
        visit(arg, kernel->region->condition, false);
    for (int k = 0; kernel->region && k < kernel->region->nswaps; k++)
        visit(arg, kernel->region->swaps[k], true);
    for (int side = 0; side < 2; side++)
        for (int k = 0; kernel->inner[side] && k < kernel->inner[side]->nkernels; k++)
            ci_kernel_visit_uses(kernel->inner[side]->kernels[k], visit, arg);
}
