/* The pipeline on one screen: graph -> passes -> loops -> kernels -> wrapper -> program. */
#ifndef CI_API_COMPILE_H
#define CI_API_COMPILE_H

#include "runtime/program.h"

typedef struct CiCompileInfo {
    double passes_ms, lower_ms, schedule_ms, wrap_ms, total_ms;
    CiBuildInfo build;
    int nodes, nests, kernels, externs;
} CiCompileInfo;

typedef struct CiRequest {
    CiGraph *graph; /* changed by the passes */
    const CiOptions *options;
    CiQueue queue;    /* of device 0; others of the same kind have the next indices; its runtime
                         outlives the program */
    bool host_arrays; /* for devices with memory of their own: see runtime/program.h */
    /* Called with each level's text ("graph", each pass's name, "ranges", "loops", "kernels",
     * "wrapper": the Python source, "json": the same lines, "procs", "source") when not NULL. Must
     * not fail through ctx. */
    void (*dump)(void *arg, const char *level, const char *text);
    void *dump_arg;
    CiCompileInfo info; /* out */
    CiProgram *program; /* out: one reference, the caller's */
} CiRequest;

/* The levels and passes that the option dump may name, as "a|b|c". */
const char *ci_compile_levels(void);

/* Runs in graph->ctx; on failure program is NULL and ci_context_message tells why. */
CiStatus ci_compile(CiRequest *request);

#endif
