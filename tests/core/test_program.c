/* Runs programs on a fake backend and checks which steps run in which order with which memory. A
 * call that fails at any step must leave nothing allocated.
 *
 * A kernel of the fake backend stores 1 + the sum of the buffers that it only reads. A library
 * call stores ten times the sum of its operands. */
#include <fenv.h>
#include <stdlib.h>

#include "ci_test.h"
#include "pipeline.h"
#include "loops/loops.h"
#include "runtime/plan.h"

#define MAX_RESULTS 160
#define N 8

/* State of the fake backend: what it was given and what it recorded. One test at a time. */
typedef struct Fake {
    const CiKernels *kernels;
    CiRuntime runtime;
    char *arena; /* the device's memory: no address is handed out twice */
    size_t arena_used;
    int live, allocations, launches, calls, closed, references;
    int fail_at, steps; /* the fail_at-th step that can fail does fail */
    int64_t sizes_seen[16];
    int64_t count; /* elements of every buffer; 0: the kernel's first size */
    bool raises_flags, has_memory;
    bool *condition; /* set to false by the last iteration */
    int turns;
    void *results[MAX_RESULTS];
    int nresults;
} Fake;

static Fake fake;

static bool
fails_now(void)
{
    return ++fake.steps == fake.fail_at;
}

static bool
is_device(const void *pointer)
{
    return (const char *)pointer >= fake.arena && (const char *)pointer < fake.arena + (1 << 20);
}

static void
check_side(const void *pointer, bool on_device)
{
    if (fake.has_memory && is_device(pointer) != on_device)
        CI_TEST_SAY("a pointer of the wrong side");
}

static int32_t
fake_launch(CiExecutable *executable, const CiLaunch *launch, CiFault *fault)
{
    (void)executable;
    if (fails_now()) {
        fault->kind = 7;
        return CI_ERR_VALUE;
    }
    const CiKernel *kernel = NULL;
    for (int i = 0; i < fake.kernels->nkernels; i++)
        if (fake.kernels->kernels[i]->id == launch->kernel)
            kernel = fake.kernels->kernels[i];
    int64_t count = fake.count ? fake.count : launch->sizes[0];
    if (kernel->nsize_args)
        fake.sizes_seen[fake.launches % 16] = launch->sizes[0];
    for (int64_t i = 0; i < count; i++) {
        double sum = 1;
        for (int k = 0; k < kernel->nbuffers; k++)
            sum += kernel->is_stored[k] ? 0 : ((double *)launch->buffers[k])[i];
        for (int k = 0; k < kernel->nbuffers; k++)
            if (kernel->is_stored[k])
                ((double *)launch->buffers[k])[i] = sum;
    }
    for (int k = 0; k < kernel->nbuffers; k++)
        check_side(launch->buffers[k], true);
    if (fake.raises_flags)
        feraiseexcept(FE_DIVBYZERO);
    fake.launches++;
    return CI_OK;
}

static int32_t
fake_call(void *data, const CiExternCall *call)
{
    (void)data;
    fake.calls++;
    if (fails_now())
        return CI_ERR_PYTHON;
    int64_t count = call->ranks[call->noperands] ? call->sizes[call->noperands][0] : 1;
    for (int64_t i = 0; i < count; i++) {
        double sum = 0;
        for (int k = 0; k < call->noperands; k++)
            sum += *((double *)call->operands[k] + (call->ranks[k] ? i * call->strides[k][0] : 0));
        ((double *)call->result)[i] = 10 * sum;
    }
    for (int k = 0; k < call->noperands; k++)
        check_side(call->operands[k], false);
    if (fake.condition && ++fake.turns == 4)
        *fake.condition = false;
    feraiseexcept(FE_OVERFLOW);
    return CI_OK;
}

static int32_t
fake_allocate(const CiQueue *queue, size_t size, void **block)
{
    (void)queue;
    if (fails_now())
        return CI_ERR_MEMORY;
    fake.live++;
    fake.allocations++;
    *block = fake.arena + fake.arena_used;
    fake.arena_used += (size + 63) / 64 * 64 + 64;
    return CI_OK;
}

static void
fake_release(const CiQueue *queue, void *block, size_t size)
{
    (void)queue;
    fake.live--;
    memset(block, 0x7f, size); /* a later read of the freed block gets nonsense */
}

static int32_t
fake_copy_in(const CiQueue *queue, void *device, const void *host, size_t size)
{
    (void)queue;
    check_side(device, true);
    check_side(host, false);
    memcpy(device, host, size);
    return fails_now() ? CI_ERR_DEVICE : CI_OK;
}

static int32_t
fake_copy_out(const CiQueue *queue, void *host, const void *device, size_t size)
{
    (void)queue;
    check_side(device, true);
    check_side(host, false);
    memcpy(host, device, size);
    return fails_now() ? CI_ERR_DEVICE : CI_OK;
}

static void
fake_close(CiExecutable *executable)
{
    (void)executable;
    fake.closed++;
}

static const CiDevice host = {.abi = CI_DEVICE_ABI, .name = "test"};
static const CiDevice device = {.abi = CI_DEVICE_ABI,
                                .name = "test",
                                .allocate = fake_allocate,
                                .release = fake_release,
                                .copy_in = fake_copy_in,
                                .copy_out = fake_copy_out};
static const CiCompiler compiler = {.abi = CI_DEVICE_ABI, .name = "fake"};
static const CiBackend host_backend = {&host, &compiler, NULL}, device_backend = {&device, &compiler, NULL};
static CiExecutable fake_executable = {
    .queue = {.backend = &host_backend}, .launch = fake_launch, .close = fake_close};

static void
retain(void *data)
{
    (void)data;
    fake.references++;
}

static void
release(void *data)
{
    (void)data;
    fake.references--;
}

static void *
new_result(void *arg, int number, const CiResultBuffer *result)
{
    (void)arg;
    int64_t count = 1;
    for (int axis = 0; axis < result->rank; axis++)
        count *= result->sizes[axis];
    if (fails_now() || number >= MAX_RESULTS)
        return NULL;
    CHECK(!fake.results[number]);
    fake.results[number] = calloc((size_t)count + 1, (size_t)ci_dtype_size(result->dtype));
    fake.nresults++;
    return fake.results[number];
}

static void
drop_results(void)
{
    for (int i = 0; i < MAX_RESULTS; i++) {
        free(fake.results[i]);
        fake.results[i] = NULL;
    }
    fake.nresults = 0;
}

static void
start(void)
{
    drop_results();
    fake = (Fake){.count = N};
    fake.runtime.allocator = ci_allocator_open(1 << 20);
}

static void
stop(CiProgram *program)
{
    ci_program_release(program);
    CHECK_INT(fake.closed, 1);
    CHECK_INT(fake.references, 0);
    CHECK_INT(fake.live, 0);
    drop_results();
    ci_allocator_close(fake.runtime.allocator);
    free(fake.arena);
    fake.arena = NULL;
}

static CiProgram *
open_wrapper(CiContext *ctx, const CiWrapper *w, const CiBackend *backend)
{
    char message[256];
    CiProgram *program;
    ci_wrapper_verify(w);
    if (!fake.kernels)
        fake.kernels = w->kernels;
    for (int i = 0; i < w->nlines; i++)
        if (w->lines[i].ext) {
            ((CiExtern *)w->lines[i].ext->ext)->retain = retain;
            ((CiExtern *)w->lines[i].ext->ext)->release = release;
        }
    CiQueue queue = {.backend = backend, .runtime = &fake.runtime};
    CiOptions options;
    ci_options_default(&options);
    CiProgramDevice one = {queue, &fake_executable};
    if (ci_program_open(w, &options, &one, 1, &program, message, sizeof message))
        ci_fail(ctx, CI_ERR_INTERNAL, "%s", message);
    return program;
}

static CiProgram *
open_text(CiContext *ctx, const char *text)
{
    return open_wrapper(ctx, test_wrap(test_kernels(ctx, text, fake_call)), &host_backend);
}

static int32_t
run(CiProgram *program, void *const *inputs, const int64_t *const *sizes, const CiSlot *scalars,
    CiCall *out)
{
    *out = (CiCall){.inputs = inputs, .sizes = sizes, .scalars = scalars, .new_result = new_result};
    return ci_program_run(program, out);
}

#define MIXED                                                                                      \
    "graph f(in0: f64[8], in1: f64[8]) {\n"                                                        \
    "  %0: f64[8] = add(in0, in1)\n"                                                               \
    "  %1: f64[8] = extern ten(%0, in1)\n"                                                         \
    "  %2: f64[8] = multiply(%1, in0)\n"                                                           \
    "  %3: f64[8] = extern ten(%2)\n"                                                              \
    "  %4: f64[8] = exp(%3)\n"                                                                     \
    "  return %4, %2, in0\n"                                                                       \
    "}\n"

/* For in0 = 2 and in1 = 3: 6, 90, 93, 930, 931. */
static void
check_mixed(const CiProgram *program)
{
    CiReturn value;
    CHECK_INT(ci_program_return_count(program), 3);
    ci_program_return_at(program, 0, NULL, NULL, &value);
    CHECK(((double *)fake.results[value.result_buffer])[3] == 931);
    ci_program_return_at(program, 1, NULL, NULL, &value);
    CHECK(((double *)fake.results[value.result_buffer])[7] == 93);
    CHECK(value.is_whole && value.input == -1 && value.rank == 1 && value.sizes[0] == 8);
    ci_program_return_at(program, 2, NULL, NULL, &value);
    CHECK(value.input == 0 && value.result_buffer == -1 && value.is_whole);
}

TEST(static_program)
{
    start();
    CiProgram *program = open_text(ctx, MIXED);
    double a[N], b[N];
    for (int i = 0; i < N; i++)
        a[i] = 2, b[i] = 3;
    CiCall call;
    CHECK(ci_program_is_static(program));
    CHECK_INT(ci_program_result_buffer_count(program), 2);
    CHECK_INT(ci_program_extern_count(program), 2);
    CHECK_TEXT(ci_program_extern_at(program, 1)->name, "ten");
    CHECK_INT(fake.references, 2);
    CHECK_INT(run(program, (void *[]){a, b}, NULL, NULL, &call), CI_OK);
    CHECK_INT(fake.launches, 3);
    check_mixed(program);
    CHECK(ci_program_work(program) >= 24 && ci_program_work(program) < 100000);
    CHECK_INT(fake.closed, 0);
    stop(program);
}

TEST(a_failing_step_ends_the_call_and_leaves_nothing)
{
    start();
    CiProgram *program = open_text(ctx, MIXED);
    double a[N] = {0}, b[N] = {0};
    CiCall call;
    for (fake.fail_at = 1;; fake.fail_at++) {
        fake.steps = 0;
        int32_t status = run(program, (void *[]){a, b}, NULL, NULL, &call);
        drop_results();
        if (status == CI_OK)
            break;
        CHECK(status == CI_ERR_VALUE || status == CI_ERR_PYTHON);
        CHECK_INT(call.fault.kind, status == CI_ERR_VALUE ? 7 : 0);
    }
    CHECK_INT(fake.fail_at, 8); /* three kernels, two calls, two results */
    stop(program);              /* the leak checker reports blocks that were not freed */
}

TEST(float_flags_are_those_of_kernels)
{
    start();
    CiProgram *program = open_text(ctx, MIXED);
    double a[N] = {0}, b[N] = {0};
    CiCall call;
    feraiseexcept(FE_INVALID);
    CHECK_INT(run(program, (void *[]){a, b}, NULL, NULL, &call), CI_OK);
    CHECK_INT(call.float_flags, 0); /* not the caller's, not the library's */
    drop_results();
    fake.raises_flags = true;
    CHECK_INT(run(program, (void *[]){a, b}, NULL, NULL, &call), CI_OK);
    CHECK_INT(call.float_flags, FE_DIVBYZERO);
    stop(program);
}

TEST(memory_that_cannot_be_had)
{
    start();
    CiProgram *program = open_text(ctx, "graph f(in0: f64[1099511627776,64]) {\n"
                                        "  %0: f64[1099511627776,64] = exp(in0)\n"
                                        "  %1: f64[1099511627776,64] = extern ten(%0)\n"
                                        "  %2: f64[64] = sum(%1, axes=[0])\n"
                                        "  return %2\n"
                                        "}\n");
    double a[N] = {0};
    CiCall call;
    CHECK_INT(run(program, (void *[]){a}, NULL, NULL, &call), CI_ERR_MEMORY);
    CHECK_INT(fake.launches, 0);
    stop(program);
}

TEST(views_of_results_and_inputs)
{
    start();
    CiProgram *program = open_text(ctx, "graph f(in0: f64[4,6]) {\n"
                                        "  %0: f64[6,4] order [1,0] = permute(in0, axes=[1, 0])\n"
                                        "  %1: f64[4,6] = exp(in0)\n"
                                        "  %2: f64[2,6] = slice(%1, starts=[3, 0], steps=[-2, 1])\n"
                                        "  return %0, %2\n"
                                        "}\n");
    CiReturn value;
    ci_program_return_at(program, 0, NULL, NULL, &value);
    CHECK(value.input == 0 && !value.is_whole && value.offset == 0);
    CHECK(value.sizes[0] == 6 && value.strides[0] == 1 && value.strides[1] == 6);
    ci_program_return_at(program, 1, NULL, NULL, &value);
    CHECK(value.result_buffer == 0 && value.offset == 18 && value.strides[0] == -12);
    stop(program);
}

TEST(writes_into_inputs)
{
    start();
    CiProgram *program = open_text(ctx, "graph f(in0: f64[8], in1: f64[8]) {\n"
                                        "  %0: f64[8] = add(in1, in1)\n"
                                        "  write in0 = %0\n"
                                        "  return in1\n"
                                        "}\n");
    double a[N] = {0}, b[N] = {0, 1, 2, 3, 4, 5, 6, 7};
    CiCall call;
    CHECK_INT(run(program, (void *[]){a, b}, NULL, NULL, &call), CI_OK);
    CHECK(a[7] == 8 && a[0] == 1);
    CHECK_INT(fake.nresults, 0);
    stop(program);
}

TEST(scalars_reach_library_calls)
{
    start();
    CiProgram *program =
        open_text(ctx, "graph f(in0: python f64[], in1: f64[8], in2: python f64[]) {\n"
                       "  %0: f64[8] = extern ten(in1, in2)\n"
                       "  %1: f64[8] = add(%0, in0)\n"
                       "  return %1\n"
                       "}\n");
    double a[N] = {0, 1, 2, 3, 4, 5, 6, 7};
    CiCall call;
    CiSlot scalars[] = {{.f = 5}, {.f = 100}};
    CHECK_INT(run(program, (void *[]){NULL, a, NULL}, NULL, scalars, &call), CI_OK);
    CHECK(((double *)fake.results[0])[7] == 1071);
    int kernel = ci_program_kernel_count(program) - 1;
    CHECK_INT(ci_program_kernel_buffer_count(program, 0), -1);
    CHECK_INT(ci_program_kernel_buffer_count(program, kernel), 2);
    CHECK_INT(ci_program_kernel_scalar_count(program, kernel), 1);
    CHECK_INT(ci_program_kernel_scalar_at(program, kernel, 0), 0);
    CiFault fault;
    double out[N];
    CHECK_INT(ci_program_launch(program, kernel, (void *[]){a, out}, NULL, scalars, 1, &fault), 0);
    CHECK(out[7] == 8);
    CHECK_INT(ci_program_launch(program, 0, NULL, NULL, NULL, 1, &fault), CI_ERR_INDEX);
    stop(program);
}

TEST(symbols_of_a_program_without_any)
{
    start();
    CiProgram *program = open_text(ctx, "graph f(in0: f64[0]) {\n"
                                        "  write in0 = in0\n"
                                        "  return\n"
                                        "}\n");
    double a[N] = {0};
    int64_t symbols[1] = {7};
    CiCall call = {.inputs = (void *[]){a}, .new_result = new_result, .symbols = symbols};
    CHECK_INT(ci_program_run(program, &call), CI_OK);
    CHECK_INT(symbols[0], 7);
    stop(program);
}

#define SYMBOLIC                                                                                   \
    "symbols {s0 in [0, inf), s1 in [0, inf)}\n"                                                   \
    "graph f(in0: f64[s0,s1], in1: f64[s1]) {\n"                                                   \
    "  %0: f64[s0,s1] = add(in0, in1)\n"                                                           \
    "  %1: f64[s1,s0] order [1,0] = permute(%0, axes=[1, 0])\n"                                    \
    "  return %1, %0\n"                                                                            \
    "}\n"

TEST(sizes_come_from_the_call)
{
    start();
    fake.count = 1;
    CiProgram *program = open_text(ctx, SYMBOLIC);
    CHECK(!ci_program_is_static(program));
    CHECK_INT(ci_program_symbol_count(program), 2);
    double a[12] = {0}, b[4] = {0};
    CiCall call;
    for (int64_t rows = 1; rows < 4; rows++) {
        const int64_t first[] = {rows, 4}, second[] = {4};
        const int64_t *sizes[] = {first, second};
        int64_t symbols[2], storage[2 * CI_MAX_RANK];
        CHECK_INT(run(program, (void *[]){a, b}, sizes, NULL, &call), CI_OK);
        ci_program_symbols(program, &call, symbols);
        CHECK(symbols[0] == rows && symbols[1] == 4);
        CiReturn value;
        ci_program_return_at(program, 0, symbols, storage, &value);
        CHECK(value.sizes[0] == 4 && value.sizes[1] == rows);
        CHECK(value.strides[0] == 1 && value.strides[1] == 4);
        CHECK(fake.sizes_seen[rows - 1] == rows || fake.sizes_seen[rows - 1] == 4 ||
              fake.sizes_seen[rows - 1] == 4 * rows);
        CiFault fault;
        CHECK_INT(ci_program_launch(program, 0, (void *[]){a, b, fake.results[0]}, symbols, NULL, 1,
                                    &fault),
                  0);
        fake.launches--;
        drop_results();
    }
    CHECK(ci_program_work(program) == INT64_MAX);
    stop(program);
}

TEST(integer_arguments_can_be_symbols)
{
    start();
    fake.count = 1;
    CiGraph *graph = ci_graph_parse(ctx, "symbols {n0 in [0, inf) from in1 hint 5}\n"
                                         "graph f(in0: f64[8], in1: python i64[]) {\n"
                                         "  %0: i64[n0] = iota(axis=0)\n"
                                         "  return %0\n"
                                         "}\n");
    CiMachine *machine = test_machine(ctx);
    CiOptions *options = test_options(ctx);
    CiLoops *loops = ci_lower(graph, machine, options);
    ci_loop_passes_run(loops, machine, options, &(CiPassPlan){0});
    CiKernels *kernels = ci_schedule(loops, machine, options);
    CiWrapper *w = ci_wrap(kernels, options, graph->env);
    CiProgram *program = open_wrapper(ctx, w, &host_backend);
    CiCall call;
    CiSlot scalars[] = {{.i = 3}};
    int64_t symbols[1], storage[2 * CI_MAX_RANK];
    CHECK_INT(run(program, (void *[]){NULL, NULL}, NULL, scalars, &call), CI_OK);
    ci_program_symbols(program, &call, symbols);
    CiReturn value;
    ci_program_return_at(program, 0, symbols, storage, &value);
    CHECK_INT(value.sizes[0], 3);
    stop(program);
}

/* ---- regions ---- */

#define STEPS                                                                                      \
    "graph f(in0: f64[8], in1: bool[]) {\n"                                                        \
    "  %0: f64[8] = extern ten(in0)\n"                                                             \
    "  %1: f64[8] = extern ten(%0)\n"                                                              \
    "  %2: f64[8] = extern ten(%1)\n"                                                              \
    "  return %2\n"                                                                                \
    "}\n"

static CiProgram *
open_region(CiContext *ctx, CiRegion *region, bool is_for, int first, int count, int other)
{
    CiKernels *kernels = test_kernels(ctx, STEPS, fake_call);
    region->condition = is_for ? NULL : kernels->loops->buffers[1];
    if (is_for) {
        region->extent = ci_expr_const(kernels->loops->sym, 5);
        region->var = ci_expr_index(kernels->loops->sym, "i7", region->extent);
    }
    fake.kernels = kernels;
    test_put_region(kernels, region, first, count, other);
    return open_wrapper(ctx, test_wrap(kernels), &host_backend);
}

static int
calls_made(CiProgram *program, bool condition)
{
    double a[N] = {1, 1, 1, 1, 1, 1, 1, 1};
    CiCall call;
    fake.calls = fake.turns = 0;
    fake.condition = &condition;
    CHECK_INT(run(program, (void *[]){a, &condition}, NULL, NULL, &call), CI_OK);
    fake.condition = NULL;
    drop_results();
    return fake.calls;
}

TEST(loops_run_their_turns)
{
    start();
    CiProgram *program = open_region(ctx, &(CiRegion){0}, true, 1, 1, 0);
    CHECK_INT(calls_made(program, true), 7);
    CHECK(ci_program_is_static(program));
    CHECK_INT(ci_program_symbol_count(program), 1);
    stop(program);
}

TEST(while_runs_until_its_condition_fails)
{
    start();
    CiRegion region = {.kind = CI_ITEM_while};
    CiProgram *program = open_region(ctx, &region, false, 1, 1, 0);
    CHECK_INT(calls_made(program, false), 2);
    CHECK_INT(calls_made(program, true), 5); /* the fourth call in all ends it */
    stop(program);
}

TEST(branches_are_taken_or_not)
{
    start();
    CiProgram *program = open_region(ctx, &(CiRegion){0}, false, 1, 1, 0);
    CHECK_INT(calls_made(program, true), 3);
    CHECK_INT(calls_made(program, false), 2);
    stop(program);
    start();
    program = open_region(ctx, &(CiRegion){0}, false, 0, 2, 1);
    CHECK_INT(calls_made(program, true), 2);
    CHECK_INT(calls_made(program, false), 1);
    stop(program);
}

TEST(loop_variables_are_sizes_of_kernels)
{
    start();
    CiKernels *kernels = test_kernels(ctx,
                                      "graph f(in0: f64[8]) {\n"
                                      "  %0: f64[8] = exp(in0)\n"
                                      "  return %0\n"
                                      "}\n",
                                      NULL);
    CiSym *sym = kernels->loops->sym;
    CiRegion region = {.extent = ci_expr_const(sym, 4)};
    region.var = ci_expr_index(sym, "i7", region.extent);
    CiKernel *kernel = kernels->kernels[0];
    kernel->size_args = CI_NEW_ARRAY(ctx, const CiExpr *, 1);
    kernel->size_args[0] =
        ci_expr_floordiv(sym,
                         ci_expr_add(sym, ci_expr_mul(sym, region.var, ci_expr_const(sym, 3)),
                                     ci_expr_const(sym, 1)),
                         ci_expr_const(sym, 2));
    kernel->nsize_args = 1;
    fake.kernels = test_some_kernels(kernels, 0, 1);
    ((CiKernels *)fake.kernels)->kernels = CI_NEW_ARRAY(ctx, CiKernel *, 1);
    fake.kernels->kernels[0] = kernel;
    test_put_region(kernels, &region, 0, 1, 0);
    CiProgram *program = open_wrapper(ctx, test_wrap(kernels), &host_backend);
    double a[N] = {0};
    CiCall call;
    CHECK_INT(run(program, (void *[]){a}, NULL, NULL, &call), CI_OK);
    CHECK_INT(fake.launches, 4);
    for (int i = 0; i < 4; i++)
        CHECK_INT(fake.sizes_seen[i], (3 * i + 1) / 2);
    stop(program);
}

/* ---- devices with memory of their own ---- */

TEST(device_program_fails_cleanly_everywhere)
{
    start();
    fake.has_memory = true;
    CiKernels *kernels = test_kernels(ctx, MIXED, fake_call);
    test_put_on_device(kernels, true);
    fake.arena = calloc(1, 1 << 20);
    CiProgram *program = open_wrapper(ctx, test_wrap(kernels), &device_backend);
    double a[N], b[N];
    for (int i = 0; i < N; i++)
        a[i] = 2, b[i] = 3;
    CiCall call;
    for (fake.fail_at = 1;; fake.fail_at++) {
        fake.steps = 0;
        fake.arena_used = 0;
        int32_t status = run(program, (void *[]){a, b}, NULL, NULL, &call);
        CHECK_INT(fake.live, 0);
        if (status == CI_OK)
            break;
        drop_results();
    }
    check_mixed(program);
    CHECK(fake.fail_at > 15);
    stop(program);
}

TEST(writes_to_host_inputs_are_copied_back)
{
    start();
    fake.has_memory = true;
    CiKernels *kernels = test_kernels(ctx,
                                      "graph f(in0: f64[8], in1: f64[8]) {\n"
                                      "  %0: f64[8] = add(in1, in1)\n"
                                      "  write in0 = %0\n"
                                      "  return in1\n"
                                      "}\n",
                                      NULL);
    test_put_on_device(kernels, true);
    fake.arena = calloc(1, 1 << 20);
    CiProgram *program = open_wrapper(ctx, test_wrap(kernels), &device_backend);
    double a[N] = {0}, b[N] = {0, 1, 2, 3, 4, 5, 6, 7};
    CiCall call;
    CHECK_INT(run(program, (void *[]){a, b}, NULL, NULL, &call), CI_OK);
    CHECK(a[7] == 8 && a[0] == 1);
    stop(program);
}

/* ---- size ---- */

static char *
wide_text(CiContext *ctx, int count)
{
    CiText text = ci_text_new(ctx);
    ci_text_add(&text, "graph f(in0: f64[8]) {\n");
    for (int i = 0; i < count; i++)
        ci_text_add(&text, "  %%%d: f64[8] = extern ten(%s%d)\n", i, i ? "%" : "in", i ? i - 1 : 0);
    ci_text_add(&text, "  return ");
    for (int i = 0; i < count; i++)
        ci_text_add(&text, i ? ", %%%d" : "%%%d", i);
    ci_text_add(&text, "\n}\n");
    return text.data;
}

TEST(programs_of_many_buffers)
{
    start();
    CiProgram *program = open_text(ctx, wide_text(ctx, 120));
    double a[N] = {1};
    CiCall call;
    CHECK_INT(run(program, (void *[]){a}, NULL, NULL, &call), CI_OK);
    CHECK_INT(fake.nresults, 120);
    CHECK(((double *)fake.results[119])[0] > 9.9e119);
    stop(program);
}

static void
flatten_body(CiContext *ctx, void *arg)
{
    CiProgram *program = CI_NEW(ctx, CiProgram);
    program->ctx = ctx;
    CiOptions options;
    ci_options_default(&options);
    ci_program_flatten(program, arg, &options);
    CHECK_INT(program->nexterns, 2);
}

TEST(failing_allocations)
{
    fake.kernels = NULL;
    ci_test_failing_allocations(flatten_body, test_wrap(test_kernels(ctx, MIXED, fake_call)));
}

TEST(a_library_call_without_a_function_is_refused)
{
    char message[256];
    CiProgram *program;
    CiWrapper *w = test_wrap(test_kernels(ctx, MIXED, NULL));
    CiQueue queue = {.backend = &host_backend, .runtime = &fake.runtime};
    CiOptions options;
    ci_options_default(&options);
    CiProgramDevice one = {queue, NULL};
    CHECK_INT(ci_program_open(w, &options, &one, 1, &program, message, sizeof message),
              CI_ERR_UNSUPPORTED);
    CHECK_TEXT(message, "ten has no function to call: text cannot carry one");
    CHECK(!program);
}

/* ---- runs compared with the memory plan ---- */

#define WATCHED                                                                                    \
    "graph f(in0: f64[8], in1: f64[8]) {\n"                                                        \
    "  %0: f64[8] = extern ten(in0)\n"                                                             \
    "  %1: f64[8] = add(%0, in1)\n"                                                                \
    "  %2: f64[8] = extern ten(%1, %0)\n"                                                          \
    "  %3: f64[8] = multiply(%2, %1)\n"                                                            \
    "  %4: f64[8] = extern ten(%3, %2)\n"                                                          \
    "  %5: f64[8] = extern ten(%4, %0)\n"                                                          \
    "  %6: f64[8] = add(%5, %4)\n"                                                                 \
    "  return %6, %3\n"                                                                            \
    "}\n"

#define POOLED                                                                                     \
    "graph f(in0: f64[8], in1: f64[8]) {\n"                                                        \
    "  %0: f64[8] = extern ten(in0)\n"                                                             \
    "  %1: f64[4] = extern ten(%0)\n"                                                              \
    "  %2: f64[4] = extern ten(%1)\n"                                                              \
    "  %3: f64[4] = extern ten(%2)\n"                                                              \
    "  return %3\n"                                                                                \
    "}\n"

typedef enum Fault { FAULT_none, FAULT_removed, FAULT_later, FAULT_earlier, FAULT_COUNT } Fault;

static bool
is_memory(const CiStep *step)
{
    return step->kind == CI_STEP_alloc || step->kind == CI_STEP_alloc_result ||
           step->kind == CI_STEP_reuse || step->kind == CI_STEP_free ||
           step->kind == CI_STEP_part || step->kind == CI_STEP_leave;
}

/* False if the fault would change nothing. */
static bool
plant(CiStep *steps, int at, Fault fault)
{
    int other = fault == FAULT_later ? at + 1 : at - 1;
    if (!fault)
        return true;
    if (!is_memory(&steps[at]) || (fault == FAULT_earlier && at == 0))
        return false;
    if (fault == FAULT_removed) {
        steps[at] = (CiStep){.kind = CI_STEP_jump, .slot = -1, .other = -1, .target = at + 1};
        return true;
    }
    if (steps[other].kind != CI_STEP_launch && steps[other].kind != CI_STEP_extern)
        return false;
    CiStep kept = steps[at];
    steps[at] = steps[other];
    steps[other] = kept;
    return true;
}

/* Runs with a fault planted at a step and returns the message; false if there is no such step. */
static bool
run_planted(CiContext *ctx, int at, Fault fault, bool has_pools, char *message, size_t size)
{
    double a[N] = {1}, b[N] = {2};
    CiProgram *program;
    CiOptions options;
    ci_options_default(&options);
    options.track_memory = "assert";
    CiOptions *pooled = test_options(ctx);
    pooled->pools = has_pools;
    const char *graph = has_pools ? POOLED : WATCHED;
    CiWrapper *w = ci_wrap(test_kernels(ctx, graph, fake_call), pooled, NULL);
    CHECK_INT(w->nbuffers > w->first_pool, has_pools);
    start();
    fake.kernels = w->kernels;
    CiQueue queue = {.backend = &host_backend, .runtime = &fake.runtime};
    CiProgramDevice one = {queue, &fake_executable};
    CHECK_INT(ci_program_open(w, &options, &one, 1, &program, message, size), CI_OK);
    bool is_step = at < program->nsteps, is_planted = is_step && plant(program->steps, at, fault);
    CiCall call = {.inputs = (void *[]){a, b},
                   .new_result = new_result,
                   .message = message,
                   .message_size = size};
    *message = 0;
    CHECK_INT(ci_program_run(program, &call), is_planted && fault ? CI_ERR_ASSERT : CI_OK);
    ci_program_release(program);
    drop_results();
    ci_allocator_close(fake.runtime.allocator);
    return is_step;
}

TEST(faults_in_the_memory_plan_are_named)
{
    char text[256];
    for (int pools = 0; pools < 2; pools++) {
        int found = 0;
        CHECK(run_planted(ctx, 0, FAULT_none, pools, text, sizeof text));
        CHECK_TEXT(text, "");
        for (Fault fault = FAULT_removed; fault < FAULT_COUNT; fault++) {
            for (int at = 1; run_planted(ctx, at, fault, pools, text, sizeof text); at++) {
                found += *text != 0;
                CHECK(!*text || strstr(text, "buf") || strstr(text, "pool"));
            }
        }
        CHECK(found >= (pools ? 10 : 20));
    }
}
