/* A tree as CUDA C++: loops and branches around the code of its leaves, scalars in registers. Which
 * threads run what is decided in plan_tree.c; here are the barriers that this needs.
 *
 * Checks. One that fails ends its trip, with its number in `fault`; when several do, one of them is
 * told. Swaps. Buffers that exchange their memory are pointers that do; behind the tree what they
 * hold is moved to where the world outside looks for it. */
#include "device/cuda/cuda.h"

static void
open_block(CiCudaEmitter *c, const char *head)
{
    ci_text_line(c->out, "%s", head);
    c->out->indent += 4;
}

static void
close_block(CiCudaEmitter *c)
{
    c->out->indent -= 4;
    ci_text_line(c->out, "}");
}

static const char *
index_text(CiCudaEmitter *c, const CiExpr *e)
{
    return ci_emit_index_text(c->base, e);
}

const char *
ci_cuda_scalar_name(CiCudaEmitter *c, const CiBuffer *buffer)
{
    return ci_format(c->ctx, "%s_scalar", ci_emit_buffer(c->base, buffer));
}

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
        open_block(c, ci_format(c->ctx, "for (%s e = g; e < %s; e += %d) {", type,
                                index_text(c, leaf->npoints), leaf->shape.group));
        ci_cuda_emit_axes(c, leaf->kernel->outer, leaf->kernel->nouter, 1, "e");
        nloops = 1;
    }
    for (int k = 0; k < leaf->kernel->nouter && !is_shared; k++, nloops++) {
        const char *name = leaf->kernel->outer[k].var->name;
        open_block(c, ci_format(c->ctx, "for (%s %s = 0; %s < %s; %s++) {", type, name, name,
                                index_text(c, leaf->kernel->outer[k].extent), name));
    }
    if (leaf->is_flat)
        ci_cuda_emit_elements(c, &leaf->stages[0], 1);
    else
        ci_cuda_emit_stages(c);
    if (!leaf->is_flat && nloops && leaf->shape.group > 1) /* rows are used again */
        ci_text_line(c->out, "__syncwarp();");
    for (int k = 0; k < nloops; k++)
        close_block(c);
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
    open_block(c, leaf->is_alone ? "if (g == 0) {" : "{");
    if (!leaf->is_flat)
        ci_cuda_emit_declarations(c);
    emit_points(c, leaf);
    close_block(c);
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
emit_swaps(CiCudaEmitter *c, const CiRegion *region)
{
    for (int k = 0; k < region->nswaps; k += 2) {
        const char *a = ci_emit_buffer(c->base, region->swaps[k]),
                   *b = ci_emit_buffer(c->base, region->swaps[k + 1]),
                   *type = ci_emit_storage(region->swaps[k]->dtype);
        ci_text_line(c->out, "%s *const swap%d = %s;", type, k, a);
        ci_text_line(c->out, "%s = %s;", a, b);
        ci_text_line(c->out, "%s = swap%d;", b, k);
    }
}

static void
emit_for(CiCudaEmitter *c, const CiTreeNode *node)
{
    const char *t = node->region->var->name;
    open_block(c, ci_format(c->ctx, "for (%s %s = 0; %s < %s; %s++) {", ci_cuda_index_type(c), t, t,
                            index_text(c, node->region->extent), t));
    emit_nodes(c, &node->body);
    emit_swaps(c, node->region);
    close_block(c);
}

static void
emit_while(CiCudaEmitter *c, const CiTreeNode *node)
{
    open_block(c, "for (;;) {");
    emit_nodes(c, &node->other);
    ci_text_line(c->out, "if (!%s)", element_text(c, node->region->condition));
    ci_text_line(c->out, "    break;");
    emit_nodes(c, &node->body);
    emit_swaps(c, node->region);
    close_block(c);
}

static void
emit_if(CiCudaEmitter *c, const CiTreeNode *node)
{
    open_block(c, ci_format(c->ctx, "if (%s) {", element_text(c, node->region->condition)));
    emit_nodes(c, &node->body);
    close_block(c);
    if (!node->other.count)
        return;
    open_block(c, "else {");
    emit_nodes(c, &node->other);
    close_block(c);
}

/* A symbol that data defines has its value from here to the end of the block. */
static void
emit_check(CiCudaEmitter *c, const CiTreeNode *node)
{
    const CiCheckItem *check = node->check;
    const char *value = element_text(c, check->buffer);
    CiText test = ci_text_new(c->ctx);
    if (check->symbol) {
        const char *name = index_text(c, check->symbol);
        bool has_low = check->symbol->low != CI_MINUS_INFINITY,
             has_limit = check->limit->low != CI_INFINITY;
        ci_text_line(c->out, "const int64_t %s = %s;", name, value);
        if (has_low)
            ci_text_add(&test, "%s < %lld", name, (long long)check->symbol->low);
        if (has_limit)
            ci_text_add(&test, "%s%s >= %s", has_low ? " || " : "", name,
                        index_text(c, check->limit));
        if (!test.length)
            return;
    } else {
        ci_text_add(&test, "!%s", value);
    }
    open_block(c, ci_format(c->ctx, "if (%s) {", test.data));
    ci_text_line(c->out, "*fault = %d;", node->number + 1);
    ci_text_line(c->out, "return;");
    close_block(c);
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

bool
ci_cuda_tree_swaps(const CiLoopTree *tree)
{
    for (int k = 0; k < tree->count; k++) {
        const CiTreeNode *node = &tree->nodes[k];
        if ((node->region && node->region->nswaps) || ci_cuda_tree_swaps(&node->body) ||
            ci_cuda_tree_swaps(&node->other))
            return true;
    }
    return false;
}

/* By position among the kernel's buffers: equal numbers may have each other's memory. */
static void
find_groups(const CiKernel *kernel, const CiLoopTree *tree, int *groups)
{
    for (int k = 0; k < tree->count; k++) {
        const CiTreeNode *node = &tree->nodes[k];
        for (int n = 0; node->region && n < node->region->nswaps; n += 2) {
            int a = ci_kernel_buffer_position(kernel, node->region->swaps[n]),
                b = ci_kernel_buffer_position(kernel, node->region->swaps[n + 1]), old = groups[b];
            for (int j = 0; j < kernel->nbuffers; j++)
                if (groups[j] == old)
                    groups[j] = groups[a];
        }
        find_groups(kernel, &node->body, groups);
        find_groups(kernel, &node->other, groups);
    }
}

/* Element by element: all of a group are read, then stored where they belong. */
static void
emit_moves(CiCudaEmitter *c, const int *groups, int group)
{
    const CiKernel *kernel = c->plan->kernel;
    const CiBuffer *first = kernel->buffers[group];
    const char *type = ci_emit_storage(first->dtype);
    const CiExpr *count = ci_expr_product_of(c->sym, first->sizes, first->rank);
    open_block(c, ci_format(c->ctx, "for (int64_t k = %s; k < %s; k += %d) {",
                            c->shape.group > 1 ? "g" : "0", index_text(c, count), c->shape.group));
    for (int store = 0; store < 2; store++)
        for (int k = 0; k < kernel->nbuffers; k++) {
            const char *name = ci_emit_buffer(c->base, kernel->buffers[k]);
            if (groups[k] != groups[group])
                continue;
            if (store)
                ci_text_line(c->out, "home_%s[k] = kept%d;", name, k);
            else
                ci_text_line(c->out, "const %s kept%d = %s[k];", type, k, name);
        }
    close_block(c);
}

static void
emit_moved_back(CiCudaEmitter *c)
{
    const CiKernel *kernel = c->plan->kernel;
    int *groups = CI_NEW_ARRAY(c->ctx, int, kernel->nbuffers + 1);
    for (int k = 0; k < kernel->nbuffers; k++)
        groups[k] = k;
    find_groups(kernel, ci_kernel_tree(kernel), groups);
    for (int k = 0; k < kernel->nbuffers; k++) {
        int earlier = 0, count = 0;
        CiText test = ci_text_new(c->ctx);
        while (groups[earlier] != groups[k])
            earlier++;
        for (int j = 0; j < kernel->nbuffers; j++) {
            const char *name = ci_emit_buffer(c->base, kernel->buffers[j]);
            if (groups[j] == groups[k])
                ci_text_add(&test, "%s%s != home_%s", count++ ? " || " : "", name, name);
        }
        if (earlier < k || count < 2)
            continue;
        emit_barrier(c, c->plan);
        open_block(c, ci_format(c->ctx, "if (%s) {", test.data));
        emit_moves(c, groups, k);
        close_block(c);
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
    ci_text_line(c->out, "if (trip >= %s)", index_text(c, c->plan->npoints));
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
    bool swaps = ci_cuda_tree_swaps(ci_kernel_tree(kernel));
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
