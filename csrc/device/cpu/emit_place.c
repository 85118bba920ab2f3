/* Where an element of a buffer lives while a kernel runs: in its memory, in a row of scratch, or in
 * a variable, one or one a lane.
 *
 * Invariant: a value that is kept in a variable has the form it is computed in, memory has that of
 * the array. */
#include "device/cpu/emit_cpu.h"

const char *
ci_cpu_hide(CiCpuEmitter *c, int64_t value)
{
    bool is_known = false;
    for (int k = 0; k < c->nhidden; k++)
        is_known |= c->hidden[k] == value;
    if (!is_known)
        CI_PUSH(c->ctx, c->hidden, c->nhidden, c->caphidden, value);
    return ci_format(c->ctx, "hidden%lld", (long long)value);
}

/* The number of an element in memory. */
static const char *
index_text(CiCpuEmitter *c, const CiExpr *index)
{
    const CiExpr *stride, *rest;
    if (!c->apart || !ci_expr_split_linear(c->sym, index, c->apart, &stride, &rest) ||
        stride->kind != CI_EXPR_const || stride->value < 2)
        return ci_emit_index_text(c->base, index);
    return ci_format(c->ctx, "%s*%s + (%s)", ci_cpu_hide(c, stride->value), c->apart->name,
                     ci_emit_index_text(c->base, rest));
}

/* Where an element lives, as an lvalue. */
static const char *
place_of(CiCpuEmitter *c, const CiBuffer *buffer, const CiExpr *index)
{
    const CiPlacement *placement = ci_kernel_find_placement(c->kernel, buffer);
    const char *name = ci_emit_buffer(c->base, buffer);
    if (!placement)
        return ci_format(c->ctx, "%s[%s]", name, index_text(c, index));
    if (placement->place == CI_PLACE_scalar)
        return ci_format(c->ctx, "scalar_%s", name);
    if (placement->place == CI_PLACE_local)
        return ci_format(c->ctx,
                         c->tile    ? "local_%s[l]"
                         : c->batch ? "local_%s[p]"
                                    : "local_%s",
                         name);
    if (placement->place == CI_PLACE_register)
        ci_fail(c->ctx, CI_ERR_INTERNAL, "%s of kernel %s has no memory", name, c->kernel->name);
    const char *offset =
        ci_emit_index_text(c->base, ci_expr_sub(c->sym, index, placement->row_base));
    if (c->tile)
        return ci_format(c->ctx, "row_%s[(%s) * %d + l]", name, offset, c->tile);
    return ci_format(c->ctx, "row_%s[%s]", name, offset);
}

static bool
is_kept_as_value(const CiCpuEmitter *c, const CiBuffer *buffer)
{
    const CiPlacement *placement = ci_kernel_find_placement(c->kernel, buffer);
    return placement && (placement->place == CI_PLACE_local || placement->place == CI_PLACE_scalar);
}

const char *
ci_cpu_load(CiCpuEmitter *c, const CiBuffer *buffer, const CiExpr *index)
{
    CiText text = ci_text_new(c->ctx);
    if (buffer->kind == CI_BUFFER_scalar)
        ci_emit_slot(c->base, &text, buffer);
    else if (is_kept_as_value(c, buffer))
        ci_text_add(&text, "%s", place_of(c, buffer, index));
    else
        ci_emit_widen(c->base, &text, buffer->dtype, place_of(c, buffer, index));
    return text.data;
}

void
ci_cpu_emit_store(CiCpuEmitter *c, const CiBuffer *buffer, const CiExpr *index, CiDtype dtype,
                  const char *value)
{
    const CiPlacement *placement = ci_kernel_find_placement(c->kernel, buffer);
    if (placement && placement->place == CI_PLACE_register)
        return;
    CiText text = ci_text_new(c->ctx);
    const char *name = value;
    if (dtype != buffer->dtype) {
        CiText cast = ci_text_new(c->ctx);
        ci_emit_cast(c->base, &cast, dtype, buffer->dtype, value);
        name = cast.data;
    }
    if (is_kept_as_value(c, buffer))
        ci_text_add(&text, "%s", name);
    else
        ci_emit_narrow(c->base, &text, buffer->dtype, name);
    ci_text_line(c->out, "%s = %s;", place_of(c, buffer, index), text.data);
}

/* Rows and locals that the unit's text mentions. */
void
ci_cpu_declare_placements(CiCpuEmitter *c, const char *body)
{
    for (int k = 0; k < c->kernel->nplacements; k++) {
        const CiPlacement *p = &c->kernel->placements[k];
        const char *name = ci_emit_buffer(c->base, p->buffer);
        const char *full =
            ci_format(c->ctx, p->place == CI_PLACE_row ? "row_%s" : "local_%s", name);
        if (!ci_emit_mentions(body, full))
            continue;
        const char *storage = ci_emit_storage(p->buffer->dtype),
                   *type = ci_emit_type(p->buffer->dtype);
        bool is_complex = ci_dtype_class(p->buffer->dtype) == CI_CLASS_complex;
        if (p->place == CI_PLACE_scalar)
            continue;
        if (p->place == CI_PLACE_row && c->is_short)
            ci_text_line(c->out, "%s %s[%lld] __attribute__((aligned(64)));", storage, full,
                         (long long)p->short_size * c->tile);
        else if (p->place == CI_PLACE_row)
            ci_text_line(c->out, "%s *const %s = (%s *)((char *)run->scratch + %s);", storage, full,
                         storage, ci_emit_index_text(c->base, p->scratch_offset));
        else if (c->tile || c->batch)
            ci_text_line(c->out, "%s %s[%d] __attribute__((aligned(64)));", type, full,
                         c->tile ? c->tile : c->batch);
        else
            ci_text_line(c->out, "%s %s = %s;", type, full, is_complex ? "{0, 0}" : "0");
    }
}
