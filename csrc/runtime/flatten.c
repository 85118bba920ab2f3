/* Wrapper -> program: lines become steps, buffers slots, expressions value numbers. Static programs
 * are left with every launch, layout and size ready, so that a call fills in pointers and nothing
 * else. */
#include <string.h>

#include "analysis/templates.h"
#include "runtime/flatten.h"

static int
number_of(CiFlatten *flat, const CiExpr *e)
{
    return ci_values_number(&flat->builder, e);
}

static int
zero_unless(CiFlatten *flat, const CiExpr *e)
{
    return e ? number_of(flat, e) : ci_values_constant(&flat->builder, 0);
}

static void
flatten_symbols(CiFlatten *flat)
{
    CiProgram *program = flat->program;
    const CiWrapper *w = flat->wrapper;
    for (int i = 0; i < w->nlines; i++) {
        const CiLine *line = &w->lines[i];
        if (line->kind != CI_LINE_symbol)
            continue;
        int scalar = 0;
        for (int k = 0; k < line->buffer->input; k++)
            scalar += w->kernels->loops->buffers[k]->kind == CI_BUFFER_scalar;
        ci_values_add_symbol(&flat->builder, line->symbol, false);
        CI_PUSH(flat->ctx, program->sources, program->nsources, program->capsources,
                ((CiPlanSource){line->buffer->input, line->number, scalar}));
    }
    for (int i = 0; i < w->nlines; i++)
        if (w->lines[i].kind == CI_LINE_for || w->lines[i].kind == CI_LINE_define)
            ci_values_add_symbol(&flat->builder, w->lines[i].symbol, true);
    program->needs_table = program->values.nsymbols > 0;
}

/* By buffer: its number among those that leave the program, in the order of the results; or -1. */
static void
number_results(CiFlatten *flat)
{
    const CiLoops *loops = flat->wrapper->kernels->loops;
    flat->result_of = CI_NEW_ARRAY(flat->ctx, int, loops->nbuffers + 1);
    for (int i = 0; i < loops->nbuffers; i++)
        flat->result_of[i] = -1;
    for (int i = 0; i < loops->nresults; i++) {
        const CiBuffer *buffer = loops->results[i].buffer;
        if (buffer->kind == CI_BUFFER_temp && flat->result_of[buffer->id] < 0)
            flat->result_of[buffer->id] = flat->program->nresults++;
    }
}

static void
flatten_returns(CiFlatten *flat)
{
    CiProgram *program = flat->program;
    const CiLoops *loops = flat->wrapper->kernels->loops;
    program->nreturns = loops->nresults;
    program->returns = CI_NEW_ARRAY(flat->ctx, CiPlanReturn, loops->nresults + 1);
    for (int i = 0; i < loops->nresults; i++) {
        const CiResult *result = &loops->results[i];
        CiPlanReturn *plan = &program->returns[i];
        plan->value.dtype = result->dtype;
        plan->value.kind = result->kind;
        plan->value.is_whole = result->is_whole;
        plan->value.rank = result->rank;
        bool is_temp = result->buffer->kind == CI_BUFFER_temp;
        plan->value.input = is_temp ? -1 : result->buffer->input;
        plan->value.result_buffer = is_temp ? flat->result_of[result->buffer->id] : -1;
        plan->offset = zero_unless(flat, result->offset);
        plan->sizes = ci_values_row(&flat->builder, result->rank, result->sizes);
        plan->strides = ci_values_row(&flat->builder, result->rank, result->strides);
    }
    program->return_values = program->values.count;
    program->return_code = CI_NEW_ARRAY(flat->ctx, int, program->values.nsegments);
    for (int k = 0; k < program->values.nsegments; k++)
        program->return_code[k] = program->values.segments[k].ncode;
    if (program->needs_table && program->return_values > CI_RETURN_VALUE_LIMIT)
        ci_fail(flat->ctx, CI_ERR_UNSUPPORTED,
                "results with symbolic layouts need %d values, more than %d",
                program->return_values, CI_RETURN_VALUE_LIMIT);
}

static void
flatten_inputs(CiFlatten *flat)
{
    CiProgram *program = flat->program;
    const CiLoops *loops = flat->wrapper->kernels->loops;
    flat->slot_of = CI_NEW_ARRAY(flat->ctx, int, flat->wrapper->nbuffers + 1);
    for (int i = 0; i < flat->wrapper->nbuffers; i++)
        flat->slot_of[i] = -1;
    program->ninputs = loops->ninputs;
    for (int i = 0; i < loops->ninputs; i++) {
        const CiBuffer *input = loops->buffers[i];
        CI_REQUIRE(flat->ctx, input->input == i);
        flat->slot_of[input->id] = i;
        CI_PUSH(flat->ctx, program->slots, program->nslots, program->capslots,
                ((CiPlanSlot){.side = ci_wrapper_side(flat->wrapper, input)}));
        if (input->kind == CI_BUFFER_scalar)
            CI_PUSH(flat->ctx, program->scalar_inputs, program->nscalars, program->capscalars, i);
    }
}

/* One slot for each buffer, however often its line runs. */
static int
slot_for(CiFlatten *flat, const CiBuffer *buffer, const CiLine *line)
{
    CiProgram *program = flat->program;
    if (flat->slot_of[buffer->id] < 0) {
        CI_REQUIRE(flat->ctx, line != NULL);
        bool is_part = flat->wrapper->pool_of[buffer->id];
        CiPlanSlot slot = {.is_own = line->kind != CI_LINE_alloc_result && !is_part,
                           .is_part = is_part,
                           .is_callers = ci_wrapper_is_callers(flat->wrapper, buffer),
                           .side = line->at,
                           .bytes = number_of(flat, line->bytes),
                           .pinned = flat->wrapper->pinned[buffer->id],
                           .event = program->nslots + 1};
        flat->slot_of[buffer->id] = program->nslots;
        CI_PUSH(flat->ctx, program->slots, program->nslots, program->capslots, slot);
        CiPlanSlot event = {.is_event = true, .side = slot.pinned};
        if (slot.pinned)
            CI_PUSH(flat->ctx, program->slots, program->nslots, program->capslots, event);
    }
    return flat->slot_of[buffer->id];
}

static int
slot_on(CiFlatten *flat, const CiBuffer *buffer, CiSide side)
{
    const CiBuffer *on =
        buffer->kind == CI_BUFFER_scalar ? buffer : flat->wrapper->sides[side][buffer->id];
    return slot_for(flat, on, NULL);
}

static void
note_scalar(void *arg, const CiBuffer *buffer, int slot)
{
    CiFlatten *flat = ((void **)arg)[0];
    CiPlanLaunch *plan = ((void **)arg)[1];
    (void)buffer;
    CI_PUSH(flat->ctx, plan->scalars, plan->nscalars, plan->capscalars, slot);
}

/* Of a check that its symbol is in range, or why says what it asks. */
static int
add_reason(CiFlatten *flat, const CiExpr *symbol, const char *why)
{
    CiProgram *program = flat->program;
    const char *reason = symbol ? ci_format(flat->ctx, "%s is out of range", symbol->name)
                                : ci_flatten_copy_text(flat->ctx, why);
    CI_PUSH(flat->ctx, program->reasons, program->nreasons, program->capreasons, reason);
    return program->nreasons - 1;
}

/* A kernel may be launched by several lines; its plan is made once. */
static int
flatten_launch(CiFlatten *flat, const CiKernel *kernel, CiSide side)
{
    CiProgram *program = flat->program;
    CiPlanLaunch *plan = &program->launches[kernel->id];
    if (plan->nbuffers >= 0)
        return kernel->id;
    int *slots = CI_NEW_ARRAY(flat->ctx, int, kernel->nbuffers + 1);
    for (int k = 0; k < kernel->nbuffers; k++)
        slots[k] = slot_on(flat, kernel->buffers[k], side);
    plan->slots = slots;
    plan->device = side - CI_SIDE_device;
    plan->nbuffers = kernel->nbuffers;
    if (kernel->nbuffers > program->max_arguments)
        program->max_arguments = kernel->nbuffers;
    plan->launch.kernel = kernel->id;
    plan->launch.nbuffers = kernel->nbuffers;
    plan->launch.nsizes = kernel->nsize_args;
    plan->launch.nscalars = program->nscalars;
    plan->launch.may_fail = kernel->nchecks > 0;
    plan->sizes = ci_values_row(&flat->builder, kernel->nsize_args, kernel->size_args);
    ci_kernel_visit_scalars(flat->wrapper->kernels, kernel, note_scalar, (void *[]){flat, plan});
    plan->first_reason = program->nreasons;
    for (int k = 0; k < kernel->nchecks; k++)
        add_reason(flat, kernel->checks[k]->symbol, kernel->checks[k]->why);
    return kernel->id;
}

static void
flatten_extern(CiFlatten *flat, const CiLine *line)
{
    CiContext *ctx = flat->ctx;
    const CiExternItem *item = line->ext;
    CiPlanExtern *plan = &flat->program->externs[line->number];
    if (!item->ext->call)
        ci_fail(ctx, CI_ERR_UNSUPPORTED, "%s has no function to call: text cannot carry one",
                item->ext->name);
    int n = item->noperands;
    plan->op = item->op;
    plan->quiet = item->loc.quiet;
    plan->side = flat->wrapper->machine->has_memory ? line->side : CI_SIDE_host;
    plan->noperands = n;
    plan->slots = CI_NEW_ARRAY(ctx, int, n + 1);
    plan->offsets = CI_NEW_ARRAY(ctx, int, n + 1);
    plan->sizes = CI_NEW_ARRAY(ctx, int, n + 1);
    plan->strides = CI_NEW_ARRAY(ctx, int, n + 1);
    plan->ranks = CI_NEW_ARRAY(ctx, int, n + 1);
    plan->dtypes = CI_NEW_ARRAY(ctx, CiDtype, n + 1);
    for (int k = 0; k <= n; k++) {
        const CiBuffer *buffer = k < n ? item->operands[k] : item->result;
        plan->slots[k] = slot_on(flat, buffer, line->side);
        plan->offsets[k] = number_of(flat, item->offsets[k]);
        plan->dtypes[k] = buffer->dtype;
        plan->ranks[k] = item->ranks[k];
        plan->sizes[k] = ci_values_row(&flat->builder, item->ranks[k], item->sizes[k]);
        plan->strides[k] = ci_values_row(&flat->builder, item->ranks[k], item->strides[k]);
    }
    plan->is_whole = ci_extern_is_whole(item, n) && !flat->program->slots[plan->slots[n]].is_part;
    plan->is_result = flat->result_of[item->result->id] >= 0;
    plan->ext = *item->ext;
    plan->ext.name = ci_flatten_copy_text(ctx, item->ext->name);
    plan->ext.key = ci_flatten_copy_text(ctx, item->ext->key);
    if (n + 1 > flat->program->max_arguments)
        flat->program->max_arguments = n + 1;
    if (n + 1 > flat->program->max_rows)
        flat->program->max_rows = n + 1;
}

static int
flatten_result(CiFlatten *flat, const CiBuffer *buffer)
{
    CiProgram *program = flat->program;
    int number = flat->result_of[buffer->id];
    CI_REQUIRE(flat->ctx, number >= 0 && number < program->nresults);
    CiPlanResult *plan = &program->results[number];
    plan->buffer.dtype = buffer->dtype;
    plan->buffer.rank = buffer->rank;
    plan->buffer.device = buffer->device;
    plan->sizes = ci_values_row(&flat->builder, buffer->rank, buffer->sizes);
    plan->strides = ci_values_row(&flat->builder, buffer->rank, buffer->strides);
    return number;
}

static CiStep *
add_step(CiFlatten *flat, CiStepKind kind)
{
    CiProgram *program = flat->program;
    CiStep step = {.kind = kind, .slot = -1, .other = -1};
    CI_PUSH(flat->ctx, program->steps, program->nsteps, program->capsteps, step);
    return &program->steps[program->nsteps - 1];
}

static void
flatten_memory(CiFlatten *flat, const CiLine *line)
{
    bool is_birth = ci_line_row(line->kind)->buffer == CI_USE_defines;
    int slot = slot_for(flat, line->buffer, is_birth ? line : NULL);
    int other = line->other ? slot_for(flat, line->other, NULL) : -1;
    const CiExpr *amount = line->value ? line->value : line->bytes; /* of a part: where it begins */
    int value = amount ? number_of(flat, amount) : -1;
    int number = line->kind == CI_LINE_alloc_result ? flatten_result(flat, line->buffer) : -1;
    CiStep *step = add_step(flat, (CiStepKind)line->kind);
    step->slot = slot;
    step->other = other;
    step->value = value;
    step->number = number;
}

/* The step is filled when all its numbers are made: making them may move the steps. */
static void
flatten_check(CiFlatten *flat, const CiLine *line)
{
    CiProgram *program = flat->program;
    CiStep step = {.slot = slot_for(flat, line->buffer, NULL), .number = program->nreasons};
    step.kind = line->symbol ? CI_STEP_define : CI_STEP_check;
    if (line->symbol) {
        step.value = number_of(flat, line->value);
        step.other = ci_values_constant(&flat->builder, line->symbol->low);
        step.variable = number_of(flat, line->symbol);
        step.target = program->nreasons;
        step.number = step.variable - program->values.nextents + 1;
    }
    (void)add_reason(flat, line->symbol, line->text);
    *add_step(flat, step.kind) = step;
}

/* A `while` becomes an endless loop with the test in its middle, which exits it. After the exit the
 * memory that the loop holds at the test is freed. */
static void
flatten_while(CiFlatten *flat, int open, int position)
{
    const CiWrapper *w = flat->wrapper;
    CiProgram *program = flat->program;
    int test = open + 1;
    while (w->lines[test].kind != CI_LINE_test || w->lines[test].open != open)
        test++;
    add_step(flat, CI_STEP_jump)->target = flat->step_of[open] + 1;
    program->steps[flat->step_of[test]].target = program->nsteps;
    for (int k = 0; k < w->lines[test].nfrees; k++) {
        const CiBuffer *freed = w->lines[test].frees[k];
        add_step(flat, w->pool_of[freed->id] ? CI_STEP_leave : CI_STEP_free)->slot =
            slot_for(flat, freed, NULL);
    }
    flat->step_of[position] = program->nsteps - 1;
}

/* Jumps are made where a region opens or turns; their targets are set when its end is met. */
static void
flatten_region(CiFlatten *flat, const CiLine *line, int position)
{
    const CiWrapper *w = flat->wrapper;
    flat->has_region = true;
    if (line->kind == CI_LINE_end && w->lines[line->open].kind == CI_LINE_while) {
        flatten_while(flat, line->open, position);
        return;
    }
    if (line->kind == CI_LINE_for) {
        int extent = number_of(flat, line->value);
        CiStep *step = add_step(flat, line->is_parallel && !flat->program->verifier ? CI_STEP_batch : CI_STEP_for);
        step->value = extent;
        step->variable = number_of(flat, line->symbol);
        step->number = step->variable - flat->program->values.nextents + 1;
    } else if (line->kind == CI_LINE_test || line->kind == CI_LINE_if) {
        add_step(flat, CI_STEP_unless)->slot = slot_for(flat, line->buffer, NULL);
    } else if (line->kind != CI_LINE_while) {
        const CiLine *open = &w->lines[line->open];
        int opened = flat->step_of[line->open];
        if (line->kind == CI_LINE_else)
            add_step(flat, CI_STEP_jump)->target = opened;
        if (open->kind == CI_LINE_for) {
            CiStep *step = add_step(flat, CI_STEP_next);
            *step = flat->program->steps[opened];
            step->kind = CI_STEP_next;
            step->target = opened + 1;
        }
        flat->program->steps[opened].target = flat->program->nsteps;
    }
    flat->step_of[position] = flat->program->nsteps - 1;
}

static void
flatten_line(CiFlatten *flat, const CiLine *line, int position)
{
    switch (line->kind) {
    case CI_LINE_comment:
    case CI_LINE_symbol:
    case CI_LINE_assert_size:
        break;
    case CI_LINE_launch: {
        int number = flatten_launch(flat, line->kernel, line->side);
        add_step(flat, CI_STEP_launch)->number = number;
        break;
    }
    case CI_LINE_extern:
        flatten_extern(flat, line);
        add_step(flat, CI_STEP_extern)->number = line->number;
        break;
    case CI_LINE_join:
        flat->program->externs[line->number].has_join = true;
        add_step(flat, CI_STEP_join)->number = line->number;
        break;
    case CI_LINE_swap: {
        CiStep *step = add_step(flat, CI_STEP_swap);
        step->slot = slot_for(flat, line->buffer, NULL);
        step->other = slot_for(flat, line->other, NULL);
        break;
    }
    case CI_LINE_return:
        add_step(flat, CI_STEP_return);
        break;
    case CI_LINE_define:
    case CI_LINE_check:
        flatten_check(flat, line);
        break;
    case CI_LINE_for:
    case CI_LINE_while:
    case CI_LINE_test:
    case CI_LINE_if:
    case CI_LINE_else:
    case CI_LINE_end:
        flatten_region(flat, line, position);
        break;
    default:
        flatten_memory(flat, line);
    }
}

void
ci_plan_launch_fill(const CiPlanLaunch *plan, const int64_t *values, CiLaunch *launch)
{
    launch->sizes = values + plan->sizes;
}

/* The table stands still now, so layouts can point into it. */
static void
finish_static(CiProgram *program)
{
    const int64_t *values = program->values.initial;
    for (int i = 0; i < program->nlaunches; i++)
        if (program->launches[i].nbuffers >= 0)
            ci_plan_launch_fill(&program->launches[i], values, &program->launches[i].launch);
    for (int i = 0; i < program->nresults; i++) {
        program->results[i].buffer.sizes = values + program->results[i].sizes;
        program->results[i].buffer.strides = values + program->results[i].strides;
    }
    for (int i = 0; i < program->nreturns; i++) {
        CiPlanReturn *plan = &program->returns[i];
        plan->value.offset = values[plan->offset];
        plan->value.sizes = values + plan->sizes;
        plan->value.strides = values + plan->strides;
    }
}

static int64_t
count_work(const CiFlatten *flat)
{
    const CiWrapper *w = flat->wrapper;
    const CiProgram *program = flat->program;
    double work = 0;
    if (program->needs_table || flat->has_region)
        return INT64_MAX;
    for (int i = 0; i < program->nexterns; i++)
        if (ci_op_has(program->externs[i].op, CI_FACT_collective))
            return INT64_MAX; /* another thread may have to come first */
    for (int i = 0; i < w->nlines; i++)
        if (w->lines[i].kind == CI_LINE_launch)
            work += (double)ci_kernel_work(w->kernels->loops->sym, w->lines[i].kernel);
    return work < 9e18 ? (int64_t)work : INT64_MAX;
}

static int
count_kernel_numbers(const CiWrapper *w)
{
    int count = w->kernels->nkernels;
    for (int i = 0; i < w->nlines; i++)
        if (w->lines[i].kind == CI_LINE_launch && w->lines[i].kernel->id >= count)
            count = w->lines[i].kernel->id + 1;
    return count;
}

static void
make_tables(CiFlatten *flat)
{
    CiProgram *program = flat->program;
    const CiWrapper *w = flat->wrapper;
    program->nlaunches = count_kernel_numbers(w);
    program->launches = CI_NEW_ARRAY(flat->ctx, CiPlanLaunch, program->nlaunches + 1);
    for (int i = 0; i < program->nlaunches; i++)
        program->launches[i].nbuffers = -1;
    program->nexterns = w->nexterns;
    program->externs = CI_NEW_ARRAY(flat->ctx, CiPlanExtern, w->nexterns + 1);
    number_results(flat);
    program->results = CI_NEW_ARRAY(flat->ctx, CiPlanResult, program->nresults + 1);
    flat->step_of = CI_NEW_ARRAY(flat->ctx, int, w->nlines + 1);
}

void
ci_program_flatten(CiProgram *program, const CiWrapper *wrapper, const CiOptions *options)
{
    CiFlatten flat = {.program = program, .ctx = program->ctx, .wrapper = wrapper};
    ci_values_begin(&flat.builder, flat.ctx, &program->values);
    make_tables(&flat);
    flatten_symbols(&flat);
    flatten_returns(&flat);
    flatten_inputs(&flat);
    program->verifier = ci_run_verifier_new(flat.ctx, options);
    for (int i = 0; i < wrapper->nlines; i++) {
        ci_flatten_open_partition(&flat, i);
        flatten_line(&flat, &wrapper->lines[i], i);
        ci_flatten_close_partition(&flat, i);
        flat.step_of[i] = program->nsteps - 1;
        if (program->verifier)
            ci_flatten_name_steps(&flat, &wrapper->lines[i]);
    }
    ci_flatten_name_slots(&flat);
    if (program->verifier)
        ci_flatten_verifier(&flat);
    if (!program->needs_table)
        finish_static(program);
    program->work = count_work(&flat);
}
