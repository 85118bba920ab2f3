/* Regions as trees inside one kernel (in-kernel control flow).
 *
 * A region becomes a tree if every statement in it is small: it calls no library, and none of its
 * nests has enough work for several threads. For known sizes this is a number of elements. A nest
 * over one unknown size is small if it is a slice of something larger. This is the case if its
 * extent changes from one iteration to the next, or if another nest over the same extent accesses
 * an array with a second axis of unknown size. A nest over two unknown sizes is a sweep, and its
 * loop remains a loop around kernels.
 *
 * Invariant: blocks are judged from the inside out, and a tree contains only trees and leaves.
 * Leaves are planned, fused and placed like kernels; they run in program order. */
#include <string.h>

#include "ir/layout.h"
#include "schedule/plan.h"

/* ---- which regions ---- */

static bool
is_unknown(const CiExpr *size)
{
    return size->high == CI_INFINITY;
}

static int
count_unknown(const CiBuffer *buffer)
{
    int count = 0;
    for (int k = 0; k < buffer->rank; k++)
        count += is_unknown(buffer->sizes[k]);
    return count;
}

static bool
is_defined_in(const CiScheduler *block, const CiExpr *symbol)
{
    for (int k = 0; k < block->nfusions; k++) {
        if (block->fusions[k].check && block->fusions[k].check->symbol == symbol)
            return true;
    }
    return false;
}

static bool
changes_between_iterations(const CiScheduler *block, const CiExpr *extent)
{
    for (int k = 0; k < extent->nsymbols; k++) {
        if (extent->symbols[k]->symbol_kind == CI_SYMBOL_index ||
            is_defined_in(block, extent->symbols[k]))
            return true;
    }
    return false;
}

static bool
touches_larger(const CiFusionNest *fusion)
{
    for (int k = 0; k < fusion->nreads; k++) {
        if (count_unknown(fusion->reads[k]) > 1)
            return true;
    }
    return count_unknown(fusion->nest->target) > 1;
}

/* A nest of the block over the same extent tells what that is; slow on purpose, few ask. */
static bool
is_slice(const CiScheduler *block, const CiExpr *extent)
{
    if (changes_between_iterations(block, extent))
        return true;
    for (int d = 0; d < block->nfusions; d++) {
        for (int n = 0; n < block->fusions[d].nnests; n++) {
            const CiFusionNest *fusion = &block->fusions[d].nests[n];
            for (int k = 0; k < fusion->nest->naxes; k++) {
                if (fusion->nest->axes[k].extent == extent && touches_larger(fusion))
                    return true;
            }
        }
    }
    return false;
}

static bool
is_worth_threads(const CiScheduler *block, const CiNest *nest)
{
    const CiExpr *unknown = NULL;
    CiAmount work = ci_iterations_of_nest(nest);
    for (int k = 0; k < nest->naxes; k++)
        unknown = is_unknown(nest->axes[k].extent) ? nest->axes[k].extent : unknown;
    return work.unknowns > 1 || work.known > block->machine->tree_elements ||
           (unknown && !is_slice(block, unknown));
}

static const CiExpr *
largest_over_defined(const CiScheduler *block, const CiExpr *e)
{
    for (int k = block->nfusions - 1; e && k >= 0; k--) {
        const CiCheckItem *check = block->fusions[k].check;
        if (!check || !check->symbol || !ci_expr_depends_on(e, check->symbol))
            continue;
        /* The symbol's limit may contain a loop's number of iterations under its name in the
         * graph. */
        bool is_open = ci_expr_equals_const(check->limit, CI_INFINITY);
        e = ci_largest_over(block->sym, e, check->symbol, check->symbol->low,
                         is_open ? NULL : check->limit);
    }
    return e;
}

/* An upper bound of e over all symbols that are defined in the block or in the blocks around it, up
 * to but excluding `outside`; NULL if there is no known bound. */
static const CiExpr *
largest(const CiScheduler *block, const CiScheduler *outside, const CiExpr *e)
{
    for (; e && block != outside; block = block->outer) {
        const CiExpr *var = block->scope->region->var;
        e = largest_over_defined(block, e);
        if (e && block->condition)
            e = largest_over_defined(block->condition, e);
        if (e && var && ci_expr_depends_on(e, var))
            e = ci_largest_over(block->sym, e, var, 0, block->scope->region->extent);
    }
    return e;
}

static const char *
why_not_sized(const CiScheduler *block, const CiScheduler *outside, const CiBuffer *buffer)
{
    for (int k = 0; k < buffer->rank; k++) {
        if (!largest(block, outside, buffer->sizes[k]))
            return ci_format(block->ctx, "no bound of the size of %s is known", buffer->name);
    }
    return NULL;
}

/* True for a parallel loop with enough iterations for all threads, including those of the loops
 * that are parallel with it. Loops inside these are not parallelized. */
static bool
is_shared_out(CiScheduler *s, const CiItem *loop)
{
    CiAmount iterations = ci_amount(1);
    for (int depth = ci_parallel_loops(s, loop, NULL); depth > 0; depth--) {
        iterations = ci_amount_of(iterations, loop->region->extent);
        loop = &loop->region->body.items[0];
    }
    return ci_amount_high(iterations) >= CI_CHOOSE(s, many_iterations);
}

static const char *
why_not_block(CiScheduler *outside, CiScheduler *block, bool is_shared)
{
    const char *why = NULL;
    for (int k = 0; block && k < block->nfusions && !why; k++) {
        const CiFusion *fusion = &block->fusions[k];
        if (fusion->ext)
            return ci_format(block->ctx, "it calls %s", fusion->ext->ext->name);
        if (fusion->check && block->machine->waits_for_ended)
            return "a check in it may end threads that others wait for";
        if (fusion->region && !fusion->is_tree)
            return "a region inside is none";
        if (!is_shared && fusion->region && fusion->region->kind == CI_ITEM_for &&
            ci_is_worth_threads(block->machine, fusion->region) &&
            !ci_why_not_parallel(block, fusion->region, NULL))
            return ci_format(block->ctx, "the iterations of %s are worth threads",
                             fusion->region->region->var->name);
        for (int n = 0; n < fusion->nnests && !why; n++) {
            const CiFusionNest *nest = &fusion->nests[n];
            const CiBuffer *target = nest->nest->target;
            if (is_worth_threads(block, nest->nest))
                return ci_format(block->ctx, "the work on %s is worth threads", target->name);
            why = why_not_sized(block, outside, target);
            for (int r = 0; r < nest->nreads && !why; r++)
                why = why_not_sized(block, outside, nest->reads[r]);
        }
        for (int side = 0; side < 2 && fusion->region && !why; side++)
            why = why_not_block(outside, fusion->inner[side], is_shared);
    }
    return why;
}

/* Variables are names in the kernel's source. */
static bool
is_loop_name(const char *name)
{
    return name[0] == 't' && name[1] && strspn(name + 1, "0123456789") == strlen(name + 1);
}

const char *
ci_why_not_tree(CiScheduler *s, const CiFusion *fusion)
{
    const CiExpr *var = fusion->region->region->var;
    if (var && !is_loop_name(var->name))
        return "its variable is not called t and a number";
    bool is_shared = is_shared_out(s, fusion->region);
    const char *why = why_not_block(s, fusion->inner[0], is_shared);
    why = why ? why : why_not_block(s, fusion->inner[1], is_shared);
    return why ? why : ci_why_too_large(s, fusion, NULL);
}

/* ---- the tree ---- */

/* Memory made inside a loop is taken once, before the tree, as large as it will ever be. */
static void
fix_size(const CiScheduler *block, const CiScheduler *outside, CiBuffer *buffer)
{
    bool is_same = true;
    if (buffer->kind != CI_BUFFER_temp)
        return;
    const CiExpr **sizes = CI_NEW_ARRAY(block->ctx, const CiExpr *, buffer->rank + 1);
    for (int k = 0; k < buffer->rank; k++) {
        sizes[k] = largest(block, outside, buffer->sizes[k]);
        is_same &= sizes[k] == buffer->sizes[k];
    }
    if (is_same)
        return;
    const int8_t *order = ci_layout_order_of_strides(block->ctx, block->sym, buffer->rank,
                                                     buffer->sizes, buffer->strides);
    buffer->sizes = sizes;
    buffer->strides = ci_layout_dense_strides(block->ctx, block->sym, buffer->rank, sizes, order);
}

/* Fixes sizes of targets, and of buffers that are only read: np.empty makes such ones. */
static void
fix_sizes(const CiScheduler *block, const CiScheduler *outside, const CiFusion *fusion)
{
    for (int n = 0; n < fusion->nnests; n++) {
        const CiFusionNest *nest = &fusion->nests[n];
        fix_size(block, outside, nest->nest->target);
        for (int k = 0; k < nest->nreads; k++)
            fix_size(block, outside, nest->reads[k]);
    }
}

static CiKernel *
make_leaf(CiScheduler *block, CiFusion *fusion)
{
    CiKernel *leaf = ci_plan_fusion(block, fusion);
    ci_merge_all_axes(block, leaf);
    ci_place_leaf(block, leaf, fusion);
    return leaf;
}

/* The fusions of a block; root is the kernel all of it becomes, among the fusions of `outside`. */
static CiKernels *
make_tree(CiScheduler *block, const CiScheduler *outside, CiKernel *root)
{
    CiKernels *tree = CI_NEW(outside->ctx, CiKernels);
    for (int k = 0; block && k < block->nfusions; k++) {
        CiFusion *fusion = &block->fusions[k];
        ci_add_locs(block, root, fusion);
        bool is_leaf = !fusion->check && !fusion->region;
        CiKernel *kernel = is_leaf ? make_leaf(block, fusion) : CI_NEW(block->ctx, CiKernel);
        if (is_leaf) {
            fix_sizes(block, outside, fusion);
        } else if (fusion->check) {
            kernel->check = fusion->check;
            kernel->id = root->nchecks;
            CI_PUSH(block->ctx, root->checks, root->nchecks, root->capchecks, fusion->check);
        } else {
            kernel->region = fusion->region->region;
            bool is_while = kernel->region->kind == CI_ITEM_while; /* checks are numbered in the order in which they run */
            kernel->inner[is_while] = make_tree(fusion->inner[is_while], outside, root);
            kernel->inner[!is_while] = make_tree(fusion->inner[!is_while], outside, root);
        }
        CI_PUSH(block->ctx, tree->kernels, tree->nkernels, tree->capkernels, kernel);
    }
    return tree;
}

static void
take_tree(CiScheduler *s, CiKernel *root, const CiKernels *tree)
{
    for (int k = 0; tree && k < tree->nkernels; k++) {
        const CiKernel *kernel = tree->kernels[k];
        const CiRegion *region = kernel->region;
        CiNestAt at = CI_BEFORE_NESTS;
        for (const CiNest *nest; (nest = ci_kernel_next_nest(kernel, &at));)
            ci_take_operands(s, root, kernel, nest);
        if (region && region->extent)
            ci_take_symbols(s, root, NULL, region->extent);
        CiBuffer *requested = region ? region->condition : kernel->check ? kernel->check->buffer : NULL;
        if (requested && requested->kind != CI_BUFFER_scalar && !ci_kernel_find_placement(root, requested))
            ci_take_buffer(s, root, requested, false);
        if (kernel->check && kernel->check->symbol)
            ci_take_symbols(s, root, NULL, kernel->check->limit);
        for (int n = 0; region && n < region->nswaps; n++) {
            CiBuffer *buffer = region->swaps[n];
            ci_take_buffer(s, root, buffer, true);
            for (int axis = 0; axis < buffer->rank; axis++) /* what may have to be copied back */
                ci_take_symbols(s, root, NULL, buffer->sizes[axis]);
        }
        take_tree(s, root, kernel->inner[0]);
        take_tree(s, root, kernel->inner[1]);
    }
}

/* Makes the outermost loops the kernel's outer axes. One iteration of the innermost is a work unit. */
static void
share_out(CiScheduler *s, CiKernel *kernel, CiKernels *tree, int count)
{
    kernel->outer = CI_NEW_ARRAY(s->ctx, CiKernelAxis, count);
    kernel->nouter = count;
    for (int k = 0; k < count; k++) {
        const CiKernel *loop = tree->kernels[0];
        kernel->outer[k] = (CiKernelAxis){loop->region->var, loop->region->extent};
        *tree = *loop->inner[0];
    }
}

CiKernel *
ci_finish_tree(CiScheduler *s, const CiFusion *fusion)
{
    CiKernel *kernel = CI_NEW(s->ctx, CiKernel);
    CiScheduler one = *s; /* the region alone is the tree */
    one.fusions = CI_NEW(s->ctx, CiFusion);
    one.fusions[0] = *fusion;
    one.nfusions = 1;
    CiKernels *tree = make_tree(&one, s, kernel);
    CiStage stage = {.tree = tree};
    CI_PUSH(s->ctx, kernel->stages, kernel->nstages, kernel->capstages, stage);
    int nparallel = ci_parallel_loops(s, fusion->region, tree);
    if (nparallel)
        share_out(s, kernel, tree, nparallel);
    else if (fusion->region->kind == CI_ITEM_for)
        CI_PUSH(s->ctx, s->kernels->refusals, s->kernels->nrefusals, s->kernels->caprefusals,
                ci_format(s->ctx, "the iterations of %s run sequentially: %s", fusion->region->region->var->name,
                          ci_why_not_parallel(s, fusion->region, tree)));
    ci_place_scalars(s, kernel, fusion);
    take_tree(s, kernel, tree);
    for (int k = 0; k < kernel->nouter; k++)
        ci_take_symbols(s, kernel, NULL, kernel->outer[k].extent);
    return kernel;
}
