/* cinductor for C programs: a graph (built, or read from text) in, a program out, no Python
 * anywhere.
 *
 *   CiApi *api;
 *   CiProgram *program;
 *   char message[CI_API_MESSAGE];
 *   ci_api_open(&api, 0, NULL);
 *   if (ci_api_compile_text(api, "graph f(in0: f64[8]) { ... }", NULL, &program, message))
 *       ... message says why
 *   CiCall call = {.inputs = …, .new_result = …};
 *   ci_program_run(program, &call);          runtime/program.h says what a call holds
 *   ci_program_release(program);
 *   ci_api_close(api);                       after the last program
 *
 * Every function here returns a CiStatus or owns what it says; none jumps. An api may be used by
 * many threads, a CiApiGraph by one at a time. */
#ifndef CI_API_CINDUCTOR_H
#define CI_API_CINDUCTOR_H

#include "api/compile.h"

#define CI_API_MESSAGE 1024

/* Pool, allocator and disk cache shared by programs. */
typedef struct CiApi CiApi;
/* threads 0: all processors. cache: directory of compiled kernels, NULL: the default one, "": none.
 */
CiStatus ci_api_open(CiApi **api, int threads, const char *cache);
void ci_api_close(CiApi *api);
CiRuntime *ci_api_runtime(CiApi *api);

/* The target of a compilation; zeros mean the defaults. */
typedef struct CiApiTarget {
    const char *device;  /* NULL: "cpu" */
    int index;           /* which of the machine's devices of that kind */
    const char *backend; /* NULL: the best one that can be used here */
    const CiOptions *options;
    bool host_arrays; /* see runtime/program.h */
    void (*dump)(void *arg, const char *level, const char *text);
    void *dump_arg;
} CiApiTarget;

/* A graph with a context of its own. */
typedef struct CiApiGraph CiApiGraph;
CiStatus ci_api_graph_open(const char *name, CiApiGraph **graph);
void ci_api_graph_close(CiApiGraph *graph);
/* Runs `body`, which may call the ci_graph_* builders; a failure inside comes back as a status. A
 * graph that failed to build is only good for closing. */
CiStatus ci_api_graph_build(CiApiGraph *graph, void (*body)(CiGraph *graph, void *arg), void *arg);
/* Replaces the graph by one read from text. */
CiStatus ci_api_graph_parse(CiApiGraph *graph, const char *text);
/* The text form; lives as long as the graph. */
CiStatus ci_api_graph_print(CiApiGraph *graph, const char **text);
const char *ci_api_graph_message(const CiApiGraph *graph); /* why the last call failed */
/* Compiles a copy, so that the graph stays as it was. target may be NULL; info may be NULL. */
CiStatus ci_api_graph_compile(CiApi *api, CiApiGraph *graph, const CiApiTarget *target,
                              CiProgram **program, CiCompileInfo *info);

/* All at once. message has CI_API_MESSAGE bytes. */
CiStatus ci_api_compile_text(CiApi *api, const char *text, const CiApiTarget *target,
                             CiProgram **program, char *message);

#endif
