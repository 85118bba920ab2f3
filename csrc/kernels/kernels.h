/* Templates: loops of kernels that no pass would find, written by a builder for each family of
 * machines (ir/templates.def).
 *
 * A builder gets the original loops of the kernel and replaces them. The parts that are specific to
 * a kernel are holes: bodies of the original loops, instantiated at indices of the new ones. So
 * element-wise operations before a product (prologue) and after it (epilogue) are fused into it. */
#ifndef CI_KERNELS_KERNELS_H
#define CI_KERNELS_KERNELS_H

#include "analysis/templates.h"
#include "codegen/instantiate.h"
#include "codegen/codegen.h"

/* The statements that compute one value of a body, and nothing else; yields the value. */
typedef struct CiHole {
    CiStmts body;
    const CiStmt *load; /* the only one, where the value is an element of memory; else NULL */
} CiHole;
/* True if the value is an element of memory, and the next one where the variable is one more. */
bool ci_hole_has_stride_one(const CiBuild *b, const CiHole *hole, const CiExpr *var);

/* The statements that compute one value of a body. */
CiHole ci_hole_of_value(CiBuild *b, const CiStmts *body, int value);
/* True if the value of the hole is another one at another value of the symbol. */
bool ci_hole_varies(const CiHole *hole, const CiExpr *symbol);
/* The narrow float that a value of the body is the f32 of; -1: it is of none. */
int ci_find_narrow(const CiBuild *b, const CiStmts *body, int value);

/* Symbols of bodies, and what they are where a body is instantiated. */
typedef struct CiSymbols {
    const CiExpr *from[CI_MAX_FOLD_AXES + 2], *to[CI_MAX_FOLD_AXES + 2];
    int count;
} CiSymbols;
static inline void
ci_symbols_add(CiSymbols *symbols, const CiExpr *from, const CiExpr *to)
{
    symbols->from[symbols->count] = from;
    symbols->to[symbols->count++] = to;
}
/* The body where its symbols are these, for one lane. */
static inline const int *
ci_build_with(CiBuild *b, const CiStmts *body, const CiSymbols *symbols)
{
    CiAt at = {symbols->count, symbols->from, symbols->to, NULL, 1, NULL, 1};
    return ci_build_at(b, body, &at);
}

/* Loads of the old memory in the block become loads of the other one, at that index; so do earlier ones of the other. */
void ci_read_from(CiStmts *block, const CiMemory *old, CiMemory *memory, const CiExpr *index);

/* A product's loops, taken apart. */
typedef struct CiProductLoops {
    CiStmt *points[CI_MAX_FOLD_AXES]; /* loops over points */
    int npoints, row_at, column_at;   /* row and column among them */
    CiStmt *row, *column;
    const CiExpr *row_var, *column_var, *step;       /* of the bodies in the holes */
    const CiExpr *row_extent, *column_extent, *length;
    CiHole left, right; /* factors: of a row and a step, of a step and a column */
    CiDtype narrow;     /* both are f32 of this type, f16 or bf16, and these are they; f32: they are not */
    CiHole narrow_left, narrow_right;
    CiStmts behind;     /* what is done with the sum, at a row and a column */
    CiMemory *sum;      /* which it finds here */
    CiStmts *inside;    /* where the new loops go */
} CiProductLoops;

CiProductLoops ci_product_split(CiBuild *b);
/* Emits the epilogue, with the sum at that position. */
void ci_product_put_after(CiBuild *b, CiProductLoops *loops, CiMemory *sums, const CiExpr *position, const CiSymbols *symbols);

/* The loops of an attention, taken apart. */
typedef struct CiAttentionLoops {
    CiStmt *points[CI_MAX_FOLD_AXES]; /* loops over points; the last one is that of rows */
    int npoints;
    const CiStmt *first, *top, *sum, *second;             /* folds */
    CiMemory *scores_memory, *sum_memory, *result_memory; /* what the folds' results are stored to */
    CiHole rows, keys, weights, values, score;            /* factors, narrow if they are; the maximum is of scores */
    bool has_quotients;                                   /* weights are divided by their sum before they are a factor */
    CiHole open_score;                                    /* score, where no key is excluded */
    double scale; /* of the scores: they are multiplied by it */
    bool is_rounded; /* the product that a score is made of is rounded to the type of its factors first */
    bool has_limit;
    const CiExpr *ahead; /* a key is excluded where row - key + ahead < 0 */
    CiDtype narrow;
    const CiExpr *row_var, *key_var, *column_var, *row_extent, *key_extent, *column_extent, *head;
    CiStmts behind;      /* the epilogue */
} CiAttentionLoops;

/* attention_loops.c */
CiAttentionLoops ci_attention_split(CiBuild *b);
/* The program's score, or open_score, of a row and a key, whose product is an element of memory. */
int ci_attention_score(CiBuild *b, const CiAttentionLoops *loops, const CiHole *score, const CiExpr *row, const CiExpr *key,
                       CiAccess product, CiSymbols symbols);
/* Emits the epilogue of a row and a column, whose result and sum of weights are elements of memory. */
void ci_attention_put_after(CiBuild *b, CiAttentionLoops *loops, const CiExpr *row, const CiExpr *column, CiAccess result,
                            CiAccess sum, CiSymbols symbols);

/* cpu/register_tile.c: panels and sums in registers, which products on a processor consist of. */
/* Where a factor is read: at a row or column, and at a step. */
typedef struct CiFactorAt {
    const CiExpr *var, *at, *step_var, *step;
} CiFactorAt;
/* The factor there; in lanes, of as many rows or columns. */
int ci_factor_at(CiBuild *b, const CiHole *hole, const CiFactorAt *at, int lanes);

/* A factor, a few vectors of rows or columns at a time, step by step. */
typedef struct CiPanel {
    const CiHole *hole;
    const CiExpr *side_var, *step_var, *length; /* rows or columns, steps and how many */
    int lanes, vectors;
    CiMemory *memory;
} CiPanel;
/* Fills it from an element on with the rows or columns from `first` on, of which `here` exist; the last one is
 * repeated beyond. */
void ci_panel_fill(CiBuild *b, const CiPanel *panel, const CiExpr *base, const CiExpr *first, const CiExpr *here);

/* Sums of a few rows by one or two vectors. */
typedef struct CiRegisterTile {
    CiDtype dtype;
    int rows, vectors, lanes;
    void *maker; /* of the factors: a number for each row, a vector for each of the vectors */
    int (*left)(void *maker, int row, const CiExpr *step);
    int (*right)(void *maker, int vector, const CiExpr *step);
    CiMemory *sums[2 * CI_PRODUCT_ROWS];
} CiRegisterTile;
/* Rows of a tile with two vectors of sums: these and the factors fill the machine's registers. */
int ci_register_rows(const CiMachine *machine);
/* Rows of tiles of that many, of which few are none of the result's. */
int ci_register_rows_of(const CiExpr *extent, int most);
void ci_register_tile_add_up(CiBuild *b, CiRegisterTile *tile, const CiExpr *length);
int ci_register_tile_sum(CiBuild *b, const CiRegisterTile *tile, int row, int vector);

/* gpu/tensor_product.c: for factors that are narrow floats */
void ci_product_of_tiles(CiBuild *b, const CiProductLoops *loops);

/* The builders of ir/templates.def. */
#define BUILDER(build) void build(CiBuild *b);
#define NONE
#define TEMPLATE(kind, cpu, gpu) cpu gpu
#include "ir/templates.def"
#undef BUILDER
#undef NONE

#endif
