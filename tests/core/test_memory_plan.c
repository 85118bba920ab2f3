/* Tests the plan of memory pools and of partitions, and checks that the verifier finds each kind
 * of planted mistake. */
#include "ci_test.h"
#include "pipeline.h"
#include "wrapper/partition.h"

#define SHRINKING                                                                                  \
    "graph f(in0: f64[16]) {\n"                                                                    \
    "  %0: f64[16] = extern a(in0)\n"                                                              \
    "  %1: f64[8] = extern b(%0)\n"                                                                \
    "  %2: f64[8] = extern c(%1)\n"                                                                \
    "  %3: f64[8] = extern d(%2)\n"                                                                \
    "  return %3\n"                                                                                \
    "}\n"

static void
verify_body(CiContext *ctx, void *arg)
{
    (void)ctx;
    ci_wrapper_verify(arg);
}

static void
expect(CiContext *ctx, const char *what)
{
    if (!strstr(ci_context_message(ctx), what))
        CI_TEST_SAY("'%s' does not say '%s'", ci_context_message(ctx), what);
}

/* ---- pools ---- */

static CiWrapper *
pooled(CiContext *ctx)
{
    CiOptions *options = test_options(ctx);
    options->pools = true;
    CiWrapper *w = ci_wrap(test_kernels(ctx, SHRINKING, NULL), options, NULL);
    ci_wrapper_verify(w);
    return w;
}

TEST(a_pool_is_as_large_as_its_fullest_line)
{
    const CiWrapper *w = pooled(ctx);
    CHECK_INT(w->nbuffers - w->first_pool, 1);
    CHECK(ci_expr_equals_const(w->lines[find_line(w, CI_LINE_alloc, 0)].bytes, 128));
    CHECK(find_line(w, CI_LINE_part, 1) >= 0 && find_line(w, CI_LINE_leave, 1) >= 0);
    CHECK(ci_expr_equals_const(w->lines[find_line(w, CI_LINE_part, 1)].value, 0));
}

#define LARGE_AND_SMALL                                                                            \
    "graph f(in0: f64[16]) {\n"                                                                    \
    "  %0: f64[262144] = extern a(in0)\n"                                                          \
    "  %1: f64[131072] = extern b(%0)\n"                                                           \
    "  %2: f64[8] = extern c(%1)\n"                                                                \
    "  %3: f64[4] = extern d(%2)\n"                                                                \
    "  %4: f64[8] = extern e(%3)\n"                                                                \
    "  return %4\n"                                                                                \
    "}\n"

TEST(the_caller_allocates_large_buffers)
{
    CiOptions *options = test_options(ctx);
    options->pools = options->caller_memory = true;
    const CiWrapper *w = ci_wrap(test_kernels(ctx, LARGE_AND_SMALL, NULL), options, NULL);
    ci_wrapper_verify(w);
    CHECK_INT(w->nbuffers - w->first_pool, 1);
    for (int b = 0; b < w->nbuffers; b++) {
        bool is_large = w->buffers[b]->rank == 1 && ci_expr_is_const(w->buffers[b]->sizes[0], NULL) &&
                        w->buffers[b]->sizes[0]->value >= 131072;
        CHECK(ci_wrapper_is_callers(w, w->buffers[b]) == is_large);
        CHECK(!is_large || !w->pool_of[b]);
    }
    CHECK(w->peak_bytes == 262144 * 8 + 131072 * 8);
    options->caller_memory = false;
    w = ci_wrap(test_kernels(ctx, LARGE_AND_SMALL, NULL), options, NULL);
    for (int b = 0; b < w->nbuffers; b++)
        CHECK(!ci_wrapper_is_callers(w, w->buffers[b]));
}

TEST(verifier_finds_parts_that_meet)
{
    CiWrapper *w = pooled(ctx);
    CiLine *leave = &w->lines[find_line(w, CI_LINE_leave, 0)];
    *leave = (CiLine){.kind = CI_LINE_comment, .text = "", .match = -1, .open = -1, .loc = {.file = ""}};
    CHECK_FAILS(ctx, INTERNAL, verify_body, w);
    expect(ctx, "buf2 overlaps buf0");
}

TEST(verifier_finds_parts_outside_of_their_pool)
{
    CiWrapper *w = pooled(ctx);
    CiSym *sym = w->kernels->loops->sym;
    CiLine *part = &w->lines[find_line(w, CI_LINE_part, 0)];
    part->value = ci_expr_const(sym, 64);
    CHECK_FAILS(ctx, INTERNAL, verify_body, w);
    expect(ctx, "buf0 ends after its pool");
    part->value = ci_expr_const(sym, 8);
    CHECK_FAILS(ctx, INTERNAL, verify_body, w);
    expect(ctx, "buf0 begins within a line of the cache");
}

TEST(verifier_finds_a_pool_that_goes_too_early)
{
    CiWrapper *w = pooled(ctx);
    int leave = find_line(w, CI_LINE_leave, 1);
    CHECK_INT(w->lines[leave + 1].kind, CI_LINE_free);
    CiLine line = w->lines[leave];
    w->lines[leave] = w->lines[leave + 1];
    w->lines[leave + 1] = line;
    CHECK_FAILS(ctx, INTERNAL, verify_body, w);
    expect(ctx, "pool0 is freed, but parts of it are used");
}

/* ---- partitions ---- */

static bool
takes_b(const CiExternItem *item)
{
    return !strcmp(item->ext->name, "b") || !strcmp(item->ext->name, "c");
}

/* a and d are on the host, b and c on the device: one partition. */
static CiPartitions *
parted(CiContext *ctx)
{
    CiKernels *kernels = test_kernels(ctx, SHRINKING, NULL);
    test_put_on_device(kernels, false)->takes_extern = takes_b;
    CiPartitions *partitions = ci_partition(test_wrap(kernels));
    ci_partitions_verify(partitions);
    return partitions;
}

static void
verify_partitions(CiContext *ctx, void *arg)
{
    (void)ctx;
    ci_partitions_verify(arg);
}

TEST(what_the_host_does_parts_the_program)
{
    const CiPartitions *partitions = parted(ctx);
    CHECK_INT(partitions->count, 1);
    CHECK_INT(partitions->list[0].nlaunches, 2);
    CHECK_INT(partitions->list[0].ntakes, 1);
    CHECK_TEXT(partitions->list[0].takes[0]->name, "buf0");
    CHECK_INT(partitions->list[0].ngives, 1);
    CHECK_TEXT(partitions->list[0].gives[0]->name, "buf2");
}

TEST(verifier_finds_borders_that_are_not_told)
{
    CiPartitions *partitions = parted(ctx);
    partitions->list[0].ntakes = 0;
    CHECK_FAILS(ctx, INTERNAL, verify_partitions, partitions);
    expect(ctx, "buf0 is used, and neither taken nor made, or both");
    partitions = parted(ctx);
    partitions->list[0].ngives = 0;
    CHECK_FAILS(ctx, INTERNAL, verify_partitions, partitions);
    expect(ctx, "buf2 is made in it and used outside, but not given");
}

TEST(verifier_finds_what_no_recorder_takes)
{
    CiPartitions *partitions = parted(ctx);
    while (ci_line_row(partitions->wrapper->lines[partitions->list[0].last].kind)->record !=
           CI_RECORD_cuts)
        partitions->list[0].last++;
    CHECK_FAILS(ctx, INTERNAL, verify_partitions, partitions);
    expect(ctx, "copy_out done by the host");
    partitions = parted(ctx);
    partitions->count = 0;
    CHECK_FAILS(ctx, INTERNAL, verify_partitions, partitions);
    expect(ctx, "is in 0 partitions");
}
