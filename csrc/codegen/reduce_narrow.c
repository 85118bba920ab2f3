/* Reductions whose accumulators are narrower than their result.
 *
 * A sum of bytes in 64 bits, or a position next to a byte, permits a few lanes only. Here the
 * fold is cut into parts, and the accumulators of a part are as narrow as its elements allow. A sum
 * takes as many steps as its operand's range permits without overflow. A position is the number of a
 * vector within the part. After each part the accumulators are widened, and combined with the result.
 *
 *   acc = 0                              for p<ceildiv(n, 32640) {
 *   for r<n { acc += i64(x[r]) }    ->     u8x32 lanes = 0
 *                                          for c<255 { lanes += x[…] }
 *                                          acc += their sum in 64 bits
 *                                        }
 *
 * Invariant: the reductions are free of order, so that the result does not depend on the parts. */
#include "codegen/reducer.h"

#include "codegen/reduction.h"
#include "ir/interval.h"

typedef struct Narrow {
    CiReducer *r;
    const CiStmt *whole;        /* the reduction before the pass */
    CiStmt fold;                /* the one over narrow accumulators */
    CiStmts body;               /* of the narrow one */
    int bytes;                  /* of a lane of an accumulator */
    int64_t steps;              /* of a part at most, so that no sum overflows */
    const CiExpr *vector;       /* symbol: the number of the vector in its part */
    const CiExpr **position_at; /* by accumulator: the expression of a position; NULL for others */
} Narrow;

/* ---- dtypes ---- */

static CiDtype
integer_of(bool is_signed, int bytes)
{
    static const CiDtype with[] = {CI_DTYPE_i8, CI_DTYPE_i16, CI_DTYPE_i32, CI_DTYPE_i64},
                         without[] = {CI_DTYPE_u8, CI_DTYPE_u16, CI_DTYPE_u32, CI_DTYPE_u64};
    int row = bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3;
    return is_signed ? with[row] : without[row];
}

static bool
is_signed(CiDtype dtype)
{
    return ci_interval_of_type(dtype).low < 0;
}

/* Steps that an accumulator of so many bytes can take. */
static int64_t
steps_of(CiDtype operand, int bytes)
{
    CiInterval range = ci_interval_of_type(operand),
               capacity = ci_interval_of_type(integer_of(range.low < 0, bytes));
    int64_t up = capacity.high / range.high;
    return range.low < 0 && capacity.low / range.low < up ? capacity.low / range.low : up;
}

static bool
is_integer_sum(CiOp fold, CiDtype dtype)
{
    return ci_op_combine(fold) == CI_OP_add && ci_dtype_is_integral(dtype) &&
           dtype != CI_DTYPE_bool;
}

static bool
is_arg_position(CiOp fold)
{
    return ci_op_kind(fold) == CI_OPKIND_argreduce;
}

/* ---- the body ---- */

static CiStmt *
find_let(const CiStmts *block, int value)
{
    CiStmt *stmt = block->first;
    while (stmt && stmt->value != value)
        stmt = stmt->next;
    return stmt;
}

/* True if a sum of casted values is, in the accumulator's width, the sum of the values: the cast keeps
 * every value, or wraps as the sum does. */
static bool
keeps_sum(CiDtype from, CiDtype to, CiDtype sum)
{
    return ci_dtype_is_integral(from) && ci_dtype_size(from) < ci_dtype_size(to) &&
           (ci_dtype_size(to) >= ci_dtype_size(sum) ||
            ci_interval_is_within(ci_interval_of_type(from), ci_interval_of_type(to)));
}

/* The integer of fewer bytes from which such casts have made an operand of a sum, or the operand itself. */
static int
before_casts(const Narrow *n, int operand)
{
    const CiType *types = n->r->b.proc->types;
    const CiStmt *let = find_let(&n->body, operand);
    int value = operand;
    while (let && let->op == CI_OP_cast &&
           keeps_sum(types[let->args[0]].dtype, types[value].dtype, types[operand].dtype)) {
        value = let->args[0];
        let = find_let(&n->body, value);
    }
    return value;
}

/* Removes lets of the block that nothing uses, until none is left. */
void
ci_build_drop_unused(CiBuild *b, CiStmts *block)
{
    bool has_changed = true;
    while (has_changed) {
        int *uses = CI_NEW_ARRAY(b->ctx, int, b->proc->nvalues + 1);
        CiStmts kept = {0};
        has_changed = false;
        ci_stmts_count_uses(block, uses);
        CiStmts *outside = ci_build_enter(b, &kept);
        for (CiStmt *next, *stmt = block->first; stmt; stmt = next) {
            next = stmt->next;
            bool is_unused = stmt->kind == CI_STMT_let && stmt->op != CI_OP_bind &&
                             !stmt->cell && uses[stmt->value] == 0;
            has_changed |= is_unused;
            if (!is_unused)
                ci_build_move(b, stmt);
        }
        ci_build_leave(b, outside);
        *block = kept;
    }
}

static int
cast_to(CiBuild *b, int value, CiDtype dtype)
{
    CiType type = ci_type_of(dtype, b->proc->types[value].lanes);
    return b->proc->types[value].dtype == dtype ? value
                                                : ci_build_let(b, type, CI_OP_cast, 1, &value);
}

static CiMemory *
narrow_memory(Narrow *n, int at, CiDtype dtype)
{
    CiMemory *made = CI_NEW(n->r->b.ctx, CiMemory);
    *made = *n->whole->into[at];
    made->dtype = dtype;
    return made;
}

/* Accumulator `at` of a sum: the operand without its last cast, as wide as a lane is. */
static int
narrow_sum(Narrow *n, int at, int operand)
{
    CiBuild *b = &n->r->b;
    int source = before_casts(n, operand);
    CiDtype dtype = b->proc->types[source].dtype;
    int size = (int)ci_dtype_size(n->whole->into[at]->dtype);
    if (source == operand || n->bytes >= size)
        return operand;
    int64_t steps = steps_of(dtype, n->bytes);
    n->steps = steps < n->steps ? steps : n->steps;
    dtype = integer_of(is_signed(dtype), n->bytes);
    n->fold.into[at] = narrow_memory(n, at, dtype);
    return cast_to(b, source, dtype);
}

/* Accumulator `at` of a position: the number of the vector in the part instead of the position. */
static int
narrow_position(Narrow *n, int at, int operand)
{
    CiBuild *b = &n->r->b;
    const CiStmt *let = find_let(&n->body, operand);
    const CiExpr *coef, *rest;
    CI_REQUIRE(b->ctx, let && (let->op == CI_OP_index || let->op == CI_OP_iota));
    CI_REQUIRE(b->ctx, ci_expr_split_linear(b->sym, let->expr, n->r->var, &coef, &rest));
    CiDtype dtype = integer_of(false, n->bytes);
    n->position_at[at] = let->expr;
    n->fold.into[at] = narrow_memory(n, at, dtype);
    return cast_to(b, ci_build_index(b, n->vector), dtype);
}

/* The body for lanes of so many bytes. */
static void
build_body(Narrow *n, int bytes)
{
    CiReducer *r = n->r;
    CiAt same = {.lanes = 1};
    int *yielded = CI_NEW_ARRAY(r->b.ctx, int, n->whole->ninto + 1);
    n->bytes = bytes;
    n->steps = INT32_MAX;
    n->body = (CiStmts){0};
    n->fold = *n->whole;
    n->fold.into = CI_NEW_ARRAY(r->b.ctx, CiMemory *, n->whole->ninto + 1);
    CiStmts *outside = ci_build_enter(&r->b, &n->body);
    const int *lifted = ci_build_at(&r->b, &r->body, &same);
    for (int k = 0, at = 0; k < n->whole->nops; k++) {
        CiOp fold = n->whole->ops[k];
        for (int w = 0; w < ci_fold_width(fold); w++, at++) {
            n->fold.into[at] = n->whole->into[at];
            yielded[at] = is_integer_sum(fold, n->whole->into[at]->dtype)
                              ? narrow_sum(n, at, lifted[at])
                          : w == 1 && is_arg_position(fold) ? narrow_position(n, at, lifted[at])
                                                     : lifted[at];
        }
    }
    ci_build_yield(&r->b, yielded, n->whole->ninto);
    ci_build_leave(&r->b, outside);
    ci_build_drop_unused(&r->b, &n->body);
}

/* ---- how narrow ---- */

static int
lanes_of(Narrow *n)
{
    int lanes = ci_choose_lanes(&n->r->b, &n->body, n->r->var, INT32_MAX);
    return lanes < 1 ? 1 : lanes;
}

/* Bytes of a lane: as many as an element has, and as a sum needs for enough steps. */
static int
choose_bytes(Narrow *n)
{
    const CiReducer *r = n->r;
    int bytes = r->b.machine->vector_bytes / lanes_of(n);
    const CiStmt *yield = r->body.last;
    for (int k = 0, at = 0; k < n->whole->nops; at += ci_fold_width(n->whole->ops[k++])) {
        CiDtype whole = n->whole->into[at]->dtype;
        if (!is_integer_sum(n->whole->ops[k], whole))
            continue;
        n->body = r->body;
        CiDtype operand = r->b.proc->types[before_casts(n, yield->args[at])].dtype;
        while (bytes < (int)ci_dtype_size(whole) && steps_of(operand, bytes) < CI_CHOOSE(&r->b, narrow_steps))
            bytes *= 2;
    }
    return bytes;
}

/* True if a position is no number of an element: one that a part has found, and left in memory. */
static bool
has_found_positions(const Narrow *n)
{
    const CiStmts *body = &n->r->body;
    for (int k = 0, at = 0; k < n->whole->nops; at += ci_fold_width(n->whole->ops[k++])) {
        const CiStmt *let = is_arg_position(n->whole->ops[k]) ? find_let(body, body->last->args[at + 1]) : NULL;
        if (let && let->op != CI_OP_index && let->op != CI_OP_iota)
            return true;
    }
    return false;
}

/* True if narrow accumulators would have more lanes; then the body is the one with them. */
static bool
is_worth_it(Narrow *n, int64_t extent)
{
    CiReducer *r = n->r;
    const CiStmt *yield = r->body.last;
    CI_REQUIRE(r->b.ctx, yield && yield->kind == CI_STMT_yield);
    if (has_found_positions(n))
        return false;
    build_body(n, 1);
    build_body(n, choose_bytes(n));
    int lanes = lanes_of(n);
    while (lanes > 1 && lanes / 2 >= extent)
        lanes /= 2;
    if (lanes <= r->lanes || extent < 2 * r->width)
        return false;
    r->lanes = lanes;
    return true;
}

/* ---- the end of a part ---- */

static int
splat(CiReducer *r, int value)
{
    CiType type = r->b.proc->types[value];
    type.lanes = r->lanes;
    return r->lanes > 1 ? ci_build_let(&r->b, type, CI_OP_splat, 1, &value) : value;
}

static int
number(CiReducer *r, CiDtype dtype, int64_t value)
{
    return ci_build_const(&r->b, ci_type_of(dtype, 1), ci_const_int(dtype, value));
}

static int
apply(CiReducer *r, CiOp op, CiDtype dtype, int left, int right)
{
    const int args[] = {left, right};
    return ci_build_let(&r->b, ci_type_of(dtype, r->b.proc->types[left].lanes), op, 2, args);
}

static int
choose(CiReducer *r, int condition, int yes, int no)
{
    const int args[] = {condition, yes, no};
    return ci_build_let(&r->b, r->b.proc->types[yes], CI_OP_where, 3, args);
}

/* Half as many lanes, each twice as wide, until they are as wide as the result. */
static int
widen(CiReducer *r, int value, CiDtype into)
{
    CiType type = r->b.proc->types[value];
    while (type.lanes > 1 && ci_dtype_size(type.dtype) < ci_dtype_size(into)) {
        int halves[2];
        type.lanes /= 2;
        CiDtype wide = integer_of(is_signed(type.dtype), 2 * (int)ci_dtype_size(type.dtype));
        halves[0] = cast_to(&r->b, ci_build_let(&r->b, type, CI_OP_low, 1, &value), wide);
        halves[1] = cast_to(&r->b, ci_build_let(&r->b, type, CI_OP_high, 1, &value), wide);
        type.dtype = wide;
        value = apply(r, CI_OP_add, wide, halves[0], halves[1]);
    }
    return cast_to(&r->b, value, into);
}

static void
close_sum(Narrow *n, CiOp fold, int at, int *values)
{
    CiReducer *r = n->r;
    for (int row = 0; row < r->width / r->lanes; row++) {
        int some = ci_build_load(&r->b, r->acc[at], ci_reduce_number(r, row), r->lanes);
        some = widen(r, some, n->whole->into[at]->dtype);
        values[0] = row ? apply(r, CI_OP_add, n->whole->into[at]->dtype, values[0], some) : some;
    }
    ci_reduce_halve_lanes(r, fold, 1, values);
}

/* The position in the fold's points of lane `lane` of vector `vector` of the part from `first` on. */
static int
position(Narrow *n, int at, const CiExpr *first, int vector, int lane)
{
    CiReducer *r = n->r;
    const CiExpr *coef, *rest, *place = n->position_at[at];
    ci_expr_split_linear(r->b.sym, place, r->var, &coef, &rest);
    int begin = ci_build_index(&r->b, ci_expr_substitute(r->b.sym, place, 1, &r->var, &first)),
        step = ci_build_index(&r->b, coef);
    int element = apply(r, CI_OP_multiply, CI_DTYPE_i64, cast_to(&r->b, vector, CI_DTYPE_i64),
                        number(r, CI_DTYPE_i64, r->lanes));
    element = apply(r, CI_OP_add, CI_DTYPE_i64, element, cast_to(&r->b, lane, CI_DTYPE_i64));
    element = apply(r, CI_OP_multiply, CI_DTYPE_i64, element, step);
    element = apply(r, CI_OP_add, CI_DTYPE_i64, begin, element);
    return cast_to(&r->b, element, n->whole->into[at]->dtype);
}

/* The extreme of all lanes; of the lanes that have it the least vector; of those the first lane. */
static void
close_position(Narrow *n, CiOp fold, int at, const CiExpr *first, int *values)
{
    CiReducer *r = n->r;
    const CiExpr *zero = ci_reduce_number(r, 0);
    CiDtype dtype = n->fold.into[at + 1]->dtype;
    ci_reduce_halve_rows(r, fold, at, 2);
    int value = ci_build_load(&r->b, r->acc[at], zero, r->lanes),
        vector = ci_build_load(&r->b, r->acc[at + 1], zero, r->lanes),
        none = splat(r, number(r, dtype, ci_interval_of_type(dtype).high)), best = value;
    ci_reduce_halve_lanes(r, fold == CI_OP_argmax ? CI_OP_max : CI_OP_min, 1, &best);
    int is_worse = ci_reduction_is_better(&r->b, fold, r->lanes, value, splat(r, best)),
        least = choose(r, is_worse, none, vector), candidates = least;
    ci_reduce_halve_lanes(r, CI_OP_min, 1, &least);
    int lane = ci_build_let(&r->b, ci_type_of(dtype, r->lanes), CI_OP_iota, 0, NULL);
    r->b.to->last->expr = zero;
    int is_first = apply(r, CI_OP_equal, CI_DTYPE_bool, candidates, splat(r, least));
    lane = choose(r, is_first, lane, none);
    ci_reduce_halve_lanes(r, CI_OP_min, 1, &lane);
    values[0] = best;
    values[1] = position(n, at + 1, first, least, lane);
}

/* Combines the accumulators of the part from element `first` on with the results. */
static void
close_part(Narrow *n, const CiExpr *first)
{
    CiReducer *r = n->r;
    for (int k = 0, at = 0; k < n->whole->nops; at += ci_fold_width(n->whole->ops[k++])) {
        CiOp fold = n->whole->ops[k];
        int found[CI_MAX_ACCUMULATORS], values[CI_MAX_ACCUMULATORS], count = ci_fold_width(fold);
        if (is_arg_position(fold))
            close_position(n, fold, at, first, found);
        else if (n->fold.into[at] != n->whole->into[at])
            close_sum(n, fold, at, found);
        else
            ci_reduce_halve(r, fold, at, count, found);
        ci_reduce_load(r, values, n->whole->into + at, count, ci_reduce_number(r, 0), 1);
        ci_reduction_of(fold)->combine(&r->b, fold, 1, values, found);
        ci_reduce_store(r, n->whole->into + at, count, ci_reduce_number(r, 0), values, NULL);
    }
}

/* ---- parts ---- */

static int64_t
part_length(const Narrow *n)
{
    int rows = n->r->width / n->r->lanes;
    int64_t steps = n->steps, vectors = n->bytes < 4 ? ((int64_t)1 << (8 * n->bytes)) - 1 : INT32_MAX;
    for (int k = 0; k < n->whole->nops; k++)
        if (is_arg_position(n->whole->ops[k]) && vectors / rows < steps)
            steps = vectors / rows;
    return steps * n->r->width;
}

static void
add_part(Narrow *n, const CiExpr *first, const CiExpr *count)
{
    n->r->chunk = first;
    ci_reduce_each(n->r, true, true, ci_reduce_reset);
    ci_reduce_chains(n->r, first, count);
    close_part(n, first);
}

static void
add_parts(Narrow *n)
{
    CiReducer *r = n->r;
    const CiExpr *length = ci_reduce_number(r, part_length(n));
    if (r->extent->high <= length->low) {
        add_part(n, ci_reduce_number(r, 0), r->extent);
        return;
    }
    CiPiece piece = ci_build_pieces(&r->b, "p", r->extent, length, CI_RUN_serial);
    add_part(n, piece.first, piece.count);
    ci_build_leave(&r->b, piece.outside);
}

bool
ci_reduce_narrow(CiReducer *r)
{
    const CiStmt *whole = r->fold;
    Narrow n = {.r = r, .whole = whole};
    if (!r->b.machine->vector_bytes || r->is_in_lanes)
        return false;
    n.vector = ci_expr_index(r->b.sym, ci_build_name(&r->b, "v"), ci_reduce_number(r, INT32_MAX));
    n.position_at = CI_NEW_ARRAY(r->b.ctx, const CiExpr *, whole->ninto + 1);
    if (!is_worth_it(&n, r->extent->high))
        return false;
    ci_reduce_each(r, true, true, ci_reduce_start);
    r->width = r->lanes;
    for (int chains = r->b.machine->chains; chains > 1 && r->width < r->extent->high; chains /= 2)
        r->width *= 2;
    CiStmts *outside = r->b.to;
    for (int k = 0; k < whole->nvars - 1; k++) {
        CiStmt *loop = ci_build_loop(&r->b, whole->vars[k], whole->extents[k], CI_RUN_serial);
        ci_build_enter(&r->b, &loop->body);
    }
    r->fold = &n.fold;
    r->body = n.body;
    r->vector = n.vector;
    ci_reduce_alloc_accumulators(r);
    add_parts(&n);
    r->vector = NULL;
    r->fold = whole;
    ci_build_leave(&r->b, outside);
    return true;
}
