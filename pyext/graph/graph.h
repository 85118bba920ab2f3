/* The pending graph of a call: functions that build into it, break it off, and run it. */
#ifndef CX_GRAPH_H
#define CX_GRAPH_H

#include "graph/tracer.h"

/* dominance.c: scopes of building. A node may be used as long as its scope is open. */
int cx_dominance_begin(CxTracer *tracer);
/* Reopens the scopes of a block, unless others have begun since. */
int cx_dominance_again(CxTracer *tracer, const unsigned *scopes, int count);
bool cx_dominance_is_open(const CxTracer *tracer, unsigned scope);
static inline unsigned
cx_dominance_now(const CxTracer *tracer)
{
    return tracer->nopen ? tracer->open[tracer->nopen - 1] : 0;
}
int cx_region_break(CxTracer *tracer, const char *format, ...); /* raises RegionBreak; -1 */

/* graph.c: runs the caller's function `body` with a struct that begins with this one. The function builds into `graph` and
 * may set `result`. */
typedef struct CxBuilding {
    CiGraph *graph;
    CiLoc loc;
    CiNode *result;
} CxBuilding;
int cx_graph_open(CxTracer *tracer);
int cx_build_run(CxTracer *tracer, void (*body)(CiContext *, void *), CxBuilding *building);
/* Returns the result; NULL may also mean that there is none, without an exception. */
CiNode *cx_build_custom(CxTracer *tracer, void (*body)(CiContext *, void *), CxBuilding *building);
/* Inside a body: translates a size to the symbols of the graph. */
const CiExpr *cx_graph_expr(CxTracer *tracer, const CiExpr *e);
const CiExpr **cx_graph_exprs(CxTracer *tracer, int count, const CiExpr *const *exprs);
/* The user's current source line; after the function has returned, the last one recorded. */
CiLoc cx_location(CxTracer *tracer);
/* True if the code is the user's, not that of a library that capture traces into. */
bool cx_code_is_users(CxTracer *tracer, PyCodeObject *code);
bool cx_node_is_quiet(const CiNode *node); /* computes neither arrays nor NumPy numbers */
bool cx_node_works(const CiNode *node);
void cx_tracer_end(CxTracer *tracer);

/* build_source.c: nodes without operands; NULL or -1 with an exception. */
CiNode *cx_build_const(CxTracer *tracer, CiDtype dtype, CiKind kind, CiConst value);
CiNode *cx_build_expr(CxTracer *tracer, const CiExpr *e);
CiNode *cx_build_fill(CxTracer *tracer, CiDtype dtype, int rank, const CiExpr *const *sizes,
                      const int8_t *order, const CiConst *value); /* value NULL: empty */
CiNode *cx_build_iota(CxTracer *tracer, int rank, const CiExpr *const *sizes, int axis);
int cx_build_input(CxStorage *storage); /* makes its value an input of the pending graph */

/* breaks.c: records a Break, or raises it under fullgraph. */
extern PyType_Spec cx_break_spec;
int cx_tracer_note(CxTracer *tracer, PyObject *reason);

/* segment.c: finds the program of the pending graph by this key, or compiles it. plain: estimated seconds of the graph in
 * NumPy. */
struct CxProgram *cx_segment_find(CxTracer *tracer, const char *form, double plain);
/* Function of the module: true if a warning was given that a piece is interpreted because the compiler failed. */
PyObject *cx_has_warned_of_compiler(PyObject *module, PyObject *unused);
/* work.c: estimates the time of a graph in NumPy: for all sizes, in the call that is captured, and in a run of a program. In a
 * capture loops of unknown length have a likely number of iterations, or one (CX_LEAST). CX_OWN: of the graph's own operations
 * where those stand for a call of a compiled function. CX_CALLBACKS: of library calls that Python makes. */
typedef enum CxEstimate { CX_LIKELY, CX_LEAST, CX_OWN, CX_CALLBACKS } CxEstimate;
#define CX_LITTLE 20e-6 /* seconds: less than a run and a break */
double cx_graph_seconds(const CiGraph *graph);
double cx_call_seconds(CxTracer *tracer, CxEstimate what);
double cx_run_seconds(const struct CxProgram *program, const int64_t *const *sizes, const CiSlot *scalars);
/* exact.c: true if every operation, also in regions, rounds like NumPy's. */
bool cx_block_is_exact(const CxState *state, const CiBlock *block);
/* True if a number's square is computed as a product, which can be vectorised. That is so in loops and branches. The C
 * library's pow(x, 2) differs in one case of a thousand; numerics="exact" uses it. */
bool cx_squares_are_products(const CxTracer *t);
/* True under numerics="exact" if cinductor's function may have other bits, so NumPy's must be
 * called. */
bool cx_needs_routine(const CxTracer *tracer, CiOp op, CiDtype operand, CiKind kind);

/* flush.c: also runs the pending graph. */
int cx_tracer_break(CxTracer *tracer, const char *format, ...);
int cx_tracer_flush(CxTracer *tracer, CxStorage **wanted, int nwanted, bool everything);
bool cx_has_checks(const CxTracer *tracer); /* in the pending graph */
int cx_storage_keep(CxStorage *storage);    /* before Python writes to it */

#endif
