/* Forwards arrays that several nests fill in pieces into the nests that read them: a rolled, padded
 * or concatenated array, or a difference with other formulas at its ends, needs no memory.
 *
 *   buf0[0] = for { load in0[m - 1] }              buf1[i0] = for i0<m {
 *   buf0[i0 + 1] = for i0<m - 1 { load in0[i0] }     load in0[(i0 + m - 1) % m] + … }
 *   buf1[i0] = for i0<m { load buf0[i0] + … }
 *
 * A reader computes the value of the piece that its element is in. It computes all pieces that it may
 * read and chooses; positions outside of a piece are clamped to elements that exist. Two pieces that
 * are one formula, a period apart, are one piece whose position is taken modulo the period.
 *
 * Invariants: each element of the array is in one piece. What pieces read is not stored between them
 * and the reader. */
#include "loops/compose.h"

#include <string.h>

#define MAX_PIECES 16

typedef struct Piece {
    const CiNest *nest;
    CiBox box;
    int dims[CI_MAX_RANK];     /* that its axes go along */
    int64_t start[CI_MAX_RANK]; /* where its nest begins */
    int64_t from[CI_MAX_RANK];  /* first position of the period that its formula is valid for */
    bool is_periodic[CI_MAX_RANK];
} Piece;

typedef struct Forward {
    CiComposer c; /* c.to: the array */
    CiItems *items;
    int first, last; /* positions of the pieces' nests */
    Piece pieces[MAX_PIECES];
    int npieces;
    const CiExpr *position[CI_MAX_RANK]; /* symbols, to compare pieces */
} Forward;

static CiSym *
sym_of(const Forward *f)
{
    return f->c.r->sym;
}

static const CiExpr *
number(const Forward *f, int64_t value)
{
    return ci_expr_const(sym_of(f), value);
}

/* ---- the pieces ---- */

/* True if the body may be computed at points that do not use it: it makes no symbols and calls no
 * mathematical functions, which are slow. */
static bool
is_cheap(const CiBody *body)
{
    for (int k = 0; k < body->nops; k++)
        if (ci_op_is_function(body->ops[k].op) || body->ops[k].op == CI_OP_bind)
            return false;
    return true;
}

static bool
find_pieces(Forward *f)
{
    CiRegion region = {.kind = CI_ITEM_for};
    f->first = -1;
    for (int k = 0; k < f->items->count; k++) {
        const CiNest *nest = f->items->items[k].nest;
        if (!nest || nest->target != f->c.to)
            continue;
        if (!is_cheap(&nest->body))
            return false;
        f->first = f->first < 0 ? k : f->first;
        f->last = k;
        CI_PUSH(f->c.r->ctx, region.body.items, region.body.count, region.body.capacity,
                f->items->items[k]);
    }
    f->c.region = &region;
    if (region.body.count < 2 || region.body.count > MAX_PIECES ||
        !ci_compose_read_layout(&f->c) || !ci_compose_find_pieces(&f->c))
        return false;
    f->npieces = f->c.npieces;
    for (int k = 0; k < f->npieces; k++) {
        Piece *piece = &f->pieces[k];
        *piece = (Piece){.nest = f->c.pieces[k].nest, .box = f->c.pieces[k].box};
        memcpy(piece->dims, f->c.pieces[k].dims, sizeof piece->dims);
        memcpy(piece->start, piece->box.start, sizeof piece->start);
    }
    return true;
}

/* ---- bodies of pieces ---- */

static bool
is_thin(const Piece *piece, int dim)
{
    return piece->box.end[dim] - piece->box.start[dim] == 1;
}

/* A position of the array, within the piece if the box of the reads is larger. */
static const CiExpr *
position_in(const Forward *f, const Piece *piece, const CiExpr *at, int dim)
{
    CiSym *sym = sym_of(f);
    if (!piece->is_periodic[dim])
        return at;
    const CiExpr *length = number(f, f->c.sizes[dim]), *from = number(f, piece->from[dim]);
    at = ci_expr_add(sym, ci_expr_sub(sym, at, from), length);
    return ci_expr_add(sym, ci_expr_mod(sym, at, length), from);
}

static const CiExpr *
clamp(const Forward *f, const CiExpr *e, int64_t low, int64_t high, int64_t least, int64_t most)
{
    e = low < least ? ci_expr_max(sym_of(f), e, number(f, least)) : e;
    return high > most ? ci_expr_min(sym_of(f), e, number(f, most)) : e;
}

/* The reads that are under construction: their positions, and the box of these. */
typedef struct Reads {
    const Piece *piece;
    const CiExpr *at[CI_MAX_RANK]; /* in the piece, if it is periodic */
    CiBox box;
} Reads;

static void
begin_reads(const Forward *f, const Piece *piece, const CiExpr *const *at, const CiBox *box,
            Reads *reads)
{
    *reads = (Reads){.piece = piece, .box = *box};
    for (int d = 0; d < f->c.rank; d++) {
        reads->at[d] = position_in(f, piece, at[d], d);
        if (piece->is_periodic[d]) {
            reads->box.start[d] = piece->from[d];
            reads->box.end[d] = piece->from[d] + f->c.sizes[d];
        }
    }
}

/* An index of the piece's nest at the positions. */
static const CiExpr *
index_at(const Forward *f, const Reads *reads, const CiExpr *const *at, const CiExpr *index)
{
    const Piece *piece = reads->piece;
    const CiExpr *from[CI_MAX_RANK], *to[CI_MAX_RANK];
    for (int k = 0; k < piece->nest->naxes; k++) {
        int d = piece->dims[k];
        from[k] = piece->nest->axes[k].var;
        to[k] = ci_expr_sub(sym_of(f), at[d], number(f, piece->start[d]));
    }
    return ci_expr_substitute(sym_of(f), index, piece->nest->naxes, from, to);
}

/* Returns the same index with positions clamped to the piece's box: its loads exist. */
static const CiExpr *
index_within(const Forward *f, const Reads *reads, const CiExpr *index)
{
    const CiExpr *at[CI_MAX_RANK];
    for (int d = 0; d < f->c.rank; d++)
        at[d] = reads->piece->is_periodic[d]
                    ? reads->at[d]
                    : clamp(f, reads->at[d], reads->box.start[d], reads->box.end[d] - 1,
                            reads->piece->box.start[d], reads->piece->box.end[d] - 1);
    return index_at(f, reads, at, index);
}

/* A load at the positions, clamped to the loaded array itself: unlike positions clamped to the piece,
 * these are the same for several pieces, and contiguous. NULL: the index is no box of that array. */
static const CiExpr *
index_within_source(const Forward *f, const Reads *reads, const CiScalar *load)
{
    CiSym *sym = sym_of(f);
    const Piece *piece = reads->piece;
    CiComposer source = {.r = f->c.r, .to = load->buffer};
    const CiExpr *rest = load->index, *coef, *at[CI_MAX_RANK], *index = number(f, 0);
    int64_t low[CI_MAX_RANK] = {0}, high[CI_MAX_RANK] = {0};
    CiBox start;
    if (load->buffer->kind == CI_BUFFER_scalar || !ci_compose_read_layout(&source))
        return NULL;
    for (int d = 0; d < source.rank; d++)
        at[d] = NULL;
    for (int k = 0; k < piece->nest->naxes; k++) {
        int from = piece->dims[k], d;
        if (!ci_expr_depends_on(rest, piece->nest->axes[k].var))
            continue;
        if (!ci_expr_split_linear(sym, rest, piece->nest->axes[k].var, &coef, &rest) ||
            (d = ci_compose_find_dim(&source, coef)) < 0 || at[d])
            return NULL;
        at[d] = ci_expr_sub(sym, reads->at[from], number(f, piece->start[from]));
        low[d] = reads->box.start[from] - piece->start[from];
        high[d] = reads->box.end[from] - 1 - piece->start[from];
    }
    if (!ci_compose_find_start(&source, rest, &start))
        return NULL;
    /* A piece with one position along a dimension may move with it: what it loads is then what others
     * load. */
    for (int d = 0; d < f->c.rank && f->c.rank == source.rank; d++) {
        if (at[d] || !is_thin(piece, d))
            continue;
        at[d] = ci_expr_sub(sym, reads->at[d], number(f, piece->start[d]));
        low[d] = reads->box.start[d] - piece->start[d];
        high[d] = reads->box.end[d] - 1 - piece->start[d];
    }
    for (int d = 0; d < source.rank; d++) {
        const CiExpr *first = number(f, start.start[d]),
                     *place = at[d] ? ci_expr_add(sym, at[d], first) : first;
        place = clamp(f, place, low[d] + start.start[d], high[d] + start.start[d], 0,
                      source.sizes[d] - 1);
        index = ci_expr_add(sym, index, ci_expr_mul(sym, place, number(f, source.strides[d])));
    }
    return index;
}

/* Appends what the piece computes; returns the number of its result. */
static int
add_piece(const Forward *f, CiBody *into, const Reads *reads)
{
    const CiBody *body = &reads->piece->nest->body;
    int *made = CI_NEW_ARRAY(f->c.r->ctx, int, body->nops + 1);
    for (int k = 0; k < body->nops; k++) {
        CiScalar op = body->ops[k];
        if (op.op == CI_OP_load) {
            const CiExpr *index = index_within_source(f, reads, &op);
            op.index = index ? index : index_within(f, reads, op.index);
        } else if (op.index) {
            op.index = index_at(f, reads, reads->at, op.index);
        }
        made[k] = ci_compose_add(&f->c, into, op, made);
    }
    return made[body->result];
}

/* ---- pieces that are one ---- */

/* Appends the body as it is, at positions. */
static int
add_plain(const Forward *f, CiBody *into, const Piece *piece, const CiExpr *const *at)
{
    const CiBody *body = &piece->nest->body;
    const Reads reads = {.piece = piece};
    int *made = CI_NEW_ARRAY(f->c.r->ctx, int, body->nops + 1);
    for (int k = 0; k < body->nops; k++) {
        CiScalar op = body->ops[k];
        op.index = op.index ? index_at(f, &reads, at, op.index) : NULL;
        made[k] = ci_compose_add(&f->c, into, op, made);
    }
    return made[body->result];
}

/* True if the first piece is the second one's formula, one period later. Where a piece has one
 * position, it is compared there. */
static bool
is_same_later(const Forward *f, const Piece *first, const Piece *second, int dim)
{
    const CiExpr *at[CI_MAX_RANK], *later[CI_MAX_RANK];
    CiBody both = {0};
    for (int d = 0; d < f->c.rank; d++)
        at[d] = later[d] =
            is_thin(first, d) ? number(f, first->box.start[d]) : f->position[d];
    if (is_thin(second, dim))
        at[dim] = number(f, second->box.start[dim] - f->c.sizes[dim]);
    later[dim] = ci_expr_add(sym_of(f), at[dim], number(f, f->c.sizes[dim]));
    return add_plain(f, &both, first, at) == add_plain(f, &both, second, later);
}

/* Two pieces that are a whole period of the array along a dimension, and alike elsewhere. */
static bool
are_period(const Forward *f, const Piece *first, const Piece *second, int dim)
{
    for (int d = 0; d < f->c.rank; d++) {
        bool is = d == dim ? first->box.start[d] == 0 && first->box.end[d] == second->box.start[d] &&
                                 second->box.end[d] == f->c.sizes[d]
                           : first->box.start[d] == second->box.start[d] &&
                                 first->box.end[d] == second->box.end[d];
        if (!is || first->is_periodic[d] || second->is_periodic[d])
            return false;
    }
    return is_same_later(f, first, second, dim);
}

/* One piece for both, by the formula of the one that has several positions. */
static Piece
join(const Forward *f, const Piece *first, const Piece *second, int dim)
{
    int64_t length = f->c.sizes[dim], border = second->box.start[dim];
    Piece joined = is_thin(second, dim) ? *first : *second;
    joined.from[dim] = is_thin(second, dim) ? border - length : border;
    joined.is_periodic[dim] = true;
    joined.box.start[dim] = 0;
    joined.box.end[dim] = length;
    return joined;
}

static bool
join_one(Forward *f)
{
    for (int a = 0; a < f->npieces; a++) {
        for (int b = 0; b < f->npieces; b++) {
            for (int d = 0; d < f->c.rank && a != b; d++) {
                if (!are_period(f, &f->pieces[a], &f->pieces[b], d))
                    continue;
                f->pieces[b] = join(f, &f->pieces[a], &f->pieces[b], d);
                f->pieces[a] = f->pieces[--f->npieces];
                return true;
            }
        }
    }
    return false;
}

static void
join_periods(Forward *f)
{
    for (int d = 0; d < f->c.rank; d++)
        f->position[d] = ci_new_axis(f->c.r->loops, number(f, f->c.sizes[d]));
    while (join_one(f))
        ;
}

/* ---- readers ---- */

/* The positions that a nest reads, and their box. */
static bool
find_positions(const Forward *f, const CiNest *nest, const CiExpr *index, const CiExpr **at,
               CiBox *box)
{
    int dims[CI_MAX_RANK];
    for (int d = 0; d < f->c.rank; d++)
        at[d] = number(f, 0);
    if (!ci_compose_find_box(&f->c, nest, index, box, dims))
        return false;
    for (int k = 0; k < nest->naxes; k++)
        if (dims[k] >= 0)
            at[dims[k]] = nest->axes[k].var;
    for (int d = 0; d < f->c.rank; d++)
        at[d] = ci_expr_add(sym_of(f), at[d], number(f, box->start[d]));
    return true;
}

static int
add_op(const Forward *f, CiBody *into, CiOp op, CiDtype dtype, int nargs, const int *args)
{
    CiScalar made = {.op = op, .dtype = dtype, .nargs = nargs};
    memcpy(made.args, args, (size_t)nargs * sizeof *args);
    return ci_body_add(f->c.r->ctx, into, made);
}

/* `at` < limit, or not; combined with an earlier condition, if any (-1). */
static int
add_test(const Forward *f, CiBody *into, const CiExpr *at, int64_t limit, bool is_below, int earlier)
{
    CiScalar position = {.op = CI_OP_index, .dtype = CI_DTYPE_i64, .index = at},
             bound = {.op = CI_OP_const,
                      .dtype = CI_DTYPE_i64,
                      .value = ci_const_int(CI_DTYPE_i64, limit)};
    int args[2];
    args[0] = ci_body_add(f->c.r->ctx, into, position);
    args[1] = ci_body_add(f->c.r->ctx, into, bound);
    int test = add_op(f, into, is_below ? CI_OP_less : CI_OP_greater_equal, CI_DTYPE_bool, 2, args);
    const int both[2] = {earlier, test};
    return earlier < 0 ? test : add_op(f, into, CI_OP_logical_and, CI_DTYPE_bool, 2, both);
}

/* Tests that the positions are in the piece; -1: all of them are. */
static int
add_tests(const Forward *f, CiBody *into, const Piece *piece, const CiExpr *const *at,
          const CiBox *box)
{
    int test = -1;
    for (int d = 0; d < f->c.rank; d++) {
        if (piece->box.start[d] > box->start[d])
            test = add_test(f, into, at[d], piece->box.start[d], false, test);
        if (piece->box.end[d] < box->end[d])
            test = add_test(f, into, at[d], piece->box.end[d], true, test);
    }
    return test;
}

/* The value of the array at positions: of the one piece there that they are in. */
static int
add_value(const Forward *f, CiBody *into, const CiExpr *const *at, const CiBox *box)
{
    int value = -1;
    for (int k = 0; k < f->npieces; k++) {
        const Piece *piece = &f->pieces[k];
        Reads reads;
        if (!ci_compose_overlap(&f->c, &piece->box, box))
            continue;
        begin_reads(f, piece, at, box, &reads);
        int made = add_piece(f, into, &reads);
        int test = value < 0 ? -1 : add_tests(f, into, piece, at, box);
        const int args[3] = {test, made, value};
        value = test < 0 ? made : add_op(f, into, CI_OP_where, f->c.to->dtype, 3, args);
    }
    return value;
}

static bool
reads_often(const Forward *f, const CiNest *reader)
{
    int64_t elements = 1;
    for (int d = 0; d < f->c.rank; d++)
        elements *= f->c.sizes[d];
    return ci_amount_likely(ci_iterations_of_nest(reader)) >
           CI_CHOOSE(f->c.r, forwarded_reads) * elements;
}

/* The body of a reader without loads of the array; false if it would be too large. */
static bool
forward_into(const Forward *f, const CiNest *reader, CiBody *into)
{
    const CiBody *body = &reader->body;
    int *made = CI_NEW_ARRAY(f->c.r->ctx, int, body->nops + 1);
    for (int k = 0; k < body->nops; k++) {
        const CiExpr *at[CI_MAX_RANK];
        CiBox box;
        const CiScalar *op = &body->ops[k];
        bool is_read = op->op == CI_OP_load && op->buffer == f->c.to;
        if (is_read && !find_positions(f, reader, op->index, at, &box))
            return false;
        made[k] = is_read ? add_value(f, into, at, &box)
                          : ci_compose_add(&f->c, into, *op, made);
    }
    into->result = made[body->result];
    return into->nops <= CI_CHOOSE(f->c.r, forwarded_ops);
}

static bool
is_source(const Forward *f, const CiBuffer *buffer)
{
    for (int k = 0; k < f->npieces; k++)
        if (ci_nest_loads(f->pieces[k].nest, buffer))
            return true;
    return false;
}

/* True if the item stores to what pieces read. */
static bool
changes_sources(const Forward *f, const CiItem *item)
{
    const CiBuffer *target = item->nest ? item->nest->target : item->ext ? item->ext->result : NULL;
    return item->region || (target && is_source(f, target)) ||
           (item->nest && ci_nest_count(item->nest) && is_source(f, ci_nest_count(item->nest)));
}

/* A reader that stores to what pieces read stores to a new array, which is copied there. It is the last
 * statement of a loop, so that two arrays can be exchanged instead. */
static bool
is_refreshed(const Forward *f, int at)
{
    const CiNest *nest = f->items->items[at].nest;
    const CiLoopScope *scope = f->c.r->scope;
    return scope && scope->region->kind == CI_ITEM_for && at == f->items->count - 1 &&
           !nest->is_combined && nest->fold == CI_OP_none && !ci_nest_is_indirect(nest);
}

/* The number of the last reader, if all readers can do without the array; else -1. */
static int
find_last_reader(const Forward *f)
{
    int last = -1, *nreaders, *nwriters, found = 0, readers = 0;
    ci_count_all_uses(f->c.r->loops, &nreaders, &nwriters);
    bool is_changed = false;
    for (int k = f->first; k < f->items->count; k++) {
        const CiItem *item = &f->items->items[k];
        const CiNest *nest = item->nest;
        if (nest && nest->target == f->c.to) {
            found++;
            is_changed = false;
            continue;
        }
        for (const CiScalar *load = NULL; (load = ci_nest_next_load(nest, load));)
            readers += load->buffer == f->c.to;
        if (nest && ci_nest_loads(nest, f->c.to)) {
            if (is_changed || k < f->last || (changes_sources(f, item) && !is_refreshed(f, k)))
                return -1;
            last = k;
        }
        is_changed = is_changed || changes_sources(f, item);
    }
    bool is_all = found == nwriters[f->c.to->id] && readers == nreaders[f->c.to->id];
    return is_all ? last : -1;
}

/* ---- rewriting ---- */

static void
refresh(const Forward *f, int at)
{
    const CiLoopRewriter *r = f->c.r;
    CiNest *nest = f->items->items[at].nest;
    CiBuffer *array = nest->target,
             *made = ci_loops_add_buffer(r->loops, CI_BUFFER_temp, array->dtype, array->rank,
                                         array->sizes, array->strides);
    CiNest *copy = ci_add_copy(r, f->items, nest, array, nest->store, made, nest->store);
    copy->axes = nest->axes;
    copy->naxes = copy->npoint = nest->naxes;
    nest->target = made;
}

static bool
forward(Forward *f)
{
    int last = find_pieces(f) ? find_last_reader(f) : -1, kept = 0;
    if (last < 0)
        return false;
    join_periods(f);
    CiBody *bodies = CI_NEW_ARRAY(f->c.r->ctx, CiBody, f->items->count + 1);
    for (int k = f->first; k <= last; k++) {
        const CiNest *nest = f->items->items[k].nest;
        if (nest && ci_nest_loads(nest, f->c.to) &&
            (reads_often(f, nest) || !forward_into(f, nest, &bodies[k])))
            return false;
    }
    bool is_changed = changes_sources(f, &f->items->items[last]);
    for (int k = f->first; k <= last; k++)
        if (bodies[k].nops)
            f->items->items[k].nest->body = bodies[k];
    if (is_changed)
        refresh(f, last);
    for (int k = 0; k < f->items->count; k++)
        if (!f->items->items[k].nest || f->items->items[k].nest->target != f->c.to)
            f->items->items[kept++] = f->items->items[k];
    f->items->count = kept;
    return true;
}

void
ci_loops_forward_pieces(const CiLoopRewriter *r, CiItems *items)
{
    for (int k = 0; k < items->count; k++) {
        const CiNest *nest = items->items[k].nest;
        if (!nest || nest->target->kind != CI_BUFFER_temp || nest->target->is_result ||
            nest->target->is_swapped)
            continue;
        Forward f = {.c = {.r = r, .to = nest->target}, .items = items};
        if (forward(&f))
            k = -1;
    }
}
