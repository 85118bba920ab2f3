/* Facts about sizes beyond their ranges: conditions of the branch that is being captured, and
 * checks that the program has passed.
 *
 * A proof subtracts up to three facts from the difference in question. The number of tries is
 * limited, because with hundreds of facts all triples would cost more than a guard. The limit
 * falls with the work that the capture has spent on proofs. A relation that is false for the
 * sizes of this call is not tried, because the facts hold for them. A fact holds until it is
 * forgotten, or until the graph in which it was checked is gone. */
#include "graph/size.h"

enum { MAX_DEPTH = 3, MAX_TRIES = 300, FREE_WORK = 8192 };

struct CxFact {
    CiRelation relation;
    const CiExpr *a, *b;
    const CiExpr *least; /* not negative; NULL for != */
    int64_t value;       /* the value of `least` in this call, or UNKNOWN */
    long token;          /* 0: from a check; -1: from a guard; else of a branch */
    int guard;           /* its number */
    unsigned epoch, scope;
};

#define UNKNOWN INT64_MIN

typedef struct Reading {
    const CxTracer *tracer;
    const CiExpr *d;
    int64_t value;
} Reading;

static void
read_value(CiContext *ctx, void *arg)
{
    Reading *reading = arg;
    if (ci_shape_env_has_hint(reading->tracer->env, reading->d))
        reading->value = ci_shape_env_hint(ctx, reading->tracer->env, reading->d);
}

/* Value of d in this call. UNKNOWN if it has none, for example after a division by zero. */
static int64_t
value_of(const CxTracer *t, const CiExpr *d)
{
    Reading reading = {t, d, UNKNOWN};
    (void)ci_protect(t->sym_ctx, read_value, &reading);
    return reading.value;
}

/* True if a guard that lasts as long as this fact says the same. */
static bool
is_assumed(const CxTracer *t, const CxFact *fact)
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
    if (is_assumed(t, &fact))
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

/* Records `a relation b` as facts of the form "something is not negative". */
int
cx_fact_add(CxTracer *t, CiRelation relation, const CiExpr *a, const CiExpr *b, long token)
{
    CxFact fact = {.relation = relation, .a = a, .b = b, .token = token, .value = UNKNOWN};
    const CiExpr *d = cx_size_make(t, CI_OP_subtract, b, a);

    if (d == NULL)
        return -1;
    fact.guard = t->env->nguards - 1;
    fact.epoch = t->epoch;
    fact.scope = cx_dominance_now(t);
    if (relation == CI_REL_ne)
        return push(t, fact);
    fact.least = relation == CI_REL_lt ? cx_size_make(t, CI_OP_subtract, d, t->one) : d;
    if (fact.least == NULL)
        return -1;
    fact.value = value_of(t, fact.least);
    if (push(t, fact) < 0)
        return -1;
    if (relation != CI_REL_eq)
        return 0;
    fact.least = cx_size_make(t, CI_OP_subtract, t->zero, d);
    fact.value = fact.value == UNKNOWN ? UNKNOWN : -fact.value;
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
cx_facts_forget_since(CxTracer *t, long token)
{
    int count = 0;
    for (int k = 0; k < t->nfacts; k++)
        if (t->facts[k].token <= token)
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
is_valid_now(const CxTracer *t, const CxFact *fact)
{
    return fact->token != 0 || (fact->epoch == t->epoch && cx_dominance_is_open(t, fact->scope));
}

/* How many facts a search may try: the share falls as the capture's work grows. */
static int
tries_left(const CxTracer *t)
{
    double share = t->proof_work <= FREE_WORK ? 1 : (double)FREE_WORK / (double)t->proof_work;
    int tries = (int)(MAX_TRIES * share * share);
    return tries > 1 ? tries : 1;
}

/* True if d is a sum of `depth` facts before `end` and of something not negative. Facts are
 * subtracted in descending order only, because a sum has no order. value: of d in this call. */
static bool
subtract_facts(CxTracer *t, const CiExpr *d, int64_t value, int end, int depth, int *tries)
{
    if (depth == 0)
        return ci_sym_known_le(t->sym, t->zero, d);
    for (int k = end - 1; k >= 0; k--) {
        const CxFact *fact = &t->facts[k];
        bool has_value = value != UNKNOWN && fact->value != UNKNOWN;
        if (fact->least == NULL || !is_valid_now(t, fact) || (has_value && fact->value > value) ||
            !ci_expr_shares_symbol(fact->least, d))
            continue;
        if (--*tries < 0)
            return false;
        t->proof_work += 1 + d->nargs;
        const CiExpr *rest = ci_expr_sub(t->sym, d, fact->least);
        int64_t rest_value = has_value ? value - fact->value : UNKNOWN;
        if (subtract_facts(t, rest, rest_value, k + 1, depth - 1, tries))
            return true;
    }
    return false;
}

static bool
prove_nonnegative(CxTracer *t, const CiExpr *d)
{
    int64_t value = value_of(t, d);

    if (value != UNKNOWN && value < 0)
        return false;
    /* Short proofs first, because long ones may exhaust the tries. */
    for (int depth = 0; depth <= MAX_DEPTH; depth++) {
        int tries = tries_left(t);
        if (subtract_facts(t, d, value, t->nfacts, depth, &tries))
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
        if (fact->relation == CI_REL_ne && is_valid_now(t, fact) &&
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
