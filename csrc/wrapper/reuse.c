/* Memory reuse between buffers: a free and a later allocation of the same size and dtype become one
 * line (the printed Python then needs only a view).
 *
 * If no line runs between the two, this costs nothing. Otherwise the dead buffer's memory is kept,
 * but only if peak memory certainly does not rise. So the line must be outside of regions, because
 * a branch may not be taken, and sizes must be known, because estimates may be wrong. Kept memory
 * counts as allocated for the reuses that follow. */
#include "wrapper/allocate.h"

#include "analysis/choices.h"

typedef struct Reuse {
    CiWrapper *wrapper;
    CiContext *ctx;
    bool *is_taken;         /* by line, of a free: an allocation has its memory */
    const CiBuffer **freed; /* by line, of an allocation: whose memory it has; or NULL */
    CiWatermark watermark;
    int64_t peak; /* for certain */
} Reuse;

/* ---- what is held at each line ---- */

/* false: a size is not known. */
static bool
find_watermark(Reuse *r)
{
    const CiWrapper *w = r->wrapper;
    r->watermark = ci_watermark_new(r->ctx, w->nlines);
    for (int b = 0; b < w->nbuffers; b++) {
        const CiExpr *bytes = ci_buffer_bytes(w->kernels->loops->sym, w->buffers[b]);
        CiLife life = w->ranges->of[b];
        if (life.block < 0)
            continue;
        if (!ci_expr_is_const(bytes, NULL))
            return false;
        ci_watermark_add(&r->watermark, life.first, life.last, bytes->value);
    }
    for (int i = 0; i < w->nlines; i++) {
        int64_t own = w->ranges->block_of[i] ? 0 : ci_watermark_peak(&r->watermark, i, i);
        r->peak = own > r->peak ? own : r->peak;
    }
    return true;
}

/* ---- pairs ---- */

static bool
is_memory_line(const CiLine *line)
{
    CiLineUse use = ci_line_row(line->kind)->buffer;
    return use == CI_USE_defines || use == CI_USE_last;
}

static bool
fits(const Reuse *r, int free, int alloc)
{
    const CiWrapper *w = r->wrapper;
    const CiLine *from = &w->lines[free], *to = &w->lines[alloc];
    return from->kind == CI_LINE_free && !r->is_taken[free] &&
           w->ranges->block_of[free] == w->ranges->block_of[alloc] &&
           from->bytes == to->bytes && from->at == to->at &&
           from->buffer->dtype == to->buffer->dtype &&
           w->pinned[from->buffer->id] == w->pinned[to->buffer->id];
}

/* One that dies right before, else the last one that may be kept; -1: none. */
static int
find_giver(const Reuse *r, int alloc, bool is_known)
{
    const CiWrapper *w = r->wrapper;
    int at = alloc - 1;
    for (; at >= 0 && is_memory_line(&w->lines[at]); at--)
        if (fits(r, at, alloc))
            return at;
    int nearest = alloc - (int)ci_choice(w->kernels->machine, CI_CHOICE_reuse_distance);
    for (; is_known && !w->ranges->block_of[alloc] && at >= 0 && at >= nearest; at--)
        if (fits(r, at, alloc) &&
            w->lines[alloc].bytes->value + ci_watermark_peak(&r->watermark, at, alloc - 1) <= r->peak)
            return at;
    return -1;
}

static bool
has_uses_between(const CiWrapper *w, int first, int last)
{
    for (int i = first + 1; i < last; i++)
        if (!is_memory_line(&w->lines[i]))
            return true;
    return false;
}

static void
find_pairs(Reuse *r, bool is_known)
{
    CiWrapper *w = r->wrapper;
    for (int i = 0; i < w->nlines; i++) {
        int giver = w->lines[i].kind == CI_LINE_alloc ? find_giver(r, i, is_known) : -1;
        if (giver < 0)
            continue;
        const CiBuffer *freed = r->freed[i] = w->lines[giver].buffer;
        r->is_taken[giver] = true;
        if (is_known)
            ci_watermark_add(&r->watermark, giver, i - 1, w->lines[i].bytes->value);
        if (has_uses_between(w, giver, i))
            w->ranges->of[freed->id].last = i - 1;
    }
}

/* ---- lines ---- */

/* Frees whose memory is taken go, and lives follow the lines. */
static void
rewrite_lines(Reuse *r)
{
    CiWrapper *w = r->wrapper;
    int *moved = CI_NEW_ARRAY(r->ctx, int, w->nlines + 1), count = 0;
    for (int i = 0; i < w->nlines; i++) {
        moved[i] = count;
        count += !r->is_taken[i];
    }
    ci_live_move(w->ranges, moved, count);
    for (int i = 0; i < w->nlines; i++) {
        if (r->freed[i]) {
            w->lines[i].kind = CI_LINE_reuse;
            w->lines[i].other = r->freed[i];
        }
        if (!r->is_taken[i])
            w->lines[moved[i]] = w->lines[i];
    }
    w->nlines = count;
}

void
ci_wrapper_reuse(CiWrapper *wrapper)
{
    int n = wrapper->nlines + 1;
    Reuse r = {.wrapper = wrapper, .ctx = wrapper->ctx};
    r.is_taken = CI_NEW_ARRAY(r.ctx, bool, n);
    r.freed = CI_NEW_ARRAY(r.ctx, const CiBuffer *, n);
    bool is_known = !wrapper->machine->has_memory && find_watermark(&r);
    find_pairs(&r, is_known);
    rewrite_lines(&r);
}
