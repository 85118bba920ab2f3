/* Tests the wrapper: allocation and release around lines, reuse of buffers, copies, regions, and
 * both printers. The verifier must find each kind of planted lifetime bug. The graphs consist of
 * library calls, so that their kernels are known in advance. */
#include "ci_test.h"
#include "pipeline.h"

#define CHAIN                                                                                      \
    "graph f(in0: f64[4,4], in1: f64[4,4]) {\n"                                                    \
    "  %0: f64[4,4] = matmul(in0, in1)  @/home/me/net.py:7\n"                                      \
    "  %1: f64[4,4] = matmul(%0, in1)  @/home/me/net.py:8\n"                                       \
    "  %2: f64[4,4] = matmul(%1, in1)  @/home/me/net.py:9\n"                                       \
    "  %3: f64[4,4] = matmul(%2, in1)\n"                                                           \
    "  return %3\n"                                                                                \
    "}\n"

static int
count_lines(const CiWrapper *w, CiLineKind kind)
{
    int count = 0;
    for (int i = 0; i < w->nlines; i++)
        count += w->lines[i].kind == kind;
    return count;
}

static const char *
python_of(const CiWrapper *w)
{
    CiText text = ci_text_new(w->ctx);
    ci_wrapper_print_python(&text, w);
    return text.data;
}

TEST(chain_takes_over_dead_memory)
{
    CiWrapper *w = test_wrap(test_kernels(ctx, CHAIN, NULL));
    ci_wrapper_verify(w);
    CHECK_TEXT(python_of(w), "def call(in0, in1):\n"
                             "    # device=test backend=fake, at most 256 bytes\n"
                             "    assert_size_stride(in0, (4, 4), (4, 1))\n"
                             "    assert_size_stride(in1, (4, 4), (4, 1))\n"
                             "    buf0 = empty((4, 4), (4, 1), 'f64')\n"
                             "    matmul0(in0, in1, buf0)  # net.py:7\n"
                             "    buf1 = empty((4, 4), (4, 1), 'f64')\n"
                             "    matmul1(buf0, in1, buf1)  # net.py:8\n"
                             "    buf2 = buf0  # takes over its memory\n"
                             "    del buf0\n"
                             "    matmul2(buf1, in1, buf2)  # net.py:9\n"
                             "    del buf1\n"
                             "    buf3 = empty((4, 4), (4, 1), 'f64')\n"
                             "    matmul3(buf2, in1, buf3)\n"
                             "    del buf2\n"
                             "    return (buf3,)\n");
}

TEST(no_takeover_between_dtypes_or_sizes)
{
    CiWrapper *w = test_wrap(test_kernels(ctx,
                                        "graph f(in0: f64[4,4], in1: f64[4,2]) {\n"
                                        "  %0: f64[4,4] = matmul(in0, in0)\n"
                                        "  %1: f64[4,2] = matmul(%0, in1)\n"
                                        "  %2: i64[4,2] = extern round(%1)\n"
                                        "  %3: f64[4,2] = extern back(%2)\n"
                                        "  return %3\n"
                                        "}\n",
                                        NULL));
    ci_wrapper_verify(w);
    CHECK_INT(count_lines(w, CI_LINE_reuse), 0);
    CHECK_INT(count_lines(w, CI_LINE_alloc), 3);
    CHECK_INT(count_lines(w, CI_LINE_free), 3);
    CHECK_INT(count_lines(w, CI_LINE_alloc_result), 1);
}

TEST(results_are_views_of_inputs_and_buffers)
{
    CiWrapper *w = test_wrap(test_kernels(ctx,
                                        "graph f(in0: f64[4,6]) {\n"
                                        "  %0: f64[6,4] order [1,0] = permute(in0, axes=[1, 0])\n"
                                        "  %1: f64[4,6] = exp(in0)\n"
                                        "  %2: f64[2,6] = slice(%1, starts=[3, 0], steps=[-2, 1])\n"
                                        "  return %0, %1, %2, in0\n"
                                        "}\n",
                                        NULL));
    ci_wrapper_verify(w);
    CHECK(strstr(python_of(w), "return (as_strided(in0, 0, (6, 4), (1, 6)), buf0, "
                               "as_strided(buf0, 18, (2, 6), (-12, 1)), in0)\n"));
    CHECK_INT(count_lines(w, CI_LINE_alloc_result), 1);
    CHECK_INT(count_lines(w, CI_LINE_free), 0);
}

TEST(an_empty_program_only_returns)
{
    CiWrapper *w = test_wrap(test_kernels(ctx, "graph f(in0: f64[4]) {\n  return in0\n}\n", NULL));
    ci_wrapper_verify(w);
    CHECK_TEXT(python_of(w), "def call(in0):\n"
                             "    # device=test backend=fake\n"
                             "    assert_size_stride(in0, (4,), (1,))\n"
                             "    return (in0,)\n");
}

TEST(scalars_follow_the_buffers_of_a_kernel)
{
    CiWrapper *w =
        test_wrap(test_kernels(ctx,
                             "graph f(in0: python f64[], in1: f64[8], in2: python f64[]) {\n"
                             "  %0: f64[8] = add(in1, in2)\n"
                             "  return %0\n"
                             "}\n",
                             NULL));
    ci_wrapper_verify(w);
    CHECK(strstr(python_of(w), "k0(in1, buf0, in2)"));
}

TEST(symbols_are_defined_and_passed)
{
    CiWrapper *w = test_wrap(test_kernels(ctx,
                                        "symbols {s0 in [0, inf), s1 in [0, inf)}\n"
                                        "graph f(in0: f64[s0,s1], in1: f64[s1]) {\n"
                                        "  %0: f64[s0,s1] = add(in0, in1)\n"
                                        "  return %0\n"
                                        "}\n",
                                        NULL));
    ci_wrapper_verify(w);
    const char *text = python_of(w);
    CHECK(strstr(text, "    s0 = in0.shape[0]\n    s1 = in0.shape[1]\n"));
    CHECK(strstr(text, "k0(in0, in1, buf0, s0, s1)\n"));
    CHECK_INT(count_lines(w, CI_LINE_symbol), 2);
}

TEST(json_has_every_line)
{
    CiWrapper *w = test_wrap(test_kernels(ctx, CHAIN, NULL));
    CiText text = ci_text_new(ctx);
    ci_wrapper_print_json(&text, w, NULL, NULL, NULL, NULL);
    int count = 0;
    for (const char *at = text.data; (at = strstr(at, "{\"line\": ")); at++)
        count++;
    CHECK_INT(count, w->nlines);
    CHECK(strstr(text.data, "\"source\": [[\"/home/me/net.py\", 7]]"));
}

TEST(device_programs_copy_for_library_calls)
{
    CiKernels *kernels = test_kernels(ctx,
                                      "graph f(in0: f64[4,4]) {\n"
                                      "  %0: f64[4,4] = exp(in0)\n"
                                      "  %1: f64[4,4] = matmul(%0, in0)\n"
                                      "  %2: f64[4,4] = exp(%1)\n"
                                      "  return %2\n"
                                      "}\n",
                                      NULL);
    test_put_on_device(kernels, false);
    CiWrapper *w = test_wrap(kernels);
    ci_wrapper_verify(w);
    const char *text = python_of(w);
    CHECK(strstr(text, "to_host(buf0, host_buf0)\n"));
    CHECK(strstr(text, "to_host(in0, host_in0)\n"));
    CHECK(strstr(text, "matmul0(host_buf0, host_in0, host_buf1)\n"));
    CHECK(strstr(text, "to_device(host_buf1, buf1)\n"));
    CHECK_INT(count_lines(w, CI_LINE_copy_in), 1);
    CHECK_INT(count_lines(w, CI_LINE_copy_out), 2);
    test_put_on_device(kernels, true);
    w = test_wrap(kernels);
    ci_wrapper_verify(w);
    text = python_of(w);
    CHECK(strstr(text, "to_device(in0, device_in0)\n"));
    CHECK(strstr(text, "matmul0(host_buf0, in0, host_buf1)\n"));
    CHECK(strstr(text, "to_host(device_buf2, buf2)\n"));
    CHECK(strstr(text, "return (buf2,)\n"));
}

/* ---- planted bugs ---- */

typedef struct Planted {
    CiWrapper *wrapper;
} Planted;

static void
verify_body(CiContext *ctx, void *arg)
{
    (void)ctx;
    ci_wrapper_verify(((Planted *)arg)->wrapper);
}

static void
expect_refusal(CiContext *ctx, CiWrapper *w, const char *what)
{
    CHECK_FAILS(ctx, INTERNAL, verify_body, &(Planted){w});
    if (!strstr(ci_context_message(ctx), what))
        CI_TEST_SAY("'%s' does not say '%s'", ci_context_message(ctx), what);
}

static CiWrapper *
fresh(CiContext *ctx)
{
    CiWrapper *w = test_wrap(test_kernels(ctx, CHAIN, NULL));
    ci_wrapper_verify(w);
    return w;
}

static void
drop(CiWrapper *w, int line)
{
    w->lines[line] = (CiLine){
        .kind = CI_LINE_comment, .text = "", .match = -1, .open = -1, .loc = {.file = ""}};
}

static void
swap(CiWrapper *w, int a, int b)
{
    CiLine line = w->lines[a];
    w->lines[a] = w->lines[b];
    w->lines[b] = line;
}

TEST(verifier_finds_a_use_before_allocation)
{
    CiWrapper *w = fresh(ctx);
    int line = find_line(w, CI_LINE_alloc, 0);
    swap(w, line, line + 1);
    expect_refusal(ctx, w, "buf0 is used before it is allocated");
    w = fresh(ctx);
    drop(w, find_line(w, CI_LINE_alloc_result, 0));
    expect_refusal(ctx, w, "buf3 is used before it is allocated");
}

TEST(verifier_finds_a_use_after_free)
{
    CiWrapper *w = fresh(ctx);
    int line = find_line(w, CI_LINE_reuse, 0);
    swap(w, line, find_line(w, CI_LINE_extern, 1));
    expect_refusal(ctx, w, "buf0 is used after it was freed");
    w = fresh(ctx);
    line = find_line(w, CI_LINE_free, 1);
    swap(w, line, find_line(w, CI_LINE_extern, 3));
    expect_refusal(ctx, w, "buf2 is used after it was freed");
}

TEST(verifier_finds_leaks_and_double_frees)
{
    CiWrapper *w = fresh(ctx);
    drop(w, find_line(w, CI_LINE_free, 0));
    expect_refusal(ctx, w, "buf1 is never freed");
    w = fresh(ctx);
    w->lines[find_line(w, CI_LINE_free, 1)].buffer = w->lines[find_line(w, CI_LINE_free, 0)].buffer;
    expect_refusal(ctx, w, "buf1 is freed, but not allocated");
    w = fresh(ctx);
    w->lines[find_line(w, CI_LINE_free, 1)].buffer = w->buffers[0];
    expect_refusal(ctx, w, "in0 is freed, but not the program's own");
    w = fresh(ctx);
    w->lines[find_line(w, CI_LINE_free, 1)].buffer =
        w->lines[find_line(w, CI_LINE_alloc_result, 0)].buffer;
    expect_refusal(ctx, w, "buf3 is freed, but not the program's own");
    w = fresh(ctx);
    w->lines[find_line(w, CI_LINE_alloc, 1)].buffer =
        w->lines[find_line(w, CI_LINE_alloc, 0)].buffer;
    expect_refusal(ctx, w, "buf0 is allocated twice");
}

TEST(verifier_finds_a_wrong_takeover)
{
    CiWrapper *w = fresh(ctx);
    CiBuffer *buffer = (CiBuffer *)w->lines[find_line(w, CI_LINE_reuse, 0)].buffer;
    buffer->dtype = CI_DTYPE_f32;
    expect_refusal(ctx, w, "buf2 takes over memory of another size");
}

TEST(verifier_finds_memory_of_another_size)
{
    CiWrapper *w = fresh(ctx);
    w->lines[find_line(w, CI_LINE_alloc, 1)].bytes = ci_expr_const(w->kernels->loops->sym, 8);
    expect_refusal(ctx, w, "buf1 takes other memory than its sizes come to");
    w = fresh(ctx);
    w->lines[find_line(w, CI_LINE_alloc_result, 0)].bytes = NULL;
    expect_refusal(ctx, w, "buf3 takes other memory than its sizes come to");
}

TEST(verifier_finds_lines_of_another_kind)
{
    CiWrapper *w = fresh(ctx);
    w->lines[find_line(w, CI_LINE_alloc, 0)].kind = CI_LINE_alloc_result;
    expect_refusal(ctx, w, "buf0 is allocated by the wrong side");
    w = fresh(ctx);
    w->lines[find_line(w, CI_LINE_free, 0)].other = w->buffers[0];
    expect_refusal(ctx, w, "free has operands that its row has not");
    w = fresh(ctx);
    w->nlines--;
    expect_refusal(ctx, w, "the program has no return at its end");
    w = fresh(ctx);
    swap(w, w->nlines - 1, w->nlines - 2);
    expect_refusal(ctx, w, "return is not the last line");
}

TEST(verifier_finds_a_missing_symbol)
{
    CiWrapper *w = test_wrap(test_kernels(ctx,
                                        "symbols {s0 in [0, inf)}\n"
                                        "graph f(in0: f64[s0]) {\n"
                                        "  %0: f64[s0] = exp(in0)\n"
                                        "  return %0\n"
                                        "}\n",
                                        NULL));
    ci_wrapper_verify(w);
    drop(w, find_line(w, CI_LINE_symbol, 0));
    expect_refusal(ctx, w, "s0 is used before it is defined");
}

TEST(verifier_finds_a_write_to_an_input_that_is_not_marked)
{
    CiWrapper *w = fresh(ctx);
    ((CiExternItem *)w->lines[find_line(w, CI_LINE_extern, 0)].ext)->result =
        (CiBuffer *)w->buffers[1];
    expect_refusal(ctx, w, "in1 is stored to, but not marked as written");
}

/* ---- regions ---- */

static CiWrapper *
looped(CiContext *ctx, int first, int count)
{
    CiKernels *kernels = test_kernels(ctx, CHAIN, NULL);
    CiRegion *region = CI_NEW(ctx, CiRegion);
    region->extent = ci_expr_const(kernels->loops->sym, 3);
    region->var = ci_expr_index(kernels->loops->sym, "i7", region->extent);
    test_put_region(kernels, region, first, count, 0);
    CiWrapper *w = test_wrap(kernels);
    ci_wrapper_verify(w);
    return w;
}

TEST(verifier_finds_turns_that_meet)
{
    CiWrapper *w = looped(ctx, 1, 2);
    w->lines[find_line(w, CI_LINE_for, 0)].is_parallel = true;
    expect_refusal(ctx, w, "buf1 is stored to by every turn of a parallel loop");
}

TEST(loops_keep_memory_outside)
{
    CiWrapper *w = looped(ctx, 1, 2);
    CHECK_TEXT(python_of(w), "def call(in0, in1):\n"
                             "    i7 = 0\n"
                             "    # device=test backend=fake, at most 384 bytes\n"
                             "    assert_size_stride(in0, (4, 4), (4, 1))\n"
                             "    assert_size_stride(in1, (4, 4), (4, 1))\n"
                             "    buf0 = empty((4, 4), (4, 1), 'f64')\n"
                             "    matmul0(in0, in1, buf0)  # net.py:7\n"
                             "    buf1 = empty((4, 4), (4, 1), 'f64')\n"
                             "    buf2 = empty((4, 4), (4, 1), 'f64')\n"
                             "    for i7 in range(3):\n"
                             "        matmul1(buf0, in1, buf1)  # net.py:8\n"
                             "        matmul2(buf1, in1, buf2)  # net.py:9\n"
                             "    del buf0\n"
                             "    del buf1\n"
                             "    buf3 = empty((4, 4), (4, 1), 'f64')\n"
                             "    matmul3(buf2, in1, buf3)\n"
                             "    del buf2\n"
                             "    return (buf3,)\n");
}

TEST(branches_allocate_inside_and_loops_in_them_outside)
{
    CiKernels *kernels = test_kernels(ctx,
                                      "graph f(in0: f64[4,4], in1: bool[]) {\n"
                                      "  %0: f64[4,4] = matmul(in0, in0)\n"
                                      "  %1: f64[4,4] = matmul(%0, in0)\n"
                                      "  %2: f64[4,4] = matmul(%1, in0)\n"
                                      "  %3: f64[4,4] = matmul(in0, in0)\n"
                                      "  return %2, %3\n"
                                      "}\n",
                                      NULL);
    CiRegion *branch = CI_NEW(ctx, CiRegion), *loop = CI_NEW(ctx, CiRegion);
    branch->condition = kernels->loops->buffers[1];
    loop->condition = kernels->loops->buffers[1];
    loop->kind = CI_ITEM_while; /* no kernel computes its condition */
    test_put_region(kernels, loop, 1, 1, 0);
    test_put_region(kernels, branch, 0, 3, 1);
    CiWrapper *w = test_wrap(kernels);
    ci_wrapper_verify(w);
    CHECK_TEXT(strstr(python_of(w), "    buf2 = "), "    buf2 = empty((4, 4), (4, 1), 'f64')\n"
                                                    "    buf3 = empty((4, 4), (4, 1), 'f64')\n"
                                                    "    if item(in1):\n"
                                                    "        buf0 = empty((4, 4), (4, 1), 'f64')\n"
                                                    "        matmul0(in0, in0, buf0)\n"
                                                    "        buf1 = empty((4, 4), (4, 1), 'f64')\n"
                                                    "        while True:\n"
                                                    "            if not item(in1):\n"
                                                    "                break\n"
                                                    "            matmul1(buf0, in0, buf1)\n"
                                                    "        del buf0\n"
                                                    "        matmul2(buf1, in0, buf2)\n"
                                                    "        del buf1\n"
                                                    "    else:\n"
                                                    "        matmul3(in0, in0, buf3)\n"
                                                    "    return (buf2, buf3)\n");
}

TEST(verifier_finds_broken_regions)
{
    CiWrapper *w = looped(ctx, 1, 2);
    w->lines[find_line(w, CI_LINE_end, 0)].open = 0;
    expect_refusal(ctx, w, "end does not match its region");
    w = looped(ctx, 1, 2);
    int end = find_line(w, CI_LINE_end, 0);
    swap(w, end - 1, end + 1); /* frees what the loop did not allocate */
    expect_refusal(ctx, w, "freed in another region");
    w = looped(ctx, 1, 2);
    drop(w, find_line(w, CI_LINE_end, 0));
    expect_refusal(ctx, w, "freed in another region");
}

/* The host needs in0 after a kernel that does not, so its copy can start before that kernel. */
static CiWrapper *
early(CiContext *ctx)
{
    CiKernels *kernels = test_kernels(ctx,
                                      "graph f(in0: f64[4,4], in1: f64[9]) {\n"
                                      "  %0: f64[9] = exp(in1)\n"
                                      "  %1: f64[4,4] = matmul(in0, in0)\n"
                                      "  return %0, %1\n"
                                      "}\n",
                                      NULL);
    test_put_on_device(kernels, false)->starts_copies = true;
    return test_wrap(kernels);
}

TEST(copies_to_the_host_begin_early)
{
    CiWrapper *w = early(ctx);
    ci_wrapper_verify(w);
    const char *text = python_of(w), *start = strstr(text, "start_to_host(in0, host_in0)\n");
    CHECK(strstr(text, "host_in0 = empty_pinned((4, 4), (4, 1), 'f64')\n"));
    const char *wait = start ? strstr(start, "    wait(host_in0)\n") : NULL;
    const char *between = start ? strstr(start, "k0(in1, buf0)\n") : NULL;
    CHECK(between && wait && between < wait && wait < strstr(text, "matmul0(host_in0"));
}

TEST(verifier_finds_copies_that_nobody_waits_for)
{
    CiWrapper *w = early(ctx);
    int wait = find_line(w, CI_LINE_wait, 0);
    swap(w, wait, find_line(w, CI_LINE_extern, 0));
    expect_refusal(ctx, w, "host_in0 is used before its copy has been waited for");
    w = early(ctx);
    drop(w, find_line(w, CI_LINE_wait, 0));
    drop(w, find_line(w, CI_LINE_extern, 0));
    expect_refusal(ctx, w, "host_in0 is freed before its copy has been waited for");
    w = early(ctx);
    w->lines[find_line(w, CI_LINE_copy_out_start, 0)].kind = CI_LINE_copy_out;
    expect_refusal(ctx, w, "host_in0 is waited for, but no copy to it has begun");
    w = early(ctx);
    w->pinned[w->lines[find_line(w, CI_LINE_wait, 0)].buffer->id] = CI_SIDE_host;
    expect_refusal(ctx, w, "host_in0 is no memory that the device reaches by itself");
}

TEST(device_loops_copy_in_every_turn)
{
    CiKernels *kernels = test_kernels(ctx, CHAIN, NULL);
    CiRegion *region = CI_NEW(ctx, CiRegion);
    region->extent = ci_expr_const(kernels->loops->sym, 3);
    region->var = ci_expr_index(kernels->loops->sym, "i7", region->extent);
    test_put_region(kernels, region, 1, 2, 0);
    test_put_on_device(kernels, false);
    CiWrapper *w = test_wrap(kernels);
    ci_wrapper_verify(w);
    const char *loop = strstr(python_of(w), "for i7");
    const char *end = strstr(loop, "\n    del");
    int out = 0, in = 0;
    for (const char *at = loop; at < end; at++) {
        out += !strncmp(at, "to_host(", 8);
        in += !strncmp(at, "to_device(", 10);
    }
    CHECK_INT(out, 4); /* buf0, in1, buf1, in1 */
    CHECK_INT(in, 2);  /* buf1, buf2 */
}

static void
wrap_body(CiContext *ctx, void *arg)
{
    (void)arg;
    CiWrapper *w = test_wrap(test_kernels(ctx, CHAIN, NULL));
    ci_wrapper_verify(w);
    CiText text = ci_text_new(ctx);
    ci_wrapper_print_python(&text, w);
    ci_wrapper_print_json(&text, w, NULL, NULL, NULL, NULL);
}

TEST(failing_allocations)
{
    ci_test_failing_allocations(wrap_body, NULL);
}
