/* Writes, library calls and what leaves the graph.
 *
 * All versions of an array live in one buffer. That is right because before a write every lazy
 * value that still has to read the old version is realized, and a write whose own value reads other
 * elements of the buffer goes through a temporary. Where the old version itself is still needed as
 * memory afterwards, the new one gets a copy. */
#include "lower/lowering.h"

static bool
is_written_input(const CiLowering *low, const CiNode *node)
{
    for (int k = 0; k < low->graph->nwrites; k++) {
        if (low->graph->writes[k].input == node)
            return true;
    }
    return false;
}

bool
ci_lowering_may_overwrite(const CiLowering *low, CiHome home)
{
    if (home.buffer->kind == CI_BUFFER_temp)
        return true;
    return home.buffer->kind == CI_BUFFER_input && low->position > low->fail_end &&
           is_written_input(low, low->graph->inputs[home.buffer->input]);
}

static bool
survives(CiLowering *low, CiNode *base)
{
    low->visit++;
    return ci_lowering_is_outside_loop(low, base) || ci_lowering_settle(low, base) ||
           ci_lowering_is_used_after(low, base);
}

CiHome
ci_lowering_take_over(CiLowering *low, CiNode *node, CiNode *written)
{
    CiNode *base = node->args[0];
    CiFrame frame;
    bool is_framed = written && written != base &&
                     ci_lowering_find_frame(low, base, written, &frame);
    CiNodeState *state = ci_lowering_state(low, base);
    bool is_gone = is_framed && !state->home.buffer && !survives(low, base);
    if (!is_gone)
        ci_lowering_realize(low, base);
    if (!is_gone && !survives(low, base) && ci_lowering_may_overwrite(low, state->home))
        return state->home;
    CiHome home = ci_lowering_make_home(low, node);
    if (is_framed)
        ci_lowering_store_frame(low, base, &frame, home);
    else if (written != base)
        ci_lowering_store(low, base, base, base, home);
    return home;
}

/* Whether the value was made where it is to be put. */
static bool
is_there(const CiLowering *low, const CiNode *base, const CiNode *value)
{
    const CiNodeState *state = ci_lowering_state(low, value);
    return state->room == base && state->home.buffer &&
           state->home.buffer == ci_lowering_state(low, base)->home.buffer;
}

void
ci_lowering_assign(CiLowering *low, CiNode *node)
{
    CiNode *base = node->args[0], *view = node->args[1], *value = node->args[2];
    CiNodeState *state = ci_lowering_state(low, base);
    if (state->waits && !state->home.buffer)
        state->home = ci_lowering_make_room(low, node);
    if (is_there(low, base, value)) {
        ci_lowering_state(low, node)->home = state->home;
        return;
    }
    CiHome home = ci_lowering_take_over(low, node, view);
    ci_lowering_store(low, value, view, base, home);
    ci_lowering_state(low, node)->home = home;
}

void
ci_lowering_concat(CiLowering *low, CiNode *node)
{
    CiHome home = ci_lowering_make_home(low, node);
    int axis = node->axes[0];
    const CiExpr *start = ci_expr_const(low->sym, 0), *one = ci_expr_const(low->sym, 1);
    for (int k = 0; k < node->nargs; k++) {
        CiNode *part = node->args[k];
        CiNode *window =
            CI_NEW(low->ctx, CiNode); /* where the part goes, as a slice of the result */
        const CiExpr **starts = CI_NEW_ARRAY(low->ctx, const CiExpr *, node->rank + 1);
        const CiExpr **steps = CI_NEW_ARRAY(low->ctx, const CiExpr *, node->rank + 1);
        for (int d = 0; d < node->rank; d++) {
            starts[d] = d == axis ? start : ci_expr_const(low->sym, 0);
            steps[d] = one;
        }
        *window = (CiNode){.op = CI_OP_slice,
                           .dtype = node->dtype,
                           .rank = node->rank,
                           .sizes = part->sizes,
                           .order = node->order,
                           .nargs = 1,
                           .args = CI_NEW_ARRAY(low->ctx, CiNode *, 1),
                           .starts = starts,
                           .steps = steps,
                           .loc = node->loc};
        window->args[0] = node;
        ci_lowering_store(low, part, window, node, home);
        start = ci_expr_add(low->sym, start, part->sizes[axis]);
    }
    ci_lowering_state(low, node)->home = home;
}

/* An operand as memory: a strided view of a buffer, or a copy where memory order forbids that. */
static void
add_operand(CiLowering *low, CiExternItem *item, CiNode *node)
{
    CiNode *base = ci_node_base(node);
    const CiExpr *offset = ci_expr_const(low->sym, 0);
    const CiExpr **strides = CI_NEW_ARRAY(low->ctx, const CiExpr *, node->rank + 1);
    ci_lowering_realize(low, base);
    CiHome home = ci_lowering_state(low, base)->home;
    if (!ci_layout_view_strides(low->graph, node, base, home.strides, &offset, strides)) {
        ci_lowering_realize(low, node);
        home = ci_lowering_state(low, node)->home;
        offset = ci_expr_const(low->sym, 0);
        for (int k = 0; k < node->rank; k++)
            strides[k] = home.strides[k];
    }
    ci_extern_add_operand(item, home.buffer, offset, node->rank, node->sizes, strides);
}

static bool
is_in_order(CiLowering *low, const CiExternItem *item, int k)
{
    const CiExpr *step = ci_expr_const(low->sym, 1);
    for (int d = item->ranks[k] - 1; d >= 0; d--) {
        if (item->strides[k][d] != step && !ci_expr_equals_const(item->sizes[k][d], 1))
            return false;
        step = ci_expr_mul(low->sym, step, item->sizes[k][d]);
    }
    return true;
}

/* What the host will do has no operand in an argument that is no dense run of bytes: such a one is
 * packed where it lives, and that is copied. What goes to the device as it is lies in order. */
static bool
needs_packing(CiLowering *low, const CiExternItem *item, int k)
{
    const CiBuffer *buffer = item->operands[k];
    if (item->ext->call_on)
        return !is_in_order(low, item, k);
    if (low->options->takes_extern && low->options->takes_extern(item))
        return false;
    return low->options->packs_operands && buffer->kind == CI_BUFFER_input &&
           !ci_buffer_is_dense(low->loops, buffer);
}

static void
pack_operands(CiLowering *low, CiExternItem *item, const CiNode *node)
{
    for (int k = 0; k < item->noperands; k++) {
        CiNode *value = node->args[k];
        if (!needs_packing(low, item, k))
            continue;
        CiHome home = ci_lowering_new_home(low, value);
        ci_lowering_store(low, value, value, value, home);
        item->operands[k] = home.buffer;
        item->offsets[k] = ci_expr_const(low->sym, 0);
        item->strides[k] = home.strides;
    }
}

void
ci_lowering_extern(CiLowering *low, CiNode *node)
{
    CiContext *ctx = low->ctx;
    CiExternItem *item = ci_extern_new(ctx, node->ext, node->op, node->nargs);
    item->loc = node->loc;
    for (int k = 0; k < node->nargs; k++)
        add_operand(low, item, node->args[k]);
    CiHome home = ci_lowering_make_home(low, node);
    ci_extern_set_result(low->sym, item, home.buffer);
    pack_operands(low, item, node);
    CiItem entry = {.kind = CI_ITEM_extern, .ext = item};
    CI_PUSH(ctx, low->items->items, low->items->count, low->items->capacity, entry);
    ci_lowering_state(low, node)->home = home;
}

/* ---- several values at once ---- */

bool
ci_home_is_same(const CiNode *node, CiHome a, CiHome b)
{
    bool is_same = a.buffer == b.buffer;
    for (int k = 0; k < node->rank && is_same; k++)
        is_same = a.strides[k] == b.strides[k];
    return is_same;
}

void
ci_lowering_save(CiLowering *low, CiNode *node)
{
    CiHome home = ci_lowering_new_home(low, node);
    ci_lowering_store(low, node, node, node, home);
    ci_lowering_state(low, node)->home = home;
}

int
ci_lowering_find_conflict(CiLowering *low, int count, CiNode *const *values, const CiHome *homes,
                          const bool *is_done, int k)
{
    for (int j = 0; j < count; j++) {
        low->visit++;
        if (j != k && !is_done[j] && ci_lowering_reads(low, values[j], homes[k].buffer))
            return j;
    }
    return -1;
}

/* All at once, as the assignment of a tuple: a home is overwritten when no value still to be stored
 * reads it; where each waits for another, values are saved first. */
void
ci_lowering_store_all(CiLowering *low, int n, CiNode *const *values, const CiHome *homes,
                      bool *is_stored)
{
    int left = 0;
    for (int k = 0; k < n; k++) {
        CiHome home = ci_lowering_state(low, values[k])->home;
        is_stored[k] |= home.buffer && ci_home_is_same(values[k], home, homes[k]);
        left += !is_stored[k];
    }
    while (left) {
        int least = -1, first = -1;
        for (int k = 0; k < n && least < 0; k++) {
            if (is_stored[k])
                continue;
            first = first < 0 ? k : first;
            if (ci_lowering_find_conflict(low, n, values, homes, is_stored, k) < 0)
                least = k;
        }
        for (int j; least < 0 &&
                    (j = ci_lowering_find_conflict(low, n, values, homes, is_stored, first)) >= 0;)
            ci_lowering_save(low, values[j]);
        least = least < 0 ? first : least;
        ci_lowering_store(low, values[least], values[least], values[least], homes[least]);
        is_stored[least] = true;
        left--;
    }
}

/* A version that is returned must not lie where another version is about to be written. */
static void
save_results_in(CiLowering *low, const CiBuffer *buffer)
{
    const CiBlock *body = low->graph->body;
    for (int k = 0; k < body->nresults; k++) {
        CiNode *base = ci_node_base(body->results[k]);
        if (base->op != CI_OP_input && ci_lowering_state(low, base)->home.buffer == buffer)
            ci_lowering_save(low, base);
    }
}

/* Inputs whose last version is not in their own memory are copied back, and nothing fails from here
 * on. */
void
ci_lowering_final_writes(CiLowering *low)
{
    int n = 0, nwrites = low->graph->nwrites;
    CiNode **values = CI_NEW_ARRAY(low->ctx, CiNode *, nwrites + 1);
    CiHome *homes = CI_NEW_ARRAY(low->ctx, CiHome, nwrites + 1);
    for (int k = 0; k < nwrites; k++) {
        CiNode *input = low->graph->writes[k].input, *value = low->graph->writes[k].value;
        CiHome home = ci_lowering_state(low, input)->home,
               last = ci_lowering_state(low, value)->home;
        if (value == input || (last.buffer && ci_home_is_same(value, last, home)))
            continue;
        save_results_in(low, home.buffer);
        values[n] = value;
        homes[n++] = home;
    }
    /* A saved input is still returned as the argument that it is. */
    CiHome *own = CI_NEW_ARRAY(low->ctx, CiHome, low->graph->ninputs + 1);
    for (int k = 0; k < low->graph->ninputs; k++)
        own[k] = ci_lowering_state(low, low->graph->inputs[k])->home;
    ci_lowering_store_all(low, n, values, homes, CI_NEW_ARRAY(low->ctx, bool, n + 1));
    for (int k = 0; k < low->graph->ninputs; k++)
        ci_lowering_state(low, low->graph->inputs[k])->home = own[k];
}

static void
add_result(CiLowering *low, CiNode *node)
{
    CiNode *base = ci_node_base(node);
    CiResult result = {
        .dtype = node->dtype, .kind = node->kind, .rank = node->rank, .sizes = node->sizes};
    const CiExpr **strides = CI_NEW_ARRAY(low->ctx, const CiExpr *, node->rank + 1);
    ci_lowering_realize(low, base);
    CiHome home = ci_lowering_state(low, base)->home;
    result.offset = ci_expr_const(low->sym, 0);
    result.is_whole = node == base;
    if (home.buffer->is_swapped) {
        ci_lowering_save(low, base);
        home = ci_lowering_state(low, base)->home;
    }
    if (!ci_layout_view_strides(low->graph, node, base, home.strides, &result.offset, strides)) {
        ci_lowering_realize(low, node);
        home = ci_lowering_state(low, node)->home;
        result.is_whole = true;
        for (int k = 0; k < node->rank; k++)
            strides[k] = home.strides[k];
    }
    result.buffer = home.buffer;
    result.strides = strides;
    if (home.buffer->kind == CI_BUFFER_temp)
        home.buffer->is_result = true;
    CI_PUSH(low->ctx, low->loops->results, low->loops->nresults, low->loops->capresults, result);
}

void
ci_lowering_results(CiLowering *low)
{
    CiBlock *body = low->graph->body;
    for (int k = 0; k < body->nresults; k++)
        add_result(low, body->results[k]);
}
