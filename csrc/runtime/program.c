/* Creation, queries and release of programs. */
#include <stdio.h>
#include <string.h>

#include "runtime/record.h"

typedef struct Opening {
    CiProgram *program;
    const CiWrapper *wrapper;
    const CiOptions *options;
} Opening;

static void
flatten_body(CiContext *ctx, void *arg)
{
    (void)ctx;
    Opening *opening = arg;
    ci_program_flatten(opening->program, opening->wrapper, opening->options);
}

static void
make_body(CiContext *ctx, void *arg)
{
    *(CiProgram **)arg = CI_NEW(ctx, CiProgram);
}

static CiStatus
give_message(CiContext *ctx, CiStatus status, char *message, size_t capacity)
{
    if (capacity)
        snprintf(message, capacity, "%s", ctx ? ci_context_message(ctx) : ci_status_text(status));
    ci_context_close(ctx);
    return status;
}

CiStatus
ci_program_open(const CiWrapper *wrapper, const CiOptions *options,
                const CiProgramDevice *devices, int count, CiProgram **out, char *message,
                size_t capacity)
{
    *out = NULL;
    CiContext *ctx = ci_context_open();
    if (!ctx)
        return give_message(NULL, CI_ERR_MEMORY, message, capacity);
    CiProgram *program = NULL;
    CiStatus status = ci_protect(ctx, make_body, &program);
    if (!status) {
        program->ctx = ctx;
        program->ndevices = count;
        for (int k = 0; k < count; k++)
            program->devices[k].queue = devices[k].queue;
        status = ci_protect(ctx, flatten_body, &(Opening){program, wrapper, options});
    }
    if (status)
        return give_message(ctx, status, message, capacity);
    for (int k = 0; k < count; k++)
        program->devices[k].executable = devices[k].executable;
    for (int i = 0; i < program->nexterns; i++)
        if (program->externs[i].ext.retain)
            program->externs[i].ext.retain(program->externs[i].ext.data);
    *out = program;
    return CI_OK;
}

static const CiQueue *
queue_of(const CiProgramDevice *device)
{
    return device->executable ? &device->executable->queue : &device->queue;
}

bool
ci_program_waits(const CiProgram *program)
{
    bool waits = false;
    for (int k = 0; k < program->ndevices; k++)
        waits |= ci_backend_has_memory(queue_of(&program->devices[k])->backend);
    return waits;
}

void
ci_program_end(CiProgram *program)
{
    for (int k = 0; k < program->ndevices; k++) {
        const CiQueue *queue = queue_of(&program->devices[k]);
        /* Kernels that it was given may still run. */
        bool is_used = program->devices[k].executable || program->npartitions;
        if (is_used && ci_backend_has_memory(queue->backend))
            (void)queue->backend->device->synchronize(queue);
    }
    for (int k = 0; k < program->npartitions; k++)
        ci_recordings_close(program->partitions[k].recordings,
                          &program->devices[program->partitions[k].device].queue);
    for (int k = 0; k < program->ndevices; k++)
        if (program->devices[k].executable)
            program->devices[k].executable->close(program->devices[k].executable);
    program->npartitions = program->ndevices = 0;
}

void
ci_program_release(CiProgram *program)
{
    if (!program)
        return;
    ci_program_end(program);
    for (int i = 0; i < program->nexterns; i++)
        if (program->externs[i].ext.release)
            program->externs[i].ext.release(program->externs[i].ext.data);
    ci_context_close(program->ctx);
}

int
ci_program_device_count(const CiProgram *program)
{
    return program->ndevices;
}

int
ci_program_result_buffer_count(const CiProgram *program)
{
    return program->nresults;
}

int
ci_program_return_count(const CiProgram *program)
{
    return program->nreturns;
}

void
ci_program_return_at(const CiProgram *program, int position, const int64_t *symbols,
                     int64_t *storage, CiReturn *out)
{
    const CiPlanReturn *plan = &program->returns[position];
    *out = plan->value;
    if (!program->needs_table)
        return;
    int64_t table[CI_RETURN_VALUE_LIMIT];
    const CiValues *values = &program->values;
    memcpy(table, values->initial, sizeof *table * (size_t)program->return_values);
    if (symbols)
        memcpy(table, symbols, sizeof *table * (size_t)values->nsymbols);
    for (int k = 0; k < values->nsegments; k++)
        ci_values_run(&values->segments[k], program->return_code[k], table);
    size_t row = sizeof *table * (size_t)plan->value.rank;
    memcpy(storage, table + plan->sizes, row);
    memcpy(storage + plan->value.rank, table + plan->strides, row);
    out->offset = table[plan->offset];
    out->sizes = storage;
    out->strides = storage + plan->value.rank;
}

int
ci_program_symbol_count(const CiProgram *program)
{
    return program->values.nsymbols;
}

void
ci_program_symbols(const CiProgram *program, const CiCall *call, int64_t *symbols)
{
    for (int i = 0; i < program->nsources; i++) {
        const CiPlanSource *source = &program->sources[i];
        symbols[i] = source->axis < 0 ? call->scalars[source->scalar].i
                                      : call->sizes[source->input][source->axis];
    }
    for (int i = program->nsources; i < program->values.nsymbols; i++)
        symbols[i] = 0;
}

bool
ci_program_is_static(const CiProgram *program)
{
    return program->values.nextents == 0;
}

int64_t
ci_program_work(const CiProgram *program)
{
    return program->work;
}

int
ci_program_partition_count(const CiProgram *program)
{
    return program->npartitions;
}

void
ci_program_partition_at(const CiProgram *program, int position, CiRecordingUse *out)
{
    const CiPlanPartition *plan = &program->partitions[position];
    *out = (CiRecordingUse){.launches = plan->nlaunches, .device = plan->device};
    ci_recordings_query(plan->recordings, out);
}

int
ci_program_kernel_count(const CiProgram *program)
{
    return program->nlaunches;
}

int
ci_program_kernel_buffer_count(const CiProgram *program, int kernel)
{
    bool is_known = kernel >= 0 && kernel < program->nlaunches;
    return is_known ? program->launches[kernel].nbuffers : -1;
}

int
ci_program_kernel_scalar_count(const CiProgram *program, int kernel)
{
    bool is_known = kernel >= 0 && kernel < program->nlaunches;
    return is_known ? program->launches[kernel].nscalars : 0;
}

int
ci_program_kernel_scalar_at(const CiProgram *program, int kernel, int position)
{
    return program->launches[kernel].scalars[position];
}

int
ci_program_extern_count(const CiProgram *program)
{
    return program->nexterns;
}

const CiExtern *
ci_program_extern_at(const CiProgram *program, int position)
{
    return &program->externs[position].ext;
}
