/* The tracer: the state of one call while it is captured. It owns the pending graph, the symbols of
 * the call, and what was materialised on the way. */
#ifndef CX_TRACER_H
#define CX_TRACER_H

#include "state/state.h"

typedef struct CxTracer CxTracer;
typedef struct CxStorage CxStorage;
typedef struct CxInput CxInput;
typedef struct CxDefined CxDefined;
typedef struct CxFact CxFact;

typedef struct CxChange { /* what a storage was before it changed; it is held */
    CxStorage *storage;
    CiNode *node;
    unsigned epoch, version, scope;
    bool is_written;
} CxChange;

/* The axis of a symbol's source: that of the array whose size it is, -1 for an int's value, and
 * CX_PADDING_AXIS - k for the padding of axis k (layout.c). */
enum { CX_PADDING_AXIS = -2 };

enum { CX_MOST_SHOWN = 16 };

struct CxTracer {
    PyObject_HEAD CxState *state;
    PyObject *key;  /* of the function among all: its segments are counted */
    PyObject *kept; /* the set that keeps the programs of its segments alive */
    PyObject *name, *option_values, *breaks, *info, *program, *skip, *by_id, *specialized;
    PyObject *cell; /* the code object the last location came from */
    PyObject *constant; /* makes an input of an array that never changes; or NULL */
    PyObject *code; /* the function's own as capture runs it; or NULL */
    const char *cell_file;
    bool cell_is_user;
    CiOptions options;
    const CiBackend *backend;
    CiContext *sym_ctx; /* of sym and env, which live as long as the tracer */
    CiSym *sym;
    CiShapeEnv *env; /* symbols of the call and what was assumed of them */
    const CiExpr *zero, *one;
    CxDefined *defined; /* values of data that are symbols */
    CxFact *facts;
    int ndefined, nfacts, nsymbols;
    long proof_work; /* expressions that proofs from facts have made (facts.c) */
    long last_token;
    CiContext *ctx;
    CiGraph *graph;
    unsigned epoch, last_version, last_segment, last_storage, last_mark;
    CxChange *changes; /* the journal that marks go back by (version.c) */
    int nchanges, capchanges, nmarks;
    unsigned *open; /* scopes of building in force (mark.c) */
    int nopen, capopen, nblocks;
    bool leaves_open;  /* what a comparison of sizes says is the program's to find out */
    bool is_infeasible; /* in an arm that the sizes of this call do not take: they decide nothing */
    bool has_fallen_back;   /* the rest of the call is NumPy's: operators compute at once */
    bool forbids_breaks; /* the call may have to be captured anew: a break raises RegionBreak */
    CxStorage *storages;
    CxStorage **inputs; /* by number of graph input; each holds a reference */
    int ninputs, capinputs;
    CxInput *ran; /* inputs of the latest run */
    int nran;
    int flushes;
    int useful; /* of them, until the last that had more than little work */
    bool is_inexact; /* some graph's results need not have NumPy's bits */
    unsigned quiet; /* flags of which the user's errstate wants to hear nothing just now */
    unsigned float_flags;
    PyObject *whole; /* why breaks are refused, for the message: "fullgraph=True"; or NULL */
    bool fullgraph, needs_python, is_busy, is_finished;
    int effects; /* what Python has done that the function itself would do again */
    double seconds; /* of this thread, in programs */
    double rent;    /* of a build's price, that a piece between breaks has run for before it is built */
    double plain, price; /* estimates: NumPy's time for the graphs run, and that of their builds */
    double unbuilt;      /* of these, those not made */
    PyObject *on_break; /* called at the first break, while nothing has happened: what it returns is raised, but None. Or
                         * NULL */
    const CiExpr *shown[CX_MOST_SHOWN]; /* sizes in texts of exceptions that may be caught */
    int nshown;
    PyObject *on_build; /* called with an unbuilt program, NumPy's seconds, those of its build and whether it is
                         * exact, before a whole graph is built; it raises to leave that. Or NULL */
    PyObject *on_force; /* raised where a size is needed that nothing may be decided by */
    PyObject *saved;     /* arrays written to by runs of this call, and what they held before */
    bool cannot_undo;    /* an array too large to be kept was written to */
    bool has_run;        /* a graph has run, or none was needed before */
};

/* A graph has reached the option node_limit. */
static inline bool
cx_graph_is_full(const CxTracer *tracer)
{
    return tracer->graph != NULL && tracer->graph->next_id >= tracer->options.node_limit;
}

extern PyType_Spec cx_tracer_spec; /* tracer.c */

#endif
