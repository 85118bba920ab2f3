/* Loops with independent iterations. If the target has many threads, the iterations of a perfectly
 * nested inner loop are included.
 *
 * No iteration may access an element that another one stores. For arrays, every store is compared
 * with every other access to the same buffer: different iterations must address different elements,
 * by the same proof as for the points of a kernel's outer axes. A temporary of one element is
 * private to an iteration if the iteration stores it first and it is not used outside the loop. A
 * check may fail in one iteration while others continue, because their stores are then never seen.
 * If a kernel runs in ranges, one range would have to stop the others, so a loop with checks runs
 * sequentially there. */
#include "schedule/plan.h"

typedef struct Refusal {
    CiScheduler *s;
    const char *why_not;
} Refusal;

static void
refuse_item(void *arg, CiItem *item)
{
    Refusal *refusal = arg;
    if (item->ext)
        refusal->why_not = "it calls a library";
    if (item->check && !refusal->s->machine->has_parallel_checks)
        refusal->why_not = "a check in it may fail";
    if (item->region && item->region->nswaps)
        refusal->why_not = "arrays in it exchange their memory";
}

typedef struct Loop {
    const CiItem *item;
    const CiKernels *tree;
    int *nreaders, *nwriters; /* of the loop */
} Loop;

static bool
is_own_of_iteration(CiScheduler *s, const Loop *loop, const CiBuffer *buffer)
{
    int id = buffer->id;
    if (buffer->kind != CI_BUFFER_temp || loop->nreaders[id] != s->totals->nreaders[id] ||
        loop->nwriters[id] != s->totals->nwriters[id])
        return false;
    if (loop->tree && ci_is_placed_in_leaf(loop->tree, buffer))
        return true;
    return !buffer->is_swapped && ci_is_one_element(s->sym, buffer) &&
           ci_first_use(&loop->item->region->body, buffer) == CI_FIRST_store;
}

static const char *
check_store(CiScheduler *s, const CiKernel *iterations, const CiAccesses *all, const CiNestAccess *store)
{
    for (int k = 0; k < all->count; k++) {
        if (all->list[k].buffer == store->buffer &&
            ci_why_not_local(s, iterations, store->index, all->list[k].index))
            return ci_format(s->ctx, "iterations conflict on %s", store->buffer->name);
    }
    return NULL;
}

/* Why the nested loops over `axes` cannot run in parallel as one; item is the innermost. NULL: they can. */
static const char *
why_not_together(CiScheduler *s, const CiItem *item, const CiKernels *tree, CiKernelAxis *axes,
                 int count)
{
    const CiRegion *region = item->region;
    Refusal refusal = {.s = s};
    int nbuffers = s->loops->nbuffers;
    Loop loop = {item, tree, CI_NEW_ARRAY(s->ctx, int, nbuffers + 1),
                 CI_NEW_ARRAY(s->ctx, int, nbuffers + 1)};
    if (item->kind != CI_ITEM_for || region->nswaps)
        return "it is no plain loop";
    ci_items_visit(&region->body, refuse_item, &refusal);
    if (refusal.why_not)
        return refusal.why_not;
    const CiAccesses all = ci_items_accesses(s->ctx, &region->body);
    if ((int64_t)all.nstores * all.count > CI_CHOOSE(s, most_pairs))
        return "it has too many elements to compare";
    const CiItems items = {(CiItem *)item, 1, 1};
    ci_count_uses(&items, loop.nreaders, loop.nwriters);
    CiKernel iterations = {.outer = axes, .nouter = count};
    for (int k = 0; k < all.count; k++) {
        if (all.list[k].load || is_own_of_iteration(s, &loop, all.list[k].buffer))
            continue;
        const char *why = check_store(s, &iterations, &all, &all.list[k]);
        if (why)
            return why;
    }
    return NULL;
}

const char *
ci_why_not_parallel(CiScheduler *s, const CiItem *item, const CiKernels *tree)
{
    CiKernelAxis axis = {.var = item->region->var, .extent = item->region->extent};
    return why_not_together(s, item, tree, &axis, 1);
}

int
ci_parallel_loops(CiScheduler *s, const CiItem *item, const CiKernels *tree)
{
    CiKernelAxis axes[CI_MAX_RANK];
    int depth = 0, found = 0;
    while (item->kind == CI_ITEM_for && !item->region->nswaps && depth < s->machine->parallel_depth) {
        for (int k = 0; k < depth; k++)
            if (ci_expr_depends_on(item->region->extent, axes[k].var))
                return found;
        axes[depth++] = (CiKernelAxis){.var = item->region->var, .extent = item->region->extent};
        if (!why_not_together(s, item, tree, axes, depth))
            found = depth;
        if (item->region->body.count != 1)
            break;
        item = &item->region->body.items[0];
    }
    return found;
}
