/* Graph -> graph. Each pass keeps the graph valid; with verify set the verifier runs after each. */
#ifndef CI_PASSES_PASS_H
#define CI_PASSES_PASS_H

#include "ir/graph.h"

#define PASS(name, doc) void ci_pass_##name(CiGraph *g);
#include "passes/passes.def"
#undef PASS

/* Called after each pass with its name, for dumps (may be NULL). */
typedef void (*CiPassHook)(void *arg, const char *pass, CiGraph *g);
void ci_passes_run(CiGraph *g, bool verify, CiPassHook hook, void *arg);
/* Runs one by name; false when there is none of that name. */
bool ci_passes_run_one(CiGraph *g, const char *name);

#endif
