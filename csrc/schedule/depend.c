/* Data dependences: who reads and writes each buffer, and whether two accesses can touch the same
 * element at different points of a kernel's outer axes (analysis/disjoint.c). */
#include <limits.h>

#include "base/map.h"
#include "schedule/plan.h"

static bool
fusion_reads(const CiFusionNest *nest, const CiBuffer *buffer)
{
    for (int k = 0; k < nest->nreads; k++) {
        if (nest->reads[k] == buffer)
            return true;
    }
    return false;
}

CiFusionNest
ci_fusion_nest(CiScheduler *s, CiNest *nest)
{
    CiFusionNest fusion = {.nest = nest};
    int capacity = 0;
    for (const CiScalar *load = NULL; (load = ci_nest_next_load(nest, load));)
        if (load->buffer->kind != CI_BUFFER_scalar && !fusion_reads(&fusion, load->buffer))
            CI_PUSH(s->ctx, fusion.reads, fusion.nreads, capacity, load->buffer);
    return fusion;
}

static bool
extern_touches(const CiExternItem *item, const CiBuffer *buffer)
{
    for (int k = 0; k < item->noperands; k++) {
        if (item->operands[k] == buffer)
            return true;
    }
    return item->result == buffer;
}

static bool
uses_symbol(const CiNest *nest, const CiExpr *symbol)
{
    bool is_used = ci_expr_depends_on(nest->store, symbol);
    for (int k = 0; k < nest->target->rank && !is_used; k++)
        is_used = ci_expr_depends_on(nest->target->sizes[k], symbol);
    for (int k = 0; k < nest->naxes && !is_used; k++)
        is_used = ci_expr_depends_on(nest->axes[k].extent, symbol);
    for (int k = 0; k < nest->body.nops && !is_used; k++)
        is_used = nest->body.ops[k].index && ci_expr_depends_on(nest->body.ops[k].index, symbol);
    return is_used;
}

static bool
binds_indices(const CiNest *nest)
{
    for (int k = 0; k < nest->body.nops; k++) {
        if (nest->body.ops[k].op == CI_OP_bind)
            return true;
    }
    return false;
}

/* A check that fails finds arguments as they were, and may be one of the indices; a symbol has no
 * value before it is read. */
static const char *
why_not_before_check(CiScheduler *s, const CiCheckItem *check, const CiNest *nest)
{
    if (nest->target == check->buffer || ci_nest_count(nest) == check->buffer ||
        nest->target->kind != CI_BUFFER_temp)
        return ci_format(s->ctx, "a check of %s must run between them", check->buffer->name);
    if (!check->symbol && binds_indices(nest))
        return ci_format(s->ctx, "%s says whether an index is in range", check->buffer->name);
    if (check->symbol && uses_symbol(nest, check->symbol))
        return ci_format(s->ctx, "%s is not known before", check->symbol->name);
    return NULL;
}

/* Distinct arrays that nests of the fusion, and of its blocks, read or store. */
static void
collect_arrays(CiMap *arrays, const CiFusion *fusion)
{
    for (int n = 0; n < fusion->nnests; n++) {
        const CiFusionNest *nest = &fusion->nests[n];
        ci_map_put(arrays, CI_KEY(nest->nest->target), nest->nest->target);
        if (ci_nest_count(nest->nest))
            ci_map_put(arrays, CI_KEY(ci_nest_count(nest->nest)), ci_nest_count(nest->nest));
        for (int k = 0; k < nest->nreads; k++)
            if (nest->reads[k]->kind != CI_BUFFER_scalar)
                ci_map_put(arrays, CI_KEY(nest->reads[k]), nest->reads[k]);
    }
    for (int b = 0; b < 2; b++)
        for (int d = 0; fusion->inner[b] && d < fusion->inner[b]->nfusions; d++)
            collect_arrays(arrays, &fusion->inner[b]->fusions[d]);
}

/* Operations of the nests as the C compiler compiles them: a narrow float is rounded by several. */
static int64_t
count_operations(CiScheduler *s, const CiFusion *fusion)
{
    int64_t count = 0, narrow = CI_CHOOSE(s, narrow_operations);
    for (int n = 0; n < fusion->nnests; n++) {
        const CiBody *body = &fusion->nests[n].nest->body;
        for (int k = 0; k < body->nops; k++)
            count += ci_dtype_is_narrow(body->ops[k].dtype) ? narrow : 1;
    }
    return count;
}

const char *
ci_why_too_large(CiScheduler *s, const CiFusion *a, const CiFusion *b)
{
    if (b && count_operations(s, a) + count_operations(s, b) > CI_CHOOSE(s, kernel_operations))
        return "together they have more operations than a kernel should have";
    CiMap *arrays = ci_map_new(s->ctx);
    if (s->machine->max_buffers == INT_MAX)
        return NULL;
    collect_arrays(arrays, a);
    if (b)
        collect_arrays(arrays, b);
    if (ci_map_count(arrays) <= s->machine->max_buffers)
        return NULL;
    return ci_format(s->ctx, "together they touch %d arrays, and a kernel takes %d",
                     ci_map_count(arrays), s->machine->max_buffers);
}

const char *
ci_why_not_before(CiScheduler *s, const CiFusion *fusion, const CiFusionNest *nest)
{
    const CiBuffer *target = nest->nest->target;
    if (fusion->check)
        return why_not_before_check(s, fusion->check, nest->nest);
    if (fusion->ext) {
        bool is_argument = target->kind == CI_BUFFER_input; /* must be unchanged if the call
                                                             * fails */
        bool conflicts = extern_touches(fusion->ext, target) ||
                         fusion_reads(nest, fusion->ext->result) ||
                         (fusion->ext->ext->may_fail && is_argument);
        return conflicts ? ci_format(s->ctx, "%s must run between them", fusion->ext->ext->name)
                         : NULL;
    }
    for (int k = 0; k < fusion->nnests; k++) {
        const CiFusionNest *other = &fusion->nests[k];
        if (fusion_reads(nest, other->nest->target) || fusion_reads(other, target) ||
            other->nest->target == target)
            return ci_format(s->ctx, "the kernel of %s must run between them",
                             other->nest->target->name);
    }
    return NULL;
}

static bool
is_tree_axis(const CiKernels *tree, const CiExpr *symbol)
{
    for (int k = 0; tree && k < tree->nkernels; k++) {
        const CiKernel *kernel = tree->kernels[k];
        if ((kernel->region && kernel->region->var == symbol) ||
            (kernel->check && kernel->check->symbol == symbol) || ci_is_kernel_axis(kernel, symbol) ||
            is_tree_axis(kernel->inner[0], symbol) || is_tree_axis(kernel->inner[1], symbol))
            return true;
    }
    return false;
}

bool
ci_is_kernel_axis(const CiKernel *kernel, const CiExpr *symbol)
{
    if (symbol->symbol_kind != CI_SYMBOL_index && symbol->symbol_kind != CI_SYMBOL_unbacked)
        return false;
    for (int k = 0; k < kernel->nouter; k++) {
        if (kernel->outer[k].var == symbol)
            return true;
    }
    for (int t = 0; t < kernel->nstages; t++) {
        for (int k = 0; k < kernel->stages[t].naxes; k++) {
            if (kernel->stages[t].axes[k].var == symbol)
                return true;
        }
        if (is_tree_axis(kernel->stages[t].tree, symbol))
            return true;
    }
    return false;
}

const char *
ci_why_not_local(CiScheduler *s, const CiKernel *kernel, const CiExpr *a, const CiExpr *b)
{
    CiPoints points = {.sym = s->sym, .scope = s->scope};
    for (int k = 0; k < kernel->nouter; k++)
        ci_add_points(&points, kernel->outer[k].var, kernel->outer[k].extent);
    return ci_why_points_overlap(&points, a, b);
}
