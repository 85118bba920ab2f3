/* Asynchronous copies to the host: they start as soon as the data is ready, and the host waits
 * where it first reads them. Launches and host calls in between run concurrently.
 *
 * A few bytes that one launch makes, and only the host reads, are not copied: the launch stores them
 * there.
 *
 * The destination of such a copy is memory that the device accesses directly; it belongs to the
 * program. Results belong to the caller, and are copied at the end. */
#include "analysis/choices.h"
#include "analysis/cost.h"
#include "wrapper/allocate.h"

#define STORED_BYTES 64 /* what one transaction stores */

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

/* ---- stored by the device where the host reads it ---- */

typedef struct Stores {
    const CiBuffer *buffer;
    int line, where; /* the line being visited, the one that stores, or -1 */
    int uses, depth;
} Stores;

static void
note_use(void *arg, const CiBuffer *buffer, bool is_stored)
{
    Stores *stores = arg;
    stores->uses += buffer == stores->buffer;
    if (buffer == stores->buffer && is_stored && !stores->depth)
        stores->where = stores->line;
}

/* The only launch that uses the source of the copy, which it stores; -1: there is none. It runs once,
 * and is not recorded: the memory of a recording stays the same, and this is another in each call. */
static int
find_only_launch(const CiWrapper *w, const CiLine *copy)
{
    const CiBuffer *buffer = copy->other;
    Stores stores = {buffer, 0, -1, 0, 0};
    const CiExpr *bytes = copy->bytes;
    if (!w->machine->stores_to_host || bytes->high > STORED_BYTES || buffer->kind != CI_BUFFER_temp || buffer->is_result ||
        ci_wrapper_records_all(w))
        return -1;
    for (; stores.line < w->nlines; stores.line++) {
        const CiLine *line = &w->lines[stores.line];
        stores.depth += ci_line_opens(line) - ci_line_closes(line);
        ci_line_visit(w, line, note_use, &stores);
    }
    bool is_launch = stores.where >= 0 && w->lines[stores.where].kind == CI_LINE_launch;
    return is_launch && stores.uses == 2 ? stores.where : -1;
}

/* Lines from `at` on move by one. */
static void
insert_line(CiWrapper *w, int at, CiLine line)
{
    CI_PUSH(w->ctx, w->lines, w->nlines, w->caplines, line);
    for (int i = w->nlines - 1; i > at; i--)
        w->lines[i] = w->lines[i - 1];
    w->lines[at] = line;
}

/* The copy has no memory of its own any more: it is the buffer. */
static void
store_directly(CiWrapper *w, int position, int launch)
{
    const CiBuffer *there = w->lines[position].buffer, *buffer = w->lines[position].other;
    CiLine line = {.kind = CI_LINE_wait, .buffer = buffer, .at = CI_SIDE_host, .match = -1, .open = -1,
                   .loc = {.file = ""}, .side = CI_SIDE_device};
    w->pinned[buffer->id] = ci_wrapper_side(w, buffer);
    w->side_of[buffer->id] = CI_SIDE_host;
    w->sides[CI_SIDE_host][buffer->id] = buffer; /* library calls on the host find it there */
    for (int i = position; i < w->nlines; i++)
        if (w->lines[i].buffer == there)
            w->lines[i].buffer = buffer;
    w->lines[position] = line;
    line.kind = CI_LINE_mark;
    insert_line(w, launch + 1, line);
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
        int launch = find_only_launch(wrapper, &wrapper->lines[i]);
        if (launch >= 0) {
            store_directly(wrapper, i++, launch);
            continue;
        }
        int first = find_start(wrapper, i);
        if (first < i)
            start_copy(wrapper, i++, first);
    }
}
