/* Scalars of a tree: a temporary of one element that the tree stores becomes a variable of its
 * function.
 *
 * Invariants: a variable is loaded from memory before the tree if the tree may read it, or leave it
 * unchanged, before storing it. It is stored to memory after the tree if a reader outside, or
 * another run of the same tree in a loop around kernels, may read it. */
#include "schedule/plan.h"

bool
ci_is_placed_in_leaf(const CiKernels *tree, const CiBuffer *buffer)
{
    for (int k = 0; tree && k < tree->nkernels; k++) {
        const CiKernel *kernel = tree->kernels[k];
        if (ci_kernel_find_placement(kernel, buffer) || ci_is_placed_in_leaf(kernel->inner[0], buffer) ||
            ci_is_placed_in_leaf(kernel->inner[1], buffer))
            return true;
    }
    return false;
}

static void
add_placement(CiScheduler *s, CiKernel *kernel, CiPlacement placement)
{
    CI_PUSH(s->ctx, kernel->placements, kernel->nplacements, kernel->capplacements, placement);
}

/* A compress stores at a position that it counts, and a variable has no positions. */
static void
note_packed(void *arg, const CiNest *nest)
{
    bool *is_placed = arg;
    is_placed[nest->target->id] |= nest->body.ops[nest->body.result].op == CI_OP_pack;
}

static void
note_placed(const CiKernels *tree, bool *is_placed)
{
    for (int k = 0; tree && k < tree->nkernels; k++) {
        const CiKernel *kernel = tree->kernels[k];
        for (int p = 0; p < kernel->nplacements; p++)
            is_placed[kernel->placements[p].buffer->id] = true;
        ci_kernel_visit_nests(kernel, note_packed, is_placed);
        note_placed(kernel->inner[0], is_placed);
        note_placed(kernel->inner[1], is_placed);
    }
}

/* By buffer id: the placement of a scalar, or NULL. */
typedef struct Scalars {
    CiScheduler *scheduler;
    CiKernel *leaf; /* being looked at */
    CiPlacement **of;
} Scalars;

static void
add_to_leaf(Scalars *scalars, const CiBuffer *buffer)
{
    const CiPlacement *placement = scalars->of[buffer->id];
    if (placement && !ci_kernel_find_placement(scalars->leaf, buffer))
        add_placement(scalars->scheduler, scalars->leaf, *placement);
}

static void
add_those_of_nest(void *arg, const CiNest *nest)
{
    Scalars *scalars = arg;
    for (const CiScalar *load = NULL; (load = ci_nest_next_load(nest, load));)
        add_to_leaf(scalars, load->buffer);
    add_to_leaf(scalars, nest->target);
}

static void
add_to_leaves(Scalars *scalars, const CiKernels *tree)
{
    for (int k = 0; tree && k < tree->nkernels; k++) {
        CiKernel *kernel = tree->kernels[k];
        scalars->leaf = kernel;
        ci_kernel_visit_nests(kernel, add_those_of_nest, scalars);
        add_to_leaves(scalars, kernel->inner[0]);
        add_to_leaves(scalars, kernel->inner[1]);
    }
}

/* The placement of a scalar: whether it is loaded before the tree and stored after it. A scalar
 * that is used in a single run of the tree needs neither. */
static CiPlacement
place_scalar(CiScheduler *s, const CiItem *region, CiBuffer *buffer, bool is_stored_outside,
             bool is_read_outside)
{
    const CiItems items = {(CiItem *)region, 1, 1};
    CiPlacement placement = {.buffer = buffer, .stored = CI_STORED_scalar};
    if (!is_stored_outside && !is_read_outside && !s->is_in_loop)
        return placement;
    bool is_stored_first = ci_first_use(&items, buffer) == CI_FIRST_store,
         is_of_iteration = region->kind == CI_ITEM_for && !is_stored_outside && !is_read_outside &&
                      ci_first_use(&region->region->body, buffer) == CI_FIRST_store,
         has_next_run = s->is_in_loop && !is_stored_first && !is_of_iteration;
    placement.is_taken = !is_stored_first && (is_stored_outside || has_next_run);
    placement.is_kept = is_read_outside || has_next_run;
    return placement;
}

void
ci_place_scalars(CiScheduler *s, CiKernel *kernel, const CiFusion *fusion)
{
    const CiLoops *loops = s->loops;
    int n = loops->nbuffers + 1;
    int *nreaders = CI_NEW_ARRAY(s->ctx, int, n), *nwriters = CI_NEW_ARRAY(s->ctx, int, n);
    bool *is_placed = CI_NEW_ARRAY(s->ctx, bool, n);
    Scalars scalars = {.scheduler = s, .of = CI_NEW_ARRAY(s->ctx, CiPlacement *, n)};
    const CiItems items = {fusion->region, 1, 1};
    ci_count_uses(&items, nreaders, nwriters);
    note_placed(ci_kernel_tree(kernel), is_placed);
    for (int id = 0; id < loops->nbuffers; id++) {
        CiBuffer *buffer = loops->buffers[id];
        if (buffer->kind != CI_BUFFER_temp || buffer->is_swapped || !nwriters[id] ||
            is_placed[id] || !ci_is_one_element(s->sym, buffer))
            continue;
        CiPlacement placement =
            place_scalar(s, fusion->region, buffer, s->totals->nwriters[id] > nwriters[id],
                         s->totals->nreaders[id] > nreaders[id]);
        scalars.of[id] = CI_NEW(s->ctx, CiPlacement);
        *scalars.of[id] = placement;
        add_placement(s, kernel, placement);
        if (placement.is_taken || placement.is_kept)
            ci_take_buffer(s, kernel, buffer, placement.is_kept);
    }
    add_to_leaves(&scalars, ci_kernel_tree(kernel));
}
