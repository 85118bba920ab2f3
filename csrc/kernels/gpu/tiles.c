/* Tiles of factors in shared memory: which elements a thread brings, and where they go.
 *
 * A factor that is an element of memory is copied asynchronously, in chunks of 8. Other ones are
 * computed, in chunks too. Elements beyond the end are 0. */
#include "kernels/gpu/tiles.h"

enum { CHUNK = CI_TILE_CHUNK, LINE = CI_TILE_LINE };

#define BUILDER CiBuild
#define SYM(m) (m)->sym
#include "codegen/arithmetic.def"

const CiExpr *
ci_tile_part(CiBuild *b, const CiExpr *e, int64_t count, bool is_rest, int64_t limit)
{
    CiSym *sym = b->sym;
    const CiExpr *by = number(b, count);
    return ci_build_bind(b, ci_build_index(b, is_rest ? ci_expr_mod(sym, e, by) : ci_expr_floordiv(sym, e, by)),
                         number(b, limit));
}

int64_t
ci_tile_size(const CiTile *tile)
{
    return (int64_t)LINE * tile->side;
}

/* A value that is computed from index expressions, as a symbol below the limit. */
static const CiExpr *
exclusive_or(CiBuild *b, const CiExpr *x, const CiExpr *y, int64_t limit)
{
    const int both[] = {ci_build_index(b, x), ci_build_index(b, y)};
    return ci_build_bind(b, ci_build_let(b, ci_type_of(CI_DTYPE_i64, 1), CI_OP_bitwise_xor, 2, both), number(b, limit));
}

/* Where a chunk is in a tile: the lines of an atom are rotated against each other. */
static const CiExpr *
position_of_chunk(CiBuild *b, const CiExpr *chunk, const CiExpr *slow, const CiTile *tile)
{
    CiSym *sym = b->sym;
    const CiExpr *eight = number(b, CHUNK);
    int64_t lines = tile->is_across ? LINE : tile->side;
    const CiExpr *turned = exclusive_or(b, ci_expr_mod(sym, chunk, eight), ci_expr_mod(sym, slow, eight), CHUNK);
    return plus(b, plus(b, times(b, ci_expr_floordiv(sym, chunk, eight), LINE * lines), times(b, slow, LINE)),
                times(b, turned, CHUNK));
}

/* Elements are neighbours along the variable in a load of the body. */
static bool
reads_along(CiBuild *b, const CiHole *hole, const CiExpr *var)
{
    const CiExpr *coef, *rest;
    for (const CiStmt *stmt = hole->body.first; stmt; stmt = stmt->next)
        if (stmt->op == CI_OP_load && ci_expr_split_linear(b->sym, stmt->at.index, var, &coef, &rest) &&
            ci_expr_equals_const(coef, 1))
            return true;
    return false;
}

/* The index at the first element of a chunk is a multiple of the chunk. */
static bool
has_aligned_chunks(CiBuild *b, const CiTile *tile)
{
    const CiExpr *multiple, *index = tile->hole->load->at.index, *fast = tile->is_across ? tile->side_var : tile->step_var;
    multiple = times(b, fast, CHUNK); /* any multiple */
    return divides(b, CHUNK, ci_expr_substitute(b->sym, index, 1, &fast, &multiple));
}

void
ci_tile_open(CiBuild *b, CiTile *tile, const char *stem, int copies, int64_t *offset)
{
    bool by_step = reads_along(b, tile->hole, tile->step_var);
    tile->is_across = !by_step && reads_along(b, tile->hole, tile->side_var);
    bool is_whole = divides(b, CHUNK, tile->is_across ? tile->side_extent : tile->step_extent);
    tile->lanes = is_whole && b->machine->access_bytes >= 16 ? CHUNK : 1;
    tile->is_copied = tile->lanes > 1 && tile->hole->load && tile->hole->load->at.memory->space == CI_SPACE_global &&
                      ci_hole_has_stride_one(b, tile->hole, tile->is_across ? tile->side_var : tile->step_var) &&
                      has_aligned_chunks(b, tile);
    int64_t size = ci_tile_size(tile) * copies;
    tile->memory = ci_build_alloc(b, ci_build_name(b, stem), tile->dtype, 1, CI_SPACE_shared, number(b, size));
    tile->memory->offset = number(b, *offset);
    *offset += size * (int64_t)ci_dtype_size(tile->dtype);
}

/* The branch in which an element is there; the other one is `other`. NULL if it always is. */
static CiStmt *
test_bounds(CiBuild *b, const CiTile *tile, const CiExpr *here, const CiExpr *step)
{
    CiStmt *test = NULL;
    if (!divides(b, tile->side, tile->side_extent))
        test = ci_build_test(b, CI_STMT_if, CI_COMPARE_less, here, tile->side_extent);
    if (!divides(b, tile->steps, tile->step_extent) && test)
        ci_build_and(b, test, CI_COMPARE_less, step, tile->step_extent);
    else if (!divides(b, tile->steps, tile->step_extent))
        test = ci_build_test(b, CI_STMT_if, CI_COMPARE_less, step, tile->step_extent);
    return test;
}

static void
copy_chunk(CiBuild *b, const CiTile *tile, const CiExpr *position, const CiExpr *index, bool is_there)
{
    CiStmt *copy = ci_build_add(b, CI_STMT_copy);
    copy->at = (CiAccess){.memory = tile->memory, .index = position};
    copy->in[0] = (CiAccess){.memory = tile->hole->load->at.memory, .index = is_there ? index : number(b, 0)};
    copy->nin = 1;
    copy->expr = number(b, CHUNK);
    copy->live = is_there ? NULL : number(b, 0);
}

static void
store_elements(CiBuild *b, const CiTile *tile, const CiExpr *position, const CiSymbols *symbols, bool is_there)
{
    int value;
    if (is_there) {
        CiAt at = {symbols->count, symbols->from, symbols->to, tile->is_across ? tile->side_var : tile->step_var, tile->lanes, NULL, 1};
        value = ci_build_at(b, &tile->hole->body, &at)[0];
    } else {
        value = ci_build_const(b, ci_type_of(tile->dtype, 1), (CiConst){0});
        if (tile->lanes > 1)
            value = ci_build_let(b, ci_type_of(tile->dtype, tile->lanes), CI_OP_splat, 1, &value);
    }
    ci_build_store(b, tile->memory, position, value);
}

/* Brings what is at `here` and `step` to its place. */
static void
bring(CiBuild *b, const CiTile *tile, const CiExpr *position, const CiExpr *here, const CiExpr *step)
{
    CiSymbols symbols = *tile->others;
    ci_symbols_add(&symbols, tile->side_var, here);
    ci_symbols_add(&symbols, tile->step_var, step);
    const CiExpr *index = tile->is_copied ? ci_expr_substitute(b->sym, tile->hole->load->at.index, symbols.count,
                                                               symbols.from, symbols.to)
                                          : NULL;
    CiStmt *test = test_bounds(b, tile, here, step);
    CiStmts *outside = b->to;
    for (int is_there = 1; is_there >= (test == NULL); is_there--) {
        if (test)
            ci_build_enter(b, is_there ? &test->body : &test->other);
        if (tile->is_copied)
            copy_chunk(b, tile, position, index, is_there);
        else
            store_elements(b, tile, position, &symbols, is_there);
    }
    ci_build_leave(b, outside);
}

/* A thread has the same place along chunks in all of its shares. */
void
ci_tile_bring(CiBuild *b, const CiTile *tile, const CiExpr *thread, const CiExpr *position, const CiExpr *first_side,
              const CiExpr *first_step)
{
    CiStmts *outside = b->to;
    int fast_size = tile->is_across ? tile->side : LINE, slow_size = tile->is_across ? LINE : tile->side,
        groups = fast_size / tile->lanes, rounds = groups * slow_size / tile->threads, stride = tile->threads / groups;
    const CiExpr *low = ci_tile_part(b, thread, groups, true, groups), *high = ci_tile_part(b, thread, groups, false, stride),
                 *fast = times(b, low, tile->lanes), *chunk = low, *rest = number(b, 0);
    if (tile->lanes == 1) {
        chunk = ci_tile_part(b, low, CHUNK, false, fast_size / CHUNK);
        rest = ci_tile_part(b, low, CHUNK, true, CHUNK);
    }
    CiStmt *loop = ci_build_for(b, "r", number(b, rounds), rounds <= 16 ? CI_RUN_unroll : CI_RUN_serial);
    ci_build_enter(b, &loop->body);
    const CiExpr *slow = plus(b, high, times(b, loop->vars[0], stride)),
                 *here = plus(b, first_side, tile->is_across ? fast : slow),
                 *step = plus(b, first_step, tile->is_across ? slow : fast);
    bring(b, tile, plus(b, plus(b, position, position_of_chunk(b, chunk, slow, tile)), rest), here, step);
    ci_build_leave(b, outside);
}
