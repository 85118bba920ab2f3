/* Fusion policy: whether nests that could share a kernel should. The criteria are the orders of
 * their folds, the direction in which memory is traversed, and the work left for threads. */
#include "analysis/occupancy.h"
#include "schedule/plan.h"

/* A float fold has its lanes either across the fold (order lanes) or across points (order rows); a
 * kernel has one kind. */
static const char *
check_orders(const CiKernel *kernel)
{
    bool has_lanes = false, has_rows = false;
    for (int k = 0; k < kernel->nstages; k++) {
        for (int n = 0; n < kernel->stages[k].nnests; n++) {
            const CiNest *nest = kernel->stages[k].nests[n];
            if (nest->fold == CI_OP_none || ci_op_is_order_free(nest->fold, nest->target->dtype))
                continue;
            has_lanes |= ci_fold_runs_along(nest->order);
            has_rows |= ci_fold_runs_across(nest->order);
            if (ci_fold_runs_across(nest->order) && nest->npoint > kernel->nouter)
                return "a fold over rows needs all its points outside";
        }
    }
    return has_lanes && has_rows ? "one folds along memory, the other across it" : NULL;
}


/* Bytes that are traversed inside one outer point, by one loop after another. */
static CiAmount
inner_bytes(const CiKernel *kernel)
{
    CiAmount bytes = ci_amount(0);
    for (int k = 0; k < kernel->nstages; k++) {
        CiAmount stage = ci_amount(ci_stage_widest_element(&kernel->stages[k]));
        for (int a = 0; a < kernel->stages[k].naxes; a++)
            stage = ci_amount_of(stage, kernel->stages[k].axes[a].extent);
        bytes = ci_amount_plus(bytes, stage);
    }
    return bytes;
}

/* An axis inside takes steps farther than the last one outside. */
static bool
traverses_strided(CiScheduler *s, const CiKernel *kernel, const CiNest *nest)
{
    const CiExpr *outside, *inside, *rest;
    if (kernel->nouter == 0 || ci_nest_is_fold(nest) ||
        !ci_expr_split_linear(s->sym, nest->store, kernel->outer[kernel->nouter - 1].var, &outside,
                              &rest))
        return false;
    for (int k = kernel->nouter; k < nest->npoint; k++) {
        if (ci_expr_split_linear(s->sym, nest->store, nest->axes[k].var, &inside, &rest) &&
            ci_sym_known_lt(s->sym, outside, inside))
            return true;
    }
    return false;
}

/* Outer points of one thread: a strided traversal has neighbouring ones in its lanes. A GPU's lanes are threads. */
static int64_t
points_of_unit(CiScheduler *s, const CiKernel *kernel)
{
    for (int k = 0; k < kernel->nstages && !s->machine->has_one_direction; k++)
        for (int n = 0; n < kernel->stages[k].nnests; n++)
            if (traverses_strided(s, kernel, kernel->stages[k].nests[n]))
                return CI_STAGE_TILE;
    return 1;
}

static const char *
check_parallelism(CiScheduler *s, const CiKernel *kernel, int count)
{
    int64_t together = points_of_unit(s, kernel);
    CiAmount points = ci_amount(1);
    for (int k = 0; k < kernel->nouter; k++)
        points = ci_amount_of(points, kernel->outer[k].extent);
    if (count == 1 || !ci_fill_is_few(s->machine, ci_amount_high(points), together) || ci_can_split(s->machine, kernel))
        return NULL;
    if (ci_amount_high(inner_bytes(kernel)) <= CI_CHOOSE(s, separate_bytes) / together)
        return NULL;
    return "too little would be left to share out among threads";
}

/* NULL or the reason against fusion. Sharing data inside an outer point is worth a strided
 * traversal if the shared data has inner axes; it is not if it is one element per point. Lanes of a
 * GPU are threads, which have one direction in a kernel: none is good for nests of both. */
static const char *
check_direction(CiScheduler *s, const CiKernel *kernel)
{
    int deep = 0, across = 0, along = 0;
    for (int k = 0; k < kernel->nstages; k++) {
        const CiStage *stage = &kernel->stages[k];
        for (int n = 0; n < stage->nnests; n++) {
            bool is_deep = stage->naxes > 0, is_across = traverses_strided(s, kernel, stage->nests[n]);
            deep += is_deep;
            across += is_across;
            along += is_deep && !is_across && !ci_nest_is_fold(stage->nests[n]);
        }
    }
    if (across && along && s->machine->has_one_direction)
        return "one is contiguous in memory where the other is strided";
    return across && deep == 1 ? "one would be read with a large stride for each element of the other"
                                  : NULL;
}

static bool
has_separate(const CiKernel *kernel)
{
    for (int k = 0; k < kernel->nstages; k++)
        for (int n = 0; n < kernel->stages[k].nnests; n++)
            if (kernel->stages[k].nests[n]->is_separate)
                return true;
    return false;
}

/* NULL if the sums of products in the kernel are a template's, or there are none. */
static const char *
why_no_template(const CiScheduler *s, const CiKernel *kernel)
{
    CiProduct product;
    bool has_product = s->machine->has_templates && ci_kernel_has_product(kernel);
    return has_product ? ci_kernel_why_no_product(kernel, &product) : NULL;
}

const char *
ci_why_not_together(CiScheduler *s, const CiKernel *kernel, int count)
{
    if (count > 1 && has_separate(kernel))
        return "one is a kernel of its own, with more points or an earlier end";
    if (ci_template_fits_whole(s->sym, s->machine, kernel))
        return NULL;
    const char *why = check_orders(kernel);
    if (!why && count > 1)
        why = check_direction(s, kernel);
    if (!why && count > 1)
        why = why_no_template(s, kernel);
    return why ? why : check_parallelism(s, kernel, count);
}
