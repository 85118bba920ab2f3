/* What lines and kernels touch, for whoever walks over them. */
#include "wrapper/wrapper.h"

static void
visit_results(const CiWrapper *wrapper, void (*visit)(void *arg, const CiBuffer *, bool), void *arg)
{
    const CiLoops *loops = wrapper->kernels->loops;
    for (int i = 0; i < loops->nresults; i++)
        if (loops->results[i].buffer->kind != CI_BUFFER_scalar)
            visit(arg, loops->results[i].buffer, false);
}

void
ci_line_visit(const CiWrapper *wrapper, const CiLine *line,
              void (*visit)(void *arg, const CiBuffer *buffer, bool is_stored), void *arg)
{
    const CiBuffer **device = wrapper->sides[CI_SIDE_device], **own = wrapper->sides[line->side];
    switch (line->kind) {
    case CI_LINE_launch:
        for (int k = 0; k < line->kernel->nbuffers; k++)
            if (line->kernel->buffers[k]->kind != CI_BUFFER_scalar)
                visit(arg, device[line->kernel->buffers[k]->id], line->kernel->is_stored[k]);
        break;
    case CI_LINE_extern:
        for (int k = 0; k < line->ext->noperands; k++)
            if (line->ext->operands[k]->kind != CI_BUFFER_scalar)
                visit(arg, own[line->ext->operands[k]->id], false);
        visit(arg, own[line->ext->result->id], true);
        break;
    case CI_LINE_swap:
        visit(arg, line->buffer, true);
        visit(arg, line->other, true);
        break;
    case CI_LINE_copy_in:
    case CI_LINE_copy_out:
        visit(arg, line->other, false);
        visit(arg, line->buffer, true);
        break;
    case CI_LINE_define:
    case CI_LINE_check:
    case CI_LINE_test:
    case CI_LINE_if:
        if (line->buffer->kind != CI_BUFFER_scalar)
            visit(arg, line->buffer, false);
        break;
    case CI_LINE_return:
        visit_results(wrapper, visit, arg);
        break;
    default:
        break;
    }
}

typedef struct Reading {
    const CiBuffer *buffer;
    bool is_found;
} Reading;

static void
find_reading(void *arg, const CiNest *nest)
{
    Reading *reading = arg;
    for (int k = 0; k < nest->body.nops; k++)
        reading->is_found |=
            nest->body.ops[k].op == CI_OP_load && nest->body.ops[k].buffer == reading->buffer;
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
