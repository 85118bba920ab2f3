/* A long fold with little parallel work around it -> two procs: one whose units fold a part of the
 * points each, and one that folds the partial results and does the rest.
 *
 * In a search a unit that knows the answer publishes it. Units that start later skip their part; in a search for a
 * position only those do whose part comes later. The blocks of a GPU start together, so each block checks
 * between pieces of its part, of `any` and `all` alone.
 *
 * A part is a power of two blocks of the fold's order, so that the bits are those of one fold. For
 * a pairwise fold it is a subtree, a chunk or a block. */
#include "codegen/split.h"

#include "codegen/independence.h"
#include "codegen/reducer.h"
#include "codegen/scan.h"
#include "analysis/occupancy.h"

static void
find_loops(CiSplitter *s)
{
    s->inside = &s->b.proc->body;
    s->nloops = 0;
    for (int k = 0; k < s->b.proc->head.naxes; k++) {
        s->loops[s->nloops++] = s->inside->first;
        s->inside = &s->inside->first->body;
    }
}

static const CiExpr *
length_of(CiSplitter *s, const CiStmt *fold)
{
    return ci_expr_product_of(s->b.sym, fold->extents, fold->nvars);
}

/* The position of a part's sums: points vary fastest, so that lanes are contiguous. */
static const CiExpr *
position_of(CiSplitter *s, const CiExpr *chunk)
{
    CiSym *sym = s->b.sym;
    const CiExpr *position = chunk;
    for (int k = 0; k < s->nloops; k++) {
        const CiStmt *loop = s->loops[k];
        position = ci_expr_add(sym, ci_expr_mul(sym, position, loop->extents[0]), loop->vars[0]);
    }
    return position;
}

static const CiExpr *
all_positions(CiSplitter *s)
{
    const CiExpr *positions = s->chunks;
    for (int k = 0; k < s->nloops; k++)
        positions = ci_expr_mul(s->b.sym, positions, s->loops[k]->extents[0]);
    return positions;
}

static CiMemory *
add_partial(CiSplitter *s, CiDtype dtype, int number)
{
    return ci_split_add_partial(&s->b, dtype, all_positions(s), number);
}

/* ---- parts ---- */

/* A step down the tree of a pairwise fold: to the left or to the right half, where there are two. A
 * part on the right of one that is a block already has no elements. */
static const CiExpr *
step_down(CiSplitter *s, const CiStmt *fold, const CiExpr *is_right, const CiExpr *count,
          const CiExpr **first)
{
    CiSym *sym = s->b.sym;
    CiDtype dtype = fold->into[0]->dtype;
    const CiExpr *zero = ci_expr_const(sym, 0), *one = ci_expr_const(sym, 1),
                 *block = ci_expr_const(sym, CI_PAIRWISE_LENGTH * ci_pairwise_lanes(dtype));
    const CiExpr *is_long =
        ci_expr_min(sym, one, ci_expr_max(sym, zero, ci_expr_sub(sym, count, block)));
    const CiExpr *right = ci_expr_sub(sym, count, ci_pairwise_half(sym, dtype, count));
    right = ci_build_named(&s->b, ci_expr_mul(sym, is_long, right));
    const CiExpr *left = ci_expr_sub(sym, count, right);
    *first = ci_build_named(&s->b, ci_expr_add(sym, *first, ci_expr_mul(sym, is_right, left)));
    const CiExpr *rest = ci_expr_sub(sym, right, left);
    return ci_build_named(&s->b, ci_expr_add(sym, left, ci_expr_mul(sym, is_right, rest)));
}

/* True if all subtrees have the same number of elements. */
static bool
is_even(CiSplitter *s, const CiStmt *fold, const CiExpr *count, int chunks)
{
    if (chunks == 1)
        return true;
    CiDtype dtype = fold->into[0]->dtype;
    const CiExpr *half = ci_pairwise_half(s->b.sym, dtype, count);
    return count->kind == CI_EXPR_const &&
           count->low > CI_PAIRWISE_LENGTH * ci_pairwise_lanes(dtype) &&
           ci_expr_sub(s->b.sym, count, half) == half && is_even(s, fold, half, chunks / 2);
}

static const CiExpr *
subtree(CiSplitter *s, const CiStmt *fold, const CiExpr **first)
{
    CiSym *sym = s->b.sym;
    const CiExpr *length = length_of(s, fold), *two = ci_expr_const(sym, 2), *chunks = s->chunks;
    int count = (int)chunks->low;
    if (is_even(s, fold, length, count)) {
        length = ci_expr_floordiv(sym, length, chunks);
        *first = ci_expr_mul(sym, s->chunk, length);
        return length;
    }
    *first = ci_expr_const(sym, 0);
    for (int width = count / 2; width > 0; width /= 2) {
        const CiExpr *way = ci_expr_floordiv(sym, s->chunk, ci_expr_const(sym, width));
        length = step_down(s, fold, ci_expr_mod(sym, way, two), length, first);
    }
    return length;
}

const CiExpr *
ci_split_chunk_of(CiSplitter *s, const CiStmt *fold, const CiExpr **first)
{
    CiSym *sym = s->b.sym;
    const CiExpr *length = length_of(s, fold);
    if (!s->size)
        return subtree(s, fold, first);
    *first = ci_expr_mul(sym, s->chunk, s->size);
    const CiExpr *left = ci_expr_sub(sym, length, *first);
    if (s->has_own_order && ci_expr_mul(sym, s->chunks, s->size) == length)
        return s->size;
    if (s->has_own_order && s->chunks == ci_expr_ceildiv(sym, length, s->size))
        return ci_expr_min(sym, s->size, left);
    if (s->has_own_order) /* there may be no part so late */
        return ci_expr_min(sym, s->size, ci_expr_max(sym, ci_expr_const(sym, 0), left));
    return ci_build_piece_count(&s->b, length, *first, s->size);
}

static bool
is_arg_position(const CiStmt *fold)
{
    return ci_op_kind(fold->ops[0]) == CI_OPKIND_argreduce;
}

/* True if units publish the answer to each other. */
static bool
reports_result(const CiSplitter *s, const CiStmt *fold)
{
    return !s->b.proc->head.has_lanes && ci_fold_is_search(fold) && !(s->has_own_order && is_arg_position(fold));
}

static int
count_partials(const CiSplitter *s, const CiStmt *fold)
{
    return fold->ninto + reports_result(s, fold);
}

/* The word of a point that all its parts share: a bool, or, for a position, how many parts come from the first one on
 * that has found it. It is zero when a launch begins, because partial results are zeroed then. */
static CiMemory *
add_word(CiSplitter *s, const CiStmt *fold)
{
    return add_partial(s, is_arg_position(fold) ? CI_DTYPE_i64 : CI_DTYPE_bool, s->npartials + fold->ninto);
}

static CiType
bool_type(void)
{
    return ci_type_of(CI_DTYPE_bool, 1);
}

static int
chunks_from_here(CiSplitter *s)
{
    return ci_build_index(&s->b, ci_expr_sub(s->b.sym, s->chunks, s->chunk));
}

/* Loads the word: true if the answer is known and is not in this part. */
static int
load_flag(CiSplitter *s, CiMemory *word)
{
    int is_known = ci_build_load(&s->b, word, position_of(s, ci_expr_const(s->b.sym, 0)), 1);
    s->b.to->last->is_atomic = true;
    if (word->dtype == CI_DTYPE_bool)
        return is_known;
    const int args[] = {chunks_from_here(s), is_known};
    return ci_build_let(&s->b, bool_type(), CI_OP_less, 2, args);
}

/* Stores the deciding value as the result; beside a position the other value, which loses against the part that has found
 * it. Returns the block that runs if the answer is not yet known. */
static CiStmts *
enter_unless_known(CiSplitter *s, const CiStmt *fold, CiMemory *word, CiMemory **into)
{
    const CiExpr *zero = ci_expr_const(s->b.sym, 0);
    CiConst answer = {.i = ci_search_is_for_true(fold) != is_arg_position(fold)};
    ci_build_store(&s->b, into[0], zero, ci_build_const(&s->b, bool_type(), answer));
    if (is_arg_position(fold))
        ci_build_store(&s->b, into[1], zero, ci_build_const(&s->b, ci_type_of(into[1]->dtype, 1), (CiConst){0}));
    CiStmt *check = ci_build_compare(&s->b, CI_STMT_if, CI_COMPARE_is_not, load_flag(s, word));
    return ci_build_enter(&s->b, &check->body);
}

static void
store_flag(CiSplitter *s, const CiStmt *fold, CiMemory *word, CiMemory *into)
{
    const CiExpr *zero = ci_expr_const(s->b.sym, 0);
    CiCompare decides = ci_search_is_for_true(fold) ? CI_COMPARE_is : CI_COMPARE_is_not;
    CiStmt *found =
        ci_build_compare(&s->b, CI_STMT_if, decides, ci_build_load(&s->b, into, zero, 1));
    CiStmts *outside = ci_build_enter(&s->b, &found->body);
    int yes = is_arg_position(fold) ? chunks_from_here(s) : ci_build_const(&s->b, bool_type(), (CiConst){.i = 1});
    ci_build_store(&s->b, word, position_of(s, zero), yes);
    s->b.to->last->is_atomic = true;
    ci_build_leave(&s->b, outside);
}

static CiStmt *
build_part(CiSplitter *s, CiStmt *fold, CiMemory **into, const CiExpr *first, const CiExpr *count)
{
    CiAt same = {.lanes = 1};
    CiStmts one = {fold, fold};
    fold->next = NULL;
    ci_build_at(&s->b, &one, &same);
    CiStmt *made = s->b.to->last;
    made->into = into;
    made->from = first;
    made->count = count;
    return made;
}

static void
fold_at_once(CiSplitter *s, CiStmt *fold, CiMemory **into, const CiExpr *first, const CiExpr *count)
{
    CiStmts *outside = s->b.to;
    CiMemory *word = reports_result(s, fold) ? add_word(s, fold) : NULL;
    if (word)
        enter_unless_known(s, fold, word, into);
    CiStmt *made = build_part(s, fold, into, first, count);
    if (made->order.kind == CI_FOLD_pairwise) { /* this part is all one block */
        made->order.ninner = made->nvars;
        made->order.chunk = NULL;
    }
    if (word)
        store_flag(s, fold, word, into[0]);
    ci_build_leave(&s->b, outside);
}

static CiMemory *
alloc_bool(CiSplitter *s, const char *stem)
{
    return ci_build_alloc(&s->b, ci_build_name(&s->b, stem), CI_DTYPE_bool, 1, CI_SPACE_register,
                          ci_expr_const(s->b.sym, 1));
}

/* Lets one thread ask for the whole block, by a fold of one element. */
static int
ask_for_block(CiSplitter *s, const CiStmt *fold, CiMemory *word)
{
    const CiExpr *zero = ci_expr_const(s->b.sym, 0), *one = ci_expr_const(s->b.sym, 1);
    CiMemory *reported = alloc_bool(s, "told");
    const CiExpr *only = ci_expr_index(s->b.sym, ci_build_name(&s->b, "k"), one);
    CiStmt *requested = ci_build_fold(&s->b, only, one, CI_OP_any, reported);
    requested->loc = fold->loc;
    CiStmts *outside = ci_build_enter(&s->b, &requested->body);
    int is_known = load_flag(s, word);
    ci_build_yield(&s->b, &is_known, 1);
    ci_build_leave(&s->b, outside);
    return ci_build_load(&s->b, reported, zero, 1);
}

/* Folds the part of a block in pieces, until this block or another one has found the answer. */
static void
fold_in_pieces(CiSplitter *s, CiStmt *fold, CiMemory **into, const CiExpr *first,
               const CiExpr *count)
{
    CiSym *sym = s->b.sym;
    const CiExpr *zero = ci_expr_const(sym, 0), *size = ci_expr_const(sym, CI_CHOOSE(&s->b, exit_elements));
    bool is_any = fold->ops[0] == CI_OP_any;
    CiMemory *word = add_word(s, fold),
             **piece = CI_NEW_ARRAY(s->b.ctx, CiMemory *, 1);
    piece[0] = alloc_bool(s, "piece");
    ci_build_store(&s->b, into[0], zero,
                   ci_build_const(&s->b, bool_type(), (CiConst){.i = !is_any}));
    count = ci_build_named(&s->b, count);
    CiStmt *pieces =
        ci_build_for(&s->b, "c", ci_expr_ceildiv(sym, count, size), CI_RUN_serial);
    CiStmts *outside = ci_build_enter(&s->b, &pieces->body);
    const CiExpr *done = ci_expr_mul(sym, pieces->vars[0], size);
    ci_build_compare(&s->b, CI_STMT_exit, CI_COMPARE_is, ask_for_block(s, fold, word));
    build_part(s, fold, piece, ci_expr_add(sym, first, done),
               ci_expr_min(sym, size, ci_expr_sub(sym, count, done)));
    int found = ci_build_load(&s->b, piece[0], zero, 1);
    ci_build_store(&s->b, into[0], zero, found); /* those before have decided nothing */
    store_flag(s, fold, word, into[0]);
    ci_build_compare(&s->b, CI_STMT_exit, is_any ? CI_COMPARE_is : CI_COMPARE_is_not, found);
    ci_build_leave(&s->b, outside);
}

void
ci_split_fold_chunk(CiSplitter *s, CiStmt *fold, const CiExpr *first, const CiExpr *count)
{
    CiSym *sym = s->b.sym;
    CiMemory **into = CI_NEW_ARRAY(s->b.ctx, CiMemory *, fold->ninto + 1);
    for (int k = 0; k < fold->ninto; k++)
        into[k] = ci_build_alloc(&s->b, ci_build_name(&s->b, "part"), fold->into[k]->dtype, 1,
                                 CI_SPACE_register, ci_expr_const(sym, 1));
    if (!count)
        count = ci_split_chunk_of(s, fold, &first);
    if (reports_result(s, fold) && s->has_own_order)
        fold_in_pieces(s, fold, into, first, count);
    else
        fold_at_once(s, fold, into, first, count);
    for (int k = 0; k < fold->ninto; k++) {
        CiMemory *partial = add_partial(s, fold->into[k]->dtype, s->npartials + k);
        ci_build_store(&s->b, partial, position_of(s, s->chunk),
                       ci_build_load(&s->b, into[k], ci_expr_const(sym, 0), 1));
    }
}

/* ---- partial results ---- */

static bool
is_free(const CiStmt *fold)
{
    for (int k = 0, at = 0; k < fold->nops; at += ci_fold_width(fold->ops[k++]))
        if (!ci_op_is_order_free(fold->ops[k], fold->into[at]->dtype))
            return false;
    return true;
}

void
ci_split_fold_sums(CiSplitter *s, CiStmt *fold)
{
    CiSym *sym = s->b.sym;
    CiMemory **partials = CI_NEW_ARRAY(s->b.ctx, CiMemory *, fold->ninto + 1);
    for (int k = 0; k < fold->ninto; k++)
        partials[k] = add_partial(s, fold->into[k]->dtype, s->npartials + k);
    if (reports_result(s, fold))
        add_word(s, fold);
    const CiExpr *chunk = ci_expr_index(sym, ci_build_name(&s->b, "c"), s->chunks);
    CiStmt *made = ci_build_copy(&s->b, fold);
    made->vars[0] = chunk;
    made->extents[0] = s->chunks;
    made->nvars = 1;
    if (s->has_own_order || is_free(fold))
        made->blocks = NULL;
    else if (!s->size)
        made->blocks = s->chunks;
    else if (fold->order.kind == CI_FOLD_pairwise)
        made->order = (CiFoldOrder){.kind = CI_FOLD_pairwise}; /* one after another */
    else
        made->blocks = ci_expr_floordiv(sym, length_of(s, fold), s->size);
    CiStmts *outside = ci_build_enter(&s->b, &made->body);
    int *values = CI_NEW_ARRAY(s->b.ctx, int, fold->ninto + 1);
    for (int k = 0; k < fold->ninto; k++)
        values[k] = ci_build_load(&s->b, partials[k], position_of(s, chunk), 1);
    ci_build_yield(&s->b, values, fold->ninto);
    ci_build_leave(&s->b, outside);
}

/* ---- two procs ---- */

static CiStmt *
first_fold(const CiStmts *block)
{
    CiStmt *stmt = block->first;
    while (stmt && stmt->kind != CI_STMT_fold)
        stmt = stmt->next;
    return stmt;
}

static void
finish_fold(void *arg, CiStmt *stmt)
{
    CiSplitter *s = arg;
    if (stmt->kind != CI_STMT_fold) {
        ci_build_move(&s->b, stmt);
        return;
    }
    int count = count_partials(s, stmt);
    ci_split_fold_sums(s, stmt);
    s->npartials += count;
}

/* Replaces a reduction by that of the current chunk. The other statements of the proc are dropped. */
static void
chunk_fold(void *arg, CiStmt *stmt)
{
    CiSplitter *s = arg;
    if (stmt->kind != CI_STMT_fold)
        return;
    int count = count_partials(s, stmt);
    ci_split_fold_chunk(s, stmt, NULL, NULL);
    s->npartials += count;
}

static void
rewrite_folds(CiSplitter *s, void (*rewrite)(void *arg, CiStmt *stmt))
{
    s->npartials = 0;
    ci_build_rewrite(&s->b, s->inside, rewrite, s);
}

static void
make_finish(CiSplitter *s, const CiProc *proc)
{
    s->b.proc = ci_split_new_finish(s->b.procs, proc);
    s->b.to = &s->b.proc->body;
    CiAt same = {.lanes = 1};
    ci_build_at(&s->b, &proc->body, &same);
    find_loops(s);
    rewrite_folds(s, finish_fold);
}

/* Makes the proc of the chunks: units are chunks of points, and lanes stay inside. */
static void
make_chunks(CiSplitter *s, CiProc *proc)
{
    s->b.proc = proc;
    s->b.to = &proc->body;
    find_loops(s);
    rewrite_folds(s, chunk_fold);
    CiStmts *where = &proc->body, inner;
    for (int k = 0; k < s->nloops && s->loops[k]->run == CI_RUN_parallel; k++)
        where = &s->loops[k]->body;
    inner = *where;
    *where = (CiStmts){0};
    CiStmts *outside = ci_build_enter(&s->b, where);
    CiStmt *loop = ci_build_loop(&s->b, s->chunk, s->chunks, CI_RUN_parallel);
    loop->body = inner;
    ci_build_leave(&s->b, outside);
}

static void
split(CiSplitter *s)
{
    CiProc *proc = s->b.proc;
    s->chunk = ci_expr_index(s->b.sym, ci_build_name(&s->b, "c"), s->chunks);
    make_finish(s, proc);
    make_chunks(s, proc);
}

void
ci_split(CiBuild *b)
{
    CiProc *proc = b->proc;
    CiSplitter s = {.b = *b, .chunks = proc->head.chunks, .size = proc->head.chunk};
    if (!s.chunks || proc->head.kind || proc->is_finish || proc->head.is_chained)
        return;
    find_loops(&s);
    CI_REQUIRE(b->ctx, first_fold(s.inside));
    split(&s);
}

/* ---- blocks of threads ---- */

static bool
is_work(const CiStmt *stmt)
{
    return ci_stmt_is_loop(stmt) || stmt->kind == CI_STMT_fold || stmt->kind == CI_STMT_call ||
           (stmt->kind == CI_STMT_alloc && stmt->memory->space == CI_SPACE_scratch);
}

/* The only fold of a point, with no work after it that threads could share; NULL if there is
 * none. */
static CiStmt *
only_fold(const CiStmts *block)
{
    CiStmt *fold = first_fold(block);
    for (const CiStmt *stmt = block->first; stmt && fold; stmt = stmt->next) {
        bool is_other = stmt != fold && (is_work(stmt) || ci_stmts_have(&stmt->body, is_work));
        if (is_other)
            return NULL;
    }
    return fold;
}

static int64_t
count_chunks(const CiSplitter *s, const CiExpr *points)
{
    if (points->high == CI_INFINITY)
        return CI_CHOOSE(&s->b, unknown_chunks);
    int64_t blocks = ci_occupancy_points(points),
            multiprocessors = CI_CHOOSE(&s->b, multiprocessors),
            together = CI_CHOOSE(&s->b, fold_points);
    if (s->b.proc->head.has_lanes)
        blocks = (blocks + together - 1) / together;
    if (blocks >= CI_CHOOSE(&s->b, fold_blocks) * multiprocessors)
        return 1;
    return CI_CHOOSE(&s->b, chunk_blocks) * multiprocessors / (blocks ? blocks : 1);
}

/* Splits a long reduction of few points, which would not fill a GPU. The number of chunks depends on sizes only. */
void
ci_split_blocks(CiBuild *b)
{
    CiProc *proc = b->proc;
    CiSym *sym = b->sym;
    CiSplitter s = {.b = *b, .has_own_order = true};
    const CiExpr *points = ci_expr_const(sym, 1);
    CiStmts *block = &proc->body;
    if (proc->head.is_tree || proc->is_finish)
        return;
    if (proc->head.chunks) {
        ci_split_scan(b);
        return;
    }
    for (int k = 0; k < proc->head.naxes; k++) {
        CiStmt *loop = block->first;
        if (!loop || loop->kind != CI_STMT_for || loop->next)
            return;
        points = ci_expr_mul(sym, points, loop->extents[0]);
        block = &loop->body;
    }
    find_loops(&s);
    CiStmt *fold = only_fold(s.inside);
    if (!fold || !ci_iterations_are_independent(&s.b, fold) ||
        length_of(&s, fold)->high < CI_CHOOSE(b, long_fold))
        return;
    const CiExpr *length = length_of(&s, fold);
    int64_t chunks = count_chunks(&s, points),
            unit = CI_CHOOSE(b, chunk_rounds) * b->machine->threads * (ci_stmts_gather(&fold->body) ? 1 : 4);
    if (chunks < 2)
        return;
    s.chunks = ci_expr_const(sym, chunks);
    s.size = ci_expr_mul(sym, ci_expr_ceildiv(sym, length, ci_expr_const(sym, chunks * unit)),
                         ci_expr_const(sym, unit));
    if (length->kind == CI_EXPR_const) /* no more than have elements */
        s.chunks = ci_expr_ceildiv(sym, length, s.size);
    if (s.chunks->kind == CI_EXPR_const && s.chunks->value < 2)
        return;
    proc->head.chunks = s.chunks;
    proc->head.chunk = proc->head.unit_work = s.size;
    split(&s);
}
