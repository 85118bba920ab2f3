/* Symbolic sizes during capture: functions that build and compare them, and that find the sources of their values when a
 * program runs. */
#ifndef CX_SIZE_H
#define CX_SIZE_H

#include "graph/storage.h"

/* size.c: expressions and their values. Functions return NULL or -1 with an exception. */
int cx_size_consts(CxTracer *tracer, int count, const int64_t *values, const CiExpr **out);
const CiExpr *cx_size_const(CxTracer *tracer, int64_t value);
/* op: add, subtract, multiply, floor_divide, remainder, minimum, maximum. */
const CiExpr *cx_size_make(CxTracer *tracer, CiOp op, const CiExpr *a, const CiExpr *b);
const CiExpr *cx_size_count(CxTracer *tracer, int rank, const CiExpr *const *sizes);
bool cx_sizes_are_const(int count, const CiExpr *const *exprs, int64_t *values);
bool cx_size_is_known(const CxTracer *tracer, const CiExpr *e); /* true if it has a value in this call */
/* Returns -1 with an exception if e has no value because a size is marked unbacked; what: the
 * operation, for the message. */
int cx_size_refuse(CxTracer *tracer, const CiExpr *e, const char *what);
int cx_size_values(CxTracer *tracer, int count, const CiExpr *const *exprs, int64_t *values);
void cx_size_samples(CxTracer *tracer, int count, const CiExpr *const *exprs, int64_t *values);
void cx_size_sample_layout(CxTraced *x, int64_t *sizes, int64_t *strides); /* strides: or NULL */
const CiExpr *cx_size_resolve(CxTracer *tracer,
                             const CiExpr *e); /* replaces symbols defined by earlier graphs by their values */
/* Sets *most to an upper bound of e in terms of expressions older than `before` (ci_sym_count),
 * or to NULL if there is none. */
int cx_size_most(CxTracer *tracer, const CiExpr *e, uint32_t before, const CiExpr **most);

/* facts.c: adds and uses facts about sizes. token: the number by which the fact is forgotten; 0 for a check of the program,
 * -1 for a guard. cx_facts_decide runs inside of cx_protect and returns 1, 0, or -1 if the facts do not decide. */
int cx_fact_add(CxTracer *tracer, CiRelation relation, const CiExpr *a, const CiExpr *b,
                long token);
int cx_fact_add_guard(CxTracer *tracer);
int cx_facts_decide(CxTracer *tracer, CiRelation relation, const CiExpr *a, const CiExpr *b);
void cx_facts_forget_since(CxTracer *tracer, long token); /* those with a later token */
void cx_facts_forget_guards(CxTracer *tracer, int kept); /* except for the first `kept` */
void cx_facts_release(CxTracer *tracer);

/* size_decisions.c: decides the relation: by a proof, else by the values of this call with a
 * guard. Returns 1, 0, CX_OPEN or -1. cx_size_prove only uses proofs. */
enum { CX_OPEN = 2 }; /* only known at run time */
int cx_size_decide(CxTracer *tracer, CiRelation relation, const CiExpr *a, const CiExpr *b);
int cx_size_prove(CxTracer *tracer, CiRelation relation, const CiExpr *a, const CiExpr *b);
/* Like cx_size_decide, for a relation that usually holds: see ci_shape_usual. */
int cx_size_usual(CxTracer *tracer, CiRelation relation, const CiExpr *a, const CiExpr *b);
/* The minimum or maximum of two sizes, decided by the values of this call if they are known. */
const CiExpr *cx_size_extremum(CxTracer *tracer, CiOp op, const CiExpr *a, const CiExpr *b);
/* True if a check may be added. When a check fails the original function runs the whole call
 * again, so there must not have been an effect. */
static inline bool
cx_may_check(const CxTracer *tracer)
{
    return tracer->effects == 0 && tracer->flushes == 0;
}

/* size_source.c: before a flush, finds the inputs that define the graph's symbols, adds inputs
 * for other symbols, and copies the graph's assumptions to the tracer's environment. */
int cx_symbols_resolve(CxTracer *tracer);
/* Records the values of symbols that are sizes of a storage which became real. */
int cx_symbols_learn(CxStorage *storage);
/* -1 if its value is not a symbol. */
int cx_symbol_number(const CxTracer *tracer, const CxStorage *input);

/* symbols.c */
int cx_symbols_open(CxTracer *tracer);
/* After a run, replaces sizes that are marked unbacked by their values in this call. */
void cx_symbols_reveal(CxTracer *tracer);
/* Parses the text of an expression in a saved call ("s0", "2*s0 - 1", "8"), and prints one, or
 * an equation. NULL with an exception. */
const CiExpr *cx_symbol_parse(CxTracer *tracer, PyObject *text);
PyObject *cx_symbol_text(CxTracer *tracer, const CiExpr *left, const CiExpr *right);

#endif
