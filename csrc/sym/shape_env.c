/* Invariant: a guard is recorded once, as it held under the hints, so all guards together hold for
 * the sizes that were seen. */
#include "sym/shape_env.h"

CiShapeEnv *
ci_shape_env_new(CiContext *ctx, CiSym *sym)
{
    CiShapeEnv *env = CI_NEW(ctx, CiShapeEnv);
    env->sym = sym;
    return env;
}

typedef struct Hints {
    CiContext *ctx;
    const CiShapeEnv *env;
} Hints;

/* The source of a symbol whose value is known when the program is compiled, or NULL. */
static const CiSymbolSource *
find_hint(const CiShapeEnv *env, const CiExpr *symbol)
{
    for (int k = 0; k < env->nsources; k++)
        if (env->sources[k].symbol == symbol && !env->sources[k].is_unbacked)
            return &env->sources[k];
    return NULL;
}

bool
ci_shape_env_has_hint(const CiShapeEnv *env, const CiExpr *e)
{
    for (int k = 0; k < e->nsymbols; k++)
        if (find_hint(env, e->symbols[k]) == NULL)
            return false;
    return true;
}

static int64_t
hint_of(void *arg, const CiExpr *symbol)
{
    Hints *hints = arg;
    const CiSymbolSource *source = find_hint(hints->env, symbol);
    if (source != NULL)
        return source->hint;
    ci_fail(hints->ctx, CI_ERR_UNSUPPORTED, "the value of %s is not known before the program runs",
            symbol->name);
}

int64_t
ci_shape_env_hint(CiContext *ctx, const CiShapeEnv *env, const CiExpr *e)
{
    Hints hints = {ctx, env};
    return ci_expr_evaluate(ctx, e, hint_of, &hints);
}

int
ci_shape_decide(CiSym *sym, CiRelation relation, const CiExpr *a, const CiExpr *b)
{
    switch (relation) {
    case CI_REL_eq:
        return ci_sym_known_eq(sym, a, b) ? 1 : ci_sym_known_ne(sym, a, b) ? 0 : -1;
    case CI_REL_ne:
        return ci_sym_known_ne(sym, a, b) ? 1 : ci_sym_known_eq(sym, a, b) ? 0 : -1;
    case CI_REL_le:
        return ci_sym_known_le(sym, a, b) ? 1 : ci_sym_known_lt(sym, b, a) ? 0 : -1;
    case CI_REL_lt:
        return ci_sym_known_lt(sym, a, b) ? 1 : ci_sym_known_le(sym, b, a) ? 0 : -1;
    }
    return -1;
}

static CiShapeGuard
negated(CiShapeGuard guard)
{
    switch (guard.relation) {
    case CI_REL_eq:
        return (CiShapeGuard){CI_REL_ne, guard.left, guard.right, guard.loc, false};
    case CI_REL_ne:
        return (CiShapeGuard){CI_REL_eq, guard.left, guard.right, guard.loc, false};
    case CI_REL_le:
        return (CiShapeGuard){CI_REL_lt, guard.right, guard.left, guard.loc, false};
    case CI_REL_lt:
        return (CiShapeGuard){CI_REL_le, guard.right, guard.left, guard.loc, false};
    }
    return guard;
}

static bool
decide(CiContext *ctx, CiShapeEnv *env, CiShapeGuard guard)
{
    int decided = ci_shape_decide(env->sym, guard.relation, guard.left, guard.right);
    if (decided >= 0)
        return decided;
    bool answer = ci_relation_is_true(guard.relation, ci_shape_env_hint(ctx, env, guard.left),
                                      ci_shape_env_hint(ctx, env, guard.right));
    if (!answer)
        guard = negated(guard);
    for (int k = 0; k < env->nguards; k++) {
        CiShapeGuard *old = &env->guards[k];
        if (old->relation == guard.relation && old->left == guard.left &&
            old->right == guard.right) {
            old->is_usual = old->is_usual && guard.is_usual;
            return answer;
        }
    }
    CI_PUSH(ctx, env->guards, env->nguards, env->capguards, guard);
    return answer;
}

bool
ci_shape_guard(CiContext *ctx, CiShapeEnv *env, CiRelation relation, const CiExpr *a,
               const CiExpr *b, CiLoc loc)
{
    return decide(ctx, env, (CiShapeGuard){relation, a, b, loc, false});
}

bool
ci_shape_usual(CiContext *ctx, CiShapeEnv *env, CiRelation relation, const CiExpr *a,
               const CiExpr *b, CiLoc loc)
{
    return decide(ctx, env, (CiShapeGuard){relation, a, b, loc, true});
}
