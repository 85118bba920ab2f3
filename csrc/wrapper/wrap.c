/* Kernels -> lines, in two steps. Here: what runs, in order, with the copies a device with memory
 * of its own needs. Then allocate.c puts allocations and frees around it.
 *
 * Copies follow one rule. Each buffer is valid on one side or on several; a reader first makes its
 * side valid, a writer makes the others stale. Around and inside a region only the side of the
 * device that it runs on counts as valid, so that every turn of a loop finds what the first one
 * found. */
#include "wrapper/wrapper.h"

#include <string.h>

#include "base/map.h"
#include "wrapper/allocate.h"

typedef struct Wrap {
    CiWrapper *wrapper;
    CiContext *ctx;
    CiSym *sym;
    bool **valid; /* per side, per buffer of the loops; unused without device memory */
    int depth;    /* regions around the line being made */
    CiSide inside; /* of the outermost of them: whose device it runs on */
} Wrap;

static void wrap_kernels(Wrap *wrap, const CiKernels *kernels);

static CiLine *
add_line(Wrap *wrap, CiLineKind kind)
{
    CiWrapper *w = wrap->wrapper;
    CiLine line = {.kind = kind, .match = -1, .open = -1, .loc = {.file = ""},
                   .side = CI_SIDE_device};
    CI_PUSH(wrap->ctx, w->lines, w->nlines, w->caplines, line);
    return &w->lines[w->nlines - 1];
}

/* A side that holds the values, its own before others; -1: none does. */
static CiSide
valid_side(const Wrap *wrap, const CiBuffer *buffer)
{
    CiSide own = ci_wrapper_side(wrap->wrapper, buffer), found = -1;
    for (CiSide side = wrap->wrapper->nsides - 1; side >= 0; side--)
        if (wrap->valid[side][buffer->id])
            found = side;
    return wrap->valid[own][buffer->id] ? own : found;
}

static CiLineKind
copy_kind(CiSide from, CiSide to)
{
    return from == CI_SIDE_host ? CI_LINE_copy_in
           : to == CI_SIDE_host ? CI_LINE_copy_out
                                : CI_LINE_copy_across;
}

/* A copy line when only other sides hold the values. A buffer valid nowhere is about to be made. */
static void
make_valid(Wrap *wrap, const CiBuffer *buffer, CiSide side)
{
    if (!wrap->wrapper->machine->has_memory || buffer->kind == CI_BUFFER_scalar)
        return;
    CiSide other = valid_side(wrap, buffer);
    if (!wrap->valid[side][buffer->id] && other >= 0) {
        const CiBuffer *to = ci_wrapper_buffer_on(wrap->wrapper, buffer, side);
        const CiBuffer *from = ci_wrapper_buffer_on(wrap->wrapper, buffer, other);
        CiLine *line = add_line(wrap, copy_kind(other, side));
        line->at = side;
        line->buffer = to;
        line->other = from;
        line->bytes = ci_buffer_bytes(wrap->sym, buffer);
        wrap->valid[side][buffer->id] = true;
    }
}

static void
mark_stored(Wrap *wrap, const CiBuffer *buffer, CiSide side)
{
    if (!wrap->wrapper->machine->has_memory || buffer->kind == CI_BUFFER_scalar)
        return;
    for (CiSide k = 0; k < wrap->wrapper->nsides; k++)
        wrap->valid[k][buffer->id] = side == k;
    if (wrap->depth > 0)
        make_valid(wrap, buffer, wrap->inside);
}

/* Inside a region the host's side never outlives the line that needed it. */
static void
forget_host(Wrap *wrap, const CiBuffer *buffer)
{
    if (wrap->depth > 0 && buffer->kind != CI_BUFFER_scalar)
        wrap->valid[CI_SIDE_host][buffer->id] = !wrap->wrapper->machine->has_memory;
}

static void
wrap_launch(Wrap *wrap, const CiKernel *kernel)
{
    CiSide side = CI_SIDE_device + kernel->device;
    for (int k = 0; k < kernel->nbuffers; k++) {
        ci_wrapper_buffer_on(wrap->wrapper, kernel->buffers[k], side);
        make_valid(wrap, kernel->buffers[k], side);
    }
    CiLine *line = add_line(wrap, CI_LINE_launch);
    line->side = side;
    line->kernel = kernel;
    line->loc = kernel->nlocs ? kernel->locs[0] : line->loc;
    for (int k = 0; k < kernel->nbuffers; k++)
        if (kernel->is_stored[k])
            mark_stored(wrap, kernel->buffers[k], side);
}

static bool
may_raise(const CiExternItem *ext)
{
    static const char *const never[] = {"matmul", "dot", "einsum"};
    for (size_t k = 0; k < sizeof never / sizeof *never; k++)
        if (!strcmp(ext->ext->name, never[k]))
            return false;
    return true;
}

/* An exception shows what was written before it. */
static void
show_written(Wrap *wrap)
{
    const CiLoops *loops = wrap->wrapper->kernels->loops;
    for (int i = 0; i < loops->ninputs; i++)
        if (loops->buffers[i]->is_written && loops->buffers[i]->kind == CI_BUFFER_input) {
            make_valid(wrap, loops->buffers[i], ci_wrapper_side(wrap->wrapper, loops->buffers[i]));
            forget_host(wrap, loops->buffers[i]);
        }
}

static void
wrap_extern(Wrap *wrap, const CiKernel *kernel)
{
    const CiExternItem *ext = kernel->ext;
    CiSide side = ci_wrapper_side_of_call(wrap->wrapper, ext);
    if (wrap->wrapper->machine->host_arrays && may_raise(ext))
        show_written(wrap);
    for (int k = 0; k < ext->noperands; k++) {
        ci_wrapper_buffer_on(wrap->wrapper, ext->operands[k], side);
        make_valid(wrap, ext->operands[k], side);
    }
    ci_wrapper_buffer_on(wrap->wrapper, ext->result, side);
    CiLine *line = add_line(wrap, CI_LINE_extern);
    line->ext = ext;
    line->call = kernel->name;
    line->side = side;
    line->number = wrap->wrapper->nexterns++;
    line->loc = ext->loc;
    mark_stored(wrap, ext->result, side);
    for (int k = 0; k < ext->noperands; k++)
        forget_host(wrap, ext->operands[k]);
    forget_host(wrap, ext->result);
}

static void
note_touched(bool *touched, const CiKernel *kernel)
{
    for (int k = 0; k < kernel->nbuffers; k++)
        touched[kernel->buffers[k]->id] = true;
    for (int k = 0; kernel->ext && k < kernel->ext->noperands; k++)
        touched[kernel->ext->operands[k]->id] = true;
    if (kernel->ext)
        touched[kernel->ext->result->id] = true;
    if (kernel->check)
        touched[kernel->check->buffer->id] = true;
    if (kernel->region && kernel->region->condition)
        touched[kernel->region->condition->id] = true;
    for (int k = 0; kernel->region && k < kernel->region->nswaps; k++)
        touched[kernel->region->swaps[k]->id] = true;
    for (int n = 0; n < 2; n++)
        for (int k = 0; kernel->inner[n] && k < kernel->inner[n]->nkernels; k++)
            note_touched(touched, kernel->inner[n]->kernels[k]);
}

/* Before a region: whatever it touches is valid on its device, and only there. */
static void
move_to_device(Wrap *wrap, const CiKernel *region)
{
    const CiWrapper *w = wrap->wrapper;
    const CiLoops *loops = w->kernels->loops;
    bool *touched = CI_NEW_ARRAY(wrap->ctx, bool, loops->nbuffers + 1);
    note_touched(touched, region);
    for (int i = 0; w->machine->has_memory && i < loops->nbuffers; i++) {
        const CiBuffer *buffer = loops->buffers[i];
        if (buffer->kind == CI_BUFFER_scalar || !touched[i] || valid_side(wrap, buffer) < 0)
            continue;
        ci_wrapper_buffer_on(wrap->wrapper, buffer, wrap->inside);
        make_valid(wrap, buffer, wrap->inside);
        for (CiSide side = 0; side < w->nsides; side++)
            wrap->valid[side][i] = side == wrap->inside;
    }
}

static void
add_condition(Wrap *wrap, CiLineKind kind, const CiBuffer *condition)
{
    make_valid(wrap, condition, CI_SIDE_host);
    const CiBuffer *on_host = ci_wrapper_buffer_on(wrap->wrapper, condition, CI_SIDE_host);
    add_line(wrap, kind)->buffer = on_host;
    forget_host(wrap, condition);
}

/* Both sides of a pair are exchanged where regions keep them: on the device. */
static void
wrap_swaps(Wrap *wrap, const CiRegion *region)
{
    for (int k = 0; k < region->nswaps; k += 2) {
        const CiBuffer *buffer = ci_wrapper_buffer_on(wrap->wrapper, region->swaps[k], wrap->inside);
        const CiBuffer *other = ci_wrapper_buffer_on(wrap->wrapper, region->swaps[k + 1], wrap->inside);
        CiLine *line = add_line(wrap, CI_LINE_swap);
        line->buffer = buffer;
        line->other = other;
    }
}

static void
wrap_check(Wrap *wrap, const CiCheckItem *check)
{
    make_valid(wrap, check->buffer, CI_SIDE_host);
    const CiBuffer *on_host = ci_wrapper_buffer_on(wrap->wrapper, check->buffer, CI_SIDE_host);
    CiLine *line = add_line(wrap, check->symbol ? CI_LINE_define : CI_LINE_check);
    line->buffer = on_host;
    line->symbol = check->symbol;
    line->value = check->limit;
    line->text = check->why;
    line->loc = check->loc;
    forget_host(wrap, check->buffer);
}

/* while: inner[1] makes the condition, inner[0] is the body. if: inner[1] is the other branch. */
static void
wrap_region(Wrap *wrap, const CiKernel *kernel)
{
    const CiRegion *region = kernel->region;
    if (wrap->depth == 0)
        wrap->inside = CI_SIDE_device + region->device;
    move_to_device(wrap, kernel);
    wrap->depth++;
    if (!region->condition) {
        CiLine *line = add_line(wrap, CI_LINE_for);
        line->symbol = region->var;
        line->value = region->extent;
        line->is_parallel = region->is_parallel;
        wrap_kernels(wrap, kernel->inner[0]);
        wrap_swaps(wrap, region);
    } else if (region->kind == CI_ITEM_while) {
        add_line(wrap, CI_LINE_while);
        wrap_kernels(wrap, kernel->inner[1]);
        add_condition(wrap, CI_LINE_test, region->condition);
        wrap_kernels(wrap, kernel->inner[0]);
        wrap_swaps(wrap, region);
    } else {
        add_condition(wrap, CI_LINE_if, region->condition);
        wrap_kernels(wrap, kernel->inner[0]);
        if (kernel->inner[1] && kernel->inner[1]->nkernels > 0) {
            add_line(wrap, CI_LINE_else);
            wrap_kernels(wrap, kernel->inner[1]);
        }
    }
    add_line(wrap, CI_LINE_end);
    wrap->depth--;
}

static void
wrap_kernels(Wrap *wrap, const CiKernels *kernels)
{
    for (int i = 0; kernels && i < kernels->nkernels; i++) {
        const CiKernel *kernel = kernels->kernels[i];
        if (kernel->ext)
            wrap_extern(wrap, kernel);
        else if (kernel->check)
            wrap_check(wrap, kernel->check);
        else if (kernel->region)
            wrap_region(wrap, kernel);
        else
            wrap_launch(wrap, kernel);
    }
}

static void
add_symbol(Wrap *wrap, CiMap *seen, const CiExpr *symbol, const CiBuffer *input, int axis)
{
    if (ci_map_find(seen, CI_KEY(symbol)))
        return;
    ci_map_put(seen, CI_KEY(symbol), (void *)symbol);
    CiLine *line = add_line(wrap, CI_LINE_symbol);
    line->buffer = input;
    line->symbol = symbol;
    line->number = axis;
}

/* A symbol is the value of an integer argument, or the extent of some input's axis: the first one.
 */
static void
wrap_symbols(Wrap *wrap, const CiLoops *loops)
{
    CiMap *seen = ci_map_new(wrap->ctx);
    const CiShapeEnv *env = wrap->wrapper->env;
    for (int i = 0; env && i < env->nsources; i++)
        if (env->sources[i].axis < 0)
            add_symbol(wrap, seen, env->sources[i].symbol, loops->buffers[env->sources[i].input],
                       -1);
    for (int i = 0; i < loops->ninputs; i++)
        for (int axis = 0; axis < loops->buffers[i]->rank; axis++)
            if (loops->buffers[i]->sizes[axis]->kind == CI_EXPR_symbol)
                add_symbol(wrap, seen, loops->buffers[i]->sizes[axis], loops->buffers[i], axis);
}

static void
wrap_return(Wrap *wrap, const CiLoops *loops)
{
    for (int i = 0; i < loops->nbuffers; i++)
        if (loops->buffers[i]->is_written || loops->buffers[i]->is_result)
            make_valid(wrap, loops->buffers[i], ci_wrapper_side(wrap->wrapper, loops->buffers[i]));
    add_line(wrap, CI_LINE_return);
}

CiWrapper *
ci_wrap(const CiKernels *kernels, const CiOptions *options, const CiShapeEnv *env)
{
    const CiLoops *loops = kernels->loops;
    CiWrapper *w = ci_wrapper_new(kernels, options, env);
    Wrap wrap = {.wrapper = w, .ctx = w->ctx, .sym = loops->sym};
    wrap.valid = CI_NEW_ARRAY(w->ctx, bool *, w->nsides);
    for (int side = 0; side < w->nsides; side++)
        wrap.valid[side] = CI_NEW_ARRAY(w->ctx, bool, loops->nbuffers + 1);
    for (int i = 0; i < loops->ninputs; i++)
        wrap.valid[ci_wrapper_side(w, loops->buffers[i])][i] = true;

    const char *what = ci_format(w->ctx, "device=%s backend=%s", kernels->machine->device,
                                 kernels->machine->backend);
    add_line(&wrap, CI_LINE_comment)->text = what;
    wrap_symbols(&wrap, loops);
    for (int i = 0; i < loops->ninputs; i++)
        if (loops->buffers[i]->kind == CI_BUFFER_input)
            add_line(&wrap, CI_LINE_assert_size)->buffer = loops->buffers[i];
    wrap_kernels(&wrap, kernels);
    wrap_return(&wrap, loops);
    if (w->machine->starts_copies)
        ci_wrapper_start_early(w);
    if (w->machine->has_collectives)
        ci_wrapper_overlap(w);
    ci_wrapper_plan_memory(w);
    return w;
}
