/* Runs random programs of loops and branches around slices, writes in place and rotations. Sizes
 * change in a loop or come from data, and checks may fail. The expected result comes from a
 * small evaluator of the graph that computes values and knows nothing of memory. */
#include <stdlib.h>

#include "api/cinductor.h"
#include "ci_test.h"
#include "region_walk.h"

#define MAX_RESULTS 8

/* ---- comparison ---- */

static const double INPUTS[NINPUTS][N] = {{1, -2, 3, 5, -8}, {2, 0, -1, 4, 7}};

typedef struct Run {
    double results[MAX_RESULTS][N];
    double inputs[NINPUTS][N];
} Run;

static void *
new_result(void *arg, int number, const CiResultBuffer *result)
{
    (void)result;
    return ((Run *)arg)->results[number];
}

static bool
is_same(const double *a, const double *b, int count)
{
    for (int i = 0; i < count; i++)
        if (!(a[i] == b[i] || (a[i] != a[i] && b[i] != b[i])))
            return false;
    return true;
}

static void
compare(CiProgram *program, CiGraph *graph, Walk *walk, Run *run)
{
    for (int k = 0; k < graph->nwrites; k++)
        CHECK(is_same(run->inputs[graph->writes[k].input->index],
                      elements(walk, graph->writes[k].value), N));
    for (int k = 0; k < NINPUTS; k++) {
        bool is_written = false;
        for (int w = 0; w < graph->nwrites; w++)
            is_written |= graph->writes[w].input->index == k;
        CHECK(is_written || is_same(run->inputs[k], INPUTS[k], N));
    }
    for (int k = 0; k < graph->body->nresults; k++) {
        CiReturn value;
        int64_t storage[2 * CI_MAX_RANK];
        ci_program_return_at(program, k, NULL, storage, &value);
        CHECK(value.input >= 0 || value.result_buffer >= 0);
        const double *data =
            value.input >= 0 ? run->inputs[value.input] : run->results[value.result_buffer];
        double got[N];
        for (int i = 0; i < count_of(walk, graph->body->results[k]); i++)
            got[i] = data[value.offset + (value.rank ? i * value.strides[0] : 0)];
        CHECK(is_same(got, elements(walk, graph->body->results[k]),
                      count_of(walk, graph->body->results[k])));
    }
}

/* Reads the estimated peak from the printed program; 0 if it has none. */
static void
read_estimate(void *arg, const char *level, const char *text)
{
    const char *found = strcmp(level, "wrapper") ? NULL : strstr(text, ", at most ");
    if (found)
        *(int64_t *)arg = strtoll(found + strlen(", at most "), NULL, 10);
}

/* The peak never exceeds the estimate. It equals the estimate if sizes are known and every line
 * runs. */
static void
check_peak(const char *text, int64_t peak, int64_t estimate)
{
    bool is_straight = !strstr(text, "for ") && !strstr(text, "while ") && !strstr(text, "if ") &&
                       !strstr(text, "symbols ") && !strstr(text, "define(");
    if (estimate && (is_straight ? peak != estimate : peak > estimate))
        CI_TEST_SAY("%lld bytes are held, %lld estimated", (long long)peak, (long long)estimate);
}

/* Replaces the length of the vectors by a symbol, which has the same value in the call. */
static const char *
with_symbol(CiContext *ctx, const char *text)
{
    CiText out = ci_text_new(ctx);
    ci_text_add(&out, "symbols {s0 in [%d, %d]}\n", N, N);
    for (const char *at = text; *at; at++) {
        bool is_size = !strncmp(at, "f64[5]", 6);
        ci_text_add_chars(&out, is_size ? "f64[s0]" : at, is_size ? 7 : 1);
        at += is_size ? 5 : 0;
    }
    return out.data;
}

/* Returns the peak of allocated bytes; 0 if the call failed or allocated nothing. */
static int64_t
check_program(CiApi *api, const char *text, const CiBackend *backend, bool fusion, bool reuse)
{
    char message[CI_API_MESSAGE];
    CiOptions options;
    CiProgram *program;
    CiContext *ctx = ci_context_open();
    Run run;
    ci_options_default(&options);
    options.verify = true;
    options.fusion = fusion;
    options.reuse = reuse;
    options.size_asserts = true;
    options.track_memory = "assert";
    int failures = ci_test_failures;
    int64_t estimate = 0, peak = 0;
    CiApiTarget target = {.device = backend->device->name,
                          .backend = backend->compiler->name,
                          .options = &options,
                          .host_arrays = true,
                          .dump = read_estimate,
                          .dump_arg = &estimate};
    if (ci_api_compile_text(api, text, &target, &program, message)) {
        CI_TEST_SAY("%s", message);
    } else {
        CiGraph *graph = ci_graph_parse(ctx, text);
        Walk walk = {.ctx = ctx};
        if (graph->inputs[0]->sizes[0]->kind == CI_EXPR_symbol)
            walk = (Walk){ctx, {graph->inputs[0]->sizes[0]}, {N}, 1, false};
        for (int k = 0; k < NINPUTS; k++)
            memcpy(elements(&walk, graph->inputs[k]), INPUTS[k], sizeof INPUTS[k]);
        walk_block(&walk, graph->body);
        memcpy(run.inputs, INPUTS, sizeof INPUTS);
        CiCall call = {.inputs = (void *[]){run.inputs[0], run.inputs[1]},
                       .sizes = (const int64_t *[]){(int64_t[]){N}, (int64_t[]){N}},
                       .new_result = new_result,
                       .arg = &run};
        CHECK_INT(ci_program_run(program, &call), walk.has_failed ? CI_ERR_CHECK : CI_OK);
        if (walk.has_failed)
            CHECK(memcmp(run.inputs, INPUTS, sizeof INPUTS) == 0);
        else
            compare(program, graph, &walk, &run);
        peak = walk.has_failed ? 0 : call.peak;
        if (!walk.has_failed)
            check_peak(text, peak, estimate);
        ci_program_release(program);
    }
    if (failures != ci_test_failures)
        printf("backend %s, fusion %d, reuse %d\n%s", backend->compiler->name, fusion, reuse, text);
    ci_context_close(ctx);
    return peak;
}

/* Reuse of buffers must not increase the peak. Checked for one in four programs; for all with
 * CINDUCTOR_FUZZ. */
static void
check_reuse(CiApi *api, const char *text, const CiBackend *backend, bool fusion, int seed)
{
    int64_t peak = check_program(api, text, backend, fusion, true);
    if (seed % 4 && !getenv("CINDUCTOR_FUZZ"))
        return;
    int64_t apart = check_program(api, text, backend, fusion, false);
    if (peak > apart)
        CI_TEST_SAY("%lld bytes are held, %lld without reuse\n%s", (long long)peak,
                    (long long)apart, text);
}

static void
check_seeds(const char *device, const char *name, int first, int count, bool both)
{
    CiApi *api;
    CiOptions options;
    char reason[512];
    const CiBackend *backend = ci_backend_find(NULL, device, name);
    ci_options_default(&options);
    if (backend->compiler->why_not_available &&
        backend->compiler->why_not_available(&options, reason, sizeof reason))
        return;
    CHECK_INT(ci_api_open(&api, 1, ""), CI_OK);
    for (int seed = first; seed < first + count && ci_test_failures < 3; seed++) {
        CiContext *ctx = ci_context_open();
        const char *text = make_program(ctx, (uint64_t)seed);
        check_reuse(api, text, backend, true, seed);
        if (both)
            check_reuse(api, seed % 2 ? with_symbol(ctx, text) : text, backend, seed % 4 == 1,
                        seed);
        ci_context_close(ctx);
    }
    ci_api_close(api);
}

TEST(random_regions)
{
    const char *more = getenv("CINDUCTOR_FUZZ");
    check_seeds("cpu", "interp", 1, 200 + (more ? atoi(more) : 0), true);
    check_seeds("cpu", "interp", 1487, 1, true); /* one element follows an array, and a loop has it */
    check_seeds("cpu", "interp", 1335, 1, true); /* a loop alone stores an array of one element */
}

TEST(random_regions_compiled)
{
    const char *more = getenv("CINDUCTOR_FUZZ");
    check_seeds("cpu", "c", 1000, 10 + (more ? atoi(more) / 50 : 0), false);
}

TEST(random_regions_on_a_gpu)
{
    const char *wanted = getenv("CINDUCTOR_TEST_CUDA");
    if (wanted && !strcmp(wanted, "1"))
        check_seeds("cuda", "cuda", 1000, 100, false);
}
