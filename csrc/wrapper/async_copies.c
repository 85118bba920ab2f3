/* Asynchronous copies to the host: they start as soon as the data is ready, and the host waits
 * where it first reads them. Launches and host calls in between run concurrently.
 *
 * The destination of such a copy is memory that the device accesses directly; it belongs to the
 * program. Results belong to the caller, and are copied at the end. */
#include "ir/choices.h"
#include "ir/cost.h"
#include "wrapper/place.h"

typedef struct Touch {
    const CiBuffer *there, *here;
    bool is_met;
} Touch;

/* Notes whether the line uses the destination, or overwrites the source of the copy. */
static void
note_touch(void *arg, const CiBuffer *buffer, bool is_stored)
{
    Touch *touch = arg;
    touch->is_met |= buffer == touch->there || (buffer == touch->here && is_stored);
}

/* The copy may begin before this line as well. */
static bool
may_pass(const CiWrapper *w, const CiLine *copy, const CiLine *line)
{
    Touch touch = {copy->buffer, copy->other, false};
    switch (line->kind) {
    case CI_LINE_launch:
    case CI_LINE_extern:
    case CI_LINE_copy_in:
    case CI_LINE_copy_out:
    case CI_LINE_copy_out_start:
    case CI_LINE_wait:
    case CI_LINE_copy_across:
    case CI_LINE_check:
        ci_line_visit(w, line, note_touch, &touch);
        return !touch.is_met;
    default: /* blocks, and what sizes are made of */
        return false;
    }
}

/* Something runs meanwhile. */
static bool
is_work(const CiLine *line)
{
    return line->kind == CI_LINE_launch || line->kind == CI_LINE_extern;
}

static bool
is_worth_it(const CiWrapper *w, const CiBuffer *there)
{
    return there->kind == CI_BUFFER_temp && !there->is_result &&
           ci_amount_likely(ci_cost_of_buffer(there)) <=
               ci_choice(w->kernels->machine, CI_CHOICE_pinned_bytes);
}

/* The line before which the copy may begin; its own where nothing would run meanwhile. */
static int
find_start(const CiWrapper *w, int position)
{
    const CiLine *copy = &w->lines[position];
    int at = position, first = position;
    while (at > 0 && may_pass(w, copy, &w->lines[at - 1]))
        if (is_work(&w->lines[--at]))
            first = at;
    return first;
}

static void
start_copy(CiWrapper *w, int position, int first)
{
    CiLine copy = w->lines[position], wait = copy;
    copy.kind = CI_LINE_copy_out_start;
    wait.kind = CI_LINE_wait;
    wait.other = NULL;
    wait.bytes = NULL;
    w->pinned[copy.buffer->id] = ci_wrapper_side(w, copy.other);
    CI_PUSH(w->ctx, w->lines, w->nlines, w->caplines, copy); /* adds one element */
    for (int i = w->nlines - 1; i > position + 1; i--)
        w->lines[i] = w->lines[i - 1];
    w->lines[position + 1] = wait;
    for (int i = position; i > first; i--)
        w->lines[i] = w->lines[i - 1];
    w->lines[first] = copy;
}

void
ci_wrapper_start_early(CiWrapper *wrapper)
{
    for (int i = 0; i < wrapper->nlines; i++) {
        if (wrapper->lines[i].kind != CI_LINE_copy_out ||
            !is_worth_it(wrapper, wrapper->lines[i].buffer))
            continue;
        int first = find_start(wrapper, i);
        if (first < i)
            start_copy(wrapper, i++, first);
    }
}
