/* Compiles the text of graphs through the public API and runs them on every CPU backend of this
 * machine. Checks results, views, writes, symbols, library calls, dumps and refusals. */
#include <fenv.h>
#include <stdlib.h>

#include "api/cinductor.h"
#include "ci_test.h"

#define MAX_RESULTS 8

typedef struct Run {
    CiApi *api;
    const CiBackend *backend;
    CiProgram *program;
    void *results[MAX_RESULTS];
    int64_t elements[MAX_RESULTS];
    CiCall call;
} Run;

static void *
new_result(void *arg, int number, const CiResultBuffer *result)
{
    Run *run = arg;
    int64_t count = 1;
    for (int axis = 0; axis < result->rank; axis++)
        count *= result->sizes[axis];
    run->elements[number] = count;
    run->results[number] = calloc((size_t)count + 1, (size_t)ci_dtype_size(result->dtype));
    return run->results[number];
}

static void
drop_results(Run *run)
{
    for (int i = 0; i < MAX_RESULTS; i++) {
        free(run->results[i]);
        run->results[i] = NULL;
    }
}

static int32_t
call(Run *run, void *const *inputs, const int64_t *const *sizes, const CiSlot *scalars)
{
    drop_results(run);
    run->call = (CiCall){
        .inputs = inputs, .sizes = sizes, .scalars = scalars, .new_result = new_result, .arg = run};
    return ci_program_run(run->program, &run->call);
}

/* Element `place` of returned value `position`, counted from the value's own first element. */
static const void *
returned(const Run *run, int position, void *const *inputs, int64_t place)
{
    CiReturn value;
    int64_t symbols[16], storage[2 * CI_MAX_RANK];
    ci_program_symbols(run->program, &run->call, symbols);
    ci_program_return_at(run->program, position, symbols, storage, &value);
    const char *data = value.input >= 0 ? inputs[value.input] : run->results[value.result_buffer];
    return data + (value.offset + place) * ci_dtype_size(value.dtype);
}

typedef void Body(Run *run);

static bool
is_usable(const CiBackend *backend)
{
    CiOptions options;
    char text[512];
    ci_options_default(&options);
    return !strcmp(backend->device->name, "cpu") &&
           !(backend->compiler->why_not_available &&
             backend->compiler->why_not_available(&options, text, sizeof text));
}

static void
open_program(Run *run, const char *text)
{
    char message[CI_API_MESSAGE];
    CiOptions options;
    ci_options_default(&options);
    options.verify = true;
    CiApiTarget target = {.backend = run->backend->compiler->name, .options = &options};
    if (ci_api_compile_text(run->api, text, &target, &run->program, message))
        CI_TEST_SAY("%s: %s", run->backend->compiler->name, message);
}

/* Compiles the text for each backend and runs the body with it. */
static void
for_each_backend(const char *text, Body *body)
{
    for (int i = 0; i < ci_backend_count(NULL); i++) {
        Run run = {.backend = ci_backend_at(NULL, i)};
        if (!is_usable(run.backend))
            continue;
        CHECK_INT(ci_api_open(&run.api, 2, ""), CI_OK);
        open_program(&run, text);
        int failures = ci_test_failures;
        if (run.program)
            body(&run);
        if (failures != ci_test_failures)
            printf("  with backend %s\n", run.backend->compiler->name);
        drop_results(&run);
        ci_program_release(run.program);
        ci_api_close(run.api);
    }
}

static void
relu_sum(Run *run)
{
    float x[2][3] = {{1, -2, 3}, {-4, 5, -6}}, b[3] = {0.5f, 0.5f, 0.5f};
    CHECK_INT(call(run, (void *[]){x, b}, NULL, NULL), CI_OK);
    const float *sums = run->results[0];
    CHECK(sums[0] == 5.0f && sums[1] == 5.5f);
    CHECK_INT(run->elements[0], 2);
    CHECK_INT(run->call.fault.kind, 0);
}

TEST(pointwise_and_reduction)
{
    for_each_backend("graph f(in0: f32[2,3], in1: f32[3]) {\n"
                     "  %0: f32[2,3] = add(in0, in1)  @net.py:7\n"
                     "  %1: f32[] = const 0.0\n"
                     "  %2: f32[2,3] = maximum(%0, %1)  @net.py:8\n"
                     "  %3: f32[2] = sum(%2, axes=[1])  @net.py:8\n"
                     "  return %3\n"
                     "}\n",
                     relu_sum);
}

static void
views(Run *run)
{
    double x[6] = {0, 1, 2, 3, 4, 5};
    void *inputs[] = {x};
    CHECK_INT(call(run, inputs, NULL, NULL), CI_OK);
    CHECK(*(const double *)returned(run, 0, inputs, 2) == 2);
    CHECK(*(const double *)returned(run, 1, inputs, 0) == 25);
    CHECK(*(const double *)returned(run, 1, inputs, -1) == 16);
    CHECK(returned(run, 2, inputs, 0) == x);
}

TEST(results_that_are_views)
{
    for_each_backend("graph f(in0: f64[2,3]) {\n"
                     "  %0: f64[3,2] order [1,0] = permute(in0, axes=[1, 0])\n"
                     "  %1: f64[2,3] = square(in0)\n"
                     "  %2: f64[6] = reshape(%1)\n"
                     "  %3: f64[6] = slice(%2, starts=[5], steps=[-1])\n"
                     "  return %0, %3, in0\n"
                     "}\n",
                     views);
}

static void
writes(Run *run)
{
    double x[4] = {1, 2, 3, 4}, y[4] = {10, 20, 30, 40};
    CHECK_INT(call(run, (void *[]){x, y}, NULL, NULL), CI_OK);
    CHECK(x[0] == 1 && x[1] == 22 && x[2] == 33 && x[3] == 4);
    CHECK(((double *)run->results[0])[1] == 2); /* read before the write */
}

TEST(writes_into_inputs)
{
    for_each_backend("graph f(in0: f64[4], in1: f64[4]) {\n"
                     "  %0: f64[4] = positive(in0)\n"
                     "  %1: f64[4] = add(in0, in1)\n"
                     "  %2: f64[2] = slice(%1, starts=[1], steps=[1])\n"
                     "  %3: f64[2] = slice(in0, starts=[1], steps=[1])\n"
                     "  %4: f64[4] = assign(in0, %3, %2)\n"
                     "  write in0 = %4\n"
                     "  return %0\n"
                     "}\n",
                     writes);
}

static void
symbolic(Run *run)
{
    double x[12], b[4] = {100, 200, 300, 400};
    for (int i = 0; i < 12; i++)
        x[i] = i;
    for (int64_t rows = 0; rows <= 3; rows++) {
        const int64_t first[] = {rows, 4}, second[] = {4};
        CHECK_INT(call(run, (void *[]){x, b}, (const int64_t *[]){first, second}, NULL), CI_OK);
        CHECK_INT(run->elements[0], rows);
        for (int64_t i = 0; i < rows; i++)
            CHECK(((double *)run->results[0])[i] == 1006 + 16.0 * (double)i);
    }
}

TEST(sizes_known_at_the_call)
{
    for_each_backend("symbols {s0 in [0, inf), s1 in [0, inf)}\n"
                     "graph f(in0: f64[s0,s1], in1: f64[s1]) {\n"
                     "  %0: f64[s0,s1] = add(in0, in1)\n"
                     "  %1: f64[s0] = sum(%0, axes=[1])\n"
                     "  return %1\n"
                     "}\n",
                     symbolic);
}

static void
scalars(Run *run)
{
    double x[3] = {1, 2, 3};
    CiSlot values[] = {{.f = 10}, {.i = 7}};
    CHECK_INT(call(run, (void *[]){NULL, x, NULL}, NULL, values), CI_OK);
    CHECK(((double *)run->results[0])[2] == 37);
}

TEST(run_time_scalars)
{
    for_each_backend("graph f(in0: python f64[], in1: f64[3], in2: python i64[]) {\n"
                     "  %0: f64[3] = multiply(in1, in0)\n"
                     "  %1: f64[] = cast(in2)\n"
                     "  %2: f64[3] = add(%0, %1)\n"
                     "  return %2\n"
                     "}\n",
                     scalars);
}

static void
flags(Run *run)
{
    double x[3] = {1, 0, 3}, y[3] = {0, 1, 1};
    CHECK_INT(call(run, (void *[]){x, y}, NULL, NULL), CI_OK);
    CHECK_INT(run->call.float_flags & FE_DIVBYZERO, FE_DIVBYZERO);
    y[0] = 1;
    feraiseexcept(FE_DIVBYZERO);
    CHECK_INT(call(run, (void *[]){x, y}, NULL, NULL), CI_OK);
    CHECK_INT(run->call.float_flags, 0);
}

TEST(float_flags)
{
    for_each_backend("graph f(in0: f64[3], in1: f64[3]) {\n"
                     "  %0: f64[3] = divide(in0, in1)\n"
                     "  return %0\n"
                     "}\n",
                     flags);
}

/* ---- graphs built by hand ---- */

static int32_t
outer_sum(void *data, const CiExternCall *c)
{
    const double *a = c->operands[0];
    double *out = c->result;
    for (int64_t i = 0; i < c->sizes[1][0]; i++)
        for (int64_t j = 0; j < c->sizes[1][1]; j++)
            out[i * c->strides[1][0] + j * c->strides[1][1]] =
                *(double *)data * a[i * c->strides[0][0]] + a[j * c->strides[0][0]];
    return CI_OK;
}

static void
build(CiGraph *graph, void *arg)
{
    const CiExpr *three = ci_expr_const(graph->sym, 3), *one = ci_expr_const(graph->sym, 1);
    const CiExpr *sizes[] = {three, three};
    CiLoc loc = {.file = ""};
    CiNode *x = ci_graph_input(graph, CI_DTYPE_f64, CI_KIND_array, 1, &three, &one);
    CiNode *y = ci_graph_pointwise(graph, CI_OP_square, 1, &x, loc);
    CiNode *z = ci_graph_extern(graph, CI_OP_extern, arg, CI_DTYPE_f64, 1, &y, 2, sizes, loc);
    CiNode *w = ci_graph_pointwise(graph, CI_OP_negative, 1, &z, loc);
    ci_graph_return(graph, w);
}

TEST(library_calls_of_a_built_graph)
{
    double ten = 10, x[3] = {1, 2, 3};
    CiExtern ext = {.name = "outer_sum", .key = "", .call = outer_sum, .data = &ten};
    Run run = {0};
    CiApiGraph *graph;
    CiCompileInfo info;
    const char *text, *again;
    CHECK_INT(ci_api_open(&run.api, 1, ""), CI_OK);
    CHECK_INT(ci_api_graph_open("f", &graph), CI_OK);
    CHECK_INT(ci_api_graph_build(graph, build, &ext), CI_OK);
    CHECK_INT(ci_api_graph_print(graph, &text), CI_OK);
    CHECK_INT(ci_api_graph_compile(run.api, graph, NULL, &run.program, &info), CI_OK);
    CHECK_INT(ci_api_graph_print(graph, &again), CI_OK);
    CHECK_TEXT(again, text);
    CHECK_INT(info.kernels, 2);
    CHECK_INT(info.externs, 1);
    ci_api_graph_close(graph);
    CHECK_INT(call(&run, (void *[]){x}, NULL, NULL), CI_OK);
    CHECK(((double *)run.results[0])[2 * 3 + 1] == -94);
    drop_results(&run);
    ci_program_release(run.program);
    ci_api_close(run.api);
}

/* ---- results of inspection ---- */

static void
note_level(void *arg, const char *level, const char *text)
{
    CiText *seen = arg;
    ci_text_add(seen, "%s ", level);
    CHECK(*text);
}

#define TINY "graph f(in0: f64[3]) {\n  %0: f64[3] = exp(in0)\n  return %0\n}\n"

TEST(every_level_is_shown_in_order)
{
    CiApi *api;
    CiProgram *program;
    char message[CI_API_MESSAGE];
    CiText seen = ci_text_new(ctx);
    CHECK_INT(ci_api_open(&api, 1, ""), CI_OK);
    CiApiTarget target = {.backend = "interp", .dump = note_level, .dump_arg = &seen};
    CHECK_INT(ci_api_compile_text(api, TINY, &target, &program, message), CI_OK);
    static const char levels[] = "graph "
#define PASS(name, is_needed, doc) #name " "
#include "passes/passes.def"
#undef PASS
                                 "optimized ranges loops drop_empty double_buffering temporal_blocking peel_copies "
                                 "interchange_blocks interchange_rows promote_scalars batch_calls "
                                 "assign_devices factor_axes order_axes kernels joins lines wrapper "
                                 "partitions json c dead_stores chain reduce vector procs ";
    CHECK_TEXT(seen.data, levels);
    ci_program_release(program);
    ci_api_close(api);
}

static void
expect_refusal(const char *text, const CiApiTarget *target, const char *what)
{
    CiApi *api;
    CiProgram *program;
    char message[CI_API_MESSAGE];
    CHECK_INT(ci_api_open(&api, 1, ""), CI_OK);
    CHECK(ci_api_compile_text(api, text, target, &program, message) != CI_OK);
    CHECK(!program);
    if (!strstr(message, what))
        CI_TEST_SAY("'%s' does not say '%s'", message, what);
    ci_api_close(api);
}

TEST(refusals_have_reasons)
{
    CiOptions options;
    ci_options_default(&options);
    options.dump = "loops,lops";
    expect_refusal(TINY, &(CiApiTarget){.options = &options}, "no level or pass 'lops'");
    expect_refusal(TINY, &(CiApiTarget){.backend = "nosuch"}, "no backend nosuch of device cpu");
    expect_refusal(TINY, &(CiApiTarget){.device = "abacus"}, "no backend of device abacus");
    expect_refusal("graph f(in0: f64[3]) {\n  return %1\n}\n", NULL, "line 2");
    expect_refusal("graph f(in0: f64[3]) {\n"
                   "  %0: f64[3] = extern mystery(in0)\n"
                   "  return %0\n"
                   "}\n",
                   NULL, "mystery has no function to call");
}

static void
compile_body(CiContext *ctx, void *arg)
{
    CiOptions options;
    ci_options_default(&options);
    options.verify = true;
    CiRequest request = {
        .graph = ci_graph_parse(ctx, TINY),
        .options = &options,
        .queue = {.backend = ci_backend_find(NULL, "cpu", "interp"), .runtime = arg}};
    CiStatus status = ci_compile(&request);
    ci_program_release(request.program);
    if (status)
        ci_fail(ctx, status, "again");
}

TEST(failing_allocations)
{
    CiApi *api;
    CHECK_INT(ci_api_open(&api, 1, ""), CI_OK);
    ci_test_failing_allocations(compile_body, ci_api_runtime(api));
    ci_api_close(api);
}
