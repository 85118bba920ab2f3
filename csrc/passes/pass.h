/* Graph -> graph. Each pass keeps the graph valid; with verify set the verifier runs after each. */
#ifndef CI_PASSES_PASS_H
#define CI_PASSES_PASS_H

#include "ir/graph.h"
#include "ir/pass_plan.h"

#define PASS(name, is_needed, doc) void ci_pass_##name(CiGraph *g);
#include "passes/passes.def"
#undef PASS

typedef struct CiPassRow {
    const char *name, *doc;
    bool is_needed; /* cannot be left out */
    void (*run)(CiGraph *g);
} CiPassRow;

/* In their order. */
int ci_pass_count(void);
const CiPassRow *ci_pass_at(int position);

/* A user pass: runs after `after`, which is the name of a row or of an earlier user pass; "":
 * before all. Its output is always verified. */
typedef struct CiExtraPass {
    const char *name, *after;
    /* The graph that goes on, perhaps another one, in the same context, which it fails through. */
    CiGraph *(*run)(void *data, CiGraph *g);
    void *data;
} CiExtraPass;

/* User passes. */
typedef struct CiExtraPasses {
    const CiExtraPass *passes;
    int count;
} CiExtraPasses;

/* The graph that goes on. Fails with CI_ERR_VALUE for names in skip that may not be there, with
 * CI_ERR_PASS where an extra one breaks the graph. */
CiGraph *ci_passes_run(CiGraph *g, const CiPassPlan *plan, CiExtraPasses extras);
/* Runs one by name; false when there is none of that name. */
bool ci_passes_run_one(CiGraph *g, const char *name);

/* index_asserts.c: checks whose text begins so. */
#define CI_INDEX_ASSERT "index_asserts: "
void ci_graph_assert_indices(CiGraph *g);

/* attention.c: a softmax between products of floats of whose tiles the machine has products, or, if floats need not be
 * reduced in NumPy's order, that a processor packs. */
struct CiMachine;
void ci_graph_attention(CiGraph *g, const struct CiMachine *machine, bool has_numpys_order);

/* user_passes.c: runs it, and holds what it has made against what it was given. */
CiGraph *ci_pass_run_extra(CiGraph *g, const CiExtraPass *pass);

#endif
