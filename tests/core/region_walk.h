/* An evaluator of graphs with regions that computes values and knows nothing of memory. The elements of a node are
 * in its mark. */
#ifndef TEST_REGION_WALK_H
#define TEST_REGION_WALK_H

#include <string.h>

#include "ir/graph.h"
#include "region_programs.h"

typedef struct Walk {
    CiContext *ctx;
    const CiExpr *symbols[MAX_VALUES];
    int64_t values[MAX_VALUES];
    int nsymbols;
    bool has_failed; /* a check did */
} Walk;

static int64_t
value_of(void *arg, const CiExpr *symbol)
{
    Walk *walk = arg;
    for (int k = walk->nsymbols - 1; k >= 0; k--)
        if (walk->symbols[k] == symbol)
            return walk->values[k];
    return 0;
}

static int64_t
evaluate(Walk *walk, const CiExpr *e)
{
    return ci_expr_evaluate(walk->ctx, e, value_of, walk);
}

static double *
elements(Walk *walk, CiNode *node)
{
    if (!node->mark)
        node->mark = ci_new(walk->ctx, sizeof(double) * N);
    return node->mark;
}

static int
count_of(Walk *walk, const CiNode *node)
{
    return node->rank ? (int)evaluate(walk, node->sizes[0]) : 1;
}

static void
define(Walk *walk, const CiNode *node, double value)
{
    const CiExpr *symbol = node->starts[0];
    int k = 0;
    while (k < walk->nsymbols && walk->symbols[k] != symbol)
        k++;
    walk->has_failed |=
        value < (double)symbol->low || value >= (double)evaluate(walk, node->starts[1]);
    walk->symbols[k] = symbol;
    walk->values[k] = (int64_t)value;
    walk->nsymbols += k == walk->nsymbols;
}

static double
compute(CiOp op, double a, double b)
{
    switch (op) {
    case CI_OP_add:
        return a + b;
    case CI_OP_subtract:
        return a - b;
    case CI_OP_maximum:
        return a >= b || a != a ? a : b;
    case CI_OP_minimum:
        return a <= b || a != a ? a : b;
    case CI_OP_greater:
        return a > b;
    case CI_OP_less:
        return a < b;
    case CI_OP_equal:
        return a == b;
    default:
        return a;
    }
}

static void walk_block(Walk *walk, CiBlock *block);

static void
copy_values(Walk *walk, int count, CiNode *const *from, CiNode *const *to)
{
    double kept[8][N];
    for (int k = 0; k < count; k++)
        memcpy(kept[k], elements(walk, from[k]), sizeof kept[k]);
    for (int k = 0; k < count; k++)
        memcpy(elements(walk, to[k]), kept[k], sizeof kept[k]);
}

static void
walk_loop(Walk *walk, CiNode *node)
{
    CiBlock *head = node->blocks[0], *body = node->blocks[node->nblocks - 1];
    int skip = node->op == CI_OP_for;
    int64_t trips = skip ? evaluate(walk, node->starts[0]) : 1000;
    int symbol = walk->nsymbols;
    copy_values(walk, node->nargs, node->args, head->params + skip);
    for (int64_t trip = 0; trip < trips && !walk->has_failed; trip++) {
        if (skip) {
            walk->symbols[symbol] = node->starts[1];
            walk->values[symbol] = trip;
            walk->nsymbols = symbol + 1;
            *elements(walk, head->params[0]) = (double)trip;
        } else {
            walk_block(walk, head);
            if (walk->has_failed || !*elements(walk, head->results[0]))
                break;
        }
        walk_block(walk, body);
        copy_values(walk, node->nargs, body->results, head->params + skip);
    }
    walk->nsymbols = symbol;
}

static void
walk_node(Walk *walk, CiNode *node)
{
    double *out = elements(walk, node);
    double *a = node->nargs ? elements(walk, node->args[0]) : NULL;
    int count = count_of(walk, node);
    if (node->op == CI_OP_const) {
        *out = node->value.re;
    } else if (node->op == CI_OP_slice) {
        for (int i = 0; i < count; i++)
            out[i] = a[evaluate(walk, node->starts[0]) + i * evaluate(walk, node->steps[0])];
    } else if (node->op == CI_OP_assign) {
        const CiNode *view = node->args[1];
        const double *value = elements(walk, node->args[2]);
        memcpy(out, a, sizeof(double) * N);
        for (int i = 0; i < count_of(walk, view); i++)
            out[evaluate(walk, view->starts[0]) + i * evaluate(walk, view->steps[0])] =
                value[node->args[2]->rank ? i : 0];
    } else if (node->op == CI_OP_sum) {
        *out = 0;
        for (int i = 0; i < count_of(walk, node->args[0]); i++)
            *out += a[i];
    } else if (node->op == CI_OP_cumsum) {
        for (int i = 0; i < count; i++)
            out[i] = i ? out[i - 1] + a[i] : a[i];
    } else if (node->op == CI_OP_define) {
        define(walk, node, *a);
    } else if (node->op == CI_OP_check) {
        walk->has_failed |= !*a;
    } else if (node->op == CI_OP_for || node->op == CI_OP_while) {
        walk_loop(walk, node);
    } else if (node->op == CI_OP_if) {
        walk_block(walk, node->blocks[!*a]);
    } else if (node->op == CI_OP_result) {
        CiNode *region = node->args[0];
        CiNode *const *from = region->op == CI_OP_if
                                  ? region->blocks[!*elements(walk, region->args[0])]->results
                                  : region->blocks[0]->params + (region->op == CI_OP_for);
        memcpy(out, elements(walk, from[node->index]), sizeof(double) * N);
    } else {
        for (int i = 0; i < count; i++) {
            const double *b = node->nargs > 1 ? elements(walk, node->args[1]) : a;
            int other = node->nargs > 1 && !node->args[1]->rank ? 0 : i;
            out[i] = compute(node->op, a[node->args[0]->rank ? i : 0], b[other]);
        }
    }
}

static void
walk_block(Walk *walk, CiBlock *block)
{
    for (int k = 0; k < block->nnodes && !walk->has_failed; k++)
        walk_node(walk, block->nodes[k]);
}

#endif
