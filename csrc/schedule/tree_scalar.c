/* Scalars of a tree: a temp of one element that the tree makes is a variable of its function.
 *
 * Invariant: a variable is read from memory before the tree whenever it may be read, or kept,
 * without the tree having stored it first; it is stored behind the tree whenever somebody outside,
 * or another run of the same tree in a loop around kernels, may read it. */
#include "schedule/plan.h"

/* What happens first to a buffer, for certain: nothing also when a store may or may not happen. */
typedef enum First { FIRST_nothing, FIRST_read, FIRST_store } First;

typedef struct Search {
    const CiBuffer *buffer;
    First first;
} Search;

static void
search_nest(void *arg, const CiNest *nest)
{
    Search *search = arg;
    for (int k = 0; k < nest->body.nops && !search->first; k++) {
        const CiScalar *op = &nest->body.ops[k];
        if (op->op == CI_OP_load && op->buffer == search->buffer)
            search->first = FIRST_read;
    }
    if (search->first || nest->target != search->buffer)
        return;
    search->first = nest->is_combined ? FIRST_read : FIRST_store;
}

static First first_in_tree(const CiLoopTree *tree, const CiBuffer *buffer);

static First
first_in_node(const CiTreeNode *node, const CiBuffer *buffer)
{
    if (node->leaf) {
        Search search = {buffer, FIRST_nothing};
        ci_kernel_visit_nests(node->leaf, search_nest, &search);
        return search.first;
    }
    if (node->check)
        return node->check->buffer == buffer ? FIRST_read : FIRST_nothing;
    First other = first_in_tree(&node->other, buffer);
    if (node->kind == CI_TREE_while && other != FIRST_nothing)
        return other;
    if (node->region->condition == buffer)
        return FIRST_read;
    First body = first_in_tree(&node->body, buffer);
    if (body == FIRST_read || (node->kind == CI_TREE_if && other == FIRST_read))
        return FIRST_read;
    bool is_certain = node->kind == CI_TREE_for  ? node->region->extent->low > 0
                      : node->kind == CI_TREE_if ? other == FIRST_store
                                                 : false;
    return is_certain ? body : FIRST_nothing;
}

static First
first_in_tree(const CiLoopTree *tree, const CiBuffer *buffer)
{
    First first = FIRST_nothing;
    for (int k = 0; k < tree->count && first == FIRST_nothing; k++)
        first = first_in_node(&tree->nodes[k], buffer);
    return first;
}

/* ---- placements ---- */

static bool
is_placed_in_leaf(const CiLoopTree *tree, const CiBuffer *buffer)
{
    for (int k = 0; k < tree->count; k++) {
        const CiTreeNode *node = &tree->nodes[k];
        if ((node->leaf && ci_kernel_find_placement(node->leaf, buffer)) ||
            is_placed_in_leaf(&node->body, buffer) || is_placed_in_leaf(&node->other, buffer))
            return true;
    }
    return false;
}

static void
add_placement(CiScheduler *s, CiKernel *kernel, CiPlacement placement)
{
    CI_PUSH(s->ctx, kernel->placements, kernel->nplacements, kernel->capplacements, placement);
}

static bool
touches(const CiKernel *leaf, const CiBuffer *buffer)
{
    Search search = {buffer, FIRST_nothing};
    ci_kernel_visit_nests(leaf, search_nest, &search);
    return search.first != FIRST_nothing;
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

static bool
has_one_element(CiScheduler *s, const CiBuffer *buffer)
{
    return ci_expr_equals_const(ci_expr_product_of(s->sym, buffer->sizes, buffer->rank), 1);
}

void
ci_place_scalars(CiScheduler *s, CiKernel *kernel, const CiDraft *draft)
{
    const CiLoops *loops = s->loops;
    const CiLoopTree *tree = ci_kernel_tree(kernel);
    int *nreaders = CI_NEW_ARRAY(s->ctx, int, loops->nbuffers + 1),
        *nwriters = CI_NEW_ARRAY(s->ctx, int, loops->nbuffers + 1);
    ci_count_uses(draft, nreaders, nwriters);
    for (int id = 0; id < loops->nbuffers; id++) {
        CiBuffer *buffer = loops->buffers[id];
        if (buffer->kind != CI_BUFFER_temp || buffer->is_swapped || !nwriters[id] ||
            !has_one_element(s, buffer) || is_placed_in_leaf(tree, buffer))
            continue;
        bool is_stored_first = first_in_tree(tree, buffer) == FIRST_store,
             has_next_run = s->is_in_loop && !is_stored_first,
             is_stored_outside = s->totals->nwriters[id] > nwriters[id],
             is_read_outside = s->totals->nreaders[id] > nreaders[id];
        CiPlacement placement = {.buffer = buffer, .place = CI_PLACE_scalar};
        placement.is_taken = !is_stored_first && (is_stored_outside || has_next_run);
        placement.is_kept = is_read_outside || has_next_run;
        add_placement(s, kernel, placement);
        add_to_leaves(s, tree, &placement);
        if (placement.is_taken || placement.is_kept)
            ci_take_buffer(s, kernel, buffer, placement.is_kept);
    }
}
