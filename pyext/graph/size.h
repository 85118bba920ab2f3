/* Sizes of the tracer's sym: made, compared, decided, and found again when a program runs. */
#ifndef CX_SIZE_H
#define CX_SIZE_H

#include "graph/storage.h"

/* size.c: expressions and their values. Functions give NULL or -1 with an exception. */
int cx_size_consts(CxTracer *tracer, int count, const int64_t *values, const CiExpr **out);
const CiExpr *cx_size_const(CxTracer *tracer, int64_t value);
/* op: add, subtract, multiply, floor_divide, remainder, minimum, maximum. */
const CiExpr *cx_size_make(CxTracer *tracer, CiOp op, const CiExpr *a, const CiExpr *b);
const CiExpr *cx_size_count(CxTracer *tracer, int rank, const CiExpr *const *sizes);
bool cx_sizes_are_const(int count, const CiExpr *const *exprs, int64_t *values);
bool cx_size_is_known(const CxTracer *tracer, const CiExpr *e); /* has a value in this call */
/* -1 with an exception where e has none because a size is marked unbacked; what: who asks. */
int cx_size_refuse(CxTracer *tracer, const CiExpr *e, const char *what);
int cx_size_values(CxTracer *tracer, int count, const CiExpr *const *exprs, int64_t *values);
void cx_size_samples(CxTracer *tracer, int count, const CiExpr *const *exprs, int64_t *values);
void cx_size_sample_layout(CxTraced *x, int64_t *sizes, int64_t *strides); /* strides: or NULL */
const CiExpr *cx_size_resolve(CxTracer *tracer,
                             const CiExpr *e); /* data of earlier graphs as numbers */
/* The largest value of e by what is older than `before` (ci_sym_count); *most NULL: there is no
 * such bound. */
int cx_size_most(CxTracer *tracer, const CiExpr *e, uint32_t before, const CiExpr **most);

/* facts.c: what is known of sizes; token: what forgets it, 0 for a check that the program passes,
 * -1 for a guard. cx_facts_decide: inside cx_protect; 1, 0, -1 open. */
int cx_fact_add(CxTracer *tracer, CiRelation relation, const CiExpr *a, const CiExpr *b,
                long token);
int cx_fact_add_guard(CxTracer *tracer);
int cx_facts_decide(CxTracer *tracer, CiRelation relation, const CiExpr *a, const CiExpr *b);
void cx_facts_forget(CxTracer *tracer, long token);
void cx_facts_forget_guards(CxTracer *tracer, int kept); /* but for the first */
void cx_facts_release(CxTracer *tracer);

/* size_decisions.c: does the relation hold? By proof; else by the values of this call, which is guarded. 1,
 * 0, CX_OPEN or -1. Proofs alone: cx_size_prove. */
enum { CX_OPEN = 2 }; /* an answer that only the running program knows */
int cx_size_decide(CxTracer *tracer, CiRelation relation, const CiExpr *a, const CiExpr *b);
int cx_size_prove(CxTracer *tracer, CiRelation relation, const CiExpr *a, const CiExpr *b);
/* As cx_size_decide, of a relation that usually holds: see ci_shape_usual. */
int cx_size_usual(CxTracer *tracer, CiRelation relation, const CiExpr *a, const CiExpr *b);
/* The smaller or larger of two, by the values of this call where they tell. */
const CiExpr *cx_size_extremum(CxTracer *tracer, CiOp op, const CiExpr *a, const CiExpr *b);
/* A check that fails has the whole call answered by the function itself: nothing may have happened
 * yet that it would do again. */
static inline bool
cx_may_check(const CxTracer *tracer)
{
    return tracer->effects == 0 && tracer->flushes == 0;
}

/* size_source.c: before a flush, finds the inputs that show the graph's symbols, adds those that no
 * array shows, and tells the tracer's environment what the graph's assumed. */
int cx_symbols_resolve(CxTracer *tracer);
/* The values of symbols that a storage which became real shows. */
int cx_symbols_learn(CxStorage *storage);
int cx_symbol_number(const CxTracer *tracer, const CxStorage *input); /* -1: its value is none */

/* symbols.c */
int cx_symbols_open(CxTracer *tracer);
/* After a run, sizes that nothing may be decided by are what they are in this call. */
void cx_symbols_reveal(CxTracer *tracer);
/* The expression that a text of a saved call ("s0", "2*s0 - 1", "8") stands for; and its text, or
 * that of an equation. NULL with an exception. */
const CiExpr *cx_symbol_parse(CxTracer *tracer, PyObject *text);
PyObject *cx_symbol_text(CxTracer *tracer, const CiExpr *left, const CiExpr *right);

#endif
