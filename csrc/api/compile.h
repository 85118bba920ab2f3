/* The pipeline on one screen: graph -> passes -> loops -> kernels -> wrapper -> program. */
#ifndef CI_API_COMPILE_H
#define CI_API_COMPILE_H

#include "passes/pass.h"
#include "runtime/program.h"

#define CI_BEFORE "before_" /* and a pass: the level that it is given */

struct CiProgramPlan; /* api/alternatives.h */

typedef struct CiCompileInfo {
    double passes_ms, lower_ms, schedule_ms, wrap_ms, total_ms;
    CiBuildInfo build;
    int nodes, nests, kernels, externs;
} CiCompileInfo;

/* "loops", "kernels", "procs", "lines" or "source", and its text: that level is read, and not made. */
typedef struct CiTextInput {
    const char *level, *text;
} CiTextInput;

typedef struct CiRequest {
    CiGraph *graph;       /* changed by the passes */
    const CiTextInput *given; /* of a text beside the graph; NULL: every level is made */
    const CiOptions *options;
    CiQueue queue;    /* of device 0; others of the same kind have the next indices; its runtime
                         outlives the program */
    bool host_arrays; /* for devices with memory of their own: see runtime/program.h */
    /* Called with each level's text ("graph", each pass's name, "optimized" (the
     * graph after all passes), "ranges", "loops", "kernels",
     * "wrapper": the Python source, "json": the same lines, "procs", "source") when not NULL. Must
     * not fail through ctx. */
    void (*dump)(void *arg, const char *level, const char *text);
    void *dump_arg;
    const CiExtraPass *extras; /* user passes, each after those it names */
    int nextras;
    /* Called after each pass with its name and the graph's text, and once before with "", when not
     * NULL; seconds: the time of the pass. Must not fail through ctx. */
    void (*observe)(void *arg, const char *pass, const char *text, double seconds);
    void *observe_arg;
    /* When not NULL nothing is built, and this is called with what would be (api/alternatives.h).
     * Must not fail through ctx. */
    void (*planned)(void *arg, const struct CiProgramPlan *plan);
    void *planned_arg;
    CiCompileInfo info; /* out */
    CiProgram *program; /* out: one reference, the caller's; NULL of what is only planned */
} CiRequest;

/* The levels and passes that the option dump may name, as "a|b|c". */
const char *ci_compile_levels(void);

/* Runs in graph->ctx; on failure program is NULL and ci_context_message tells why. */
CiStatus ci_compile(CiRequest *request);

#endif
