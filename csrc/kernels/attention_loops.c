/* The loops of an attention, taken apart: factors, score, epilogue, and the keys that a comparison excludes. */
#include "kernels/kernels.h"

#include <math.h>

typedef struct Taker {
    CiBuild b;
    CiAttentionLoops loops;
} Taker;

#define BUILDER Taker
#include "codegen/arithmetic.def"

/* ---- factors, score and epilogue ---- */

typedef struct Folds {
    CiStmt *folds[4];
    CiStmt *loops[4]; /* around them, or NULL */
    int count;
} Folds;

static void
find_folds(Folds *found, const CiStmts *block, CiStmt *loop)
{
    for (CiStmt *stmt = block->first; stmt; stmt = stmt->next) {
        if (stmt->kind == CI_STMT_fold && found->count < 4) {
            found->folds[found->count] = stmt;
            found->loops[found->count++] = loop;
        } else if (stmt->kind == CI_STMT_for) {
            find_folds(found, &stmt->body, stmt);
        }
    }
}

/* The memory that the first store after a fold stores to: the fold's result. */
static CiMemory *
stored_after(Taker *m, const CiStmt *fold)
{
    const CiStmt *stmt = fold->next;
    while (stmt && stmt->kind != CI_STMT_store)
        stmt = stmt->next;
    CI_REQUIRE(m->b.ctx, stmt);
    return stmt->at.memory;
}

/* A loop after the statement stores to the memory. */
static bool
is_stored_after(const CiStmt *stmt, const CiMemory *memory)
{
    for (stmt = stmt->next; stmt; stmt = stmt->next)
        for (const CiStmt *inside = stmt->kind == CI_STMT_for ? stmt->body.first : NULL; inside; inside = inside->next)
            if (inside->kind == CI_STMT_store && inside->at.memory == memory)
                return true;
    return false;
}

static CiHole
factor_hole(Taker *m, const CiStmts *body, int value)
{
    int narrow = ci_find_narrow(&m->b, body, value), factor = narrow < 0 ? value : narrow;
    m->loops.narrow = m->b.proc->types[factor].dtype;
    return ci_hole_of_value(&m->b, body, factor);
}

/* Of the factors of a sum of products the one that is the same for all columns, and the other one. */
static void
take_factors(Taker *m, const CiStmt *fold, const CiExpr *column, CiHole *left, CiHole *right)
{
    const CiStmt *times_of = fold->body.first;
    while (times_of && times_of->value != fold->body.last->args[0])
        times_of = times_of->next;
    CI_REQUIRE(m->b.ctx, times_of && times_of->op == CI_OP_multiply);
    *left = factor_hole(m, &fold->body, times_of->args[0]);
    *right = factor_hole(m, &fold->body, times_of->args[1]);
    if (ci_hole_varies(left, column)) {
        CiHole other = *left;
        *left = *right;
        *right = other;
    }
}

/* Moves to the epilogue the statements of a block but the fold, and stores of its result to memory of the point. */
static void
move_after(Taker *m, CiStmts *block)
{
    for (CiStmt *next, *stmt = block->first; stmt; stmt = next) {
        next = stmt->next;
        bool is_result = stmt->kind == CI_STMT_store && stmt->at.memory == m->loops.result_memory &&
                         m->loops.result_memory->space != CI_SPACE_global;
        bool is_acc = stmt->kind == CI_STMT_alloc && stmt->memory == m->loops.second->into[0];
        if (stmt != m->loops.second && !is_result && !is_acc)
            ci_build_move(&m->b, stmt);
    }
}

/* Moves the epilogue out of the loop of the second product and of the loops after it. */
static void
take_after(Taker *m, CiStmts *points, CiStmt *loop)
{
    CiBuild *b = &m->b;
    CiStmts *outside = ci_build_enter(b, &m->loops.behind);
    CiStmt *after = loop->next;
    for (CiStmt *next, *stmt = points->first; stmt; stmt = next) {
        next = stmt->next;
        if (stmt->kind == CI_STMT_alloc && stmt->memory->space == CI_SPACE_register && stmt->memory != m->loops.sum_memory &&
            stmt->memory != m->loops.result_memory)
            ci_build_move(b, stmt);
    }
    move_after(m, &loop->body);
    for (CiStmt *next; after; after = next) {
        next = after->next;
        CI_REQUIRE(b->ctx, after->kind == CI_STMT_for && after->vars[0] == m->loops.column_var);
        move_after(m, &after->body);
    }
    ci_build_leave(b, outside);
}

static void
take_apart(Taker *m)
{
    CiBuild *b = &m->b;
    CiStmts *inside = &b->proc->body;
    Folds found = {.count = 0};
    for (; m->loops.npoints < b->proc->head.naxes; inside = &inside->first->body) {
        CI_REQUIRE(b->ctx, inside->first && inside->first->kind == CI_STMT_for && m->loops.npoints < CI_MAX_FOLD_AXES);
        m->loops.points[m->loops.npoints++] = inside->first;
    }
    find_folds(&found, inside, NULL);
    CI_REQUIRE(b->ctx, found.count == 4 && found.loops[0] && found.loops[3] && m->loops.npoints);
    m->loops.first = found.folds[0];
    m->loops.top = found.folds[1];
    m->loops.sum = found.folds[2];
    m->loops.second = found.folds[3];
    m->loops.row_var = m->loops.points[m->loops.npoints - 1]->vars[0];
    m->loops.row_extent = m->loops.points[m->loops.npoints - 1]->extents[0];
    m->loops.key_var = found.loops[0]->vars[0];
    m->loops.key_extent = found.loops[0]->extents[0];
    m->loops.column_var = found.loops[3]->vars[0];
    m->loops.column_extent = found.loops[3]->extents[0];
    m->loops.head = m->loops.first->extents[0];
    m->loops.scores_memory = stored_after(m, m->loops.first);
    m->loops.sum_memory = stored_after(m, m->loops.sum);
    take_factors(m, m->loops.second, m->loops.column_var, &m->loops.weights, &m->loops.values);
    take_factors(m, m->loops.first, m->loops.key_var, &m->loops.rows, &m->loops.keys);
    m->loops.has_quotients = m->loops.weights.load && is_stored_after(found.loops[2] ? found.loops[2] : found.folds[2],
                                                                       m->loops.weights.load->at.memory);
    m->loops.score = ci_hole_of_value(b, &m->loops.top->body, m->loops.top->body.last->args[0]);
    m->loops.result_memory = stored_after(m, m->loops.second);
    take_after(m, inside, found.loops[3]);
}

/* ---- keys that are excluded ---- */

static CiStmt *
made(const CiStmts *body, int value)
{
    CiStmt *stmt = body->first;
    while (stmt && stmt->value != value)
        stmt = stmt->next;
    return stmt;
}

static CiStmt *
after_casts(const CiStmts *body, int value)
{
    CiStmt *stmt = made(body, value);
    while (stmt && stmt->op == CI_OP_cast)
        stmt = made(body, stmt->args[0]);
    return stmt;
}

/* ---- products by a power of two ---- */

/* The power of two, or 0. */
static double
power_of_two(const CiStmts *body, int value)
{
    const CiStmt *stmt = made(body, value);
    int exponent;
    bool is_one = stmt && stmt->op == CI_OP_const && stmt->constant.re > 0 && stmt->constant.re <= 1 &&
                  frexp(stmt->constant.re, &exponent) == 0.5;
    return is_one ? stmt->constant.re : 0;
}

/* True for a choice between that value and an infinity. */
static bool
is_choice_of(const CiStmts *body, const CiStmt *stmt, int value)
{
    if (stmt->op != CI_OP_where || stmt->args[0] == value || (stmt->args[1] == value) == (stmt->args[2] == value))
        return false;
    const CiStmt *other = after_casts(body, stmt->args[stmt->args[1] == value ? 2 : 1]);
    return other && other->op == CI_OP_const && isinf(other->constant.re);
}

static int
count_uses(const CiStmts *body, int value)
{
    int count = 0;
    for (const CiStmt *stmt = body->first; stmt; stmt = stmt->next)
        for (int k = 0; k < stmt->nargs; k++)
            count += stmt->args[k] == value;
    return count;
}

/* The statement that uses the value, if no other one does. */
static CiStmt *
only_use(const CiStmts *body, int value)
{
    CiStmt *stmt = body->first;
    for (; stmt && count_uses(body, value) == 1; stmt = stmt->next)
        for (int k = 0; k < stmt->nargs; k++)
            if (stmt->args[k] == value)
                return stmt;
    return NULL;
}

/* The product of a narrow float by a power of two that the score is, or is where it is not infinite. */
static CiStmt *
find_scaled(const CiStmts *body, CiDtype narrow)
{
    CiStmt *found = NULL;
    for (CiStmt *stmt = body->first; stmt; stmt = stmt->next)
        if (stmt->op == CI_OP_multiply && stmt->type.dtype == narrow &&
            (power_of_two(body, stmt->args[0]) != 0 || power_of_two(body, stmt->args[1]) != 0))
            found = stmt;
    const CiStmt *use = found ? only_use(body, found->value) : NULL;
    for (int value = found ? found->value : -1; use && use != body->last; use = only_use(body, value)) {
        bool is_cast = use->op == CI_OP_cast && use->type.dtype == CI_DTYPE_f32;
        if (!is_cast && !is_choice_of(body, use, value))
            return NULL;
        value = use->value;
    }
    return use ? found : NULL;
}

/* Weights are powers of differences of scores, and the largest one of products by a power of two is at the largest factor.
 * So the product moves to the exponent, and its rounding goes: it loses bits only where the score is so small that they
 * are below 2^-25, and the weights are computed less exactly than that. */
static void
move_scale(Taker *m)
{
    CiHole *hole = &m->loops.score, copy = {0};
    CiStmt *scaled = ci_dtype_is_narrow(m->loops.narrow) ? find_scaled(&hole->body, m->loops.narrow) : NULL;
    m->loops.scale = 1;
    if (!scaled)
        return;
    bool is_left = power_of_two(&hole->body, scaled->args[0]) != 0;
    m->loops.scale = power_of_two(&hole->body, scaled->args[!is_left]);
    scaled->args[0] = scaled->args[is_left];
    scaled->op = CI_OP_cast;
    scaled->nargs = 1;
    CiType wide = ci_type_of(CI_DTYPE_f32, 1);
    int value = -1;
    CiStmts *outside = ci_build_enter(&m->b, &copy.body);
    for (CiStmt *stmt = hole->body.first; stmt; stmt = stmt->next) {
        bool is_choice = stmt->op == CI_OP_where && (stmt->args[1] == value || stmt->args[2] == value);
        for (int k = 1; k < stmt->nargs && is_choice; k++)
            if (m->b.proc->types[stmt->args[k]].dtype != CI_DTYPE_f32)
                stmt->args[k] = ci_build_let(&m->b, wide, CI_OP_cast, 1, &stmt->args[k]);
        CiStmt *own = ci_build_copy(&m->b, stmt);
        if (stmt == scaled || is_choice) {
            own->type = m->b.proc->types[own->value] = wide;
            value = own->value;
        }
    }
    ci_build_leave(&m->b, outside);
    *hole = copy;
}

/* A product that is rounded before all else: its rounding leaves the score. */
static void
take_rounding(Taker *m)
{
    const CiStmts *body = &m->loops.score.body;
    const CiStmt *load = body->first, *round = NULL;
    while (load && (load->op != CI_OP_load || load->at.memory != m->loops.scores_memory))
        load = load->next;
    if (load && ci_dtype_is_narrow(m->loops.narrow) && load->type.dtype == CI_DTYPE_f32)
        round = only_use(body, load->value);
    if (!round || round->op != CI_OP_cast || round->type.dtype != m->loops.narrow)
        return;
    for (const CiStmt *stmt = body->first; stmt; stmt = stmt->next)
        for (int k = 0; k < stmt->nargs; k++)
            if (stmt->args[k] == round->value && (stmt->op != CI_OP_cast || stmt->type.dtype != CI_DTYPE_f32))
                return;
    for (CiStmt *stmt = body->first; stmt; stmt = stmt->next)
        if (stmt->nargs == 1 && stmt->args[0] == round->value)
            stmt->args[0] = load->value;
    m->loops.is_rounded = true;
}

/* The expression that is at least 0 where the comparison holds; NULL: it does not compare indices. */
static const CiExpr *
distance_of(Taker *m, const CiStmts *body, const CiStmt *compare)
{
    bool is_more = compare->op == CI_OP_greater || compare->op == CI_OP_greater_equal,
         is_less = compare->op == CI_OP_less || compare->op == CI_OP_less_equal;
    const CiStmt *left = is_more || is_less ? made(body, compare->args[0]) : NULL,
                 *right = left ? made(body, compare->args[1]) : NULL;
    if (!right || left->op != CI_OP_index || right->op != CI_OP_index)
        return NULL;
    const CiExpr *distance = is_more ? ci_expr_sub(m->b.sym, left->expr, right->expr)
                                     : ci_expr_sub(m->b.sym, right->expr, left->expr);
    bool is_strict = compare->op == CI_OP_greater || compare->op == CI_OP_less;
    return is_strict ? plus(m, distance, number(m, -1)) : distance;
}

static CiHole
without_test(Taker *m, const CiHole *hole, const CiStmt *test)
{
    CiHole copy = {0};
    CiStmts *outside = ci_build_enter(&m->b, &copy.body);
    for (const CiStmt *stmt = hole->body.first; stmt; stmt = stmt->next) {
        CiStmt *own = ci_build_copy(&m->b, stmt);
        if (stmt != test)
            continue;
        own->op = CI_OP_const;
        own->nargs = 0;
        own->constant = ci_const_int(CI_DTYPE_bool, 1);
    }
    ci_build_leave(&m->b, outside);
    return copy;
}

/* The score is -inf from some key on, which increases with the row. */
static void
find_limit(Taker *m)
{
    const CiStmts *body = &m->loops.score.body;
    const CiExpr *of_row, *of_key, *rest, *ahead;
    int64_t row_step, key_step;
    const CiStmt *choice = after_casts(body, body->last->args[0]);
    const CiStmt *compare = choice && choice->op == CI_OP_where ? made(body, choice->args[0]) : NULL,
                 *other = compare ? after_casts(body, choice->args[2]) : NULL;
    if (!other || other->op != CI_OP_const || !isinf(other->constant.re) || other->constant.re > 0)
        return;
    const CiExpr *distance = distance_of(m, body, compare);
    if (!distance || !ci_expr_split_linear(m->b.sym, distance, m->loops.row_var, &of_row, &rest) ||
        !ci_expr_split_linear(m->b.sym, rest, m->loops.key_var, &of_key, &ahead) || !ci_expr_is_const(of_row, &row_step) ||
        !ci_expr_is_const(of_key, &key_step) || row_step != 1 || key_step != -1)
        return;
    m->loops.has_limit = true;
    m->loops.ahead = ahead;
    m->loops.open_score = without_test(m, &m->loops.score, compare);
}

CiAttentionLoops
ci_attention_split(CiBuild *b)
{
    Taker m = {.b = *b};
    take_apart(&m);
    move_scale(&m);
    take_rounding(&m);
    find_limit(&m);
    return m.loops;
}

/* ---- what both builders make of them ---- */

int
ci_attention_score(CiBuild *b, const CiAttentionLoops *loops, const CiHole *score, const CiExpr *row, const CiExpr *key,
                   CiAccess product, CiSymbols symbols)
{
    CiStmts body = score->body;
    ci_symbols_add(&symbols, loops->row_var, row);
    ci_symbols_add(&symbols, loops->key_var, key);
    ci_read_from(&body, loops->scores_memory, product.memory, product.index);
    return ci_build_with(b, &body, &symbols)[0];
}

void
ci_attention_put_after(CiBuild *b, CiAttentionLoops *loops, const CiExpr *row, const CiExpr *column, CiAccess result,
                       CiAccess sum, CiSymbols symbols)
{
    ci_symbols_add(&symbols, loops->row_var, row);
    ci_symbols_add(&symbols, loops->column_var, column);
    ci_read_from(&loops->behind, loops->second->into[0], result.memory, result.index);
    ci_read_from(&loops->behind, loops->result_memory, result.memory, result.index);
    ci_read_from(&loops->behind, loops->sum_memory, sum.memory, sum.index);
    loops->sum_memory = sum.memory;
    ci_build_with(b, &loops->behind, &symbols);
}
