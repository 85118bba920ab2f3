/* Numbers computed bottom-up from an expression. Operands are shared, so a traversal that visits each of them as often
 * as it is used takes exponential time: a visit remembers most results, and ends. */
#ifndef CI_SYM_EXPR_VISIT_H
#define CI_SYM_EXPR_VISIT_H

#include "sym/expr.h"

enum { CI_VISIT_KNOWN = 64, CI_MAX_VISITS = 100000 };

typedef struct CiExprVisit CiExprVisit;
struct CiExprVisit {
    double (*compute)(CiExprVisit *visit, const CiExpr *e); /* from ci_expr_visit of the operands */
    double most;                                            /* of a symbol */
    int visits;
    const CiExpr *known[CI_VISIT_KNOWN]; /* by number of expression */
    double values[CI_VISIT_KNOWN];
};

/* The number of e; infinite after CI_MAX_VISITS computations. */
double ci_expr_visit(CiExprVisit *visit, const CiExpr *e);

#endif
