/* Common subexpression elimination: equal nodes of one block are merged, by hashing, in one forward
 * pass.
 *
 * Never merged: memory that is yet to be written (empty), writes, inputs, library calls, checks,
 * regions, nodes of different blocks, and two nodes whose memory is observable for both. So copies
 * (np.arange in each call of a helper) are merged unless both are written or both are returned.
 *
 * needs: a valid graph. keeps: values bit for bit, and the observable identity of memory. */
#include "base/hash.h"
#include "passes/identity.h"
#include "passes/pass.h"

#include <string.h>

typedef struct Table {
    CiGraph *g;
    CiNode **slots;
    size_t mask;
} Table;

static bool
is_mergeable(const CiNode *node)
{
    CiOpKind kind = ci_op_kind(node->op);
    return kind != CI_OPKIND_extern && kind != CI_OPKIND_region &&
           !ci_op_has(node->op, CI_FACT_memory | CI_FACT_effect);
}

/* ---- equality ---- */

static bool
has_same_args(const CiNode *a, const CiNode *b)
{
    bool is_same = true, is_swapped = ci_op_has(a->op, CI_FACT_commutes) && a->nargs == 2;
    for (int k = 0; k < a->nargs; k++) {
        is_same = is_same && a->args[k] == b->args[k];
        is_swapped = is_swapped && a->args[k] == b->args[1 - k];
    }
    return is_same || is_swapped;
}

static bool
has_same_exprs(int count, const CiExpr *const *a, const CiExpr *const *b)
{
    for (int k = 0; k < count; k++)
        if (a[k] != b[k])
            return false;
    return true;
}

static bool
has_same_order(const CiNode *a, const CiNode *b)
{
    const CiPairwise *x = a->pairwise, *y = b->pairwise;
    if (!x || !y)
        return x == y;
    return x->ninner == y->ninner && x->chunk == y->chunk && x->alone == y->alone &&
           x->nalone == y->nalone && memcmp(x->axes, y->axes, sizeof(int) * (size_t)a->naxes) == 0;
}

static bool
is_equal(const CiNode *a, const CiNode *b)
{
    if (a->op != b->op || a->dtype != b->dtype || a->kind != b->kind || a->rank != b->rank ||
        a->nargs != b->nargs || a->naxes != b->naxes || !has_same_args(a, b))
        return false;
    if (a->naxes && memcmp(a->axes, b->axes, sizeof(int) * (size_t)a->naxes) != 0)
        return false;
    if (a->rank && memcmp(a->order, b->order, (size_t)a->rank) != 0)
        return false;
    return has_same_order(a, b) && has_same_exprs(a->rank, a->sizes, b->sizes) &&
           has_same_exprs(ci_node_nstarts(a), a->starts, b->starts) &&
           has_same_exprs(a->steps ? a->rank : 0, a->steps, b->steps) &&
           (a->op != CI_OP_const || ci_const_equal(a->dtype, a->value, b->value));
}

/* ---- hashing ---- */

/* Addresses only choose slots; what is merged, and in which order, does not depend on them. */
static uint64_t
hash_node(const CiNode *node)
{
    uint64_t hash = ci_hash_mix((uint64_t)node->op, (uint64_t)node->dtype);
    uint64_t args = 0; /* a sum, because operands of commutative operations come in any order */
    for (int k = 0; k < node->nargs; k++) {
        uint64_t arg = ci_hash_mix(0, (uint64_t)(uintptr_t)node->args[k]);
        args = ci_op_has(node->op, CI_FACT_commutes) ? args + arg : ci_hash_mix(args, arg);
    }
    hash = ci_hash_mix(hash, args);
    for (int k = 0; k < node->naxes; k++)
        hash = ci_hash_mix(hash, (uint64_t)node->axes[k]);
    for (int k = 0; k < node->rank; k++)
        hash = ci_hash_mix(hash, (uint64_t)(uintptr_t)node->sizes[k]);
    for (int k = 0; k < ci_node_nstarts(node); k++)
        hash = ci_hash_mix(hash, (uint64_t)(uintptr_t)node->starts[k]);
    for (int k = 0; node->steps && k < node->rank; k++)
        hash = ci_hash_mix(hash, (uint64_t)(uintptr_t)node->steps[k]);
    if (node->op == CI_OP_const && node->value.re == node->value.re) { /* any NaN equals any NaN */
        hash = ci_hash_mix(hash, (uint64_t)node->value.i);
        hash = ci_hash_bytes(hash, &node->value.re, sizeof node->value.re);
    }
    return hash;
}

/* ---- the sweep ---- */

static bool
may_merge(CiGraph *g, CiNode *node, CiNode *earlier)
{
    unsigned both = ci_node_info(g, node)->flags & ci_node_info(g, earlier)->flags;
    return !(both & CI_IDENTITY_returned) &&
           (ci_node_is_view(node) || !(both & CI_IDENTITY_observed));
}

/* An equal node before this one, or NULL; then this one is what later nodes find. */
static CiNode *
find_or_add(Table *table, CiNode *node)
{
    size_t slot = (size_t)hash_node(node) & table->mask;
    for (; table->slots[slot]; slot = (slot + 1) & table->mask)
        if (is_equal(table->slots[slot], node) && may_merge(table->g, node, table->slots[slot]))
            return table->slots[slot];
    table->slots[slot] = node;
    return NULL;
}

static void
merge_block(CiGraph *g, CiBlock *block)
{
    Table table = {.g = g, .mask = 15};
    while (table.mask < 2 * (size_t)block->nnodes)
        table.mask = 2 * table.mask + 1;
    table.slots = CI_NEW_ARRAY(g->ctx, CiNode *, table.mask + 1);
    int kept = 0;
    for (int k = 0; k < block->nnodes; k++) {
        CiNode *node = block->nodes[k];
        ci_identity_forward_args(node);
        for (int b = 0; b < node->nblocks; b++)
            merge_block(g, node->blocks[b]);
        CiNode *earlier = is_mergeable(node) ? find_or_add(&table, node) : NULL;
        if (earlier)
            ci_identity_replace(g, node, earlier);
        else
            block->nodes[kept++] = node;
    }
    block->nnodes = kept;
    for (int k = 0; k < block->nresults; k++)
        block->results[k] = ci_identity_forward(block->results[k]);
}

void
ci_pass_cse(CiGraph *g)
{
    ci_identity_mark(g);
    merge_block(g, g->body);
    ci_identity_forward_ends(g);
}
