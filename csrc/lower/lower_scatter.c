/* Scatter and compress: nests that store where data say.
 *
 * Invariant: what a scatter reads of the memory it writes has been copied first, for NumPy takes
 * the whole right-hand side before it stores. */
#include "lower/lowering.h"

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
    int nindex = ci_lowering_index_rank(node, 3);
    CiScalar place = {.op = CI_OP_place, .dtype = node->dtype, .nargs = 1};
    for (int k = 0; k < node->naxes; k++) {
        const Operand *operand = &operands[k + 1];
        int position = operand_value(
            rec, operand,
            ci_lowering_aligned_index(low, operand->node, nindex, index + node->axes[0]));
        position = ci_recorder_bind(rec, position, view->sizes[node->axes[k]]);
        found[k] = rec->body.ops[position].index;
    }
    place.args[0] = operand_value(rec, &operands[0],
                                  ci_lowering_aligned_index(low, operands[0].node, rank, index));
    const CiExpr *const *source =
        ci_lowering_source_index(low, node, view->rank, nindex, found, index);
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
    CiHome home = ci_lowering_take_over(low, node, NULL);
    for (int k = 2; k < node->nargs; k++)
        operands[k - 2] = take_operand(low, node->args[k], home.buffer);
    CiNest nest = {.fold = CI_OP_none,
                   .target = home.buffer,
                   .is_combined = node->is_combined,
                   .combine = node->combine,
                   .is_distinct = node->is_distinct};
    int rank = stored_sizes(node, ci_lowering_index_rank(node, 3), sizes);
    const CiExpr *const *index = ci_lowering_point_axes(low, &nest, rank, sizes);
    CiRecorder rec = ci_recorder_new(low);
    record_scatter(&rec, &nest, node, home, operands, index, rank);
    if (home.buffer->kind == CI_BUFFER_input)
        home.buffer->is_written = true;
    *ci_loops_add_nest(low->loops, low->items) = nest;
    ci_lowering_state(low, node)->home = home;
}

void
ci_lowering_compress(CiLowering *low, CiNode *node)
{
    CiNode *a = node->args[0], *mask = node->args[1];
    CiHome home = ci_lowering_new_home(low, node);
    CiNest nest = {.fold = CI_OP_none, .target = home.buffer};
    const CiExpr *const *index = ci_lowering_point_axes(low, &nest, 1, mask->sizes);
    CiRecorder rec = ci_recorder_new(low);
    CiScalar pack = {.op = CI_OP_pack, .dtype = node->dtype, .nargs = 2};
    pack.args[0] = ci_recorder_value(&rec, a, ci_lowering_aligned_index(low, a, 1, index));
    pack.args[1] = ci_recorder_value(&rec, mask, index);
    pack.index = ci_lowering_bound_symbol(low, node->sizes[0]);
    nest.store = ci_expr_mul(low->sym, home.strides[0], pack.index);
    int result = ci_recorder_add(&rec, pack);
    ci_recorder_note(&rec, node->loc);
    ci_lowering_finish_nest(&nest, &rec, result, low->ctx);
    *ci_loops_add_nest(low->loops, low->items) = nest;
    ci_lowering_state(low, node)->home = home;
}
