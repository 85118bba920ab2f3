/* Helpers of the tests of wrappers and programs. They lower the text of a graph to kernels for a
 * fake machine, and put regions around kernels by hand, because the text has none. */
#ifndef TEST_PIPELINE_H
#define TEST_PIPELINE_H

#include "lower/lower.h"
#include "schedule/schedule.h"
#include "wrapper/wrapper.h"

static inline CiMachine *
test_machine(CiContext *ctx)
{
    CiMachine *machine = CI_NEW(ctx, CiMachine);
    *machine = ci_machine(CI_MACHINE_generic);
    machine->device = "test";
    machine->backend = "fake";
    machine->row_bytes = 1 << 18;
    machine->chunk_elements = 4096;
    machine->max_buffers = 32;
    machine->max_fused_nests = 16;
    machine->has_own_order = false;
    return machine;
}

/* Without fusion and pools. */
static inline CiOptions *
test_options(CiContext *ctx)
{
    CiOptions *options = CI_NEW(ctx, CiOptions);
    ci_options_default(options);
    options->fusion = options->pools = false;
    return options;
}

/* The kernels' machine gets memory of its own. */
static inline CiMachine *
test_put_on_device(CiKernels *kernels, bool host_arrays)
{
    CiMachine *machine = (CiMachine *)(uintptr_t)kernels->machine;
    machine->has_memory = true;
    machine->host_arrays = host_arrays;
    return machine;
}

static inline CiWrapper *
test_wrap(const CiKernels *kernels)
{
    return ci_wrap(kernels, test_options(kernels->loops->ctx), NULL);
}

/* Lowers the text of a graph to kernels. Every library call gets the function `call`. */
static inline CiKernels *
test_kernels(CiContext *ctx, const char *text, int32_t (*call)(void *, const CiExternCall *))
{
    CiGraph *graph = ci_graph_parse(ctx, text);
    for (int i = 0; i < graph->body->nnodes; i++)
        if (graph->body->nodes[i]->ext)
            ((CiExtern *)graph->body->nodes[i]->ext)->call = call;
    CiMachine *machine = test_machine(ctx);
    CiOptions *options = test_options(ctx);
    options->reuse = false;
    return ci_schedule(ci_lower(graph, machine, options), machine, options);
}

static inline CiKernels *
test_some_kernels(CiKernels *kernels, int first, int count)
{
    CiKernels *some = CI_NEW(kernels->loops->ctx, CiKernels);
    *some = *kernels;
    some->kernels = kernels->kernels + first;
    some->nkernels = count;
    return some;
}

/* Moves kernels [first, first + count) into a region. Its second body gets the next `other`
 * kernels. */
static inline CiKernel *
test_put_region(CiKernels *kernels, CiRegion *region, int first, int count, int other)
{
    CiContext *ctx = kernels->loops->ctx;
    CiKernels *all = CI_NEW(ctx, CiKernels);
    *all = *kernels;
    CiKernel *kernel = CI_NEW(ctx, CiKernel);
    kernel->id = kernels->nkernels;
    kernel->region = region;
    kernel->inner[0] = test_some_kernels(all, first, count);
    kernel->inner[1] = other ? test_some_kernels(all, first + count, other) : NULL;
    CiItems *second = region->condition ? &region->other : NULL;
    if (second && region->kind != CI_ITEM_while)
        second->count = other;
    kernels->kernels = CI_NEW_ARRAY(ctx, CiKernel *, all->nkernels + 1);
    kernels->nkernels = 0;
    for (int i = 0; i < all->nkernels; i++) {
        if (i == first)
            kernels->kernels[kernels->nkernels++] = kernel;
        if (i < first || i >= first + count + other)
            kernels->kernels[kernels->nkernels++] = all->kernels[i];
    }
    return kernel;
}

/* Index of the line of that kind after `skip` others, or -1. */
static inline int
find_line(const CiWrapper *w, CiLineKind kind, int skip)
{
    for (int i = 0; i < w->nlines; i++)
        if (w->lines[i].kind == kind && skip-- == 0)
            return i;
    return -1;
}

#endif
