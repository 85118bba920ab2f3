/* That accesses stay inside of their memory: proofs by the ranges and limits of symbols, and by the
 * tests that have been passed. A proof that is not found is counted, not an error: promises about
 * what data say (`bind`) are checked by who runs the proc. */
#include "ir/proc_private.h"

#define MAX_PROOFS 4096 /* in one proc */
#define MAX_FACTS 8     /* that one proof may use */

_Noreturn void
ci_proc_fail(CiProcVerifier *v, const CiStmt *stmt, const char *why)
{
    CiText text = ci_text_new(v->ctx);
    if (stmt)
        ci_stmt_print(&text, stmt);
    ci_fail(v->ctx, CI_ERR_INTERNAL, "proc %s: %s%s%s", v->proc->name, why, stmt ? ": " : "",
            text.data);
}

static const CiExpr *
number(CiProcVerifier *v, int64_t value)
{
    return ci_expr_const(v->sym, value);
}

void
ci_proc_add_fact(CiProcVerifier *v, const CiExpr *smaller, const CiExpr *larger, int64_t by)
{
    const CiExpr *fact = ci_expr_sub(v->sym, ci_expr_sub(v->sym, larger, smaller), number(v, by));
    if (!ci_expr_is_const(fact, NULL))
        CI_PUSH(v->ctx, v->facts, v->nfacts, v->capfacts, fact);
}

static void
add_test(CiProcVerifier *v, const CiCondition *test, bool negated)
{
    switch (test->compare) {
    case CI_COMPARE_less:
        if (negated)
            ci_proc_add_fact(v, test->right, test->left, 0);
        else
            ci_proc_add_fact(v, test->left, test->right, 1);
        break;
    case CI_COMPARE_less_equal:
        if (negated)
            ci_proc_add_fact(v, test->right, test->left, 1);
        else
            ci_proc_add_fact(v, test->left, test->right, 0);
        break;
    case CI_COMPARE_equal:
        if (negated)
            break;
        ci_proc_add_fact(v, test->left, test->right, 0);
        ci_proc_add_fact(v, test->right, test->left, 0);
        break;
    default:
        break;
    }
}

void
ci_proc_add_tests(CiProcVerifier *v, const CiStmt *stmt, bool negated)
{
    for (int k = 0; k < stmt->ntests && (!negated || stmt->ntests == 1); k++)
        add_test(v, &stmt->tests[k], negated);
}

/* a <= b, with the facts that were added last. */
static bool
is_proved(CiProcVerifier *v, const CiExpr *a, const CiExpr *b)
{
    int count = v->nfacts < MAX_FACTS ? v->nfacts : MAX_FACTS;
    if (v->nproofs++ >= MAX_PROOFS)
        return false;
    return ci_sym_known_le_given(v->sym, a, b, count, v->facts + v->nfacts - count);
}

static bool
lies_inside(CiProcVerifier *v, const CiExpr *e, const CiMemory *memory)
{
    const CiExpr *last = ci_expr_sub(v->sym, memory->size, number(v, 1));
    return is_proved(v, memory->first ? memory->first : number(v, 0), e) && is_proved(v, e, last);
}

/* The element of lane number `lane`. */
static const CiExpr *
element(CiProcVerifier *v, const CiAccess *at, const CiExpr *lane)
{
    const CiExpr *stride = at->stride ? at->stride : number(v, 1);
    return ci_expr_add(v->sym, at->index, ci_expr_mul(v->sym, stride, lane));
}

/* All lanes, or the live ones where not all are: of those there is one at least. */
static bool
lanes_lie_inside(CiProcVerifier *v, const CiStmt *stmt, int lanes)
{
    const CiAccess *at = &stmt->at;
    const CiMemory *memory = at->memory;
    if (lanes == 1 || memory->lanes > 1)
        return lies_inside(v, at->index, memory);
    if (!lies_inside(v, at->index, memory))
        return false;
    if (lies_inside(v, element(v, at, number(v, lanes - 1)), memory))
        return true;
    return stmt->live &&
           lies_inside(v, element(v, at, ci_expr_sub(v->sym, stmt->live, number(v, 1))), memory);
}

/* By ranges alone: every element that it can be is outside. In a block that may be no part of any
 * run this is no mistake. */
static bool
is_outside(const CiAccess *at)
{
    const CiExpr *size = at->memory->size;
    return at->index->high < (at->memory->first ? at->memory->first->low : 0) ||
           (size->high != CI_INFINITY && size->high > 0 && at->index->low >= size->high);
}

void
ci_proc_prove_access(CiProcVerifier *v, const CiStmt *stmt, int lanes)
{
    int facts = v->nfacts;
    if (stmt->live)
        ci_proc_add_fact(v, number(v, 1), stmt->live, 0);
    bool inside = lanes_lie_inside(v, stmt, lanes);
    v->nfacts = facts;
    if (!inside && v->nblocks == 1 && is_outside(&stmt->at))
        ci_proc_fail(v, stmt, "access out of bounds");
    v->nunproved += !inside;
}
