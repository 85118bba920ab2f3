/* NumPy's order of a fold: `pairwise` of ir/loop.h.
 *
 * A block of at most 16 L elements goes through L accumulators, which are lanes; longer ones are a
 * binary tree of such blocks, evaluated from left to right. The blocks of a tree do not depend on each
 * other: a processor adds up several at a time. */
#include "codegen/reducer.h"

#include "codegen/reduction.h"

#define MAX_LEVELS 48
/* Vectors of accumulators that are evaluated together if they need no registers. */
#define LANES_AT_ONCE CI_PAIRWISE_LENGTH

/* ---- trees ---- */

/* The position of a traversal of the tree. */
typedef struct Walk {
    CiMemory *level;     /* subtrees that it is in */
    CiMemory *right;     /* per level: elements on its right, 0 when the walk has come there */
    CiMemory *size, *at; /* elements of this subtree; its first */
} Walk;

static const CiExpr *
read(CiReducer *r, CiMemory *memory, const CiExpr *limit)
{
    return ci_build_bind(&r->b, ci_build_load(&r->b, memory, ci_reduce_number(r, 0), 1), limit);
}

static void
write(CiReducer *r, CiMemory *memory, const CiExpr *value)
{
    ci_build_store(&r->b, memory, ci_reduce_number(r, 0), ci_build_index(&r->b, value));
}

static CiMemory *
new_number(CiReducer *r, const char *stem, const CiExpr *value)
{
    CiMemory *made = ci_build_alloc(&r->b, ci_build_name(&r->b, stem), CI_DTYPE_i64, 1,
                                    CI_SPACE_register, ci_reduce_number(r, 1));
    write(r, made, value);
    return made;
}

/* Moves to the leftmost block of this subtree. */
static void
descend(CiReducer *r, const Walk *walk, const CiExpr *count)
{
    CiSym *sym = r->b.sym;
    CiStmt *loop = ci_build_add(&r->b, CI_STMT_loop);
    CiStmts *outside = ci_build_enter(&r->b, &loop->body);
    const CiExpr *size = read(r, walk->size, ci_expr_add(sym, count, ci_reduce_number(r, 1)));
    ci_block_exit(r, size);
    const CiExpr *level = read(r, walk->level, ci_reduce_number(r, MAX_LEVELS)),
                 *half =
                     ci_build_named(&r->b, ci_pairwise_half(sym, r->fold->into[0]->dtype, size));
    ci_build_store(&r->b, walk->right, level, ci_build_index(&r->b, ci_expr_sub(sym, size, half)));
    write(r, walk->level, ci_expr_add(sym, level, ci_reduce_number(r, 1)));
    write(r, walk->size, half);
    ci_build_leave(&r->b, outside);
}

static const CiExpr *
level_above(CiReducer *r, const Walk *walk)
{
    const CiExpr *zero = ci_reduce_number(r, 0), *one = ci_reduce_number(r, 1);
    const CiExpr *level = read(r, walk->level, ci_reduce_number(r, MAX_LEVELS + 1));
    ci_build_test(&r->b, CI_STMT_exit, CI_COMPARE_equal, level, zero);
    return ci_build_named(&r->b, ci_expr_sub(r->b.sym, level, one));
}

/* Ends subtrees: adds the pending sums, which are left operands, to the sums. */
static void
ascend(CiReducer *r, const Walk *walk)
{
    CiStmt *loop = ci_build_add(&r->b, CI_STMT_loop);
    CiStmts *outside = ci_build_enter(&r->b, &loop->body);
    const CiExpr *level = level_above(r, walk);
    const CiExpr *right = ci_build_bind(&r->b, ci_build_load(&r->b, walk->right, level, 1),
                                        ci_expr_add(r->b.sym, r->extent, ci_reduce_number(r, 1)));
    ci_build_test(&r->b, CI_STMT_exit, CI_COMPARE_less, ci_reduce_number(r, 0), right);
    ci_counter_merge(r, level);
    write(r, walk->level, level);
    ci_build_leave(&r->b, outside);
}

static void
leave_pending(CiReducer *r, CiOp fold, int at, int count)
{
    int values[CI_MAX_ACCUMULATORS];
    (void)fold;
    ci_reduce_load(r, values, r->sums + at, count, ci_reduce_number(r, 0), 1);
    ci_reduce_store(r, r->pending + at, count, r->position, values, NULL);
}

/* ---- trees of known size ---- */

static const CiExpr *
left_half(const CiReducer *r, const CiExpr *count)
{
    return ci_pairwise_half(r->b.sym, r->fold->into[0]->dtype, count);
}

static int
count_leaves(const CiReducer *r, const CiExpr *count)
{
    if (ci_block_is_whole(r, count))
        return 1;
    const CiExpr *half = left_half(r, count);
    return count_leaves(r, half) + count_leaves(r, ci_expr_sub(r->b.sym, count, half));
}

/* True if the tree has so few leaves that it is unrolled. */
static bool
is_written_out(const CiReducer *r, const CiExpr *count)
{
    int64_t most = CI_CHOOSE(&r->b, unrolled_leaves);
    bool is_known = count->kind == CI_EXPR_const && r->chains[1];
    return is_known && count->low <= most * ci_block_most_at_once(r) &&
           count_leaves(r, count) <= most;
}

static void
write_out(CiReducer *r, const CiExpr *first, const CiExpr *count, int level)
{
    const CiExpr *half = left_half(r, count);
    if (ci_block_is_whole(r, count)) {
        ci_block_add(r, first, count);
        return;
    }
    write_out(r, first, half, level + 1);
    r->position = ci_reduce_number(r, level);
    ci_reduce_each(r, true, false, leave_pending);
    write_out(r, ci_expr_add(r->b.sym, first, half), ci_expr_sub(r->b.sym, count, half), level + 1);
    ci_counter_merge(r, ci_reduce_number(r, level));
}

/* The elements of each leaf if all leaves are equal, which are few enough to keep their sums; else
 * 0. */
static int64_t
even_leaf(const CiReducer *r, const CiExpr *count)
{
    const CiExpr *leaf = count;
    if (count->kind != CI_EXPR_const || !r->chains[1])
        return 0;
    while (!ci_block_is_whole(r, leaf)) {
        const CiExpr *half = left_half(r, leaf);
        if (2 * half->low != leaf->low)
            return 0;
        leaf = half;
    }
    return count->low / leaf->low <= CI_CHOOSE(&r->b, kept_leaves) ? leaf->low : 0;
}

static void
join_leaves(CiReducer *r, CiOp fold, int at, int count)
{
    int early[CI_MAX_ACCUMULATORS], late[CI_MAX_ACCUMULATORS];
    const CiExpr *left = ci_reduce_scaled(r, r->position, 2);
    ci_reduce_load(r, early, r->pending + at, count, left, 1);
    ci_reduce_load(r, late, r->pending + at, count,
                   ci_expr_add(r->b.sym, left, ci_reduce_number(r, 1)), 1);
    ci_reduction_of(fold)->combine(&r->b, fold, 1, early, late);
    ci_reduce_store(r, r->pending + at, count, r->position, early, NULL);
}

static void
take_root(CiReducer *r, CiOp fold, int at, int count)
{
    int values[CI_MAX_ACCUMULATORS];
    (void)fold;
    ci_reduce_load(r, values, r->pending + at, count, ci_reduce_number(r, 0), 1);
    ci_reduce_store(r, r->sums + at, count, ci_reduce_number(r, 0), values, NULL);
}

/* Calls act at each place below count. */
static void
at_places(CiReducer *r, int64_t count, void (*act)(CiReducer *r, CiOp fold, int at, int count))
{
    CiStmt *loop = ci_build_for(&r->b, "t", ci_reduce_number(r, count), CI_RUN_serial);
    CiStmts *outside = ci_build_enter(&r->b, &loop->body);
    r->position = loop->vars[0];
    ci_reduce_each(r, true, false, act);
    ci_build_leave(&r->b, outside);
}

/* Adds a tree of equal leaves: first the sums of all leaves, then level by level. */
static void
add_even_tree(CiReducer *r, const CiExpr *first, int64_t leaf, int64_t leaves)
{
    CiMemory **pending = r->pending;
    ci_reduce_alloc(r, &r->pending, "leaf", 1, CI_SPACE_stack, leaves);
    CiStmt *loop = ci_build_for(&r->b, "l", ci_reduce_number(r, leaves), CI_RUN_serial);
    CiStmts *outside = ci_build_enter(&r->b, &loop->body);
    ci_block_add(r, ci_expr_add(r->b.sym, first, ci_reduce_scaled(r, loop->vars[0], leaf)),
                 ci_reduce_number(r, leaf));
    r->position = loop->vars[0];
    ci_reduce_each(r, true, false, leave_pending);
    ci_build_leave(&r->b, outside);
    while ((leaves /= 2) > 0)
        at_places(r, leaves, join_leaves);
    ci_reduce_each(r, true, false, take_root);
    r->pending = pending;
}

/* P of `count` elements from number `first` on, into the sums. */
static void
add_tree(CiReducer *r, const CiExpr *first, const CiExpr *count)
{
    if (is_written_out(r, count)) {
        write_out(r, first, count, 0);
        return;
    }
    int64_t leaf = even_leaf(r, count);
    if (leaf) {
        add_even_tree(r, first, leaf, count->low / leaf);
        return;
    }
    CiSym *sym = r->b.sym;
    const CiExpr *zero = ci_reduce_number(r, 0),
                 *size = ci_reduce_number(r, ci_block_most_at_once(r));
    if (ci_block_is_whole(r, count)) {
        ci_block_add(r, first, count);
        return;
    }
    const CiExpr *most = ci_expr_add(sym, count, ci_reduce_number(r, 1));
    Walk walk = {.level = new_number(r, "level", zero),
                 .size = new_number(r, "size", count),
                 .at = new_number(r, "from", zero)};
    walk.right = ci_build_alloc(&r->b, ci_build_name(&r->b, "right"), CI_DTYPE_i64, 1,
                                CI_SPACE_stack, ci_reduce_number(r, MAX_LEVELS));
    CiStmt *loop = ci_build_add(&r->b, CI_STMT_loop);
    CiStmts *outside = ci_build_enter(&r->b, &loop->body);
    descend(r, &walk, count);
    const CiExpr *here = read(r, walk.size, ci_expr_add(sym, size, ci_reduce_number(r, 1))),
                 *at = read(r, walk.at, most);
    ci_block_add(r, ci_expr_add(sym, first, at), here);
    write(r, walk.at, ci_expr_add(sym, at, here));
    ascend(r, &walk);
    r->position = level_above(r, &walk);
    ci_reduce_each(r, true, false, leave_pending);
    ci_build_store(&r->b, walk.size, zero, ci_build_load(&r->b, walk.right, r->position, 1));
    ci_build_store(&r->b, walk.right, r->position, ci_build_index(&r->b, zero));
    ci_build_leave(&r->b, outside);
}

/* ---- the order ---- */

static void
take_sums(CiReducer *r, CiOp fold, int at, int count)
{
    int early[CI_MAX_ACCUMULATORS], late[CI_MAX_ACCUMULATORS];
    const CiExpr *zero = ci_reduce_number(r, 0);
    ci_reduce_load(r, early, r->fold->into + at, count, zero, 1);
    ci_reduce_load(r, late, r->sums + at, count, zero, 1);
    ci_reduction_of(fold)->combine(&r->b, fold, 1, early, late);
    ci_reduce_store(r, r->fold->into + at, count, zero, early, NULL);
}

static void
add_chunk(CiReducer *r, const CiExpr *first, const CiExpr *count)
{
    add_tree(r, first, count);
    ci_reduce_each(r, true, false, take_sums);
}

/* Adds a block of `extent` elements chunk by chunk. */
static void
add_chunks(CiReducer *r)
{
    const CiExpr *chunk = r->fold->order.chunk;
    if (!chunk || ci_sym_known_le(r->b.sym, r->extent, chunk)) {
        add_chunk(r, ci_reduce_number(r, 0), r->extent);
        return;
    }
    CiPiece piece = ci_build_pieces(&r->b, "b", r->extent, chunk, CI_RUN_serial);
    add_chunk(r, piece.first, piece.count);
    ci_build_leave(&r->b, piece.outside);
}

/* Enters the loops around blocks. */
static void
enter_outer(CiReducer *r, int count)
{
    for (int k = 0; k < count; k++) {
        CiStmt *loop = ci_build_loop(&r->b, r->fold->vars[k], r->fold->extents[k], CI_RUN_serial);
        ci_build_enter(&r->b, &loop->body);
    }
}

static void
add_each(CiReducer *r, const CiExpr *first, const CiExpr *count)
{
    CiStmt *loop = ci_build_for(&r->b, "r", count, CI_RUN_serial);
    CiStmts *outside = ci_build_enter(&r->b, &loop->body);
    ci_reduce_step(r, ci_expr_add(r->b.sym, first, loop->vars[0]), ci_reduce_number(r, 0), 1,
                   r->fold->into, NULL);
    ci_build_leave(&r->b, outside);
}

/* Adds blocks of one element each, in order. */
static void
add_in_order(CiReducer *r)
{
    CiStmts *outside = r->b.to;
    if (ci_reduce_calls_ufunc(r)) {
        ci_reduce_in_pieces(r, add_each);
        return;
    }
    int last = r->fold->nvars - 1;
    enter_outer(r, last);
    add_each(r, ci_reduce_number(r, 0), r->fold->extents[last]);
    ci_build_leave(&r->b, outside);
}

static bool
has_free(const CiReducer *r)
{
    for (int k = 0, at = 0; k < r->fold->nops; at += ci_fold_width(r->fold->ops[k++]))
        if (!ci_reduce_is_ordered(r, r->fold->ops[k], at))
            return true;
    return false;
}

static void
finish_free(CiReducer *r, CiOp fold, int at, int count)
{
    int values[CI_MAX_ACCUMULATORS], rest[CI_MAX_ACCUMULATORS];
    const CiExpr *zero = ci_reduce_number(r, 0);
    ci_reduce_halve(r, fold, at, count, values);
    ci_reduce_load(r, rest, r->fold->into + at, count, zero, 1);
    ci_reduction_of(fold)->combine(&r->b, fold, 1, values, rest);
    values[0] = ci_reduce_plain_zero(r, values[0]);
    ci_reduce_store(r, r->fold->into + at, count, zero, values, NULL);
}

/* True if the elements are results of functions that no ufunc loop computes beforehand. */
static bool
has_math(const CiReducer *r)
{
    return ci_stmts_have(&r->body, ci_stmt_is_math) && !ci_reduce_calls_ufunc(r);
}

/* True if chains of additions take most of the time, so that several blocks are added at once: not if elements are
 * results of functions, or if lanes are other results. */
static bool
takes_chains(const CiReducer *r)
{
    return r->b.machine->vector_bytes && !r->is_in_lanes && r->fold->order.ninner == 1 &&
           r->lanes > 1 && !has_free(r) && !has_math(r);
}

static void
choose_lanes(CiReducer *r)
{
    int vectors = !r->b.machine->vector_bytes ? LANES_AT_ONCE : has_math(r) ? 2 : 1;
    r->wide = ci_reduce_lanes_inside(r, r->width * vectors);
    r->lanes = r->wide < r->width ? r->wide : r->width;
    r->chains[1] = NULL;
    ci_reduce_alloc_accumulators(r);
    for (int k = 1; k < CI_CHAINS && takes_chains(r); k++) {
        r->chains[k] = r->acc;
        ci_reduce_alloc_accumulators(r);
    }
    r->chains[0] = r->acc;
}

static void
add_blocks(CiReducer *r)
{
    const CiStmt *whole = r->fold;
    CiStmt inner = *whole;
    int nouter = whole->nvars - whole->order.ninner;
    CiStmts *outside = r->b.to;
    r->width = ci_pairwise_lanes(whole->into[0]->dtype);
    choose_lanes(r);
    ci_reduce_alloc(r, &r->sums, "sum", 1, CI_SPACE_register, 1);
    ci_reduce_alloc(r, &r->pending, "pending", 1, CI_SPACE_stack, MAX_LEVELS);
    ci_reduce_each(r, false, true, ci_reduce_reset);
    enter_outer(r, nouter);
    inner.vars += nouter;
    inner.extents += nouter;
    inner.nvars -= nouter;
    r->fold = &inner;
    r->length = ci_expr_product_of(r->b.sym, inner.extents, inner.nvars);
    r->extent = inner.count ? inner.count : r->length;
    if (inner.nvars > 1 || inner.count)
        ci_reduce_flatten(r);
    ci_reduce_open_window(r);
    add_chunks(r);
    ci_build_leave(&r->b, outside);
    r->fold = whole;
    ci_reduce_each(r, false, true, finish_free);
}

/* Adds code for both orders if a size decides between them when the program runs. */
static void
add_alone_or_in_order(CiReducer *r)
{
    const CiStmt *fold = r->fold;
    CiStmt alone = *fold;
    CiStmt *choice = ci_build_test(&r->b, CI_STMT_if, CI_COMPARE_equal, fold->order.alone,
                                   ci_reduce_number(r, 1));
    CiStmts *outside = ci_build_enter(&r->b, &choice->other);
    add_in_order(r);
    ci_build_enter(&r->b, &choice->body);
    alone.order = (CiFoldOrder){.kind = CI_FOLD_pairwise, .ninner = fold->order.nalone};
    r->fold = &alone;
    add_blocks(r);
    r->fold = fold;
    ci_build_leave(&r->b, outside);
}

void
ci_reduce_pairwise(CiReducer *r)
{
    ci_reduce_each(r, true, true, ci_reduce_start);
    if (r->fold->order.alone)
        add_alone_or_in_order(r);
    else if (r->fold->order.ninner)
        add_blocks(r);
    else
        add_in_order(r);
}
