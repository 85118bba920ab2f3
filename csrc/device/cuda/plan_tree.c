/* How a tree is laid on the card. A trip of the parallel loop around it (or the whole tree, where
 * there is none) belongs to one thread, or, when some statement is long enough to be shared out, to
 * a warp.
 *
 * Invariant: the threads of a warp take every branch together and hold equal values of all scalars;
 * between two statements each thread sees what all have stored. A statement runs in one of three
 * ways: all threads do the same (scalars alone), all share it out, or the first does it and tells
 * the others. */
#include "device/cuda/cuda.h"

#define CI_CUDA_TREE_LEAST 16   /* elements of a statement that are worth a warp */
#define CI_CUDA_TREE_THREADS 64 /* of a block: trips are long, and there may be few of them */
#define CI_CUDA_WARP 32

typedef struct Leaves {
    CiContext *ctx;
    const CiKernels *kernels;
    CiCudaPlan *plan;
    int capacity;
} Leaves;

/* ---- what the tree is like ---- */

int64_t
ci_cuda_times(int64_t count, const CiExpr *extent)
{
    return extent->high >= 1 << 20 ? 1 << 20 : count * (extent->high > 0 ? extent->high : 1);
}

static bool
is_long(const CiKernel *leaf)
{
    int64_t outer = 1;
    for (int k = 0; k < leaf->nouter; k++)
        outer = ci_cuda_times(outer, leaf->outer[k].extent);
    for (int t = 0; t < leaf->nstages; t++) {
        int64_t count = outer;
        for (int k = 0; k < leaf->stages[t].naxes; k++)
            count = ci_cuda_times(count, leaf->stages[t].axes[k].extent);
        if (count >= CI_CUDA_TREE_LEAST)
            return true;
    }
    return false;
}

static bool
has_rows(const CiKernel *leaf)
{
    for (int k = 0; k < leaf->nplacements; k++)
        if (leaf->placements[k].place == CI_PLACE_row)
            return true;
    return false;
}

static bool
wants_warp(const CiLoopTree *tree)
{
    for (int k = 0; k < tree->count; k++) {
        const CiTreeNode *node = &tree->nodes[k];
        if ((node->leaf && (is_long(node->leaf) || has_rows(node->leaf))) ||
            wants_warp(&node->body) || wants_warp(&node->other))
            return true;
    }
    return false;
}

static bool
has_wide_loops(const CiLoopTree *tree)
{
    for (int k = 0; k < tree->count; k++) {
        const CiTreeNode *node = &tree->nodes[k];
        if ((node->region && node->region->extent && !ci_cuda_is_small(node->region->extent)) ||
            has_wide_loops(&node->body) || has_wide_loops(&node->other))
            return true;
    }
    return false;
}

/* ---- leaves ---- */

static bool
is_scalar(const CiKernel *leaf, const CiBuffer *buffer)
{
    const CiPlacement *placement = ci_kernel_find_placement(leaf, buffer);
    return placement && placement->place == CI_PLACE_scalar;
}

bool
ci_cuda_leaf_stores_memory(const CiKernel *leaf)
{
    for (int t = 0; t < leaf->nstages; t++)
        for (int n = 0; n < leaf->stages[t].nnests; n++)
            if (!ci_kernel_find_placement(leaf, leaf->stages[t].nests[n]->target))
                return true;
    return false;
}

/* Elements that are shared out may not need each other, and scalars are made by all or by one. */
static bool
can_share(const CiCudaPlan *plan)
{
    for (int t = 0; t < plan->nstages; t++) {
        const CiCudaStage *s = &plan->stages[t];
        bool all_have_it = s->kind == CI_CUDA_once || s->kind == CI_CUDA_fold;
        if (ci_cuda_has_hazard(s->stage))
            return false;
        for (int n = 0; n < s->stage->nnests; n++) {
            const CiNest *nest = s->stage->nests[n];
            if (ci_nest_is_serial(nest) || (plan->is_flat && ci_nest_is_scan(nest)))
                return false;
            if (is_scalar(plan->kernel, nest->target) &&
                !(all_have_it && (s->kind == CI_CUDA_once || ci_nest_is_fold(nest))))
                return false;
        }
    }
    return true;
}

static CiCudaPlan *
plan_leaf(Leaves *leaves, const CiKernel *leaf)
{
    CiCudaShape shape = leaves->plan->shape, alone = {true, 1, shape.points};
    CiCudaPlan *plan = ci_cuda_plan_leaf(leaves->ctx, leaves->kernels, leaf, &shape);
    bool has_axes = leaf->nouter > 0;
    for (int t = 0; t < leaf->nstages; t++)
        has_axes |= leaf->stages[t].naxes > 0;
    bool shares = has_axes ? can_share(plan) : !ci_cuda_leaf_stores_memory(leaf);
    if (shape.group == 1 || shares)
        return plan;
    plan = ci_cuda_plan_leaf(leaves->ctx, leaves->kernels, leaf, &alone);
    plan->is_alone = true;
    return plan;
}

static void
add_leaves(Leaves *leaves, const CiLoopTree *tree)
{
    CiCudaPlan *plan = leaves->plan;
    for (int k = 0; k < tree->count; k++) {
        const CiTreeNode *node = &tree->nodes[k];
        if (node->leaf) {
            CiCudaPlan *leaf = plan_leaf(leaves, node->leaf);
            CI_PUSH(leaves->ctx, plan->leaves, plan->nleaves, leaves->capacity, leaf);
            plan->is_wide |= leaf->is_wide;
            if (leaf->shared_bytes > plan->shared_bytes)
                plan->shared_bytes = leaf->shared_bytes;
        }
        add_leaves(leaves, &node->body);
        add_leaves(leaves, &node->other);
    }
}

const CiCudaPlan *
ci_cuda_find_leaf(const CiCudaPlan *plan, const CiKernel *leaf)
{
    for (int k = 0; k < plan->nleaves; k++)
        if (plan->leaves[k]->kernel == leaf)
            return plan->leaves[k];
    return NULL;
}

void
ci_cuda_plan_tree(CiContext *ctx, const CiKernels *kernels, CiCudaPlan *plan)
{
    const CiLoopTree *tree = ci_kernel_tree(plan->kernel);
    bool is_warp = wants_warp(tree), is_one = plan->kernel->nouter == 0;
    int group = is_warp ? CI_CUDA_WARP : 1;
    plan->is_tree = true;
    plan->is_wide = has_wide_loops(tree) || !ci_cuda_is_small(plan->npoints);
    plan->shape = (CiCudaShape){true, group, is_one ? 1 : CI_CUDA_TREE_THREADS / group};
    Leaves leaves = {.ctx = ctx, .kernels = kernels, .plan = plan};
    add_leaves(&leaves, tree);
    if (plan->shared_bytes > CI_CUDA_SHARED_COMFORT && !is_one) {
        plan->shape.points = 1; /* rows are planned for that many */
        plan->nleaves = 0;
        plan->shared_bytes = 0;
        add_leaves(&leaves, tree);
    }
    for (int k = 0; k < plan->nleaves; k++)
        plan->leaves[k]->is_wide = plan->is_wide;
}
