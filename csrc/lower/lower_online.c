/* Online reductions: a sum that depends on another reduction of the same row, in one pass over the
 * row. There are two: the sum of exp(x - max(x)), the online softmax (Milakov, Gimelshein, Online
 * normalizer calculation for softmax, 2018), and the sum of squared deviations from the mean
 * (Welford, Technometrics, 1962).
 *
 * Otherwise the sum waits for the other reduction, and a row is read twice, or three times with the
 * code that follows. If rows are too long to stay in cache, they are read once instead: the sum
 * becomes a reduction of the elements themselves, whose accumulators include the other reduction
 * (the ONLINE rows of ops.def). Its former operands are then unused, or used only by the code that
 * follows. */
#include "lower/lowering.h"

#include "analysis/choices.h"
#include "analysis/cost.h"
#include "ir/proc.h"

#include <string.h>

/* Skips reshapes and copies, whose operand has the same elements in the same order. */
static CiNode *
after_views(CiNode *node)
{
    while (node->op == CI_OP_reshape || node->op == CI_OP_copy)
        node = node->args[0];
    return node;
}

static bool
is_wide(CiDtype dtype)
{
    return dtype == CI_DTYPE_f32 || dtype == CI_DTYPE_f64;
}

/* Skips widening casts too: rows with more elements than float32 can count are divided in
 * float64. */
static CiNode *
after_widths(CiNode *node)
{
    node = after_views(node);
    while (node->op == CI_OP_cast && is_wide(node->dtype) && is_wide(node->args[0]->dtype))
        node = after_views(node->args[0]);
    return node;
}

static bool
is_folded(const CiNode *sum, int axis)
{
    for (int k = 0; k < sum->naxes; k++)
        if (sum->axes[k] == axis)
            return true;
    return false;
}

/* A reduction of the same rows of these elements. */
static bool
is_of_same_rows(const CiNode *node, CiOp op, const CiNode *sum, const CiNode *elements)
{
    bool is_same = node->op == op && node->args[0] == elements && node->naxes == sum->naxes;
    for (int k = 0; is_same && k < sum->naxes; k++)
        is_same = node->axes[k] == sum->axes[k];
    return is_same;
}

/* Its element for each row is broadcast along that row. */
static bool
is_alongside_rows(const CiNode *value, const CiNode *sum, const CiNode *elements)
{
    int missing = elements->rank - value->rank;
    for (int k = 0; k < elements->rank; k++) {
        bool is_one = k < missing || ci_expr_equals_const(value->sizes[k - missing], 1);
        if (is_folded(sum, k) ? !is_one
                              : k < missing || value->sizes[k - missing] != elements->sizes[k])
            return false;
    }
    return missing >= 0;
}

/* `elements - value`, where the value is a row's. NULL: it is no such difference. */
static CiNode *
elements_of_difference(const CiNode *difference, const CiNode *sum, CiNode **value)
{
    if (difference->op != CI_OP_subtract)
        return NULL;
    CiNode *elements = difference->args[0];
    *value = difference->args[1];
    bool is_alike = elements->rank == difference->rank && elements->dtype == sum->dtype;
    for (int k = 0; is_alike && k < elements->rank; k++)
        is_alike = elements->sizes[k] == difference->sizes[k];
    return is_alike && is_alongside_rows(*value, sum, elements) ? elements : NULL;
}

static const CiExpr *
row_length(CiLowering *low, const CiNode *sum, const CiNode *elements)
{
    const CiExpr *length = ci_expr_const(low->sym, 1);
    for (int k = 0; k < sum->naxes; k++)
        length = ci_expr_mul(low->sym, length, elements->sizes[sum->axes[k]]);
    return length;
}

/* The number of elements of a row, or one by it where that is as good. */
static bool
is_count(CiNode *node, const CiExpr *length, bool is_inverse)
{
    int64_t count;
    node = after_views(node);
    if (node->op == CI_OP_cast && node->args[0]->op == CI_OP_expr && !is_inverse)
        return node->args[0]->starts[0] == length;
    if (node->op != CI_OP_const || !ci_expr_is_const(length, &count))
        return false;
    double rounded = node->dtype == CI_DTYPE_f32 ? (double)(float)count : (double)count;
    return is_inverse ? node->value.re * (double)count == 1.0 : node->value.re == rounded;
}

static CiNode *
match_exp_sum(CiLowering *low, const CiNode *sum)
{
    (void)low;
    CiNode *value, *element = sum->args[0];
    if (element->op != CI_OP_exp)
        return NULL;
    CiNode *elements = elements_of_difference(element->args[0], sum, &value);
    bool is_same = elements && is_of_same_rows(after_views(value), CI_OP_max, sum, elements);
    return is_same ? elements : NULL;
}

static CiNode *
match_welford(CiLowering *low, const CiNode *sum)
{
    CiNode *value, *element = sum->args[0];
    bool is_square = element->op == CI_OP_square ||
                     (element->op == CI_OP_multiply && element->args[0] == element->args[1]);
    CiNode *elements = is_square ? elements_of_difference(element->args[0], sum, &value) : NULL;
    CiNode *mean = elements ? after_widths(value) : NULL;
    if (!mean || (mean->op != CI_OP_divide && mean->op != CI_OP_multiply) ||
        !is_count(mean->args[1], row_length(low, sum, elements), mean->op == CI_OP_multiply))
        return NULL;
    bool is_same = is_of_same_rows(after_widths(mean->args[0]), CI_OP_sum, sum, elements);
    return is_same ? elements : NULL;
}

static const struct {
    CiOp op;
    CiNode *(*match)(CiLowering *low, const CiNode *sum);
} rules[] = {{CI_OP_exp_sum, match_exp_sum}, {CI_OP_welford, match_welford}};

/* Bytes that are read between an element's two uses. Rows that do not go along the last axis are read
 * beside their neighbours: on a GPU by the lanes of a warp. */
static CiAmount
bytes_between(CiLowering *low, const CiNode *sum, const CiNode *elements, const CiExpr *length)
{
    CiAmount bytes = ci_amount_of(ci_amount(ci_dtype_size(sum->dtype)), length);
    bool is_across = !is_folded(sum, elements->rank - 1);
    if (!is_across || low->machine->warp == 1)
        return bytes;
    const CiExpr *beside = ci_expr_min(low->sym, elements->sizes[elements->rank - 1],
                                       ci_expr_const(low->sym, low->machine->warp));
    return ci_amount_of(bytes, beside);
}

static bool
is_long(CiLowering *low, const CiNode *sum, const CiNode *elements, CiOp online)
{
    int64_t least = ci_choice(low->machine, online == CI_OP_exp_sum
                                                        ? CI_CHOICE_online_exp_bytes
                                                        : CI_CHOICE_online_bytes);
    const CiExpr *length = row_length(low, sum, elements);
    return length->high > CI_SERIAL_LIMIT &&
           ci_amount_likely(bytes_between(low, sum, elements, length)) >= least;
}

void
ci_lowering_find_online(CiLowering *low)
{
    bool is_online = low->machine->has_own_order || !strcmp(low->options->numerics, "fast");
    for (int k = 0; k < low->nstates && is_online; k++) {
        CiNodeState *state = &low->states[k];
        const CiNode *sum = state->node;
        if (!sum || sum->op != CI_OP_sum || !is_wide(sum->dtype))
            continue;
        for (size_t r = 0; r < sizeof rules / sizeof *rules && !state->online_of; r++) {
            CiNode *elements = rules[r].match(low, sum);
            if (!elements || !is_long(low, sum, elements, rules[r].op))
                continue;
            state->online_of = elements;
            state->online = rules[r].op;
            low->has_online = true;
        }
    }
}
