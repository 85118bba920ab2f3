/* The rewriting engine: rules are rows, one forward sweep applies them.
 *
 * A rule's pattern and replacement are small expressions:
 *   x  x:int          any node, bound; after the colon a dtype, or one of the words below.
 *   0  -0.0  1        a constant of that value, bit for bit, of the dtype of its neighbours.
 *   (add x y)         an operation; operands of commutative ones match in both orders.
 *   (cast:f32 x)      replacement only.
 *   (inverse c)       replacement only: the constant 1/c.
 *   (let d A B)       replacement only: d is the name of A in B.
 * After a colon: bool, int (signed and unsigned), float, complex, real (all but complex), and
 * power_of_two (a constant whose inverse is exact).
 * A row with a function instead of a pattern computes attributes (views); it returns the
 * replacement or NULL.
 *
 * Requirements. A rule keeps shape and dtype; it is exact for NaN, infinities and signed zeros. The
 * rules together shrink the graph or move it in one direction, so rewriting terminates. The engine
 * does the rest: a replacement is broadcast to the original sizes, and refused if the change of
 * memory would be observable (passes/identity.h). */
#ifndef CI_PASSES_REWRITE_H
#define CI_PASSES_REWRITE_H

#include "ir/graph.h"

typedef CiNode *(*CiRuleFunction)(CiGraph *g, CiNode *node);

typedef struct CiRule {
    const char *name;
    const char *pattern, *replacement; /* NULL: function */
    CiOp op;                           /* root of a function's rule */
    CiRuleFunction function;
    /* A rule of the user's: its operations are those of a graph's text. A function matches whatever
     * computes it, and those of the replacement are computed as it was. */
    bool is_users;
} CiRule;

/* needs: a valid graph. keeps: values, dtypes, sizes, what is observed of memory. */
void ci_rewrite(CiGraph *g, const CiRule *rules, int nrules);

/* A pattern and its replacement, compiled into the graph's arena. */
typedef struct CiPattern CiPattern;
CiPattern *ci_pattern_compile(CiContext *ctx, const CiRule *rule);
CiOp ci_pattern_root(const CiPattern *pattern);
/* The replacement, built at g->at, or NULL when node does not match. */
CiNode *ci_pattern_apply(CiGraph *g, const CiPattern *pattern, CiNode *node);

#endif
