/* The pipeline on one screen: graph -> passes -> loops -> kernels -> wrapper -> program. */
#ifndef CI_API_COMPILE_H
#define CI_API_COMPILE_H

#include "passes/pass.h"
#include "runtime/program.h"

typedef struct CiCompileInfo {
    double passes_ms, lower_ms, schedule_ms, wrap_ms, total_ms;
    CiBuildInfo build;
    int nodes, nests, kernels, externs;
} CiCompileInfo;

typedef struct CiRequest {
    CiGraph *graph;               /* changed by the passes */
    const CiOptions *options;
    const CiBackend *backend;
    CiRuntime *runtime;
    /* Called with each level's text ("graph", each pass's name, "loops", "kernels", "wrapper", "source") when not NULL. */
    void (*dump)(void *arg, const char *level, const char *text);
    void *dump_arg;
    CiCompileInfo info;           /* out */
    CiProgram *program;           /* out: one reference, the caller's */
} CiRequest;

/* Runs in graph->ctx; on failure program is NULL and ci_context_message tells why. */
CiStatus ci_compile(CiRequest *request);

#endif
