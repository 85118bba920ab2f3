/* What is known before a kernel runs is said once: branches that are always or never taken, loops
 * of no trip or of one, vectors all of whose lanes are live. */
#include "codegen/at.h"
#include "codegen/codegen.h"

typedef enum Truth { TRUTH_unknown, TRUTH_always, TRUTH_never } Truth;

static bool
is_known(CiSym *sym, CiCompare compare, const CiExpr *left, const CiExpr *right)
{
    switch (compare) {
    case CI_COMPARE_less:
        return ci_sym_known_lt(sym, left, right);
    case CI_COMPARE_less_equal:
        return ci_sym_known_le(sym, left, right);
    case CI_COMPARE_equal:
        return ci_sym_known_eq(sym, left, right);
    default:
        return false;
    }
}

static bool
is_refuted(CiSym *sym, CiCompare compare, const CiExpr *left, const CiExpr *right)
{
    switch (compare) {
    case CI_COMPARE_less:
        return ci_sym_known_le(sym, right, left);
    case CI_COMPARE_less_equal:
        return ci_sym_known_lt(sym, right, left);
    case CI_COMPARE_equal:
        return ci_sym_known_lt(sym, left, right) || ci_sym_known_lt(sym, right, left);
    default:
        return false;
    }
}

static Truth
judge(CiBuild *b, const CiStmt *stmt)
{
    Truth truth = TRUTH_always;
    for (int k = 0; k < stmt->ntests; k++) {
        const CiCondition *test = &stmt->tests[k];
        if (is_refuted(b->sym, test->compare, test->left, test->right))
            return TRUTH_never;
        if (!is_known(b->sym, test->compare, test->left, test->right))
            truth = TRUTH_unknown;
    }
    return truth;
}

static void
move_all(CiBuild *b, CiStmts *from)
{
    for (CiStmt *next, *stmt = from->first; stmt; stmt = next) {
        next = stmt->next;
        ci_build_move(b, stmt);
    }
}

static void
simplify_if(CiBuild *b, CiStmt *stmt)
{
    Truth truth = judge(b, stmt);
    if (truth == TRUTH_unknown)
        ci_build_move(b, stmt);
    else
        move_all(b, truth == TRUTH_always ? &stmt->body : &stmt->other);
}

static void
find_exit(void *arg, const CiStmt *stmt)
{
    *(bool *)arg |= stmt->kind == CI_STMT_exit;
}

static void
simplify_for(CiBuild *b, CiStmt *loop)
{
    const CiExpr *extent = loop->extents[0], *zero = ci_expr_const(b->sym, 0);
    if (extent->high <= 0)
        return;
    bool exits = false;
    ci_stmts_visit(&loop->body, find_exit, &exits);
    if (exits || loop->run == CI_RUN_parallel || !ci_expr_equals_const(extent, 1)) {
        ci_build_move(b, loop);
        return;
    }
    ci_build_trip(b, &loop->body, loop->vars[0], zero);
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
simplify_block(CiBuild *b, CiStmts *block)
{
    CiStmt *next, *stmt = block->first;
    *block = (CiStmts){0};
    CiStmts *outside = ci_build_enter(b, block);
    for (; stmt; stmt = next) {
        next = stmt->next;
        simplify_block(b, &stmt->body);
        simplify_block(b, &stmt->other);
        simplify_lanes(b, stmt);
        if (stmt->kind == CI_STMT_if)
            simplify_if(b, stmt);
        else if (stmt->kind == CI_STMT_for)
            simplify_for(b, stmt);
        else
            ci_build_move(b, stmt);
    }
    ci_build_leave(b, outside);
}

void
ci_simplify(CiProcs *procs, CiProc *proc, const CiFamily *family)
{
    (void)family;
    CiBuild b = {procs->ctx, procs->sym, proc, &proc->body, {0}};
    simplify_block(&b, &proc->body);
}
