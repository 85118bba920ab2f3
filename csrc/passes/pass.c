/* The pipeline of graph passes is the order of passes.def. Invariant: between passes nodes are
 * numbered in program order and the graph is valid. */
#include "passes/pass.h"

#include <string.h>

typedef struct PassRow {
    const char *name;
    void (*run)(CiGraph *g);
} PassRow;

static const PassRow rows[] = {
#define PASS(name, doc) {#name, ci_pass_##name},
#include "passes/passes.def"
#undef PASS
};

static void
run_row(const PassRow *row, CiGraph *g)
{
    row->run(g);
    g->at = g->body;
    ci_graph_number(g);
}

void
ci_passes_run(CiGraph *g, bool verify, CiPassHook hook, void *arg)
{
    ci_graph_number(g);
    if (verify)
        ci_graph_verify(g);
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        run_row(&rows[k], g);
        if (verify)
            ci_graph_verify(g);
        if (hook)
            hook(arg, rows[k].name, g);
    }
}

bool
ci_passes_run_one(CiGraph *g, const char *name)
{
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
        if (strcmp(rows[k].name, name) == 0) {
            ci_graph_number(g);
            run_row(&rows[k], g);
            return true;
        }
    return false;
}
