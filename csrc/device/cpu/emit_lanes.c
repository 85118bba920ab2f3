/* The code of one point of the serial axes: first what is the same for all lanes, then the loops
 * over lanes, segment by segment. */
#include "device/cpu/emit_cpu.h"

#include "device/cpu/emit_fold_text.h"

static void
print_pragma(CiCpuEmitter *c, const CiCpuStage *s, bool is_serial)
{
    if (!is_serial && !s->has_hazard)
        ci_text_line(c->out, "#pragma omp simd");
}

/* for (l…) { const int64_t var = base + l; body }; body was printed one level deeper. */
static void
print_lane_loop(CiCpuEmitter *c, const CiCpuStage *s, const char *count, const char *base,
                const char *body, bool is_serial)
{
    if (!*body)
        return;
    print_pragma(c, s, is_serial);
    ci_text_line(c->out, "for (int64_t l = 0; l < %s; l++) {", count);
    if (ci_emit_mentions(body, s->lane_var->name))
        ci_text_line(c->out, "    const int64_t %s = %s + l;", s->lane_var->name, base);
    ci_text_add(c->out, "%s", body);
    ci_text_line(c->out, "}");
}

/* ---- whole lanes ---- */

static void
print_arrays(CiCpuEmitter *c, const CiCpuStage *s, int size)
{
    for (int k = 0; k < s->nslots; k++)
        ci_text_line(c->out, "%s tile%d[%d] __attribute__((aligned(64)));",
                     ci_emit_type(s->slots[k]), k, size);
}

static void
print_scan_boundary(CiCpuEmitter *c, const CiCpuStage *s, int value, const char *base)
{
    const CiValue *scan = &s->code->values[value];
    const CiNest *nest = s->stage->nests[scan->nest];
    const char *from = ci_format(c->ctx, "tile%d[l]", s->slot[scan->op.args[0]]),
               *state = ci_format(c->ctx, "scan%d", scan->nest);
    CiText text = ci_text_new(c->ctx);
    ci_emit_combine(c->base, &text, nest->fold, scan->op.dtype, state, "x");
    ci_text_line(c->out, "for (int64_t l = 0; l < m; l++) {");
    ci_text_line(c->out, "    const %s x = %s;", ci_emit_type(scan->op.dtype), from);
    ci_text_line(c->out, "    %s = %s + l > 0 ? %s : x;", state, base, text.data);
    ci_text_line(c->out, "    tile%d[l] = %s;", s->slot[value], state);
    ci_text_line(c->out, "}");
}

static void
print_math_boundary(CiCpuEmitter *c, const CiCpuStage *s, int value)
{
    const CiScalar *op = &s->code->values[value].op;
    const char *result = ci_cpu_slot_name(c, s, value);
    ci_cpu_emit_math_call(c, op->op, ci_dtype_compute(op->dtype),
                          ci_cpu_slot_name(c, s, op->args[0]),
                          op->nargs > 1 ? ci_cpu_slot_name(c, s, op->args[1]) : NULL, result, "m");
    if (op->dtype != CI_DTYPE_f16)
        return;
    ci_text_line(c->out, "#pragma omp simd");
    ci_text_line(c->out, "for (int64_t l = 0; l < m; l++)");
    ci_text_line(c->out, "    %s[l] = %s(%s[l]);", result,
                 ci_emit_use(c->base, "round_half", CI_DTYPE_f32), result);
}

/* Between two segments: folds of arrays, then calls and scans whose results the next segment reads.
 */
static void
print_boundary(CiCpuEmitter *c, CiCpuStage *s, int number, bool has_fold_arrays, const char *base)
{
    for (int k = 0; k < s->nfolds && has_fold_arrays; k++)
        if (s->segment[s->folds[k].value] == number)
            ci_cpu_emit_fold_array(c, &s->folds[k], s->slot[s->folds[k].value]);
    for (int k = 0; k < s->code->nvalues; k++) {
        const CiScalar *op = &s->code->values[k].op;
        if (!s->code->values[k].is_needed || s->is_invariant[k] || s->segment[k] != number + 1 ||
            ci_cpu_is_inline_scan(s, k))
            continue;
        if (ci_op_kind(op->op) == CI_OPKIND_scan)
            print_scan_boundary(c, s, k, base);
        else if (ci_op_kind(op->op) == CI_OPKIND_math)
            print_math_boundary(c, s, k);
    }
}

/* The lanes of the block that starts at q: a plain number where it can be, which spares the
 * compiler all remainders. */
static void
print_width(CiCpuEmitter *c, const CiCpuStage *s, const char *to, int block)
{
    int64_t length = s->lane_extent->value;
    bool is_whole = s->lane_extent->kind == CI_EXPR_const && s->lanes == CI_LANES_inner &&
                    c->function != CI_FUNCTION_part;
    if (is_whole && (length % block == 0 || length < block))
        ci_text_line(c->out, "const int64_t m = %lld;",
                     (long long)(length < block ? length : block));
    else
        ci_text_line(c->out, "const int64_t m = %s - q < %d ? %s - q : %d;", to, block, to, block);
}

/* One unit that is long by itself asks now and then whether to go on, at lane `end`. */
static void
print_poll(CiCpuEmitter *c, const CiCpuStage *s, const char *end)
{
    if (s->lanes != CI_LANES_inner || c->function == CI_FUNCTION_part || c->is_tree ||
        s->lane_extent->high <= CI_CPU_POLL_LANES)
        return;
    ci_text_line(c->out, "if (%s %% %d == 0 && run->poll && run->poll(run->poll_arg))", end,
                 CI_CPU_POLL_LANES);
    ci_text_line(c->out, "    return %d;", (int)CI_ERR_INTERRUPTED);
}

/* Opens the case that all which a segment packs has room for a whole block. */
static bool
open_room(CiCpuEmitter *c, const CiCpuStage *s, int number)
{
    CiText test = ci_text_new(c->ctx);
    for (int n = 0; n < s->stage->nnests; n++) {
        int value = s->code->results[n];
        const CiScalar *op = &s->code->values[value].op;
        if (op->op == CI_OP_pack && s->segment[value] == number)
            ci_text_add(&test, "%s%s + m <= %s", test.length ? " && " : "", op->index->name,
                        ci_emit_index_text(c->base, op->index->limit));
    }
    if (!test.length || s->lanes == CI_LANES_tile)
        return false;
    ci_text_open(c->out, "if (%s) {", test.data);
    return true;
}

/* Blocks of lanes, segment by segment, with arrays between. */
static void
print_blocks(CiCpuEmitter *c, CiCpuStage *s, const char *from, const char *to)
{
    bool is_tile = s->lanes == CI_LANES_tile, has_fold_arrays = !is_tile && s->nfolds > 0;
    if (!is_tile) {
        ci_text_open(c->out, "for (int64_t q = %s; q < %s; q += %d) {", from, to, CI_CPU_BLOCK);
        print_width(c, s, to, CI_CPU_BLOCK);
        print_poll(c, s, ci_format(c->ctx, "(q + %d)", CI_CPU_BLOCK));
    }
    for (int k = 0; k < s->nsegments; k++) {
        bool packs = open_room(c, s, k);
        char *body = ci_cpu_segment_text(c, s, k, is_tile, packs, c->out->indent + 4);
        print_lane_loop(c, s, "m", is_tile ? "lo" : "q", body, false);
        if (packs) {
            c->out->indent -= 4;
            ci_text_open(c->out, "} else {");
            body = ci_cpu_segment_text(c, s, k, is_tile, false, c->out->indent + 4);
            print_lane_loop(c, s, "m", "q", body, false);
            ci_text_close(c->out);
        }
        print_boundary(c, s, k, has_fold_arrays, is_tile ? "lo" : "q");
    }
    if (!is_tile) {
        ci_text_close(c->out);
    }
}

/* One loop over the axis itself. */
static void
print_plain(CiCpuEmitter *c, CiCpuStage *s, const char *from, const char *to)
{
    char *body = ci_cpu_segment_text(c, s, 0, true, false, c->out->indent + 4);
    const char *var = s->lane_var->name;
    if (!*body)
        return;
    if (s->is_narrow) { /* a bound with a name is not computed in every trip */
        ci_text_line(c->out, "const int64_t to_%s = %s;", var, to);
        to = ci_format(c->ctx, "to_%s", var);
    }
    print_pragma(c, s, s->nfolds > 0 || s->is_narrow);
    ci_text_line(c->out, "for (int64_t %s = %s; %s < %s; %s++) {", var, from, var, to, var);
    if (s->is_narrow)
        ci_text_line(c->out, "    CI_NO_VECTOR;");
    ci_text_add(c->out, "%s", body);
    ci_text_line(c->out, "}");
}

/* Can a compiler make a vector loop of lanes that are not all there? It has masks, and everything
 * is as wide as the folds. */
static bool
can_mask(CiCpuEmitter *c, const CiCpuStage *s)
{
    const CiExpr *coef, *rest;
    int size = ci_dtype_size(s->folds[0].dtype);
    bool can = c->level >= CI_CPU_V3 && !s->has_hazard;
    for (int k = 0; k < s->code->nvalues && can; k++) {
        const CiScalar *op = &s->code->values[k].op;
        if (!s->code->values[k].is_needed || s->is_invariant[k])
            continue;
        can = op->dtype == CI_DTYPE_bool ||
              (ci_dtype_class(op->dtype) == CI_CLASS_float && ci_dtype_size(op->dtype) == size);
        if (op->op == CI_OP_load)
            can = can && op->dtype != CI_DTYPE_bool &&
                  ci_expr_split_linear(c->sym, op->index, s->lane_var, &coef, &rest) &&
                  ci_expr_equals_const(coef, 1);
    }
    for (int n = 0; n < s->stage->nnests; n++)
        can = can && ci_nest_is_fold(s->stage->nests[n]);
    return can;
}

/* from: the first lane that nothing else fills, in a rest of a chunk. */
static void
print_chunk_arrays(CiCpuEmitter *c, const CiCpuStage *s, int from)
{
    for (int k = 0; k < s->nfolds; k++) {
        const CiCpuFold *fold = &s->folds[k];
        if (!ci_cpu_fold_has_chunk(fold, s->is_tail))
            continue;
        ci_text_line(c->out, "%s chunk%d[%d] __attribute__((aligned(64)));",
                     ci_emit_type(fold->dtype), fold->id, fold->lanes);
        if (!s->is_tail || from == fold->lanes)
            continue;
        ci_text_line(c->out, "#pragma omp simd");
        ci_text_line(c->out, "for (int64_t l = %d; l < %d; l++)", from, fold->lanes);
        ci_text_line(c->out, "    chunk%d[l] = %s;", fold->id,
                     ci_cpu_fold_identity(c, fold->nest->fold, fold->dtype));
    }
}

/* The lanes of whole vectors that hold `left` of them. */
static int
lanes_of_vectors(const CiCpuEmitter *c, const CiCpuStage *s, int left)
{
    int vector = ci_cpu_vector_lanes(c, s->folds[0].dtype);
    return (left + vector - 1) / vector * vector;
}

/* Every lane, and in those behind the end identities. */
static void
print_masked_lanes(CiCpuEmitter *c, CiCpuStage *s, const char *left, int lanes)
{
    const char *type = ci_dtype_size(s->folds[0].dtype) == 4 ? "int32_t" : "int64_t";
    CiText body = ci_text_new(c->ctx);
    body.indent = c->out->indent + 4;
    for (int k = 0; k < s->nfolds; k++)
        ci_text_line(&body, "%s lane%d = %s;", ci_emit_type(s->folds[k].dtype), s->folds[k].id,
                     ci_cpu_fold_identity(c, s->folds[k].nest->fold, s->folds[k].dtype));
    ci_text_line(&body, "if ((%s)l < (%s)(%s)) {", type, type, left);
    ci_text_add(&body, "%s", ci_cpu_segment_text(c, s, 0, true, false, body.indent + 4));
    ci_text_line(&body, "}");
    for (int k = 0; k < s->nfolds; k++)
        ci_text_line(&body, "chunk%d[l] = lane%d;", s->folds[k].id, s->folds[k].id);
    print_lane_loop(c, s, ci_format(c->ctx, "%d", lanes), "k", body.data, false);
}

/* As many lanes as are known to be left: whole vectors as they are, others behind a mask whose end
 * compilers do not know, for they make branches of one that they do. */
static void
print_known_lanes(CiCpuEmitter *c, CiCpuStage *s, int left)
{
    int lanes = lanes_of_vectors(c, s, left);
    s->is_masked = lanes > left && can_mask(c, s);
    print_chunk_arrays(c, s, s->is_masked ? lanes : 0);
    if (s->is_masked) {
        print_masked_lanes(c, s, ci_cpu_hide(c, left), lanes);
    } else {
        print_lane_loop(c, s, ci_format(c->ctx, "%d", left), "k",
                        ci_cpu_segment_text(c, s, 0, true, false, c->out->indent + 4), false);
    }
}

static void
print_unknown_lanes(CiCpuEmitter *c, CiCpuStage *s, const char *left)
{
    int lanes = s->folds[0].lanes;
    bool is_short = s->lane_extent->high < 16 * lanes;
    if (s->lane_extent->high < lanes)
        lanes = lanes_of_vectors(c, s, (int)s->lane_extent->high);
    s->is_masked = can_mask(c, s);
    print_chunk_arrays(c, s, s->is_masked ? lanes : 0);
    if (s->is_masked) {
        print_masked_lanes(c, s, left, lanes);
        return;
    }
    char *body = ci_cpu_segment_text(c, s, 0, true, false, c->out->indent + 4);
    if (!is_short)
        body = ci_format(c->ctx, "%*sCI_NO_VECTOR;\n%s", c->out->indent + 4, "", body);
    print_lane_loop(c, s, left, "k", body, !is_short);
}

/* There is a rest, and nothing else. */
static bool
is_part_of_chunk(const CiCpuStage *s)
{
    return s->lane_extent->low > 0 && s->lane_extent->high < s->folds[0].lanes;
}

/* Less than a chunk; no vector loop where there is nearly none of it in a row. */
static void
print_tail(CiCpuEmitter *c, CiCpuStage *s, const char *to)
{
    int lanes = s->folds[0].lanes;
    bool is_known = s->lane_extent->kind == CI_EXPR_const && c->function != CI_FUNCTION_part;
    /* The same for all rows, so masks are made before them. */
    const char *left = s->lane_extent == c->kernel->row ? ci_format(c->ctx, "rest%d", lanes)
                                                        : ci_format(c->ctx, "%s - k", to);
    ci_text_open(c->out, is_known || is_part_of_chunk(s) ? "{" : "if (%s > 0) {", left);
    s->is_tail = true;
    if (is_known)
        print_known_lanes(c, s, (int)(s->lane_extent->value % lanes));
    else
        print_unknown_lanes(c, s, left);
    for (int k = 0; k < s->nfolds; k++)
        ci_cpu_emit_fold_chunk(c, &s->folds[k], true);
    s->is_tail = s->is_masked = false;
    ci_text_close(c->out);
}

/* Whole chunks, up to the lane `stop`. */
static void
print_chunks(CiCpuEmitter *c, CiCpuStage *s, const char *stop)
{
    int lanes = s->folds[0].lanes;
    ci_text_open(c->out, "for (; k + %d <= %s; k += %d) {", lanes, stop, lanes);
    print_chunk_arrays(c, s, 0);
    print_lane_loop(c, s, ci_format(c->ctx, "%d", lanes), "k",
                    ci_cpu_segment_text(c, s, 0, true, false, c->out->indent + 4), false);
    for (int k = 0; k < s->nfolds; k++)
        ci_cpu_emit_fold_chunk(c, &s->folds[k], false);
    ci_text_close(c->out);
}

/* What is to be done behind a whole block. */
static char *
print_blocks_end(CiCpuEmitter *c, CiCpuStage *s, int indent)
{
    CiText body = ci_text_new(c->ctx), *saved = c->out;
    body.indent = indent;
    c->out = &body;
    for (int k = 0; k < s->nfolds; k++)
        ci_cpu_emit_fold_block(c, s, &s->folds[k]);
    print_poll(c, s, "k");
    c->out = saved;
    return body.data;
}

/* Chunks of as many lanes as the folds have accumulators: whole blocks of them, what is less than a
 * block, and what is less than a chunk. So a short row meets no call, and keeps all it has in
 * registers. */
static void
print_fused_folds(CiCpuEmitter *c, CiCpuStage *s, const char *from, const char *to)
{
    int lanes = s->folds[0].lanes, block = CI_BLOCK_CHAIN * lanes;
    const CiExpr *extent = s->lane_extent;
    bool is_known = extent->kind == CI_EXPR_const && c->function != CI_FUNCTION_part;
    const char *end = print_blocks_end(c, s, c->out->indent + 4);
    ci_text_line(c->out, "int64_t k = %s;", from);
    if (*end) {
        ci_text_open(c->out, "while (k + %d <= %s) {", block, to);
        ci_text_line(c->out, "const int64_t stop = k + %d;", block);
        print_chunks(c, s, "stop");
        ci_text_add(c->out, "%s", end);
        ci_text_close(c->out);
    }
    if ((!*end || !is_known || extent->value % block) && !is_part_of_chunk(s))
        print_chunks(c, s, to);
    if (extent->kind != CI_EXPR_const || extent->value % lanes)
        print_tail(c, s, to);
}

static bool
has_lane_folds(const CiCpuStage *s)
{
    for (int k = 0; k < s->nfolds; k++)
        if (s->folds[k].plan == CI_PLAN_lanes)
            return true;
    return false;
}

/* Of elements a known, small stride apart gcc makes vectors with shuffles, the last one element by
 * element; a tile has few, and elements that folds choose from cost a wrong guess each. */
static bool
hides_strides(const CiCpuStage *s)
{
    for (int k = 0; k < s->nfolds && s->lanes == CI_LANES_tile; k++)
        if (s->folds[k].is_arg || (!s->folds[k].is_ordered && ci_dtype_is_float(s->folds[k].dtype)))
            return true;
    return false;
}

void
ci_cpu_emit_lanes(CiCpuEmitter *c, CiCpuStage *s, const char *from, const char *to)
{
    int size = s->lanes == CI_LANES_tile && c->tile > 16 ? c->tile
               : s->lanes == CI_LANES_tile               ? 16
                                                         : CI_CPU_BLOCK;
    print_arrays(c, s, size);
    ci_cpu_emit_invariants(c, s, size);
    c->apart = hides_strides(s) ? s->lane_var : NULL;
    if (s->lanes == CI_LANES_none) {
        for (int n = 0; n < s->stage->nnests; n++) {
            if (s->code->values[s->code->results[n]].is_needed)
                ci_cpu_emit_sink(c, s, n, false);
        }
        return;
    }
    if (s->is_fused_fold) {
        print_fused_folds(c, s, from, to);
    } else if (s->nsegments > 1 || s->lanes == CI_LANES_tile || has_lane_folds(s)) {
        print_blocks(c, s, from, to);
    } else {
        print_plain(c, s, from, to);
    }
    c->apart = NULL;
    for (int k = 0; k < s->nfolds && s->lanes == CI_LANES_tile; k++)
        ci_cpu_emit_fold_block(c, s, &s->folds[k]);
}
