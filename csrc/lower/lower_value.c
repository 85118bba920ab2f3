/* The inner functions: the scalar value of a node at an index. Composing ops is calling inner
 * functions; a realized node is a load. Both ops and (node, index) pairs are numbered, so a shared
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

typedef struct CiValueEntry {
    int position;
    struct CiValueEntry *next;
} CiValueEntry;

CiRecorder
ci_recorder_new(CiLowering *low)
{
    CiRecorder rec = {.low = low, .values = ci_map_new(low->ctx), .memo = ci_map_new(low->ctx)};
    return rec;
}

static uint64_t
hash_scalar(const CiScalar *op)
{
    uint64_t hash = ci_hash_mix((uint64_t)op->op, (uint64_t)op->dtype);
    for (int k = 0; k < op->nargs; k++)
        hash = ci_hash_mix(hash, (uint64_t)op->args[k]);
    hash = ci_hash_mix(hash, CI_KEY(op->buffer));
    hash = ci_hash_mix(hash, CI_KEY(op->index));
    return ci_hash_bytes(hash, &op->value, sizeof op->value);
}

static bool
is_same_scalar(const CiScalar *a, const CiScalar *b)
{
    return a->op == b->op && a->dtype == b->dtype && a->nargs == b->nargs &&
           a->buffer == b->buffer && a->index == b->index &&
           memcmp(a->args, b->args, sizeof a->args) == 0 &&
           memcmp(&a->value, &b->value, sizeof a->value) == 0;
}

int
ci_recorder_add(CiRecorder *rec, CiScalar op)
{
    CiContext *ctx = rec->low->ctx;
    uint64_t hash = hash_scalar(&op);
    CiValueEntry *first = ci_map_find(rec->values, hash);
    for (CiValueEntry *e = first; e; e = e->next) {
        if (is_same_scalar(&rec->body.ops[e->position], &op))
            return e->position;
    }
    CiValueEntry *entry = CI_NEW(ctx, CiValueEntry);
    entry->position = ci_body_add(ctx, &rec->body, op);
    entry->next = first;
    ci_map_put(rec->values, hash, entry);
    return entry->position;
}

void
ci_recorder_note(CiRecorder *rec, CiLoc loc)
{
    if (loc.line == 0 || rec->nlocs == (int)(sizeof rec->locs / sizeof rec->locs[0]))
        return;
    for (int k = 0; k < rec->nlocs; k++) {
        if (rec->locs[k].line == loc.line && strcmp(rec->locs[k].file, loc.file) == 0)
            return;
    }
    rec->locs[rec->nlocs++] = loc;
}

const CiExpr *
ci_lowering_element(CiLowering *low, CiHome home, int rank, const CiExpr *const *index)
{
    const CiExpr *element = ci_expr_const(low->sym, 0);
    for (int k = 0; k < rank; k++)
        element = ci_expr_add(low->sym, element, ci_expr_mul(low->sym, home.strides[k], index[k]));
    return element;
}

static int
emit_load(CiRecorder *rec, const CiNode *node, CiHome home, const CiExpr *const *index)
{
    CiScalar op = {.op = CI_OP_load, .dtype = node->dtype, .buffer = home.buffer};
    op.index = ci_lowering_element(rec->low, home, node->rank, index);
    ci_body_link(rec->low->ctx, &rec->body, &op, op.index);
    return ci_recorder_add(rec, op);
}

/* The index into an operand of a broadcasting op: axes are aligned at the right, extent 1 stays at
 * 0. */
static const CiExpr *const *
broadcast_index(CiLowering *low, const CiNode *node, const CiNode *operand,
                const CiExpr *const *index)
{
    int shift = node->rank - operand->rank;
    const CiExpr **inner = CI_NEW_ARRAY(low->ctx, const CiExpr *, operand->rank + 1);
    for (int k = 0; k < operand->rank; k++)
        inner[k] = ci_expr_equals_const(operand->sizes[k], 1) ? ci_expr_const(low->sym, 0)
                                                              : index[k + shift];
    return inner;
}

static int
emit_pointwise(CiRecorder *rec, CiNode *node, const CiExpr *const *index)
{
    CiScalar op = {.op = node->op, .dtype = node->dtype, .nargs = node->nargs};
    CI_REQUIRE(rec->low->ctx, node->nargs <= 3);
    for (int k = 0; k < node->nargs; k++)
        op.args[k] = ci_recorder_value(rec, node->args[k],
                                       broadcast_index(rec->low, node, node->args[k], index));
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

static int
emit_node(CiRecorder *rec, CiNode *node, const CiExpr *const *index)
{
    CiLowering *low = rec->low;
    CiHome home = ci_lowering_state(low, node)->home;
    if (home.buffer)
        return emit_load(rec, node, home, index);
    const CiExpr *induction = ci_lowering_state(low, node)->induction;
    if (induction)
        return emit_index(rec, induction);
    ci_recorder_note(rec, node->loc);
    switch (ci_op_kind(node->op)) {
    case CI_OPKIND_pointwise:
    case CI_OPKIND_math:
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
            return ci_recorder_gather(rec, node, index);
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
