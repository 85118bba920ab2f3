/* The option index_asserts: before each node that takes or stores elements at indices, adds a check
 * that these are in range.
 *
 * The producer of the node has proved or checked that already. A failure here is therefore not a
 * call for Python to run, but an internal error (CI_INDEX_ASSERT). needs: runs last, because
 * `decide` would trust the same proofs. keeps: values. */
#include "passes/pass.h"

static CiNode *
number(CiGraph *g, const CiExpr *e, CiLoc loc)
{
    int64_t value;
    if (!ci_expr_is_const(e, &value))
        return ci_graph_expr(g, e, loc);
    return ci_graph_const(g, CI_DTYPE_i64, CI_KIND_array, ci_const_int(CI_DTYPE_i64, value), loc);
}

static CiNode *
compare(CiGraph *g, CiOp op, CiNode *a, CiNode *b, CiLoc loc)
{
    CiNode *args[2] = {a, b};
    return ci_graph_pointwise(g, op, 2, args, loc);
}

static void
add_assert(CiGraph *g, const CiNode *node, CiNode *index, int axis, const CiExpr *size)
{
    int axes[CI_MAX_RANK];
    CiNode *low = compare(g, CI_OP_greater_equal, index,
                          number(g, ci_expr_const(g->sym, 0), node->loc), node->loc);
    CiNode *inside = compare(g, CI_OP_logical_and, low,
                             compare(g, CI_OP_less, index, number(g, size, node->loc), node->loc),
                             node->loc);
    for (int k = 0; k < inside->rank; k++)
        axes[k] = k;
    if (inside->rank)
        inside = ci_graph_reduce(g, CI_OP_all, inside, inside->rank, axes, node->loc);
    CiText text = ci_text_new(g->ctx);
    ci_text_add(&text, CI_INDEX_ASSERT "%s", ci_op_name(node->op));
    if (node->loc.line > 0)
        ci_text_add(&text, " at %s:%d", node->loc.file, node->loc.line);
    ci_text_add(&text, ": an index along axis %d is not in [0, ", axis);
    ci_expr_print(&text, size, CI_STYLE_text);
    ci_text_add(&text, ")");
    ci_graph_check(g, inside, text.data, node->loc);
}

/* The indices follow the array, or base, view and value. */
static void
add_asserts(CiGraph *g, const CiNode *node)
{
    bool is_scatter = node->op == CI_OP_scatter;
    const CiNode *whole = node->args[is_scatter ? 1 : 0];
    if (!is_scatter && node->op != CI_OP_gather)
        return;
    for (int k = 0; k < node->naxes; k++)
        add_assert(g, node, node->args[(is_scatter ? 3 : 1) + k], node->axes[k],
                   whole->sizes[node->axes[k]]);
}

static void
walk(CiGraph *g, CiBlock *block)
{
    CiBlock *before = ci_graph_enter(g, block);
    CiNode **nodes = block->nodes;
    int count = block->nnodes;
    block->nodes = NULL;
    block->nnodes = block->capnodes = 0;
    for (int k = 0; k < count; k++) {
        for (int b = 0; b < nodes[k]->nblocks; b++)
            walk(g, nodes[k]->blocks[b]);
        if (nodes[k]->nargs)
            add_asserts(g, nodes[k]);
        CI_PUSH(g->ctx, block->nodes, block->nnodes, block->capnodes, nodes[k]);
    }
    ci_graph_enter(g, before);
}

void
ci_graph_assert_indices(CiGraph *g)
{
    walk(g, g->body);
    ci_graph_number(g);
}
