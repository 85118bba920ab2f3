/* Divergence analysis: finds the values, memory and symbols of a loop's body that differ from lane to lane. */
#ifndef CI_CODEGEN_VARYING_H
#define CI_CODEGEN_VARYING_H

#include "base/map.h"
#include "ir/proc.h"

typedef struct CiVarying {
    const CiExpr *lane_var;
    bool *values;              /* by value number: computed in the body, and differs from lane to lane */
    CiMap *memories, *symbols; /* sets of those that differ from lane to lane */
    CiMap *owned;              /* set: memory that the body allocates */
    bool has_changed;
} CiVarying;

/* lane_var NULL: nothing varies. */
CiVarying ci_vary(CiContext *ctx, const CiProc *proc, const CiStmts *body, const CiExpr *lane_var);
bool ci_index_varies(const CiVarying *v, const CiExpr *e);
/* True if an operand or an index of the statement varies. */
bool ci_stmt_uses_varying(const CiVarying *v, const CiStmt *stmt);
/* True if the elements that a store combines with are contiguous along the lanes, so that no two lanes share one. */
bool ci_lanes_have_own_elements(CiSym *sym, const CiVarying *v, const CiStmt *store);
/* True if the statement has a different effect in each lane. */
bool ci_stmt_varies(const CiVarying *v, const CiStmt *stmt);
/* NULL when the body can run in lanes of that variable, else the reason. */
const char *ci_why_not_lanes(CiContext *ctx, const CiProc *proc, const CiStmts *body,
                             const CiExpr *lane_var);

#endif
