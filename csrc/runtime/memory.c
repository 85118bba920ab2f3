/* Memory of a call: takes the memory of slots, frees it, and copies between slots. */
#include "runtime/frame.h"

const CiQueue *
ci_frame_queue(const CiFrame *frame, CiSide side)
{
    const CiQueue *queue = &frame->queues[side == CI_SIDE_host ? 0 : side - CI_SIDE_device];
    return side == CI_SIDE_host || !queue->backend->device->allocate ? NULL : queue;
}

/* True if the caller allocates the slot's memory. */
static bool
is_callers(const CiFrame *frame, const CiPlanSlot *plan, const CiQueue *queue)
{
    return frame->call->take && !plan->pinned && (queue || plan->is_callers);
}

int32_t
ci_frame_take(const CiFrame *frame, const CiPlanSlot *plan, int64_t bytes, void **block)
{
    const CiQueue *queue = ci_frame_queue(frame, plan->pinned ? plan->pinned : plan->side);
    if (plan->pinned)
        return queue->backend->device->host_allocate(queue, (size_t)bytes, block);
    if (is_callers(frame, plan, queue))
        return frame->call->take(frame->call->arg, (size_t)bytes, block);
    if (queue)
        return ci_device_allocate(queue, (size_t)bytes, block);
    *block = ci_allocator_take(frame->queues[0].runtime->allocator, (size_t)bytes);
    return *block ? CI_OK : CI_ERR_MEMORY;
}

int32_t
ci_frame_finish_copy(const CiFrame *frame, int slot)
{
    const CiPlanSlot *plan = &frame->program->slots[slot];
    void **event = &frame->slots[plan->event];
    const CiQueue *queue = ci_frame_queue(frame, plan->pinned);
    if (!*event)
        return CI_OK;
    int32_t status = queue->backend->device->event_synchronize(queue, *event);
    if (status) /* what it copies into may go when this has said so */
        (void)queue->backend->device->synchronize(queue);
    queue->backend->device->event_close(queue, *event);
    *event = NULL;
    return status;
}

int32_t
ci_frame_mark(const CiFrame *frame, int slot)
{
    const CiPlanSlot *plan = &frame->program->slots[slot];
    const CiQueue *queue = ci_frame_queue(frame, plan->pinned);
    const CiDevice *device = queue->backend->device;
    void **event = &frame->slots[plan->event];
    int32_t status = device->event_open(queue, event);
    if (status)
        *event = NULL;
    else
        status = device->event_record(queue, *event);
    if (status) { /* it may be on its way, and nothing would tell its end */
        (void)device->synchronize(queue);
        if (*event)
            device->event_close(queue, *event);
        *event = NULL;
    }
    return status;
}

static int32_t
start_copy(const CiFrame *frame, const CiStep *step)
{
    const CiQueue *queue = ci_frame_queue(frame, frame->program->slots[step->slot].pinned);
    int32_t status = queue->backend->device->copy_out_start(
        queue, frame->slots[step->slot], frame->slots[step->other],
        (size_t)frame->values[step->value]);
    if (status) {
        (void)queue->backend->device->synchronize(queue);
        return status;
    }
    return ci_frame_mark(frame, step->slot);
}

void
ci_frame_give(const CiFrame *frame, int slot)
{
    const CiProgram *program = frame->program;
    const CiPlanSlot *plan = &program->slots[slot];
    size_t bytes = (size_t)frame->values[plan->bytes];
    const CiQueue *queue = ci_frame_queue(frame, plan->pinned ? plan->pinned : plan->side);
    if (plan->pinned) {
        (void)ci_frame_finish_copy(frame, slot);
        queue->backend->device->host_release(queue, frame->slots[slot], bytes);
    } else if (is_callers(frame, plan, queue))
        frame->call->give(frame->call->arg, frame->slots[slot]);
    else if (queue)
        ci_device_release(queue, frame->slots[slot], bytes);
    else
        ci_allocator_give(frame->queues[0].runtime->allocator, frame->slots[slot], bytes);
    frame->slots[slot] = NULL;
}

void
ci_frame_move(const CiFrame *frame, const CiStep *step)
{
    void **slots = frame->slots, *own = slots[step->slot];
    if (step->kind == CI_STEP_part) {
        slots[step->slot] = (char *)slots[step->other] + frame->values[step->value];
        return;
    }
    slots[step->slot] = step->kind == CI_STEP_leave ? NULL : slots[step->other];
    if (step->kind != CI_STEP_leave)
        slots[step->other] = step->kind == CI_STEP_swap ? own : NULL;
}

int32_t
ci_frame_copy(const CiFrame *frame, const CiStep *step)
{
    const CiPlanSlot *slots = frame->program->slots;
    const CiQueue *to = ci_frame_queue(frame, slots[step->slot].side),
                  *from = ci_frame_queue(frame, slots[step->other].side);
    void *there = frame->slots[step->slot], *here = frame->slots[step->other];
    size_t bytes = (size_t)frame->values[step->value];
    if (step->kind == CI_STEP_copy_out_start)
        return start_copy(frame, step);
    if (step->kind == CI_STEP_copy_in)
        return to->backend->device->copy_in(to, there, here, bytes);
    if (step->kind == CI_STEP_copy_out)
        return from->backend->device->copy_out(from, there, here, bytes);
    return ci_device_copy_across(from, to, there, here, bytes);
}
