/* The shape environment: where size symbols come from, and what was assumed of them.
 *
 * A size symbol is an axis of an input, or an integer argument. Until symbols are chosen by a
 * dynamic policy every size is a constant, but all levels go through expressions, so a symbol can
 * be used anywhere a constant can. `ci_sym_known_*` (sym/expr.h) never adds a guard;
 * `ci_shape_guard_*` does, and records the user's line that asked. */
#ifndef CI_SYM_SHAPE_ENV_H
#define CI_SYM_SHAPE_ENV_H

#include "sym/expr.h"

typedef enum CiRelation { CI_REL_eq, CI_REL_ne, CI_REL_le, CI_REL_lt } CiRelation;

/* Inline, because guards ask it in each call. */
static inline bool
ci_relation_is_true(CiRelation relation, int64_t x, int64_t y)
{
    return relation == CI_REL_eq   ? x == y
           : relation == CI_REL_ne ? x != y
           : relation == CI_REL_le ? x <= y
                                   : x < y;
}

typedef struct CiShapeGuard {
    CiRelation relation;
    const CiExpr *left, *right;
    CiLoc loc;
    bool is_usual; /* sizes that deny it are so rare that nothing is compiled for them at first */
} CiShapeGuard;

typedef struct CiSymbolSource {
    const CiExpr *symbol;
    int input;        /* parameter position in the graph */
    int axis;         /* -1: the value of an integer parameter */
    int64_t hint;     /* value seen when compiled */
    bool is_unbacked; /* which nothing may be decided by */
} CiSymbolSource;

typedef struct CiShapeEnv {
    CiSym *sym;
    CiSymbolSource *sources;
    int nsources, capsources;
    CiShapeGuard *guards;
    int nguards, capguards;
} CiShapeEnv;

CiShapeEnv *ci_shape_env_new(CiContext *ctx, CiSym *sym);
/* ci_shape_env_has_hint: true if e has a value under the hints. ci_shape_env_hint: that value. */
bool ci_shape_env_has_hint(const CiShapeEnv *env, const CiExpr *e);
int64_t ci_shape_env_hint(CiContext *ctx, const CiShapeEnv *env, const CiExpr *e);
/* By proof alone: 1 it holds, 0 it does not, -1 open. */
int ci_shape_decide(CiSym *sym, CiRelation relation, const CiExpr *a, const CiExpr *b);
/* Decides the relation: by proof when there is one; otherwise by the hints, adding a guard. */
bool ci_shape_guard(CiContext *ctx, CiShapeEnv *env, CiRelation relation, const CiExpr *a,
                    const CiExpr *b, CiLoc loc);
/* Like ci_shape_guard, for a relation that usually holds: if it does not, NumPy raises an
 * exception, or there is almost nothing to compute. */
bool ci_shape_usual(CiContext *ctx, CiShapeEnv *env, CiRelation relation, const CiExpr *a,
                    const CiExpr *b, CiLoc loc);

#endif
