/* The tracer: the state of one call during its capture. It owns the pending graph, the symbols of the call and the
 * materialised values. */
#ifndef CX_TRACER_H
#define CX_TRACER_H

#include "state/state.h"

typedef struct CxTracer CxTracer;
typedef struct CxStorage CxStorage;
typedef struct CxInput CxInput;
typedef struct CxDefined CxDefined;
typedef struct CxFact CxFact;

typedef struct CxChange { /* the state of a storage before it changed; holds a reference */
    CxStorage *storage;
    CiNode *node;
    unsigned epoch, version, scope;
    bool is_written;
} CxChange;

/* The axis of a symbol's source: an axis of an array, -1 for the value of an int, or CX_PADDING_AXIS - k for the padding of
 * axis k (layout.c). */
enum { CX_PADDING_AXIS = -2 };

enum { CX_MAX_SHOWN = 16 };

struct CxTracer {
    PyObject_HEAD CxState *state;
    PyObject *key;  /* identifies the function; its segments are counted */
    PyObject *kept; /* set that owns the programs of its segments */
    PyObject *raised; /* dict: program -> floating-point flags that it has raised */
    PyObject *name, *option_values, *breaks, *info, *program, *skip, *by_id, *specialized;
    PyObject *cell; /* the code object of the latest source location */
    PyObject *constant; /* function that makes a constant array an input; or NULL */
    PyObject *code; /* code object that capture runs for the function; or NULL */
    const char *cell_file;
    const char *last_file; /* with last_line: the latest source location */
    int last_line;
    bool cell_is_user;
    CiOptions options;
    const CiBackend *backend;
    CiContext *sym_ctx; /* of sym and env, which live as long as the tracer */
    CiSym *sym;
    CiShapeEnv *env; /* symbols of the call, and the assumptions about them */
    const CiExpr *zero, *one;
    CxDefined *defined; /* values that are defined as symbols */
    CxFact *facts;
    int ndefined, nfacts, nsymbols;
    long proof_work; /* expressions made by proofs from facts (facts.c) */
    long last_token;
    CiContext *ctx;
    CiGraph *graph;
    unsigned epoch, last_version, last_segment, last_storage, last_mark;
    CxChange *changes; /* the journal for rollback (version.c) */
    int nchanges, capchanges, nmarks;
    unsigned *open; /* scopes of building in force (dominance.c) */
    int nopen, capopen, nblocks;
    struct CxBlock *innermost; /* open block; each knows the one around it. Blocks hold the tracer */
    bool leaves_open;  /* a comparison of sizes that cannot be proved is left to the program */
    /* Capture is in a branch that this call does not take, so that the call's sizes decide nothing. */
    bool is_infeasible;
    bool has_fallen_back;   /* NumPy runs the rest of the call: operators compute at once */
    bool forbids_breaks; /* the call may have to be captured again: a break raises RegionBreak */
    CxStorage *storages;
    CxStorage **inputs; /* by number of graph input; each holds a reference */
    int ninputs, capinputs;
    CxInput *ran; /* inputs of the latest run */
    int nran;
    int flushes;
    int useful; /* number of inputs up to the last graph with more than little work */
    bool is_inexact; /* some graph's results need not have NumPy's bits */
    unsigned quiet; /* floating-point flags that the user's errstate ignores at the moment */
    unsigned call;  /* CiLoc.call of operations at the moment */
    unsigned float_flags;
    /* The reason why breaks are refused, for the message: "fullgraph=True"; or NULL. */
    PyObject *whole;
    bool fullgraph, needs_python, is_busy, is_finished;
    int effects; /* effects that Python would repeat if the original function ran again */
    bool is_dry;    /* programs are compiled and not run */
    double seconds; /* CPU time of this thread in programs */
    /* A piece between breaks is built after it has run for this share of the build's estimated time. */
    double rent;
    double plain, price; /* estimated seconds of the graphs run: in NumPy, and of their builds */
    double unbuilt;      /* the part of `price` for builds that were not made */
    /* Called at the first break, if there was no effect: it returns what is raised, or None; or NULL. */
    PyObject *on_break;
    const CiExpr *shown[CX_MAX_SHOWN]; /* sizes that occur in texts of exceptions which user code may catch */
    int nshown;
    /* Called before a whole graph is built, with an unbuilt program, the estimated seconds in NumPy and of the build, and
     * True if it is exact. It raises an exception to postpone the build. Or NULL. */
    PyObject *on_build;
    PyObject *on_step; /* called after a number of steps, see steps.c: it limits the capture's time; or NULL */
    PyObject *on_flags; /* called by `finish` if a run has raised float flags: true if NumPy shall run the call; or NULL */
    PyObject *on_run; /* called after a run of a piece that may be run again, with the tracer, the program, its seconds and a function that does; or NULL */
    unsigned steps;
    PyObject *user_backend; /* of `register_backend`: (name, function of the graph's text); or NULL */
    PyObject *on_concretize; /* exception raised if the value of an unbacked size is needed */
    PyObject *saved;     /* arrays written to by runs of this call, with their former contents */
    bool cannot_undo;    /* an array too large to be saved was written to */
    bool has_run;        /* a graph has run, or none was needed before */
};

/* True if the graph has reached the option node_limit. */
static inline bool
cx_graph_is_full(const CxTracer *tracer)
{
    return tracer->graph != NULL && tracer->graph->next_id >= tracer->options.node_limit;
}

/* Kinds of steps: a traced value or an item; a call of a hook; a call of a hook that runs no code of the user's. */
typedef enum CxStep { CX_VALUE, CX_HOOK, CX_QUIET_HOOK } CxStep;

/* steps.c: counts a step of the capture. -1 with an exception if the capture has exceeded its time limit. */
int cx_tracer_step(CxTracer *tracer, CxStep step);

extern PyType_Spec cx_tracer_spec; /* tracer.c */
extern PyType_Spec cx_paced_spec;  /* steps.c */

#endif
