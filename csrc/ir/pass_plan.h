/* The plan for the passes of one level: which are skipped, what is verified, and who observes the level. Passes over
 * graphs, loops and procs take the same plan. */
#ifndef CI_IR_PASS_PLAN_H
#define CI_IR_PASS_PLAN_H

#include "base/text.h"

struct CiGraph;
struct CiLoops;
struct CiProcs;

/* A level that has passes. The two that are not meant are NULL. */
typedef struct CiLevel {
    struct CiGraph *graph;
    const struct CiLoops *loops;
    const struct CiProcs *procs;
} CiLevel;

/* Called with a pass's name and its level. */
typedef void (*CiPassHook)(void *arg, const char *pass, CiLevel level);

typedef struct CiPassPlan {
    bool verify;              /* the level, after each pass */
    const char *skip;         /* names of passes that do not run, with commas between; NULL: none */
    CiPassHook before, after; /* for dumps and observers; may be NULL */
    void *arg;
} CiPassPlan;

/* False if the pass is left out; else it begins. */
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
