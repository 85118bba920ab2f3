/* Shared declarations of the files that expand kernels. */
#ifndef CI_CODEGEN_EXPAND_PRIVATE_H
#define CI_CODEGEN_EXPAND_PRIVATE_H

#include "analysis/labels.h"
#include "base/map.h"
#include "codegen/codegen.h"

typedef struct CiExpander {
    CiBuild b;
    const CiKernel *kernel; /* the whole one */
    const CiKernel *leaf;   /* the one whose stages are expanded: itself, or a leaf of its tree */
    CiLabels labels;        /* how it runs */
    CiMap *memories;        /* CiBuffer -> CiMemory */
    CiMap *cells;           /* CiNest -> CiMemory, of those that count or run */
} CiExpander;

static inline const CiExpr *
ci_expand_number(CiExpander *x, int64_t value)
{
    return ci_expr_const(x->b.sym, value);
}

/* expand_memory.c. Parameters: buffers, sizes, and the scalars that bodies load. */
void ci_expand_params(CiExpander *x);
/* Allocates the placements of a kernel or leaf at the beginning of its outer loops. */
void ci_expand_placements(CiExpander *x, const CiKernel *leaf);
/* Scalars of the tree's function: loaded before the tree if it reads them, stored after it. */
void ci_expand_open_scalars(CiExpander *x);
void ci_expand_close_scalars(CiExpander *x);
/* Where a buffer lives in this kernel, and its element number there. */
CiMemory *ci_expand_memory(CiExpander *x, const CiBuffer *buffer);
const CiExpr *ci_expand_place(CiExpander *x, const CiBuffer *buffer, const CiExpr *index);

/* expand_stage.c: the loops and folds of a stage. */
void ci_expand_stage(CiExpander *x, const CiStage *stage);

/* short_rows.c: sets the row of a kernel whose rows may be short in a call. */
void ci_find_short_rows(const CiExpander *x, CiProcHead *head);

#endif
