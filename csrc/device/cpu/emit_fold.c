/* Accumulators: how a fold starts, takes a value, closes a block and ends, in the orders that
 * ir/loop.h defines.
 *
 *   serial   f3 = f3 op v; a tile has one per lane, f3[l]
 *   lanes    L accumulators, as a few vectors where they can be, and the stack of the binary
 * counter; a fold of at most a block has no stack, or touches it not rows     per lane of the tile:
 * L rows of accumulators, and a stack of rows; without a tile the tile is 1
 *   short    lanes of a fold of at most 2P values, per lane of the tile: accumulator k has values k
 *            and k + P, which is the order of any L from P on; up to CI_SERIAL_LIMIT values k is 0
 *
 * Order-free folds have no blocks, and their zero is always +0 (a min or max of both zeros would
 * tell the order). */
#include "device/cpu/emit_cpu.h"

#include "device/cpu/emit_fold_text.h"

static const char *
type_of(const CiCpuFold *fold)
{
    return ci_emit_type(fold->dtype);
}

static const char *
tag_of(CiCpuEmitter *c, const CiCpuFold *fold)
{
    return ci_format(c->ctx, "%s_%s", ci_op_name(fold->nest->fold), ci_dtype_name(fold->dtype));
}

static void
use_helper(CiCpuEmitter *c, const CiCpuFold *fold, int helpers)
{
    c->has_fold[fold->nest->fold][fold->dtype] |= (uint8_t)helpers;
}

static int
tile_of(const CiCpuEmitter *c)
{
    return c->tile ? c->tile : 1;
}

static const char *
identity_of(CiCpuEmitter *c, const CiCpuFold *fold)
{
    return ci_cpu_fold_identity(c, fold->nest->fold, fold->dtype);
}

/* Slots of the binary counter that a fold of this length can fill. */
static int
stack_depth(CiCpuEmitter *c, const CiCpuFold *fold)
{
    int64_t longest = ci_cpu_fold_extent(c, fold->nest)->high, block = CI_BLOCK_CHAIN * fold->lanes;
    int depth = 1;
    while (depth < 48 && longest / block >= (int64_t)1 << depth)
        depth++;
    return depth + 1;
}

/* The number of the element in the fold's domain, in C order of the reduce axes. */
static const char *
linear_index(CiCpuEmitter *c, const CiNest *nest)
{
    const CiExpr *index = ci_expr_const(c->sym, 0);
    for (int k = nest->npoint; k < nest->naxes; k++)
        index = ci_expr_add(c->sym, ci_expr_mul(c->sym, index, nest->axes[k].extent),
                            nest->axes[k].var);
    return ci_emit_index_text(c->base, index);
}

/* ---- start ---- */

static void
start_rows(CiCpuEmitter *c, const CiCpuFold *fold)
{
    int tile = tile_of(c), count = tile * fold->lanes;
    ci_text_line(c->out, "%s f%d[%d] __attribute__((aligned(64)));", type_of(fold), fold->id,
                 count);
    ci_text_line(c->out, "%s stack%d[%d] __attribute__((aligned(64)));", type_of(fold), fold->id,
                 tile * stack_depth(c, fold));
    ci_text_line(c->out, "int64_t count%d = 0, blocks%d = 0;", fold->id, fold->id);
    ci_text_line(c->out, "for (int64_t l = 0; l < %d; l++)", count);
    ci_text_line(c->out, "    f%d[l] = %s;", fold->id, identity_of(c, fold));
}

static void
start_serial(CiCpuEmitter *c, const CiCpuFold *fold)
{
    const char *first = c->function == CI_FUNCTION_part ? "first" : "0";
    if (!c->tile) {
        ci_text_line(c->out, "%s f%d = %s;", type_of(fold), fold->id, identity_of(c, fold));
        if (fold->is_arg)
            ci_text_line(c->out, "int64_t best%d = %s;", fold->id, first);
        return;
    }
    ci_text_line(c->out, "%s f%d[%d] __attribute__((aligned(64)));", type_of(fold), fold->id,
                 c->tile);
    if (fold->is_arg)
        ci_text_line(c->out, "int64_t best%d[%d] __attribute__((aligned(64)));", fold->id, c->tile);
    ci_text_line(c->out, "for (int64_t l = 0; l < %d; l++)", c->tile);
    ci_text_line(c->out, fold->is_arg ? "    f%d[l] = %s, best%d[l] = %s;" : "    f%d[l] = %s;",
                 fold->id, identity_of(c, fold), fold->id, first);
}

static void
start_short(CiCpuEmitter *c, const CiCpuFold *fold)
{
    use_helper(c, fold, CI_HELPER_short);
    ci_text_line(c->out, "%s f%d[%d] __attribute__((aligned(64)));", type_of(fold), fold->id,
                 c->tile * fold->lanes);
    ci_text_line(c->out, "const int64_t most%d = %s > %d ? %d : 0;", fold->id,
                 ci_emit_index_text(c->base, c->kernel->row), CI_SERIAL_LIMIT, fold->lanes - 1);
    ci_text_line(c->out, "start_short_%s(f%d, most%d);", tag_of(c, fold), fold->id, fold->id);
}

static bool
has_counter(const CiCpuFold *fold)
{
    return fold->is_ordered && !fold->is_one_block;
}

static void
start_accumulators(CiCpuEmitter *c, const CiCpuFold *fold)
{
    const char *first = c->function == CI_FUNCTION_part ? "first" : "0";
    if (fold->is_vector) {
        use_helper(c, fold, CI_HELPER_vectors);
        ci_text_line(c->out, "%s f%d[%d];", ci_cpu_vector_type(fold->dtype), fold->id,
                     fold->lanes / ci_cpu_vector_lanes(c, fold->dtype));
        ci_text_line(c->out, "start_%s(f%d);", tag_of(c, fold), fold->id);
        return;
    }
    ci_text_line(c->out, "%s f%d[%d] __attribute__((aligned(64)));", type_of(fold), fold->id,
                 fold->lanes);
    if (fold->is_arg)
        ci_text_line(c->out, "int64_t best%d[%d] __attribute__((aligned(64)));", fold->id,
                     fold->lanes);
    ci_text_line(c->out, "#pragma omp simd");
    ci_text_line(c->out, "for (int64_t l = 0; l < %d; l++)", fold->lanes);
    ci_text_line(c->out, fold->is_arg ? "    f%d[l] = %s, best%d[l] = %s + l;" : "    f%d[l] = %s;",
                 fold->id, identity_of(c, fold), fold->id, first);
}

static void
start_lanes(CiCpuEmitter *c, const CiCpuFold *fold)
{
    if (has_counter(fold)) {
        ci_text_line(c->out, "%s stack%d[%d];", type_of(fold), fold->id, stack_depth(c, fold));
        ci_text_line(c->out, "int64_t blocks%d = 0;", fold->id);
    }
    if (fold->is_pushed)
        ci_text_line(c->out, "int64_t count%d = 0;", fold->id);
    start_accumulators(c, fold);
}

void
ci_cpu_emit_fold_start(CiCpuEmitter *c, CiCpuStage *s, const CiCpuFold *fold)
{
    (void)s;
    static void (*const starts[])(CiCpuEmitter *, const CiCpuFold *) = {
        [CI_PLAN_serial] = start_serial,
        [CI_PLAN_lanes] = start_lanes,
        [CI_PLAN_rows] = start_rows,
        [CI_PLAN_short] = start_short,
    };
    starts[fold->plan](c, fold);
}

/* ---- one value ---- */

static const char *
accumulator(CiCpuEmitter *c, const CiCpuFold *fold)
{
    if (fold->is_vector)
        return ci_format(c->ctx, "((%s *)f%d)[l]", type_of(fold), fold->id);
    if (fold->plan == CI_PLAN_lanes)
        return ci_format(c->ctx, "f%d[l]", fold->id);
    if (fold->plan == CI_PLAN_serial)
        return ci_format(c->ctx, c->tile ? "f%d[l]" : "f%d", fold->id);
    if (fold->plan == CI_PLAN_short)
        return ci_format(c->ctx, "f%d[(%s & most%d) * %d + l]", fold->id,
                         linear_index(c, fold->nest), fold->id, c->tile);
    if (fold->lanes > 1)
        return ci_format(c->ctx, c->tile ? "f%d[count%d %% %d * %d + l]" : "f%d[count%d %% %d]",
                         fold->id, fold->id, fold->lanes, c->tile);
    return ci_format(c->ctx, c->tile ? "f%d[l]" : "f%d[0]", fold->id);
}

static void
step_arg(CiCpuEmitter *c, const CiCpuFold *fold, const char *value, const char *index)
{
    const char *best = accumulator(c, fold);
    const char *at = fold->plan == CI_PLAN_lanes
                         ? ci_format(c->ctx, "best%d[l]", fold->id)
                         : ci_format(c->ctx, c->tile ? "best%d[l]" : "best%d", fold->id);
    ci_text_line(c->out, "const int take%d = %s;", fold->id,
                 ci_cpu_fold_takes(c, fold->nest->fold, fold->dtype, best, value));
    ci_text_line(c->out, "%s = take%d ? %s : %s;", best, fold->id, value, best);
    ci_text_line(c->out, "%s = take%d ? %s : %s;", at, fold->id, index, at);
}

static bool
is_complex_product(const CiCpuFold *fold)
{
    return ci_dtype_class(fold->dtype) == CI_CLASS_complex &&
           ci_op_combine(fold->nest->fold) == CI_OP_multiply;
}

static void
close_block(CiCpuEmitter *c, const CiCpuFold *fold)
{
    use_helper(c, fold, CI_HELPER_rows);
    ci_text_line(c->out, "if (++count%d %% %d == 0)", fold->id, CI_BLOCK_CHAIN * fold->lanes);
    ci_text_line(c->out, "    blocks%d = block_rows_%s(f%d, %d, stack%d, blocks%d, %d);", fold->id,
                 tag_of(c, fold), fold->id, fold->lanes, fold->id, fold->id, tile_of(c));
}

void
ci_cpu_emit_fold_step(CiCpuEmitter *c, const CiCpuStage *s, const CiCpuFold *fold,
                      const char *value)
{
    if (s->is_fused_fold && ci_cpu_fold_has_chunk(fold, s->is_tail)) {
        ci_text_line(c->out, s->is_masked ? "lane%d = %s;" : "chunk%d[l] = %s;", fold->id, value);
        return;
    }
    if (fold->is_arg) {
        step_arg(c, fold, value, linear_index(c, fold->nest));
        return;
    }
    CiText text = ci_text_new(c->ctx);
    if (fold->plan == CI_PLAN_serial &&
        is_complex_product(fold)) /* (1, 0) is no identity of infinities */
        ci_text_add(&text, "(%s) == 0 ? %s : ", linear_index(c, fold->nest), value);
    ci_emit_combine(c->base, &text, fold->nest->fold, fold->dtype, accumulator(c, fold), value);
    ci_text_line(c->out, "%s = %s;", accumulator(c, fold), text.data);
    if (fold->plan == CI_PLAN_rows && s->lanes == CI_LANES_inner)
        close_block(c, fold);
}

static void
push_array(CiCpuEmitter *c, const CiCpuFold *fold, int slot)
{
    const char *more = fold->is_arg ? ci_format(c->ctx, "best%d, %s, ", fold->id,
                                                c->function == CI_FUNCTION_part ? "first" : "0")
                       : has_counter(fold)
                           ? ci_format(c->ctx, "stack%d, &blocks%d, ", fold->id, fold->id)
                           : "";
    use_helper(c, fold, CI_HELPER_push | (fold->is_ordered ? CI_HELPER_block : CI_HELPER_pairwise));
    ci_text_line(c->out, "count%d = push_%s(f%d, %scount%d, tile%d, m);", fold->id, tag_of(c, fold),
                 fold->id, more, fold->id, slot);
}

/* A loop over `width` lanes of the elements of source; they stand at `base` in the fold. A loop
 * that is no vector loop costs less to compile. */
static void
print_steps(CiCpuEmitter *c, const CiCpuFold *fold, const char *source, const char *base,
            const char *width, bool is_vector)
{
    const char *var = fold->nest->axes[fold->nest->naxes - 1].var->name;
    CiCpuStage inner = {.lanes = CI_LANES_inner};
    CiText body = ci_text_new(c->ctx), *saved = c->out;
    body.indent = c->out->indent + 4;
    c->out = &body;
    ci_text_line(&body, "const %s x = %s;", type_of(fold), source);
    ci_cpu_emit_fold_step(c, &inner, fold, "x");
    c->out = saved;
    if (is_vector)
        ci_text_line(c->out, "#pragma omp simd");
    ci_text_line(c->out, "for (int64_t l = 0; l < %s; l++) {", width);
    if (!is_vector)
        ci_text_line(c->out, "    CI_NO_VECTOR;");
    if (ci_emit_mentions(body.data, var))
        ci_text_line(c->out, "    const int64_t %s = %s + l;", var, base);
    ci_text_add(c->out, "%s", body.data);
    ci_text_line(c->out, "}");
}

/* What the accumulators hold becomes a block in the counter, and they start again. */
static void
print_block(CiCpuEmitter *c, const CiCpuFold *fold)
{
    const char *tag = tag_of(c, fold);
    int id = fold->id;
    if (!fold->is_vector) {
        use_helper(c, fold, CI_HELPER_block);
        ci_text_line(c->out, "blocks%d = block_%s(f%d, stack%d, blocks%d);", id, tag, id, id, id);
        return;
    }
    use_helper(c, fold, CI_HELPER_counter);
    ci_text_line(c->out, "blocks%d = carry_%s(stack%d, blocks%d, tree_%s(f%d));", id, tag, id, id,
                 tag, id);
    ci_text_line(c->out, "start_%s(f%d);", tag, id);
}

/* Behind the last value there are identities, up to a whole chunk. Products of complex numbers have
 * none, for 0 times infinity is NaN. */
static void
add_chunks(CiCpuEmitter *c, const CiCpuFold *fold, int slot)
{
    const CiExpr *length = ci_cpu_fold_extent(c, fold->nest);
    const char *source = ci_format(c->ctx, "tile%d[k + l]", slot),
               *lanes = ci_format(c->ctx, "%d", fold->lanes);
    bool is_aligned = length->kind == CI_EXPR_const && length->value % fold->lanes == 0;
    ci_text_open(c->out, "for (int64_t k = 0; k < m; k += %s) {", lanes);
    if (!is_aligned) {
        ci_text_open(c->out, "if (k + %s > m) {", lanes);
        ci_text_line(c->out, "#pragma omp simd");
        ci_text_line(c->out, "for (int64_t l = 0; l < %s; l++)", lanes);
        ci_text_line(c->out, "    %s = k + l < m ? %s : %s;", source, source, identity_of(c, fold));
        ci_text_close(c->out);
    }
    print_steps(c, fold, source, "q + k", lanes, true);
    ci_text_close(c->out);
}

static void
add_chunks_and_rest(CiCpuEmitter *c, const CiCpuFold *fold, int slot)
{
    const char *source = ci_format(c->ctx, "tile%d[k + l]", slot);
    ci_text_line(c->out, "int64_t k = 0;");
    ci_text_open(c->out, "for (; k + %d <= m; k += %d) {", fold->lanes, fold->lanes);
    print_steps(c, fold, source, "q + k", ci_format(c->ctx, "%d", fold->lanes), true);
    ci_text_close(c->out);
    print_steps(c, fold, source, "q + k", "m - k", false);
}

/* The array starts where lane 0 is next, for blocks of lanes hold whole rows of accumulators. */
static void
add_array(CiCpuEmitter *c, const CiCpuFold *fold, int slot)
{
    ci_text_open(c->out, "{");
    if (is_complex_product(fold))
        add_chunks_and_rest(c, fold, slot);
    else
        add_chunks(c, fold, slot);
    if (has_counter(fold)) { /* first is where a block begins */
        ci_text_open(c->out, "if ((q + m) %% %d == 0) {", CI_BLOCK_CHAIN * fold->lanes);
        print_block(c, fold);
        ci_text_close(c->out);
    }
    ci_text_close(c->out);
}

void
ci_cpu_emit_fold_array(CiCpuEmitter *c, const CiCpuFold *fold, int slot)
{
    if (fold->plan == CI_PLAN_lanes && fold->is_pushed)
        push_array(c, fold, slot);
    else if (fold->plan == CI_PLAN_lanes)
        add_array(c, fold, slot);
    else
        print_steps(c, fold, ci_format(c->ctx, "tile%d[l]", slot), "q", "m", false);
}

bool
ci_cpu_fold_has_chunk(const CiCpuFold *fold, bool is_tail)
{
    return is_tail || fold->is_vector;
}

void
ci_cpu_emit_fold_chunk(CiCpuEmitter *c, const CiCpuFold *fold, bool is_tail)
{
    if (fold->is_vector)
        ci_text_line(c->out, "add_%s(f%d, chunk%d);", tag_of(c, fold), fold->id, fold->id);
    else if (is_tail)
        print_steps(c, fold, ci_format(c->ctx, "chunk%d[l]", fold->id), "k",
                    ci_format(c->ctx, "%d", fold->lanes), true);
}

void
ci_cpu_emit_fold_block(CiCpuEmitter *c, const CiCpuStage *s, const CiCpuFold *fold)
{
    if (fold->plan == CI_PLAN_lanes && has_counter(fold) && s->is_fused_fold)
        print_block(c, fold);
    else if (fold->plan == CI_PLAN_rows && s->lanes == CI_LANES_tile)
        close_block(c, fold);
}

/* ---- end ---- */

/* +0 for an empty float sum, and one zero for min and max. */
static const char *
finished(CiCpuEmitter *c, const CiCpuFold *fold, const char *value)
{
    const CiExpr *extent = ci_cpu_fold_extent(c, fold->nest);
    bool is_float = ci_dtype_is_float(fold->dtype),
         is_sum = ci_op_combine(fold->nest->fold) == CI_OP_add;
    if (fold->is_arg)
        return value;
    if (is_float && !fold->is_ordered)
        return ci_format(c->ctx, "%s + 0", value);
    if (!is_sum || extent->low > 0 || ci_dtype_is_integral(fold->dtype) ||
        fold->plan != CI_PLAN_serial)
        return value;
    const char *zero = is_float ? "0" : ci_format(c->ctx, "(%s){0, 0}", type_of(fold));
    return ci_format(c->ctx, "%s > 0 ? %s : %s", ci_emit_index_text(c->base, extent), value, zero);
}

static const char *
final_text(CiCpuEmitter *c, const CiCpuFold *fold)
{
    if (fold->plan == CI_PLAN_lanes)
        return ci_format(c->ctx, fold->is_arg ? "best%d[0]" : "y%d", fold->id);
    if (fold->is_arg)
        return ci_format(c->ctx, c->tile ? "best%d[l]" : "best%d", fold->id);
    return fold->plan == CI_PLAN_serial
               ? accumulator(c, fold)
               : ci_format(c->ctx, c->tile ? "f%d[l]" : "f%d[0]", fold->id);
}

/* A fold of a few values is serial, and each is in a lane of its own. */
static const char *
few_text(CiCpuEmitter *c, const CiCpuFold *fold)
{
    const CiExpr *extent = ci_cpu_fold_extent(c, fold->nest);
    if (c->is_long || extent->low > CI_SERIAL_LIMIT)
        return "";
    const char *length = ci_emit_index_text(c->base, extent);
    use_helper(c, fold, CI_HELPER_few);
    return ci_format(c->ctx, "%s <= %d ? few_%s(f%d, %s) : ", length, CI_SERIAL_LIMIT,
                     tag_of(c, fold), fold->id, length);
}

/* y3 = what the lanes come to, behind the blocks in the counter, if there are any, or +0. */
static void
finish_ordered(CiCpuEmitter *c, const CiCpuFold *fold)
{
    const char *tag = tag_of(c, fold), *type = type_of(fold);
    int id = fold->id, block = CI_BLOCK_CHAIN * fold->lanes;
    if (c->is_merging) {
        ci_text_line(c->out, "const %s y%d = finish_%s(stack%d, blocks%d, 0, %s);", type, id, tag,
                     id, id, identity_of(c, fold));
        return;
    }
    use_helper(c, fold, fold->is_vector ? CI_HELPER_vectors : CI_HELPER_pairwise);
    ci_text_line(c->out, "%s y%d = %s%s_%s(f%d);", type, id, few_text(c, fold),
                 fold->is_vector ? "tree" : "pairwise", tag, id);
    if (!has_counter(fold))
        return;
    const char *length = c->function == CI_FUNCTION_part
                             ? "last - first"
                             : ci_emit_index_text(c->base, ci_cpu_fold_extent(c, fold->nest));
    if (fold->is_pushed)
        length = ci_format(c->ctx, "count%d", id);
    use_helper(c, fold, CI_HELPER_counter);
    ci_text_line(c->out, "if ((uint64_t)(%s) - 1 >= %d)", length, block - 1);
    ci_text_line(c->out, "    y%d = finish_%s(stack%d, blocks%d, (%s) %% %d, y%d);", id, tag, id,
                 id, length, block, id);
}

static void
finish_lanes(CiCpuEmitter *c, const CiCpuFold *fold)
{
    const char *tag = tag_of(c, fold), *type = type_of(fold);
    int id = fold->id;
    if (fold->is_ordered) {
        finish_ordered(c, fold);
        return;
    }
    use_helper(c, fold, CI_HELPER_pairwise);
    if (!fold->is_arg) {
        ci_text_line(c->out, "const %s y%d = pairwise_%s(f%d);", type, id, tag, id);
        return;
    }
    const char *result =
        c->function == CI_FUNCTION_part ? ci_format(c->ctx, "const %s y%d = ", type, id) : "(void)";
    ci_text_line(c->out, "%spairwise_%s(f%d, best%d);", result, tag, id, id);
}

/* Statements that bring the accumulators of all lanes down to one value each. */
static void
finish(CiCpuEmitter *c, const CiCpuFold *fold)
{
    const char *tag = tag_of(c, fold);
    if (fold->plan == CI_PLAN_lanes) {
        finish_lanes(c, fold);
    } else if (fold->plan == CI_PLAN_short) {
        ci_text_line(c->out, "finish_short_%s(f%d, most%d);", tag, fold->id, fold->id);
    } else if (fold->plan == CI_PLAN_rows) {
        use_helper(c, fold, CI_HELPER_rows);
        ci_text_line(c->out, "finish_rows_%s(f%d, %d, stack%d, count%d, blocks%d, %d);", tag,
                     fold->id, fold->lanes, fold->id, fold->id, fold->id, tile_of(c));
    }
}

static void
store_partial(CiCpuEmitter *c, const CiCpuFold *fold)
{
    const char *lane = c->tile ? "[l]" : "[0]";
    const char *value = fold->plan == CI_PLAN_lanes ? ci_format(c->ctx, "y%d", fold->id)
                        : fold->plan == CI_PLAN_serial
                            ? accumulator(c, fold)
                            : ci_format(c->ctx, c->tile ? "f%d[l]" : "f%d[0]", fold->id);
    ci_text_line(c->out, "((%s *)(partial + %d))%s = %s;", type_of(fold), fold->partial_offset,
                 lane, value);
    if (fold->is_arg)
        ci_text_line(c->out, "((int64_t *)(partial + %d))%s = %s;",
                     fold->partial_offset + 16 * tile_of(c), lane, final_text(c, fold));
}

static void
store_result(CiCpuEmitter *c, const CiCpuFold *fold)
{
    const CiNest *nest = fold->nest;
    CiDtype dtype = fold->is_arg ? CI_DTYPE_i64 : fold->dtype;
    ci_text_line(c->out, "const %s result%d = %s;", ci_emit_type(dtype), fold->id,
                 finished(c, fold, final_text(c, fold)));
    ci_cpu_emit_store(c, nest->target, nest->store, dtype, ci_format(c->ctx, "result%d", fold->id));
}

void
ci_cpu_emit_fold_end(CiCpuEmitter *c, CiCpuStage *s, const CiCpuFold *fold)
{
    finish(c, fold);
    ci_text_open(c->out, c->tile ? "for (int64_t l = 0; l < m; l++) {" : "{");
    CiText body = ci_text_new(c->ctx), *saved = c->out;
    body.indent = c->out->indent;
    c->out = &body;
    if (c->function == CI_FUNCTION_part)
        store_partial(c, fold);
    else
        store_result(c, fold);
    c->out = saved;
    if (c->tile && ci_emit_mentions(body.data, s->lane_var->name))
        ci_text_line(c->out, "const int64_t %s = lo + l;", s->lane_var->name);
    ci_text_add(c->out, "%s", body.data);
    ci_text_close(c->out);
}

/* ---- split kernels ---- */

int
ci_cpu_partial_size(const CiCpuEmitter *c, const CiCpuFold *fold)
{
    return (fold->is_arg ? 32 : 16) * tile_of(c);
}

static void
merge_serial(CiCpuEmitter *c, const CiCpuFold *fold)
{
    const char *lane = c->tile ? "[l]" : "[0]", *at = fold->is_arg ? "int64_t at" : NULL;
    ci_text_line(c->out, "const %s x = ((const %s *)(partial + %d))%s;", type_of(fold),
                 type_of(fold), fold->partial_offset, lane);
    if (at) {
        ci_text_line(c->out, "const %s = ((const int64_t *)(partial + %d))%s;", at,
                     fold->partial_offset + 16 * tile_of(c), lane);
        step_arg(c, fold, "x", "at");
        return;
    }
    CiText text = ci_text_new(c->ctx);
    ci_emit_combine(c->base, &text, fold->nest->fold, fold->dtype, accumulator(c, fold), "x");
    ci_text_line(c->out, "%s = %s;", accumulator(c, fold), text.data);
}

static void
merge_ordered(CiCpuEmitter *c, const CiCpuFold *fold)
{
    if (fold->plan == CI_PLAN_lanes) {
        use_helper(c, fold, CI_HELPER_counter);
        ci_text_line(c->out, "blocks%d = carry_%s(stack%d, blocks%d, *(const %s *)(partial + %d));",
                     fold->id, tag_of(c, fold), fold->id, fold->id, type_of(fold),
                     fold->partial_offset);
        return;
    }
    use_helper(c, fold, CI_HELPER_rows);
    ci_text_line(c->out, "for (int64_t l = 0; l < %d; l++)", tile_of(c));
    ci_text_line(c->out, "    f%d[l] = ((const %s *)(partial + %d))[l];", fold->id, type_of(fold),
                 fold->partial_offset);
    ci_text_line(c->out, "blocks%d = block_rows_%s(f%d, 1, stack%d, blocks%d, %d);", fold->id,
                 tag_of(c, fold), fold->id, fold->id, fold->id, tile_of(c));
}

/* In the finishing function: `partials` points at the first chunk of this point, `stride` bytes
 * apart. */
void
ci_cpu_emit_fold_merge(CiCpuEmitter *c, CiCpuStage *s, const CiCpuFold *chunk_fold)
{
    CiCpuFold fold = *chunk_fold;
    if (!fold.is_ordered)
        fold.plan = CI_PLAN_serial;
    c->is_merging = true;
    if (fold.plan == CI_PLAN_lanes) {
        ci_text_line(c->out, "%s stack%d[%d];", type_of(&fold), fold.id, stack_depth(c, &fold));
        ci_text_line(c->out, "int64_t blocks%d = 0;", fold.id);
    } else {
        ci_cpu_emit_fold_start(c, s, &fold);
    }
    ci_text_open(c->out, "for (int64_t c = 0; c < chunks; c++) {");
    ci_text_line(c->out, "const char *partial = partials + c * stride;");
    if (fold.is_ordered) {
        merge_ordered(c, &fold);
    } else {
        ci_text_open(c->out, c->tile ? "for (int64_t l = 0; l < %d; l++) {" : "{", c->tile);
        merge_serial(c, &fold);
        ci_text_close(c->out);
    }
    ci_text_close(c->out);
    ci_cpu_emit_fold_end(c, s, &fold);
    c->is_merging = false;
}
