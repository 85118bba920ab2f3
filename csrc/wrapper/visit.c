/* Visits the buffers that lines and kernels access. */
#include "wrapper/wrapper.h"

static void
visit_results(const CiWrapper *wrapper, void (*visit)(void *arg, const CiBuffer *, bool), void *arg)
{
    const CiLoops *loops = wrapper->kernels->loops;
    for (int i = 0; i < loops->nresults; i++)
        if (loops->results[i].buffer->kind != CI_BUFFER_scalar)
            visit(arg, loops->results[i].buffer, false);
}

static void
visit_operand(CiLineUse use, const CiBuffer *buffer,
              void (*visit)(void *arg, const CiBuffer *, bool), void *arg)
{
    bool is_stored = use == CI_USE_stores;
    if ((is_stored || use == CI_USE_loads) && buffer->kind != CI_BUFFER_scalar)
        visit(arg, buffer, is_stored);
}

void
ci_line_visit(const CiWrapper *wrapper, const CiLine *line,
              void (*visit)(void *arg, const CiBuffer *buffer, bool is_stored), void *arg)
{
    const CiBuffer **own = wrapper->sides[line->side];
    const CiLineRow *row = ci_line_row(line->kind);
    for (int k = 0; line->kernel && k < line->kernel->nbuffers; k++)
        if (line->kernel->buffers[k]->kind != CI_BUFFER_scalar)
            visit(arg, own[line->kernel->buffers[k]->id], line->kernel->is_stored[k]);
    for (int k = 0; line->ext && k < line->ext->noperands; k++)
        if (line->ext->operands[k]->kind != CI_BUFFER_scalar)
            visit(arg, own[line->ext->operands[k]->id], false);
    if (line->ext)
        visit(arg, own[line->ext->result->id], true);
    visit_operand(row->other, line->other, visit, arg);
    visit_operand(row->buffer, line->buffer, visit, arg);
    if (row->block == CI_BLOCK_last)
        visit_results(wrapper, visit, arg);
}

typedef struct Reading {
    const CiBuffer *buffer;
    bool is_found;
} Reading;

static void
find_reading(void *arg, const CiNest *nest)
{
    Reading *reading = arg;
    reading->is_found |= ci_nest_loads(nest, reading->buffer);
}

static bool
is_read_by(const CiKernel *kernel, const CiBuffer *buffer)
{
    Reading reading = {buffer, false};
    ci_kernel_visit_nests(kernel, find_reading, &reading);
    return reading.is_found;
}

/* Slow on purpose: there are few scalars. */
void
ci_kernel_visit_scalars(const CiKernels *kernels, const CiKernel *kernel,
                        void (*visit)(void *arg, const CiBuffer *buffer, int slot), void *arg)
{
    const CiLoops *loops = kernels->loops;
    for (int i = 0, slot = 0; i < loops->ninputs; i++) {
        if (loops->buffers[i]->kind != CI_BUFFER_scalar)
            continue;
        if (is_read_by(kernel, loops->buffers[i]))
            visit(arg, loops->buffers[i], slot);
        slot++;
    }
}

const char *
ci_extern_print_name(const CiExtern *ext)
{
    return ext->name && ci_name_is_safe(ext->name) ? ext->name : "extern";
}
