/* Collectives in parallel with kernels: a collective starts as soon as its operand is there, and the device's
 * later work waits for it (a line `join`) where its result is first used. Launches that depend on
 * neither run in between: those that are there already, and later ones of the same block, which are
 * moved before the join.
 *
 * The order of collectives stays: it is the same for all members. */
#include "wrapper/allocate.h"

typedef struct Conflict {
    const CiWrapper *w;
    const CiLine *other;
    const CiBuffer *buffer; /* the one that is looked for in the other line */
    bool is_stored, is_met;
} Conflict;

static void
compare(void *arg, const CiBuffer *buffer, bool is_stored)
{
    Conflict *c = arg;
    c->is_met |= buffer == c->buffer && (is_stored || c->is_stored);
}

static void
look_in_other(void *arg, const CiBuffer *buffer, bool is_stored)
{
    Conflict *c = arg;
    c->buffer = buffer;
    c->is_stored = is_stored;
    ci_line_visit(c->w, c->other, compare, c);
}

/* One line stores what the other uses. */
static bool
conflicts(const CiWrapper *w, const CiLine *a, const CiLine *b)
{
    Conflict c = {.w = w, .other = b};
    ci_line_visit(w, a, look_in_other, &c);
    return c.is_met;
}

static bool
is_collective(const CiLine *line)
{
    return line->kind == CI_LINE_extern && line->side != CI_SIDE_host &&
           ci_op_has(line->ext->op, CI_FACT_collective);
}

/* A launch that the host does not wait for. */
static bool
is_kernel(const CiLine *line)
{
    return line->kind == CI_LINE_launch && !line->kernel->nchecks;
}

static void
move_up(CiWrapper *w, int from, int to)
{
    CiLine line = w->lines[from];
    for (int i = from; i > to; i--)
        w->lines[i] = w->lines[i - 1];
    w->lines[to] = line;
}

/* The line before which the collective may start: kernels follow that it does not depend on. */
static int
find_start(const CiWrapper *w, int at)
{
    const CiLine *line = &w->lines[at];
    int first = at;
    while (first > 0 && is_kernel(&w->lines[first - 1]) && !conflicts(w, &w->lines[first - 1], line))
        first--;
    return first;
}

/* The first line after `at` that cannot run beside the collective. */
static int
find_end(const CiWrapper *w, int at)
{
    int end = at + 1;
    while ((is_kernel(&w->lines[end]) || is_collective(&w->lines[end])) &&
           !conflicts(w, &w->lines[end], &w->lines[at]))
        end++;
    return end;
}

/* A kernel from `end` on depends on no line from there on, nor on the collective. */
static bool
is_free(const CiWrapper *w, int at, int end, int later)
{
    for (int i = end; i < later; i++)
        if (conflicts(w, &w->lines[i], &w->lines[later]))
            return false;
    return !conflicts(w, &w->lines[at], &w->lines[later]);
}

/* Moves later kernels of the block before `end`; returns the new end. */
static int
fill(CiWrapper *w, int at, int end)
{
    for (int later = end; is_kernel(&w->lines[later]) || is_collective(&w->lines[later]) ||
                          w->lines[later].kind == CI_LINE_join;
         later++)
        if (is_kernel(&w->lines[later]) && is_free(w, at, end, later))
            move_up(w, later, end++);
    return end;
}

static bool
has_kernel(const CiWrapper *w, int from, int to)
{
    while (from < to && !is_kernel(&w->lines[from]))
        from++;
    return from < to;
}

static void
insert_join(CiWrapper *w, int at, int end)
{
    CiLine line = w->lines[at];
    line.kind = CI_LINE_join;
    line.at = line.side;
    line.buffer = w->sides[line.side][line.ext->result->id];
    CI_PUSH(w->ctx, w->lines, w->nlines, w->caplines, line);
    move_up(w, w->nlines - 1, end);
}

void
ci_wrapper_overlap(CiWrapper *w)
{
    for (int i = 0; i < w->nlines; i++) {
        if (!is_collective(&w->lines[i]))
            continue;
        int first = find_start(w, i), end = find_end(w, i);
        move_up(w, i, first);
        end = fill(w, first, end);
        if (has_kernel(w, first, end))
            insert_join(w, first, end);
    }
}

void
ci_wrapper_find_start(CiWrapper *w, CiLine *join)
{
    for (int i = w->nlines - 1; i >= 0 && !join->ext; i--)
        if (is_collective(&w->lines[i]) &&
            w->sides[w->lines[i].side][w->lines[i].ext->result->id] == join->buffer) {
            join->ext = w->lines[i].ext;
            join->number = w->lines[i].number;
            join->side = w->lines[i].side;
            join->loc = w->lines[i].loc;
        }
}

bool
ci_wrapper_runs_alongside(const CiWrapper *w, int join)
{
    int at = join - 1;
    while (at >= 0 && (w->lines[at].kind != CI_LINE_extern || w->lines[at].ext != w->lines[join].ext))
        at--;
    for (int i = at + 1; i < join && at >= 0; i++)
        if (ci_line_opens(&w->lines[i]) || ci_line_closes(&w->lines[i]) ||
            (w->lines[i].kind != CI_LINE_join && conflicts(w, &w->lines[i], &w->lines[at])))
            return false;
    return at >= 0;
}
