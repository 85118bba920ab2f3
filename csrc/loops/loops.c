/* The passes over loops, in the order of loops.def. Invariant: between passes the loops are valid. */
#include "loops/loops.h"

#include "base/text.h"

#define PASS(name, applies, is_needed, doc)                                                        \
    static bool applies_##name(const CiLoopRewriter *r)                                            \
    {                                                                                              \
        (void)r;                                                                                   \
        return applies;                                                                            \
    }
#include "loops/loops.def"
#undef PASS

static const CiLoopPass passes[] = {
#define PASS(name, applies, is_needed, doc)                                                        \
    {#name, doc, is_needed, applies_##name, ci_loops_##name},
#include "loops/loops.def"
#undef PASS
};

int
ci_loop_pass_count(void)
{
    return (int)(sizeof passes / sizeof *passes);
}

const CiLoopPass *
ci_loop_pass_at(int position)
{
    return &passes[position];
}

void
ci_loop_passes_run(CiLoops *loops, const CiMachine *machine, const CiOptions *options,
                   const CiLoopPlan *plan)
{
    const CiLoopRewriter r = {loops->ctx, loops->sym, loops, machine, options, NULL};
    for (int k = 0; k < ci_loop_pass_count(); k++) {
        const CiLoopPass *pass = &passes[k];
        if (!pass->applies(&r) || (plan->skip && ci_text_lists(plan->skip, pass->name)))
            continue;
        if (plan->before)
            plan->before(plan->arg, pass->name, loops);
        pass->run(&r);
        if (plan->verify)
            ci_loops_verify(loops);
        if (plan->after)
            plan->after(plan->arg, pass->name, loops);
    }
}
