/* Tests build notes: cache entries that say what kernels were compiled to before. A note is used
 * only for the same kernels, options and compiler. */
#include "ci_test.h"
#include "device/cpu/build_notes.h"
#include "device_run.h"

#include <stdlib.h>

typedef struct Place {
    CiContext *ctx;
    CiRuntime runtime;
    CiOptions options;
    CiBuildInfo info; /* of the last build */
    CiKernels *kernels;
} Place;

static void
open_place(CiContext *ctx, Place *p)
{
    char *path = ci_format(ctx, "%s/ci-known-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    CHECK(mkdtemp(path) != NULL);
    *p = (Place){.ctx = ctx};
    p->runtime.allocator = ci_allocator_open(1 << 20);
    p->runtime.cache = ci_cache_open(path);
    ci_options_default(&p->options);
}

static void
close_position(Place *p)
{
    ci_cache_clear(p->runtime.cache);
    ci_cache_close(p->runtime.cache);
    ci_runtime_shut(&p->runtime);
    ci_allocator_close(p->runtime.allocator);
}

/* Builds a kernel that fills an array with a number, runs it, and returns the contents of the
 * array. */
static float
built(Place *p, const char *number)
{
    CiContext *ctx = p->ctx;
    const CiBackend *backend = ci_backend_find(NULL, "cpu", "c");
    CiMachine *machine = CI_NEW(ctx, CiMachine);
    CiQueue queue = {.backend = backend, .runtime = &p->runtime};
    *machine = ci_backend_machine(backend, &p->options, true);
    const char *text = ci_format(
        ctx,
        "kernels f(in0: f32[8]) device=cpu backend=c {\n  k0: for i0<8 {\n"
        "    takes out in0\n    stage {\n      in0[i0] = {\n"
        "        %%0: f32 = const %s\n        yield %%0\n      }\n    }\n  }\n  return\n}\n",
        number);
    p->kernels = ci_kernels_parse(ctx, text, machine);
    TestRun run = {.loops = p->kernels->loops};
    test_allocate(ctx, &run, 8, 1, true);
    CiExecutable *exe = backend->compiler->build(ctx, &queue, p->kernels, &p->options, &p->info);
    CHECK_INT(test_launch(ctx, &run, exe, p->kernels->kernels[0], 8, NULL), CI_OK);
    exe->close(exe);
    return ((float *)run.data[0])[7];
}

/* The cache's note about the last build. */
static CiCpuBuildNotes *
note_of(Place *p)
{
    CiSystemCompiler compiler;
    CHECK(ci_compiler_find(&compiler));
    ci_compiler_identify(p->ctx, &p->runtime, &compiler, 60.0);
    return ci_cpu_known_new(p->ctx, &compiler, p->kernels, &p->options);
}

TEST(kernels_are_known_again)
{
    Place p;
    open_place(ctx, &p);
    CHECK(built(&p, "2.0") == 2.0f && p.info.children > 0 && !p.info.from_cache);
    CiCpuBuildNotes *note = note_of(&p);
    CHECK(note && ci_cpu_known_read(p.runtime.cache, note));
    CHECK(note->nunits == 1 && note->nkernels == 1 && note->kernels[0].unit == 0);
    CHECK_TEXT(note->kernels[0].launch, "units 1;unit_work 2048;");
    CHECK(built(&p, "2.0") == 2.0f && p.info.children == 0 && p.info.from_cache);
    CHECK(built(&p, "3.0") == 3.0f && p.info.children > 0);
    CHECK(built(&p, "2.0") == 2.0f && p.info.children == 0);
    close_position(&p);
}

/* A valid note about other kernels, stored under the key of these. */
TEST(a_note_of_other_kernels_is_none)
{
    Place p;
    open_place(ctx, &p);
    CHECK(built(&p, "2.0") == 2.0f);
    CiCpuBuildNotes *two = note_of(&p), *planted = CI_NEW(ctx, CiCpuBuildNotes);
    CHECK(ci_cpu_known_read(p.runtime.cache, two));
    CHECK(built(&p, "3.0") == 3.0f);
    CiCpuBuildNotes *three = note_of(&p);
    CHECK(ci_cpu_known_read(p.runtime.cache, three));
    *planted = *two;
    ci_cache_write_note(p.runtime.cache, CI_CACHE_units, three->key, planted, ci_cpu_known_size(planted));
    CHECK(built(&p, "3.0") == 3.0f && p.info.children == 0);
    CHECK(ci_cpu_known_read(p.runtime.cache, three)); /* rewritten */
    memcpy(planted->kernels[0].launch, "units 8*s9;", 12);
    memcpy(planted->key, three->key, sizeof planted->key);
    ci_cache_write_note(p.runtime.cache, CI_CACHE_units, three->key, planted, ci_cpu_known_size(planted));
    CHECK(built(&p, "3.0") == 3.0f && ci_cpu_known_read(p.runtime.cache, three));
    planted->kernels[0].printed = 7;
    memcpy(planted->key, three->key, sizeof planted->key);
    ci_cache_write_note(p.runtime.cache, CI_CACHE_units, three->key, planted, ci_cpu_known_size(planted));
    CHECK(built(&p, "3.0") == 3.0f);
    ci_cache_write_note(p.runtime.cache, CI_CACHE_units, three->key, planted, 100);
    CHECK(built(&p, "3.0") == 3.0f);
    close_position(&p);
}

/* The key of a note contains everything that affects compilation: options, CPU level, compiler. */
TEST(a_note_is_of_one_way_to_compile)
{
    Place p;
    open_place(ctx, &p);
    CHECK(built(&p, "2.0") == 2.0f);
    CiCpuBuildNotes *first = note_of(&p);
    p.options.arch = "x86-64-v2";
    CHECK(strcmp(note_of(&p)->key, first->key) != 0);
    p.options.arch = "";
    p.options.numerics = "fast";
    CHECK(strcmp(note_of(&p)->key, first->key) != 0);
    p.options.numerics = "numpy";
    CHECK_TEXT(note_of(&p)->key, first->key);
    CiSystemCompiler other;
    CHECK(ci_compiler_find(&other));
    CHECK(strcmp(ci_cpu_known_new(ctx, &other, p.kernels, &p.options)->key, first->key) != 0);
    close_position(&p);
}

/* The object file is gone: it is built again. */
TEST(a_note_of_what_is_gone)
{
    Place p;
    open_place(ctx, &p);
    CHECK(built(&p, "2.0") == 2.0f);
    CiCpuBuildNotes *note = note_of(&p);
    CHECK(ci_cpu_known_read(p.runtime.cache, note));
    CiCpuBuildNotes kept = *note;
    ci_cache_clear(p.runtime.cache);
    ci_cpu_known_write(p.runtime.cache, &kept);
    CHECK(built(&p, "2.0") == 2.0f && p.info.children > 0);
    p.options.verify = true;
    CHECK(note_of(&p) == NULL); /* verifying each level needs all levels, so no note is used */
    close_position(&p);
}
