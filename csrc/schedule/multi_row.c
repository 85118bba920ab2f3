/* Kernels whose rows have a length that only a call knows. A short row does not fill the lanes that
 * a fold has, so such kernels have a second form, in which lanes are neighbouring points and each
 * walks a row of its own. A call chooses by the length, once.
 *
 * needs: axes labelled, buffers placed. keeps: both forms fold in the same order. */
#include "schedule/plan.h"

/* The one extent of all inner axes, one a stage; NULL: there is none, or it is known. */
static const CiExpr *
find_row(const CiKernel *kernel)
{
    const CiExpr *row = NULL;
    for (int k = 0; k < kernel->nstages; k++) {
        const CiStage *stage = &kernel->stages[k];
        if (stage->naxes == 0)
            continue;
        if (stage->naxes > 1 || (row && row != stage->axes[0].extent))
            return NULL;
        row = stage->axes[0].extent;
    }
    return row && row->kind != CI_EXPR_const ? row : NULL;
}

/* Products of complex numbers start from their first factor, which is no matter of lanes. */
static bool
is_complex_product(const CiNest *nest)
{
    return ci_op_combine(nest->fold) == CI_OP_multiply &&
           ci_dtype_class(nest->target->dtype) == CI_CLASS_complex;
}

static bool
calls_mathematics(const CiBody *body)
{
    for (int k = 0; k < body->nops; k++)
        if (ci_op_is_function(body->ops[k].op))
            return true;
    return false;
}

/* The number of elements up to which a row counts as short, from the other work of the kernel. Rows
 * of unknown length leave remainders, which cost more the less of a vector they fill. 64 rows with
 * a stride of the row's length fit in the nearest cache. 0 if one variant is enough. */
static int64_t
short_row(const CiScheduler *s, const CiKernel *kernel)
{
    bool has_choice = false, has_sum = false, has_math = false;
    int nops = 0, nlong = 0;
    for (int k = 0; k < kernel->nstages; k++) {
        const CiStage *stage = &kernel->stages[k];
        nlong += stage->naxes > 0;
        for (int n = 0; n < stage->nnests; n++) {
            const CiNest *nest = stage->nests[n];
            bool is_fold = ci_nest_is_fold(nest);
            if (ci_nest_is_serial(nest) || (is_fold && is_complex_product(nest)))
                return 0;
            bool is_free = is_fold && ci_op_is_order_free(nest->fold, nest->target->dtype);
            has_choice |= is_free;
            has_sum |= is_fold && !is_free;
            has_math |= stage->naxes > 0 && calls_mathematics(&nest->body);
            nops += nest->body.nops;
        }
    }
    if (nops > CI_CHOOSE(s, short_ops) || (!has_choice && !has_sum))
        return 0;
    if (nlong > 1)
        return has_choice || has_math ? CI_CHOOSE(s, short_costly_passes) : CI_CHOOSE(s, short_passes);
    if (has_sum)
        return has_choice || has_math ? CI_CHOOSE(s, short_passes) : CI_CHOOSE(s, short_sum);
    return CI_CHOOSE(s, short_choice);
}

/* True if the rows of buffers are few bytes where the kernel's are short. */
static bool
are_small(CiScheduler *s, const CiKernel *kernel, const CiExpr *row, int64_t most)
{
    const CiExpr *one = ci_expr_const(s->sym, 1);
    const CiExpr *rest = ci_expr_index(s->sym, "rest", ci_expr_const(s->sym, most));
    const CiExpr *small = ci_expr_add(s->sym, rest, one);
    int64_t bytes = 0;
    for (int k = 0; k < kernel->nplacements; k++) {
        const CiPlacement *placement = &kernel->placements[k];
        if (placement->stored != CI_STORED_row)
            continue;
        int64_t size = ci_expr_substitute(s->sym, placement->row_size, 1, &row, &small)->high;
        if (size > 4 * most)
            return false;
        bytes += size * CI_STAGE_TILE * ci_dtype_size(placement->buffer->dtype);
    }
    return bytes <= s->machine->row_bytes / 2;
}

void
ci_find_short_rows(CiScheduler *s, CiKernel *kernel)
{
    const CiExpr *row = find_row(kernel);
    int64_t most = short_row(s, kernel);
    if (!s->machine->has_short_rows || !row || row->low > most || kernel->nouter == 0 ||
        kernel->lanes_on_outer || ci_kernel_is_split(kernel) ||
        kernel->nparallel != kernel->nouter || most == 0 || !are_small(s, kernel, row, most))
        return;
    kernel->row = row;
    kernel->short_row = most;
}
