/* The functions of folds, printed once per (fold, element type).
 *
 * The binary counter: after b blocks the stack holds popcount(b) sums of 2^k blocks each, largest first; a new block merges with
 * as many of them as b has trailing ones. So the order of additions depends on the length alone. */
#include "device/cpu/emit_fold_text.h"

const char *
ci_cpu_fold_identity(CiCpuEmitter *c, CiOp fold, CiDtype dtype)
{
    CiOp like = fold == CI_OP_argmax ? CI_OP_max : fold == CI_OP_argmin ? CI_OP_min : fold;
    CiText text = ci_text_new(c->ctx);
    if (ci_dtype_class(dtype) == CI_CLASS_complex)
        ci_text_add(&text, "(%s)", ci_emit_type(dtype));
    ci_emit_const(&text, dtype, ci_op_identity(like, dtype));
    return text.data;
}

const char *
ci_cpu_fold_takes(CiCpuEmitter *c, CiOp fold, CiDtype dtype, const char *best, const char *value)
{
    const char *sign = fold == CI_OP_argmax ? ">" : "<";
    if (!ci_dtype_is_float(dtype))
        return ci_format(c->ctx, "%s %s %s", value, sign, best);
    return ci_format(c->ctx, "(%s %s %s) | ((%s != %s) & (%s == %s))", value, sign, best, value, value, best, best);
}

static const char *
combined(CiCpuEmitter *c, CiOp fold, CiDtype dtype, const char *earlier, const char *later)
{
    CiText text = ci_text_new(c->ctx);
    ci_emit_combine(c->base, &text, fold, dtype, earlier, later);
    return text.data;
}

static const char *
zero_of(CiCpuEmitter *c, CiOp fold, CiDtype dtype) /* of an empty fold */
{
    if (ci_op_combine(fold) != CI_OP_add)
        return ci_cpu_fold_identity(c, fold, dtype);
    return ci_dtype_class(dtype) == CI_CLASS_complex ? ci_format(c->ctx, "(%s){0, 0}", ci_emit_type(dtype)) : "0";
}

static void
print_carry(CiCpuEmitter *c, CiText *out, CiOp fold, CiDtype dtype, const char *tag)
{
    const char *type = ci_emit_type(dtype);
    ci_text_add(out, "\nstatic inline int64_t\ncarry_%s(%s *stack, int64_t blocks, %s x)\n{\n", tag, type, type);
    ci_text_add(out, "    int depth = __builtin_popcountll((uint64_t)blocks);\n");
    ci_text_add(out, "    for (int64_t k = blocks; k & 1; k >>= 1) {\n        depth--;\n        x = %s;\n    }\n",
                combined(c, fold, dtype, "stack[depth]", "x"));
    ci_text_add(out, "    stack[depth] = x;\n    return blocks + 1;\n}\n");
}

static void
print_pairwise(CiCpuEmitter *c, CiText *out, CiOp fold, CiDtype dtype)
{
    ci_text_add(out, "#pragma GCC unroll 1\n    for (int h = %d; h; h /= 2)\n        for (int l = 0; l < h; l++)\n", ci_lane_count(dtype) / 2);
    ci_text_add(out, "            f->lane[l] = %s;\n", combined(c, fold, dtype, "f->lane[l]", "f->lane[l + h]"));
}

/* argmax, argmin: the better value; of equals the smaller index. */
static void
print_pairwise_arg(CiCpuEmitter *c, CiText *out, CiOp fold, CiDtype dtype)
{
    const char *takes = ci_cpu_fold_takes(c, fold, dtype, "f->lane[l]", "f->lane[l + h]");
    const char *keeps = ci_cpu_fold_takes(c, fold, dtype, "f->lane[l + h]", "f->lane[l]");
    ci_text_add(out, "    for (int h = %d; h; h /= 2)\n        for (int l = 0; l < h; l++) {\n", ci_lane_count(dtype) / 2);
    ci_text_add(out, "            const int better = %s, worse = %s;\n", takes, keeps);
    ci_text_add(out, "            const int take = better | (!worse & (f->at[l + h] < f->at[l]));\n");
    ci_text_add(out, "            f->lane[l] = take ? f->lane[l + h] : f->lane[l];\n");
    ci_text_add(out, "            f->at[l] = take ? f->at[l + h] : f->at[l];\n        }\n");
}

static void
print_start(CiCpuEmitter *c, CiText *out, CiOp fold, CiDtype dtype, const char *tag)
{
    bool is_arg = ci_op_kind(fold) == CI_OPKIND_argreduce;
    int lanes = ci_lane_count(dtype);
    ci_text_add(out, "\nstatic inline void\nstart_%s(fold_%s *f, int64_t first)\n{\n", tag, tag);
    ci_text_add(out, "    f->count = 0;\n    f->blocks = 0;\n");
    ci_text_add(out, is_arg ? "    f->first = first;\n" : "    (void)first;\n");
    ci_text_add(out, "    for (int l = 0; l < %d; l++)\n        f->lane[l] = %s", lanes, ci_cpu_fold_identity(c, fold, dtype));
    ci_text_add(out, is_arg ? ", f->at[l] = first + l;\n}\n" : ";\n}\n");
}

static void
print_block(CiCpuEmitter *c, CiText *out, CiOp fold, CiDtype dtype, const char *tag)
{
    ci_text_add(out, "\nstatic inline void\nblock_%s(fold_%s *f)\n{\n", tag, tag);
    print_pairwise(c, out, fold, dtype);
    ci_text_add(out, "    f->blocks = carry_%s(f->stack, f->blocks, f->lane[0]);\n", tag);
    ci_text_add(out, "    for (int l = 0; l < %d; l++)\n        f->lane[l] = %s;\n}\n", ci_lane_count(dtype),
                ci_cpu_fold_identity(c, fold, dtype));
}

static void
print_finish(CiCpuEmitter *c, CiText *out, CiOp fold, CiDtype dtype, const char *tag)
{
    const char *type = ci_emit_type(dtype);
    ci_text_add(out, "\nstatic inline %s\nfinish_%s(fold_%s *f)\n{\n", type, tag, tag);
    if (ci_op_is_order_free(fold, dtype)) {
        if (ci_op_kind(fold) == CI_OPKIND_argreduce)
            print_pairwise_arg(c, out, fold, dtype);
        else
            print_pairwise(c, out, fold, dtype);
        ci_text_add(out, "    return f->lane[0];\n}\n");
        return;
    }
    ci_text_add(out, "    if (f->count %% %d)\n        block_%s(f);\n", CI_BLOCK_CHAIN * ci_lane_count(dtype), tag);
    ci_text_add(out, "    int depth = __builtin_popcountll((uint64_t)f->blocks);\n    if (!depth)\n        return %s;\n",
                zero_of(c, fold, dtype));
    ci_text_add(out, "    %s x = f->stack[--depth];\n    while (depth) {\n        depth--;\n        x = %s;\n    }\n    return x;\n}\n",
                type, combined(c, fold, dtype, "f->stack[depth]", "x"));
}

static void
print_lanes(CiCpuEmitter *c, CiText *out, CiOp fold, CiDtype dtype, const char *tag)
{
    bool is_arg = ci_op_kind(fold) == CI_OPKIND_argreduce, is_ordered = !ci_op_is_order_free(fold, dtype);
    const char *type = ci_emit_type(dtype);
    int lanes = ci_lane_count(dtype);
    ci_text_add(out, "\ntypedef struct fold_%s {\n    %s lane[%d] __attribute__((aligned(64)));\n", tag, type, lanes);
    if (is_arg)
        ci_text_add(out, "    int64_t at[%d] __attribute__((aligned(64)));\n    int64_t first;\n", lanes);
    if (is_ordered)
        ci_text_add(out, "    %s stack[48];\n", type);
    ci_text_add(out, "    int64_t count, blocks;\n} fold_%s;\n", tag);
    print_start(c, out, fold, dtype, tag);
    if (is_ordered) {
        print_carry(c, out, fold, dtype, tag);
        print_block(c, out, fold, dtype, tag);
    }
    print_finish(c, out, fold, dtype, tag);
}

static void
print_push_step(CiCpuEmitter *c, CiText *out, CiOp fold, CiDtype dtype, const char *lane, const char *indent)
{
    if (ci_op_kind(fold) != CI_OPKIND_argreduce) {
        ci_text_add(out, "%s    %s = %s;\n", indent, lane, combined(c, fold, dtype, lane, "t[k + l]"));
        return;
    }
    const char *at = ci_format(c->ctx, "f->at%s", lane + sizeof "f->lane" - 1);
    ci_text_add(out, "%s    const int take = %s;\n", indent, ci_cpu_fold_takes(c, fold, dtype, lane, "t[k + l]"));
    ci_text_add(out, "%s    %s = take ? t[k + l] : %s;\n", indent, lane, lane);
    ci_text_add(out, "%s    %s = take ? f->first + f->count + l : %s;\n", indent, at, at);
}

/* Takes m values in order, wherever the last call stopped. */
static void
print_push(CiCpuEmitter *c, CiText *out, CiOp fold, CiDtype dtype, const char *tag)
{
    int lanes = ci_lane_count(dtype);
    ci_text_add(out, "\nstatic inline void\npush_%s(fold_%s *f, const %s *t, int64_t m)\n{\n", tag, tag, ci_emit_type(dtype));
    ci_text_add(out, "    for (int64_t k = 0; k < m;) {\n        const int64_t at = f->count %% %d;\n", lanes);
    ci_text_add(out, "        const int64_t w = m - k < %d - at ? m - k : %d - at;\n        if (w == %d) {\n", lanes, lanes, lanes);
    ci_text_add(out, "#pragma omp simd\n            for (int64_t l = 0; l < %d; l++) {\n", lanes);
    print_push_step(c, out, fold, dtype, "f->lane[l]", "            ");
    ci_text_add(out, "            }\n        } else {\n            for (int64_t l = 0; l < w; l++) {\n");
    print_push_step(c, out, fold, dtype, "f->lane[at + l]", "            ");
    ci_text_add(out, "            }\n        }\n        k += w;\n        f->count += w;\n");
    if (!ci_op_is_order_free(fold, dtype))
        ci_text_add(out, "        if (f->count %% %d == 0)\n            block_%s(f);\n", CI_BLOCK_CHAIN * lanes, tag);
    ci_text_add(out, "    }\n}\n");
}

static void
print_rows(CiCpuEmitter *c, CiText *out, CiOp fold, CiDtype dtype, const char *tag)
{
    const char *type = ci_emit_type(dtype);
    ci_text_add(out, "\nstatic inline int64_t\nblock_rows_%s(%s *f, int lanes, %s *stack, int64_t blocks, int tile)\n{\n", tag, type, type);
    ci_text_add(out, "    for (int h = lanes / 2; h; h /= 2)\n        for (int l = 0; l < h * tile; l++)\n            f[l] = %s;\n",
                combined(c, fold, dtype, "f[l]", "f[l + h * tile]"));
    ci_text_add(out, "    int depth = __builtin_popcountll((uint64_t)blocks);\n    for (int64_t k = blocks; k & 1; k >>= 1) {\n");
    ci_text_add(out, "        depth--;\n        for (int l = 0; l < tile; l++)\n            f[l] = %s;\n    }\n",
                combined(c, fold, dtype, "stack[depth * tile + l]", "f[l]"));
    ci_text_add(out, "    for (int l = 0; l < tile; l++)\n        stack[depth * tile + l] = f[l];\n");
    ci_text_add(out, "    for (int l = 0; l < lanes * tile; l++)\n        f[l] = %s;\n    return blocks + 1;\n}\n",
                ci_cpu_fold_identity(c, fold, dtype));
    ci_text_add(out, "\nstatic inline void\nfinish_rows_%s(%s *f, int lanes, %s *stack, int64_t count, int64_t blocks, int tile)\n{\n",
                tag, type, type);
    ci_text_add(out, "    if (count %% (%d * lanes))\n        blocks = block_rows_%s(f, lanes, stack, blocks, tile);\n", CI_BLOCK_CHAIN, tag);
    ci_text_add(out, "    int depth = __builtin_popcountll((uint64_t)blocks) - 1;\n    for (int l = 0; l < tile; l++)\n");
    ci_text_add(out, "        f[l] = depth < 0 ? %s : stack[depth * tile + l];\n", zero_of(c, fold, dtype));
    ci_text_add(out, "    while (depth-- > 0)\n        for (int l = 0; l < tile; l++)\n            f[l] = %s;\n}\n",
                combined(c, fold, dtype, "stack[depth * tile + l]", "f[l]"));
}

void
ci_cpu_emit_fold_helpers(CiCpuEmitter *c, CiText *out)
{
    for (int op = 0; op < CI_OP_COUNT; op++) {
        for (int k = 0; k < CI_DTYPE_COUNT; k++) {
            CiDtype dtype = (CiDtype)k;
            const char *tag = ci_format(c->ctx, "%s_%s", ci_op_name((CiOp)op), ci_dtype_name(dtype));
            if (c->has_fold[op][k] & CI_HELPER_lanes)
                print_lanes(c, out, (CiOp)op, dtype, tag);
            if (c->has_fold[op][k] & CI_HELPER_push)
                print_push(c, out, (CiOp)op, dtype, tag);
            if (c->has_fold[op][k] & CI_HELPER_rows)
                print_rows(c, out, (CiOp)op, dtype, tag);
        }
    }
}
