/* What the files of the Builder share: the object, and the arguments of a call of one of its methods. */
#ifndef CX_BUILDER_H
#define CX_BUILDER_H

#include "program/program.h"

typedef struct CxBuilder {
    PyObject_HEAD CxState *state;
    CiContext *ctx; /* owns graph; NULL once the graph is compiled */
    CiGraph *graph;
    CiNode **values; /* by number */
    int nvalues, capvalues;
    CiBlock **blocks; /* by number */
    int nblocks, capblocks;
} CxBuilder;

/* One call of a method: its arguments, read inside of cx_protect, where failing may not return. */
typedef struct CxBuilderCall {
    CxBuilder *builder;
    const char *op, *type, *combine, *name, *file;
    PyObject *args, *axes, *starts, *steps, *value, *blocks;
    int line, distinct, number;
} CxBuilderCall;

/* Inside of cx_protect: a size of an int or of an expression's text. */
const CiExpr *cx_expr_from(const CiGraph *graph, PyObject *object);

/* builder_make.c: bodies of cx_protect, one for each method, that read a CxBuilderCall. */
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
