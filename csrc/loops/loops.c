/* The passes over loops, in the order of loops.def. Invariant: between passes the loops are valid. */
#include "loops/loops.h"

#include "base/text.h"

#define PASS(name, where, applies, is_needed, doc)                                                 \
    static bool applies_##name(const CiLoopRewriter *r)                                            \
    {                                                                                              \
        (void)r;                                                                                   \
        return applies;                                                                            \
    }
#include "loops/loops.def"
#undef PASS

static const CiLoopPass passes[] = {
#define PASS(name, where, applies, is_needed, doc)                                                 \
    {#name, doc, is_needed, applies_##name, .where = ci_loops_##name},
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

static void
run_in_block(const CiLoopRewriter *r, const CiLoopPass *pass, CiItems *items)
{
    if (pass->outer)
        pass->outer(r, items);
    for (int k = 0; k < items->count; k++) {
        if (pass->nests && items->items[k].nest)
            pass->nests(r, items->items[k].nest);
        if (pass->regions && items->items[k].region)
            pass->regions(r, &items->items[k]);
    }
    for (int k = 0; k < items->count; k++) {
        CiRegion *region = items->items[k].region;
        const CiLoopScope scope = {region, r->scope};
        CiLoopRewriter inner = *r;
        inner.scope = &scope;
        if (!region)
            continue;
        run_in_block(&inner, pass, &region->body);
        run_in_block(&inner, pass, &region->other);
        run_in_block(&inner, pass, &region->condition_items);
    }
    if (pass->inner)
        pass->inner(r, items);
}

void
ci_loop_passes_run(CiLoops *loops, const CiMachine *machine, const CiOptions *options,
                   const CiPassPlan *plan)
{
    const CiLoopRewriter r = {loops->ctx, loops->sym, loops, machine, options, NULL};
    for (int k = 0; k < ci_loop_pass_count(); k++) {
        const CiLoopPass *pass = &passes[k];
        const CiLevel level = {.loops = loops};
        if (!pass->applies(&r) || !ci_pass_begins(plan, pass->name, level))
            continue;
        if (pass->program)
            pass->program(&r);
        else
            run_in_block(&r, pass, &loops->items);
        if (plan->verify)
            ci_loops_verify(loops);
        ci_pass_ends(plan, pass->name, level);
    }
}
