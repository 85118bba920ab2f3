/* Decides whether a nest may read an element that it has overwritten: an element of its target
 * other than the one it stores at the same point. Elements of two points are expressions over two
 * copies of the nest's variables; sizes and variables of enclosing loops are the same in both. */
#include "analysis/access.h"
#include "lower/lowering.h"

typedef struct Overlap {
    CiLowering *low;
    const CiNest *nest;
    CiFacts facts;
} Overlap;

/* If the nest runs, every loop around it has at least one iteration, and so has each of its own. */
static void
add_facts(Overlap *o)
{
    const CiLowering *low = o->low;
    for (int k = 0; k < o->nest->naxes; k++)
        ci_add_iteration(low->sym, &o->facts, o->nest->axes[k].extent);
    for (const CiScope *scope = low->scope; scope; scope = scope->outer) {
        const CiNode *region = low->states[scope->region].node;
        if (region->op == CI_OP_for)
            ci_add_iteration(low->sym, &o->facts, region->starts[0]);
    }
}

static bool
is_axis_of(const CiNest *nest, const CiExpr *symbol)
{
    for (int k = 0; k < nest->naxes; k++)
        if (nest->axes[k].var == symbol)
            return true;
    return false;
}

/* The element that another point loads: what its data index is another one too. */
static const CiExpr *
at_other_point(const Overlap *o, const CiBody *body, const CiExpr *load)
{
    const CiExpr **changing = CI_NEW_ARRAY(o->low->ctx, const CiExpr *, load->nsymbols + 1);
    int count = 0;
    for (int k = 0; k < load->nsymbols; k++)
        if (is_axis_of(o->nest, load->symbols[k]) || ci_body_binds(body, load->symbols[k]))
            changing[count++] = load->symbols[k];
    return ci_at_other_point(o->low->ctx, o->low->sym, load, count, changing);
}

bool
ci_lowering_has_hazard(CiLowering *low, const CiBody *body, const CiNest *nest)
{
    Overlap o = {.low = low, .nest = nest};
    if (!nest->naxes) /* one point reads all it needs before it stores */
        return false;
    for (int k = 0; k < body->nops; k++) {
        const CiScalar *op = &body->ops[k];
        if (op->op != CI_OP_load || op->buffer != nest->target || op->index == nest->store)
            continue;
        if (!o.facts.count)
            add_facts(&o);
        if (!ci_elements_are_disjoint(low->sym, NULL, nest->store, at_other_point(&o, body, op->index), &o.facts))
            return true;
    }
    return false;
}
