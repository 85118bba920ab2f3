/* What is known of sizes beyond their ranges: conditions of the branch that is being captured, and
 * checks that the program has passed. A proof may subtract up to three of them, and gives up after
 * a number of tries: with hundreds of facts, all triples would take longer than a guard costs.
 *
 * A fact holds until it is forgotten, or until the graph it was checked in is gone. */
#include "methods.h"
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
static int
add(CxTracer *t, CiRelation relation, const CiExpr *a, const CiExpr *b, long token)
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

int
cx_fact_add(CxTracer *t, CiRelation relation, const CiExpr *a, const CiExpr *b)
{
    return add(t, relation, a, b, 0);
}

/* The latest guard is a fact for the rest of the call. */
int
cx_fact_add_guard(CxTracer *t)
{
    const CiShapeGuard *guard = &t->env->guards[t->env->nguards - 1];
    return add(t, guard->relation, guard->left, guard->right, -1);
}

/* forget_guards(mark): what was decided since by the sizes of this call is open again. */
PyObject *
cx_tracer_forget_guards(PyObject *self, PyObject *mark)
{
    CxTracer *t = (CxTracer *)self;
    int count = 0;

    CX_ENTRY();
    int kept = cx_mark_guards(t, mark);
    if (kept < 0)
        return NULL;
    if (kept < t->env->nguards)
        t->env->nguards = kept;
    for (int k = 0; k < t->nfacts; k++)
        if (t->facts[k].token != -1 || t->facts[k].guard < kept)
            t->facts[count++] = t->facts[k];
    t->nfacts = count;
    Py_RETURN_NONE;
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

/* ---- what Python says ---- */

static int
relation_from(const char *text, CiRelation *relation, bool *is_swapped)
{
    static const struct {
        const char *text;
        CiRelation relation;
        bool is_swapped;
    } relations[] = {{"==", CI_REL_eq, false}, {"!=", CI_REL_ne, false}, {"<=", CI_REL_le, false},
                     {"<", CI_REL_lt, false},  {">=", CI_REL_le, true},  {">", CI_REL_lt, true}};

    for (size_t k = 0; k < sizeof relations / sizeof *relations; k++)
        if (strcmp(text, relations[k].text) == 0) {
            *relation = relations[k].relation;
            *is_swapped = relations[k].is_swapped;
            return 0;
        }
    PyErr_Format(PyExc_ValueError, "'%s' is no relation", text);
    return -1;
}

/* 1: a relation of sizes; 0: another condition, of which nothing can be said. */
static int
condition_from(CxTracer *t, PyObject *condition, CiRelation *relation, const CiExpr **a,
               const CiExpr **b)
{
    PyObject *left = NULL, *right = NULL;
    const char *text = NULL;
    bool is_swapped = false;

    if (cx_is_traced(condition)) {
        const CxStorage *s = ((CxTraced *)condition)->storage;
        *relation = s->relation;
        *a = s->left;
        *b = s->right;
        return ((CxTraced *)condition)->view == NULL && s->left != NULL;
    }
    if (!PyTuple_Check(condition))
        return 0;
    if (!PyArg_ParseTuple(condition, "OsO:assume", &left, &text, &right) ||
        relation_from(text, relation, &is_swapped) < 0 || (*a = cx_size_from(t, left)) == NULL ||
        (*b = cx_size_from(t, right)) == NULL)
        return -1;
    if (is_swapped) {
        const CiExpr *swap = *a;
        *a = *b;
        *b = swap;
    }
    return 1;
}

PyObject *
cx_tracer_assume(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"condition", "holds", NULL};
    CxTracer *t = (CxTracer *)self;
    PyObject *condition = NULL;
    const CiExpr *a = NULL, *b = NULL;
    CiRelation relation = CI_REL_eq;
    int holds = 1;

    CX_ENTRY();
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|p:assume", names, &condition, &holds))
        return NULL;
    int status = condition_from(t, condition, &relation, &a, &b);
    if (status < 0)
        return NULL;
    long token = ++t->last_token;
    if (status > 0 && holds)
        status = add(t, relation, a, b, token);
    else if (status > 0 && (relation == CI_REL_eq || relation == CI_REL_ne))
        status = add(t, relation == CI_REL_eq ? CI_REL_ne : CI_REL_eq, a, b, token);
    else if (status > 0)
        status = add(t, relation == CI_REL_le ? CI_REL_lt : CI_REL_le, b, a, token);
    return status < 0 ? NULL : PyLong_FromLong(token);
}

PyObject *
cx_tracer_forget(PyObject *self, PyObject *token)
{
    CxTracer *t = (CxTracer *)self;
    long number = PyLong_AsLong(token);
    int count = 0;

    CX_ENTRY();
    if (number == -1 && PyErr_Occurred())
        return NULL;
    for (int k = 0; k < t->nfacts; k++)
        if (t->facts[k].token != number)
            t->facts[count++] = t->facts[k];
    t->nfacts = count;
    Py_RETURN_NONE;
}
