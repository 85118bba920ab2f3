/* The graph as a structure: blocks, traversals, numbering, copies. Builders are in graph_build.c.
 *
 * Invariant: nodes of a block are in program order and an argument precedes its users, so one
 * forward pass sees definitions first and one backward pass sees uses first. */
#include "ir/graph.h"

#include "base/map.h"

#include <stdlib.h>
#include <string.h>

CiGraph *
ci_graph_new(CiContext *ctx, const char *name)
{
    CiGraph *g = CI_NEW(ctx, CiGraph);
    g->ctx = ctx;
    g->sym = ci_sym_new(ctx);
    g->env = ci_shape_env_new(ctx, g->sym);
    g->name = ci_intern(ctx, name);
    g->body = CI_NEW(ctx, CiBlock);
    g->at = g->body;
    return g;
}

bool
ci_node_is_view(const CiNode *node)
{
    return ci_op_kind(node->op) == CI_OPKIND_view;
}

int
ci_node_nstarts(const CiNode *node)
{
    bool has_two = node->op == CI_OP_for || node->op == CI_OP_define;
    return !node->starts ? 0 : node->op == CI_OP_slice ? node->rank : has_two ? 2 : 1;
}

CiNode *
ci_node_base(CiNode *node)
{
    while (ci_node_is_view(node))
        node = node->args[0];
    return node;
}

CiNode *
ci_node_set_kind(CiNode *node, CiKind kind)
{
    if (node->rank == 0)
        node->kind = kind;
    return node;
}

/* ---- walks ---- */

void
ci_block_visit(CiBlock *block, void (*visit)(void *arg, CiNode *node), void *arg)
{
    for (int k = 0; k < block->nparams; k++)
        visit(arg, block->params[k]);
    for (int k = 0; k < block->nnodes; k++) {
        CiNode *node = block->nodes[k];
        visit(arg, node);
        for (int b = 0; b < node->nblocks; b++)
            ci_block_visit(node->blocks[b], visit, arg);
    }
}

bool
ci_block_has(const CiBlock *block, bool (*is)(void *arg, const CiNode *node), void *arg)
{
    bool has = false;
    for (int k = 0; k < block->nnodes && !has; k++) {
        const CiNode *node = block->nodes[k];
        has = is(arg, node);
        for (int b = 0; b < node->nblocks && !has; b++)
            has = ci_block_has(node->blocks[b], is, arg);
    }
    return has;
}

void
ci_block_filter(CiBlock *block, bool (*keeps)(void *arg, CiNode *node), void *arg)
{
    int count = 0;
    for (int k = 0; k < block->nnodes; k++) {
        CiNode *node = block->nodes[k];
        for (int b = 0; b < node->nblocks; b++)
            ci_block_filter(node->blocks[b], keeps, arg);
        if (keeps(arg, node))
            block->nodes[count++] = node;
    }
    block->nnodes = count;
}

static void
number_value(void *arg, CiNode *node)
{
    if (node->dtype != CI_DTYPE_none)
        node->id = (*(int *)arg)++;
}

/* Regions and checks have no value and are not printed by number; they come after all that are. */
static void
number_valueless(void *arg, CiNode *node)
{
    if (node->dtype == CI_DTYPE_none)
        node->id = (*(int *)arg)++;
}

void
ci_graph_number(CiGraph *g)
{
    g->next_id = 0;
    ci_block_visit(g->body, number_value, &g->next_id);
    ci_block_visit(g->body, number_valueless, &g->next_id);
}

static void
count_node(void *arg, CiNode *node)
{
    (void)node;
    ++*(int *)arg;
}

int
ci_graph_node_count(const CiGraph *g)
{
    int count = 0;
    ci_block_visit(g->body, count_node, &count);
    return count;
}

/* ---- copies ---- */

typedef struct Copier {
    CiGraph *to;
    CiMap *nodes; /* old node -> new node */
} Copier;

static const CiExpr *const *
copy_exprs(Copier *c, int count, const CiExpr *const *exprs)
{
    if (!exprs)
        return NULL;
    const CiExpr **copy = CI_NEW_ARRAY(c->to->ctx, const CiExpr *, count + 1);
    for (int k = 0; k < count; k++)
        copy[k] = ci_expr_copy(c->to->sym, exprs[k]);
    return copy;
}

static const int8_t *
copy_order(Copier *c, int rank, const int8_t *order)
{
    if (!order)
        return NULL;
    int8_t *copy = CI_NEW_ARRAY(c->to->ctx, int8_t, rank + 1);
    memcpy(copy, order, (size_t)rank);
    return copy;
}

/* A graph that is built step by step is not verified, so what a block cannot see is found here. */
static CiNode **
copy_refs(Copier *c, int count, CiNode *const *nodes)
{
    CiNode **copy = CI_NEW_ARRAY(c->to->ctx, CiNode *, count + 1);
    for (int k = 0; k < count; k++) {
        copy[k] = ci_map_find(c->nodes, CI_KEY(nodes[k]));
        if (!copy[k])
            ci_fail(c->to->ctx, CI_ERR_INTERNAL, "%s of line %d is used where it is not seen",
                    ci_op_name(nodes[k]->op), nodes[k]->loc.line);
    }
    return copy;
}

static const CiExtern *
copy_extern(CiContext *ctx, const CiExtern *ext)
{
    if (!ext)
        return NULL;
    CiExtern *copy = CI_NEW(ctx, CiExtern);
    *copy = *ext;
    copy->name = ci_intern(ctx, ext->name);
    copy->key = ext->key ? ci_intern(ctx, ext->key) : NULL;
    return copy;
}

static const CiPairwise *
copy_pairwise(Copier *c, const CiNode *node)
{
    if (!node->pairwise)
        return NULL;
    CiPairwise *copy = CI_NEW(c->to->ctx, CiPairwise);
    int *axes = CI_NEW_ARRAY(c->to->ctx, int, node->naxes + 1);
    memcpy(axes, node->pairwise->axes, sizeof(int) * (size_t)node->naxes);
    *copy = *node->pairwise;
    copy->axes = axes;
    if (copy->chunk)
        copy->chunk = ci_expr_copy(c->to->sym, copy->chunk);
    if (copy->alone)
        copy->alone = ci_expr_copy(c->to->sym, copy->alone);
    return copy;
}

static CiNode *
copy_plain(Copier *c, const CiNode *node)
{
    CiContext *ctx = c->to->ctx;
    CiNode *copy = CI_NEW(ctx, CiNode);
    *copy = *node;
    int *axes = CI_NEW_ARRAY(ctx, int, node->naxes + 1);
    if (node->naxes)
        memcpy(axes, node->axes, sizeof(int) * (size_t)node->naxes);
    copy->sizes = copy_exprs(c, node->rank, node->sizes);
    copy->order = copy_order(c, node->rank, node->order);
    copy->strides = copy_exprs(c, node->rank, node->strides);
    copy->args = copy_refs(c, node->nargs, node->args);
    copy->axes = axes;
    copy->pairwise = copy_pairwise(c, node);
    copy->starts = copy_exprs(c, ci_node_nstarts(node), node->starts);
    copy->steps = copy_exprs(c, node->rank, node->steps);
    copy->name = node->name ? ci_intern(ctx, node->name) : NULL;
    copy->loc.file = ci_intern(ctx, node->loc.file ? node->loc.file : "");
    copy->ext = copy_extern(ctx, node->ext);
    copy->blocks = NULL;
    copy->mark = NULL;
    ci_map_put(c->nodes, CI_KEY(node), copy);
    return copy;
}

static CiBlock *
copy_block(Copier *c, const CiBlock *block)
{
    CiContext *ctx = c->to->ctx;
    CiBlock *copy = CI_NEW(ctx, CiBlock);
    for (int k = 0; k < block->nparams; k++)
        CI_PUSH(ctx, copy->params, copy->nparams, copy->capparams, copy_plain(c, block->params[k]));
    for (int k = 0; k < block->nnodes; k++) {
        const CiNode *node = block->nodes[k];
        CiNode *twin = copy_plain(c, node);
        twin->blocks = CI_NEW_ARRAY(ctx, CiBlock *, node->nblocks + 1);
        for (int b = 0; b < node->nblocks; b++)
            twin->blocks[b] = copy_block(c, node->blocks[b]);
        CI_PUSH(ctx, copy->nodes, copy->nnodes, copy->capnodes, twin);
    }
    copy->results = copy_refs(c, block->nresults, block->results);
    copy->nresults = copy->capresults = block->nresults;
    return copy;
}

static void
copy_env(Copier *c, const CiShapeEnv *from, CiShapeEnv *to)
{
    CiContext *ctx = c->to->ctx;
    for (int k = 0; k < from->nsources; k++) {
        CiSymbolSource source = from->sources[k];
        source.symbol = ci_expr_copy(c->to->sym, source.symbol);
        CI_PUSH(ctx, to->sources, to->nsources, to->capsources, source);
    }
    for (int k = 0; k < from->nguards; k++) {
        CiShapeGuard guard = from->guards[k];
        guard.left = ci_expr_copy(c->to->sym, guard.left);
        guard.right = ci_expr_copy(c->to->sym, guard.right);
        guard.loc.file = ci_intern(ctx, guard.loc.file ? guard.loc.file : "");
        CI_PUSH(ctx, to->guards, to->nguards, to->capguards, guard);
    }
}

CiGraph *
ci_graph_copy_to(CiContext *ctx, const CiGraph *g)
{
    CiGraph *copy = ci_graph_new(ctx, g->name);
    Copier c = {copy, ci_map_new(ctx)};
    copy_env(&c, g->env, copy->env);
    for (int k = 0; k < g->ninputs; k++) {
        CI_PUSH(ctx, copy->inputs, copy->ninputs, copy->capinputs, copy_plain(&c, g->inputs[k]));
        int nstrides = k;
        CI_PUSH(ctx, copy->strides, nstrides, copy->capstrides,
                copy_exprs(&c, g->inputs[k]->rank, g->strides[k]));
    }
    copy->body = copy_block(&c, g->body);
    copy->at = copy->body;
    copy->next_id = g->next_id;
    for (int k = 0; k < g->nwrites; k++) {
        CiWrite write = {ci_map_find(c.nodes, CI_KEY(g->writes[k].input)),
                         ci_map_find(c.nodes, CI_KEY(g->writes[k].value))};
        CI_PUSH(ctx, copy->writes, copy->nwrites, copy->capwrites, write);
    }
    return copy;
}

int
ci_extern_axis(const char *text, int rank)
{
    char *end;
    long axis = strtol(text, &end, 10);
    bool is_number = end != text && (!*end || *end == ' ');
    axis += axis < 0 ? rank : 0;
    return is_number && axis >= 0 && axis < rank ? (int)axis : -1;
}
