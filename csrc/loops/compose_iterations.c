/* Builds the nests of two fused iterations, for the temporal blocking pass. Each nest fills a box
 * of the array, storing every element once.
 *
 * A value that a body reads from the previous iteration is recomputed in place, at the distance at
 * which it is read. A box whose neighbours belong to several boxes is cut at their boundary, so
 * that it is known for each element which body computed the values it reads. Values are numbered,
 * because neighbours of neighbours often coincide. */
#include "loops/compose.h"

#include <string.h>

#define MAX_BOXES 64 /* of two iterations */

/* ---- boxes ---- */

bool
ci_compose_read_layout(CiComposer *c)
{
    const CiBuffer *to = c->to;
    c->rank = to->rank;
    for (int d = 0; d < c->rank; d++) {
        if (!ci_expr_is_const(to->sizes[d], &c->sizes[d]) ||
            !ci_expr_is_const(to->strides[d], &c->strides[d]) || c->sizes[d] < 2 ||
            c->strides[d] < 1)
            return false;
        int k = d;
        for (; k > 0 && c->strides[c->nearest_last[k - 1]] < c->strides[d]; k--)
            c->nearest_last[k] = c->nearest_last[k - 1];
        c->nearest_last[k] = d;
    }
    return c->rank > 0;
}

int
ci_compose_find_dim(const CiComposer *c, const CiExpr *coef)
{
    for (int d = 0; d < c->rank; d++)
        if (ci_expr_equals_const(coef, c->strides[d]))
            return d;
    return -1;
}

bool
ci_compose_find_start(const CiComposer *c, const CiExpr *offset, CiBox *box)
{
    int64_t left;
    if (!ci_expr_is_const(offset, &left) || left < 0)
        return false;
    for (int k = 0; k < c->rank; k++) {
        int d = c->nearest_last[k];
        box->start[d] = left / c->strides[d];
        box->end[d] = box->start[d] + 1;
        left %= c->strides[d];
    }
    return left == 0;
}

bool
ci_compose_find_box(const CiComposer *c, const CiNest *nest, const CiExpr *index, CiBox *box, int *dims)
{
    const CiExpr *rest = index, *coef;
    int64_t extents[CI_MAX_RANK] = {0};
    for (int k = 0; k < nest->naxes; k++) {
        const CiAxis *axis = &nest->axes[k];
        int d = dims[k] = -1;
        if (!ci_expr_depends_on(rest, axis->var))
            continue;
        if (!ci_expr_split_linear(c->r->sym, rest, axis->var, &coef, &rest) ||
            (d = ci_compose_find_dim(c, coef)) < 0 || extents[d] ||
            !ci_expr_is_const(axis->extent, &extents[d]) || extents[d] < 1)
            return false;
        dims[k] = d;
    }
    if (!ci_compose_find_start(c, rest, box))
        return false;
    for (int d = 0; d < c->rank; d++) {
        box->end[d] += extents[d] ? extents[d] - 1 : 0;
        if (box->end[d] > c->sizes[d])
            return false;
    }
    return true;
}

static bool
find_piece(const CiComposer *c, const CiNest *nest, CiPiece *piece)
{
    if (nest->target != c->to || nest->fold != CI_OP_none || nest->npoint != nest->naxes ||
        nest->naxes > c->rank || nest->is_combined || ci_nest_is_indirect(nest))
        return false;
    *piece = (CiPiece){.nest = nest};
    if (!ci_compose_find_box(c, nest, nest->store, &piece->box, piece->dims))
        return false;
    for (int k = 0; k < nest->naxes; k++)
        if (piece->dims[k] < 0)
            return false;
    return true;
}

static bool
is_within(const CiComposer *c, const CiBox *inner, const CiBox *outer)
{
    for (int d = 0; d < c->rank; d++)
        if (inner->start[d] < outer->start[d] || inner->end[d] > outer->end[d])
            return false;
    return true;
}

bool
ci_compose_overlap(const CiComposer *c, const CiBox *a, const CiBox *b)
{
    for (int d = 0; d < c->rank; d++)
        if (a->end[d] <= b->start[d] || b->end[d] <= a->start[d])
            return false;
    return true;
}

static int64_t
count_elements(const CiComposer *c, const CiBox *box)
{
    int64_t count = 1;
    for (int d = 0; d < c->rank; d++)
        count *= box->end[d] - box->start[d];
    return count;
}

bool
ci_compose_find_pieces(CiComposer *c)
{
    CiBox whole = {0};
    int64_t count = 0;
    c->pieces = CI_NEW_ARRAY(c->r->ctx, CiPiece, c->region->body.count + 1);
    for (int k = 0; k < c->region->body.count; k++) {
        const CiNest *nest = c->region->body.items[k].nest;
        if (!nest || !find_piece(c, nest, &c->pieces[k]))
            return false;
        for (int n = 0; n < k; n++)
            if (ci_compose_overlap(c, &c->pieces[k].box, &c->pieces[n].box))
                return false;
        count += count_elements(c, &c->pieces[k].box);
        c->npieces = k + 1;
    }
    memcpy(whole.end, c->sizes, sizeof whole.end);
    return count == count_elements(c, &whole);
}

/* ---- the reads of an iteration ---- */

static bool
is_near(const CiComposer *c, const CiPiece *piece, const CiScalar *load, int64_t *distance)
{
    int64_t left, most = CI_CHOOSE(c->r, composed_distance);
    if (!ci_expr_is_const(ci_expr_sub(c->r->sym, load->index, piece->nest->store), &left))
        return false;
    for (int k = 0; k < c->rank; k++) {
        int d = c->nearest_last[k];
        int64_t half = c->strides[d] / 2, above = left + (left >= 0 ? half : -half);
        distance[d] = above / c->strides[d];
        left -= distance[d] * c->strides[d];
        if (distance[d] > most || distance[d] < -most ||
            piece->box.start[d] + distance[d] < 0 || piece->box.end[d] + distance[d] > c->sizes[d])
            return false;
    }
    return left == 0;
}

static CiBox
move_box(const CiComposer *c, const CiBox *box, const int64_t *distance)
{
    CiBox moved;
    for (int d = 0; d < c->rank; d++) {
        moved.start[d] = box->start[d] + distance[d];
        moved.end[d] = box->end[d] + distance[d];
    }
    return moved;
}

static bool
reads_only_neighbours(const CiComposer *c)
{
    int64_t distance[CI_MAX_RANK];
    for (int k = 0; k < c->npieces; k++) {
        for (const CiScalar *load = NULL; (load = ci_nest_next_load(c->pieces[k].nest, load));)
            if (load->buffer == c->to ||
                (load->buffer == c->from && !is_near(c, &c->pieces[k], load, distance)))
                return false;
    }
    return true;
}

/* True if a body calls mathematical functions: recomputing them costs more than the memory
 * traffic. */
static bool
has_functions(const CiComposer *c)
{
    for (int k = 0; k < c->npieces; k++) {
        const CiBody *body = &c->pieces[k].nest->body;
        for (int n = 0; n < body->nops; n++)
            if (ci_op_is_function(body->ops[n].op))
                return true;
    }
    return false;
}

/* ---- bodies ---- */

/* The body of a piece at a position of the array, in a given iteration. */
static CiBody
body_at(const CiComposer *c, const CiPiece *piece, const CiExpr *const *position, const CiExpr *iteration)
{
    CiSym *sym = c->r->sym;
    const CiExpr *from[CI_MAX_RANK + 1], *to[CI_MAX_RANK + 1];
    int n = piece->nest->naxes;
    for (int k = 0; k < n; k++) {
        int d = piece->dims[k];
        from[k] = piece->nest->axes[k].var;
        to[k] = ci_expr_sub(sym, position[d], ci_expr_const(sym, piece->box.start[d]));
    }
    from[n] = c->region->var;
    to[n] = iteration;
    return ci_body_substitute(c->r->ctx, sym, &piece->nest->body, n + 1, from, to);
}

int
ci_compose_add(const CiComposer *c, CiBody *into, CiScalar op, const int *made)
{
    for (int n = 0; n < op.nargs; n++)
        op.args[n] = made[op.args[n]];
    return ci_body_add(c->r->ctx, into, op);
}

/* Appends the operations of a body to another one; `made` maps their old numbers to the new
 * ones. */
static void
append(const CiComposer *c, CiBody *into, const CiBody *body, int *made, int from, int to)
{
    for (int k = from; k < to; k++) {
        CiScalar op = body->ops[k];
        if (op.op == CI_OP_load && op.buffer == c->from)
            op.buffer = c->source;
        made[k] = ci_compose_add(c, into, op, made);
    }
}

/* Appends the value that the first of two iterations computes at a position. */
static int
add_made(const CiComposer *c, CiBody *into, const CiPiece *maker, const CiExpr *const *position)
{
    CiBody body = body_at(c, maker, position, c->first);
    int *made = CI_NEW_ARRAY(c->r->ctx, int, body.nops + 1);
    append(c, into, &body, made, 0, body.nops);
    return made[body.result];
}

static const CiPiece *
maker_of(const CiComposer *c, const CiBox *box)
{
    for (int k = 0; k < c->npieces; k++)
        if (is_within(c, box, &c->pieces[k].box))
            return &c->pieces[k];
    return NULL;
}

static CiBody
compose_body(const CiComposer *c, const CiPiece *reader, const CiBox *box, const CiExpr *const *position)
{
    CiBody body = body_at(c, reader, position, c->second), into = {0};
    int *made = CI_NEW_ARRAY(c->r->ctx, int, body.nops + 1);
    for (int k = 0; k < body.nops; k++) {
        const CiExpr *there[CI_MAX_RANK];
        int64_t distance[CI_MAX_RANK];
        const CiScalar *op = &reader->nest->body.ops[k];
        if (op->op != CI_OP_load || op->buffer != c->from) {
            append(c, &into, &body, made, k, k + 1);
            continue;
        }
        (void)is_near(c, reader, op, distance);
        CiBox read = move_box(c, box, distance);
        for (int d = 0; d < c->rank; d++)
            there[d] = ci_expr_add(c->r->sym, position[d], ci_expr_const(c->r->sym, distance[d]));
        made[k] = add_made(c, &into, maker_of(c, &read), there);
    }
    into.result = made[body.result];
    return into;
}

/* ---- nests ---- */

static void
put(CiComposer *c, CiItems *items, CiItem item)
{
    CI_PUSH(c->r->ctx, items->items, items->count, items->capacity, item);
}

static bool
add_nest(CiComposer *c, const CiPiece *reader, const CiBox *box)
{
    CiSym *sym = c->r->sym;
    const CiExpr *position[CI_MAX_RANK], *store = ci_expr_const(sym, 0);
    CiNest nest = {.fold = CI_OP_none,
                   .target = c->target,
                   .axes = CI_NEW_ARRAY(c->r->ctx, CiAxis, c->rank + 1),
                   .locs = reader->nest->locs,
                   .nlocs = reader->nest->nlocs,
                   .caplocs = reader->nest->nlocs};
    for (int d = 0; d < c->rank; d++) {
        const CiExpr *extent = ci_expr_const(sym, box->end[d] - box->start[d]);
        position[d] = ci_expr_const(sym, box->start[d]);
        if (!ci_expr_equals_const(extent, 1)) {
            const CiExpr *var = ci_expr_index(sym, ci_format(c->r->ctx, "i%d", nest.naxes), extent);
            nest.axes[nest.naxes++] = (CiAxis){CI_AXIS_point, var, extent};
            position[d] = ci_expr_add(sym, position[d], var);
        }
        store = ci_expr_add(sym, store,
                            ci_expr_mul(sym, position[d], ci_expr_const(sym, c->strides[d])));
    }
    nest.npoint = nest.naxes;
    nest.store = store;
    nest.body = compose_body(c, reader, box, position);
    if (nest.body.nops > CI_CHOOSE(c->r, composed_ops) || c->made.count == MAX_BOXES)
        return false;
    CiNest *kept = CI_NEW(c->r->ctx, CiNest);
    *kept = nest;
    put(c, &c->made, (CiItem){.kind = CI_ITEM_nest, .nest = kept});
    return true;
}

/* Finds the boundary at which a box of reads leaves the box of a piece: the dimension and the
 * position. */
static bool
find_cut(const CiComposer *c, const CiBox *read, int *dim, int64_t *at)
{
    for (int k = 0; k < c->npieces; k++) {
        const CiBox *piece = &c->pieces[k].box;
        if (!ci_compose_overlap(c, read, piece))
            continue;
        for (int d = 0; d < c->rank; d++) {
            bool before = read->start[d] < piece->start[d];
            *dim = d;
            *at = before ? piece->start[d] : piece->end[d];
            if (before || read->end[d] > piece->end[d])
                return true;
        }
    }
    return false;
}

static bool
compose_box(CiComposer *c, const CiPiece *reader, const CiBox *box)
{
    int64_t distance[CI_MAX_RANK], at;
    int dim;
    for (const CiScalar *load = NULL; (load = ci_nest_next_load(reader->nest, load));) {
        if (load->buffer != c->from)
            continue;
        (void)is_near(c, reader, load, distance);
        CiBox read = move_box(c, box, distance);
        if (find_cut(c, &read, &dim, &at)) {
            CiBox before = *box, behind = *box;
            before.end[dim] = behind.start[dim] = at - distance[dim];
            return compose_box(c, reader, &before) && compose_box(c, reader, &behind);
        }
    }
    return add_nest(c, reader, box);
}

bool
ci_compose_begin(CiComposer *c)
{
    return ci_compose_read_layout(c) && ci_compose_find_pieces(c) && reads_only_neighbours(c) && !has_functions(c);
}

bool
ci_compose_pair(CiComposer *c, const CiExpr *iteration, CiBuffer *source, CiBuffer *target)
{
    c->first = iteration;
    c->second = ci_expr_add(c->r->sym, iteration, ci_expr_const(c->r->sym, 1));
    c->source = source;
    c->target = target;
    c->made = (CiItems){0};
    for (int k = 0; k < c->npieces; k++)
        if (!compose_box(c, &c->pieces[k], &c->pieces[k].box))
            return false;
    return true;
}

void
ci_compose_single(CiComposer *c, const CiExpr *iteration, CiBuffer *target)
{
    c->made = (CiItems){0};
    for (int k = 0; k < c->npieces; k++) {
        CiNest *nest = CI_NEW(c->r->ctx, CiNest);
        *nest = *c->pieces[k].nest;
        nest->target = target;
        nest->body =
            ci_body_substitute(c->r->ctx, c->r->sym, &nest->body, 1, &c->region->var, &iteration);
        put(c, &c->made, (CiItem){.kind = CI_ITEM_nest, .nest = nest});
    }
}

bool
ci_compose_fills(const CiComposer *c, const CiNest *nest)
{
    CiBox whole = {0};
    CiPiece piece;
    CiNest there = *nest;
    there.target = c->to;
    memcpy(whole.end, c->sizes, sizeof whole.end);
    return find_piece(c, &there, &piece) && is_within(c, &whole, &piece.box);
}
