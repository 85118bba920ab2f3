/* Early exit of `any` and `all`, whose result is often known long before the end.
 *
 *   fold acc = any over r<n {…}  ->
 *   store acc[0] = false
 *   for c<ceildiv(n, 4096) { fold part = any over r<n from [4096*c] for […] {…}
 *                            store acc[0] = acc[0] or part[0]  exit if acc[0] }
 *
 * If such a fold is split, each unit first checks whether another one has found the answer
 * (split_reduction.c).
 *
 * Skipped elements must not be able to raise a floating-point flag, because NumPy would have
 * warned. Lanes end together, so a fold inside a loop over lanes has no early exit. */
#include "codegen/codegen.h"
#include "codegen/split.h"

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

static const CiExpr *
length_of(const CiBuild *b, const CiStmt *fold)
{
    return fold->count ? fold->count : ci_expr_product_of(b->sym, fold->extents, fold->nvars);
}

bool
ci_fold_may_stop(const CiStmt *fold)
{
    bool is_one = fold->nops == 1 && (fold->ops[0] == CI_OP_any || fold->ops[0] == CI_OP_all) &&
                  fold->into[0]->dtype == CI_DTYPE_bool && fold->into[0]->lanes == 1;
    return is_one && !fold->blocks && !ci_stmts_have(&fold->body, is_loud);
}

static void
stop(CiBuild *b, CiStmt *fold)
{
    CiSym *sym = b->sym;
    bool is_any = fold->ops[0] == CI_OP_any;
    CiMemory *all = fold->into[0];
    CiType type = ci_type_of(CI_DTYPE_bool, 1);
    const CiExpr *zero = ci_expr_const(sym, 0), *piece = ci_expr_const(sym, CI_CHOOSE(b, exit_elements)),
                 *length = length_of(b, fold), *from = fold->from ? fold->from : zero;
    CiMemory *part = ci_build_alloc(b, ci_build_name(b, "part"), CI_DTYPE_bool, 1,
                                    CI_SPACE_register, ci_expr_const(sym, 1));
    ci_build_store(b, all, zero, ci_build_const(b, type, (CiConst){.i = !is_any}));
    CiStmt *pieces = ci_build_for(b, "c", ci_expr_ceildiv(sym, length, piece), CI_RUN_serial);
    CiStmts *outside = ci_build_enter(b, &pieces->body);
    const CiExpr *first = ci_expr_mul(sym, pieces->vars[0], piece);
    fold->into[0] = part;
    fold->from = ci_expr_add(sym, from, first);
    fold->count = ci_expr_min(sym, piece, ci_expr_sub(sym, length, first));
    ci_build_move(b, fold);
    int both[] = {ci_build_load(b, all, zero, 1), ci_build_load(b, part, zero, 1)};
    int value = ci_build_let(b, type, is_any ? CI_OP_logical_or : CI_OP_logical_and, 2, both);
    ci_build_store(b, all, zero, value);
    ci_build_ask(b, CI_STMT_exit, is_any ? CI_COMPARE_is : CI_COMPARE_is_not, value);
    ci_build_leave(b, outside);
}

static void
stop_stmt(void *arg, CiStmt *stmt)
{
    CiBuild *b = arg;
    if (stmt->kind == CI_STMT_fold && ci_fold_may_stop(stmt) && length_of(b, stmt)->high > CI_CHOOSE(b, exit_elements)) {
        stop(b, stmt);
        return;
    }
    if (stmt->kind != CI_STMT_fold && stmt->run != CI_RUN_vector) {
        ci_build_rewrite(b, &stmt->body, stop_stmt, b);
        ci_build_rewrite(b, &stmt->other, stop_stmt, b);
    }
    ci_build_move(b, stmt);
}

void
ci_stop(CiBuild *b)
{
    if (!b->proc->head.has_lanes)
        ci_build_rewrite(b, &b->proc->body, stop_stmt, b);
}
