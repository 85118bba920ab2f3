/* Decides whether a nest may read an element that it has overwritten: an element of its target
 * other than the one it stores at the same point. Elements of two points are expressions over two
 * copies of the nest's variables; sizes and variables of enclosing loops are the same in both. */
#include "lower/lowering.h"

#define MAX_FACTS 24

typedef struct Overlap {
    CiLowering *low;
    const CiNest *nest;
    const CiExpr *facts[MAX_FACTS], *strides[CI_MAX_RANK];
    int nfacts, nstrides;
} Overlap;

/* If the nest runs, every loop around it has at least one iteration, and so has each of its own. */
static void
add_fact(Overlap *o, const CiExpr *extent)
{
    if (!ci_expr_is_const(extent, NULL) && o->nfacts < MAX_FACTS)
        o->facts[o->nfacts++] = ci_expr_sub(o->low->sym, extent, ci_expr_const(o->low->sym, 1));
}

static void
add_facts(Overlap *o)
{
    const CiLowering *low = o->low;
    for (int k = 0; k < o->nest->naxes; k++)
        add_fact(o, o->nest->axes[k].extent);
    for (const CiScope *scope = low->scope; scope; scope = scope->outer) {
        const CiNode *region = low->states[scope->region].node;
        if (region->op == CI_OP_for)
            add_fact(o, region->starts[0]);
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

static void
add_strides(Overlap *o)
{
    for (int k = 0; k < o->nest->naxes; k++) {
        const CiExpr *stride, *rest;
        if (ci_expr_split_linear(o->low->sym, o->nest->store, o->nest->axes[k].var, &stride, &rest))
            o->strides[o->nstrides++] = stride;
    }
}

/* The element that another point loads: what its data index is another one too. */
static const CiExpr *
at_other_point(const Overlap *o, const CiBody *body, const CiExpr *load)
{
    const CiExpr **from = CI_NEW_ARRAY(o->low->ctx, const CiExpr *, load->nsymbols + 1);
    const CiExpr **to = CI_NEW_ARRAY(o->low->ctx, const CiExpr *, load->nsymbols + 1);
    int count = 0;
    for (int k = 0; k < load->nsymbols; k++) {
        const CiExpr *symbol = load->symbols[k];
        if (!is_axis_of(o->nest, symbol) && !ci_body_binds(body, symbol))
            continue;
        from[count] = symbol;
        to[count] = ci_expr_index(o->low->sym, ci_format(o->low->ctx, "o%d", count), symbol->limit);
        count++;
    }
    return ci_expr_substitute(o->low->sym, load, count, from, to);
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
        if (!o.nfacts && !o.nstrides) {
            add_facts(&o);
            add_strides(&o);
        }
        if (!ci_sym_known_disjoint(low->sym, at_other_point(&o, body, op->index), nest->store,
                                o.nstrides, o.strides, o.nfacts, o.facts))
            return true;
    }
    return false;
}
