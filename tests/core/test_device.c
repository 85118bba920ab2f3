/* Compares the C backend with the interpreter bit by bit: every operation, every kind and order
 * of reduction, scans, fused rows, tiles, split loops, symbols, vector levels of the CPU, and
 * numbers of threads. */
#include "device_run.h"

#include "ci_test.h"

/* ---- comparing ---- */

static void
say_difference(CiContext *ctx, const CiBuffer *buffer, const TestRun *x, const TestRun *y,
               int64_t k, const char *what)
{
    CiText text = ci_text_new(ctx);
    int size = ci_dtype_size(buffer->dtype);
    ci_const_print(&text, buffer->dtype,
                   ci_const_load(buffer->dtype, (char *)x->data[buffer->id] + size * k));
    ci_text_add(&text, " is not ");
    ci_const_print(&text, buffer->dtype,
                   ci_const_load(buffer->dtype, (char *)y->data[buffer->id] + size * k));
    CI_TEST_SAY("%s: %s[%lld]: %s", what, buffer->name, (long long)k, text.data);
}

static bool
is_returned(const CiLoops *loops, const CiBuffer *buffer)
{
    for (int k = 0; k < loops->nresults; k++)
        if (loops->results[k].buffer == buffer)
            return true;
    return buffer->is_written;
}

static void
compare_runs(CiContext *ctx, const TestRun *x, const TestRun *y, const char *what)
{
    for (int k = 0; k < x->loops->nbuffers; k++) {
        const CiBuffer *buffer = x->loops->buffers[k];
        int64_t at = is_returned(x->loops, buffer)
                         ? test_first_difference(buffer, x->data[k], y->data[k], x->bytes[k])
                         : -1;
        if (at >= 0)
            say_difference(ctx, buffer, x, y, at, what);
    }
}

static void
compare(CiContext *ctx, const char *text, const TestSetting *a, const TestSetting *b,
        const char *what)
{
    TestRun x = test_run(ctx, text, a), y = test_run(ctx, text, b);
    compare_runs(ctx, &x, &y, what);
}

/* Interpreted, compiled, compiled and fused, on threads: all the same bits. */
static void
compare_all(CiContext *ctx, const char *text, int64_t size, bool is_tame)
{
    TestSetting interp = {.backend = "interp", .is_tame = is_tame, .size = size, .seed = 7};
    TestSetting plain = interp, fused = interp;
    plain.backend = fused.backend = "c";
    fused.fusion = true;
    fused.threads = 3;
    TestRun x = test_run(ctx, text, &interp), y = test_run(ctx, text, &plain),
            z = test_run(ctx, text, &fused);
    compare_runs(ctx, &x, &y, "unfused");
    compare_runs(ctx, &x, &z, "fused");
}

/* ---- operations ---- */

static bool
has_row(CiOp op, CiDtype dtype)
{
    CiOpKind kind = ci_op_kind(op);
    return (kind == CI_OPKIND_pointwise || kind == CI_OPKIND_math) && !ci_op_why_not(op, dtype);
}

/* Draws an exponent that the loop of an integer power supports. */
static void
add_op_nest(CiText *text, int number, CiOp op, CiDtype dtype)
{
    const char *in = ci_dtype_name(dtype), *out = ci_dtype_name(ci_op_result(op, dtype));
    ci_text_add(text, "  buf%d: %s[1003] = for i0<1003 {\n    %%0: %s = load in0[i0]\n", number,
                out, in);
    if (op == CI_OP_int_power)
        ci_text_add(text, "    %%1: %s = const 5\n", in);
    else if (ci_op_arity(op) >= 2)
        ci_text_add(text, "    %%1: %s = load in1[i0]\n", in);
    static const char *const operands[] = {"", "%0", "%0, %1", "%0, %1, %0"};
    int last = ci_op_arity(op) >= 2 ? 2 : 1;
    ci_text_add(text, "    %%%d: %s = %s %s\n    yield %%%d\n  }\n", last, out, ci_op_name(op),
                operands[ci_op_arity(op)], last);
}

static void
compare_ops(CiContext *ctx, CiDtype dtype)
{
    CiText text = ci_text_new(ctx);
    int count = 0;
    ci_text_add(&text, "loops f(in0: %s[1003], in1: %s[1003]) {\n", ci_dtype_name(dtype),
                ci_dtype_name(dtype));
    for (int op = 0; op < CI_OP_COUNT; op++)
        if (has_row((CiOp)op, dtype))
            add_op_nest(&text, count++, (CiOp)op, dtype);
    ci_text_add(&text, "  return buf0");
    for (int k = 1; k < count; k++)
        ci_text_add(&text, ", buf%d", k);
    ci_text_add(&text, "\n}\n");
    TestSetting interp = {.backend = "interp", .seed = 3}, c = {.backend = "c", .seed = 3};
    compare(ctx, text.data, &interp, &c, ci_dtype_name(dtype));
}

#define OPS_OF(dtype)                                                                              \
    TEST(ops_of_##dtype)                                                                           \
    {                                                                                              \
        compare_ops(ctx, CI_DTYPE_##dtype);                                                        \
    }
OPS_OF(bool)
OPS_OF(i8)
OPS_OF(i16)
OPS_OF(i32)
OPS_OF(i64)
OPS_OF(u8)
OPS_OF(u16)
OPS_OF(u32)
OPS_OF(u64)
OPS_OF(f16)
OPS_OF(f32)
OPS_OF(f64)
OPS_OF(c64)
OPS_OF(c128)

/* Values in the range of every target dtype: the result for others depends on the device. */
TEST(casts)
{
    CiText text = ci_text_new(ctx);
    int count = 0;
    ci_text_add(&text, "loops f(");
    for (int k = 0; k < CI_DTYPE_COUNT; k++)
        ci_text_add(&text, "%sin%d: %s[100]", k ? ", " : "", k, ci_dtype_name((CiDtype)k));
    ci_text_add(&text, ") {\n");
    for (int from = 0; from < CI_DTYPE_COUNT; from++)
        for (int to = 0; to < CI_DTYPE_COUNT; to++)
            ci_text_add(&text,
                        "  buf%d: %s[100] = for i0<100 {\n    %%0: %s = load in%d[i0]\n    %%1: %s "
                        "= cast %%0\n    yield %%1\n  }\n",
                        count++, ci_dtype_name((CiDtype)to), ci_dtype_name((CiDtype)from), from,
                        ci_dtype_name((CiDtype)to));
    ci_text_add(&text, "  return buf0");
    for (int k = 1; k < count; k++)
        ci_text_add(&text, ", buf%d", k);
    ci_text_add(&text, "\n}\n");
    TestSetting interp = {.backend = "interp", .is_tame = true, .seed = 3},
                c = {.backend = "c", .is_tame = true, .seed = 3};
    compare(ctx, text.data, &interp, &c, "cast");
}

/* ---- reductions ---- */

static void
add_fold(CiText *text, int *count, CiOp fold, CiDtype dtype, const char *order, const char *axes,
         const char *index)
{
    CiDtype result =
        ci_op_kind(fold) == CI_OPKIND_argreduce ? CI_DTYPE_i64 : ci_op_result(fold, dtype);
    ci_text_add(text,
                "  buf%d: %s[5,70] = for i0<5, i1<70 %s%s%s %s {\n    %%0: %s = load in0[%s]\n    "
                "yield %%0\n  }\n",
                (*count)++, ci_dtype_name(result), ci_op_name(fold), *order ? "." : "", order, axes,
                ci_dtype_name(dtype), index);
}

static bool
folds(CiOp op, CiDtype dtype)
{
    CiOpKind kind = ci_op_kind(op);
    return (kind == CI_OPKIND_reduce || kind == CI_OPKIND_argreduce) && !ci_op_why_not(op, dtype);
}

static void
compare_folds(CiContext *ctx, CiDtype dtype, bool is_tame)
{
    CiText text = ci_text_new(ctx);
    int count = 0;
    ci_text_add(&text, "loops f(in0: %s[200000]) {\n", ci_dtype_name(dtype));
    for (int k = 0; k < CI_OP_COUNT; k++) {
        CiOp op = (CiOp)k;
        if (!folds(op, dtype))
            continue;
        bool is_ordered = !ci_op_is_order_free(op, ci_dtype_compute(dtype));
        add_fold(&text, &count, op, dtype, is_ordered ? "lanes" : "", "r0<517",
                 "36190*i0 + 517*i1 + r0");
        add_fold(&text, &count, op, dtype, "", "r0<5", "350*i0 + 5*i1 + r0");
        if (!is_ordered)
            continue;
        add_fold(&text, &count, op, dtype, "lanes", "r0<13, r1<37",
                 "37*r0 + 40*r1 + 9000*i0 + 100*i1");
        add_fold(&text, &count, op, dtype, "rows", "r0<500", "70*r0 + i1 + 35000*i0");
        add_fold(&text, &count, op, dtype, "", "r0<2, r1<3", "6*i1 + 420*i0 + 3*r0 + r1");
    }
    ci_text_add(&text, "  return buf0");
    for (int k = 1; k < count; k++)
        ci_text_add(&text, ", buf%d", k);
    ci_text_add(&text, "\n}\n");
    compare_all(ctx, text.data, 0, is_tame);
}

#define FOLDS_OF(dtype)                                                                            \
    TEST(folds_of_##dtype)                                                                         \
    {                                                                                              \
        compare_folds(ctx, CI_DTYPE_##dtype, false);                                               \
        if (ci_dtype_class(CI_DTYPE_##dtype) >= CI_CLASS_float)                                    \
            compare_folds(ctx, CI_DTYPE_##dtype, true);                                            \
    }
FOLDS_OF(bool)
FOLDS_OF(i8)
FOLDS_OF(i32)
FOLDS_OF(u64)
FOLDS_OF(f16)
FOLDS_OF(f32)
FOLDS_OF(f64)
FOLDS_OF(c64)
FOLDS_OF(c128)

/* Whole arrays and few long columns: chunks, partials, finishing functions. */
TEST(splits)
{
    compare_all(
        ctx,
        "loops f(in0: f32[1000003], in1: f64[300,4001], in2: f32[20000,70], in3: i32[1000003]) {\n"
        "  buf0: f32[] = for sum.lanes r0<1000003 {\n    %0: f32 = load in0[r0]\n    %1: f32 = exp "
        "%0\n    yield %1\n  }\n"
        "  buf1: f64[] = for sum.lanes r0<300, r1<2001 {\n    %0: f64 = load in1[4001*r0 + 2*r1]\n "
        "   yield %0\n  }\n"
        "  buf2: f32[70] = for i0<70 sum.rows r0<20000 {\n    %0: f32 = load in2[70*r0 + i0]\n    "
        "yield %0\n  }\n"
        "  buf3: i64[] = for argmax r0<1000003 {\n    %0: i32 = load in3[r0]\n    yield %0\n  }\n"
        "  buf4: f32[] = for max r0<1000003 {\n    %0: f32 = load in0[r0]\n    yield %0\n  }\n"
        "  buf5: i64[70] = for i0<70 argmin r0<20000 {\n    %0: f32 = load in2[70*r0 + i0]\n    "
        "yield %0\n  }\n"
        "  buf6: f32[] = for {\n    %0: f32 = load buf0[0]\n    %1: f32 = load buf4[0]\n    %2: "
        "f32 = divide %0, %1\n"
        "    %3: f32 = log %2\n    yield %3\n  }\n"
        "  return buf0, buf1, buf2, buf3, buf4, buf5, buf6\n}\n",
        0, true);
}

/* ---- scans ---- */

TEST(scans)
{
    CiText text = ci_text_new(ctx);
    static const CiDtype dtypes[] = {CI_DTYPE_i32, CI_DTYPE_f16, CI_DTYPE_f32, CI_DTYPE_f64,
                                     CI_DTYPE_c64};
    int count = 0;
    ci_text_add(&text, "loops f(in0: i32[50,700], in1: f16[50,700], in2: f32[50,700], in3: "
                       "f64[50,700], in4: c64[50,700]) {\n");
    for (int d = 0; d < 5; d++)
        for (int k = 0; k < CI_OP_COUNT; k++) {
            if (ci_op_kind((CiOp)k) != CI_OPKIND_scan || ci_op_why_not((CiOp)k, dtypes[d]))
                continue;
            const char *dtype = ci_dtype_name(dtypes[d]), *op = ci_op_name((CiOp)k);
            ci_text_add(&text,
                        "  buf%d: %s[50,700] = for i0<50 %s r0<700 {\n    %%0: %s = load "
                        "in%d[700*i0 + r0]\n    yield %%0\n  }\n",
                        count++, dtype, op, dtype, d);
            ci_text_add(&text,
                        "  buf%d: %s[50,700]\n  buf%d[700*r0 + i0] = for i0<700 %s r0<50 {\n    "
                        "%%0: %s = load in%d[700*r0 + i0]\n    yield %%0\n  }\n",
                        count, dtype, count, op, dtype, d);
            count++;
        }
    ci_text_add(&text, "  return buf0");
    for (int k = 1; k < count; k++)
        ci_text_add(&text, ", buf%d", k);
    ci_text_add(&text, "\n}\n");
    compare_all(ctx, text.data, 0, false);
}

/* ---- fused programs ---- */

static const char softmax[] =
    "loops f(in0: f32[s0,s0]) {\n"
    "  buf0: f32[s0] = for i0<s0 max r0<s0 {\n    %0: f32 = load in0[s0*i0 + r0]\n    yield %0\n  "
    "}\n"
    "  buf1: f32[s0,s0] = for i0<s0, i1<s0 {\n    %0: f32 = load in0[s0*i0 + i1]\n    %1: f32 = "
    "load buf0[i0]\n"
    "    %2: f32 = subtract %0, %1\n    %3: f32 = exp %2\n    yield %3\n  }\n"
    "  buf2: f32[s0] = for i0<s0 sum.lanes r0<s0 {\n    %0: f32 = load buf1[s0*i0 + r0]\n    yield "
    "%0\n  }\n"
    "  buf3: f32[s0,s0] = for i0<s0, i1<s0 {\n    %0: f32 = load buf1[s0*i0 + i1]\n    %1: f32 = "
    "load buf2[i0]\n"
    "    %2: f32 = divide %0, %1\n    yield %2\n  }\n"
    "  buf4: f32[s0] = for i0<s0 {\n    %0: f32 = load buf2[i0]\n    %1: f32 = log %0\n    %2: f32 "
    "= load buf0[i0]\n"
    "    %3: f32 = add %1, %2\n    yield %3\n  }\n"
    "  return buf3, buf4\n}\n";

static const char *
replace(CiContext *ctx, const char *text, const char *from, const char *to)
{
    CiText out = ci_text_new(ctx);
    for (const char *at; (at = strstr(text, from)); text = at + strlen(from)) {
        ci_text_add_chars(&out, text, (size_t)(at - text));
        ci_text_add(&out, "%s", to);
    }
    ci_text_add(&out, "%s", text);
    return out.data;
}

TEST(softmax_of_static_rows)
{
    compare_all(ctx, replace(ctx, softmax, "s0", "300"), 0, false);
    const char *long_rows = replace(ctx, replace(ctx, softmax, "s0", "4100"), "i0<4100", "i0<3");
    compare_all(ctx, replace(ctx, long_rows, "f32[4100", "f32[3"), 0, false);
    compare_all(ctx, replace(ctx, replace(ctx, softmax, "s0", "70"), "f32", "f16"), 0, false);
    compare_all(ctx, replace(ctx, replace(ctx, softmax, "s0", "300"), "f32", "f64"), 0, false);
}

TEST(softmax_of_symbolic_rows)
{
    const char *text = ci_format(ctx, "symbols {s0 in [0, inf)}\n%s", softmax);
    const int64_t sizes[] = {0, 1, 7, 64, 257};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        compare_all(ctx, text, sizes[k], false);
}

/* Columns: outer lanes, row reductions, locals, and rows of a tile. */
TEST(columns)
{
    compare_all(ctx,
                "loops f(in0: f32[333,150]) {\n"
                "  buf0: f32[150] = for i0<150 sum.rows r0<333 {\n    %0: f32 = load in0[150*r0 + "
                "i0]\n    yield %0\n  }\n"
                "  buf1: f32[150] = for i0<150 sum.rows r0<333 {\n    %0: f32 = load in0[150*r0 + "
                "i0]\n    %1: f32 = load buf0[i0]\n"
                "    %2: f32 = const 0.0030030030030030030\n    %3: f32 = multiply %1, %2\n    %4: "
                "f32 = subtract %0, %3\n"
                "    %5: f32 = multiply %4, %4\n    yield %5\n  }\n"
                "  buf2: f32[333,150] = for i0<333, i1<150 {\n    %0: f32 = load in0[150*i0 + "
                "i1]\n    %1: f32 = load buf0[i1]\n"
                "    %2: f32 = subtract %0, %1\n    %3: f32 = load buf1[i1]\n    %4: f32 = sqrt "
                "%3\n    %5: f32 = divide %2, %4\n"
                "    %6: f32 = tanh %5\n    yield %6\n  }\n"
                "  return buf2\n}\n",
                0, false);
}

/* Several function calls, results read again, a constant exponent, two results of one value. */
TEST(mathematics)
{
    const char *text = "loops f(in0: f64[777], in1: f64[777], in2: python f64[]) {\n"
                       "  buf0: f64[777] = for i0<777 {\n    %0: f64 = load in0[i0]\n    %1: f64 = "
                       "load in1[i0]\n    %2: f64 = divide %0, %1\n"
                       "    %3: f64 = log %2\n    %4: f64 = const 0.5\n    %5: f64 = multiply %4, "
                       "%3\n    %6: f64 = tanh %5\n    %7: f64 = sqrt %1\n"
                       "    %8: f64 = load in2[0]\n    %9: f64 = power %7, %8\n    %10: f64 = "
                       "subtract %9, %6\n    %11: f64 = exp %10\n"
                       "    %12: f64 = arctan2 %11, %0\n    %13: f64 = multiply %12, %3\n    %14: "
                       "f64 = add %13, %11\n    yield %14\n  }\n"
                       "  buf1: f64[777] = for i0<777 {\n    %0: f64 = load in0[i0]\n    %1: f64 = "
                       "load in1[i0]\n    %2: f64 = divide %0, %1\n"
                       "    %3: f64 = log %2\n    %4: f64 = sin %3\n    yield %4\n  }\n"
                       "  buf2: f64[] = for {\n    %0: f64 = load in2[0]\n    %1: f64 = exp %0\n   "
                       " yield %1\n  }\n"
                       "  return buf0, buf1, buf2\n}\n";
    compare_all(ctx, text, 0, true);
    compare_all(ctx, text, 0, false);
    compare_all(ctx, replace(ctx, replace(ctx, text, "f64", "f32"), "python f32[]", "python f64[]"),
                0, false);
}

/* Each vector level of this CPU gives its own bits, the same on both backends. */
TEST(levels)
{
    static const char *const levels[] = {"x86-64-v2", "x86-64-v3", "x86-64-v4"};
    const char *text = replace(ctx, softmax, "s0", "100");
    for (size_t k = 0; k < sizeof levels / sizeof *levels; k++) {
        TestSetting interp = {.backend = "interp", .arch = levels[k], .seed = 5},
                    c = {.backend = "c", .arch = levels[k], .fusion = true, .seed = 5};
        compare(ctx, text, &interp, &c, levels[k]);
    }
}

/* Runs one kernel with the race checker. Its work units store at the rows `store` and read at
 * `load`. */
static int32_t
run_checked(CiContext *ctx, const char *load, const char *store)
{
    CiOptions options;
    CiMachine *machine = CI_NEW(ctx, CiMachine);
    CiRuntime runtime = {.allocator = ci_allocator_open(1 << 20)};
    const CiBackend *backend = ci_backend_find(NULL, "cpu", "interp");
    ci_options_default(&options);
    options.verify = true;
    *machine = ci_backend_machine(backend, &options, true);
    const char *text = ci_format(
        ctx,
        "kernels f(in0: f32[512]) device=cpu backend=interp {\n  k0: for i0<8 {\n"
        "    takes out in0\n    stage j0<64 {\n      in0[64*(%s) + j0] = {\n"
        "        %%0: f32 = load in0[64*(%s) + j0]\n        yield %%0\n      }\n    }\n  }\n  return\n}\n",
        store, load);
    TestRun run = {.loops = NULL};
    CiKernels *kernels = ci_kernels_parse(ctx, text, machine);
    run.loops = kernels->loops;
    test_allocate(ctx, &run, 8, 1, true);
    CiQueue queue = {.backend = backend, .runtime = &runtime};
    CiExecutable *exe = backend->compiler->build(ctx, &queue, kernels, &options, NULL);
    int32_t status = test_launch(ctx, &run, exe, kernels->kernels[0], 8, NULL);
    exe->close(exe);
    ci_allocator_close(runtime.allocator);
    return status;
}

/* Work units that access the same elements, in either order, and work units that do not. */
TEST(races_are_found)
{
    CHECK_INT(run_checked(ctx, "i0", "i0"), CI_OK);
    CHECK_INT(run_checked(ctx, "0", "0"), CI_ERR_INTERNAL);
    CHECK_INT(run_checked(ctx, "i0", "7 - i0"), CI_ERR_INTERNAL);
    CHECK_INT(run_checked(ctx, "(i0 + 1) % 8", "i0"), CI_ERR_INTERNAL);
    CHECK_INT(run_checked(ctx, "i0 - 1", "i0"), CI_ERR_INTERNAL);
}

/* The bits do not depend on the number of threads. */
TEST(threads)
{
    const char *text = "loops f(in0: f32[3000000]) {\n  buf0: f32[] = for sum.lanes r0<3000000 {\n "
                       "   %0: f32 = load in0[r0]\n"
                       "    yield %0\n  }\n  return buf0\n}\n";
    TestSetting one = {.backend = "c", .threads = 1}, four = {.backend = "c", .threads = 4};
    for (int k = 0; k < 3; k++)
        compare(ctx, text, &one, &four, "threads");
}

/* ---- stopping ---- */

static int32_t
stop_later(void *arg)
{
    return ++*(int *)arg == 3;
}

static void
run_long_scan(CiContext *ctx, void *arg)
{
    const char *text = "loops f(in0: f64[3000000]) {\n  buf0: f64[3000000] = for cumsum "
                       "r0<3000000 {\n    %0: f64 = load in0[r0]\n"
                       "    yield %0\n  }\n  return buf0\n}\n";
    TestJob *job = arg;
    job->run.loops = ci_loops_parse(ctx, text);
    test_job(ctx, job);
}

/* On both backends, a long loop polls for cancellation and stops when told to. */
TEST(polls)
{
    static const char *const backends[] = {"c", "interp"};
    for (int k = 0; k < 2; k++) {
        int asked = 0;
        TestSetting setting = {.backend = backends[k]};
        TestJob job = {
            .setting = &setting,
            .runtime = {.allocator = ci_allocator_open(0), .poll = stop_later, .poll_arg = &asked}};
        CHECK(ci_protect(ctx, run_long_scan, &job) == CI_ERR_INTERRUPTED);
        CHECK_INT(asked, 3);
        if (job.exe)
            job.exe->close(job.exe);
        ci_runtime_shut(&job.runtime);
        ci_allocator_close(job.runtime.allocator);
    }
}

/* ---- the registry and failures ---- */

TEST(registry)
{
    CHECK_TEXT(ci_backend_find(NULL, "cpu", NULL)->compiler->name, "c");
    CHECK_TEXT(ci_backend_find(NULL, "cpu", "interp")->compiler->name, "interp");
    CHECK(ci_backend_find(NULL, "cpu", "none") == NULL);
    CiOptions options;
    ci_options_default(&options);
    CHECK_TEXT(options.numerics, "numpy");
    CHECK_INT(options.inline_limit, 64);
}

static void
build_with_bad_compiler(CiContext *ctx, void *arg)
{
    TestSetting setting = {.backend = "c"};
    (void)arg;
    (void)test_run(ctx,
                   "loops f(in0: f32[3]) {\n  buf0: f32[3] = for i0<3 {\n    %0: f32 = load "
                   "in0[i0]\n    yield %0\n  }\n  return buf0\n}\n",
                   &setting);
}

TEST(compiler_that_fails)
{
    char *saved = getenv("CC") ? ci_copy_text(ctx, getenv("CC"), strlen(getenv("CC"))) : NULL;
    setenv("CC", "false", 1);
    CHECK_FAILS(ctx, COMPILE, build_with_bad_compiler, NULL);
    CHECK(strstr(ci_context_message(ctx), "kernel.c") != NULL);
    setenv("CC", ci_format(ctx, "%s -O0  -DANYTHING=1", saved ? saved : "cc"), 1);
    CHECK(ci_protect(ctx, build_with_bad_compiler, NULL) == CI_OK);
    if (saved)
        setenv("CC", saved, 1);
    else
        unsetenv("CC");
}
