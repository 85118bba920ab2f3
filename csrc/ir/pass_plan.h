/* The plan for the passes of one level: which passes are skipped, whether the verifier runs, and the functions that observe
 * the level. Graphs, loops and procs use the same type of plan. */
#ifndef CI_IR_PASS_PLAN_H
#define CI_IR_PASS_PLAN_H

#include "base/text.h"

struct CiGraph;
struct CiLoops;
struct CiProcs;

/* The level that a pass changes. Exactly one pointer is not NULL. */
typedef struct CiLevel {
    struct CiGraph *graph;
    const struct CiLoops *loops;
    const struct CiProcs *procs;
} CiLevel;

/* Called with a pass's name and its level. */
typedef void (*CiPassHook)(void *arg, const char *pass, CiLevel level);

typedef struct CiPassPlan {
    bool verify;              /* the verifier runs after each pass */
    const char *skip;         /* names of passes that do not run, separated by commas; NULL: none */
    CiPassHook before, after; /* for dumps and observers; may be NULL */
    void *arg;
} CiPassPlan;

/* Called before a pass. False if the plan skips the pass. */
static inline bool
ci_pass_begins(const CiPassPlan *plan, const char *pass, CiLevel level)
{
    if (plan->skip && ci_text_lists(plan->skip, pass))
        return false;
    if (plan->before)
        plan->before(plan->arg, pass, level);
    return true;
}

static inline void
ci_pass_ends(const CiPassPlan *plan, const char *pass, CiLevel level)
{
    if (plan->after)
        plan->after(plan->arg, pass, level);
}

#endif
