/* The memory plan as one page of text, and the program's peak memory. */
#include "analysis/cost.h"
#include "wrapper/allocate.h"

/* Of one buffer, in a sum of all. */
#define MAX_BYTES ((int64_t)1 << 48)

/* Of a pool: with a likely number for each symbol of which no limit is known. */
static int64_t
guess(CiSym *sym, const CiExpr *bytes, bool *is_known)
{
    int64_t number = 0;
    while (bytes->nsymbols) {
        const CiExpr *symbol = bytes->symbols[0];
        bool is_open = symbol->high == CI_INFINITY;
        const CiExpr *value = ci_expr_const(sym, is_open ? CI_LIKELY_SIZE : symbol->high);
        bytes = ci_expr_substitute(sym, bytes, 1, &symbol, &value);
        *is_known &= !is_open;
    }
    (void)ci_expr_is_const(bytes, &number);
    return number;
}

static int64_t
likely_bytes(const CiWrapper *w, const CiBuffer *buffer, bool *is_known)
{
    CiAmount cost = ci_cost_of_buffer(buffer);
    if (buffer->id >= w->first_pool)
        return guess(w->kernels->loops->sym, buffer->sizes[0], is_known);
    *is_known &= !cost.unknowns;
    return ci_amount_likely(cost);
}

/* The most of what is of use at the same time; of those buffers that each turn of a parallel loop has
 * of its own, or of all. */
int64_t
ci_wrapper_peak_bytes(const CiWrapper *w, bool of_iterations, bool *is_known)
{
    CiWatermark watermark = ci_watermark_new(w->ctx, w->nlines);
    for (int b = 0; b < w->nbuffers; b++) {
        CiLife life = w->ranges->of[b];
        if (life.block < 0 || w->pool_of[b] ||
            (of_iterations && !ci_live_is_of_iterations(w->ranges, life.block)))
            continue;
        int64_t bytes = likely_bytes(w, w->buffers[b], is_known);
        ci_watermark_add(&watermark, life.first, life.last, bytes < MAX_BYTES ? bytes : MAX_BYTES);
    }
    return ci_watermark_peak(&watermark, 0, w->nlines - 1);
}

/* Records the program's peak memory, and the additional memory per thread of a parallel loop. */
static void
note_peak(CiWrapper *w)
{
    bool is_known = true;
    int64_t most = ci_wrapper_peak_bytes(w, false, &is_known),
            more = ci_wrapper_peak_bytes(w, true, &is_known);
    w->peak_bytes = most;
    if (most)
        w->lines[0].text = ci_format(w->ctx, "%s, %s %lld bytes", w->lines[0].text,
                                     is_known ? "at most" : "about", (long long)most);
    if (more)
        w->lines[0].text = ci_format(w->ctx, "%s, %lld more for each other thread",
                                     w->lines[0].text, (long long)more);
}

/* Pools are of the host's memory, and of memory that recordings own. */
static bool
has_pools(const CiWrapper *wrapper)
{
    return wrapper->options.pools && wrapper->options.reuse &&
           (!wrapper->machine->has_memory || ci_wrapper_records_all(wrapper));
}

void
ci_wrapper_plan_memory(CiWrapper *wrapper)
{
    if (wrapper->options.drop_arguments && !ci_wrapper_records_all(wrapper))
        ci_wrapper_drop_inputs(wrapper);
    ci_wrapper_place(wrapper);
    if (wrapper->options.reuse)
        ci_wrapper_reuse(wrapper);
    if (has_pools(wrapper))
        ci_wrapper_pool(wrapper);
    if (wrapper->machine->records)
        ci_wrapper_hoist(wrapper);
    note_peak(wrapper);
    ci_wrapper_match(wrapper);
}
