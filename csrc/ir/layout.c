/* Stride orders and strides: NumPy's rules in one place.
 *
 * NumPy orders the axes of a new result by an insertion sort over the strides of the operands: in a
 * ufunc from the innermost axis outwards, in a concatenation from the outermost axis inwards. A pair of axes that no operand distinguishes keeps its order, and if
 * operands disagree, C order wins. `sort_axes` is that sort, and all orders come from it. An
 * operand has no influence on an axis along which it has one element or a stride of 0. */
#include "ir/layout.h"

#include "sym/expr_visit.h"

typedef enum Vote { VOTE_none, VOTE_keep, VOTE_swap } Vote;

/* Compares an axis with one further in; swap: the first one belongs inside of the second. */
typedef Vote (*VoteFunction)(const void *arg, int outer, int inner);

static const int8_t *
sort_axes(CiContext *ctx, int rank, bool is_inwards, VoteFunction vote, const void *arg)
{
    int8_t *order = CI_NEW_ARRAY(ctx, int8_t, rank + 1);
    int8_t sorted[CI_MAX_RANK];
    for (int k = 0; k < rank; k++) {
        int8_t axis = (int8_t)(is_inwards ? k : rank - 1 - k);
        int position = k;
        for (int i = k - 1; i >= 0; i--) {
            Vote answer = is_inwards ? vote(arg, sorted[i], axis) : vote(arg, axis, sorted[i]);
            if (answer == VOTE_keep)
                break;
            if (answer == VOTE_swap)
                position = i;
        }
        for (int i = k; i > position; i--)
            sorted[i] = sorted[i - 1];
        sorted[position] = axis;
    }
    for (int k = 0; k < rank; k++)
        order[k] = sorted[is_inwards ? k : rank - 1 - k];
    return order;
}

const int8_t *
ci_layout_c_order(CiContext *ctx, int rank)
{
    static const int8_t identity[CI_MAX_RANK] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                                 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                                 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
    CI_REQUIRE(ctx, rank <= CI_MAX_RANK);
    return identity;
}

bool
ci_layout_is_c_order(int rank, const int8_t *order)
{
    for (int k = 0; k < rank; k++)
        if (order[k] != k)
            return false;
    return true;
}

/* An axis of size 0 counts as 1, as in NumPy: the strides of empty arrays stay non-zero. */
const CiExpr *const *
ci_layout_dense_strides(CiContext *ctx, CiSym *sym, int rank, const CiExpr *const *sizes,
                        const int8_t *order)
{
    const CiExpr **strides = CI_NEW_ARRAY(ctx, const CiExpr *, rank + 1);
    const CiExpr *step = ci_expr_const(sym, 1);
    for (int k = rank - 1; k >= 0; k--) {
        strides[order[k]] = step;
        if (!ci_expr_equals_const(sizes[order[k]], 0))
            step = ci_expr_mul(sym, step, sizes[order[k]]);
    }
    return strides;
}

/* ---- order of one array ---- */

typedef struct StrideArg {
    CiContext *ctx;
    CiSym *sym;
    const CiExpr *const *sizes;
    const CiExpr *const *strides;
} StrideArg;

static const CiExpr *
magnitude(CiSym *sym, const CiExpr *e)
{
    if (e->low >= 0)
        return e;
    const CiExpr *negated = ci_expr_neg(sym, e);
    return e->high <= 0 ? negated : ci_expr_max(sym, e, negated);
}

/* The value of an expression with every symbol large, as a double, so that no product overflows. */
static double
value_where_large(CiExprVisit *visit, const CiExpr *e)
{
    double value = e->kind == CI_EXPR_product ? 1.0 : (double)e->value;
    if (e->kind == CI_EXPR_symbol)
        return visit->most;
    for (int k = 0; k < e->nargs; k++) {
        double arg = ci_expr_visit(visit, e->args[k]);
        bool is_first = k == 0;
        switch (e->kind) {
        case CI_EXPR_linear:
            value += (double)e->coefs[k] * arg;
            break;
        case CI_EXPR_product:
            value *= arg;
            break;
        case CI_EXPR_min:
            value = is_first || arg < value ? arg : value;
            break;
        case CI_EXPR_max:
            value = is_first || arg > value ? arg : value;
            break;
        default: /* of a division the number, roughly; of a remainder the most it can be */
            value = is_first ? arg : e->kind == CI_EXPR_mod || arg == 0 ? arg : value / arg;
        }
    }
    return value;
}

static double
value_at_large(const CiExpr *e)
{
    CiExprVisit visit = {.compute = value_where_large, .most = 65521.0};
    return ci_expr_visit(&visit, e);
}

/* A multiple of a stride is at least that stride, unless it is 0; then the array is empty. If
 * nothing is known, every size counts as large. This is safe: strides of one array are products of
 * its sizes, or slightly less, and an axis of size 0 or 1 has no order that could be wrong. */
static bool
is_larger(const StrideArg *s, const CiExpr *a, const CiExpr *b)
{
    if (a == b || ci_sym_known_le(s->sym, a, b))
        return false;
    if (ci_sym_known_lt(s->sym, b, a))
        return true;
    if (ci_sym_known_multiple_of(s->sym, b, a))
        return false;
    return ci_sym_known_multiple_of(s->sym, a, b) || value_at_large(a) > value_at_large(b);
}

static bool
is_silent(const CiExpr *size, const CiExpr *stride)
{
    return ci_expr_equals_const(size, 1) || ci_expr_equals_const(stride, 0);
}

static Vote
vote_by_stride(const void *arg, int outer, int inner)
{
    const StrideArg *s = arg;
    if (is_silent(s->sizes[outer], s->strides[outer]) ||
        is_silent(s->sizes[inner], s->strides[inner]))
        return VOTE_none;
    const CiExpr *inside = magnitude(s->sym, s->strides[inner]);
    return is_larger(s, inside, magnitude(s->sym, s->strides[outer])) ? VOTE_swap : VOTE_keep;
}

const int8_t *
ci_layout_order_of_strides(CiContext *ctx, CiSym *sym, int rank, const CiExpr *const *sizes,
                           const CiExpr *const *strides)
{
    StrideArg arg = {ctx, sym, sizes, strides};
    return sort_axes(ctx, rank, false, vote_by_stride, &arg);
}

bool
ci_layout_has_dense_steps(CiSym *sym, int rank, const CiExpr *const *sizes,
                          const CiExpr *const *strides, int64_t unit, bool is_fortran)
{
    const CiExpr *step = ci_expr_const(sym, unit);
    bool is_dense = true;
    for (int k = 0; k < rank; k++) {
        int axis = is_fortran ? k : rank - 1 - k;
        if (ci_expr_equals_const(sizes[axis], 0))
            return true;
        if (!ci_expr_equals_const(sizes[axis], 1) && strides[axis] != step)
            is_dense = false;
        step = ci_expr_mul(sym, step, sizes[axis]);
    }
    return is_dense;
}

/* ---- order of a result ---- */

typedef struct OperandArg {
    int rank, nargs;
    CiNode *const *args;
    int8_t (*positions)[CI_MAX_RANK]; /* per operand: position of each result axis in its order, -1: no
                                      vote */
} OperandArg;

static Vote
vote_by_operands(const void *arg, int outer, int inner)
{
    const OperandArg *o = arg;
    Vote answer = VOTE_none;
    for (int k = 0; k < o->nargs; k++) {
        int outer_position = o->positions[k][outer], inner_position = o->positions[k][inner];
        if (outer_position < 0 || inner_position < 0)
            continue;
        if (outer_position < inner_position)
            return VOTE_keep;
        answer = VOTE_swap;
    }
    return answer;
}

static void
find_axis_positions(int rank, const CiNode *node, int8_t *positions)
{
    int missing = rank - node->rank;
    for (int k = 0; k < missing; k++)
        positions[k] = -1;
    for (int k = 0; k < node->rank; k++) {
        int axis = node->order[k];
        bool is_still = node->strides && ci_expr_equals_const(node->strides[axis], 0);
        bool votes = !is_still && !ci_expr_equals_const(node->sizes[axis], 1);
        positions[missing + axis] = (int8_t)(votes ? k : -1);
    }
}

static const int8_t *
order_of_operands(CiContext *ctx, int rank, bool is_inwards, int nargs, CiNode *const *args)
{
    bool is_plain = true;
    for (int k = 0; k < nargs && is_plain; k++)
        is_plain = ci_layout_is_c_order(args[k]->rank, args[k]->order);
    if (is_plain || rank < 2)
        return ci_layout_c_order(ctx, rank);
    OperandArg arg = {rank, nargs, args, ci_new(ctx, sizeof(int8_t[CI_MAX_RANK]) * (size_t)nargs)};
    for (int k = 0; k < nargs; k++)
        find_axis_positions(rank, args[k], arg.positions[k]);
    return sort_axes(ctx, rank, is_inwards, vote_by_operands, &arg);
}

const int8_t *
ci_layout_broadcast_order(CiContext *ctx, int rank, int nargs, CiNode *const *args)
{
    return order_of_operands(ctx, rank, false, nargs, args);
}

const int8_t *
ci_layout_concat_order(CiContext *ctx, int rank, int nargs, CiNode *const *args)
{
    return order_of_operands(ctx, rank, true, nargs, args);
}

const char *
ci_layout_shape_text(CiContext *ctx, int rank, const CiExpr *const *sizes)
{
    CiText text = ci_text_new(ctx);
    ci_text_add(&text, "(");
    for (int k = 0; k < rank; k++) {
        ci_expr_print(&text, sizes[k], CI_STYLE_text);
        if (k < rank - 1 || rank == 1)
            ci_text_add(&text, ",");
    }
    ci_text_add(&text, ")");
    return text.data;
}

/* ---- broadcasting ---- */

static _Noreturn void
fail_broadcast(CiGraph *g, int nargs, CiNode *const *args)
{
    CiText text = ci_text_new(g->ctx);
    for (int k = 0; k < nargs; k++)
        ci_text_add(&text, "%s ", ci_layout_shape_text(g->ctx, args[k]->rank, args[k]->sizes));
    ci_fail(g->ctx, CI_ERR_SHAPE, "operands could not be broadcast together with shapes %s",
            text.data);
}

/* The common size, or NULL. A size that is not constant is taken not to be 1, unless its hint says
 * so. */
static const CiExpr *
join_sizes(CiGraph *g, const CiExpr *a, const CiExpr *b, CiLoc loc)
{
    if (a == b || ci_expr_equals_const(b, 1))
        return a;
    if (ci_expr_equals_const(a, 1))
        return b;
    if (ci_expr_is_const(a, NULL) && ci_expr_is_const(b, NULL))
        return NULL;
    if (!ci_shape_guard(g->ctx, g->env, CI_REL_eq, a, b, loc))
        return NULL;
    return ci_expr_is_const(b, NULL) ? b : a;
}

const CiExpr *const *
ci_layout_broadcast(CiGraph *g, int nargs, CiNode *const *args, int *rank, CiLoc loc)
{
    *rank = 0;
    int widest = 0;
    for (int k = 0; k < nargs; k++)
        if (args[k]->rank > *rank) {
            *rank = args[k]->rank;
            widest = k;
        }
    if (!*rank)
        return NULL;
    const CiExpr **sizes = CI_NEW_ARRAY(g->ctx, const CiExpr *, *rank);
    for (int axis = 0; axis < *rank; axis++)
        sizes[axis] = args[widest]->sizes[axis];
    for (int k = 0; k < nargs; k++) {
        int missing = *rank - args[k]->rank;
        for (int axis = 0; axis < args[k]->rank; axis++) {
            const CiExpr *joined = join_sizes(g, sizes[missing + axis], args[k]->sizes[axis], loc);
            if (!joined)
                fail_broadcast(g, nargs, args);
            sizes[missing + axis] = joined;
        }
    }
    return sizes;
}

const CiExpr *
ci_layout_count(CiSym *sym, int rank, const CiExpr *const *sizes)
{
    return ci_expr_product_of(sym, sizes, rank);
}

const CiExpr *const *
ci_layout_strides(CiGraph *g, const CiNode *node)
{
    return node->strides
               ? node->strides
               : ci_layout_dense_strides(g->ctx, g->sym, node->rank, node->sizes, node->order);
}

/* ---- strides of views ---- */

typedef struct Reshape {
    CiSym *sym;
    const CiExpr *unit;
    int nold, nnew;
    const CiExpr *old_sizes[CI_MAX_RANK], *old_strides[CI_MAX_RANK]; /* without axes of size 1 */
    const CiExpr *const *new_sizes;
    const CiExpr **new_strides;
} Reshape;

typedef enum Side { SIDE_none, SIDE_old, SIDE_new } Side;

/* Which of two unequal products has to grow to meet the other; none: it cannot be told. */
static Side
smaller_side(CiSym *sym, const CiExpr *new_product, const CiExpr *old_product)
{
    if (ci_sym_known_lt(sym, new_product, old_product) ||
        ci_sym_known_multiple_of(sym, old_product, new_product))
        return SIDE_new;
    if (ci_sym_known_lt(sym, old_product, new_product) ||
        ci_sym_known_multiple_of(sym, new_product, old_product))
        return SIDE_old;
    return SIDE_none;
}

/* Old axes [old, old_end) become new axes [new, new_end): possible when the old ones are contiguous
 * among themselves. */
static bool
split_group(Reshape *r, int old, int old_end, int new, int new_end)
{
    for (int k = old; k < old_end - 1; k++)
        if (r->old_strides[k] != ci_expr_mul(r->sym, r->old_sizes[k + 1], r->old_strides[k + 1]))
            return false;
    r->new_strides[new_end - 1] = r->old_strides[old_end - 1];
    for (int k = new_end - 1; k > new; k--)
        r->new_strides[k - 1] = ci_expr_mul(r->sym, r->new_strides[k], r->new_sizes[k]);
    return true;
}

/* NumPy's _attempt_nocopy_reshape, C order, over symbolic sizes. */
static bool
reshape_strides(Reshape *r)
{
    int old = 0, new = 0;
    while (new < r->nnew && old < r->nold) {
        int new_end = new + 1, old_end = old + 1;
        const CiExpr *new_product = r->new_sizes[new], *old_product = r->old_sizes[old];
        while (!ci_sym_known_eq(r->sym, new_product, old_product)) {
            Side side = smaller_side(r->sym, new_product, old_product);
            if (side == SIDE_new && new_end < r->nnew)
                new_product = ci_expr_mul(r->sym, new_product, r->new_sizes[new_end++]);
            else if (side == SIDE_old && old_end < r->nold)
                old_product = ci_expr_mul(r->sym, old_product, r->old_sizes[old_end++]);
            else
                return false;
        }
        if (!split_group(r, old, old_end, new, new_end))
            return false;
        new = new_end;
        old = old_end;
    }
    const CiExpr *last = new ? r->new_strides[new - 1] : r->unit;
    for (; new < r->nnew; new ++)
        r->new_strides[new] = last;
    return true;
}

static void
fill_dense(CiSym *sym, int rank, const CiExpr *const *sizes, const CiExpr *unit,
           const CiExpr **strides)
{
    for (int k = rank - 1; k >= 0; k--) {
        strides[k] = unit;
        if (!ci_expr_equals_const(sizes[k], 0))
            unit = ci_expr_mul(sym, unit, sizes[k]);
    }
}

static bool
is_dense(CiSym *sym, int rank, const CiExpr *const *sizes, const CiExpr *const *strides,
         const CiExpr *unit)
{
    for (int k = rank - 1; k >= 0; k--) {
        if (!ci_expr_equals_const(sizes[k], 1) && strides[k] != unit)
            return false;
        unit = ci_expr_mul(sym, unit, sizes[k]);
    }
    return true;
}

bool
ci_layout_reshape(CiSym *sym, int rank, const CiExpr *const *sizes, const CiExpr *const *strides,
                  int new_rank, const CiExpr *const *new_sizes, const CiExpr *unit,
                  const CiExpr **new_strides)
{
    Reshape r = {.sym = sym,
                 .unit = unit,
                 .nnew = new_rank,
                 .new_sizes = new_sizes,
                 .new_strides = new_strides};
    for (int k = 0; k < rank; k++) {
        if (ci_expr_equals_const(sizes[k], 0)) { /* an empty array can be any shape */
            fill_dense(sym, new_rank, new_sizes, unit, new_strides);
            return true;
        }
        if (!ci_expr_equals_const(sizes[k], 1)) {
            r.old_sizes[r.nold] = sizes[k];
            r.old_strides[r.nold++] = strides[k];
        }
    }
    if (reshape_strides(&r))
        return true;
    /* Whose axes meet whose is open for symbols, but elements at one distance can be any shape. */
    const CiExpr *step = r.nold ? r.old_strides[r.nold - 1] : unit;
    if (!is_dense(sym, r.nold, r.old_sizes, r.old_strides, step))
        return false;
    fill_dense(sym, new_rank, new_sizes, step, new_strides);
    return true;
}

static bool
view_reshape(CiGraph *g, const CiNode *view, const CiExpr *const *from, const CiExpr **to)
{
    const CiNode *source = view->args[0];
    return ci_layout_reshape(g->sym, source->rank, source->sizes, from, view->rank, view->sizes,
                             ci_expr_const(g->sym, 1), to);
}

static void
view_slice(CiGraph *g, const CiNode *view, const CiExpr **offset, const CiExpr *const *from,
           const CiExpr **to)
{
    for (int k = 0; k < view->rank; k++) {
        *offset = ci_expr_add(g->sym, *offset, ci_expr_mul(g->sym, view->starts[k], from[k]));
        to[k] = ci_expr_mul(g->sym, view->steps[k], from[k]);
    }
}

static void
view_expand(CiGraph *g, const CiNode *view, const CiExpr *const *from, const CiExpr **to)
{
    const CiNode *source = view->args[0];
    int missing = view->rank - source->rank;
    for (int k = 0; k < view->rank; k++) {
        bool is_kept = k >= missing && (source->sizes[k - missing] == view->sizes[k] ||
                                        !ci_expr_equals_const(source->sizes[k - missing], 1));
        to[k] = is_kept ? from[k - missing] : ci_expr_const(g->sym, 0);
    }
}

static void
view_diagonal(CiGraph *g, const CiNode *view, const CiExpr **offset, const CiExpr *const *from,
              const CiExpr **to)
{
    int first = view->axes[0], second = view->axes[1], count = 0;
    const CiExpr *zero = ci_expr_const(g->sym, 0);
    const CiExpr *right = ci_expr_max(g->sym, view->starts[0], zero);
    const CiExpr *down = ci_expr_max(g->sym, ci_expr_neg(g->sym, view->starts[0]), zero);
    *offset = ci_expr_add(g->sym, *offset, ci_expr_mul(g->sym, right, from[second]));
    *offset = ci_expr_add(g->sym, *offset, ci_expr_mul(g->sym, down, from[first]));
    for (int k = 0; k < view->args[0]->rank; k++)
        if (k != first && k != second)
            to[count++] = from[k];
    to[count] = ci_expr_add(g->sym, from[first], from[second]);
}

static void
view_window(const CiNode *view, const CiExpr *const *from, const CiExpr **to)
{
    int rank = view->args[0]->rank;
    for (int k = 0; k < rank; k++)
        to[k] = from[k];
    to[rank] = from[view->axes[0]];
}

/* One view: from the strides of its operand to its own. */
static bool
view_step(CiGraph *g, const CiNode *view, const CiExpr **offset, const CiExpr *const *from,
          const CiExpr **to)
{
    switch (view->op) {
    case CI_OP_permute:
        for (int k = 0; k < view->rank; k++)
            to[k] = from[view->axes[k]];
        return true;
    case CI_OP_reshape:
        return view_reshape(g, view, from, to);
    case CI_OP_slice:
        view_slice(g, view, offset, from, to);
        return true;
    case CI_OP_expand:
        view_expand(g, view, from, to);
        return true;
    case CI_OP_window:
        view_window(view, from, to);
        return true;
    default:
        CI_REQUIRE(g->ctx, view->op == CI_OP_diagonal);
        view_diagonal(g, view, offset, from, to);
        return true;
    }
}

bool
ci_layout_view_strides(CiGraph *g, const CiNode *view, const CiNode *base,
                       const CiExpr *const *base_strides, const CiExpr **offset,
                       const CiExpr **strides)
{
    int depth = 0;
    for (const CiNode *node = view; node != base; node = node->args[0], depth++)
        CI_REQUIRE(g->ctx, ci_node_is_view(node));
    const CiNode **chain = CI_NEW_ARRAY(g->ctx, const CiNode *, depth + 1);
    for (const CiNode *node = view; node != base; node = node->args[0])
        chain[--depth] = node;
    const CiExpr *here[CI_MAX_RANK], *next[CI_MAX_RANK];
    for (int k = 0; k < base->rank; k++)
        here[k] = base_strides[k];
    *offset = ci_expr_const(g->sym, 0);
    int rank = base->rank;
    for (int k = 0; chain[k]; k++) {
        if (!view_step(g, chain[k], offset, here, next))
            return false;
        rank = chain[k]->rank;
        for (int axis = 0; axis < rank; axis++)
            here[axis] = next[axis];
    }
    for (int k = 0; k < rank; k++)
        strides[k] = here[k];
    return true;
}

int
ci_layout_axis(CiGraph *g, int axis, int rank)
{
    if (axis < -rank || axis >= rank)
        ci_fail(g->ctx, CI_ERR_VALUE, "axis %d is out of bounds for array of dimension %d", axis,
                rank);
    return axis < 0 ? axis + rank : axis;
}

bool
ci_layout_is_dense(CiContext *ctx, CiSym *sym, int rank, const CiExpr *const *sizes,
                   const CiExpr *const *strides)
{
    const int8_t *order = ci_layout_order_of_strides(ctx, sym, rank, sizes, strides);
    const CiExpr *const *dense = ci_layout_dense_strides(ctx, sym, rank, sizes, order);
    for (int axis = 0; axis < rank; axis++)
        if (dense[axis] != strides[axis] && !ci_expr_equals_const(sizes[axis], 1))
            return false;
    return true;
}
