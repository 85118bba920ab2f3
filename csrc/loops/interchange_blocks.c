/* Loop interchange (Allen, Kennedy, Optimizing Compilers for Modern Architectures, 2001) for a loop
 * around rows with strided elements, if the elements of consecutive iterations are contiguous:
 *
 *   for t0<m { y[m*i0 + t0 + 1] = for i0<n { … y[m*i0 + t0] … } }
 *
 * reads memory in strides. If no element depends on another position of the row, each position can
 * run through all iterations before the next one. A block of several positions uses whole cache
 * lines, and they are still independent of each other within an iteration:
 *
 *   for t1<ceil(n/8) { for t0<m { y[…] = for i0<min(8, n - 8*t1) { … } } }
 *
 * The pass also applies if iterations are strided like positions and a row is so long that the
 * cache lines of one iteration are evicted before the next.
 *
 * Of several axes, the one with the fewest strided accesses is cut into blocks, and the others
 * become loops around them. Blocks are independent too, which ci_why_not_parallel proves. */
#include "loops/loops.h"

/* The axes that all nests of a loop have. */
typedef struct Rows {
    const CiAxis *axes;
    int count, cut; /* axes; the one cut into blocks */
} Rows;

static bool
is_row(const CiNest *nest)
{
    return nest->naxes > 0 && nest->npoint == nest->naxes && nest->fold == CI_OP_none &&
           !ci_nest_is_indirect(nest);
}

static bool
has_axes(const CiNest *nest, const Rows *rows)
{
    bool is_same = nest->naxes == rows->count;
    for (int k = 0; is_same && k < rows->count; k++)
        is_same = nest->axes[k].var == rows->axes[k].var;
    return is_same;
}

/* Number of accesses that are strided along the variable. */
static int
count_far(const CiLoopRewriter *r, const CiNest *nest, const CiExpr *var)
{
    int count = 0;
    for (CiNestAccess at = {0}; ci_nest_next_access(nest, &at);)
        count += !ci_is_near_along(r->sym, at.index, var);
    return count;
}

/* True if every nest of the loop is a row over the same axes, which do not depend on the
 * iteration. */
static bool
find_axes(const CiItem *loop, Rows *rows)
{
    const CiRegion *region = loop->region;
    if (loop->kind != CI_ITEM_for || region->nswaps || region->body.count == 0)
        return false;
    for (int k = 0; k < region->body.count; k++) {
        const CiNest *nest = region->body.items[k].nest;
        if (!nest || !is_row(nest))
            return false;
        if (k == 0)
            *rows = (Rows){nest->axes, nest->naxes, 0};
        if (!has_axes(nest, rows))
            return false;
    }
    for (int k = 0; k < rows->count; k++) {
        if (ci_expr_depends_on(rows->axes[k].extent, region->var))
            return false;
    }
    return true;
}

static int
count_all_far(const CiLoopRewriter *r, const CiItems *items, const CiExpr *var)
{
    int count = 0;
    for (int k = 0; k < items->count; k++)
        count += count_far(r, items->items[k].nest, var);
    return count;
}

/* True if the cache lines of one iteration no longer fit in the nearest cache when the next one
 * starts. */
static bool
is_long(const CiLoopRewriter *r, const CiExpr *extent, int nfar)
{
    return extent->high > CI_CHOOSE(r, l1_lines) / nfar;
}

/* True if the loop's variable has fewer strided accesses than the best axis, or equally many and
 * the rows are long, and if the axis is longer than a block. Sets the axis to cut. */
static bool
lies_across(const CiLoopRewriter *r, const CiRegion *region, Rows *rows)
{
    int least = 0, iterations = count_all_far(r, &region->body, region->var);
    for (int k = 0; k < rows->count; k++) {
        int far = count_all_far(r, &region->body, rows->axes[k].var);
        if (k == 0 || far <= least) {
            least = far;
            rows->cut = k;
        }
    }
    const CiExpr *extent = rows->axes[rows->cut].extent;
    bool is_better = least > iterations || (least && least == iterations && is_long(r, extent, least));
    return is_better && extent->high > CI_CHOOSE(r, block_rows);
}

/* false: the loop stays as it is. */
static bool
find_rows(const CiLoopRewriter *r, const CiItem *loop, Rows *rows)
{
    const CiRegion *region = loop->region;
    if (!find_axes(loop, rows) || !lies_across(r, region, rows))
        return false;
    CiPoints positions = {.sym = r->sym, .scope = r->scope};
    for (int k = 0; k < rows->count; k++)
        ci_add_points(&positions, rows->axes[k].var, rows->axes[k].extent);
    return ci_stores_are_of_points(r->ctx, &positions, region);
}

/* Outer loops first: a loop inside may become one around rows, too. */
void
ci_loops_interchange_blocks(const CiLoopRewriter *r, CiItem *loop)
{
    Rows rows = {0};
    if (!find_rows(r, loop, &rows))
        return;
    CiSym *sym = r->sym;
    const CiAxis cut = rows.axes[rows.cut];
    const CiExpr *size = ci_expr_const(sym, CI_CHOOSE(r, block_rows)), *nblocks;
    const CiExpr **from = CI_NEW_ARRAY(r->ctx, const CiExpr *, rows.count),
                 **extents = CI_NEW_ARRAY(r->ctx, const CiExpr *, rows.count),
                 **vars = CI_NEW_ARRAY(r->ctx, const CiExpr *, rows.count),
                 **to = CI_NEW_ARRAY(r->ctx, const CiExpr *, rows.count);
    nblocks = ci_expr_ceildiv(sym, cut.extent, size);
    for (int k = 0; k < rows.count; k++) {
        from[k] = rows.axes[k].var;
        extents[k] = k == rows.cut ? nblocks : rows.axes[k].extent;
        to[k] = vars[k] = ci_new_loop_variable(r->ctx, sym, extents[k]);
    }
    const CiExpr *first = ci_expr_mul(sym, vars[rows.cut], size),
                 *left = ci_expr_min(sym, size, ci_expr_sub(sym, cut.extent, first));
    const CiAxis axis = {CI_AXIS_point, ci_expr_index(sym, cut.var->name, left), left};
    to[rows.cut] = ci_expr_add(sym, first, axis.var);
    CiRegion *inner = loop->region;
    for (int k = 0; k < inner->body.count; k++)
        ci_nest_set_row(r, inner->body.items[k].nest, rows.count, from, to, axis);
    CiItems items = {0};
    CI_PUSH(r->ctx, items.items, items.count, items.capacity, *loop);
    items = ci_put_in_loop(r->ctx, items, vars[rows.cut], nblocks);
    for (int k = rows.count - 1; k >= 0; k--)
        if (k != rows.cut)
            items = ci_put_in_loop(r->ctx, items, vars[k], extents[k]);
    *loop = items.items[0];
}
