/* Folds of short rows with a row for each lane, where other points read the same rows again: distances of all
 * pairs, x[i, k] - y[j, k] folded over k. A unit is a tile of two outer axes. The rows of y are transposed
 * once for all rows of x in the tile (tile_loads.c), and no lanes have to be combined at the end of a row. */
#include "analysis/labels.h"

typedef struct Rows {
    const CiLabeller *l;
    const CiExpr *again, *last, *along; /* points that read the same rows; points in lanes; the row */
    int64_t bytes;                      /* of the rows of a lane that are transposed */
    bool is_other;
} Rows;

static void
look_at_load(Rows *r, const CiScalar *load, int64_t length)
{
    CiSym *sym = r->l->sym;
    bool is_same = !ci_expr_depends_on(load->index, r->last), is_near = ci_expr_has_stride(sym, load->index, r->last, 1),
         is_across = !load->nargs && ci_expr_has_stride(sym, load->index, r->along, 1) &&
                     ci_expr_has_stride(sym, load->index, r->again, 0);
    for (int k = 0; k < r->l->kernel->nstages; k++)
        for (int n = 0; n < r->l->kernel->stages[k].nnests; n++)
            is_across &= r->l->kernel->stages[k].nests[n]->target != load->buffer;
    if (is_same || is_near)
        return;
    r->is_other |= !is_across;
    r->bytes += length * (int64_t)ci_dtype_size(load->buffer->dtype);
}

static bool
folds_rows(Rows *r, const CiStage *stage)
{
    if (stage->naxes != 1 || stage->axes[0].extent->kind != CI_EXPR_const)
        return false;
    r->along = stage->axes[0].var;
    for (int n = 0; n < stage->nnests; n++) {
        const CiNest *nest = stage->nests[n];
        if (!ci_nest_is_fold(nest) || ci_nest_is_serial(nest) || ci_op_kind(nest->fold) != CI_OPKIND_reduce ||
            (nest->order.kind != CI_FOLD_pairwise && !ci_op_is_order_free(nest->fold, nest->target->dtype)))
            return false;
        for (const CiScalar *load = NULL; (load = ci_nest_next_load(nest, load));)
            look_at_load(r, load, stage->axes[0].extent->value);
    }
    return stage->nnests > 0 && !r->is_other && r->bytes > 0;
}

/* Fewer rows in a tile where there would be few units. */
static int
rows_of_unit(const CiLabeller *l, const CiExpr *again, const CiExpr *last, int lanes)
{
    int rows = (int)CI_CHOOSE(l, tiled_rows);
    bool is_known = again->high != CI_INFINITY && last->high != CI_INFINITY;
    while (is_known && rows > 8 && again->high / rows * (last->high / lanes) < CI_CHOOSE(l, least_units))
        rows /= 2;
    return rows;
}

bool
ci_label_lane_rows(CiLabeller *l)
{
    const CiKernel *kernel = l->kernel;
    if (!l->machine->tile_rows || !l->machine->vector_bytes || kernel->nouter < 2 || kernel->nstages == 0)
        return false;
    const CiKernelAxis *last = &kernel->outer[kernel->nouter - 1], *again = last - 1;
    Rows r = {.l = l, .again = again->var, .last = last->var};
    if (!folds_rows(&r, &kernel->stages[0]))
        return false;
    for (int k = 1; k < kernel->nstages; k++)
        if (kernel->stages[k].naxes)
            return false;
    int lanes = 1;
    int64_t most = last->extent->high < CI_CHOOSE(l, unit_columns) ? last->extent->high : CI_CHOOSE(l, unit_columns);
    while (2 * lanes * r.bytes <= CI_CHOOSE(l, tiled_bytes) && 2 * lanes <= most)
        lanes *= 2;
    if (lanes < l->machine->vector_bytes || again->extent->high < CI_CHOOSE(l, tiled_rows))
        return false;
    l->labels->has_lanes = true;
    l->labels->tiles[kernel->nouter - 1] = lanes;
    l->labels->tiles[kernel->nouter - 2] = rows_of_unit(l, again->extent, last->extent, lanes);
    return true;
}
