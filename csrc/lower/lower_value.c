/* The inner functions: the scalar value of a node at an index. Composing ops is calling inner
 * functions; a realized node is a load. (node, index) pairs are numbered as ops are, so a shared
 * node is emitted once a body. */
#include "lower/lowering.h"

#include <string.h>

#include "base/hash.h"

typedef struct CiMemoEntry {
    const CiNode *node;
    const CiExpr *const *index;
    int position;
    struct CiMemoEntry *next;
} CiMemoEntry;

static int
emit_load(CiRecorder *rec, const CiNode *node, CiStorage storage, const CiExpr *const *index)
{
    CiScalar op = {.op = CI_OP_load, .dtype = node->dtype, .buffer = storage.buffer};
    op.index = ci_lowering_element(rec->low, storage, node->rank, index);
    ci_body_link(rec->low->ctx, &rec->body, &op, op.index);
    return ci_recorder_add(rec, op);
}

static int
emit_pointwise(CiRecorder *rec, CiNode *node, const CiExpr *const *index)
{
    CiScalar op = {.op = node->op, .dtype = node->dtype, .nargs = node->nargs};
    CI_REQUIRE(rec->low->ctx, node->nargs <= 3);
    for (int k = 0; k < node->nargs; k++)
        op.args[k] = ci_recorder_value(
            rec, node->args[k],
            ci_lowering_aligned_index(rec->low, node->args[k], node->rank, index));
    return ci_recorder_add(rec, op);
}

static int
emit_const(CiRecorder *rec, const CiNode *node)
{
    CiScalar op = {.op = CI_OP_const, .dtype = node->dtype, .value = node->value};
    return ci_recorder_add(rec, op);
}

static int
emit_index(CiRecorder *rec, const CiExpr *index)
{
    CiScalar op = {.op = CI_OP_index, .dtype = CI_DTYPE_i64, .index = index};
    ci_body_link(rec->low->ctx, &rec->body, &op, index);
    return ci_recorder_add(rec, op);
}

/* An index expression proved in range needs no bind. */
static const CiExpr *
known_index(CiLowering *low, const CiScalar *op, const CiExpr *limit)
{
    const CiExpr *index = op->op == CI_OP_index   ? op->index
                          : op->op == CI_OP_const ? ci_expr_const(low->sym, op->value.i)
                                                  : NULL;
    bool is_inside = index && index->low >= 0 && ci_sym_known_lt(low->sym, index, limit);
    return is_inside ? index : NULL;
}

static int
emit_gather(CiRecorder *rec, CiNode *node, const CiExpr *const *index)
{
    CiLowering *low = rec->low;
    CiNode *a = node->args[0];
    const CiExpr *found[CI_MAX_INDICES];
    int nindex = ci_lowering_index_rank(node, 1);
    for (int k = 0; k < node->naxes; k++) {
        CiNode *operand = node->args[k + 1];
        const CiExpr *limit = a->sizes[node->axes[k]];
        int position = ci_recorder_value(
            rec, operand, ci_lowering_aligned_index(low, operand, nindex, index + node->axes[0]));
        found[k] = known_index(low, &rec->body.ops[position], limit);
        if (found[k])
            continue;
        position = ci_recorder_bind(rec, position, limit);
        found[k] = rec->body.ops[position].index;
    }
    return ci_recorder_value(rec, a,
                             ci_lowering_source_index(low, node, a->rank, nindex, found, index));
}

static int
emit_node(CiRecorder *rec, CiNode *node, const CiExpr *const *index)
{
    CiLowering *low = rec->low;
    CiStorage storage = ci_lowering_state(low, node)->storage;
    if (storage.buffer)
        return emit_load(rec, node, storage, index);
    const CiExpr *induction = ci_lowering_state(low, node)->induction;
    if (induction)
        return emit_index(rec, induction);
    ci_recorder_note(rec, node->loc);
    switch (ci_op_kind(node->op)) {
    case CI_OPKIND_pointwise:
    case CI_OPKIND_math:
    case CI_OPKIND_ufunc:
        return emit_pointwise(rec, node, index);
    case CI_OPKIND_view:
        return ci_recorder_value(rec, node->args[0], ci_view_source_index(low, node, index));
    case CI_OPKIND_create:
        if (node->op == CI_OP_const)
            return emit_const(rec, node);
        if (node->op == CI_OP_iota)
            return emit_index(rec, index[node->axes[0]]);
        if (node->op == CI_OP_expr)
            return emit_index(rec, node->starts[0]);
        break;
    case CI_OPKIND_structure:
        if (node->op == CI_OP_cast || node->op == CI_OP_where)
            return emit_pointwise(rec, node, index);
        if (node->op == CI_OP_copy)
            return ci_recorder_value(rec, node->args[0], index);
        if (node->op == CI_OP_gather)
            return emit_gather(rec, node, index);
        break;
    default:
        break;
    }
    ci_fail(low->ctx, CI_ERR_LOWERING, "%s has no inner function", ci_op_name(node->op));
}

int
ci_recorder_value(CiRecorder *rec, CiNode *node, const CiExpr *const *index)
{
    CiContext *ctx = rec->low->ctx;
    uint64_t hash = CI_KEY(node);
    for (int k = 0; k < node->rank; k++)
        hash = ci_hash_mix(hash, CI_KEY(index[k]));
    CiMemoEntry *first = ci_map_find(rec->memo, hash);
    size_t size = sizeof *index * (size_t)node->rank;
    for (CiMemoEntry *e = first; e; e = e->next) {
        if (e->node == node && (size == 0 || memcmp(e->index, index, size) == 0))
            return e->position;
    }
    CiMemoEntry *entry = CI_NEW(ctx, CiMemoEntry);
    *entry = (CiMemoEntry){.node = node, .index = index, .position = emit_node(rec, node, index)};
    entry->next = ci_map_find(rec->memo, hash);
    ci_map_put(rec->memo, hash, entry);
    return entry->position;
}
