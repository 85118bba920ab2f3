/* A tree as CUDA C++: loops and branches around the code of its leaves, scalars in registers. Which
 * threads run what is decided in plan_tree.c; here are the barriers that this needs.
 *
 * Checks. One that fails ends its trip, with its number in `fault`; when several do, one of them is
 * told. Swaps. Buffers that exchange their memory are pointers that do; behind the tree what they
 * hold is moved to where the world outside looks for it. */
#include "device/cuda/emit_cuda.h"

/* The one element of a buffer, wherever it is. */
static const char *
element_text(CiCudaEmitter *c, const CiBuffer *buffer)
{
    CiText text = ci_text_new(c->ctx);
    if (buffer->kind == CI_BUFFER_scalar)
        return ci_cuda_slot_text(c, buffer);
    if (ci_kernel_find_placement(c->base->kernel, buffer))
        return ci_cuda_scalar_name(c, buffer);
    ci_emit_widen(c->base, &text, buffer->dtype,
                  ci_format(c->ctx, "%s[0]", ci_emit_buffer(c->base, buffer)));
    return text.data;
}

static void
emit_barrier(CiCudaEmitter *c, const CiCudaPlan *tree)
{
    if (tree->shape.group > 1)
        ci_text_line(c->out, "__syncwarp();");
}

/* ---- leaves ---- */

static void
emit_points(CiCudaEmitter *c, const CiCudaPlan *leaf)
{
    const char *type = ci_cuda_index_type(c);
    int nloops = 0;
    bool is_shared = leaf->is_flat && leaf->shape.group > 1;
    if (is_shared) {
        ci_text_open(c->out, "for (%s e = g; e < %s; e += %d) {", type,
                     ci_emit_index_text(c->base, leaf->npoints), leaf->shape.group);
        ci_cuda_emit_axes(c, leaf->kernel->outer, leaf->kernel->nouter, 1, "e");
        nloops = 1;
    }
    for (int k = 0; k < leaf->kernel->nouter && !is_shared; k++, nloops++) {
        const char *name = leaf->kernel->outer[k].var->name;
        ci_text_open(c->out, "for (%s %s = 0; %s < %s; %s++) {", type, name, name,
                     ci_emit_index_text(c->base, leaf->kernel->outer[k].extent), name);
    }
    if (leaf->is_flat)
        ci_cuda_emit_elements(c, &leaf->stages[0], 1);
    else
        ci_cuda_emit_stages(c);
    if (!leaf->is_flat && nloops && leaf->shape.group > 1) /* rows are used again */
        ci_text_line(c->out, "__syncwarp();");
    for (int k = 0; k < nloops; k++)
        ci_text_close(c->out);
}

/* What the first thread has made, for all. */
static void
emit_told(CiCudaEmitter *c, const CiKernel *leaf)
{
    for (int t = 0; t < leaf->nstages; t++)
        for (int n = 0; n < leaf->stages[t].nnests; n++) {
            const CiBuffer *target = leaf->stages[t].nests[n]->target;
            const CiPlacement *placement = ci_kernel_find_placement(leaf, target);
            const char *name = ci_cuda_scalar_name(c, target);
            if (placement && placement->place == CI_PLACE_scalar)
                ci_text_line(c->out, "%s = ci_first(%s, 32);", name, name);
        }
}

static void
emit_leaf(CiCudaEmitter *c, const CiKernel *kernel)
{
    const CiCudaPlan *tree = c->plan, *leaf = ci_cuda_find_leaf(tree, kernel);
    bool stores = ci_cuda_leaf_stores_memory(kernel);
    if (stores)
        emit_barrier(c, tree);
    c->plan = leaf;
    c->shape = leaf->shape;
    ci_text_open(c->out, "%s", leaf->is_alone ? "if (g == 0) {" : "{");
    if (!leaf->is_flat)
        ci_cuda_emit_declarations(c);
    emit_points(c, leaf);
    ci_text_close(c->out);
    c->plan = tree;
    c->shape = tree->shape;
    if (leaf->is_alone)
        emit_told(c, kernel);
    if (stores)
        emit_barrier(c, tree);
}

/* ---- regions ---- */

static void emit_nodes(CiCudaEmitter *c, const CiLoopTree *tree);

static void
emit_for(CiCudaEmitter *c, const CiTreeNode *node)
{
    const char *t = node->region->var->name;
    ci_text_open(c->out, "for (%s %s = 0; %s < %s; %s++) {", ci_cuda_index_type(c), t, t,
                 ci_emit_index_text(c->base, node->region->extent), t);
    emit_nodes(c, &node->body);
    ci_emit_swaps(c->base, c->out, node->region);
    ci_text_close(c->out);
}

static void
emit_while(CiCudaEmitter *c, const CiTreeNode *node)
{
    ci_text_open(c->out, "for (;;) {");
    emit_nodes(c, &node->other);
    ci_text_line(c->out, "if (!%s)", element_text(c, node->region->condition));
    ci_text_line(c->out, "    break;");
    emit_nodes(c, &node->body);
    ci_emit_swaps(c->base, c->out, node->region);
    ci_text_close(c->out);
}

static void
emit_if(CiCudaEmitter *c, const CiTreeNode *node)
{
    ci_text_open(c->out, "if (%s) {", element_text(c, node->region->condition));
    emit_nodes(c, &node->body);
    ci_text_close(c->out);
    if (!node->other.count)
        return;
    ci_text_open(c->out, "else {");
    emit_nodes(c, &node->other);
    ci_text_close(c->out);
}

static void
emit_check(CiCudaEmitter *c, const CiTreeNode *node)
{
    const char *test =
        ci_emit_check(c->base, c->out, node->check, element_text(c, node->check->buffer));
    if (!test)
        return;
    ci_text_open(c->out, "if (%s) {", test);
    ci_text_line(c->out, "*fault = %d;", node->number + 1);
    ci_text_line(c->out, "return;");
    ci_text_close(c->out);
}

static void
emit_nodes(CiCudaEmitter *c, const CiLoopTree *tree)
{
    for (int k = 0; k < tree->count; k++) {
        const CiTreeNode *node = &tree->nodes[k];
        switch (node->kind) {
        case CI_TREE_leaf:
            emit_leaf(c, node->leaf);
            break;
        case CI_TREE_check:
            emit_check(c, node);
            break;
        case CI_TREE_for:
            emit_for(c, node);
            break;
        case CI_TREE_while:
            emit_while(c, node);
            break;
        case CI_TREE_if:
            emit_if(c, node);
            break;
        }
    }
}

/* ---- swapped memory ---- */

/* Element by element: all of a group are read, then stored where they belong. */
static void
emit_moves(CiCudaEmitter *c, const int *groups, int group)
{
    const CiKernel *kernel = c->plan->kernel;
    const CiBuffer *first = kernel->buffers[group];
    const char *type = ci_emit_storage(first->dtype);
    const CiExpr *count = ci_expr_product_of(c->sym, first->sizes, first->rank);
    ci_text_open(c->out, "for (int64_t k = %s; k < %s; k += %d) {", c->shape.group > 1 ? "g" : "0",
                 ci_emit_index_text(c->base, count), c->shape.group);
    for (int store = 0; store < 2; store++)
        for (int k = 0; k < kernel->nbuffers; k++) {
            const char *name = ci_emit_buffer(c->base, kernel->buffers[k]);
            if (groups[k] != group)
                continue;
            if (store)
                ci_text_line(c->out, "home_%s[k] = kept%d;", name, k);
            else
                ci_text_line(c->out, "const %s kept%d = %s[k];", type, k, name);
        }
    ci_text_close(c->out);
}

static void
emit_moved_back(CiCudaEmitter *c)
{
    const CiKernel *kernel = c->plan->kernel;
    const int *groups = ci_swap_groups(c->ctx, kernel);
    for (int k = 0; k < kernel->nbuffers; k++) {
        CiText test = ci_text_new(c->ctx);
        for (int j = 0; j < kernel->nbuffers && groups[k] == k; j++) {
            const char *name = ci_emit_buffer(c->base, kernel->buffers[j]);
            if (groups[j] == k)
                ci_text_add(&test, "%s%s != home_%s", test.length ? " || " : "", name, name);
        }
        if (!test.length)
            continue;
        emit_barrier(c, c->plan);
        ci_text_open(c->out, "if (%s) {", test.data);
        emit_moves(c, groups, k);
        ci_text_close(c->out);
    }
}

/* ---- around the tree ---- */

static void
emit_trip(CiCudaEmitter *c)
{
    const CiKernel *kernel = c->plan->kernel;
    const char *type = ci_cuda_index_type(c);
    int group = c->shape.group;
    if (group > 1)
        ci_text_line(c->out, "const int g = (int)threadIdx.x %% %d, p = (int)threadIdx.x / %d;",
                     group, group);
    else
        ci_text_line(c->out, "const int g = 0, p = (int)threadIdx.x;");
    if (!kernel->nouter)
        return;
    ci_text_line(c->out, "const %s trip = (%s)blockIdx.x*%d + p;", type, type, c->shape.points);
    ci_text_line(c->out, "if (trip >= %s)", ci_emit_index_text(c->base, c->plan->npoints));
    ci_text_line(c->out, "    return;");
    ci_cuda_emit_axes(c, kernel->outer, kernel->nouter, 1, "trip");
}

static void
emit_scalars(CiCudaEmitter *c)
{
    const CiKernel *kernel = c->plan->kernel;
    for (int k = 0; k < kernel->nplacements; k++) {
        const CiPlacement *placement = &kernel->placements[k];
        const CiBuffer *buffer = placement->buffer;
        CiText value = ci_text_new(c->ctx);
        if (placement->is_taken)
            ci_emit_widen(c->base, &value, buffer->dtype,
                          ci_format(c->ctx, "%s[0]", ci_emit_buffer(c->base, buffer)));
        else
            ci_text_add(&value, "%s{}", ci_emit_type(buffer->dtype));
        ci_text_line(c->out, "%s %s = %s;", ci_emit_type(buffer->dtype),
                     ci_cuda_scalar_name(c, buffer), value.data);
    }
}

static void
emit_kept(CiCudaEmitter *c)
{
    const CiKernel *kernel = c->plan->kernel;
    for (int k = 0; k < kernel->nplacements; k++) {
        const CiPlacement *placement = &kernel->placements[k];
        CiText value = ci_text_new(c->ctx);
        if (!placement->is_kept)
            continue;
        ci_emit_narrow(c->base, &value, placement->buffer->dtype,
                       ci_cuda_scalar_name(c, placement->buffer));
        ci_text_line(c->out, "%s%s[0] = %s;", c->shape.group > 1 ? "if (g == 0) " : "",
                     ci_emit_buffer(c->base, placement->buffer), value.data);
    }
}

void
ci_cuda_emit_tree(CiCudaEmitter *c)
{
    const CiKernel *kernel = c->plan->kernel;
    bool swaps = ci_tree_swaps(ci_kernel_tree(kernel));
    emit_trip(c);
    for (int k = 0; k < kernel->nbuffers && swaps; k++)
        ci_text_line(c->out, "auto *const home_%s = %s;",
                     ci_emit_buffer(c->base, kernel->buffers[k]),
                     ci_emit_buffer(c->base, kernel->buffers[k]));
    emit_scalars(c);
    emit_nodes(c, ci_kernel_tree(kernel));
    emit_barrier(c, c->plan);
    emit_kept(c);
    if (swaps)
        emit_moved_back(c);
}
