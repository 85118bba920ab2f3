/* Simplifies conditions that are known before a kernel runs: branches that are always or never
 * taken, loops with zero or one iteration, vectors whose lanes are all live. */
#include "codegen/instantiate.h"
#include "codegen/codegen.h"

typedef enum Truth { TRUTH_unknown, TRUTH_always, TRUTH_never } Truth;

/* less and less_equal are each other's contrary with sides exchanged. */
static Truth
judge_one(CiSym *sym, const CiCondition *test)
{
    const CiExpr *left = test->left, *right = test->right;
    switch (test->compare) {
    case CI_COMPARE_less:
        return ci_sym_known_lt(sym, left, right)   ? TRUTH_always
               : ci_sym_known_le(sym, right, left) ? TRUTH_never
                                                   : TRUTH_unknown;
    case CI_COMPARE_less_equal:
        return ci_sym_known_le(sym, left, right)   ? TRUTH_always
               : ci_sym_known_lt(sym, right, left) ? TRUTH_never
                                                   : TRUTH_unknown;
    case CI_COMPARE_equal:
        return ci_sym_known_eq(sym, left, right) ? TRUTH_always
               : ci_sym_known_lt(sym, left, right) || ci_sym_known_lt(sym, right, left)
                   ? TRUTH_never
                   : TRUTH_unknown;
    default:
        return TRUTH_unknown;
    }
}

static Truth
judge(CiBuild *b, const CiStmt *stmt)
{
    Truth truth = TRUTH_always;
    for (int k = 0; k < stmt->ntests; k++) {
        Truth one = judge_one(b->sym, &stmt->tests[k]);
        if (one == TRUTH_never)
            return TRUTH_never;
        truth = one == TRUTH_unknown ? TRUTH_unknown : truth;
    }
    return truth;
}

static void
simplify_if(CiBuild *b, CiStmt *stmt)
{
    Truth truth = judge(b, stmt);
    if (truth == TRUTH_unknown)
        ci_build_move(b, stmt);
    else
        ci_build_move_all(b, truth == TRUTH_always ? &stmt->body : &stmt->other);
}

static bool
is_exit(const CiStmt *stmt)
{
    return stmt->kind == CI_STMT_exit;
}

static void
simplify_for(CiBuild *b, CiStmt *loop)
{
    const CiExpr *extent = loop->extents[0];
    if (extent->high <= 0)
        return;
    if (loop->run == CI_RUN_parallel || !ci_expr_equals_const(extent, 1) ||
        ci_stmts_have(&loop->body, is_exit)) {
        ci_build_move(b, loop);
        return;
    }
    ci_build_iteration(b, &loop->body, loop->vars[0], ci_expr_const(b->sym, 0));
}

static void
simplify_lanes(CiBuild *b, CiStmt *stmt)
{
    int value = stmt->kind == CI_STMT_store ? stmt->args[0] : stmt->value;
    if (stmt->live && value >= 0 &&
        ci_sym_known_le(b->sym, ci_expr_const(b->sym, b->proc->types[value].lanes), stmt->live))
        stmt->live = NULL;
}

static void
simplify(void *arg, CiStmt *stmt)
{
    CiBuild *b = arg;
    ci_build_rewrite(b, &stmt->body, simplify, b);
    ci_build_rewrite(b, &stmt->other, simplify, b);
    simplify_lanes(b, stmt);
    if (stmt->kind == CI_STMT_if)
        simplify_if(b, stmt);
    else if (stmt->kind == CI_STMT_for)
        simplify_for(b, stmt);
    else
        ci_build_move(b, stmt);
}

void
ci_simplify(CiBuild *b)
{
    ci_build_rewrite(b, &b->proc->body, simplify, b);
}
