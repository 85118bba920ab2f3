/* Sizes at run time: the symbolic integers of a program as a table of int64 and straight code that
 * fills it.
 *
 * The table starts with the symbols' values; constants are filled in at creation, so the table of
 * a program without symbols is complete and shared by all calls. Code comes in segments. The first
 * depends on extents only and runs once per call. Each loop around kernels has a segment for the
 * start of every iteration, each data-dependent symbol one that runs after its definition. */
#ifndef CI_SYM_VALUES_H
#define CI_SYM_VALUES_H

#include "base/map.h"
#include "sym/expr.h"

typedef enum CiValueOp {
    CI_VALUE_copy, /* out = a */
    CI_VALUE_add,  /* out = a + factor*b */
    CI_VALUE_multiply,
    CI_VALUE_floordiv, /* by zero: zero, as nothing of that size is ever touched */
    CI_VALUE_mod,
    CI_VALUE_min,
    CI_VALUE_max
} CiValueOp;

typedef struct CiValueCode {
    CiValueOp op;
    int out, a, b;
    int64_t factor;
} CiValueCode;

typedef struct CiSegment {
    CiValueCode *code;
    int ncode, capcode;
} CiSegment;

typedef struct CiValues {
    int64_t *initial;
    int count, capacity;
    CiSegment *segments; /* [0], then one per loop variable */
    int nsegments, capsegments;
    int nextents, nsymbols;
} CiValues;

typedef struct CiValuesBuilder {
    CiContext *ctx; /* of the program */
    CiValues *values;
    CiMap *numbers;  /* expression -> its number + 1 */
    int *segment_of; /* per value: -1 constant */
    int nsegment_of, capsegment_of;
    CiSegment *formula; /* of the formula that is made; NULL: none is */
    int *spare; /* values that formulas compute in turn */
    int nspare, capspare, nused;
} CiValuesBuilder;

/* An expression with code of its own, which is run when the value is asked for. */
typedef struct CiFormula {
    int number;
    CiSegment code;
} CiFormula;

void ci_values_begin(CiValuesBuilder *builder, CiContext *ctx, CiValues *values);
/* Symbols first, extents before loop variables; each loop variable opens a segment. Returns its
 * number. */
int ci_values_add_symbol(CiValuesBuilder *builder, const CiExpr *symbol, bool is_loop_variable);
/* A symbol that gets its value, and perhaps another later, when formulas are evaluated. Returns its number. */
int ci_values_add_variable(CiValuesBuilder *builder, const CiExpr *symbol);
int ci_values_find(const CiValuesBuilder *builder, const CiExpr *e); /* its number, or -1 */
CiFormula ci_values_formula(CiValuesBuilder *builder, const CiExpr *e);
/* The number of an expression's value. Fails with CI_ERR_INTERNAL on an unknown symbol. */
int ci_values_number(CiValuesBuilder *builder, const CiExpr *e);
int ci_values_constant(CiValuesBuilder *builder, int64_t value);
/* Consecutive numbers for a row of values; returns the first. */
int ci_values_row(CiValuesBuilder *builder, int count, const CiExpr *const *exprs);

void ci_values_run(const CiSegment *segment, int ncode, int64_t *table);
static inline int64_t
ci_formula_evaluate(const CiFormula *formula, int64_t *table)
{
    if (formula->code.ncode)
        ci_values_run(&formula->code, formula->code.ncode, table);
    return table[formula->number];
}

#endif
