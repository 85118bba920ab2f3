/* Dispatch of work to devices and libraries: launches, and library calls. */
#include "base/float_flags.h"
#include "device/collective.h"
#include "runtime/frame.h"

int32_t
ci_frame_launch(CiFrame *frame, int number)
{
    CiProgram *program = frame->program;
    const CiPlanLaunch *plan = &program->launches[number];
    CiLaunch launch = plan->launch;
    for (int k = 0; k < plan->nbuffers; k++)
        frame->arguments[k] = frame->slots[plan->slots[k]];
    if (frame->table)
        ci_plan_launch_fill(plan, frame->values, &launch);
    launch.buffers = frame->arguments;
    launch.scalars = frame->call->scalars;
    launch.max_threads = frame->call->max_threads;
    launch.stream = frame->queues[plan->device].stream;
    launch.is_recorded = frame->is_recording;
    launch.is_on_pool = frame->is_shared;
    CiFault *fault = &frame->call->fault;
    int32_t status =
        ci_executable_launch(program->devices[plan->device].executable, &launch, fault);
    if (status == CI_ERR_CHECK)
        frame->call->reason = program->reasons[plan->first_reason + fault->node];
    return status;
}

/* True if the caller knows the memory of the call's result, and can take other memory for it. */
static bool
is_replaceable(const CiFrame *frame, const CiPlanExtern *plan, const CiQueue *queue)
{
    const CiPlanSlot *slot = &frame->program->slots[plan->slots[plan->noperands]];
    return plan->is_whole && (plan->is_result || (frame->call->take && (queue || slot->is_callers)));
}

static int32_t
start_collective(const CiPlanExtern *plan, const CiQueue *queue, const CiExternCall *call)
{
    int32_t status = ci_collective_start(queue, plan->op, call);
    return status || plan->has_join ? status : ci_collective_join(queue, plan->ext.key);
}

int32_t
ci_frame_join(const CiFrame *frame, int number)
{
    const CiPlanExtern *plan = &frame->program->externs[number];
    return ci_collective_join(ci_frame_queue(frame, plan->side), plan->ext.key);
}

/* After a failure: memory that collectives use is freed in the order of streams that wait for them. */
void
ci_frame_join_all(const CiFrame *frame)
{
    for (int k = 0; k < frame->program->nexterns; k++)
        if (frame->program->externs[k].has_join)
            (void)ci_frame_join(frame, k);
}

int32_t
ci_frame_extern(CiFrame *frame, int number)
{
    const CiPlanExtern *plan = &frame->program->externs[number];
    const int64_t **sizes = frame->rows, **strides = frame->rows + frame->program->max_rows;
    for (int k = 0; k <= plan->noperands; k++) {
        char *data = frame->slots[plan->slots[k]];
        frame->arguments[k] =
            data + frame->values[plan->offsets[k]] * ci_dtype_size(plan->dtypes[k]);
        sizes[k] = frame->values + plan->sizes[k];
        strides[k] = frame->values + plan->strides[k];
    }
    const CiQueue *queue = ci_frame_queue(frame, plan->side);
    CiExternCall call = {.ext = &plan->ext,
                         .noperands = plan->noperands,
                         .operands = frame->arguments,
                         .sizes = sizes,
                         .strides = strides,
                         .ranks = plan->ranks,
                         .dtypes = plan->dtypes,
                         .result = frame->arguments[plan->noperands],
                         .other_result = is_replaceable(frame, plan, queue)
                                             ? &frame->slots[plan->slots[plan->noperands]]
                                             : NULL,
                         .queue = queue,
                         .arg = frame->call->arg,
                         .quiet = plan->quiet};
    if (queue && ci_op_has(plan->op, CI_FACT_collective))
        return start_collective(plan, queue, &call);
    if (queue && plan->ext.call_on)
        return plan->ext.call_on(plan->ext.data, &call);
    if (queue) {
        int32_t status = queue->backend->device->run_extern(queue, plan->op, &call);
        if (status == CI_ERR_CHECK)
            frame->call->reason = "a library call on the device has no result";
        return status;
    }
    if (frame->in_batch && plan->ext.call_anywhere &&
        plan->ext.call_anywhere(plan->ext.data, &call))
        return CI_OK;
    if (frame->is_shared)
        return CI_ERR_UNSUPPORTED; /* what asks for Python's lock is the caller's */
    frame->flags |= ci_float_flags_read();
    int32_t status = plan->ext.call(plan->ext.data, &call);
    ci_float_flags_clear();
    return status;
}
