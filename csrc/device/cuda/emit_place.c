/* Where an element lives: memory, a row in shared memory, a register of the thread; and stores
 * there, guarded where several threads hold the value. */
#include "device/cuda/emit_cuda.h"

int
ci_cuda_placement_number(const CiKernel *kernel, const CiBuffer *buffer)
{
    for (int k = 0; k < kernel->nplacements; k++)
        if (kernel->placements[k].buffer == buffer)
            return kernel->placements[k].place == CI_PLACE_memory ? -1 : k;
    return -1;
}

/* The element of a row in shared memory (or, flat, in registers of the thread). */
const char *
ci_cuda_row_element(CiCudaEmitter *c, int placement, const CiExpr *index)
{
    const CiPlacement *row = &c->plan->kernel->placements[placement];
    const char *at = ci_emit_index_text(c->base, ci_expr_sub(c->sym, index, row->row_base));
    const char *name = ci_emit_buffer(c->base, row->buffer);
    if (c->plan->is_flat || c->shape.lanes_inside || c->shape.points == 1)
        return ci_format(c->ctx, "%s_row[%s]", name, at);
    return ci_format(c->ctx, "%s_row[%d*(%s)]", name, c->shape.points, at);
}

const char *
ci_cuda_local_name(CiCudaEmitter *c, int placement)
{
    const char *name = ci_emit_buffer(c->base, c->plan->kernel->placements[placement].buffer);
    return c->plan->is_shared_local[placement] ? ci_format(c->ctx, "%s_shared[p]", name)
                                               : ci_format(c->ctx, "%s_local", name);
}

const char *
ci_cuda_slot_text(CiCudaEmitter *c, const CiBuffer *buffer)
{
    const char *type = ci_emit_type(buffer->dtype),
               *part = ci_emit_type(ci_dtype_real(buffer->dtype));
    int slot = ci_emit_scalar_slot(c->base->kernels->loops, buffer);
    if (ci_dtype_class(buffer->dtype) == CI_CLASS_complex)
        return ci_format(c->ctx, "%s{(%s)slot%d.re, (%s)slot%d.im}", type, part, slot, part, slot);
    return ci_format(c->ctx, "(%s)slot%d", type, slot);
}

const char *
ci_cuda_scalar_name(CiCudaEmitter *c, const CiBuffer *buffer)
{
    return ci_format(c->ctx, "%s_scalar", ci_emit_buffer(c->base, buffer));
}

/* What must hold for this thread to store into memory: it has a point, and it is the one of its
 * group that stores. */
static const char *
store_guard(const CiCudaEmitter *c, const CiCudaStage *s, bool is_memory)
{
    bool is_held_by_all = !c->plan->is_flat &&
                          (s->kind == CI_CUDA_once || s->kind == CI_CUDA_fold) &&
                          c->shape.group > 1;
    bool may_idle = c->has_idle && is_memory;
    return is_held_by_all ? (may_idle ? "if (is_active && g == 0) " : "if (g == 0) ")
           : may_idle     ? "if (is_active) "
                          : "";
}

void
ci_cuda_store_with(CiCudaEmitter *c, const char *guard, const CiBuffer *buffer, const char *place,
                   const char *value)
{
    CiText text = ci_text_new(c->ctx);
    ci_emit_narrow(c->base, &text, buffer->dtype, value);
    ci_text_line(c->out, "%s%s = %s;", guard, place, text.data);
}

void
ci_cuda_emit_store(CiCudaEmitter *c, const CiCudaStage *s, const CiBuffer *buffer,
                   const CiExpr *index, const char *value)
{
    int placement = ci_cuda_placement_number(c->plan->kernel, buffer);
    if (placement < 0) {
        const char *place = ci_format(c->ctx, "%s[%s]", ci_emit_buffer(c->base, buffer),
                                      ci_emit_index_text(c->base, index));
        ci_cuda_store_with(c, store_guard(c, s, true), buffer, place, value);
    } else if (c->plan->kernel->placements[placement].place == CI_PLACE_row) {
        ci_cuda_store_with(c, store_guard(c, s, false), buffer,
                           ci_cuda_row_element(c, placement, index), value);
    } else if (c->plan->kernel->placements[placement].place == CI_PLACE_local) {
        ci_text_line(c->out, "%s = %s;", ci_cuda_local_name(c, placement), value);
    } else if (c->plan->kernel->placements[placement].place == CI_PLACE_scalar) {
        ci_text_line(c->out, "%s = %s;", ci_cuda_scalar_name(c, buffer), value);
    }
}

const char *
ci_cuda_index_type(const CiCudaEmitter *c)
{
    return c->plan->is_wide ? "int64_t" : "int32_t";
}
