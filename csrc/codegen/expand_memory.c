/* Where buffers live: parameters of the proc, registers and scratch of an outer point, variables of
 * a tree. */
#include "codegen/expand_private.h"

CiMemory *
ci_expand_memory(CiExpander *x, const CiBuffer *buffer)
{
    CiMemory *memory = ci_map_find(x->memories, CI_KEY(buffer));
    if (!memory)
        ci_fail(x->b.ctx, CI_ERR_INTERNAL, "kernel %s names %s, which it does not take",
                x->kernel->name, buffer->name);
    return memory;
}

/* Which elements of a buffer there are: [first, size). */
static void
find_elements(CiExpander *x, const CiBuffer *buffer, CiMemory *memory)
{
    CiSym *sym = x->b.sym;
    const CiExpr *zero = ci_expand_number(x, 0), *one = ci_expand_number(x, 1), *first = zero,
                 *last = zero, *count = one;
    for (int k = 0; k < buffer->rank; k++) {
        const CiExpr *span =
            ci_expr_mul(sym, ci_expr_sub(sym, buffer->sizes[k], one), buffer->strides[k]);
        if (buffer->strides[k]->low < 0)
            first = ci_expr_add(sym, first, ci_expr_min(sym, span, zero));
        if (buffer->strides[k]->high > 0)
            last = ci_expr_add(sym, last,
                               buffer->strides[k]->low < 0 ? ci_expr_max(sym, span, zero) : span);
        count = ci_expr_mul(sym, count, buffer->sizes[k]);
    }
    memory->size = ci_expr_add(sym, last, one);
    if (ci_sym_known_eq(sym, memory->size, count)) /* which has none where a size is 0 */
        memory->size = count;
    memory->first = first == zero ? NULL : first;
}

/* Scalar inputs are parameters where a body loads them. */
static void
add_scalars(void *arg, const CiNest *nest)
{
    CiExpander *x = arg;
    for (int k = 0; k < nest->body.nops; k++) {
        const CiBuffer *buffer = nest->body.ops[k].buffer;
        if (!buffer || buffer->kind != CI_BUFFER_scalar || ci_map_find(x->memories, CI_KEY(buffer)))
            continue;
        CiMemory memory = {.name = buffer->name,
                           .dtype = buffer->dtype,
                           .lanes = 1,
                           .space = CI_SPACE_argument,
                           .size = ci_expand_number(x, 1),
                           .is_const = true,
                           .buffer = buffer};
        ci_map_put(x->memories, CI_KEY(buffer), ci_proc_add_param(x->b.ctx, x->b.proc, memory));
    }
}

void
ci_expand_params(CiExpander *x)
{
    const CiKernel *kernel = x->kernel;
    for (int k = 0; k < kernel->nbuffers; k++) {
        const CiBuffer *buffer = kernel->buffers[k];
        CiMemory memory = {.name = buffer->name,
                           .dtype = buffer->dtype,
                           .lanes = 1,
                           .space = CI_SPACE_global,
                           .is_const = !kernel->is_stored || !kernel->is_stored[k],
                           .buffer = buffer};
        find_elements(x, buffer, &memory);
        ci_map_put(x->memories, CI_KEY(buffer), ci_proc_add_param(x->b.ctx, x->b.proc, memory));
    }
    for (int k = 0; k < kernel->nsize_args; k++)
        CI_PUSH(x->b.ctx, x->b.proc->sizes, x->b.proc->nsizes, x->b.proc->capsizes,
                kernel->size_args[k]);
    ci_kernel_visit_nests(kernel, add_scalars, x);
}

/* Allocates the placements of a kernel or leaf at the beginning of its outer loops. */
void
ci_expand_placements(CiExpander *x, const CiKernel *leaf)
{
    for (int k = 0; k < leaf->nplacements; k++) {
        const CiPlacement *placement = &leaf->placements[k];
        CiBuffer *buffer = placement->buffer;
        if (placement->stored != CI_STORED_local && placement->stored != CI_STORED_row)
            continue;
        bool is_row = placement->stored == CI_STORED_row;
        const CiExpr *size = is_row ? placement->row_size : ci_expand_number(x, 1);
        CiMemory *memory = ci_build_alloc(&x->b, buffer->name, buffer->dtype, 1,
                                          is_row ? CI_SPACE_scratch : CI_SPACE_register, size);
        memory->buffer = buffer;
        memory->offset = is_row ? ci_labels_rows_end(x->b.sym, &x->labels, leaf, k) : NULL;
        ci_map_put(x->memories, CI_KEY(buffer), memory);
    }
}

/* Variables of the tree's function: read before it where it takes them. */
void
ci_expand_open_scalars(CiExpander *x)
{
    for (int k = 0; k < x->kernel->nplacements; k++) {
        const CiPlacement *placement = &x->kernel->placements[k];
        CiBuffer *buffer = placement->buffer;
        if (placement->stored != CI_STORED_scalar)
            continue;
        bool is_in_memory = placement->is_taken || placement->is_kept;
        CiMemory *outside = is_in_memory ? ci_expand_memory(x, buffer) : NULL,
                 *memory = ci_build_alloc(&x->b, ci_build_name(&x->b, buffer->name), buffer->dtype,
                                          1, CI_SPACE_register, ci_expand_number(x, 1));
        memory->buffer = buffer;
        if (placement->is_taken)
            ci_build_store(&x->b, memory, ci_expand_number(x, 0),
                           ci_build_load(&x->b, outside, ci_expand_number(x, 0), 1));
        ci_map_put(x->memories, CI_KEY(buffer), memory);
    }
}

void
ci_expand_close_scalars(CiExpander *x)
{
    for (int k = 0; k < x->kernel->nplacements; k++) {
        const CiPlacement *placement = &x->kernel->placements[k];
        int position = ci_kernel_buffer_position(x->kernel, placement->buffer);
        if (placement->stored == CI_STORED_scalar && placement->is_kept)
            ci_build_store(&x->b, x->b.proc->params[position], ci_expand_number(x, 0),
                           ci_build_load(&x->b, ci_expand_memory(x, placement->buffer),
                                         ci_expand_number(x, 0), 1));
    }
}

/* An element number of a buffer, where the buffer lives in this kernel. */
const CiExpr *
ci_expand_place(CiExpander *x, const CiBuffer *buffer, const CiExpr *index)
{
    const CiPlacement *placement = ci_kernel_find_placement(x->leaf, buffer);
    if (!placement)
        placement = ci_kernel_find_placement(x->kernel, buffer);
    if (!placement)
        return buffer->kind == CI_BUFFER_scalar ? ci_expand_number(x, 0) : index;
    if (placement->stored == CI_STORED_row)
        return ci_expr_sub(x->b.sym, index, placement->row_base);
    return ci_expand_number(x, 0);
}
