/* The pipeline of graph passes is the order of passes.def, with those from outside between.
 * Invariant: between passes nodes are numbered in program order and the graph is valid. */
#include "passes/pass.h"

#include <string.h>

#include "base/text.h"

static const CiPassRow rows[] = {
#define PASS(name, is_needed, doc) {#name, doc, is_needed, ci_pass_##name},
#include "passes/passes.def"
#undef PASS
};

int
ci_pass_count(void)
{
    return (int)(sizeof rows / sizeof rows[0]);
}

const CiPassRow *
ci_pass_at(int position)
{
    return &rows[position];
}

static const CiPassRow *
find_row(const char *name, size_t length)
{
    for (int k = 0; k < ci_pass_count(); k++)
        if (strlen(rows[k].name) == length && !strncmp(rows[k].name, name, length))
            return &rows[k];
    return NULL;
}

static void
run_row(const CiPassRow *row, CiGraph *g)
{
    row->run(g);
    g->at = g->body;
    ci_graph_number(g);
}

static bool
is_extra(CiExtraPasses extras, const char *name, size_t length)
{
    for (int k = 0; k < extras.count; k++)
        if (strlen(extras.passes[k].name) == length && !strncmp(extras.passes[k].name, name, length))
            return true;
    return false;
}

/* A misspelt name would leave nothing out, so it is refused. */
static void
check_skip(CiContext *ctx, const char *skip, CiExtraPasses extras)
{
    for (const char *at = skip ? skip : ""; *at;) {
        size_t length = strcspn(at, ", ");
        const CiPassRow *row = find_row(at, length);
        if (row && row->is_needed)
            ci_fail(ctx, CI_ERR_VALUE, "option skip_passes: %s cannot be left out", row->name);
        if (length && !row && !is_extra(extras, at, length))
            ci_fail(ctx, CI_ERR_VALUE, "option skip_passes: there is no pass '%.*s'", (int)length,
                    at);
        at += length + strspn(at + length, ", ");
    }
}

/* Runs the user passes that follow a pass, in their order, each with those that follow it. */
static CiGraph *
run_extras(CiGraph *g, const CiPassPlan *plan, CiExtraPasses extras, const char *after)
{
    for (int k = 0; k < extras.count; k++) {
        const CiExtraPass *pass = &extras.passes[k];
        if (strcmp(pass->after, after) != 0)
            continue;
        if (ci_pass_begins(plan, pass->name, (CiLevel){.graph = g})) {
            g = ci_pass_run_extra(g, pass);
            ci_pass_ends(plan, pass->name, (CiLevel){.graph = g});
        }
        g = run_extras(g, plan, extras, pass->name);
    }
    return g;
}

CiGraph *
ci_passes_run(CiGraph *g, const CiPassPlan *plan, CiExtraPasses extras)
{
    check_skip(g->ctx, plan->skip, extras);
    ci_graph_number(g);
    if (plan->verify)
        ci_graph_verify(g);
    g = run_extras(g, plan, extras, "");
    for (int k = 0; k < ci_pass_count(); k++) {
        if (ci_pass_begins(plan, rows[k].name, (CiLevel){.graph = g})) {
            run_row(&rows[k], g);
            if (plan->verify)
                ci_graph_verify(g);
            ci_pass_ends(plan, rows[k].name, (CiLevel){.graph = g});
        }
        g = run_extras(g, plan, extras, rows[k].name);
    }
    return g;
}

bool
ci_passes_run_one(CiGraph *g, const char *name)
{
    const CiPassRow *row = find_row(name, strlen(name));
    if (!row)
        return false;
    ci_graph_number(g);
    run_row(row, g);
    return true;
}
