/* Shared declarations of the files that expand kernels to procs. */
#ifndef CI_CODEGEN_EXPAND_PRIVATE_H
#define CI_CODEGEN_EXPAND_PRIVATE_H

#include "analysis/labels.h"
#include "base/map.h"
#include "codegen/codegen.h"

typedef struct CiExpander {
    CiBuild b;
    const CiKernel *kernel; /* the kernel of the proc */
    const CiKernel *leaf;   /* the kernel whose stages are expanded now: `kernel`, or a leaf of its tree */
    CiLabels labels;        /* how the machine runs the kernel's axes */
    CiMap *memories;        /* CiBuffer -> CiMemory */
    CiMap *cells;           /* CiNest -> CiMemory: the counter of a compress, the running value of a scan */
} CiExpander;

static inline const CiExpr *
ci_expand_number(CiExpander *x, int64_t value)
{
    return ci_expr_const(x->b.sym, value);
}

/* expand_memory.c. Adds the proc's parameters: buffers, sizes, and the scalar inputs that bodies load. */
void ci_expand_params(CiExpander *x);
/* Allocates the placements of a kernel or leaf at the beginning of its outer loops. */
void ci_expand_placements(CiExpander *x, const CiKernel *leaf);
/* Loads the scalars that the tree reads before it stores them, and, after the tree, stores the scalars. */
void ci_expand_open_scalars(CiExpander *x);
void ci_expand_close_scalars(CiExpander *x);
/* The memory of a buffer in this kernel, and the element of that memory for an index of the buffer. */
CiMemory *ci_expand_memory(CiExpander *x, const CiBuffer *buffer);
const CiExpr *ci_expand_place(CiExpander *x, const CiBuffer *buffer, const CiExpr *index);

/* expand_stage.c: emits the loops and folds of a stage. */
void ci_expand_stage(CiExpander *x, const CiStage *stage);

/* short_rows.c: sets head->row if the kernel's rows may be short in some call. */
void ci_find_short_rows(const CiExpander *x, CiProcHead *head);

#endif
