/* Planning one kernel: common outer axes for several nests, and stages that run in order inside
 * each outer point.
 *
 * The nest with the fewest point axes proposes its point axes as the outer ones, then ever fewer of
 * them. Every other nest must have the same extents as its first or as its last point axes.
 * Dependences inside the kernel must stay within one outer point; within one stage they must be on
 * the very same element. */
#include "schedule/plan.h"

struct CiPlanned {
    CiNest *nest; /* over kernel symbols */
    CiAxis *inner;
    int ninner;
    int stage;
    uint64_t reads, stores; /* bits of the buffers that it loads, and of its target */
};

/* The buffer's bit in a set. If there are more than 64 buffers, some share a bit. */
static uint64_t
bit_of(const CiBuffer *buffer)
{
    return 1ull << (buffer->id % 64);
}

static void
note_buffers(CiPlanned *planned)
{
    const CiNest *nest = planned->nest;
    planned->stores = bit_of(nest->target);
    planned->reads = 0;
    for (const CiScalar *load = NULL; (load = ci_nest_next_load(nest, load));)
        planned->reads |= bit_of(load->buffer);
}

/* Rewrites nest over the kernel's symbols, its point axes [first, first + nouter) being the outer
 * ones. */
static void
rewrite_nest(CiScheduler *s, const CiKernel *kernel, const CiNest *nest, int first, CiPlanned *out)
{
    const CiExpr *from[2 * CI_MAX_RANK], *to[2 * CI_MAX_RANK];
    CiNest *copy = CI_NEW(s->ctx, CiNest);
    *copy = *nest;
    out->inner = CI_NEW_ARRAY(s->ctx, CiAxis, nest->naxes + 1);
    out->ninner = 0;
    for (int k = 0; k < nest->naxes; k++) {
        CiAxis axis = nest->axes[k];
        from[k] = axis.var;
        if (k >= first && k < first + kernel->nouter)
            to[k] = kernel->outer[k - first].var;
        else {
            axis.var = to[k] =
                ci_expr_index(s->sym, ci_format(s->ctx, "j%d", out->ninner), axis.extent);
            out->inner[out->ninner++] = axis;
        }
    }
    ci_nest_substitute(s->ctx, s->sym, copy, nest->naxes, from, to);
    copy->axes = CI_NEW_ARRAY(s->ctx, CiAxis, nest->naxes + 1);
    for (int k = 0; k < kernel->nouter; k++)
        copy->axes[k] = (CiAxis){
            .kind = CI_AXIS_point, .var = kernel->outer[k].var, .extent = kernel->outer[k].extent};
    for (int k = 0; k < out->ninner; k++)
        copy->axes[kernel->nouter + k] = out->inner[k];
    out->nest = copy;
    note_buffers(out);
}

/* Checks a pair of accesses, one of which is a write. Returns the reason against one kernel, or NULL. */
typedef const char *(*CiPairCheck)(CiScheduler *s, const CiKernel *kernel, const CiExpr *a,
                                   const CiExpr *b);

static const char *
check_loads(CiScheduler *s, const CiKernel *kernel, const CiNest *reader, const CiNest *writer,
            CiPairCheck check)
{
    const char *why = NULL;
    for (const CiScalar *load = NULL; !why && (load = ci_nest_next_load(reader, load));)
        if (load->buffer == writer->target)
            why = check(s, kernel, writer->store, load->index);
    return why;
}

static const char *
check_pair(CiScheduler *s, const CiKernel *kernel, const CiNest *early, const CiNest *late,
           CiPairCheck check)
{
    const char *why = check_loads(s, kernel, late, early, check);
    if (!why)
        why = check_loads(s, kernel, early, late, check);
    if (!why && early->target == late->target)
        why = check(s, kernel, early->store, late->store);
    return why;
}

/* True if one nest stores a buffer that the other accesses. The bits of most pairs in a large kernel differ. */
static bool
depends(const CiPlanned *early, const CiPlanned *late)
{
    const CiNest *a = early->nest, *b = late->nest;
    return a->target == b->target ||
           ((early->stores & late->reads) && ci_nest_loads(b, a->target)) ||
           ((late->stores & early->reads) && ci_nest_loads(a, b->target));
}

static const char *
check_same_element(CiScheduler *s, const CiKernel *kernel, const CiExpr *a, const CiExpr *b)
{
    (void)s;
    (void)kernel;
    return a == b ? NULL : "it is read at another index of the same loop";
}

/* True if both may store the same element in one loop, in their order: neither is a reduction or a scatter. */
static bool
can_store_both(const CiNest *early, const CiNest *late)
{
    return early->fold == CI_OP_none && late->fold == CI_OP_none && !ci_nest_is_indirect(early) &&
           !ci_nest_is_indirect(late);
}

/* True if `late`, which depends on `early`, may run in the same loop: it reads the element of the same iteration. */
static bool
can_share_loop(CiScheduler *s, const CiKernel *kernel, const CiNest *early, const CiNest *late)
{
    if (ci_nest_is_fold(early) || (early->target == late->target && !can_store_both(early, late)))
        return false;
    return check_pair(s, kernel, early, late, check_same_element) == NULL;
}

/* True if both reductions may have one order: one is free, or their orders are equal. */
static bool
share_order(const CiNest *a, const CiNest *b)
{
    return ci_op_is_order_free(a->fold, a->target->dtype) ||
           ci_op_is_order_free(b->fold, b->target->dtype) ||
           ci_fold_order_equal(a->order, b->order);
}

static bool
has_same_axes(const CiStage *stage, const CiPlanned *planned)
{
    int folds = planned->nest->naxes - planned->nest->npoint;
    if (stage->naxes != planned->ninner || ci_nest_is_serial(planned->nest))
        return false;
    for (int k = 0; k < stage->naxes; k++) {
        if (stage->axes[k].extent != planned->inner[k].extent)
            return false;
    }
    for (int k = 0; k < stage->nnests; k++) {
        if (ci_nest_is_serial(stage->nests[k]))
            return false;
        int others = stage->nests[k]->naxes - stage->nests[k]->npoint;
        if (folds && others && (folds != others || !share_order(stage->nests[k], planned->nest)))
            return false;
    }
    return true;
}

/* True if the nest may share its loop with all nests of the stage that it depends on. */
static bool
fits_stage(CiScheduler *s, const CiKernel *kernel, int stage, const CiPlanned *all, int count,
           const CiPlanned *planned)
{
    for (int k = 0; k < count; k++)
        if (all[k].stage == stage && depends(&all[k], planned) &&
            !can_share_loop(s, kernel, all[k].nest, planned->nest))
            return false;
    return true;
}

/* Finds a stage from `first` on, not before the stages that the nest depends on; else a new one. */
static int
find_stage(CiScheduler *s, const CiKernel *kernel, int first, const CiPlanned *all, int count,
           const CiPlanned *planned)
{
    int latest = -1;
    for (int k = 0; k < count; k++)
        if (all[k].stage > latest && depends(&all[k], planned))
            latest = all[k].stage;
    for (int stage = latest > first ? latest : first; stage < kernel->nstages; stage++)
        if (has_same_axes(&kernel->stages[stage], planned) &&
            (stage > latest || fits_stage(s, kernel, stage, all, count, planned)))
            return stage;
    return kernel->nstages;
}

static void
add_to_stage(CiScheduler *s, CiKernel *kernel, CiPlanned *planned)
{
    if (planned->stage == kernel->nstages) {
        CiStage stage = {.naxes = planned->ninner,
                         .axes = CI_NEW_ARRAY(s->ctx, CiKernelAxis, planned->ninner + 1)};
        for (int k = 0; k < planned->ninner; k++)
            stage.axes[k] =
                (CiKernelAxis){.var = planned->inner[k].var, .extent = planned->inner[k].extent};
        CI_PUSH(s->ctx, kernel->stages, kernel->nstages, kernel->capstages, stage);
    }
    CiStage *stage = &kernel->stages[planned->stage];
    CI_PUSH(s->ctx, stage->nests, stage->nnests, stage->capnests, planned->nest);
}

static bool
extents_match(const CiKernel *kernel, const CiNest *nest, int first)
{
    if (first < 0)
        return false;
    for (int k = 0; k < kernel->nouter; k++) {
        if (nest->axes[first + k].extent != kernel->outer[k].extent)
            return false;
    }
    return true;
}

/* True if both nests read a buffer at the same outer index, so that one kernel reads it once. */
static bool
shares_reads(CiScheduler *s, const CiKernel *kernel, const CiNest *a, const CiNest *b)
{
    for (const CiScalar *x = NULL; (x = ci_nest_next_load(a, x));)
        for (const CiScalar *y = NULL; (y = ci_nest_next_load(b, y));)
            if (x->buffer == y->buffer && x->buffer->kind != CI_BUFFER_scalar &&
                !ci_why_not_local(s, kernel, x->index, y->index))
                return true;
    return false;
}

/* Points of the outer axes run at the same time, so their stores must not overlap. */
static const char *
check_separate(CiScheduler *s, const CiKernel *kernel, const CiNest *nest)
{
    if (!ci_nest_is_serial(nest) || !ci_why_not_local(s, kernel, nest->store, nest->store))
        return NULL;
    return "stores at indices from data keep their order";
}

static const char *
check_placed(CiScheduler *s, const CiKernel *kernel, const CiPlanned *all, int count,
             const CiPlanned *planned)
{
    const CiNest *nest = planned->nest;
    bool is_related = count == 0;
    for (int k = 0; k < count; k++) {
        const char *why = NULL;
        if (depends(&all[k], planned)) {
            why = check_pair(s, kernel, all[k].nest, nest, ci_why_not_local);
            is_related = true;
        }
        if (why)
            return why;
        is_related = is_related || ((all[k].reads & planned->reads) &&
                                    shares_reads(s, kernel, all[k].nest, nest));
    }
    return is_related ? NULL : "both read the buffer at other outer indices";
}

static const char *
position_at(CiScheduler *s, CiKernel *kernel, const CiNest *nest, int first, CiPlanned *all, int count)
{
    CiPlanned *planned = &all[count];
    rewrite_nest(s, kernel, nest, first, planned);
    const char *why = check_separate(s, kernel, planned->nest);
    if (!why)
        why = check_placed(s, kernel, all, count, planned);
    if (why)
        return why;
    planned->stage = find_stage(s, kernel, 0, all, count, planned);
    add_to_stage(s, kernel, planned);
    return NULL;
}

/* Adds the nest to the kernel: its first or its last point axes become the outer axes. Returns why not, or NULL. */
static const char *
place_nest(CiScheduler *s, CiKernel *kernel, const CiNest *nest, CiPlanned *all, int count)
{
    const char *why = "their outer axes have other extents";
    int firsts[2] = {0, nest->npoint - kernel->nouter};
    for (int attempt = 0; attempt < 2; attempt++) {
        if (!extents_match(kernel, nest, firsts[attempt]) || (attempt && firsts[1] == firsts[0]))
            continue;
        why = position_at(s, kernel, nest, firsts[attempt], all, count);
        if (!why)
            return NULL;
    }
    if (extents_match(kernel, nest, 0))
        return why;
    const CiNest *refitted = ci_refit_axes(s, nest, kernel->nouter, kernel->outer);
    return refitted ? position_at(s, kernel, refitted, 0, all, count) : why;
}

static bool
may_be_flat(const CiNest *nest)
{
    return nest->naxes >= 2 && nest->npoint == nest->naxes;
}

/* If there are no outer axes, a pointwise nest may run along the only axis of another nest with as many elements. */
static const CiNest *
as_flat(CiScheduler *s, const CiNest *nest, int count, const CiFusionNest *nests)
{
    const CiExpr *points = ci_expr_const(s->sym, 1);
    if (!may_be_flat(nest))
        return nest;
    for (int k = 0; k < nest->naxes; k++)
        points = ci_expr_mul(s->sym, points, nest->axes[k].extent);
    for (int k = 0; k < count; k++) {
        const CiNest *other = nests[k].nest;
        CiKernelAxis axis = {.extent = points};
        if (other->naxes != 1 || other->axes[0].extent != points)
            continue;
        const CiNest *flat = ci_refit_axes(s, nest, 1, &axis);
        return flat ? flat : nest;
    }
    return nest;
}

/* Plans the nests from number `first` on, after those that are planned already. */
static const char *
plan_from(CiScheduler *s, CiKernel *kernel, int first, int count, const CiFusionNest *nests,
          CiPlanned *all)
{
    for (int k = first; k < count; k++) {
        const CiNest *nest = nests[k].nest;
        nest = kernel->nouter ? nest : as_flat(s, nest, count, nests);
        const char *why = place_nest(s, kernel, nest, all, k);
        if (why)
            return why;
    }
    return ci_why_not_together(s, kernel, count);
}

/* Makes an empty kernel over the first point axes of the nest. */
static CiKernel *
new_kernel(CiScheduler *s, const CiNest *nest, int nouter)
{
    CiKernel *kernel = CI_NEW(s->ctx, CiKernel);
    kernel->nouter = nouter;
    kernel->outer = CI_NEW_ARRAY(s->ctx, CiKernelAxis, nouter + 1);
    for (int k = 0; k < nouter; k++) {
        const CiExpr *extent = nest->axes[k].extent;
        kernel->outer[k].extent = extent;
        kernel->outer[k].var = ci_expr_index(s->sym, ci_format(s->ctx, "i%d", k), extent);
    }
    return kernel;
}

/* Plans a kernel over as many point axes of the nest as possible, at least `fewest`. */
static bool
plan_over(CiScheduler *s, const CiNest *nest, int fewest, CiFusion *fusion, const char **why)
{
    for (int nouter = nest->npoint; nouter >= fewest; nouter--) {
        CiKernel *kernel = new_kernel(s, nest, nouter);
        CiPlanned *all = CI_NEW_ARRAY(s->ctx, CiPlanned, fusion->nnests);
        const char *reason = plan_from(s, kernel, 0, fusion->nnests, fusion->nests, all);
        if (!reason) {
            fusion->kernel = kernel;
            fusion->planned = all;
            return true;
        }
        if (!*why)
            *why = reason;
    }
    return false;
}

/* Finds the first of the nests with the fewest axes whose outermost axis differs from that of `least`; else NULL. */
static const CiNest *
find_other(const CiNest *least, int count, const CiFusionNest *nests)
{
    const CiNest *other = NULL;
    for (int k = 0; k < count; k++) {
        const CiNest *nest = nests[k].nest;
        if (nest->npoint && least->npoint && nest->axes[0].extent != least->axes[0].extent &&
            (!other || nest->npoint < other->npoint))
            other = nest;
    }
    return other;
}

static const CiNest *
find_least(int count, const CiFusionNest *nests)
{
    const CiNest *least = nests[0].nest;
    for (int k = 1; k < count; k++) {
        if (nests[k].nest->npoint < least->npoint)
            least = nests[k].nest;
    }
    return least;
}

static bool
plan_fusion(CiScheduler *s, CiFusion *fusion, const char **why)
{
    const CiNest *least = find_least(fusion->nnests, fusion->nests);
    const CiNest *other = find_other(least, fusion->nnests, fusion->nests);
    *why = NULL;
    if (other && (plan_over(s, least, 1, fusion, why) || plan_over(s, other, 1, fusion, why)))
        return true;
    return plan_over(s, least, 0, fusion, why);
}

/* Copies the kernel with stages of its own, so that they can grow. */
static CiKernel *
copy_kernel(CiScheduler *s, const CiKernel *kernel)
{
    CiKernel *copy = CI_NEW(s->ctx, CiKernel);
    *copy = *kernel;
    copy->stages = CI_NEW_ARRAY(s->ctx, CiStage, kernel->nstages + 1);
    copy->capstages = kernel->nstages;
    for (int k = 0; k < kernel->nstages; k++) {
        copy->stages[k] = kernel->stages[k];
        copy->stages[k].capnests = kernel->stages[k].nnests;
    }
    return copy;
}

/* True if the first plan that would be tried for both extends the plan of `first`. */
static bool
goes_on(const CiFusion *first, const CiFusion *both)
{
    if (!first->planned ||
        both->nests[first->nnests - 1].position != first->nests[first->nnests - 1].position)
        return false;
    for (int k = 0; k < first->nnests && !first->kernel->nouter; k++)
        if (may_be_flat(first->nests[k].nest)) /* by what is new, too */
            return false;
    const CiNest *least = find_least(first->nnests, first->nests);
    return first->kernel->nouter == least->npoint && extents_match(first->kernel, least, 0) &&
           find_least(both->nnests, both->nests) == least;
}

bool
ci_plan_joined(CiScheduler *s, const CiFusion *first, CiFusion *both, const char **why)
{
    if (!goes_on(first, both))
        return plan_fusion(s, both, why);
    CiKernel *kernel = copy_kernel(s, first->kernel);
    CiPlanned *all = CI_NEW_ARRAY(s->ctx, CiPlanned, both->nnests);
    for (int k = 0; k < first->nnests; k++)
        all[k] = first->planned[k];
    if (plan_from(s, kernel, first->nnests, both->nnests, both->nests, all))
        return plan_fusion(s, both, why);
    both->kernel = kernel;
    both->planned = all;
    return true;
}

CiKernel *
ci_plan_combined(CiScheduler *s, int count, const CiFusionNest *nests)
{
    CiKernel *kernel = new_kernel(s, nests[0].nest, 0);
    CiPlanned *all = CI_NEW_ARRAY(s->ctx, CiPlanned, count);
    for (int k = 0, first = 0; k < count; k++) {
        CiPlanned *planned = &all[k];
        first = nests[k].part != nests[first].part ? k : first;
        rewrite_nest(s, kernel, nests[k].nest, 0, planned);
        planned->stage =
            k == first ? kernel->nstages
                       : find_stage(s, kernel, all[first].stage, &all[first], k - first, planned);
        add_to_stage(s, kernel, planned);
    }
    return kernel;
}

void
ci_add_locs(CiScheduler *s, CiKernel *kernel, const CiFusion *fusion)
{
    for (int n = 0; n < fusion->nnests; n++) {
        const CiNest *nest = fusion->nests[n].nest;
        for (int k = 0; k < nest->nlocs && kernel->nlocs < 16; k++) {
            bool is_known = false;
            for (int m = 0; m < kernel->nlocs; m++)
                is_known |= kernel->locs[m].line == nest->locs[k].line &&
                            kernel->locs[m].file == nest->locs[k].file;
            if (!is_known)
                CI_PUSH(s->ctx, kernel->locs, kernel->nlocs, kernel->caplocs, nest->locs[k]);
        }
    }
}

CiKernel *
ci_plan_fusion(CiScheduler *s, CiFusion *fusion)
{
    const char *why = NULL;
    if (!fusion->kernel && !plan_fusion(s, fusion, &why))
        ci_fail(s->ctx, CI_ERR_INTERNAL, "a nest has no kernel: %s", why);
    return fusion->kernel;
}
