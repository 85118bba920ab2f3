/* Runs one partition of a program: computes its key, then replays its recording, makes one, or
 * launches its kernels. */
#include <stdlib.h>
#include <string.h>

#include "runtime/record.h"

enum { FIRST_ADDRESS = 1 }; /* word of a key: that of plan->slots[0] */

/* Bytes of memory for later steps that may be stored in the recording's buffer and copied after a
 * replay; 0: it is stored directly in the call's memory. */
static int64_t
result_bytes(const CiFrame *frame, const CiPlanPartition *plan, int k)
{
    const CiDevice *device = frame->queues[plan->device].backend->device;
    int64_t bytes = frame->values[frame->program->slots[plan->temps[k]].bytes];
    return device->copy_across && bytes <= plan->max_copied ? bytes : 0;
}

/* Bytes of such memory that this recording stores in its buffer (clear_copied in record.c). */
static int64_t
copied_bytes(const CiFrame *frame, const CiPlanPartition *plan, const CiRecording *recording, int k)
{
    return recording->key[FIRST_ADDRESS + plan->nslots + k] ? 0 : result_bytes(frame, plan, k);
}

/* Bytes of an input that may be copied to the recording's buffer before a replay; 0: it is read where it is. */
static int64_t
input_bytes(const CiFrame *frame, const CiPlanPartition *plan, int k)
{
    const CiDevice *device = frame->queues[plan->device].backend->device;
    int64_t bytes = plan->slot_bytes[k] < 0 ? 0 : frame->values[plan->slot_bytes[k]];
    return device->copy_across && bytes <= plan->max_copied ? bytes : 0;
}

/* Bytes of an input that this recording reads from its buffer (clear_copied in record.c); 0: it reads the input. */
static int64_t
moved_bytes(const CiFrame *frame, const CiPlanPartition *plan, const CiRecording *recording, int k)
{
    return recording->key[FIRST_ADDRESS + k] ? 0 : input_bytes(frame, plan, k);
}

static void
fill_key(const CiFrame *frame, const CiPlanPartition *plan, int64_t *key, CiKeyWord *words)
{
    int n = 0;
    key[n++] = (int64_t)(intptr_t)frame->queues[plan->device].stream;
    for (int k = 0; k < plan->nslots; k++) {
        words[n] = input_bytes(frame, plan, k) > 0 ? CI_WORD_argument : CI_WORD_stays;
        key[n++] = (int64_t)(intptr_t)frame->slots[plan->slots[k]];
    }
    for (int k = 0; k < plan->nborn; k++) {
        words[n] = result_bytes(frame, plan, k) > 0 ? CI_WORD_result : CI_WORD_stays;
        key[n++] = (int64_t)(intptr_t)frame->slots[plan->temps[k]];
    }
    for (int k = 0; k < plan->nvalues; k++)
        key[n++] = frame->values[plan->values[k]];
    for (int k = 0; k < plan->nscalars; k++) {
        const CiPlanScalar *scalar = &plan->scalars[k];
        memcpy(&key[n], &frame->call->scalars[scalar->slot], sizeof *key * (size_t)scalar->words);
        n += scalar->words;
    }
}

/* Gives the work to the queue, or only sets slots to what they contain afterwards. The recording's memory takes the
 * place of what would be taken from the allocator. Its loops are short, and turns are not polled: a poll takes
 * Python's lock, which a thread may own that waits for the end of the recording, and a replay cannot be undone. */
static int32_t
walk(CiFrame *frame, const CiPlanPartition *plan, const CiStep *step, const CiStep *end,
     const CiRecording *recording, bool gives_work)
{
    const CiRecordMemory *memory = recording->memory;
    int32_t status = CI_OK;
    int next = plan->nborn;
    for (int k = 0; k < plan->nslots && gives_work; k++)
        if (moved_bytes(frame, plan, recording, k))
            frame->slots[plan->slots[k]] = memory->blocks[plan->ntemps + k];
    for (int k = 0; k < plan->nborn && gives_work; k++)
        if (copied_bytes(frame, plan, recording, k))
            frame->slots[plan->temps[k]] = memory->blocks[k];
    for (; step < end && !status; step++) {
        bool is_launch = step->kind == CI_STEP_launch, is_extern = step->kind == CI_STEP_extern;
        if (step->kind == CI_STEP_alloc)
            frame->slots[step->slot] = memory->blocks[next++];
        else if (step->kind == CI_STEP_free)
            frame->slots[step->slot] = NULL;
        else if (step->kind == CI_STEP_for || step->kind == CI_STEP_next)
            (void)ci_frame_jump(frame, &step);
        else if (!is_launch && !is_extern)
            ci_frame_move(frame, step);
        else if (gives_work)
            status = is_launch ? ci_frame_launch(frame, step->number)
                               : ci_frame_extern(frame, step->number);
    }
    return status;
}

static bool
take_memory(const CiFrame *frame, const CiPlanPartition *plan, CiRecording *recording)
{
    int nblocks = plan->ntemps + plan->nslots;
    int64_t *bytes = malloc(sizeof *bytes * (size_t)(nblocks + 1));
    for (int k = 0; bytes && k < plan->nslots; k++)
        bytes[plan->ntemps + k] = moved_bytes(frame, plan, recording, k);
    for (int k = 0; bytes && k < plan->ntemps; k++)
        bytes[k] = k < plan->nborn ? copied_bytes(frame, plan, recording, k)
                                   : frame->values[frame->program->slots[plan->temps[k]].bytes];
    bool is_there = bytes && (nblocks == 0 || ci_recordings_take(plan->recordings, recording,
                                                                 &frame->queues[plan->device], bytes));
    free(bytes);
    return is_there;
}

/* The function that failed, or NULL. Slots hold what they held before. */
static const char *
record(CiFrame *frame, const CiPlanPartition *plan, const CiStep *at, CiRecording *recording,
       int32_t *status)
{
    CiQueue *queue = &frame->queues[plan->device];
    const CiQueue own = *queue;
    const CiDevice *device = own.backend->device;
    size_t bytes = sizeof *frame->slots * (size_t)frame->program->nslots;
    void *stream = NULL, **kept = malloc(bytes);
    if (!kept)
        return NULL;
    memcpy(kept, frame->slots, bytes);
    const char *failed = device->record_begin(&own, &stream) ? "record_begin" : NULL;
    if (!failed) {
        queue->stream = stream;
        frame->is_recording = true;
        *status = walk(frame, plan, at + 1, frame->program->steps + at->target, recording, true);
        frame->is_recording = false;
        queue->stream = own.stream;
        failed = device->record_end(&own, stream, &recording->made) ? "record_end" : NULL;
        failed = *status ? "launch, while recording," : failed;
    }
    memcpy(frame->slots, kept, bytes);
    free(kept);
    return failed;
}

/* Completes a replay: slots get the contents that launches would have given them. If a copy fails,
 * the run fails, because the replay cannot be undone. */
static int32_t
finish(CiFrame *frame, const CiPlanPartition *plan, const CiStep *at, const CiRecording *recording)
{
    const CiRecordMemory *memory = recording->memory;
    const CiQueue *queue = &frame->queues[plan->device];
    int32_t status = CI_OK;
    for (int k = 0; k < plan->nborn && !status; k++) {
        int64_t bytes = copied_bytes(frame, plan, recording, k);
        if (bytes)
            status = queue->backend->device->copy_across(
                queue, queue, frame->slots[plan->temps[k]], memory->blocks[k], (size_t)bytes);
    }
    (void)walk(frame, plan, at + 1, frame->program->steps + at->target, recording, false);
    return status;
}

/* The launches are made after all, by the steps that follow. */
static void
give_up(CiFrame *frame, const CiPlanPartition *plan, CiRecording *recording)
{
    ci_recordings_drop(plan->recordings, &frame->queues[plan->device], recording);
    recording->made = NULL;
    recording->memory = NULL;
    frame->call->fault.kind = 0;
    frame->call->reason = NULL;
}

static bool
is_stop(int32_t status)
{
    return status == CI_ERR_INTERRUPTED || status == CI_ERR_PYTHON;
}

/* Stores the inputs that move where the recording reads them. */
static int32_t
copy_inputs(const CiFrame *frame, const CiPlanPartition *plan, const CiRecording *recording)
{
    const CiQueue *queue = &frame->queues[plan->device];
    int32_t status = CI_OK;
    for (int k = 0; k < plan->nslots && !status; k++) {
        int64_t bytes = moved_bytes(frame, plan, recording, k);
        if (bytes)
            status = queue->backend->device->copy_across(queue, queue, recording->memory->blocks[plan->ntemps + k],
                                                         frame->slots[plan->slots[k]], (size_t)bytes);
    }
    return status;
}

/* True: a recording has done it. */
static bool
replay(CiFrame *frame, const CiPlanPartition *plan, const CiStep *at, CiRecording *recording,
       int32_t *status)
{
    const CiQueue *queue = &frame->queues[plan->device];
    const char *failed = NULL;
    if (!recording->made && take_memory(frame, plan, recording))
        failed = record(frame, plan, at, recording, status);
    if (!failed && recording->made && copy_inputs(frame, plan, recording))
        failed = "copy_across";
    if (!failed && recording->made && queue->backend->device->replay(queue, recording->made))
        failed = "replay";
    if (failed && !is_stop(*status)) {
        ci_recordings_refuse(plan->recordings, queue, failed);
        frame->call->unrecorded = plan->recordings->why_not;
    }
    if (!failed && recording->made)
        return true;
    give_up(frame, plan, recording);
    *status = is_stop(*status) ? *status : CI_OK;
    return false;
}

int32_t
ci_frame_run_partition(CiFrame *frame, const CiStep **at)
{
    const CiStep *step = *at;
    const CiPlanPartition *plan = &frame->program->partitions[step->number];
    int64_t key[CI_MAX_KEY];
    CiKeyWord words[CI_MAX_KEY] = {CI_WORD_stays};
    int32_t status = CI_OK;
    if (plan->is_never || frame->is_shared) /* shared: one iteration of many, each with its own
                                             * key */
        return CI_OK;
    fill_key(frame, plan, key, words);
    CiRecording *recording =
        ci_recordings_enter(plan->recordings, &frame->queues[plan->device], key, words);
    if (!recording)
        return CI_OK;
    bool is_replayed = replay(frame, plan, step, recording, &status);
    if (is_replayed) {
        status = finish(frame, plan, step, recording);
        *at = frame->program->steps + step->target - 1;
    }
    ci_recordings_leave(plan->recordings, recording, is_replayed);
    return status;
}
