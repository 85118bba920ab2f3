/* Private declarations of the expression module. */
#ifndef CI_SYM_EXPR_PRIVATE_H
#define CI_SYM_EXPR_PRIVATE_H

#include "base/map.h"
#include "sym/expr.h"

struct CiSym {
    CiContext *ctx;
    CiMap *nodes;   /* hash -> chain of nodes */
    CiMap *symbols; /* interned name -> the symbol asked for last */
    CiMap *quotients, *remainders, *minima, *maxima; /* ids of both operands -> result */
    CiMap *recombined; /* id of a linear that holds a mod -> what it simplifies to, or itself */
    CiMap *definitions; /* name -> what it is in the expression that is being parsed; NULL: none yet */
    CiMap *points; /* id -> what it is at points that proofs are tried at */
    CiMap *unproved; /* ids of those that a whole search has not proved to be at least 0 */
    uint32_t next_id;
    const CiExpr *recent[64]; /* constants asked for lately, by their value */
    uint64_t work, most_work; /* nodes built, those that existed included, and how many end the present proof */
    int proof_depth; /* proofs build expressions, and building proves: this bounds the descent */
};

typedef struct CiBounds {
    int64_t low, high;
} CiBounds;

/* Exactly one integer, and not one that stands for "unbounded". */
static inline bool
ci_bounds_is_point(CiBounds a)
{
    return a.low == a.high && a.low != INT64_MIN && a.low != INT64_MAX;
}

CiBounds ci_bounds_of(const CiExpr *e);
CiBounds ci_bounds_floordiv(CiBounds a, CiBounds b);
/* The bounds of an expression that is not a symbol, from those of its args. */
CiBounds ci_bounds_compute(const CiExpr *e);

/* The argument of a sum that prints first. Which one that is does not depend on what was built before. */
int ci_expr_first_printed(const CiExpr *e);
/* A floordiv, mod, min or max of these very args. */
const CiExpr *ci_expr_node(CiSym *sym, CiExprKind kind, int nargs, const CiExpr *const *args);
const CiExpr *ci_expr_scale(CiSym *sym, const CiExpr *e, int64_t by);

/* Any expression seen as value + sum of coef * atom. */
int ci_expr_nterms(const CiExpr *e);
const CiExpr *ci_expr_term(const CiExpr *e, int k, int64_t *coef);
int64_t ci_expr_value(const CiExpr *e);
/* Any atom seen as a product. */
int ci_expr_nfactors(const CiExpr *atom);
const CiExpr *ci_expr_factor(const CiExpr *atom, int k);

/* Checked arithmetic on constants: CI_ERR_UNSUPPORTED if int64 overflows. */
int64_t ci_checked_add(CiContext *ctx, int64_t a, int64_t b);
int64_t ci_checked_mul(CiContext *ctx, int64_t a, int64_t b);
int64_t ci_checked_floordiv(CiContext *ctx, int64_t a, int64_t b);
int64_t ci_floor_mod(int64_t a, int64_t b);

/* Sample points within all ranges, a bit each: where the value of an expression is known, and where it is negative. */
enum { CI_SAMPLE_POINTS = 8 };
unsigned ci_expr_known_at(CiSym *sym, const CiExpr *e);
unsigned ci_expr_negative_at(CiSym *sym, const CiExpr *e);
/* a - b - margin; NULL when a constant overflows. */
const CiExpr *ci_expr_difference(CiSym *sym, const CiExpr *a, const CiExpr *b, int64_t margin);
/* Proved: e >= 0 wherever its symbols are in their ranges and below their limits. */
bool ci_expr_is_nonnegative(CiSym *sym, const CiExpr *e);
/* n*(x//n) + x%n -> x and its kin, in a linear that holds a mod; NULL when nothing fits. */
const CiExpr *ci_expr_recombine(CiSym *sym, const CiExpr *linear);
/* a = quotient*b + remainder as polynomials. */
void ci_expr_divide(CiSym *sym, const CiExpr *a, const CiExpr *b, const CiExpr **quotient,
                    const CiExpr **remainder);

#endif
