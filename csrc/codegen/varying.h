/* Values that are not the same in all lanes of a loop. */
#ifndef CI_CODEGEN_VARYING_H
#define CI_CODEGEN_VARYING_H

#include "base/map.h"
#include "ir/proc.h"

typedef struct CiVarying {
    const CiExpr *lane_var;
    bool *values;              /* by number: of the body, and differs from lane to lane */
    CiMap *memories, *symbols; /* sets */
    CiMap *owned;              /* memory that the body allocates */
    bool has_changed;
} CiVarying;

/* lane_var NULL: nothing varies. */
CiVarying ci_vary(CiContext *ctx, const CiProc *proc, const CiStmts *body, const CiExpr *lane_var);
bool ci_index_varies(const CiVarying *v, const CiExpr *e);
/* An operand of it varies, or where it is. */
bool ci_stmt_uses_varying(const CiVarying *v, const CiStmt *stmt);
/* True if the elements that a store combines with are contiguous along the lanes, none of them in two lanes. */
bool ci_lanes_have_own_elements(CiSym *sym, const CiVarying *v, const CiStmt *store);
/* True if the statement has a different effect in each lane. */
bool ci_stmt_varies(const CiVarying *v, const CiStmt *stmt);
/* NULL when the body can run in lanes of that variable, else the reason. */
const char *ci_why_not_lanes(CiContext *ctx, const CiProc *proc, const CiStmts *body,
                             const CiExpr *lane_var);

#endif
