/* The conditions under which a specialization may run a call. */
#ifndef CX_GUARDS_H
#define CX_GUARDS_H

#include "graph/tracer.h"

/* The values that a specialization computes from a call's sizes are numbers of a table:
 * symbols first, then what was asked for with cx_guards_number before the first call. */
typedef struct CxGuards CxGuards;
/* tracer: whose symbols the checks use and whose shape guards are checked too. */
CxGuards *cx_guards_new(CxTracer *tracer, PyObject *sources, PyObject *checks);
void cx_guards_free(CxGuards *guards);
int cx_guards_traverse(CxGuards *guards, visitproc visit, void *arg);
int cx_guards_count(const CxGuards *guards); /* sources */
/* The number of an expression of any CiSym whose symbols have the same names; -1. */
int cx_guards_number(CxGuards *guards, const CiExpr *e);
/* Results are views of this source: its strides are compared along every axis, also where it has one
 * element or none. */
void cx_guards_show_strides(CxGuards *guards, int source);
int cx_guards_table(const CxGuards *guards); /* how many values; 0 when no size varies */
enum { CX_GUARDS_UNUSUAL = 2 };
/* 1: all hold, values (for cx_guards_drop) and table filled; 0: one does not, *why
 * set when asked for; CX_GUARDS_UNUSUAL: only one that usually holds does not; -1. */
int cx_guards_check(CxGuards *guards, PyObject *const *args, Py_ssize_t nargs, PyObject **values,
                    int64_t *table, PyObject **why);
/* Would it be another one whatever the sizes and numbers: of other classes, dtypes, ranks, texts?
 * Fills values, for cx_guards_drop. */
bool cx_guards_is_other_kind(CxGuards *guards, PyObject *const *args, Py_ssize_t nargs,
                             PyObject **values, int64_t *table);
void cx_guards_finish(const CxGuards *guards, int64_t *table); /* the values guards do not need */
void cx_guards_drop(CxGuards *guards, PyObject **values);
/* For texts: the parameters' names, and where the function is ("model.py:12"). */
void cx_guards_set_words(CxGuards *guards, PyObject *names, PyObject *where);
PyObject *cx_guards_texts(CxGuards *guards);

/* guards_saved.c: what is known of sizes that vary, to be written down. New lists: what Tracer.symbol is
 * told of each symbol; relation, both sides, whether it only usually holds, file and line of each. */
PyObject *cx_guards_symbols(const CxGuards *guards);
PyObject *cx_guards_relations(const CxGuards *guards);
/* An expression whose number it is, as a text; NULL without an exception where there is none. */
PyObject *cx_guards_text_of(const CxGuards *guards, int number);
int cx_guards_number_of_text(CxGuards *guards, PyObject *text); /* -1 with an exception */
/* Adds relations to what the tracer knows of its symbols. */
int cx_guards_take_relations(CxTracer *tracer, PyObject *relations);

#endif
