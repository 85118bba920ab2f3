/* One backward pass marks what is observed: users come after what they use, so flags are complete
 * when a node is reached. */
#include "passes/identity.h"

#include "ir/layout.h"

static CiNodeInfo *
info_of(const CiNode *node)
{
    return node->mark;
}

CiNodeInfo *
ci_node_info(CiGraph *g, CiNode *node)
{
    if (!node->mark) {
        CiNodeInfo *info = CI_NEW(g->ctx, CiNodeInfo);
        info->is_new = true;
        node->mark = info;
    }
    return node->mark;
}

bool
ci_identity_is_unclaimed(const CiNodeInfo *info)
{
    return info->is_new && !info->flags && !info->uses;
}

bool
ci_node_is_fresh(const CiNode *node)
{
    switch (ci_op_kind(node->op)) {
    case CI_OPKIND_pointwise:
    case CI_OPKIND_math:
    case CI_OPKIND_ufunc:
    case CI_OPKIND_composite:
    case CI_OPKIND_reduce:
    case CI_OPKIND_argreduce:
    case CI_OPKIND_scan:
        return true;
    default:
        return node->op == CI_OP_cast || node->op == CI_OP_where || node->op == CI_OP_copy ||
               node->op == CI_OP_concat || node->op == CI_OP_iota || node->op == CI_OP_gather ||
               node->op == CI_OP_compress || node->op == CI_OP_product;
    }
}

/* ---- marking ---- */

static void
clear(void *g, CiNode *node)
{
    node->mark = CI_NEW(((CiGraph *)g)->ctx, CiNodeInfo);
}

static void
use_as_object(CiNode *node)
{
    info_of(node)->flags |= CI_IDENTITY_returned | CI_IDENTITY_observed;
    info_of(node)->uses++;
}

static void mark_block(CiBlock *block);

static void
mark_node(CiNode *node)
{
    bool is_view = ci_node_is_view(node);
    for (int b = node->nblocks - 1; b >= 0; b--)
        mark_block(node->blocks[b]);
    for (int k = 0; k < node->nargs; k++) {
        CiNodeInfo *arg = info_of(node->args[k]);
        arg->uses++;
        if (is_view)
            arg->flags |= CI_IDENTITY_viewed | (info_of(node)->flags & CI_IDENTITY_observed);
        if ((node->op == CI_OP_assign || node->op == CI_OP_scatter) && k < 2)
            arg->flags |= CI_IDENTITY_observed | CI_IDENTITY_viewed |
                          (k == 0 ? CI_IDENTITY_written : 0);
        if (ci_op_kind(node->op) == CI_OPKIND_region)
            arg->flags |= CI_IDENTITY_observed | CI_IDENTITY_returned;
    }
}

static void
mark_block(CiBlock *block)
{
    for (int k = 0; k < block->nresults; k++)
        use_as_object(block->results[k]);
    for (int k = block->nnodes - 1; k >= 0; k--)
        mark_node(block->nodes[k]);
}

void
ci_identity_mark(CiGraph *g)
{
    for (int k = 0; k < g->ninputs; k++)
        clear(g, g->inputs[k]);
    ci_block_visit(g->body, clear, g);
    for (int k = 0; k < g->nwrites; k++) {
        use_as_object(g->writes[k].input);
        use_as_object(g->writes[k].value);
    }
    mark_block(g->body);
}

/* ---- replacing ---- */

static bool
has_same_type(CiGraph *g, const CiNode *a, const CiNode *b)
{
    bool is_same = a->dtype == b->dtype && a->rank == b->rank;
    for (int k = 0; is_same && k < a->rank; k++)
        is_same = ci_sym_known_eq(g->sym, a->sizes[k], b->sizes[k]);
    return is_same;
}

static bool
has_same_strides(CiGraph *g, const CiNode *a, const CiNode *b)
{
    const CiExpr *const *left = ci_layout_strides(g, a), *const *right = ci_layout_strides(g, b);
    for (int k = 0; k < a->rank; k++)
        if (a->order[k] != b->order[k] || left[k] != right[k])
            return false;
    return true;
}

/* The memory that a view, or what it is a view of, is written as: where its target must lead. */
static const CiNode *
version_of(const CiNode *node)
{
    while (ci_node_is_view(node) && !(node->mark && info_of(node)->flags & CI_IDENTITY_written))
        node = node->args[0];
    return node;
}

static const char *
why_not_same_memory(CiGraph *g, CiNode *a, CiNode *b)
{
    const CiNodeInfo *left = ci_node_info(g, a), *right = ci_node_info(g, b);
    bool is_returned = left->flags & CI_IDENTITY_returned;
    if (ci_node_is_view(a)) {
        if (version_of(a->args[0]) != version_of(b))
            return "an observed view would see other memory";
        if (is_returned && (!ci_node_is_view(b) || right->flags & CI_IDENTITY_returned))
            return "a returned view would be the same object as another";
        return NULL;
    }
    if (ci_identity_is_unclaimed(right) && (ci_node_is_fresh(b) || b->op == CI_OP_const))
        return NULL;
    bool is_only_read = !(left->flags & (CI_IDENTITY_viewed | CI_IDENTITY_written)); /* before it is returned */
    if (!ci_node_is_fresh(b) || right->flags & CI_IDENTITY_observed || (right->uses > 1 && !is_only_read))
        return "an observed value would share memory";
    return NULL;
}

const char *
ci_identity_why_not_replace(CiGraph *g, CiNode *a, CiNode *b)
{
    const CiNodeInfo *info = ci_node_info(g, a);
    if (!has_same_type(g, a, b))
        return "dtype or sizes would change";
    if (info->flags & CI_IDENTITY_returned && a->kind != b->kind)
        return "the kind of a returned value would change";
    if (info->flags & (CI_IDENTITY_viewed | CI_IDENTITY_observed) && !has_same_strides(g, a, b))
        return "strides that can be seen would change";
    return info->flags & CI_IDENTITY_observed ? why_not_same_memory(g, a, b) : NULL;
}

void
ci_identity_replace(CiGraph *g, CiNode *a, CiNode *b)
{
    CiNodeInfo *from = ci_node_info(g, a), *to = ci_node_info(g, b);
    from->replacement = b;
    to->flags |= from->flags;
    to->uses += from->uses;
}

CiNode *
ci_identity_forward(CiNode *node)
{
    while (node->mark && info_of(node)->replacement)
        node = info_of(node)->replacement;
    return node;
}

void
ci_identity_forward_args(CiNode *node)
{
    for (int k = 0; k < node->nargs; k++)
        node->args[k] = ci_identity_forward(node->args[k]);
}

void
ci_identity_forward_ends(CiGraph *g)
{
    for (int k = 0; k < g->body->nresults; k++)
        g->body->results[k] = ci_identity_forward(g->body->results[k]);
    for (int k = 0; k < g->nwrites; k++)
        g->writes[k].value = ci_identity_forward(g->writes[k].value);
}
