/* Scalars of a tree: a temp of one element that the tree makes is a variable of its function.
 *
 * Invariant: a variable is read from memory before the tree whenever it may be read, or kept,
 * without the tree having stored it first; it is stored behind the tree whenever somebody outside,
 * or another run of the same tree in a loop around kernels, may read it. */
#include "schedule/plan.h"

bool
ci_is_placed_in_leaf(const CiLoopTree *tree, const CiBuffer *buffer)
{
    for (int k = 0; k < tree->count; k++) {
        const CiTreeNode *node = &tree->nodes[k];
        if ((node->leaf && ci_kernel_find_placement(node->leaf, buffer)) ||
            ci_is_placed_in_leaf(&node->body, buffer) || ci_is_placed_in_leaf(&node->other, buffer))
            return true;
    }
    return false;
}

static void
add_placement(CiScheduler *s, CiKernel *kernel, CiPlacement placement)
{
    CI_PUSH(s->ctx, kernel->placements, kernel->nplacements, kernel->capplacements, placement);
}

typedef struct Search {
    const CiBuffer *buffer;
    bool is_found;
} Search;

static void
search_nest(void *arg, const CiNest *nest)
{
    Search *search = arg;
    search->is_found |= nest->target == search->buffer;
    for (int k = 0; k < nest->body.nops; k++) {
        const CiScalar *op = &nest->body.ops[k];
        search->is_found |= op->op == CI_OP_load && op->buffer == search->buffer;
    }
}

static bool
touches(const CiKernel *leaf, const CiBuffer *buffer)
{
    Search search = {buffer, false};
    ci_kernel_visit_nests(leaf, search_nest, &search);
    return search.is_found;
}

static void
add_to_leaves(CiScheduler *s, const CiLoopTree *tree, const CiPlacement *placement)
{
    for (int k = 0; k < tree->count; k++) {
        const CiTreeNode *node = &tree->nodes[k];
        if (node->leaf && touches(node->leaf, placement->buffer))
            add_placement(s, node->leaf, *placement);
        add_to_leaves(s, &node->body, placement);
        add_to_leaves(s, &node->other, placement);
    }
}

void
ci_place_scalars(CiScheduler *s, CiKernel *kernel, const CiDraft *draft)
{
    const CiLoops *loops = s->loops;
    const CiLoopTree *tree = ci_kernel_tree(kernel);
    int *nreaders = CI_NEW_ARRAY(s->ctx, int, loops->nbuffers + 1),
        *nwriters = CI_NEW_ARRAY(s->ctx, int, loops->nbuffers + 1);
    const CiItems items = {draft->region, 1, 1};
    ci_count_uses(&items, nreaders, nwriters);
    for (int id = 0; id < loops->nbuffers; id++) {
        CiBuffer *buffer = loops->buffers[id];
        if (buffer->kind != CI_BUFFER_temp || buffer->is_swapped || !nwriters[id] ||
            !ci_is_one_element(s, buffer) || ci_is_placed_in_leaf(tree, buffer))
            continue;
        bool is_stored_first = ci_first_use(&items, buffer) == CI_FIRST_store,
             is_stored_outside = s->totals->nwriters[id] > nwriters[id],
             is_read_outside = s->totals->nreaders[id] > nreaders[id],
             is_of_trip = draft->region->kind == CI_ITEM_for && !is_stored_outside &&
                          !is_read_outside &&
                          ci_first_use(&draft->region->region->body, buffer) == CI_FIRST_store,
             has_next_run = s->is_in_loop && !is_stored_first && !is_of_trip;
        CiPlacement placement = {.buffer = buffer, .place = CI_PLACE_scalar};
        placement.is_taken = !is_stored_first && (is_stored_outside || has_next_run);
        placement.is_kept = is_read_outside || has_next_run;
        add_placement(s, kernel, placement);
        add_to_leaves(s, tree, &placement);
        if (placement.is_taken || placement.is_kept)
            ci_take_buffer(s, kernel, buffer, placement.is_kept);
    }
}
