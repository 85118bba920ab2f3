/* Indirect access: gather as an inner function, scatter and compress as nests.
 *
 * An index that data gives is bound to an index symbol, and from there on it is an index like any
 * other: views map it, loads use it. Each bind has a symbol of its own, over all nests: equal
 * symbols mean the same element, and two nests never share one.
 *
 * Invariant: what a scatter reads of the memory it writes has been copied first, for NumPy takes
 * the whole right-hand side before it stores. */
#include "lower/lowering.h"

/* ---- binding ---- */

static const CiExpr *
new_symbol(CiLowering *low, const CiExpr *limit)
{
    return ci_expr_index(low->sym, ci_format(low->ctx, "at%d", low->nbinds++), limit);
}

/* The position of the bind of the value at `position`, an index below limit. */
static int
bind_value(CiRecorder *rec, int position, const CiExpr *limit)
{
    for (int k = 0; k < rec->body.nops; k++) {
        const CiScalar *op = &rec->body.ops[k];
        if (op->op == CI_OP_bind && op->args[0] == position && op->index->limit == ci_expr_limit(limit))
            return k;
    }
    CiScalar bind = {.op = CI_OP_bind, .dtype = CI_DTYPE_i64, .args = {position}, .nargs = 1};
    bind.index = new_symbol(rec->low, limit);
    return ci_recorder_add(rec, bind);
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

/* The index into an operand that is broadcast over axes of these extents, aligned at the right. */
static const CiExpr *const *
aligned_index(CiLowering *low, const CiNode *operand, int rank, const CiExpr *const *index)
{
    const CiExpr **inner = CI_NEW_ARRAY(low->ctx, const CiExpr *, operand->rank + 1);
    for (int k = 0; k < operand->rank; k++)
        inner[k] = ci_expr_equals_const(operand->sizes[k], 1) ? ci_expr_const(low->sym, 0)
                                                              : index[k + rank - operand->rank];
    return inner;
}

static int
index_rank(const CiNode *node, int first)
{
    int rank = 0;
    for (int k = first; k < node->nargs; k++)
        rank = node->args[k]->rank > rank ? node->args[k]->rank : rank;
    return rank;
}

/* The index into what is gathered from: `found` along the indexed axes, the rest as it is. */
static const CiExpr *const *
source_index(CiLowering *low, const CiNode *node, int rank, int nindex, const CiExpr *const *found,
             const CiExpr *const *index)
{
    const CiExpr **source = CI_NEW_ARRAY(low->ctx, const CiExpr *, rank + 1);
    for (int k = 0, next = 0, from = 0; k < rank; k++) {
        if (k == node->axes[0])
            from += nindex;
        if (next < node->naxes && k == node->axes[next])
            source[k] = found[next++];
        else
            source[k] = index[from++];
    }
    return source;
}

int
ci_recorder_gather(CiRecorder *rec, CiNode *node, const CiExpr *const *index)
{
    CiLowering *low = rec->low;
    CiNode *a = node->args[0];
    const CiExpr *found[CI_MAX_INDICES];
    int nindex = index_rank(node, 1);
    for (int k = 0; k < node->naxes; k++) {
        CiNode *operand = node->args[k + 1];
        const CiExpr *limit = a->sizes[node->axes[k]];
        int position = ci_recorder_value(
            rec, operand, aligned_index(low, operand, nindex, index + node->axes[0]));
        found[k] = known_index(low, &rec->body.ops[position], limit);
        if (found[k])
            continue;
        position = bind_value(rec, position, limit);
        found[k] = rec->body.ops[position].index;
    }
    return ci_recorder_value(rec, a, source_index(low, node, a->rank, nindex, found, index));
}

/* ---- scatter ---- */

typedef struct Operand {
    CiNode *node;
    CiHome copy; /* buffer NULL: read where it is */
} Operand;

static Operand
take_operand(CiLowering *low, CiNode *node, const CiBuffer *target)
{
    Operand operand = {.node = node};
    low->visit++;
    if (!ci_lowering_reads(low, node, target))
        return operand;
    operand.copy = ci_lowering_new_home(low, node);
    ci_lowering_store(low, node, node, node, operand.copy);
    return operand;
}

static int
operand_value(CiRecorder *rec, const Operand *operand, const CiExpr *const *index)
{
    CiHome copy = operand->copy;
    if (!copy.buffer)
        return ci_recorder_value(rec, operand->node, index);
    CiScalar load = {.op = CI_OP_load, .dtype = operand->node->dtype, .buffer = copy.buffer};
    load.index = ci_lowering_element(rec->low, copy, operand->node->rank, index);
    return ci_recorder_add(rec, load);
}

/* The extents of what is stored, of equal or broadcast indices. */
static int
stored_sizes(const CiNode *node, int nindex, const CiExpr **sizes)
{
    const CiNode *view = node->args[1];
    int rank = 0;
    for (int k = 0, next = 0; k < view->rank; k++) {
        for (int d = 0; d < nindex && k == node->axes[0]; d++, rank++) {
            sizes[rank] = NULL;
            for (int i = 3; i < node->nargs; i++) {
                int axis = d - nindex + node->args[i]->rank;
                if (axis < 0 || (sizes[rank] && !ci_expr_equals_const(sizes[rank], 1)))
                    continue;
                sizes[rank] = node->args[i]->sizes[axis];
            }
        }
        if (next < node->naxes && k == node->axes[next])
            next++;
        else
            sizes[rank++] = view->sizes[k];
    }
    return rank;
}

/* Binds the indices and stores the value where they say. */
static void
record_scatter(CiRecorder *rec, CiNest *nest, CiNode *node, CiHome home, const Operand *operands,
               const CiExpr *const *index, int rank)
{
    CiLowering *low = rec->low;
    CiNode *base = node->args[0], *view = node->args[1];
    const CiExpr *found[CI_MAX_INDICES];
    int nindex = index_rank(node, 3);
    CiScalar place = {.op = CI_OP_place, .dtype = node->dtype, .nargs = 1};
    for (int k = 0; k < node->naxes; k++) {
        const Operand *operand = &operands[k + 1];
        int position = operand_value(
            rec, operand, aligned_index(low, operand->node, nindex, index + node->axes[0]));
        position = bind_value(rec, position, view->sizes[node->axes[k]]);
        found[k] = rec->body.ops[position].index;
    }
    place.args[0] =
        operand_value(rec, &operands[0], aligned_index(low, operands[0].node, rank, index));
    const CiExpr *const *source = source_index(low, node, view->rank, nindex, found, index);
    nest->store =
        ci_lowering_element(low, home, base->rank, ci_view_base_index(low, view, base, source));
    ci_body_link(low->ctx, &rec->body, &place, nest->store);
    int result = ci_recorder_add(rec, place);
    ci_recorder_note(rec, node->loc);
    ci_lowering_finish_nest(nest, rec, result, low->ctx);
}

void
ci_lowering_scatter(CiLowering *low, CiNode *node)
{
    const CiExpr *sizes[2 * CI_MAX_RANK];
    Operand operands[CI_MAX_INDICES + 1];
    CiHome home = ci_lowering_take_over(low, node, true);
    for (int k = 2; k < node->nargs; k++)
        operands[k - 2] = take_operand(low, node->args[k], home.buffer);
    CiNest nest = {.fold = CI_OP_none,
                   .target = home.buffer,
                   .is_combined = node->is_combined,
                   .combine = node->combine,
                   .is_distinct = node->is_distinct};
    int rank = stored_sizes(node, index_rank(node, 3), sizes);
    const CiExpr *const *index = ci_lowering_point_axes(low, &nest, rank, sizes);
    CiRecorder rec = ci_recorder_new(low);
    record_scatter(&rec, &nest, node, home, operands, index, rank);
    if (home.buffer->kind == CI_BUFFER_input)
        home.buffer->is_written = true;
    *ci_loops_add_nest(low->loops, low->items) = nest;
    ci_lowering_state(low, node)->home = home;
}

/* ---- compress ---- */

void
ci_lowering_compress(CiLowering *low, CiNode *node)
{
    CiNode *a = node->args[0], *mask = node->args[1];
    CiHome home = ci_lowering_new_home(low, node);
    CiNest nest = {.fold = CI_OP_none, .target = home.buffer};
    const CiExpr *const *index = ci_lowering_point_axes(low, &nest, 1, mask->sizes);
    CiRecorder rec = ci_recorder_new(low);
    CiScalar pack = {.op = CI_OP_pack, .dtype = node->dtype, .nargs = 2};
    pack.args[0] = ci_recorder_value(&rec, a, aligned_index(low, a, 1, index));
    pack.args[1] = ci_recorder_value(&rec, mask, index);
    pack.index = new_symbol(low, node->sizes[0]);
    nest.store = ci_expr_mul(low->sym, home.strides[0], pack.index);
    int result = ci_recorder_add(&rec, pack);
    ci_recorder_note(&rec, node->loc);
    ci_lowering_finish_nest(&nest, &rec, result, low->ctx);
    *ci_loops_add_nest(low->loops, low->items) = nest;
    ci_lowering_state(low, node)->home = home;
}
