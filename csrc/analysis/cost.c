/* Amounts (low, likely, high) and their arithmetic; the points of nests and the bytes of accesses as amounts. */
#include "analysis/cost.h"

/* The product of two counts; CI_INFINITY if it is too large. */
static int64_t
times(int64_t a, int64_t b)
{
    int64_t product;
    if (a <= 0 || b <= 0)
        return 0;
    return __builtin_mul_overflow(a, b, &product) ? CI_INFINITY : product;
}

static int64_t
plus(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? CI_INFINITY : sum;
}

CiAmount
ci_amount(int64_t count)
{
    return (CiAmount){.low = count, .known = count};
}

CiAmount
ci_amount_times(CiAmount a, CiAmount b)
{
    return (CiAmount){times(a.low, b.low), times(a.known, b.known), a.unknowns + b.unknowns};
}

CiAmount
ci_amount_of(CiAmount count, const CiExpr *extent)
{
    bool is_known = extent->high != CI_INFINITY;
    CiAmount size = {.low = extent->low > 0 ? extent->low : 0,
                     .known = is_known ? extent->high : 1,
                     .unknowns = !is_known};
    return ci_amount_times(count, size);
}

static bool
is_less(CiAmount a, CiAmount b)
{
    return a.unknowns != b.unknowns ? a.unknowns < b.unknowns : a.known < b.known;
}

CiAmount
ci_amount_plus(CiAmount a, CiAmount b)
{
    CiAmount most = ci_amount_max(a, b);
    most.low = plus(a.low, b.low);
    if (a.unknowns == b.unknowns)
        most.known = plus(a.known, b.known);
    return most;
}

CiAmount
ci_amount_max(CiAmount a, CiAmount b)
{
    CiAmount most = is_less(a, b) ? b : a;
    most.low = a.low > b.low ? a.low : b.low;
    return most;
}

int64_t
ci_amount_high(CiAmount a)
{
    return a.unknowns && a.known > 0 ? CI_INFINITY : a.known;
}

int64_t
ci_amount_likely(CiAmount a)
{
    int64_t likely = a.known;
    for (int k = 0; k < a.unknowns; k++)
        likely = times(likely, CI_LIKELY_SIZE);
    return likely;
}

/* ---- nests ---- */

CiAmount
ci_cost_of_buffer(const CiBuffer *buffer)
{
    CiAmount bytes = ci_amount((int64_t)ci_dtype_size(buffer->dtype));
    for (int k = 0; k < buffer->rank; k++)
        bytes = ci_amount_of(bytes, buffer->sizes[k]);
    return bytes;
}

static CiAmount
least(CiAmount a, CiAmount b)
{
    return is_less(b, a) ? b : a;
}

CiAmount
ci_iterations_of_nest(const CiNest *nest)
{
    CiAmount iterations = ci_amount(1);
    for (int k = 0; k < nest->naxes; k++)
        iterations = ci_amount_of(iterations, nest->axes[k].extent);
    return iterations;
}

/* True if the index depends on data, so each point may access another element. */
static bool
is_of_data(const CiNest *nest, const CiExpr *index)
{
    for (int k = 0; k < index->nsymbols; k++)
        if (ci_body_binds(&nest->body, index->symbols[k]))
            return true;
    return false;
}

CiAmount
ci_cost_of_access(const CiNest *nest, const CiBuffer *buffer, const CiExpr *index)
{
    CiAmount bytes = ci_amount((int64_t)ci_dtype_size(buffer->dtype));
    if (is_of_data(nest, index))
        bytes = ci_amount_times(bytes, ci_iterations_of_nest(nest));
    for (int k = 0; k < nest->naxes && !is_of_data(nest, index); k++)
        if (ci_expr_depends_on(index, nest->axes[k].var))
            bytes = ci_amount_of(bytes, nest->axes[k].extent);
    return least(bytes, ci_cost_of_buffer(buffer));
}

/* ---- items ---- */

CiAmount
ci_cost_of_items(const CiItems *items, CiAmount around)
{
    CiAmount most = around;
    for (int k = 0; k < items->count; k++) {
        const CiItem *item = &items->items[k];
        CiAmount work = around;
        if (item->nest)
            work = ci_amount_times(work, ci_iterations_of_nest(item->nest));
        if (item->region && item->region->extent)
            work = ci_amount_of(work, item->region->extent);
        if (item->region)
            work = ci_amount_max(ci_cost_of_items(&item->region->body, work),
                                 ci_cost_of_items(&item->region->other, work));
        most = ci_amount_max(most, work);
    }
    return most;
}
