/* The conditions under which a specialization may run a call. */
#ifndef CX_GUARDS_H
#define CX_GUARDS_H

#include "graph/tracer.h"

/* The values that a specialization computes from a call's sizes have indices in a table: symbols
 * first, then expressions requested with cx_guards_number before the first call. */
typedef struct CxGuards CxGuards;
/* tracer: its symbols are used by the checks, and its shape guards are checked too. */
CxGuards *cx_guards_new(CxTracer *tracer, PyObject *sources, PyObject *checks);
void cx_guards_free(CxGuards *guards);
int cx_guards_traverse(CxGuards *guards, visitproc visit, void *arg);
int cx_guards_count(const CxGuards *guards); /* sources */
/* True if each call makes an object of one of its arguments, such as an array of a list. */
bool cx_guards_make(const CxGuards *guards);
/* The index of an expression of any CiSym whose symbols have the same names; -1 on failure. */
int cx_guards_number(CxGuards *guards, const CiExpr *e);
/* Results are views of this source: its strides are compared along every axis, also those with
 * one element or none. */
void cx_guards_show_strides(CxGuards *guards, int source);
int cx_guards_table(const CxGuards *guards); /* number of values; 0 if no size varies */
enum { CX_GUARDS_UNUSUAL = 2 };
/* The condition that fails, by number: a check, with the property in which its value differs; a
 * relation between sizes; or a source that has no value. */
typedef struct CxFailure {
    enum { CX_FAILS_check, CX_FAILS_relation, CX_FAILS_source } what;
    int number, where;
} CxFailure;
/* 1: all guards hold, and values (for cx_guards_drop) and table are filled; 0: one fails, and
 * *failure is set; CX_GUARDS_UNUSUAL: only one that usually holds fails; -1. */
int cx_guards_check(CxGuards *guards, PyObject *const *args, Py_ssize_t nargs, PyObject **values,
                    int64_t *table, CxFailure *failure);
/* True if the call differs in more than sizes and numbers: in classes, dtypes, ranks, texts.
 * Fills values, for cx_guards_drop. */
bool cx_guards_is_other_kind(CxGuards *guards, PyObject *const *args, Py_ssize_t nargs,
                             PyObject **values, int64_t *table);
void cx_guards_finish(const CxGuards *guards, int64_t *table); /* values that no guard needs */
void cx_guards_drop(CxGuards *guards, PyObject **values);
/* For messages: the names of the parameters, and the position of the function ("model.py:12"). */
void cx_guards_set_words(CxGuards *guards, PyObject *names, PyObject *where);
/* guards_text.c: all conditions in words, or the one that fails. */
PyObject *cx_guards_texts(const CxGuards *guards);
PyObject *cx_guards_why_not(const CxGuards *guards, const CxFailure *failure, PyObject **values,
                            const int64_t *table);

/* guards_saved.c: new lists, to be saved: the arguments of Tracer.symbol for each symbol; for
 * each relation both sides, whether it only usually holds, file and line. with_own: also those
 * that follow from symbols and arrays. */
PyObject *cx_guards_symbols(const CxGuards *guards);
PyObject *cx_guards_relations(const CxGuards *guards, bool with_own);
/* The text of the expression with this index; NULL without an exception if it has none. */
PyObject *cx_guards_text_of(const CxGuards *guards, int number);
int cx_guards_number_of_text(CxGuards *guards, PyObject *text); /* -1 with an exception */
/* Adds relations to the tracer's facts about its symbols. */
int cx_guards_take_relations(CxTracer *tracer, PyObject *relations);

#endif
