/* Computes the order in which NumPy adds the elements of a reduction. It follows the rules of
 * NumPy's iterator (nditer, 2.3 and newer): which axes are inner, which are merged, and how many
 * elements an inner call gets. The older iterator cuts each inner call at the size of its
 * buffer, copied or not; its gathering of axes that are not adjacent is not supported.
 *
 * A relation between sizes is only guarded if it affects the order. So the order is first
 * computed for both answers of each relation, to see which ones matter. */
#include "operation/fold_order.h"

#include "ir/layout.h"

/* The most relations that may be open at a time. */
#define MAX_QUESTIONS 6

typedef struct Axis {
    const CiExpr *count, *stride; /* of the operand; the stride is 0 where it is broadcast */
    int naxes;                    /* number of the operand's axes that were merged into it */
    bool is_folded;
} Axis;

/* The order for one set of answers. */
typedef struct Outcome {
    int axes[CI_MAX_RANK], naxes, ninner;
    unsigned ones; /* axes assumed to have one element */
    const CiExpr *chunk;
    bool is_refused;
} Outcome;

typedef struct Asker {
    CxTracer *tracer;
    const CxFoldInput *input;
    unsigned answers; /* answers to the first `nanswers` relations, as bits; no for the others */
    int nanswers, nasked;
    CiRelation relation; /* the next relation, which has no answer yet */
    const CiExpr *a, *b;
    bool has_failed;
    unsigned folded;        /* axes that are reduced */
    unsigned taken;         /* axes assumed to have one element in this attempt */
    const int8_t *order;    /* the operand's axes in memory, outermost first */
    Axis dims[CI_MAX_RANK]; /* innermost first */
    int ndims;
    Outcome outcome;
} Asker;

/* ---- relations ---- */

static bool
is_known_or_asked(Asker *q, CiRelation relation, const CiExpr *a, const CiExpr *b)
{
    int known = q->has_failed || !a || !b ? -1 : cx_size_prove(q->tracer, relation, a, b);
    q->has_failed |= known < 0;
    if (known != CX_OPEN)
        return known == 1;
    int number = q->nasked++;
    if (number == q->nanswers) {
        q->relation = relation;
        q->a = a;
        q->b = b;
    }
    return number < MAX_QUESTIONS && (q->answers >> number & 1);
}

static const CiExpr *
times(Asker *q, const CiExpr *a, const CiExpr *b)
{
    const CiExpr *made = a && b ? cx_size_make(q->tracer, CI_OP_multiply, a, b) : NULL;
    q->has_failed |= made == NULL;
    return made;
}

static const CiExpr *
number(Asker *q, int64_t value)
{
    const CiExpr *made = cx_size_const(q->tracer, value);
    q->has_failed |= made == NULL;
    return made;
}

/* ---- merging adjacent axes ---- */

static bool
are_one(Asker *q, const Axis *inner, const Axis *outer)
{
    return inner->is_folded == outer->is_folded &&
           is_known_or_asked(q, CI_REL_eq, times(q, inner->stride, inner->count), outer->stride);
}

static void
add_dim(Asker *q, int axis)
{
    const CxFoldInput *in = q->input;
    Axis next = {in->sizes[axis], in->strides[axis], 1, q->folded >> axis & 1},
         *last = q->ndims ? &q->dims[q->ndims - 1] : NULL;
    if (last == NULL || !are_one(q, last, &next)) {
        q->dims[q->ndims++] = next;
        return;
    }
    last->count = times(q, last->count, next.count);
    last->naxes++;
}

/* Lists the axes from the innermost on, without those of one element: the reduced ones, and the
 * first that is kept. Axes further out have no effect on the order, nor has an axis kept around
 * a single row. */
static void
find_dims(Asker *q)
{
    const CxFoldInput *in = q->input;
    bool has_kept = false;
    for (int k = in->rank - 1; k >= 0; k--) {
        int axis = q->order[k], before = q->ndims;
        bool is_folded = q->folded >> axis & 1;
        if (has_kept && is_folded)
            return;
        if (q->taken >> axis & 1 || is_known_or_asked(q, CI_REL_eq, in->sizes[axis], q->tracer->one)) {
            q->outcome.ones |= 1u << axis;
            continue;
        }
        if (!is_folded && (before == 0 || (before == 1 && !in->is_cast)))
            return;
        add_dim(q, axis);
        if (has_kept && q->ndims > before) {
            q->ndims--;
            return;
        }
        has_kept |= !is_folded;
    }
}

/* ---- the inner call ---- */

typedef struct Inner {
    int best;           /* the outermost axis that it covers */
    bool is_reducing;   /* that axis is the first one kept */
    bool is_gathered;   /* elements are copied to a buffer */
    const CiExpr *core; /* number of elements of the axes below `best` */
} Inner;

/* Chooses the most axes for the least copying, like nditer's search. Its cost is the number of
 * operands that must be copied, plus one. */
static Inner
find_inner(Asker *q)
{
    const CiExpr *buffer = number(q, q->input->buffer), *size = q->dims[0].count;
    int cost = 1 + q->input->is_cast, operand = 1, outer = 0, best_cost = cost;
    const CiExpr *best_size = size;
    Inner inner = {.core = q->tracer->one};
    for (int d = 1; d < q->ndims && !outer; d++) {
        const Axis *last = &q->dims[d - 1], *axis = &q->dims[d];
        if (cost > 1 && is_known_or_asked(q, CI_REL_le, buffer, size))
            break;
        if (operand == d) {
            if (is_known_or_asked(q, CI_REL_eq, times(q, last->stride, last->count), axis->stride))
                operand++;
            else
                cost += !q->input->is_cast;
        }
        if (!axis->is_folded) { /* results are contiguous along it, which changes the cost */
            cost++;
            outer = d;
        }
        const CiExpr *core = size, *limit;
        size = times(q, size, axis->count);
        limit = cost > 1 && !is_known_or_asked(q, CI_REL_le, size, buffer) ? buffer : size;
        if (!is_known_or_asked(q, CI_REL_le, times(q, number(q, cost), best_size),
                              times(q, number(q, best_cost), limit)))
            continue;
        inner.best = d;
        inner.core = core;
        best_cost = cost;
        best_size = size;
    }
    inner.is_reducing = outer && inner.best == outer;
    inner.is_gathered = q->input->is_cast || operand <= inner.best;
    return inner;
}

/* ---- outcomes ---- */

/* The number of elements of an inner call that uses the buffer: a multiple of `core` that fits. */
static const CiExpr *
chunk_of(Asker *q, const CiExpr *core)
{
    const CiExpr *buffer = number(q, q->input->buffer);
    core = core ? cx_size_make(q->tracer, CI_OP_maximum, core, q->tracer->one) : NULL;
    const CiExpr *times_core =
        core && buffer ? cx_size_make(q->tracer, CI_OP_floor_divide, buffer, core) : NULL;
    return times(q, core, times_core);
}

/* Lists the reduced axes in memory order; those among the first `nblock` dims are inner. */
static void
list_axes(Asker *q, int nblock)
{
    Outcome *o = &q->outcome;
    int left = 0;
    for (int d = 0; d < nblock; d++)
        left += q->dims[d].naxes;
    for (int k = 0; k < q->input->rank; k++)
        if (q->folded >> q->order[k] & 1)
            o->axes[o->naxes++] = q->order[k];
    for (int k = o->naxes - 1; k >= 0 && left > 0; k--) {
        left -= !(o->ones >> o->axes[k] & 1);
        o->ninner++;
    }
}

/* As many elements as fit the buffer, or all of them. */
static const CiExpr *
chunk_of_old(Asker *q, const CiExpr *size)
{
    const CiExpr *buffer = number(q, q->input->buffer);
    int fits = buffer && size ? cx_size_prove(q->tracer, CI_REL_le, size, buffer) : -1;
    q->has_failed |= fits < 0;
    return fits == 1 ? NULL : buffer;
}

static void
find_old_outcome(Asker *q)
{
    q->outcome.is_refused = q->ndims > 1 && q->dims[1].is_folded;
    list_axes(q, 1);
    q->outcome.chunk = chunk_of_old(q, q->dims[0].count);
}

static void
find_outcome(Asker *q)
{
    q->ndims = q->nasked = 0;
    q->outcome = (Outcome){0};
    find_dims(q);
    if (q->ndims == 0) {
        list_axes(q, 0);
        return;
    }
    if (q->input->is_old) {
        find_old_outcome(q);
        return;
    }
    Inner inner = find_inner(q);
    if (inner.is_reducing) {
        list_axes(q, inner.best);
        return;
    }
    list_axes(q, inner.best + 1);
    if (inner.is_gathered)
        q->outcome.chunk = chunk_of(q, inner.core);
}

/* The outcome without axes of one element, which may be anywhere. */
static Outcome
without_ones(const Outcome *o, unsigned ones)
{
    Outcome made = {.chunk = o->chunk, .is_refused = o->is_refused};
    for (int k = 0; k < o->naxes; k++) {
        if (ones >> o->axes[k] & 1)
            continue;
        made.axes[made.naxes++] = o->axes[k];
        made.ninner += k >= o->naxes - o->ninner;
    }
    if (made.ninner == 0)
        made.chunk = NULL;
    return made;
}

static bool
is_alike(const Outcome *a, const Outcome *b)
{
    unsigned ones = a->ones | b->ones;
    Outcome x = without_ones(a, ones), y = without_ones(b, ones);
    return x.naxes == y.naxes && x.ninner == y.ninner && x.chunk == y.chunk &&
           x.is_refused == y.is_refused &&
           memcmp(x.axes, y.axes, sizeof(int) * (size_t)x.naxes) == 0;
}

/* True if the other answers do not matter: the outcome is the same as with no to all of them. */
static bool
is_decided(Asker *q)
{
    unsigned fixed = q->answers;
    find_outcome(q);
    Outcome plain = q->outcome;
    int most = q->nasked;
    bool is_one = true;
    for (unsigned more = 1;
         is_one && !q->has_failed && most <= MAX_QUESTIONS && more < 1u << (most - q->nanswers);
         more++) {
        q->answers = fixed | more << q->nanswers;
        find_outcome(q);
        most = q->nasked > most ? q->nasked : most;
        is_one = is_alike(&plain, &q->outcome);
    }
    q->answers = fixed;
    q->outcome = plain;
    q->nasked = most;
    return is_one && most <= MAX_QUESTIONS;
}

static void
body_order(CiContext *ctx, void *arg)
{
    Asker *q = arg;
    q->order = ci_layout_order_of_strides(ctx, q->tracer->sym, q->input->rank, q->input->sizes,
                                          q->input->strides);
}

/* Handles kept axes inside of the reduced ones that may have one element: the order is then by
 * rows or by columns. Returns 1 if both orders are given and the program chooses at run time. */
static int
tell_both(Asker *q, CxFoldOrder *order)
{
    const CiExpr *alone = NULL;
    for (int k = q->input->rank - 1; k >= 0 && !(q->folded >> q->order[k] & 1); k--) {
        const CiExpr *size = q->input->sizes[q->order[k]];
        int known = cx_size_prove(q->tracer, CI_REL_eq, size, q->tracer->one);
        if (known < 0 || known == 0)
            return known;
        q->taken |= 1u << q->order[k];
        if (known == CX_OPEN)
            alone = alone ? times(q, alone, size) : size;
    }
    if (alone == NULL || !is_decided(q) || q->has_failed || q->outcome.is_refused ||
        q->outcome.chunk != NULL || q->outcome.ninner == 0)
        return q->has_failed ? -1 : 0;
    *order = (CxFoldOrder){.nalone = q->outcome.ninner, .alone = alone, .naxes = q->outcome.naxes};
    memcpy(order->axes, q->outcome.axes, sizeof order->axes);
    return 1;
}

int
cx_fold_order(CxTracer *tracer, const CxFoldInput *input, CxFoldOrder *order)
{
    Asker q = {.tracer = tracer, .input = input};
    for (int k = 0; k < input->naxes; k++)
        q.folded |= 1u << input->axes[k];
    if (cx_protect(tracer->state, tracer->sym_ctx, body_order, &q) < 0)
        return -1;
    int is_known = tell_both(&q, order);
    q.taken = 0;
    if (is_known != 0)
        return is_known;
    while (!is_decided(&q) && !q.has_failed) {
        find_outcome(&q);
        if (q.nanswers == MAX_QUESTIONS || q.has_failed)
            break;
        int answer = cx_size_decide(tracer, q.relation, q.a, q.b);
        if (answer < 0)
            return -1;
        if (answer == CX_OPEN)
            return 0;
        q.answers |= (unsigned)answer << q.nanswers++;
    }
    if (q.has_failed)
        return -1;
    *order = (CxFoldOrder){
        .ninner = q.outcome.ninner, .chunk = q.outcome.chunk, .naxes = q.outcome.naxes};
    memcpy(order->axes, q.outcome.axes, sizeof order->axes);
    return q.nasked <= MAX_QUESTIONS && !q.outcome.is_refused;
}
