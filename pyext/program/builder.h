/* The Builder object, and the arguments of a call of its methods. */
#ifndef CX_BUILDER_H
#define CX_BUILDER_H

#include "program/program.h"

typedef struct CxBuilder {
    PyObject_HEAD CxState *state;
    CiContext *ctx; /* owns the graph; NULL after the graph was compiled */
    CiGraph *graph;
    CiNode **values; /* by their numbers */
    int nvalues, capvalues;
    CiBlock **blocks; /* by their numbers */
    int nblocks, capblocks;
} CxBuilder;

/* One call of a method. Its arguments are read inside of cx_protect, where an error does not
 * return. */
typedef struct CxBuilderCall {
    CxBuilder *builder;
    const char *op, *type, *combine, *name, *file;
    PyObject *args, *axes, *starts, *steps, *value, *blocks;
    int line, distinct, number;
} CxBuilderCall;

/* Inside of cx_protect: a size from an int or from the text of an expression. */
const CiExpr *cx_expr_from(const CiGraph *graph, PyObject *object);

/* builder_make.c: bodies for cx_protect that read a CxBuilderCall, one for each method. */
void cx_builder_symbol(CiContext *ctx, void *arg);
void cx_builder_input(CiContext *ctx, void *arg);
void cx_builder_node(CiContext *ctx, void *arg);
void cx_builder_const(CiContext *ctx, void *arg);
void cx_builder_expr(CiContext *ctx, void *arg);
void cx_builder_check(CiContext *ctx, void *arg);
void cx_builder_define(CiContext *ctx, void *arg);
void cx_builder_write(CiContext *ctx, void *arg);
void cx_builder_results(CiContext *ctx, void *arg);
void cx_builder_block(CiContext *ctx, void *arg);
void cx_builder_enter(CiContext *ctx, void *arg);
void cx_builder_param(CiContext *ctx, void *arg);
void cx_builder_region(CiContext *ctx, void *arg);

#endif
