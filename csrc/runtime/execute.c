/* Runs one call: executes the steps with a table of pointers. Small programs keep the whole call on
 * the stack, take no lock, and allocate only their buffers. All memory of the call is freed, also
 * if a step fails.
 *
 * Float flags: flags raised by kernels are collected in call->float_flags. They are cleared before
 * kernels run and read after. Before a library call, which does its own accounting, they are read,
 * and after it cleared again. The pool passes flags of its threads to the calling thread. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/float_flags.h"
#include "base/os.h"
#include "host/pool.h"
#include "runtime/record.h"
#include "runtime/out_of_memory.h"
#include "runtime/run_verifier.h"

#define SMALL_POINTERS 96
#define SMALL_VALUES 256
#define SMALL_ROWS 24
#define CHUNKS_PER_THREAD 4
#define POLL_NS 5000000

static int32_t
new_result(CiFrame *frame, const CiStep *step)
{
    const CiPlanResult *plan = &frame->program->results[step->number];
    CiCall *call = frame->call;
    CiResultBuffer varying;
    const CiResultBuffer *buffer = &plan->buffer;
    if (frame->table) {
        varying = plan->buffer;
        varying.sizes = frame->values + plan->sizes;
        varying.strides = frame->values + plan->strides;
        buffer = &varying;
    }
    frame->slots[step->slot] = call->new_result(call->arg, step->number, buffer);
    return frame->slots[step->slot] ? CI_OK : CI_ERR_PYTHON;
}

static int32_t
fail_check(CiFrame *frame, int reason)
{
    frame->call->reason = frame->program->reasons[reason];
    return CI_ERR_CHECK;
}

/* Stores a symbol's value. A value out of range is not stored, because buffers sized by the
 * previous value are freed with it. */
static int32_t
define_symbol(CiFrame *frame, const CiStep *step)
{
    const CiSegment *segment = &frame->program->values.segments[step->number];
    int64_t value = *(const int64_t *)frame->slots[step->slot];
    bool has_limit = frame->values[step->value] != CI_INFINITY;
    if (value < frame->values[step->other] || (has_limit && value >= frame->values[step->value]))
        return fail_check(frame, step->target);
    frame->table[step->variable] = value;
    ci_values_run(segment, segment->ncode, frame->table);
    return CI_OK;
}

/* ---- tables of a frame ---- */

typedef int32_t (*FrameBody)(CiFrame *frame, int64_t *table, void *arg);

static int32_t
with_large_tables(CiFrame *frame, FrameBody body, void *arg)
{
    const CiProgram *program = frame->program;
    size_t nslots = (size_t)program->nslots, narguments = (size_t)program->max_arguments;
    size_t nvalues = program->needs_table ? (size_t)program->values.count : 0;
    size_t nrows = 2 * (size_t)program->max_rows;
    void **slots = malloc(sizeof *slots * (nslots + narguments + 1));
    int64_t *table = malloc(sizeof *table * (nvalues + 1));
    const int64_t **rows = malloc(sizeof *rows * (nrows + 1));
    int32_t status = CI_ERR_MEMORY;
    if (slots && table && rows) {
        frame->slots = slots;
        frame->arguments = slots + nslots;
        frame->rows = rows;
        status = body(frame, table, arg);
    }
    free(slots);
    free(table);
    free((void *)rows);
    return status;
}

static bool
is_small(const CiProgram *program)
{
    return program->nslots + program->max_arguments <= SMALL_POINTERS &&
           2 * program->max_rows <= SMALL_ROWS &&
           (!program->needs_table || program->values.count <= SMALL_VALUES);
}

/* On the stack where they are small, else in memory of their own. */
static int32_t
with_tables(CiFrame *frame, FrameBody body, void *arg)
{
    if (!is_small(frame->program))
        return with_large_tables(frame, body, arg);
    void *pointers[SMALL_POINTERS];
    int64_t table[SMALL_VALUES];
    const int64_t *rows[SMALL_ROWS];
    frame->slots = pointers;
    frame->arguments = pointers + frame->program->nslots;
    frame->rows = rows;
    return body(frame, table, arg);
}

/* ---- batches ---- */

/* A loop whose turns run at the same time, each thread with tables and memory of its own. */
typedef struct Batch {
    CiFrame *frame; /* of the call; stands still */
    const CiStep *open;
    int64_t iterations, chunk_iterations;
    pthread_t caller;
    int64_t last_poll; /* touched by the caller alone */
    atomic_bool has_failed;
} Batch;

static int32_t run_step(CiFrame *frame, const CiStep **at);

static int32_t
loop_iterations(CiFrame *frame, const CiStep *open, int64_t first, int64_t last)
{
    const CiStep *next = frame->program->steps + open->target - 1;
    int32_t status = CI_OK;
    for (int64_t iteration = first; iteration < last && !status &&
         ci_frame_begin_iteration(frame, open, iteration); iteration++)
        for (const CiStep *step = open + 1; step < next && !status; step++)
            status = run_step(frame, &step);
    return status;
}

static int32_t
run_on_thread(CiFrame *frame, int64_t *table, void *arg)
{
    Batch *batch = ((void **)arg)[0];
    const CiProgram *program = frame->program;
    const CiFrame *outer = batch->frame;
    int64_t first = *(const int64_t *)((void **)arg)[1] * batch->chunk_iterations;
    int64_t last = first + batch->chunk_iterations;
    memcpy(frame->slots, outer->slots, sizeof *frame->slots * (size_t)program->nslots);
    memcpy(table, outer->values, sizeof *table * (size_t)program->values.count);
    frame->values = frame->table = table;
    int32_t status = loop_iterations(frame, batch->open, first, last < batch->iterations ? last : batch->iterations);
    for (int i = program->ninputs; i < program->nslots && status; i++)
        if (frame->slots[i] && !outer->slots[i] && program->slots[i].is_own)
            ci_frame_give(frame, i);
    return status;
}

/* Polls for cancellation, on the calling thread only. */
static int32_t
poll_batch(Batch *batch)
{
    const CiRuntime *runtime = batch->frame->queues[0].runtime;
    if (!runtime->poll || !pthread_equal(pthread_self(), batch->caller))
        return CI_OK;
    int64_t now = ci_os_time_ns();
    if (now - batch->last_poll < POLL_NS)
        return CI_OK;
    batch->last_poll = now;
    return runtime->poll(runtime->poll_arg) ? CI_ERR_INTERRUPTED : CI_OK;
}

static int32_t
run_chunk(void *arg, int64_t chunk)
{
    Batch *batch = arg;
    CiCall call = *batch->frame->call;
    CiFrame frame = *batch->frame;
    frame.call = &call;
    frame.is_shared = true;
    call.max_threads = 1;
    int32_t status = with_tables(&frame, run_on_thread, (void *[]){batch, &chunk});
    status = status ? status : poll_batch(batch);
    if (status && !atomic_exchange(&batch->has_failed, true)) {
        batch->frame->call->fault = call.fault;
        batch->frame->call->reason = call.reason;
    }
    return status;
}

static int
threads_of(const CiFrame *frame)
{
    const CiPool *pool = frame->queues[0].runtime->pool;
    int all = pool ? ci_pool_threads(pool) : 1, most = frame->call->max_threads;
    return most > 0 && most < all ? most : all;
}

static int32_t
run_at_once(CiFrame *frame, const CiStep *open, int64_t iterations, int threads)
{
    Batch batch = {.frame = frame,
                   .open = open,
                   .iterations = iterations,
                   .chunk_iterations = iterations / ((int64_t)threads * CHUNKS_PER_THREAD),
                   .caller = pthread_self(),
                   .last_poll = ci_os_time_ns()};
    if (batch.chunk_iterations < 1)
        batch.chunk_iterations = 1;
    int64_t count = (iterations + batch.chunk_iterations - 1) / batch.chunk_iterations;
    return ci_pool_run(frame->queues[0].runtime->pool, count, threads, run_chunk, &batch);
}

static int32_t
run_in_order(CiFrame *frame, const CiStep *open, int64_t iterations)
{
    int32_t status = CI_OK;
    for (int64_t iteration = 0; iteration < iterations && !status; iteration++) {
        status = loop_iterations(frame, open, iteration, iteration + 1);
        status = status ? status : ci_frame_poll_iteration(frame);
    }
    return status;
}

/* At the same time, where that leaves no more than half of the threads without a turn. Where a call
 * cannot be made on another thread all turns are run again, one after another: they store the same.
 */
static int32_t
run_batch(CiFrame *frame, const CiStep **at)
{
    const CiStep *open = *at;
    int64_t iterations = frame->values[open->value];
    int threads = threads_of(frame);
    int32_t status = CI_ERR_UNSUPPORTED;
    frame->in_batch = true;
    if (threads > 1 && iterations > 1 && iterations >= threads / 2)
        status = run_at_once(frame, open, iterations, threads);
    if (status == CI_ERR_UNSUPPORTED)
        status = run_in_order(frame, open, iterations);
    frame->in_batch = false;
    *at = frame->program->steps + open->target - 1;
    return status;
}

/* One step; the one before the next to run is in *at. */
static int32_t
run_step(CiFrame *frame, const CiStep **at)
{
    const CiStep *step = *at;
    int32_t status = CI_OK;
    void **slots = frame->slots;
    switch (step->kind) {
    case CI_STEP_alloc:
        status = ci_frame_take(frame, &frame->program->slots[step->slot],
                             frame->values[step->value], &slots[step->slot]);
        break;
    case CI_STEP_alloc_result:
        status = new_result(frame, step);
        break;
    case CI_STEP_reuse:
    case CI_STEP_swap:
    case CI_STEP_part:
    case CI_STEP_leave:
        ci_frame_move(frame, step);
        break;
    case CI_STEP_partition:
        status = ci_frame_run_partition(frame, at);
        break;
    case CI_STEP_free:
        ci_frame_give(frame, step->slot);
        break;
    case CI_STEP_drop:
        if (frame->call->drop)
            frame->call->drop(frame->call->arg, step->slot);
        break;
    case CI_STEP_wait:
        status = ci_frame_finish_copy(frame, step->slot);
        break;
    case CI_STEP_mark:
        status = ci_frame_mark(frame, step->slot);
        break;
    case CI_STEP_copy_in:
    case CI_STEP_copy_out:
    case CI_STEP_copy_out_start:
    case CI_STEP_copy_across:
        status = ci_frame_copy(frame, step);
        break;
    case CI_STEP_launch:
        status = ci_frame_launch(frame, step->number);
        break;
    case CI_STEP_extern:
        status = ci_frame_extern(frame, step->number);
        break;
    case CI_STEP_join:
        status = ci_frame_join(frame, step->number);
        break;
    case CI_STEP_define:
        status = define_symbol(frame, step);
        break;
    case CI_STEP_batch:
        status = run_batch(frame, at);
        break;
    case CI_STEP_check:
        if (!*(const uint8_t *)slots[step->slot])
            status = fail_check(frame, step->number);
        break;
    default:
        status = ci_frame_jump(frame, at) ? ci_frame_poll_iteration(frame) : CI_OK;
    }
    if (status && !frame->is_shared)
        ci_program_report_shortage(frame->program, step, frame->values, frame->call);
    return status;
}

static int32_t
run_steps(CiFrame *frame)
{
    int32_t status = CI_OK;
    for (const CiStep *step = frame->program->steps; !status; step++) {
        if (step->kind == CI_STEP_return)
            break;
        status = run_step(frame, &step);
    }
    return status;
}

/* Runs the steps with the verifier's checks before and after each. */
static int32_t
run_watched(CiFrame *frame)
{
    CiVerifiedRun verified = {.program = frame->program,
                           .slots = frame->slots,
                           .values = frame->values,
                           .message = frame->call->message,
                           .message_size = frame->call->message_size};
    int32_t status = CI_OK;
    for (const CiStep *step = frame->program->steps; !status; step++) {
        const CiStep *own = step;
        status = ci_verify_before(&verified, own);
        if (status || step->kind == CI_STEP_return)
            break;
        status = run_step(frame, &step);
        if (!status)
            status = ci_verify_after(&verified, own);
    }
    frame->call->peak = verified.peak;
    return status;
}

/* Constants in place, symbols set by `symbols` or from the call's sizes, the first segment run. */
static void
fill_table(const CiProgram *program, int64_t *table, const int64_t *symbols, const CiCall *call)
{
    const CiValues *values = &program->values;
    memcpy(table, values->initial, sizeof *table * (size_t)values->count);
    if (symbols)
        memcpy(table, symbols, sizeof *table * (size_t)values->nsymbols);
    else
        ci_program_symbols(program, call, table);
    ci_values_run(&values->segments[0], values->segments[0].ncode, table);
}

static int32_t
run_frame(CiFrame *frame, int64_t *table, void *arg)
{
    (void)arg;
    CiProgram *program = frame->program;
    CiCall *call = frame->call;
    void **slots = frame->slots;
    for (int i = 0; i < program->ninputs; i++)
        slots[i] = call->inputs[i];
    for (int i = 0; i < program->nscalars; i++)
        slots[program->scalar_inputs[i]] = (void *)&call->scalars[i];
    for (int i = program->ninputs; i < program->nslots; i++)
        slots[i] = NULL;
    frame->values = program->values.initial;
    if (program->needs_table) {
        fill_table(program, table, call->has_symbols ? call->symbols : NULL, call);
        frame->values = frame->table = table;
    }
    call->fault.kind = 0;
    call->reason = call->unrecorded = NULL;
    if (call->message_size)
        call->message[0] = '\0';
    ci_float_flags_clear();
    int32_t status = program->verifier ? run_watched(frame) : run_steps(frame);
    call->float_flags = frame->flags | ci_float_flags_read();
    if (call->symbols && program->values.nsymbols) /* a program without values has no table */
        memcpy(call->symbols, frame->values, sizeof *table * (size_t)program->values.nsymbols);
    if (status)
        ci_frame_join_all(frame);
    if (status)
        for (int i = program->ninputs; i < program->nslots; i++)
            if (slots[i] && program->slots[i].is_own)
                ci_frame_give(frame, i);
    return status;
}

int32_t
ci_program_run(CiProgram *program, CiCall *call)
{
    CiFrame frame;
    frame.program = program;
    frame.call = call;
    frame.table = NULL;
    frame.flags = frame.iterations = 0;
    frame.in_batch = frame.is_shared = frame.is_recording = false;
    for (int k = 0; k < program->ndevices; k++) {
        frame.queues[k] = program->devices[k].queue;
        frame.queues[k].stream = call->streams ? call->streams[k] : NULL;
    }
    return with_tables(&frame, run_frame, NULL);
}

int32_t
ci_program_launch(CiProgram *program, int kernel, void *const *buffers, const int64_t *symbols,
                  const CiSlot *scalars, int max_threads, CiFault *fault)
{
    fault->kind = 0;
    if (ci_program_kernel_buffer_count(program, kernel) < 0)
        return CI_ERR_INDEX;
    const CiPlanLaunch *plan = &program->launches[kernel];
    const CiValues *values = &program->values;
    CiLaunch launch = plan->launch;
    int64_t *table = NULL;
    if (program->needs_table) {
        table = malloc(sizeof *table * (size_t)values->count);
        if (!table)
            return CI_ERR_MEMORY;
        fill_table(program, table, symbols, NULL);
        for (int i = 1; i < values->nsegments; i++)
            ci_values_run(&values->segments[i], values->segments[i].ncode, table);
        ci_plan_launch_fill(plan, table, &launch);
    }
    launch.buffers = buffers;
    launch.scalars = scalars;
    launch.max_threads = max_threads;
    int32_t status =
        ci_executable_launch(program->devices[plan->device].executable, &launch, fault);
    free(table);
    return status;
}
