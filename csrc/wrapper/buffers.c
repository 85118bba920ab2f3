/* The buffers of a program: those of the loops, copies on other sides, pools. */
#include "analysis/choices.h"
#include "analysis/cost.h"
#include "wrapper/allocate.h"

static CiSide
own_side(const CiWrapper *w, const CiBuffer *buffer)
{
    bool is_callers = buffer->kind == CI_BUFFER_input || buffer->is_result;
    return w->machine->host_arrays && is_callers ? CI_SIDE_host : CI_SIDE_device + buffer->device;
}

/* side_of, pool_of and pinned share one capacity: copies of it and of the count serve the other two. */
static void
add_buffer(CiWrapper *w, const CiBuffer *buffer, CiSide side)
{
    int at = w->nbuffers, same[2] = {at, at}, capacity[2] = {w->capsides, w->capsides};
    CI_PUSH(w->ctx, w->pool_of, same[0], capacity[0], NULL);
    CI_PUSH(w->ctx, w->pinned, same[1], capacity[1], CI_SIDE_host);
    CI_PUSH(w->ctx, w->side_of, at, w->capsides, side);
    CI_PUSH(w->ctx, w->buffers, w->nbuffers, w->capbuffers, buffer);
}

const CiBuffer *
ci_wrapper_add_pool(CiWrapper *w, const CiExpr *bytes, CiSide side)
{
    const CiExpr **sizes = CI_NEW_ARRAY(w->ctx, const CiExpr *, 2);
    CiBuffer *pool = CI_NEW(w->ctx, CiBuffer);
    sizes[0] = bytes;
    sizes[1] = ci_expr_const(w->kernels->loops->sym, 1);
    *pool = (CiBuffer){.name = ci_format(w->ctx, "pool%d", w->nbuffers - w->first_pool),
                       .kind = CI_BUFFER_temp,
                       .id = w->nbuffers,
                       .input = -1,
                       .dtype = CI_DTYPE_u8,
                       .rank = 1,
                       .sizes = sizes,
                       .strides = sizes + 1,
                       .device = side ? side - CI_SIDE_device : 0};
    add_buffer(w, pool, side);
    return pool;
}

/* A copy moves one dense run of bytes; temps always are one. */
const CiBuffer *
ci_wrapper_buffer_on(CiWrapper *w, const CiBuffer *buffer, CiSide side)
{
    if (buffer->kind == CI_BUFFER_scalar)
        return buffer;
    if (w->sides[side][buffer->id])
        return w->sides[side][buffer->id];
    if (buffer->kind == CI_BUFFER_input &&
        !ci_buffer_is_dense(w->kernels->loops, buffer))
        ci_fail(w->ctx, CI_ERR_UNSUPPORTED,
                w->nsides > 2
                    ? "%s is not contiguous and is written or returned, so it cannot be copied between "
                      "devices: use .copy()"
                    : "%s is not contiguous, so it cannot be copied between host and device",
                buffer->name);
    CiBuffer *copy = CI_NEW(w->ctx, CiBuffer);
    *copy = *buffer;
    copy->name = side == CI_SIDE_host ? ci_format(w->ctx, "host_%s", buffer->name)
                 : w->nsides > 2
                     ? ci_format(w->ctx, "device%d_%s", side - CI_SIDE_device, buffer->name)
                     : ci_format(w->ctx, "device_%s", buffer->name);
    copy->kind = CI_BUFFER_temp;
    copy->id = w->nbuffers;
    copy->input = -1;
    copy->is_written = copy->is_result = false;
    add_buffer(w, copy, side);
    w->sides[side][buffer->id] = copy;
    w->first_pool = w->nbuffers;
    return copy;
}

CiWrapper *
ci_wrapper_new(const CiKernels *kernels, const CiOptions *options, const CiShapeEnv *env)
{
    const CiLoops *loops = kernels->loops;
    CiWrapper *w = CI_NEW(loops->ctx, CiWrapper);
    w->ctx = loops->ctx;
    w->kernels = kernels;
    w->machine = kernels->machine;
    w->options = *options;
    w->env = env;
    w->nsides = 1 + ci_loops_device_count(loops);
    w->sides = CI_NEW_ARRAY(w->ctx, const CiBuffer **, w->nsides);
    for (int i = 0; i < loops->nbuffers; i++)
        add_buffer(w, loops->buffers[i], own_side(w, loops->buffers[i]));
    w->first_pool = w->nbuffers;
    for (int side = 0; side < w->nsides; side++) {
        w->sides[side] = CI_NEW_ARRAY(w->ctx, const CiBuffer *, loops->nbuffers + 1);
        for (int i = 0; i < loops->nbuffers; i++)
            if (!w->machine->has_memory || side == own_side(w, loops->buffers[i]))
                w->sides[side][i] = loops->buffers[i];
    }
    return w;
}

bool
ci_wrapper_is_callers(const CiWrapper *w, const CiBuffer *buffer)
{
    int block = w->ranges ? w->ranges->of[buffer->id].block : -1;
    bool is_for_callers = w->options.caller_memory && !w->machine->has_memory;
    return is_for_callers && buffer->kind == CI_BUFFER_temp && buffer->id < w->first_pool && block >= 0 &&
           !ci_live_is_of_iterations(w->ranges, block) &&
           ci_amount_likely(ci_cost_of_buffer(buffer)) >= ci_choice(w->machine, CI_CHOICE_caller_bytes);
}
