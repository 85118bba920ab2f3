/* Checks that the host evaluates while the program runs: values of symbols, and conditions that
 * must be true.
 *
 * Invariant: if one of them fails, no argument has been changed. So arguments are written in place
 * only after the last check; until then a written argument has a copy, which is written back at the
 * end of the program. */
#include "ir/range.h"
#include "lower/lowering.h"

CiBuffer *
ci_lowering_host_value(CiLowering *low, CiNode *value, int first)
{
    CiStorage storage = ci_lowering_state(low, value)->storage;
    if (storage.buffer && storage.buffer->kind == CI_BUFFER_temp && value->id > first &&
        !ci_node_is_view(value))
        return storage.buffer;
    storage = ci_lowering_new_storage(low, value);
    ci_lowering_store(low, value, value, value, storage);
    return storage.buffer;
}

void
ci_lowering_check(CiLowering *low, CiNode *node)
{
    bool is_symbol = node->op == CI_OP_define;
    CiItem item = {.kind = is_symbol ? CI_ITEM_symbol : CI_ITEM_check};
    item.check = CI_NEW(low->ctx, CiCheckItem);
    *item.check = (CiCheckItem){.loc = node->loc, .why = node->name};
    item.check->buffer = ci_lowering_host_value(low, node->args[0], -1);
    if (is_symbol) {
        item.check->symbol = ci_lowering_state(low, node)->induction = node->starts[0];
        item.check->limit = node->starts[1];
    }
    CI_PUSH(low->ctx, low->items->items, low->items->count, low->items->capacity, item);
}

static bool
may_fail(void *arg, const CiNode *node)
{
    CiLowering *low = arg;
    if (node->op != CI_OP_define)
        return node->op == CI_OP_check || (node->ext != NULL && node->ext->may_fail);
    CiSym *sym = low->graph->sym;
    const CiExpr *least = ci_expr_const(sym, node->starts[0]->low), *limit = node->starts[1];
    CiRange range = ci_node_range(sym, node->args[0]);
    bool is_from = least->value == CI_MINUS_INFINITY || ci_range_is_from(sym, range, least),
         is_below =
             ci_expr_equals_const(limit, CI_INFINITY) || ci_range_is_below(sym, range, limit);
    return !is_from || !is_below;
}

/* Finds the position after which arguments may be written. A check in a loop runs again in the next
 * iteration, so the position is after the whole loop. */
void
ci_lowering_find_checks(CiLowering *low)
{
    const CiBlock *body = low->graph->body;
    low->fail_end = -1;
    for (int k = 0; k < body->nnodes; k++) {
        const CiNode *node = body->nodes[k];
        const CiNodeState *state = ci_lowering_state(low, node);
        if (may_fail(low, node))
            low->fail_end = node->id;
        for (int b = 0; b < node->nblocks; b++)
            if (ci_block_has(node->blocks[b], may_fail, low))
                low->fail_end = state->end[node->nblocks - 1];
    }
}
