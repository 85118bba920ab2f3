/* Decides relations between sizes: by a proof, else by the values of this call with a guard.
 * Returns CX_OPEN if a value is only known at run time. */
#include "graph/size.h"

typedef struct Decision {
    CxTracer *tracer;
    CiRelation relation;
    const CiExpr *a, *b;
    CiLoc loc;
    int answer;
    bool may_guard, is_usual;
} Decision;

static void
body_decide(CiContext *ctx, void *arg)
{
    Decision *d = arg;
    CxTracer *t = d->tracer;

    d->answer = ci_shape_decide(t->sym, d->relation, d->a, d->b);
    if (d->answer < 0)
        d->answer = cx_facts_decide(t, d->relation, d->a, d->b);
    if (d->answer < 0 && d->may_guard)
        d->answer = (d->is_usual ? ci_shape_usual : ci_shape_guard)(ctx, t->env, d->relation, d->a,
                                                                    d->b, d->loc);
}

typedef enum Guarding { NEVER, GUARDS, USUALLY } Guarding;

static int
decide(CxTracer *t, CiRelation relation, const CiExpr *a, const CiExpr *b, Guarding how)
{
    Decision d = {t, relation, a, b, {.file = ""}, -1, false, how == USUALLY};

    if (a == b)
        return relation == CI_REL_eq || relation == CI_REL_le;
    if (a->kind == CI_EXPR_const && b->kind == CI_EXPR_const)
        return relation == CI_REL_eq   ? 0
               : relation == CI_REL_ne ? 1
               : relation == CI_REL_le ? a->value <= b->value
                                       : a->value < b->value;
    d.may_guard = how != NEVER && cx_size_is_known(t, a) && cx_size_is_known(t, b);
    if (d.may_guard)
        d.loc = cx_location(t);
    int before = t->env->nguards;
    if (cx_protect(t->state, t->sym_ctx, body_decide, &d) < 0)
        return -1;
    if (how == USUALLY && d.answer == 1 && t->env->nguards > before && cx_fact_add_guard(t) < 0)
        return -1;
    return d.answer < 0 ? CX_OPEN : d.answer;
}

int
cx_size_decide(CxTracer *t, CiRelation relation, const CiExpr *a, const CiExpr *b)
{
    return decide(t, relation, a, b, GUARDS);
}

int
cx_size_usual(CxTracer *t, CiRelation relation, const CiExpr *a, const CiExpr *b)
{
    return decide(t, relation, a, b, USUALLY);
}

int
cx_size_prove(CxTracer *t, CiRelation relation, const CiExpr *a, const CiExpr *b)
{
    return decide(t, relation, a, b, NEVER);
}

const CiExpr *
cx_size_extremum(CxTracer *t, CiOp op, const CiExpr *a, const CiExpr *b)
{
    int is_less = cx_size_prove(t, CI_REL_le, a, b),
        is_more = is_less == CX_OPEN ? cx_size_prove(t, CI_REL_le, b, a) : 0;
    if (is_less < 0 || is_more < 0)
        return NULL;
    if (is_less == CX_OPEN && is_more != 1)
        return cx_size_make(t, op, a, b);
    return (is_less == 1) == (op == CI_OP_minimum) ? a : b;
}
