/* Helpers of the tests of wrappers and programs. They lower the text of a graph to kernels for a
 * fake target, and put regions around kernels by hand, because the text has none. */
#ifndef TEST_PIPELINE_H
#define TEST_PIPELINE_H

#include "lower/lower.h"
#include "schedule/schedule.h"
#include "wrapper/wrapper.h"

static inline CiTarget *
test_target(CiContext *ctx)
{
    CiTarget *target = CI_NEW(ctx, CiTarget);
    *target = (CiTarget){.device = "test",
                         .backend = "fake",
                         .row_bytes = 1 << 18,
                         .chunk_elements = 4096,
                         .max_buffers = 32,
                         .max_fused_nests = 16};
    for (int i = 0; i < CI_DTYPE_COUNT; i++)
        target->dtypes[i] = true;
    return target;
}

/* Lowers the text of a graph to kernels. Every library call gets the function `call`. */
static inline CiKernels *
test_kernels(CiContext *ctx, const char *text, int32_t (*call)(void *, const CiExternCall *))
{
    CiGraph *graph = ci_graph_parse(ctx, text);
    for (int i = 0; i < graph->body->nnodes; i++)
        if (graph->body->nodes[i]->ext)
            ((CiExtern *)graph->body->nodes[i]->ext)->call = call;
    CiLoops *loops = ci_lower(graph, &(CiLowerOptions){.inline_limit = 64});
    return ci_schedule(loops, test_target(ctx), &(CiScheduleOptions){.fusion = false});
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
