/* Drops of inputs: after such a line nothing reads the memory of an input, so that the caller may free it
 * while the program runs.
 *
 *   k0(in0, buf0)            k0(in0, buf0)
 *   k1(buf0, buf1)      ->   del in0
 *                            k1(buf0, buf1)
 *
 * No drop precedes a line that may fail a check: after a failed check the caller runs the call in another
 * way, with all inputs. An input of few bytes is not dropped, because the caller takes a lock for a drop. */
#include "analysis/choices.h"
#include "analysis/cost.h"
#include "wrapper/allocate.h"

typedef struct Drops {
    int *last; /* per buffer: the line of the outermost block after which it is not used; -1: not known yet */
    int at;    /* the line that is visited, or the end of the region around it */
} Drops;

static void
note_use(void *arg, const CiBuffer *buffer, bool is_stored)
{
    Drops *drops = arg;
    (void)is_stored;
    if (buffer->kind == CI_BUFFER_input && drops->last[buffer->id] < 0)
        drops->last[buffer->id] = drops->at;
}

static bool
may_fail(const CiLine *line)
{
    return line->kind == CI_LINE_check || line->kind == CI_LINE_define || (line->kernel && line->kernel->nchecks > 0);
}

/* From the last line to the first. Returns the last line that may fail, or -1. */
static int
find_last_uses(const CiWrapper *w, Drops *drops)
{
    int failing = -1, depth = 0;
    for (int i = w->nlines - 1; i >= 0; i--) {
        const CiLine *line = &w->lines[i];
        CiLineBlock block = ci_line_row(line->kind)->block;
        if (depth == 0)
            drops->at = i;
        depth += block == CI_BLOCK_closes;
        depth -= block == CI_BLOCK_opens;
        ci_line_visit(w, line, note_use, drops);
        if (may_fail(line) && failing < 0)
            failing = drops->at;
    }
    return failing;
}

static bool
is_large(const CiWrapper *w, const CiBuffer *buffer)
{
    return ci_amount_likely(ci_cost_of_buffer(buffer)) >= ci_choice(w->machine, CI_CHOICE_dropped_bytes);
}

void
ci_wrapper_drop_inputs(CiWrapper *w)
{
    const CiLoops *loops = w->kernels->loops;
    Drops drops = {.last = CI_NEW_ARRAY(w->ctx, int, w->nbuffers + 1)};
    CiLine *lines = NULL;
    int nlines = 0, caplines = 0;
    for (int b = 0; b < w->nbuffers; b++)
        drops.last[b] = -1;
    int failing = find_last_uses(w, &drops);
    for (int i = 0; i < w->nlines; i++) {
        CI_PUSH(w->ctx, lines, nlines, caplines, w->lines[i]);
        for (int k = 0; k < loops->ninputs && i < w->nlines - 1; k++) {
            const CiBuffer *input = loops->buffers[k];
            int last = drops.last[input->id];
            if (last < 0 || (last > failing ? last : failing) != i || input->is_written || !is_large(w, input))
                continue;
            CiLine line = {.kind = CI_LINE_drop, .buffer = input, .match = -1, .open = -1, .loc = {.file = ""}};
            line.at = ci_wrapper_side(w, input);
            CI_PUSH(w->ctx, lines, nlines, caplines, line);
        }
    }
    w->lines = lines;
    w->nlines = nlines;
    w->caplines = caplines;
}
