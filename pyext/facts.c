/* What is known of sizes beyond their ranges: conditions of the branch that is being captured, and
 * checks that the program has passed. A proof may subtract up to three of them, and gives up after
 * a number of tries: with hundreds of facts, all triples would take longer than a guard costs.
 *
 * A fact holds until it is forgotten, or until the graph it was checked in is gone. */
#include "size.h"

enum { MAX_DEPTH = 3, MAX_TRIES = 300 };

struct CxFact {
    CiRelation relation;
    const CiExpr *a, *b;
    const CiExpr *least; /* not negative; NULL for != */
    long token;          /* 0: of a check; -1: a guard */
    int guard;           /* its number */
    unsigned epoch, stretch;
};

/* A guard says so already, as long as this fact could. */
static bool
is_told(const CxTracer *t, const CxFact *fact)
{
    for (int k = 0; k < t->nfacts; k++) {
        const CxFact *old = &t->facts[k];
        if (old->token == -1 && fact->least != NULL && old->least == fact->least)
            return true;
    }
    return false;
}

static int
push(CxTracer *t, CxFact fact)
{
    if (is_told(t, &fact))
        return 0;
    CxFact *grown = PyMem_Realloc(t->facts, sizeof *grown * ((size_t)t->nfacts + 1));
    if (grown == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    t->facts = grown;
    t->facts[t->nfacts++] = fact;
    return 0;
}

/* a relation b as facts that something is not negative. */
int
cx_fact_add(CxTracer *t, CiRelation relation, const CiExpr *a, const CiExpr *b, long token)
{
    CxFact fact = {relation, a, b, NULL, token, t->env->nguards - 1, t->epoch, cx_stretch_now(t)};
    const CiExpr *d = cx_size_make(t, CX_SIZE_sub, b, a);

    if (d == NULL)
        return -1;
    if (relation == CI_REL_ne)
        return push(t, fact);
    fact.least = relation == CI_REL_lt ? cx_size_make(t, CX_SIZE_sub, d, t->one) : d;
    if (fact.least == NULL || push(t, fact) < 0)
        return -1;
    if (relation != CI_REL_eq)
        return 0;
    fact.least = cx_size_make(t, CX_SIZE_sub, t->zero, d);
    return fact.least == NULL ? -1 : push(t, fact);
}

/* The latest guard is a fact for the rest of the call. */
int
cx_fact_add_guard(CxTracer *t)
{
    const CiShapeGuard *guard = &t->env->guards[t->env->nguards - 1];
    return cx_fact_add(t, guard->relation, guard->left, guard->right, -1);
}

void
cx_facts_forget(CxTracer *t, long token)
{
    int count = 0;
    for (int k = 0; k < t->nfacts; k++)
        if (t->facts[k].token != token)
            t->facts[count++] = t->facts[k];
    t->nfacts = count;
}

void
cx_facts_forget_guards(CxTracer *t, int kept)
{
    int count = 0;
    for (int k = 0; k < t->nfacts; k++)
        if (t->facts[k].token != -1 || t->facts[k].guard < kept)
            t->facts[count++] = t->facts[k];
    t->nfacts = count;
}

void
cx_facts_release(CxTracer *t)
{
    PyMem_Free(t->facts);
    t->facts = NULL;
    t->nfacts = 0;
}

static bool
holds_now(const CxTracer *t, const CxFact *fact)
{
    return fact->token != 0 || (fact->epoch == t->epoch && cx_stretch_is_open(t, fact->stretch));
}

/* Whether d is what `depth` facts, of those before `end`, and something that is not negative come
 * to. Facts are taken out in one order, the latest first, for sums have none. */
static bool
subtract_facts(CxTracer *t, const CiExpr *d, int end, int depth, int *tries)
{
    if (depth == 0)
        return ci_sym_known_le(t->sym, t->zero, d);
    for (int k = end - 1; k >= 0; k--) {
        const CxFact *fact = &t->facts[k];
        if (fact->least == NULL || !holds_now(t, fact) || !ci_expr_shares_symbol(fact->least, d))
            continue;
        if (--*tries < 0)
            return false;
        const CiExpr *rest = ci_expr_sub(t->sym, d, fact->least);
        if (subtract_facts(t, rest, k + 1, depth - 1, tries))
            return true;
    }
    return false;
}

static bool
prove_nonnegative(CxTracer *t, const CiExpr *d)
{
    /* short proofs first, for long ones may use up what they may try */
    for (int depth = 0; depth <= MAX_DEPTH; depth++) {
        int tries = MAX_TRIES;
        if (subtract_facts(t, d, t->nfacts, depth, &tries))
            return true;
    }
    return false;
}

static bool
prove(CxTracer *t, CiRelation relation, const CiExpr *a, const CiExpr *b)
{
    const CiExpr *d = ci_expr_sub(t->sym, b, a);

    switch (relation) {
    case CI_REL_le:
        return prove_nonnegative(t, d);
    case CI_REL_lt:
        return prove_nonnegative(t, ci_expr_sub(t->sym, d, t->one)) ||
               (prove_nonnegative(t, d) && prove(t, CI_REL_ne, a, b));
    case CI_REL_eq:
        return prove_nonnegative(t, d) && prove_nonnegative(t, ci_expr_neg(t->sym, d));
    case CI_REL_ne:
        break;
    }
    for (int k = 0; k < t->nfacts; k++) {
        const CxFact *fact = &t->facts[k];
        if (fact->relation == CI_REL_ne && holds_now(t, fact) &&
            ((fact->a == a && fact->b == b) || (fact->a == b && fact->b == a)))
            return true;
    }
    const CiExpr *one = t->one;
    return prove_nonnegative(t, ci_expr_sub(t->sym, d, one)) ||
           prove_nonnegative(t, ci_expr_sub(t->sym, ci_expr_neg(t->sym, d), one));
}

int
cx_facts_decide(CxTracer *t, CiRelation relation, const CiExpr *a, const CiExpr *b)
{
    if (t->nfacts == 0)
        return -1;
    if (prove(t, relation, a, b))
        return 1;
    bool is_refuted = relation == CI_REL_eq   ? prove(t, CI_REL_ne, a, b)
                      : relation == CI_REL_ne ? prove(t, CI_REL_eq, a, b)
                      : relation == CI_REL_le ? prove(t, CI_REL_lt, b, a)
                                              : prove(t, CI_REL_le, b, a);
    return is_refuted ? 0 : -1;
}
