/* A write to a box within an array whose new version gets its own memory. From the old version only
 * the border around the box is stored, one slab before and one after it along each axis.
 *
 *   y = x.copy(); y[1:-1, 1:-1] = v  ->  the first and the last row of x; of the others, the first
 *                                        and the last element; v
 *
 * This pays off if the border is thin: launches then cost more than their stores. */
#include "lower/lowering.h"

#include "analysis/choices.h"

#include "analysis/cost.h"

static bool
is_thin(const CiLowering *low, const CiExpr *extent)
{
    int64_t value;
    return ci_expr_is_const(extent, &value) && value >= 0 && value <= CI_CHOOSE(low, border_width);
}

/* Finds the start of the box along axis k of base, and the slab after it. */
static bool
find_slabs(CiLowering *low, const CiNode *base, const CiNode *view, const CiExpr *const *index,
           const CiExpr *const *element, int k, CiBorder *border)
{
    const CiExpr *start = ci_expr_sub(low->sym, element[k], index[k]);
    const CiExpr *end = ci_expr_add(low->sym, start, view->sizes[k]);
    border->starts[k] = start;
    border->ends[k] = end;
    return is_thin(low, start) && is_thin(low, ci_expr_sub(low->sym, base->sizes[k], end));
}

static bool
is_large(const CiLowering *low, const CiNode *base)
{
    const CiMachine *machine = low->machine;
    CiAmount bytes = ci_amount(ci_dtype_size(base->dtype));
    for (int k = 0; k < base->rank; k++)
        bytes = ci_amount_of(bytes, base->sizes[k]);
    return ci_amount_likely(bytes) >= ci_choice(machine, CI_CHOICE_border_bytes);
}

bool
ci_lowering_find_border(CiLowering *low, const CiNode *base, CiNode *view, CiBorder *border)
{
    if (view->rank != base->rank || !is_large(low, base))
        return false;
    CiNest box = {0};
    const CiExpr *const *index = ci_lowering_point_axes(low, &box, view->rank, view->sizes);
    const CiExpr *const *element = ci_view_base_index(low, view, base, index);
    border->starts = CI_NEW_ARRAY(low->ctx, const CiExpr *, base->rank + 1);
    border->ends = CI_NEW_ARRAY(low->ctx, const CiExpr *, base->rank + 1);
    for (int k = 0; k < base->rank; k++)
        if (!find_slabs(low, base, view, index, element, k, border))
            return false;
    return true;
}

/* The elements of node from `starts` on, `sizes` of them along each axis. */
static void
store_slab(CiLowering *low, CiNode *node, const CiExpr *const *starts, const CiExpr *const *sizes,
           CiStorage storage)
{
    CiNest nest = {.fold = CI_OP_none, .target = storage.buffer};
    const CiExpr *const *index = ci_lowering_point_axes(low, &nest, node->rank, sizes);
    const CiExpr **element = CI_NEW_ARRAY(low->ctx, const CiExpr *, node->rank + 1);
    for (int k = 0; k < node->rank; k++)
        element[k] = ci_expr_add(low->sym, starts[k], index[k]);
    nest.store = ci_lowering_element(low, storage, node->rank, element);
    CiRecorder rec = ci_recorder_new(low);
    int result = ci_recorder_value(&rec, node, element);
    ci_lowering_finish_nest(&nest, &rec, result, low->ctx);
    *ci_loops_add_nest(low->loops, low->items) = nest;
}

/* The slab of axis k spans the box along the axes before k, and the whole array along the axes
 * after it. */
void
ci_lowering_store_border(CiLowering *low, CiNode *node, const CiBorder *border, CiStorage storage)
{
    CiSym *sym = low->sym;
    const CiExpr *zero = ci_expr_const(sym, 0);
    const CiExpr **starts = CI_NEW_ARRAY(low->ctx, const CiExpr *, node->rank + 1);
    const CiExpr **sizes = CI_NEW_ARRAY(low->ctx, const CiExpr *, node->rank + 1);
    for (int k = 0; k < node->rank; k++) {
        starts[k] = zero;
        sizes[k] = node->sizes[k];
    }
    for (int k = 0; k < node->rank; k++) {
        const CiExpr *before = border->starts[k], *end = border->ends[k],
                     *behind = ci_expr_sub(sym, node->sizes[k], end);
        sizes[k] = before;
        if (before != zero)
            store_slab(low, node, starts, sizes, storage);
        starts[k] = end;
        sizes[k] = behind;
        if (behind != zero)
            store_slab(low, node, starts, sizes, storage);
        starts[k] = before;
        sizes[k] = ci_expr_sub(sym, end, before);
    }
}
