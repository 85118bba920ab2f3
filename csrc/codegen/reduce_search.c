/* `any`, `all`, and the extreme of bools with its position are decided by one element: the first one that is true (`any`,
 * argmax) or false (`all`, argmin). So they are searches, which read no further than that.
 *
 *   fold acc = argmax over r<n {…}  ->
 *   store acc = (false, 0)
 *   for c<floordiv(n, 128) {        exit if one of the elements [128*c, 128*c + 128) is true
 *                                   store passed = c + 1 }
 *   for w<4 {                       k = the first lane that is true of [128*passed + 32*w, …)
 *                                   if k < 32 { store acc = the element there } exit if k < 32 }
 *
 * If such a fold is split, each unit first checks if another one has found the answer (split_reduction.c).
 *
 * Elements that are not read must not be able to raise a floating-point flag, because NumPy would have warned. Lanes end
 * together, so a fold inside a loop over lanes is no search. */
#include "codegen/reducer.h"
#include "codegen/split.h"

typedef struct Search {
    CiReducer *r;
    CiStmts value; /* the body, which yields the bool alone */
    CiMemory *is_found;
    int lanes, width; /* of a vector; of a block of vectors */
} Search;

static bool
is_loud(const CiStmt *stmt)
{
    CiDtype dtype = stmt->type.dtype;
    if (stmt->kind == CI_STMT_yield)
        return false;
    if (stmt->kind != CI_STMT_let || ci_stmt_is_running(stmt))
        return true;
    bool is_given = stmt->op == CI_OP_load || stmt->op == CI_OP_const || stmt->op == CI_OP_index ||
                    stmt->op == CI_OP_bind;
    bool is_quiet = dtype == CI_DTYPE_bool || ci_op_has(stmt->op, CI_FACT_keeps) ||
                    ci_op_has(stmt->op, CI_FACT_each_bit);
    return !is_given && (!is_quiet || ci_op_kind(stmt->op) != CI_OPKIND_pointwise);
}

bool
ci_fold_is_search(const CiStmt *fold)
{
    bool is_arg_position = fold->ops[0] == CI_OP_argmax || fold->ops[0] == CI_OP_argmin,
         is_one = fold->nops == 1 && (is_arg_position || fold->ops[0] == CI_OP_any || fold->ops[0] == CI_OP_all) &&
                  fold->into[0]->dtype == CI_DTYPE_bool && fold->into[0]->lanes == 1;
    return is_one && !fold->blocks && !ci_stmts_have(&fold->body, is_loud);
}

bool
ci_search_is_for_true(const CiStmt *fold)
{
    return fold->ops[0] == CI_OP_any || fold->ops[0] == CI_OP_argmax;
}

static CiType
bool_type(int lanes)
{
    return ci_type_of(CI_DTYPE_bool, lanes);
}

static void
build_value(Search *s)
{
    CiReducer *r = s->r;
    CiAt same = {.lanes = 1};
    CiStmts *outside = ci_build_enter(&r->b, &s->value);
    ci_build_yield(&r->b, ci_build_at(&r->b, &r->body, &same), 1);
    ci_build_leave(&r->b, outside);
    ci_build_drop_unused(&r->b, &s->value);
}

/* Which of the elements from `first` on decide, of which there are `live` (NULL: a vector). */
static int
test_strip(Search *s, const CiExpr *first, const CiExpr *live)
{
    CiReducer *r = s->r;
    CiAt at = {1, &r->var, &first, r->var, s->lanes, live, 1};
    int value = ci_build_at(&r->b, &s->value, &at)[0];
    return ci_search_is_for_true(r->fold) ? value
                                          : ci_build_let(&r->b, bool_type(s->lanes), CI_OP_logical_not, 1, &value);
}

static int
first_true(Search *s, int mask)
{
    return ci_build_let(&s->r->b, ci_type_of(CI_DTYPE_i64, 1), CI_OP_first_true, 1, &mask);
}

static int
is_below(Search *s, int number, const CiExpr *limit)
{
    const int args[] = {number, ci_build_index(&s->r->b, limit)};
    return ci_build_let(&s->r->b, bool_type(1), CI_OP_less, 2, args);
}

/* Passes blocks, from element `from` on, of which no element decides; returns the number of the first element after them. */
static const CiExpr *
pass_blocks(Search *s, const CiExpr *from)
{
    CiReducer *r = s->r;
    CiBuild *b = &r->b;
    const CiExpr *zero = ci_reduce_number(r, 0), *one = ci_reduce_number(r, 1),
                 *blocks = ci_expr_floordiv(b->sym, ci_expr_sub(b->sym, r->extent, from), ci_reduce_number(r, s->width));
    if (s->width == s->lanes || blocks->high <= 0)
        return from;
    blocks = ci_build_named(b, blocks);
    CiMemory *passed = ci_build_alloc(b, ci_build_name(b, "passed"), CI_DTYPE_i64, 1, CI_SPACE_register, one);
    ci_build_store(b, passed, zero, ci_build_index(b, zero));
    CiStmt *loop = ci_build_for(b, "c", blocks, CI_RUN_serial);
    CiStmts *outside = ci_build_enter(b, &loop->body);
    int mask = -1;
    for (int done = 0; done < s->width; done += s->lanes) {
        const CiExpr *block = ci_expr_add(b->sym, from, ci_reduce_scaled(r, loop->vars[0], s->width)),
                     *first = ci_expr_add(b->sym, block, ci_reduce_number(r, done));
        const int both[] = {mask, test_strip(s, first, NULL)};
        mask = done ? ci_build_let(b, bool_type(s->lanes), CI_OP_logical_or, 2, both) : both[1];
    }
    ci_build_compare(b, CI_STMT_exit, CI_COMPARE_is, is_below(s, first_true(s, mask), ci_reduce_number(r, s->lanes)));
    ci_build_store(b, passed, zero, ci_build_index(b, ci_expr_add(b->sym, loop->vars[0], one)));
    ci_build_leave(b, outside);
    const CiExpr *number = ci_build_bind(b, ci_build_load(b, passed, zero, 1), ci_expr_add(b->sym, blocks, one));
    return ci_expr_add(b->sym, from, ci_reduce_scaled(r, number, s->width));
}

/* The result is what the element at `at` yields. */
static void
take(Search *s, const CiExpr *at)
{
    CiReducer *r = s->r;
    const CiExpr *zero = ci_reduce_number(r, 0);
    ci_reduce_store(r, r->fold->into, r->fold->ninto, zero, ci_build_iteration(&r->b, &r->body, r->var, at), NULL);
    ci_build_store(&r->b, s->is_found, zero, ci_build_const(&r->b, bool_type(1), (CiConst){.i = 1}));
}

/* Takes the first of a vector's elements that decides, if one does; true if so. live: how many it has, NULL: all. Lanes that
 * are not live repeat the first one. */
static int
search_vector(Search *s, const CiExpr *start, const CiExpr *live)
{
    CiReducer *r = s->r;
    CiBuild *b = &r->b;
    const CiExpr *count = live ? live : ci_reduce_number(r, s->lanes);
    int hit = test_strip(s, start, live), number = -1;
    if (s->lanes > 1) {
        number = first_true(s, hit);
        hit = is_below(s, number, count);
    }
    CiStmt *found = ci_build_compare(b, CI_STMT_if, CI_COMPARE_is, hit);
    CiStmts *outside = ci_build_enter(b, &found->body);
    take(s, number >= 0 ? ci_expr_add(b->sym, start, ci_build_bind(b, number, count)) : start);
    ci_build_leave(b, outside);
    return hit;
}

/* Enters a block that runs unless an element has been found. */
static void
enter_unless_found(Search *s)
{
    CiBuild *b = &s->r->b;
    int is_found = ci_build_load(b, s->is_found, ci_reduce_number(s->r, 0), 1);
    ci_build_enter(b, &ci_build_compare(b, CI_STMT_if, CI_COMPARE_is_not, is_found)->body);
}

/* The first vector by itself, for rows that are decided early. Then whole vectors, of the block that decides or of what
 * remains after the blocks, and the rest of that. */
static void
search_axis(Search *s)
{
    CiReducer *r = s->r;
    CiBuild *b = &r->b;
    CiSym *sym = b->sym;
    CiStmts *outside = b->to;
    const CiExpr *lanes = ci_reduce_number(r, s->lanes), *begin = ci_reduce_number(r, 0);
    if (r->extent->low >= s->lanes) {
        search_vector(s, begin, NULL);
        if (r->extent->high <= s->lanes)
            return;
        enter_unless_found(s);
        begin = lanes;
    }
    begin = pass_blocks(s, begin);
    const CiExpr
                 *left = ci_build_named(b, ci_expr_sub(sym, r->extent, begin)),
                 *near = s->width > s->lanes ? ci_expr_min(sym, left, ci_reduce_number(r, s->width)) : left,
                 *vectors = ci_build_named(b, ci_expr_floordiv(sym, near, lanes));
    if (vectors->high > 0) {
        CiStmts *here = b->to;
        CiStmt *loop = ci_build_for(b, "w", vectors, CI_RUN_serial);
        ci_build_enter(b, &loop->body);
        int hit = search_vector(s, ci_expr_add(sym, begin, ci_expr_mul(sym, loop->vars[0], lanes)), NULL);
        ci_build_compare(b, CI_STMT_exit, CI_COMPARE_is, hit);
        ci_build_leave(b, here);
    }
    if (ci_sym_known_multiple_of(sym, r->extent, lanes)) {
        ci_build_leave(b, outside);
        return;
    }
    const CiExpr *done = ci_expr_mul(sym, vectors, lanes), *rest = ci_expr_min(sym, ci_expr_sub(sym, left, done), lanes);
    enter_unless_found(s);
    rest = ci_build_named(b, rest);
    CiStmt *some = ci_build_test(b, CI_STMT_if, CI_COMPARE_less, ci_reduce_number(r, 0), rest);
    ci_build_enter(b, &some->body);
    search_vector(s, ci_expr_add(sym, begin, done), rest);
    ci_build_leave(b, outside);
}

void
ci_reduce_search(CiReducer *r)
{
    Search s = {.r = r};
    CiBuild *b = &r->b;
    const CiExpr *zero = ci_reduce_number(r, 0);
    const CiStmt *fold = r->fold;
    build_value(&s);
    int lanes = r->extent->high > 1 ? ci_choose_lanes(b, &s.value, r->var, b->machine->lanes) : 1;
    s.lanes = lanes < 1 ? 1 : lanes;
    while (s.lanes > 1 && s.lanes / 2 >= r->extent->high)
        s.lanes /= 2;
    s.width = s.lanes > 1 ? s.lanes * b->machine->chains : 1;
    s.is_found = ci_build_alloc(b, ci_build_name(b, "is_found"), CI_DTYPE_bool, 1, CI_SPACE_register,
                                ci_reduce_number(r, 1));
    ci_reduce_each(r, true, true, ci_reduce_start);
    ci_build_store(b, s.is_found, zero, ci_build_const(b, bool_type(1), (CiConst){0}));
    CiStmts *outer[CI_MAX_FOLD_AXES];
    int nouter = r->var == fold->vars[fold->nvars - 1] ? fold->nvars - 1 : 0;
    for (int k = 0; k < nouter; k++) {
        CiStmt *loop = ci_build_loop(b, fold->vars[k], fold->extents[k], CI_RUN_serial);
        outer[k] = ci_build_enter(b, &loop->body);
    }
    search_axis(&s);
    while (nouter-- > 0) {
        ci_build_compare(b, CI_STMT_exit, CI_COMPARE_is, ci_build_load(b, s.is_found, zero, 1));
        ci_build_leave(b, outer[nouter]);
    }
}
