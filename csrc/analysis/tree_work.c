/* Estimated work of a unit of a tree, over the sizes that a launch knows. */
#include "analysis/labels.h"

#define LONG_WORK ((int64_t)1 << 40)

const CiExpr *
ci_largest_over(CiSym *sym, const CiExpr *e, const CiExpr *symbol, int64_t low, const CiExpr *limit)
{
    const CiExpr *coef, *rest, *end = ci_expr_const(sym, low);
    if (!ci_expr_split_linear(sym, e, symbol, &coef, &rest) || (coef->low < 0 && coef->high > 0))
        return NULL;
    if (coef->low >= 0)
        end = limit ? ci_expr_sub(sym, limit, ci_expr_const(sym, 1)) : NULL;
    if (!end || low == CI_MINUS_INFINITY)
        return NULL;
    return ci_expr_max(sym, ci_expr_add(sym, rest, ci_expr_mul(sym, coef, end)),
                       ci_expr_const(sym, 0));
}

/* The extent if it is unknown, else its upper bound, which is good enough for an estimate. */
static const CiExpr *
at_most(CiSym *sym, const CiExpr *extent)
{
    return extent->high == CI_INFINITY ? extent : ci_expr_const(sym, extent->high);
}

static const CiExpr *
extent_work(CiSym *sym, const CiKernel *leaf)
{
    const CiExpr *work = ci_expr_const(sym, 0);
    for (int t = 0; t < leaf->nstages; t++) {
        const CiExpr *stage = ci_expr_const(sym, 1);
        for (int k = 0; k < leaf->stages[t].naxes; k++)
            stage = ci_expr_mul(sym, stage, at_most(sym, leaf->stages[t].axes[k].extent));
        work = ci_expr_add(sym, work, stage);
    }
    for (int k = 0; k < leaf->nouter; k++)
        work = ci_expr_mul(sym, work, at_most(sym, leaf->outer[k].extent));
    return work;
}

CiAmount
ci_kernel_points(const CiKernel *kernel)
{
    CiAmount points = ci_amount(1);
    for (int k = 0; k < kernel->nouter; k++)
        points = ci_amount_of(points, kernel->outer[k].extent);
    return points;
}

/* The elements that the stages of a kernel access. */
static CiAmount
stages_work(const CiKernel *kernel)
{
    CiAmount work = ci_amount(0);
    for (int t = 0; t < kernel->nstages; t++) {
        CiAmount stage = ci_kernel_points(kernel);
        for (int k = 0; k < kernel->stages[t].naxes; k++)
            stage = ci_amount_of(stage, kernel->stages[t].axes[k].extent);
        work = ci_amount_plus(work, stage);
    }
    return work;
}

/* Estimated work of a tree, used to tell long-running kernels. A `while` counts as long. */
static CiAmount
tree_work(const CiKernels *tree)
{
    CiAmount work = ci_amount(0);
    for (int k = 0; tree && k < tree->nkernels; k++) {
        const CiKernel *kernel = tree->kernels[k];
        CiAmount own = ci_amount_plus(ci_amount(1), stages_work(kernel));
        if (ci_kernel_is_region(kernel, CI_ITEM_while))
            own = ci_amount(LONG_WORK);
        else
            own = ci_amount_plus(own, ci_amount_plus(tree_work(kernel->inner[0]), tree_work(kernel->inner[1])));
        bool is_loop = ci_kernel_is_region(kernel, CI_ITEM_for);
        work = ci_amount_plus(work, is_loop ? ci_amount_of(own, kernel->region->extent) : own);
    }
    return work;
}

/* Upper bound of the work of one iteration. Inner loops of unknown length count with their largest
 * extent. */
static const CiExpr *
iteration_work(CiSym *sym, const CiKernels *tree)
{
    const CiExpr *work = ci_expr_const(sym, 1);
    for (int k = 0; tree && k < tree->nkernels && work; k++) {
        const CiKernel *kernel = tree->kernels[k];
        bool has_loops = ci_kernel_has_loops(kernel);
        const CiExpr *own = has_loops ? extent_work(sym, kernel) : iteration_work(sym, kernel->inner[0]);
        const CiRegion *region = kernel->region;
        if (own && ci_kernel_is_region(kernel, CI_ITEM_if))
            own = ci_expr_add(sym, own, iteration_work(sym, kernel->inner[1]));
        if (own && ci_kernel_is_region(kernel, CI_ITEM_for)) {
            own = ci_expr_mul(sym, own, at_most(sym, region->extent));
            if (ci_expr_depends_on(own, region->var))
                own = ci_largest_over(sym, own, region->var, 0, region->extent);
        }
        if (ci_kernel_is_region(kernel, CI_ITEM_while))
            own = ci_expr_const(sym, LONG_WORK);
        work = ci_expr_add(sym, work, own ? own : ci_expr_const(sym, LONG_WORK));
    }
    return work;
}

const CiExpr *
ci_tree_work(CiSym *sym, const CiKernel *kernel)
{
    const CiKernels *tree = ci_kernel_tree(kernel);
    if (!kernel->nouter) {
        int64_t all = ci_amount_high(tree_work(tree));
        return ci_expr_const(sym, all < LONG_WORK ? all : LONG_WORK);
    }
    const CiExpr *work = iteration_work(sym, tree);
    for (int k = 0; k < kernel->nouter && work; k++)
        if (ci_expr_depends_on(work, kernel->outer[k].var))
            work = ci_largest_over(sym, work, kernel->outer[k].var, 0, kernel->outer[k].extent);
    return work ? work : ci_expr_const(sym, LONG_WORK);
}

int64_t
ci_kernel_work(CiSym *sym, const CiKernel *kernel)
{
    if (!ci_kernel_tree(kernel))
        return ci_amount_high(stages_work(kernel));
    return ci_amount_high(ci_amount_times(ci_kernel_points(kernel), ci_amount(ci_tree_work(sym, kernel)->high)));
}
