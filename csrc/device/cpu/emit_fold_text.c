/* The functions of folds, printed once per (fold, element type).
 *
 * The binary counter: after b blocks the stack holds popcount(b) sums of 2^k blocks each, largest
 * first; a new block merges with as many of them as b has trailing ones. So the order of additions
 * depends on the length alone. */
#include "device/cpu/emit_fold_text.h"

/* These run once per block or row: small code costs less to compile than it would gain. */
#define COLD "static CI_COLD "

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
    return ci_format(c->ctx, "(%s %s %s) | ((%s != %s) & (%s == %s))", value, sign, best, value,
                     value, best, best);
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
    return ci_dtype_class(dtype) == CI_CLASS_complex
               ? ci_format(c->ctx, "(%s){0, 0}", ci_emit_type(dtype))
               : "0";
}

/* Lanes l and l + h for h = L/2, L/4 … 1: vectors while there are any, then one by one. */
static void
print_levels(CiText *out, int lanes, const char *const *lines, int count)
{
    int h = lanes / 2;
    for (; h >= 4; h /= 2) {
        ci_text_add(
            out,
            "#pragma omp simd\n    for (int l = 0; l < %d; l++) {\n        const int h = %d;\n", h,
            h);
        for (int k = 0; k < count; k++)
            ci_text_add(out, "        %s\n", lines[k]);
        ci_text_add(out, "    }\n");
    }
    ci_text_add(out, "    for (int h = %d; h; h /= 2)\n        for (int l = 0; l < h; l++) {\n", h);
    for (int k = 0; k < count; k++)
        ci_text_add(out, "            %s\n", lines[k]);
    ci_text_add(out, "        }\n");
}

static void
print_pairwise(CiCpuEmitter *c, CiText *out, CiOp fold, CiDtype dtype, const char *tag)
{
    const char *type = ci_emit_type(dtype);
    const char *lines[] = {
        ci_format(c->ctx, "f[l] = %s;", combined(c, fold, dtype, "f[l]", "f[l + h]"))};
    ci_text_add(out, "\n" COLD "%s\npairwise_%s(%s *f)\n{\n", type, tag, type);
    print_levels(out, ci_lane_count(dtype), lines, 1);
    ci_text_add(out, "    return f[0];\n}\n");
}

#define INLINE "static inline __attribute__((always_inline)) "

/* The lanes of a vector: halves while they are vectors, then one by one. */
static void
print_halves(CiCpuEmitter *c, CiText *out, CiOp fold, CiDtype dtype)
{
    const char *type = ci_emit_type(dtype);
    int size = (int)ci_dtype_size(dtype), width = ci_cpu_vector_lanes(c, dtype);
    for (; width * size > 16; width /= 2) {
        const char *half = ci_format(c->ctx, "((const half%d *)&v%d)", width / 2, width);
        ci_text_add(out, "    typedef %s half%d __attribute__((vector_size(%d)));\n", type,
                    width / 2, width * size / 2);
        ci_text_add(out, "    const half%d v%d = %s;\n", width / 2, width / 2,
                    combined(c, fold, dtype, ci_format(c->ctx, "%s[0]", half),
                             ci_format(c->ctx, "%s[1]", half)));
    }
    const char *lanes[4];
    for (int l = 0; l < width; l++)
        lanes[l] = ci_format(c->ctx, "v%d[%d]", width, l);
    for (int h = width / 2; h; h /= 2)
        for (int l = 0; l < h; l++)
            lanes[l] = combined(c, fold, dtype, lanes[l], lanes[l + h]);
    ci_text_add(out, "    return %s;\n}\n", lanes[0]);
}

/* Accumulators that are vectors: statements without a loop, so that compilers keep them in
 * registers. */
static void
print_vectors(CiCpuEmitter *c, CiText *out, CiOp fold, CiDtype dtype, const char *tag)
{
    const char *type = ci_emit_type(dtype), *vector = ci_cpu_vector_type(dtype),
               *identity = ci_cpu_fold_identity(c, fold, dtype), *sums[CI_MOST_VECTORS];
    int width = ci_cpu_vector_lanes(c, dtype), count = ci_lane_count(dtype) / width;
    ci_text_add(out, "\n" INLINE "void\nstart_%s(%s *f)\n{\n", tag, vector);
    for (int k = 0; k < count; k++) /* less +0, which keeps the sign of a zero */
        ci_text_add(out, "    f[%d] = %s - (%s){0};\n", k, identity, vector);
    ci_text_add(out, "}\n\n" INLINE "void\nadd_%s(%s *f, const %s *x)\n{\n", tag, vector, type);
    for (int k = 0; k < count; k++) {
        sums[k] = ci_format(c->ctx, "f[%d]", k);
        ci_text_add(
            out, "    f[%d] = %s;\n", k,
            combined(c, fold, dtype, sums[k], ci_format(c->ctx, "((const %s *)x)[%d]", vector, k)));
    }
    ci_text_add(out, "}\n\n" INLINE "%s\ntree_%s(const %s *f)\n{\n", type, tag, vector);
    for (int h = count / 2; h; h /= 2)
        for (int k = 0; k < h; k++)
            sums[k] = combined(c, fold, dtype, sums[k], sums[k + h]);
    ci_text_add(out, "    const %s v%d = %s;\n", vector, width, sums[0]);
    print_halves(c, out, fold, dtype);
}

/* The first values, each in a lane, one after another; lanes have constant numbers, so that
 * accumulators stay registers. */
static void
print_few(CiCpuEmitter *c, CiText *out, CiOp fold, CiDtype dtype, const char *tag)
{
    const char *type = ci_emit_type(dtype);
    ci_text_add(out, "\n" INLINE "%s\nfew_%s(const void *lanes, int64_t count)\n{\n", type, tag);
    ci_text_add(out, "    const %s *const f = lanes;\n", type);
    ci_text_add(out, "    %s x = f[0];\n", type);
    for (int k = 1; k < CI_SERIAL_LIMIT; k++)
        ci_text_add(out, "    x = count > %d ? %s : x;\n", k,
                    combined(c, fold, dtype, "x", ci_format(c->ctx, "f[%d]", k)));
    ci_text_add(out, "    return x;\n}\n");
}

/* Accumulators 0 to `most` of each lane of a tile. */
static void
print_short(CiCpuEmitter *c, CiText *out, CiOp fold, CiDtype dtype, const char *tag)
{
    const char *type = ci_emit_type(dtype);
    ci_text_add(out,
                "\nstatic __attribute__((noinline)) void\nstart_short_%s(%s *f, int64_t most)\n{\n",
                tag, type);
    ci_text_add(out, "    for (int64_t l = 0; l < (most + 1) * %d; l++)\n        f[l] = %s;\n}\n",
                CI_STAGE_TILE, ci_cpu_fold_identity(c, fold, dtype));
    ci_text_add(
        out, "\nstatic __attribute__((noinline)) void\nfinish_short_%s(%s *f, int64_t most)\n{\n",
        tag, type);
    ci_text_add(
        out,
        "    for (int64_t h = (most + 1) / 2; h; h /= 2)\n#pragma omp simd\n        for "
        "(int64_t l = 0; l < h * %d; l++)\n            f[l] = %s;\n}\n",
        CI_STAGE_TILE,
        combined(c, fold, dtype, "f[l]", ci_format(c->ctx, "f[l + h * %d]", CI_STAGE_TILE)));
}

/* argmax, argmin: the better value; of equals the smaller index. */
static void
print_pairwise_arg(CiCpuEmitter *c, CiText *out, CiOp fold, CiDtype dtype, const char *tag)
{
    const char *type = ci_emit_type(dtype);
    const char *lines[] = {
        ci_format(c->ctx, "const int better = %s;",
                  ci_cpu_fold_takes(c, fold, dtype, "f[l]", "f[l + h]")),
        ci_format(c->ctx, "const int worse = %s;",
                  ci_cpu_fold_takes(c, fold, dtype, "f[l + h]", "f[l]")),
        "const int take = better | (!worse & (at[l + h] < at[l]));",
        "f[l] = take ? f[l + h] : f[l];",
        "at[l] = take ? at[l + h] : at[l];",
    };
    ci_text_add(out, "\n" COLD "%s\npairwise_%s(%s *f, int64_t *at)\n{\n", type, tag, type);
    print_levels(out, ci_lane_count(dtype), lines, 5);
    ci_text_add(out, "    return f[0];\n}\n");
}

/* Folds the lanes of a finished block, merges it into the counter, and starts the next. */
static void
print_counter(CiCpuEmitter *c, CiText *out, CiOp fold, CiDtype dtype, const char *tag)
{
    const char *type = ci_emit_type(dtype);
    ci_text_add(out, "\n" COLD "int64_t\ncarry_%s(%s *stack, int64_t blocks, %s x)\n{\n", tag, type,
                type);
    ci_text_add(out, "    int depth = __builtin_popcountll((uint64_t)blocks);\n");
    ci_text_add(out,
                "    for (int64_t k = blocks; k & 1; k >>= 1) {\n        depth--;\n        x = "
                "%s;\n    }\n",
                combined(c, fold, dtype, "stack[depth]", "x"));
    ci_text_add(out, "    stack[depth] = x;\n    return blocks + 1;\n}\n");
    ci_text_add(out, "\n" COLD "%s\nfinish_%s(%s *stack, int64_t blocks, int64_t rest, %s x)\n{\n",
                type, tag, type, type);
    ci_text_add(out,
                "    if (rest)\n        blocks = carry_%s(stack, blocks, x);\n    int depth = "
                "__builtin_popcountll((uint64_t)blocks);\n    if (!depth)\n        return %s;\n",
                tag, zero_of(c, fold, dtype));
    ci_text_add(out,
                "    x = stack[--depth];\n    while (depth) {\n        depth--;\n        x = "
                "%s;\n    }\n    return x;\n}\n",
                combined(c, fold, dtype, "stack[depth]", "x"));
}

static void
print_block(CiCpuEmitter *c, CiText *out, CiOp fold, CiDtype dtype, const char *tag)
{
    const char *type = ci_emit_type(dtype);
    ci_text_add(out, "\n" COLD "int64_t\nblock_%s(%s *f, %s *stack, int64_t blocks)\n{\n", tag,
                type, type);
    ci_text_add(out, "    const %s x = pairwise_%s(f);\n", type, tag);
    ci_text_add(out, "#pragma omp simd\n    for (int l = 0; l < %d; l++)\n        f[l] = %s;\n",
                ci_lane_count(dtype), ci_cpu_fold_identity(c, fold, dtype));
    ci_text_add(out, "    return carry_%s(stack, blocks, x);\n}\n", tag);
}

static void
print_push_step(CiCpuEmitter *c, CiText *out, CiOp fold, CiDtype dtype, const char *lane)
{
    if (ci_op_kind(fold) != CI_OPKIND_argreduce) {
        ci_text_add(out, "                f[%s] = %s;\n", lane,
                    combined(c, fold, dtype, ci_format(c->ctx, "f[%s]", lane), "t[k + l]"));
        return;
    }
    ci_text_add(out, "                const int take = %s;\n",
                ci_cpu_fold_takes(c, fold, dtype, ci_format(c->ctx, "f[%s]", lane), "t[k + l]"));
    ci_text_add(out, "                f[%s] = take ? t[k + l] : f[%s];\n", lane, lane);
    ci_text_add(out, "                at[%s] = take ? first + count + l : at[%s];\n", lane, lane);
}

/* Takes m values in order, wherever the last call stopped; answers how many it has taken by now. */
static void
print_push(CiCpuEmitter *c, CiText *out, CiOp fold, CiDtype dtype, const char *tag)
{
    int lanes = ci_lane_count(dtype);
    const char *type = ci_emit_type(dtype);
    bool is_arg = ci_op_kind(fold) == CI_OPKIND_argreduce,
         is_ordered = !ci_op_is_order_free(fold, dtype);
    const char *more = is_arg       ? "int64_t *at, int64_t first, "
                       : is_ordered ? ci_format(c->ctx, "%s *stack, int64_t *blocks, ", type)
                                    : "";
    ci_text_add(out,
                "\n" COLD "int64_t\npush_%s(%s *f, %sint64_t count, const %s *t, int64_t m)\n{\n",
                tag, type, more, type);
    ci_text_add(out,
                "    for (int64_t k = 0; k < m;) {\n        const int64_t from = count %% %d;\n",
                lanes);
    ci_text_add(out,
                "        const int64_t w = m - k < %d - from ? m - k : %d - from;\n        if (w "
                "== %d) {\n",
                lanes, lanes, lanes);
    ci_text_add(out, "#pragma omp simd\n            for (int64_t l = 0; l < %d; l++) {\n", lanes);
    print_push_step(c, out, fold, dtype, "l");
    ci_text_add(out,
                "            }\n        } else {\n            for (int64_t l = 0; l < w; l++) {\n");
    print_push_step(c, out, fold, dtype, "from + l");
    ci_text_add(out, "            }\n        }\n        k += w;\n        count += w;\n");
    if (is_ordered)
        ci_text_add(
            out,
            "        if (count %% %d == 0)\n            *blocks = block_%s(f, stack, *blocks);\n",
            CI_BLOCK_CHAIN * lanes, tag);
    ci_text_add(out, "    }\n    return count;\n}\n");
}

static void
print_rows(CiCpuEmitter *c, CiText *out, CiOp fold, CiDtype dtype, const char *tag)
{
    const char *type = ci_emit_type(dtype);
    ci_text_add(
        out,
        "\n" COLD
        "int64_t\nblock_rows_%s(%s *f, int lanes, %s *stack, int64_t blocks, int tile)\n{\n",
        tag, type, type);
    ci_text_add(out,
                "    for (int h = lanes / 2; h; h /= 2)\n        for (int l = 0; l < h * tile; "
                "l++)\n            f[l] = %s;\n",
                combined(c, fold, dtype, "f[l]", "f[l + h * tile]"));
    ci_text_add(out, "    int depth = __builtin_popcountll((uint64_t)blocks);\n    for (int64_t k "
                     "= blocks; k & 1; k >>= 1) {\n");
    ci_text_add(
        out,
        "        depth--;\n        for (int l = 0; l < tile; l++)\n            f[l] = %s;\n    }\n",
        combined(c, fold, dtype, "stack[depth * tile + l]", "f[l]"));
    ci_text_add(out,
                "    for (int l = 0; l < tile; l++)\n        stack[depth * tile + l] = f[l];\n");
    ci_text_add(out,
                "    for (int l = 0; l < lanes * tile; l++)\n        f[l] = %s;\n    return blocks "
                "+ 1;\n}\n",
                ci_cpu_fold_identity(c, fold, dtype));
    ci_text_add(out,
                "\n" COLD "void\nfinish_rows_%s(%s *f, int lanes, %s *stack, int64_t count, "
                "int64_t blocks, int tile)\n{\n",
                tag, type, type);
    ci_text_add(out,
                "    if (count %% (%d * lanes))\n        blocks = block_rows_%s(f, lanes, stack, "
                "blocks, tile);\n",
                CI_BLOCK_CHAIN, tag);
    ci_text_add(out, "    int depth = __builtin_popcountll((uint64_t)blocks) - 1;\n    for (int l "
                     "= 0; l < tile; l++)\n");
    ci_text_add(out, "        f[l] = depth < 0 ? %s : stack[depth * tile + l];\n",
                zero_of(c, fold, dtype));
    ci_text_add(out,
                "    while (depth-- > 0)\n        for (int l = 0; l < tile; l++)\n            f[l] "
                "= %s;\n}\n",
                combined(c, fold, dtype, "stack[depth * tile + l]", "f[l]"));
}

static void
print_helpers(CiCpuEmitter *c, CiText *out, CiOp fold, CiDtype dtype, int helpers)
{
    const char *tag = ci_format(c->ctx, "%s_%s", ci_op_name(fold), ci_dtype_name(dtype));
    if (helpers & (CI_HELPER_pairwise | CI_HELPER_block)) {
        if (ci_op_kind(fold) == CI_OPKIND_argreduce)
            print_pairwise_arg(c, out, fold, dtype, tag);
        else
            print_pairwise(c, out, fold, dtype, tag);
    }
    if (helpers & CI_HELPER_vectors)
        print_vectors(c, out, fold, dtype, tag);
    if (helpers & CI_HELPER_short)
        print_short(c, out, fold, dtype, tag);
    if (helpers & CI_HELPER_few)
        print_few(c, out, fold, dtype, tag);
    if (helpers & (CI_HELPER_counter | CI_HELPER_block))
        print_counter(c, out, fold, dtype, tag);
    if (helpers & CI_HELPER_block)
        print_block(c, out, fold, dtype, tag);
    if (helpers & CI_HELPER_push)
        print_push(c, out, fold, dtype, tag);
    if (helpers & CI_HELPER_rows)
        print_rows(c, out, fold, dtype, tag);
}

void
ci_cpu_emit_fold_helpers(CiCpuEmitter *c, CiText *out)
{
    for (int op = 0; op < CI_OP_COUNT; op++)
        for (int k = 0; k < CI_DTYPE_COUNT; k++)
            if (c->has_fold[op][k])
                print_helpers(c, out, (CiOp)op, (CiDtype)k, c->has_fold[op][k]);
}
