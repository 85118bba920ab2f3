/* Partitions of the wrapper as parts of the program: which steps, and what decides what they do. */
#include "analysis/choices.h"
#include "runtime/flatten.h"
#include "runtime/record.h"
#include "wrapper/partition.h"

/* The value number of the bytes of an input whose elements may be copied for a replay; -1: it is written, or has gaps. */
static int
bytes_to_copy(CiFlatten *flat, const CiPartition *of, const CiBuffer *buffer)
{
    const CiLoops *loops = flat->wrapper->kernels->loops;
    bool is_stored = buffer->kind != CI_BUFFER_input || buffer->is_written;
    for (int k = 0; k < of->ngives; k++)
        is_stored |= of->gives[k] == buffer;
    if (is_stored || !ci_buffer_is_dense(loops, buffer))
        return -1;
    const CiExpr *bytes = ci_expr_const(loops->sym, ci_dtype_size(buffer->dtype));
    for (int axis = 0; axis < buffer->rank; axis++)
        bytes = ci_expr_mul(loops->sym, bytes, buffer->sizes[axis]);
    return ci_values_number(&flat->builder, bytes);
}

static void
note_address(CiFlatten *flat, CiPlanPartition *plan, const CiPartition *of, const CiBuffer *buffer)
{
    if (buffer->kind == CI_BUFFER_scalar || ci_wrapper_side(flat->wrapper, buffer) != of->side)
        return;
    CI_REQUIRE(flat->ctx, flat->slot_of[buffer->id] >= 0);
    CI_PUSH(flat->ctx, plan->slots, plan->nslots, plan->capslots, flat->slot_of[buffer->id]);
    CI_PUSH(flat->ctx, plan->slot_bytes, plan->nbytes, plan->capbytes, bytes_to_copy(flat, of, buffer));
}

static void
note_scalars(CiFlatten *flat, CiPlanPartition *plan, const CiPlanLaunch *launch)
{
    const CiBuffer *const *inputs = (const CiBuffer *const *)flat->wrapper->kernels->loops->buffers;
    for (int k = 0; k < launch->nscalars; k++) {
        int slot = launch->scalars[k], n = 0;
        while (n < plan->nscalars && plan->scalars[n].slot != slot)
            n++;
        if (n < plan->nscalars)
            continue;
        CiDtype dtype = inputs[flat->program->scalar_inputs[slot]]->dtype;
        CiPlanScalar scalar = {slot, ci_dtype_class(dtype) == CI_CLASS_complex ? 2 : 1};
        CI_PUSH(flat->ctx, plan->scalars, plan->nscalars, plan->capscalars, scalar);
    }
}

static int
count_words(const CiPlanPartition *plan)
{
    int words = 1 + plan->nslots + plan->nborn + plan->nvalues;
    for (int k = 0; k < plan->nscalars; k++)
        words += plan->scalars[k].words;
    return words;
}

/* NULL, or why launches are made always. */
static const char *
why_never(const CiFlatten *flat, const CiPartition *of, const CiPlanPartition *plan)
{
    int least = (int)ci_choice(flat->wrapper->kernels->machine, CI_CHOICE_recorded_launches);
    if (flat->program->verifier)
        return "each step of a run is watched";
    if (of->nlaunches < least)
        return ci_format(flat->ctx, "less than %d launches (the choice recorded_launches)", least);
    if (count_words(plan) > CI_MAX_KEY)
        return ci_format(flat->ctx, "more than %d addresses and numbers", CI_MAX_KEY);
    return NULL;
}

static void
fill(CiFlatten *flat, const CiPartition *of, CiPlanPartition *plan)
{
    const CiWrapper *w = flat->wrapper;
    plan->device = of->side - CI_SIDE_device;
    plan->nlaunches = of->nlaunches;
    plan->max_copied = ci_choice(w->kernels->machine, CI_CHOICE_recorded_copy);
    for (int k = 0; k < of->ntakes; k++)
        note_address(flat, plan, of, of->takes[k]);
    for (int k = 0; k < of->nsymbols; k++)
        CI_PUSH(flat->ctx, plan->values, plan->nvalues, plan->capvalues,
                ci_values_number(&flat->builder, of->symbols[k]));
    for (int i = of->first; i <= of->last; i++) {
        const CiLine *line = &w->lines[i];
        bool is_taken = line->kind == CI_LINE_alloc || line->kind == CI_LINE_alloc_result;
        if (is_taken && line->at == of->side) {
            int slot = flat->slot_of[line->buffer->id];
            CI_PUSH(flat->ctx, plan->temps, plan->ntemps, plan->captemps, slot);
            plan->nborn += i < of->own_first;
        }
        if (line->kind == CI_LINE_launch)
            note_scalars(flat, plan, &flat->program->launches[line->kernel->id]);
    }
    const char *why = why_never(flat, of, plan);
    plan->is_never = why != NULL;
    plan->recordings = ci_recordings_new(flat->ctx, count_words(plan), plan->ntemps + plan->nslots, plan->nlaunches / 2, why);
}

static const CiPartition *
next_partition(const CiFlatten *flat)
{
    const CiPartitions *all = flat->wrapper->partitions;
    return all && flat->npartitions < all->count ? &all->list[flat->npartitions] : NULL;
}

void
ci_flatten_open_partition(CiFlatten *flat, int line)
{
    const CiPartition *of = next_partition(flat);
    if (!of || flat->program->verifier || of->own_first != line)
        return;
    CiProgram *program = flat->program;
    CiStep step = {.kind = CI_STEP_partition, .slot = -1, .other = -1, .number = flat->npartitions};
    flat->partition_step = program->nsteps;
    CI_PUSH(flat->ctx, program->steps, program->nsteps, program->capsteps, step);
}

void
ci_flatten_close_partition(CiFlatten *flat, int line)
{
    const CiPartition *of = next_partition(flat);
    CiProgram *program = flat->program;
    if (!of || of->own_last != line)
        return;
    CiPlanPartition plan = {.device = 0};
    fill(flat, of, &plan);
    CI_PUSH(flat->ctx, program->partitions, program->npartitions, program->cappartitions, plan);
    if (!program->verifier)
        program->steps[flat->partition_step].target = program->nsteps;
    flat->npartitions++;
}
