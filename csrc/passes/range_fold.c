/* Range-based folding: removes checks that cannot fail, and replaces comparisons with a known
 * outcome by constants (intervals with widening: Cousot, Cousot, POPL 1977). Python's ints are
 * checked for overflow of 64 bits in each step, so loops over bytes, bits and remainders depend on
 * this pass.
 *
 * Every integer node has an interval that contains all its elements in all iterations. Nodes are
 * visited in program order. The interval of a carried value starts with that of the initial value
 * and is joined with that of the next value until a fixed point is reached. If this takes long, it
 * is widened in steps. Before this, the largest increase per iteration is computed, which bounds
 * sums over a known number of iterations. In arms and bodies the operands of the condition are
 * narrowed by it.
 *
 * Invariant: the last pass over a block used intervals that are valid in every iteration. needs:
 * composite operations are gone. keeps: values bit for bit, checks that may fail. */
#include "ir/interval.h"
#include "passes/pass.h"

/* Joins of a carried value before it climbs. */
#define FEW_JOINS 3
/* Nodes walked, for each node there is, until loops are given up. */
#define MAX_WALKS 64
#define MAX_DEPTH 24

typedef struct State {
    CiInterval range;
    bool may_wrap;
} State;

typedef struct Decider {
    CiGraph *g;
    int64_t budget;
} Decider;

static CiInterval
range_of(const CiNode *node)
{
    return ((const State *)node->mark)->range;
}

static void
set_range(const CiNode *node, CiInterval range)
{
    ((State *)node->mark)->range = range;
}

static void
clear_node(void *g, CiNode *node)
{
    State *state = CI_NEW(((CiGraph *)g)->ctx, State);
    *state = (State){ci_interval_of_type(node->dtype), true};
    node->mark = state;
}

/* ---- straight-line code ---- */

static CiInterval
positions(const CiExpr *size)
{
    int64_t high = size->high > 0 ? size->high - (size->high != CI_INFINITY) : 0;
    return (CiInterval){0, high};
}

static CiInterval
range_of_cast(const CiNode *node)
{
    CiInterval type = ci_interval_of_type(node->dtype), from = range_of(node->args[0]);
    bool fits = ci_interval_is_known(node->args[0]->dtype) && ci_interval_is_within(from, type);
    return fits ? from : type;
}

/* Where there may be nothing to fold the identity comes out. */
static CiInterval
range_of_fold(const CiNode *node)
{
    CiInterval type = ci_interval_of_type(node->dtype), term = range_of(node->args[0]), sum;
    bool has_elements = true;
    int64_t count = 1;
    for (int k = 0; k < node->naxes; k++) {
        const CiExpr *size = node->args[0]->sizes[node->axes[k]];
        has_elements = has_elements && size->low > 0;
        if (size->high == CI_INFINITY || __builtin_mul_overflow(count, size->high, &count))
            count = INT64_MAX;
    }
    if (node->dtype != node->args[0]->dtype)
        return type;
    if ((node->op == CI_OP_max || node->op == CI_OP_min) && has_elements)
        return term;
    bool fits = node->op == CI_OP_sum &&
                ci_interval_add_up((CiInterval){0, 0}, term, count, &sum) &&
                ci_interval_is_within(sum, type);
    return fits ? sum : type;
}

static CiInterval
hull_of_args(const CiNode *node, int first, int count)
{
    CiInterval hull = range_of(node->args[first]);
    for (int k = first + 1; k < first + count; k++)
        hull = ci_interval_hull(hull, range_of(node->args[k]));
    return hull;
}

static CiInterval
range_of_other(const CiNode *node)
{
    CiInterval type = ci_interval_of_type(node->dtype);
    switch (node->op) {
    case CI_OP_const:
        return (CiInterval){node->value.i, node->value.i};
    case CI_OP_expr:
    case CI_OP_define:
        return (CiInterval){node->starts[0]->low, node->starts[0]->high};
    case CI_OP_iota: {
        CiInterval range = positions(node->sizes[node->axes[0]]);
        return ci_interval_is_within(range, type) ? range : type;
    }
    case CI_OP_copy:
    case CI_OP_gather:
    case CI_OP_compress:
        return range_of(node->args[0]);
    case CI_OP_assign:
        return ci_interval_hull(range_of(node->args[0]), range_of(node->args[2]));
    case CI_OP_where:
        return hull_of_args(node, 1, 2);
    case CI_OP_concat:
        return hull_of_args(node, 0, node->nargs);
    case CI_OP_cast:
        return range_of_cast(node);
    default:
        return type;
    }
}

static CiInterval
range_of_node(const CiNode *node, State *state)
{
    switch (ci_op_kind(node->op)) {
    case CI_OPKIND_view:
        return range_of(node->args[0]);
    case CI_OPKIND_reduce:
        return range_of_fold(node);
    case CI_OPKIND_argreduce:
        return (CiInterval){0, INT64_MAX};
    case CI_OPKIND_pointwise: {
        const CiNode *a = node->args[0], *b = node->args[node->nargs - 1];
        if (ci_interval_is_known(a->dtype))
            return ci_interval_pointwise(node->op, a->dtype, range_of(a), range_of(b),
                                         &state->may_wrap);
        return ci_interval_of_type(node->dtype);
    }
    default:
        return range_of_other(node);
    }
}

/* ---- checks of Python's ints ---- */

static bool
has_operands(const CiNode *node, const CiNode *a, const CiNode *b)
{
    return node->nargs == 2 && node->args[0] == a && node->args[1] == b;
}

static bool
is_exact(const CiNode *node, CiOp op)
{
    return node->op == op && node->dtype == CI_DTYPE_i64 && !((const State *)node->mark)->may_wrap;
}

/* (a ^ b) & (c ^ d) >= 0, the sign test of a sum a = b + d or a difference d = a - b. */
static bool
is_true_of_signs(const CiNode *test)
{
    const CiNode *both = test->args[0];
    if (test->op != CI_OP_greater_equal || both->op != CI_OP_bitwise_and ||
        range_of(test->args[1]).high > 0 || both->args[0]->op != CI_OP_bitwise_xor ||
        both->args[1]->op != CI_OP_bitwise_xor)
        return false;
    const CiNode *whole = both->args[0]->args[0], *part = both->args[0]->args[1],
                 *other = both->args[1]->args[1];
    if (both->args[1]->args[0] != whole)
        return false;
    return (is_exact(whole, CI_OP_add) && has_operands(whole, part, other)) ||
           (is_exact(other, CI_OP_subtract) && has_operands(other, whole, part));
}

/* (a << n) >> min(n, 63) == a */
static bool
is_true_of_shifts(const CiNode *test)
{
    const CiNode *back = test->args[0], *a = test->args[test->nargs - 1];
    if (test->op != CI_OP_equal || back->op != CI_OP_right_shift ||
        !is_exact(back->args[0], CI_OP_left_shift) || back->args[0]->args[0] != a)
        return false;
    const CiNode *left = back->args[0]->args[1], *right = back->args[1];
    CiInterval count = range_of(left), other = range_of(right);
    bool is_same = left == right || (right->op == CI_OP_minimum && right->args[0] == left &&
                                     range_of(right->args[1]).low >= count.high);
    return is_same ||
           (count.low == count.high && other.low == count.low && other.high == count.low);
}

/* The largest size of a float made of ints. */
static double
largest_size(const CiNode *node)
{
    const double more = 1.0 + 0x1p-40; /* than any rounding adds */
    if (node->op == CI_OP_const)
        return node->value.re < 0 ? -node->value.re : node->value.re;
    if (node->op == CI_OP_absolute)
        return largest_size(node->args[0]);
    if (node->op == CI_OP_multiply)
        return largest_size(node->args[0]) * largest_size(node->args[1]) * more;
    if (node->op == CI_OP_cast && ci_interval_is_known(node->args[0]->dtype)) {
        CiInterval range = range_of(node->args[0]);
        double low = -(double)range.low, high = (double)range.high;
        return (low > high ? low : high) * more;
    }
    return 0x1p1000;
}

/* |a * b| < limit as floats */
static bool
is_true_of_floats(const CiNode *test)
{
    const CiNode *size = test->args[0], *limit = test->args[test->nargs - 1];
    return test->op == CI_OP_less && size->op == CI_OP_absolute && size->dtype == CI_DTYPE_f64 &&
           limit->op == CI_OP_const && largest_size(size) < limit->value.re;
}

static bool
is_comparison(const CiNode *node)
{
    return ci_op_kind(node->op) == CI_OPKIND_pointwise && node->nargs == 2 &&
           node->dtype == CI_DTYPE_bool;
}

static void
walk_node(CiNode *node)
{
    State *state = node->mark;
    state->may_wrap = false;
    state->range = range_of_node(node, state);
    if (is_comparison(node) &&
        (is_true_of_signs(node) || is_true_of_shifts(node) || is_true_of_floats(node)))
        state->range = (CiInterval){1, 1};
}

/* ---- conditions ---- */

/* Intervals before they were narrowed. */
typedef struct Narrowed {
    CiNode *nodes[8];
    CiInterval before[8];
    int count;
} Narrowed;

static void
narrow_node(Narrowed *narrowed, CiNode *node, int64_t low, int64_t high)
{
    CiInterval range = range_of(node);
    if (narrowed->count == 8 || node->op == CI_OP_const)
        return;
    narrowed->nodes[narrowed->count] = node;
    narrowed->before[narrowed->count++] = range;
    range.low = low > range.low ? low : range.low;
    range.high = high < range.high ? high : range.high;
    if (range.low <= range.high)
        set_range(node, range);
}

/* a < b, or a <= b */
static void
narrow_order(Narrowed *narrowed, CiNode *a, CiNode *b, bool is_strict)
{
    int64_t high = range_of(b).high, low = range_of(a).low;
    if (is_strict && (high == INT64_MIN || low == INT64_MAX))
        return;
    narrow_node(narrowed, a, INT64_MIN, high - is_strict);
    narrow_node(narrowed, b, low + is_strict, INT64_MAX);
}

static void
narrow(Narrowed *narrowed, const CiNode *condition, bool holds)
{
    CiNode *a = condition->nargs == 2 ? condition->args[0] : NULL, *b = a ? condition->args[1] : a;
    if (condition->op == CI_OP_logical_not)
        narrow(narrowed, condition->args[0], !holds);
    if (!a || condition->rank > 0 || a->rank > 0 || b->rank > 0 ||
        !ci_interval_is_known(a->dtype) || a == b)
        return;
    switch (condition->op) {
    case CI_OP_logical_and:
    case CI_OP_bitwise_and:
        if (holds && condition->dtype == CI_DTYPE_bool) {
            narrow(narrowed, a, true);
            narrow(narrowed, b, true);
        }
        break;
    case CI_OP_less:
        holds ? narrow_order(narrowed, a, b, true) : narrow_order(narrowed, b, a, false);
        break;
    case CI_OP_less_equal:
        holds ? narrow_order(narrowed, a, b, false) : narrow_order(narrowed, b, a, true);
        break;
    case CI_OP_greater:
        holds ? narrow_order(narrowed, b, a, true) : narrow_order(narrowed, a, b, false);
        break;
    case CI_OP_greater_equal:
        holds ? narrow_order(narrowed, b, a, false) : narrow_order(narrowed, a, b, true);
        break;
    default:
        break;
    }
}

static void
restore(const Narrowed *narrowed)
{
    for (int k = narrowed->count - 1; k >= 0; k--)
        set_range(narrowed->nodes[k], narrowed->before[k]);
}

/* ---- regions ---- */

static void walk_block(Decider *d, CiBlock *block);

static void
walk_under(Decider *d, CiBlock *block, const CiNode *condition, bool holds)
{
    Narrowed narrowed = {.count = 0};
    narrow(&narrowed, condition, holds);
    walk_block(d, block);
    restore(&narrowed);
}

/* A loop as one thing: the first carried parameter, and the block that makes the next values. */
typedef struct Loop {
    CiNode *region, **params;
    int count;
    CiBlock *next;
} Loop;

static Loop
loop_of(CiNode *region)
{
    bool is_for = region->op == CI_OP_for;
    return (Loop){region, region->blocks[0]->params + is_for, region->nargs,
                  region->blocks[!is_for]};
}

static void
trace_iteration(Decider *d, const Loop *loop)
{
    const CiBlock *head = loop->region->blocks[0];
    if (loop->region->op == CI_OP_for) {
        set_range(head->params[0], positions(loop->region->starts[0]));
        walk_block(d, loop->next);
        return;
    }
    walk_block(d, loop->region->blocks[0]);
    walk_under(d, loop->next, head->results[0], true);
}

/* How far the elements of `node` may lie from those of `from`, or false. Only sums, choices and
 * copies are followed; what they add has been walked with `from` as anything it can be. */
static bool growth(const CiNode *node, const CiNode *from, int depth, CiInterval *step);

static bool
growth_of_sum(const CiNode *node, const CiNode *from, int depth, CiInterval *step)
{
    bool may_wrap;
    for (int side = 0; side < (node->op == CI_OP_add ? 2 : 1); side++) {
        if (growth(node->args[side], from, depth, step)) {
            CiInterval added = range_of(node->args[!side]);
            *step = ci_interval_pointwise(node->op, CI_DTYPE_i64, *step, added, &may_wrap);
            return !may_wrap;
        }
    }
    return false;
}

static bool
growth_of_either(const CiNode *a, const CiNode *b, const CiNode *from, int depth, CiInterval *step)
{
    CiInterval other;
    if (!growth(a, from, depth, step) || !growth(b, from, depth, &other))
        return false;
    *step = ci_interval_hull(*step, other);
    return true;
}

static bool
growth_of_result(const CiNode *node, const CiNode *from, int depth, CiInterval *step)
{
    const CiNode *region = node->args[0];
    int k = node->index;
    if (region->op == CI_OP_if)
        return growth_of_either(region->blocks[0]->results[k], region->blocks[1]->results[k], from,
                                depth, step);
    CiInterval before, iteration, none = {0, 0};
    if (region->op != CI_OP_for || region->starts[0]->high == CI_INFINITY ||
        !growth(region->args[k], from, depth, &before) ||
        !growth(region->blocks[0]->results[k], region->blocks[0]->params[k + 1], depth, &iteration))
        return false;
    int64_t iterations = region->starts[0]->high > 0 ? region->starts[0]->high : 0;
    iteration = ci_interval_hull(iteration, none);
    return ci_interval_add_up(before, iteration, iterations, step);
}

static bool
growth(const CiNode *node, const CiNode *from, int depth, CiInterval *step)
{
    *step = (CiInterval){0, 0};
    if (node == from)
        return true;
    if (depth == 0 || node->dtype != CI_DTYPE_i64)
        return false;
    switch (node->op) {
    case CI_OP_add:
    case CI_OP_subtract:
        return growth_of_sum(node, from, depth - 1, step);
    case CI_OP_where:
        return growth_of_either(node->args[1], node->args[2], from, depth - 1, step);
    case CI_OP_assign:
        return growth_of_either(node->args[0], node->args[2], from, depth - 1, step);
    case CI_OP_result:
        return growth_of_result(node, from, depth - 1, step);
    default:
        return (ci_node_is_view(node) || node->op == CI_OP_copy) &&
               growth(node->args[0], from, depth - 1, step);
    }
}

/* Bounds each carried value at the start of the last iteration, by the sum of the increases of all
 * iterations before it; is_bounded[k] if this is possible. */
static void
bound_carried(Decider *d, const Loop *loop, bool *is_bounded)
{
    int64_t iterations = loop->region->op == CI_OP_for ? loop->region->starts[0]->high : CI_INFINITY;
    bool is_asked = false;
    for (int k = 0; k < loop->count; k++) {
        set_range(loop->params[k], ci_interval_of_type(loop->params[k]->dtype));
        is_asked |= loop->params[k]->dtype == CI_DTYPE_i64;
    }
    if (iterations == CI_INFINITY || iterations < 1 || !is_asked)
        return;
    trace_iteration(d, loop);
    for (int k = 0; k < loop->count; k++) {
        CiInterval step, all;
        is_bounded[k] = loop->params[k]->dtype == CI_DTYPE_i64 &&
                        growth(loop->next->results[k], loop->params[k], MAX_DEPTH, &step) &&
                        ci_interval_add_up(range_of(loop->region->args[k]), step, iterations - 1, &all);
        if (is_bounded[k])
            set_range(loop->params[k], all);
    }
}

/* Joins one more iteration; false at a fixed point. */
static bool
join_iteration(const Loop *loop, const bool *is_bounded, int joins)
{
    bool has_new = false;
    for (int k = 0; k < loop->count; k++) {
        CiInterval before = range_of(loop->params[k]), after = range_of(loop->next->results[k]);
        CiInterval type = ci_interval_of_type(loop->params[k]->dtype);
        if (is_bounded[k] || ci_interval_is_within(after, before))
            continue;
        after = ci_interval_hull(before, after);
        if (joins >= FEW_JOINS)
            after = ci_interval_widen(after);
        set_range(loop->params[k], ci_interval_is_within(after, type) ? after : type);
        has_new = true;
    }
    return has_new;
}

static void
walk_loop(Decider *d, CiNode *region)
{
    Loop loop = loop_of(region);
    bool *is_bounded = CI_NEW_ARRAY(d->g->ctx, bool, loop.count + 1);
    if (d->budget > 0)
        bound_carried(d, &loop, is_bounded);
    for (int k = 0; k < loop.count; k++) {
        if (d->budget <= 0)
            set_range(loop.params[k], ci_interval_of_type(loop.params[k]->dtype));
        else if (!is_bounded[k])
            set_range(loop.params[k], range_of(region->args[k]));
    }
    int joins = 0;
    do {
        trace_iteration(d, &loop);
    } while (join_iteration(&loop, is_bounded, joins++));
}

static void
walk_result(CiNode *node)
{
    const CiNode *region = node->args[0];
    int k = node->index;
    if (region->op == CI_OP_if)
        set_range(node, ci_interval_hull(range_of(region->blocks[0]->results[k]),
                                         range_of(region->blocks[1]->results[k])));
    else
        set_range(node, ci_interval_hull(
                            range_of(region->args[k]),
                            range_of(region->blocks[region->op == CI_OP_while]->results[k])));
}

static void
walk_block(Decider *d, CiBlock *block)
{
    for (int k = 0; k < block->nnodes; k++) {
        CiNode *node = block->nodes[k];
        d->budget--;
        if (node->op == CI_OP_if) {
            walk_under(d, node->blocks[0], node->args[0], true);
            walk_under(d, node->blocks[1], node->args[0], false);
        } else if (node->nblocks) {
            walk_loop(d, node);
        } else if (node->op == CI_OP_result) {
            walk_result(node);
        } else if (node->dtype != CI_DTYPE_none) {
            walk_node(node);
        }
    }
}

/* ---- what follows ---- */

/* Scalars have no memory that could be told apart. */
static void
decide_node(CiNode *node)
{
    CiInterval range = range_of(node);
    bool is_decided = is_comparison(node) && node->rank == 0 && node->kind != CI_KIND_array &&
                      range.low == range.high;
    if (!is_decided)
        return;
    node->op = CI_OP_const;
    node->nargs = 0;
    node->value = ci_const_int(CI_DTYPE_bool, range.low);
}

/* A check that cannot fail is removed. */
static bool
keeps_decided(void *arg, CiNode *node)
{
    (void)arg;
    if (node->op == CI_OP_check && range_of(node->args[0]).low == 1)
        return false;
    if (node->dtype != CI_DTYPE_none)
        decide_node(node);
    return true;
}

void
ci_pass_decide(CiGraph *g)
{
    Decider d = {g, (int64_t)MAX_WALKS * ci_graph_node_count(g)};
    for (int k = 0; k < g->ninputs; k++)
        clear_node(g, g->inputs[k]);
    ci_block_visit(g->body, clear_node, g);
    walk_block(&d, g->body);
    ci_block_filter(g->body, keeps_decided, NULL);
}
