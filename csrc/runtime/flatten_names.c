/* Names of steps and slots, and the memory plan's facts about them: for the run verifier and the
 * out-of-memory report. */
#include <string.h>

#include "runtime/flatten.h"

const char *
ci_flatten_copy_text(CiContext *ctx, const char *text)
{
    return ci_copy_text(ctx, text ? text : "", text ? strlen(text) : 0);
}

/* Of the steps that a line has become: what it is, and the user's line. */
void
ci_flatten_name_steps(CiFlatten *flat, const CiLine *line)
{
    CiRunVerifier *verifier = flat->program->verifier;
    const char *what = line->kernel ? line->kernel->name
                       : line->ext  ? ci_extern_print_name(line->ext->ext)
                                    : ci_line_row(line->kind)->name;
    const char *text = line->loc.line
                           ? ci_format(flat->ctx, "%s (%s:%d)", what, line->loc.file, line->loc.line)
                           : ci_flatten_copy_text(flat->ctx, what);
    while (verifier->nsteps < flat->program->nsteps)
        CI_PUSH(flat->ctx, verifier->steps, verifier->nsteps, verifier->capsteps, text);
}

/* A line that is no step begins with the next one, and ends with the one before. */
static int
step_from(const CiFlatten *flat, int line)
{
    return line > 0 ? flat->step_of[line - 1] + 1 : 0;
}

static void
verify_slot(CiFlatten *flat, const CiBuffer *buffer)
{
    CiVerifiedSlot *slot = &flat->program->verifier->slots[flat->slot_of[buffer->id]];
    const CiLife *life = &flat->wrapper->ranges->of[buffer->id];
    bool is_own = buffer->kind == CI_BUFFER_temp;
    slot->name = ci_flatten_copy_text(flat->ctx, buffer->name);
    slot->dtype = buffer->dtype;
    slot->is_host = buffer->kind != CI_BUFFER_scalar && ci_wrapper_is_on_host(flat->wrapper, buffer);
    slot->first = is_own ? step_from(flat, life->first) : 0;
    slot->last = is_own ? flat->step_of[life->last] : 0;
    if (is_own)
        slot->bytes = ci_values_number(&flat->builder, ci_buffer_bytes(flat->wrapper->kernels->loops->sym, buffer));
}

/* Records the plan's facts for each slot, independently of the lines that allocate and free. */
void
ci_flatten_verifier(CiFlatten *flat)
{
    const CiWrapper *w = flat->wrapper;
    CiRunVerifier *verifier = flat->program->verifier;
    verifier->slots = CI_NEW_ARRAY(flat->ctx, CiVerifiedSlot, flat->program->nslots + 1);
    verifier->stores = CI_NEW_ARRAY(flat->ctx, const bool *, flat->program->nlaunches + 1);
    for (int i = 0; i < w->nbuffers; i++)
        if (flat->slot_of[i] >= 0)
            verify_slot(flat, w->buffers[i]);
    for (int i = 0; i < w->nlines; i++) {
        const CiKernel *kernel = w->lines[i].kernel;
        if (!kernel)
            continue;
        bool *stores = CI_NEW_ARRAY(flat->ctx, bool, kernel->nbuffers + 1);
        for (int k = 0; k < kernel->nbuffers; k++)
            stores[k] = kernel->is_stored[k];
        verifier->stores[kernel->id] = stores;
    }
}

typedef struct FindMaker {
    const CiBuffer *buffer;
    const CiLoc *loc; /* of the nest that stores it, or NULL */
} FindMaker;

static void
find_maker(void *arg, const CiNest *nest)
{
    FindMaker *maker = arg;
    if (nest->target == maker->buffer && nest->nlocs && !maker->loc)
        maker->loc = &nest->locs[0];
}

static void
name_slot(CiFlatten *flat, const CiBuffer *buffer, const CiLine *line)
{
    int slot = buffer && flat->slot_of[buffer->id] >= 0 ? flat->slot_of[buffer->id] : -1;
    if (slot < flat->program->ninputs || flat->program->slots[slot].name)
        return;
    FindMaker maker = {.buffer = buffer};
    if (line->kernel)
        ci_kernel_visit_nests(line->kernel, find_maker, &maker);
    const CiLoc *loc = maker.loc ? maker.loc : &line->loc;
    flat->program->slots[slot].name =
        loc->line ? ci_format(flat->ctx, "%s (%s:%d)", buffer->name, loc->file, loc->line)
                  : ci_flatten_copy_text(flat->ctx, buffer->name);
}

/* Names a pool after the part at offset 0, which is its largest. */
static void
name_pool(CiFlatten *flat, const CiLine *part)
{
    CiPlanSlot *pool = &flat->program->slots[flat->slot_of[part->other->id]];
    const CiPlanSlot *own = &flat->program->slots[flat->slot_of[part->buffer->id]];
    if (!pool->name && own->name && ci_expr_equals_const(part->value, 0))
        pool->name = ci_format(flat->ctx, "%s with %s", part->other->name, own->name);
}

/* By the line of the user's that makes it. */
void
ci_flatten_name_slots(CiFlatten *flat)
{
    const CiWrapper *w = flat->wrapper;
    for (int i = 0; i < w->nlines; i++) {
        const CiLine *line = &w->lines[i];
        const CiKernel *kernel = line->kernel;
        for (int k = 0; kernel && k < kernel->nbuffers; k++)
            if (kernel->is_stored[k])
                name_slot(flat, w->sides[line->side][kernel->buffers[k]->id], line);
        if (line->ext)
            name_slot(flat, w->sides[line->side][line->ext->result->id], line);
    }
    for (int i = 0; i < w->nlines; i++)
        if (w->lines[i].kind == CI_LINE_part)
            name_pool(flat, &w->lines[i]);
    for (int i = 0; i < w->nbuffers; i++)
        name_slot(flat, w->buffers[i], &w->lines[0]);
}
