/* Scans: a nest with one thread per row. If long rows are few, the threads of a device would be
 * idle, so rows are cut into parts of `length` elements that run in parallel (Blelloch, Prefix Sums
 * and Their Applications, 1990):
 *
 *   totals[p, c] = the total of part c of row p.
 *   before[p, c] = the scan of totals along c
 *   result[p, c*length + r] = the scan along r of part c, which begins with before[p, c - 1].
 *
 * The remainder after the whole parts begins with the last of `before`. This changes the order of
 * combination. So it applies to integers and extremes only, and to floats if folds have cinductor's
 * own order.
 *
 * A contiguous row has a block of threads, other rows have one thread each. A row of symbolic
 * length may be shorter than a part: then there are no parts, and one unused element of `before`.
 * The size in an earlier call has no influence, because a sum's bits would otherwise depend on
 * it. */
#include "analysis/occupancy.h"
#include "lower/lowering.h"

typedef struct Chunks {
    CiLowering *low;
    CiNode *node, *operand;
    int along;
    const CiExpr *length, *count, *rest; /* of a part; number of parts; of the remainder after
                                          * them */
    CiFoldKind kind;                     /* of a part's total: rows where they lie across memory */
    CiStorage before;
} Chunks;

static CiOp
totals_of(const CiNode *scan)
{
    return ci_op_alike(scan->op, CI_OPKIND_reduce);
}

/* Of rows with a thread each: the parts of all are as many threads as run at once. */
static int64_t
length_across(const CiMachine *machine, int64_t points, int64_t size)
{
    int64_t length = ci_choice(machine, CI_CHOICE_scan_column_chunk),
            chunks = ci_occupancy_threads(machine) / (points > 0 ? points : 1);
    while (length < size && size / length > chunks)
        length *= 2;
    return length;
}

/* True if the rows are so few that most of a device would be idle and reading them twice is faster;
 * sets the length of a part. */
static bool
are_worth_it(Chunks *chunks, const CiExpr *points, const CiExpr *size)
{
    const CiMachine *machine = chunks->low->machine;
    bool is_across = chunks->kind == CI_FOLD_rows;
    int64_t most = ci_choice(machine, is_across ? CI_CHOICE_scan_columns : CI_CHOICE_scan_rows),
            length = is_across ? length_across(machine, points->high, size->low)
                               : ci_choice(machine, CI_CHOICE_scan_row_chunk);
    chunks->length = ci_expr_const(chunks->low->sym, length);
    bool is_long = size->high / length >= ci_choice(machine, CI_CHOICE_scan_chunks);
    return points->high <= most && is_long;
}

static bool
find_parts(Chunks *chunks)
{
    CiLowering *low = chunks->low;
    CiSym *sym = low->sym;
    const CiNode *operand = chunks->operand;
    const CiExpr *size = operand->sizes[chunks->along], *points = ci_expr_const(sym, 1);
    for (int k = 0; k < operand->rank; k++)
        points = k == chunks->along ? points : ci_expr_mul(sym, points, operand->sizes[k]);
    bool is_free = ci_op_is_order_free(totals_of(chunks->node), operand->dtype);
    chunks->kind = ci_lowering_fold_kind(chunks->node, operand, size);
    if (!(is_free || low->own_order) ||
        chunks->kind == CI_FOLD_serial ||
        ci_expr_equals_const(points, 1) || /* one row: the loop itself is split */
        !are_worth_it(chunks, points, size))
        return false;
    chunks->count = ci_expr_floordiv(sym, size, chunks->length);
    chunks->rest = ci_expr_sub(sym, size, ci_expr_mul(sym, chunks->count, chunks->length));
    return true;
}

/* The operand's axes, with parts where the rows' is: one more where there may be none. */
static CiStorage
new_table(const Chunks *chunks, const int8_t *order)
{
    const CiNode *operand = chunks->operand;
    CiContext *ctx = chunks->low->ctx;
    CiSym *sym = chunks->low->sym;
    const CiExpr **sizes = CI_NEW_ARRAY(ctx, const CiExpr *, operand->rank + 1);
    for (int k = 0; k < operand->rank; k++)
        sizes[k] = operand->sizes[k];
    sizes[chunks->along] =
        ci_expr_add(sym, chunks->count, ci_expr_const(sym, chunks->count->low <= 0));
    CiStorage table = {.strides =
                           ci_layout_dense_strides(ctx, sym, operand->rank, sizes, order)};
    table.buffer = ci_loops_add_buffer(chunks->low->loops, CI_BUFFER_temp, operand->dtype,
                                       operand->rank, sizes, table.strides);
    return table;
}

/* Parts of a row side by side. */
static const int8_t *
order_of_before(const Chunks *chunks)
{
    int8_t *order = CI_NEW_ARRAY(chunks->low->ctx, int8_t, chunks->operand->rank + 1);
    int count = 0;
    for (int k = 0; k < chunks->operand->rank; k++)
        if (k != chunks->along)
            order[count++] = (int8_t)k;
    order[count] = (int8_t)chunks->along;
    return order;
}

static const CiExpr *
table_element(const Chunks *chunks, CiStorage table, const CiExpr *const *index, const CiExpr *chunk)
{
    const CiExpr **at = CI_NEW_ARRAY(chunks->low->ctx, const CiExpr *, chunks->operand->rank + 1);
    for (int k = 0; k < chunks->operand->rank; k++)
        at[k] = k == chunks->along ? chunk : index[k];
    return ci_lowering_element(chunks->low, table, chunks->operand->rank, at);
}

static int
load(CiRecorder *rec, const Chunks *chunks, CiStorage table, const CiExpr *const *index,
     const CiExpr *chunk)
{
    return ci_recorder_add(rec, (CiScalar){.op = CI_OP_load,
                                           .dtype = chunks->operand->dtype,
                                           .buffer = table.buffer,
                                           .index = table_element(chunks, table, index, chunk)});
}

/* Axes of points in the order of the operand's, parts (NULL: none) where the rows' is. */
static const CiExpr **
add_points(const Chunks *chunks, CiNest *nest, const CiExpr *count)
{
    const CiNode *operand = chunks->operand;
    const CiExpr **index = CI_NEW_ARRAY(chunks->low->ctx, const CiExpr *, operand->rank + 1);
    for (int k = 0; k < operand->rank; k++) {
        const CiExpr *extent = k == chunks->along ? count : operand->sizes[k];
        if (extent)
            ci_lowering_add_axis(chunks->low, nest, CI_AXIS_point, "i", extent, &index[k]);
    }
    return index;
}

static void
finish_nest(const Chunks *chunks, CiNest *nest, CiRecorder *rec, int result)
{
    ci_recorder_note(rec, chunks->node->loc);
    ci_lowering_finish_nest(nest, rec, result, chunks->low->ctx);
    *ci_loops_add_nest(chunks->low->loops, chunks->low->items) = *nest;
}

/* A launch of its own: beside another in one it would have but what points that has. */
static void
add_nest(const Chunks *chunks, CiNest *nest, CiRecorder *rec, int result)
{
    nest->is_separate = true;
    finish_nest(chunks, nest, rec, result);
}

static CiStorage
add_totals(const Chunks *chunks)
{
    CiLowering *low = chunks->low;
    CiStorage totals = new_table(chunks, chunks->operand->order); /* neighbours are the operand's */
    CiNest nest = {.fold = totals_of(chunks->node), .target = totals.buffer};
    nest.order.kind = chunks->kind;
    const CiExpr **index = add_points(chunks, &nest, chunks->count), *chunk = index[chunks->along];
    const CiExpr *step;
    ci_lowering_add_axis(low, &nest, CI_AXIS_reduce, "r", chunks->length, &step);
    nest.store = table_element(chunks, totals, index, chunk);
    index[chunks->along] = ci_expr_add(low->sym, ci_expr_mul(low->sym, chunk, chunks->length), step);
    CiRecorder rec = ci_recorder_new(low);
    add_nest(chunks, &nest, &rec, ci_recorder_value(&rec, chunks->operand, index));
    return totals;
}

static CiStorage
add_before(const Chunks *chunks, CiStorage totals)
{
    CiStorage before = new_table(chunks, order_of_before(chunks));
    CiNest nest = {.fold = chunks->node->op, .order.kind = CI_FOLD_serial, .target = before.buffer};
    const CiExpr **index = add_points(chunks, &nest, NULL), *chunk;
    ci_lowering_add_axis(chunks->low, &nest, CI_AXIS_scan, "r", chunks->count, &chunk);
    nest.store = table_element(chunks, before, index, chunk);
    CiRecorder rec = ci_recorder_new(chunks->low);
    add_nest(chunks, &nest, &rec, load(&rec, chunks, totals, index, chunk));
    return before;
}

static int
index_is(CiRecorder *rec, CiOp compare, const CiExpr *index)
{
    CiScalar position = {.op = CI_OP_index, .dtype = CI_DTYPE_i64, .index = index},
             zero = {.op = CI_OP_const, .dtype = CI_DTYPE_i64},
             test = {.op = compare, .dtype = CI_DTYPE_bool, .nargs = 2};
    test.args[0] = ci_recorder_add(rec, position);
    test.args[1] = ci_recorder_add(rec, zero);
    return ci_recorder_add(rec, test);
}

/* The value; at the first step, and where there is a part before it (condition), combined with
 * what comes before. */
static int
begin_with(CiRecorder *rec, const Chunks *chunks, int value, int before, const CiExpr *step,
           int condition)
{
    CiDtype dtype = chunks->operand->dtype;
    CiScalar both = {.op = ci_op_combine(chunks->node->op),
                     .dtype = dtype,
                     .args = {before, value},
                     .nargs = 2},
             choice = {.op = CI_OP_where, .dtype = dtype, .nargs = 3};
    int is_first = index_is(rec, CI_OP_equal, step);
    if (condition >= 0) {
        CiScalar all = {.op = CI_OP_logical_and,
                        .dtype = CI_DTYPE_bool,
                        .args = {is_first, condition},
                        .nargs = 2};
        is_first = ci_recorder_add(rec, all);
    }
    choice.args[0] = is_first;
    choice.args[1] = ci_recorder_add(rec, both);
    choice.args[2] = value;
    return ci_recorder_add(rec, choice);
}

/* is_rest: for the remainder after the parts. */
static void
add_result(const Chunks *chunks, CiStorage storage, bool is_rest)
{
    CiLowering *low = chunks->low;
    CiSym *sym = low->sym;
    CiNest nest = {.fold = chunks->node->op, .order.kind = CI_FOLD_serial, .target = storage.buffer};
    const CiExpr **index = add_points(chunks, &nest, is_rest ? NULL : chunks->count), *step,
                 *extent = is_rest ? chunks->rest : chunks->length,
                 *chunk = is_rest ? chunks->count : index[chunks->along],
                 *last = ci_expr_max(sym, ci_expr_sub(sym, chunk, ci_expr_const(sym, 1)),
                                     ci_expr_const(sym, 0));
    ci_lowering_add_axis(low, &nest, CI_AXIS_scan, "r", extent, &step);
    if (nest.naxes == nest.npoint)
        nest.fold = CI_OP_none;
    index[chunks->along] = ci_expr_add(sym, ci_expr_mul(sym, chunk, chunks->length), step);
    nest.store = ci_lowering_element(low, storage, chunks->node->rank, index);
    CiRecorder rec = ci_recorder_new(low);
    int value = ci_recorder_value(&rec, chunks->operand, index),
        before = load(&rec, chunks, chunks->before, index, last),
        condition = chunk->low > 0 ? -1 : index_is(&rec, CI_OP_greater, chunk);
    add_nest(chunks, &nest, &rec, begin_with(&rec, chunks, value, before, step, condition));
}

static void
add_whole(const Chunks *chunks, CiStorage storage)
{
    CiNest nest = {.fold = chunks->node->op, .order.kind = CI_FOLD_serial, .target = storage.buffer};
    const CiExpr **index = add_points(chunks, &nest, NULL);
    ci_lowering_add_axis(chunks->low, &nest, CI_AXIS_scan, "r", chunks->operand->sizes[chunks->along],
                         &index[chunks->along]);
    if (nest.naxes == nest.npoint)
        nest.fold = CI_OP_none;
    nest.store = ci_lowering_element(chunks->low, storage, chunks->node->rank, index);
    CiRecorder rec = ci_recorder_new(chunks->low);
    finish_nest(chunks, &nest, &rec, ci_recorder_value(&rec, chunks->operand, index));
}

void
ci_lowering_scan(CiLowering *low, CiNode *node)
{
    Chunks chunks = {.low = low, .node = node, .operand = node->args[0], .along = node->axes[0]};
    CiStorage storage = ci_lowering_make_storage(low, node);
    if (find_parts(&chunks)) {
        chunks.before = add_before(&chunks, add_totals(&chunks));
        add_result(&chunks, storage, false);
        if (!ci_expr_equals_const(chunks.rest, 0))
            add_result(&chunks, storage, true);
    } else {
        add_whole(&chunks, storage);
    }
    ci_lowering_state(low, node)->storage = storage;
}
