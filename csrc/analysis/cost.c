/* Counts of which only a range may be known; and nests, counted. */
#include "analysis/cost.h"

/* Of two counts that are not negative; what is too large is CI_INFINITY. */
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

static bool
is_work(CiOp op)
{
    return op != CI_OP_load && op != CI_OP_const && op != CI_OP_index && op != CI_OP_bind &&
           op != CI_OP_place && op != CI_OP_pack;
}

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

static CiAmount
iterations_of(const CiNest *nest)
{
    CiAmount iterations = ci_amount(1);
    for (int k = 0; k < nest->naxes; k++)
        iterations = ci_amount_of(iterations, nest->axes[k].extent);
    return iterations;
}

/* Data say where: there may be as many elements as points. */
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
        bytes = ci_amount_times(bytes, iterations_of(nest));
    for (int k = 0; k < nest->naxes && !is_of_data(nest, index); k++)
        if (ci_expr_depends_on(index, nest->axes[k].var))
            bytes = ci_amount_of(bytes, nest->axes[k].extent);
    return least(bytes, ci_cost_of_buffer(buffer));
}

/* No load before this one is of the same buffer. */
static bool
is_first_load(const CiBody *body, int position)
{
    for (int k = 0; k < position; k++)
        if (body->ops[k].op == CI_OP_load && body->ops[k].buffer == body->ops[position].buffer)
            return false;
    return true;
}

CiCost
ci_cost_of_nest(const CiNest *nest)
{
    const CiBody *body = &nest->body;
    CiCost cost = {.iterations = iterations_of(nest),
                   .bytes = ci_cost_of_access(nest, nest->target, nest->store)};
    int nops = nest->fold != CI_OP_none;
    for (int k = 0; k < body->nops; k++) {
        const CiScalar *op = &body->ops[k];
        nops += is_work(op->op);
        if (op->op == CI_OP_load && op->buffer->kind != CI_BUFFER_scalar && is_first_load(body, k))
            cost.bytes =
                ci_amount_plus(cost.bytes, ci_cost_of_access(nest, op->buffer, op->index));
    }
    cost.flops = ci_amount_times(cost.iterations, ci_amount(nops));
    return cost;
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
            work = ci_amount_times(work, iterations_of(item->nest));
        if (item->region && item->region->extent)
            work = ci_amount_of(work, item->region->extent);
        if (item->region)
            work = ci_amount_max(ci_cost_of_items(&item->region->body, work),
                                 ci_cost_of_items(&item->region->other, work));
        most = ci_amount_max(most, work);
    }
    return most;
}
