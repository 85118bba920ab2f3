/* Replaces composite operations by the rules of decompose.def.
 *
 * needs: a valid graph. keeps: everything except composite operations, of which none are left. */
#include "passes/pass.h"
#include "passes/rewrite.h"

static const CiRule rules[] = {
#define RULE(name, pattern, replacement) {#name, pattern, replacement, CI_OP_none, NULL, false},
#include "passes/decompose.def"
};

void
ci_pass_decompose(CiGraph *g)
{
    ci_rewrite(g, rules, (int)(sizeof rules / sizeof rules[0]));
}
