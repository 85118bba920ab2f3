/* Ranges of integer values, by recursion over the operands of a node.
 *
 * Invariant: arithmetic is followed only in 64 bits. Narrower integers may wrap, so their range is
 * that of the type. In 64 bits, sums and products of sizes and of moderate constants count as
 * exact; a value whose bounds overflow has no range.
 *
 * Shared values are visited repeatedly. The depth bounds the recursion, and index expressions are
 * shallow. */
#include "ir/range.h"

#include "ir/text_common.h"
#include "ir/interval.h"

#define MAX_DEPTH 12
/* No sum of a few constants below it overflows. */
#define MODERATE ((int64_t)1 << 40)

static const CiRange UNKNOWN = {NULL, NULL};

static CiRange range_of(CiSym *sym, const CiNode *node, int depth);

static CiRange
between(CiSym *sym, int64_t low, int64_t high)
{
    return (CiRange){ci_expr_const(sym, low), ci_expr_const(sym, high)};
}

/* Positions along an axis of that size. */
static CiRange
positions(CiSym *sym, const CiExpr *size)
{
    return (CiRange){ci_expr_const(sym, 0), ci_expr_sub(sym, size, ci_expr_const(sym, 1))};
}

static CiRange
range_of_type(CiSym *sym, CiDtype dtype)
{
    CiInterval all = ci_interval_of_type(dtype);
    return all.low == INT64_MIN ? UNKNOWN : between(sym, all.low, all.high);
}

static CiRange
range_of_const(CiSym *sym, const CiNode *node)
{
    int64_t value = node->value.i;
    bool is_moderate = node->dtype != CI_DTYPE_u64 && value > -MODERATE && value < MODERATE;
    return is_moderate ? between(sym, value, value) : UNKNOWN;
}

/* ---- arithmetic ---- */

static CiRange
range_of_sum(CiSym *sym, CiRange a, CiRange b)
{
    return (CiRange){a.low && b.low ? ci_expr_add(sym, a.low, b.low) : NULL,
                     a.high && b.high ? ci_expr_add(sym, a.high, b.high) : NULL};
}

static CiRange
range_of_negative(CiSym *sym, CiRange a)
{
    return (CiRange){a.high ? ci_expr_neg(sym, a.high) : NULL,
                     a.low ? ci_expr_neg(sym, a.low) : NULL};
}

static CiRange
range_of_product(CiSym *sym, CiRange a, CiRange b)
{
    if (!a.low || !b.low || a.low->low < 0 || b.low->low < 0)
        return UNKNOWN;
    return (CiRange){ci_expr_mul(sym, a.low, b.low),
                     a.high && b.high ? ci_expr_mul(sym, a.high, b.high) : NULL};
}

/* By at least 1 of what is not negative: what indices are made with. */
static CiRange
range_of_quotient(CiSym *sym, CiRange a, CiRange b)
{
    if (!a.low || a.low->low < 0 || !b.low || b.low->low < 1)
        return UNKNOWN;
    return (CiRange){ci_expr_const(sym, 0), a.high ? ci_expr_floordiv(sym, a.high, b.low) : NULL};
}

static CiRange
range_of_remainder(CiSym *sym, CiRange divisor)
{
    if (!divisor.low || divisor.low->low < 1 || !divisor.high)
        return UNKNOWN;
    return positions(sym, divisor.high);
}

static const CiExpr *
extreme(CiSym *sym, bool is_min, const CiExpr *a, const CiExpr *b)
{
    return is_min ? ci_expr_min(sym, a, b) : ci_expr_max(sym, a, b);
}

/* One operand is enough for the end that an extremum bounds; the other end, and both ends of one
 * of two values, need both. */
static CiRange
range_of_choice(CiSym *sym, CiOp op, CiRange a, CiRange b)
{
    bool is_least = op == CI_OP_minimum, is_most = op == CI_OP_maximum;
    CiRange r = UNKNOWN;
    if (a.low && b.low)
        r.low = extreme(sym, !is_most, a.low, b.low);
    else if (is_most)
        r.low = a.low ? a.low : b.low;
    if (a.high && b.high)
        r.high = extreme(sym, is_least, a.high, b.high);
    else if (is_least)
        r.high = a.high ? a.high : b.high;
    return r;
}

static CiRange
range_of_arithmetic(CiSym *sym, CiOp op, CiRange a, CiRange b)
{
    switch (op) {
    case CI_OP_add:
        return range_of_sum(sym, a, b);
    case CI_OP_subtract:
        return range_of_sum(sym, a, range_of_negative(sym, b));
    case CI_OP_negative:
        return range_of_negative(sym, a);
    case CI_OP_multiply:
        return range_of_product(sym, a, b);
    case CI_OP_floor_divide:
        return range_of_quotient(sym, a, b);
    case CI_OP_remainder:
        return range_of_remainder(sym, b);
    default:
        return UNKNOWN;
    }
}

static CiRange
range_of_pointwise(CiSym *sym, const CiNode *node, int depth)
{
    int first = node->op == CI_OP_where;
    bool is_choice = first || node->op == CI_OP_minimum || node->op == CI_OP_maximum;
    if (!is_choice && node->dtype != CI_DTYPE_i64)
        return UNKNOWN;
    CiRange a = range_of(sym, node->args[first], depth - 1), b = UNKNOWN;
    if (node->nargs > first + 1)
        b = range_of(sym, node->args[first + 1], depth - 1);
    return is_choice ? range_of_choice(sym, node->op, a, b)
                     : range_of_arithmetic(sym, node->op, a, b);
}

/* ---- folds ---- */

static const CiExpr *
folded_count(CiSym *sym, const CiNode *node)
{
    const CiExpr *count = ci_expr_const(sym, 1);
    for (int k = 0; k < node->naxes; k++)
        count = ci_expr_mul(sym, count, node->args[0]->sizes[node->axes[k]]);
    return count;
}

/* Terms of one sign add up to at most what all of them could be. */
static CiRange
range_of_total(CiSym *sym, const CiNode *node, CiRange term)
{
    const CiExpr *count = folded_count(sym, node), *zero = ci_expr_const(sym, 0);
    return (CiRange){term.low ? ci_expr_mul(sym, count, ci_expr_min(sym, term.low, zero)) : NULL,
                     term.high ? ci_expr_mul(sym, count, ci_expr_max(sym, term.high, zero)) : NULL};
}

static CiRange
range_of_fold(CiSym *sym, const CiNode *node, int depth)
{
    bool is_extremum = node->op == CI_OP_max || node->op == CI_OP_min;
    if (!is_extremum && (node->op != CI_OP_sum || node->dtype != CI_DTYPE_i64))
        return UNKNOWN;
    CiRange term = range_of(sym, node->args[0], depth - 1);
    return is_extremum ? term : range_of_total(sym, node, term);
}

/* ---- nodes ---- */

static CiRange
range_of_other(CiSym *sym, const CiNode *node, int depth)
{
    switch (node->op) {
    case CI_OP_const:
        return range_of_const(sym, node);
    case CI_OP_expr:
    case CI_OP_define:
        return (CiRange){node->starts[0], node->starts[0]};
    case CI_OP_iota:
        return node->dtype == CI_DTYPE_i64 ? positions(sym, node->sizes[node->axes[0]]) : UNKNOWN;
    case CI_OP_where:
        return range_of_pointwise(sym, node, depth);
    case CI_OP_copy:
    case CI_OP_gather:
    case CI_OP_compress:
        return range_of(sym, node->args[0], depth - 1);
    case CI_OP_cast:
        return node->dtype == CI_DTYPE_i64 ? range_of(sym, node->args[0], depth - 1) : UNKNOWN;
    default:
        return UNKNOWN;
    }
}

static CiRange
range_of_value(CiSym *sym, const CiNode *node, int depth)
{
    switch (ci_op_kind(node->op)) {
    case CI_OPKIND_view:
        return range_of(sym, node->args[0], depth - 1);
    case CI_OPKIND_pointwise:
        return range_of_pointwise(sym, node, depth);
    case CI_OPKIND_reduce:
        return range_of_fold(sym, node, depth);
    case CI_OPKIND_argreduce:
        return positions(sym, folded_count(sym, node));
    case CI_OPKIND_extern:
        return node->ext->position_axis
                   ? positions(sym, node->args[0]->sizes[node->ext->position_axis - 1])
                   : UNKNOWN;
    default:
        return range_of_other(sym, node, depth);
    }
}

typedef struct Walk {
    CiSym *sym;
    const CiNode *node;
    int depth; /* how much further it may go */
    CiRange range;
} Walk;

static void
walk_value(CiContext *ctx, void *arg)
{
    Walk *walk = arg;
    (void)ctx;
    walk->range = range_of_value(walk->sym, walk->node, walk->depth);
}

static CiRange
range_of(CiSym *sym, const CiNode *node, int depth)
{
    if (!ci_dtype_is_integral(node->dtype))
        return UNKNOWN;
    CiRange of_type = range_of_type(sym, node->dtype);
    Walk walk = {sym, node, depth, UNKNOWN};
    if (depth == 0 || node->dtype == CI_DTYPE_bool || !ci_sym_attempt(sym, walk_value, &walk))
        return of_type;
    return (CiRange){walk.range.low ? walk.range.low : of_type.low,
                     walk.range.high ? walk.range.high : of_type.high};
}

CiRange
ci_node_range(CiSym *sym, const CiNode *node)
{
    return range_of(sym, node, MAX_DEPTH);
}

bool
ci_range_is_from(CiSym *sym, CiRange range, const CiExpr *low)
{
    return range.low && ci_sym_known_le(sym, low, range.low);
}

bool
ci_range_is_below(CiSym *sym, CiRange range, const CiExpr *limit)
{
    return range.high && ci_sym_known_lt(sym, range.high, limit);
}

/* ---- text ---- */

static void
print_range(CiText *out, CiRange range)
{
    ci_text_add(out, range.low ? "[" : "(-inf");
    if (range.low)
        ci_expr_print(out, range.low, CI_STYLE_text);
    ci_text_add(out, ", ");
    if (range.high)
        ci_expr_print(out, range.high, CI_STYLE_text);
    ci_text_add(out, range.high ? "]" : "inf)");
}

static void
print_block(CiText *out, const CiGraph *g, const CiBlock *block)
{
    for (int k = 0; k < block->nnodes; k++) {
        const CiNode *node = block->nodes[k];
        CiRange range = ci_node_range(g->sym, node);
        if (range.low || range.high) {
            ci_text_add(out, "  %%%d in ", node->id);
            print_range(out, range);
            ci_text_add(out, "\n");
        }
        for (int b = 0; b < node->nblocks; b++)
            print_block(out, g, node->blocks[b]);
    }
}

void
ci_ranges_print(CiText *out, CiGraph *g)
{
    CiTextIo io = ci_io_printer(g->ctx, g->sym, out);
    ci_graph_number(g);
    ci_text_add(out, "ranges ");
    ci_io_name(&io, g->name);
    ci_text_add(out, " {\n");
    print_block(out, g, g->body);
    ci_text_add(out, "}\n");
}
