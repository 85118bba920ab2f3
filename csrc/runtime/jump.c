/* Loops and branches of a run: which step comes next. */
#include "runtime/frame.h"

#define ITERATIONS_PER_POLL 256

/* Long loops of short kernels still hear Ctrl-C. */
int32_t
ci_frame_poll_iteration(CiFrame *frame)
{
    const CiRuntime *runtime = frame->queues[0].runtime;
    if (++frame->iterations % ITERATIONS_PER_POLL || !runtime->poll)
        return CI_OK;
    return runtime->poll(runtime->poll_arg) ? CI_ERR_INTERRUPTED : CI_OK;
}

/* Starts a turn of a loop if there is one more; true when the body runs. */
bool
ci_frame_begin_iteration(CiFrame *frame, const CiStep *step, int64_t iteration)
{
    const CiSegment *segment = &frame->program->values.segments[step->number];
    if (iteration >= frame->values[step->value])
        return false;
    frame->table[step->variable] = iteration;
    ci_values_run(segment, segment->ncode, frame->table);
    return true;
}

bool
ci_frame_jump(CiFrame *frame, const CiStep **at)
{
    const CiStep *step = *at, *steps = frame->program->steps;
    bool jumps = false;
    switch (step->kind) {
    case CI_STEP_for:
        jumps = !ci_frame_begin_iteration(frame, step, 0);
        break;
    case CI_STEP_next:
        jumps = ci_frame_begin_iteration(frame, step, frame->values[step->variable] + 1);
        break;
    case CI_STEP_unless:
        jumps = !*(const uint8_t *)frame->slots[step->slot];
        break;
    default:
        jumps = true;
    }
    if (!jumps)
        return false;
    *at = steps + step->target - 1;
    return *at < step;
}
