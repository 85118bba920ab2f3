/* Compiles graphs for the GPU. On a machine with a GPU it also runs them and compares with the
 * CPU.
 *
 *     check build FILE...    NVRTC makes a cubin of each; needs no GPU
 *     check run FILE...      results and written arguments must agree with backend `interp`
 *     check walk FILE...     interprets the GPU kernels on the CPU and reports data races and accesses
 *                            outside of buffers; results must agree with backend `interp`
 *     check bits FILE...     runs on the CPU backends and prints a hash of all result bits
 *     check time FILE...     milliseconds of a run on device arrays, and the bytes it moves
 *
 * A file holds graphs. Each ends at a line that begins with `---` (the expected texts of golden
 * files follow) or at the end of the file. Prints one line per graph: `ok`, `skip` or `fail`,
 * the file, and the reason. The exit status is 1 if one failed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/cinductor.h"
#include "base/os.h"

#define MAX_INPUTS 64
#define MAX_WALKED (1 << 20) /* elements */
#define MAX_RESULTS 64
#define SPARE 4096

typedef struct Memory {
    CiDtype dtype;
    int64_t count;
    char *data;
} Memory;

/* One run's arguments and results. */
typedef struct Side {
    CiProgram *program;
    CiRuntime *device; /* results are its memory; NULL: the host's */
    Memory inputs[MAX_INPUTS], results[MAX_RESULTS];
    int nresults;
} Side;

typedef struct Check {
    CiContext *ctx;
    const char *text, *why;
    CiGraph *graph;
    int64_t sizes[MAX_INPUTS][CI_MAX_RANK];
    const int64_t *size_rows[MAX_INPUTS];
    CiSlot scalars[MAX_INPUTS];
    int nscalars;
    bool walks, cannot_run;
} Check;

static const CiBackend *
gpu(void)
{
    return ci_backend_find(NULL, "cuda", "cuda");
}

static CiQueue
queue_of(CiRuntime *runtime)
{
    return (CiQueue){.backend = gpu(), .runtime = runtime};
}

/* ---- values ---- */

static uint64_t
next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static int64_t
size_of_symbol(void *arg, const CiExpr *symbol)
{
    (void)arg;
    int64_t value = 33 + 4 * (int64_t)(symbol->id % 3); /* more than a warp, and no power of two */
    return value > symbol->high ? symbol->high : value < symbol->low ? symbol->low : value;
}

/* Fills with numbers; integers used as positions are 0 or 1, so that they are in range. */
static void
fill(Memory *memory, uint64_t seed, bool has_positions)
{
    int size = ci_dtype_size(memory->dtype);
    for (int64_t i = 0; i < memory->count; i++) {
        uint64_t r = next_random(&seed), q = next_random(&seed);
        CiConst value = {.i = (int64_t)(r % 15),
                         .re = (double)(r % 4096) / 2048 + 0.125,
                         .im = (double)(q % 4096) / 4096};
        if (memory->dtype == CI_DTYPE_bool)
            value.i = (int64_t)(r % 2);
        else if (ci_dtype_class(memory->dtype) == CI_CLASS_int)
            value.i = has_positions ? value.i % 2 : value.i - 6;
        ci_const_store(memory->dtype, value, memory->data + i * size);
    }
}

/* ---- one side ---- */

static bool
make_memory(Memory *memory, CiDtype dtype, int64_t count)
{
    *memory = (Memory){dtype, count, calloc((size_t)count + SPARE, (size_t)ci_dtype_size(dtype))};
    return memory->data != NULL;
}

static void *
new_result(void *arg, int number, const CiResultBuffer *result)
{
    Side *side = arg;
    int64_t count = 1;
    for (int k = 0; k < result->rank; k++)
        count *= result->sizes[k];
    if (number >= MAX_RESULTS || !make_memory(&side->results[number], result->dtype, count))
        return NULL;
    memset(side->results[number].data, 0x55, (size_t)(count * ci_dtype_size(result->dtype)));
    side->nresults = number >= side->nresults ? number + 1 : side->nresults;
    return side->results[number].data;
}

/* ---- time ---- */

static void *
new_device_result(void *arg, int number, const CiResultBuffer *result)
{
    Side *side = arg;
    CiQueue queue = queue_of(side->device);
    void *block = NULL;
    int64_t count = 1;
    for (int k = 0; k < result->rank; k++)
        count *= result->sizes[k];
    if (number >= MAX_RESULTS ||
        gpu()->device->allocate(&queue, (size_t)(count * ci_dtype_size(result->dtype)), &block))
        return NULL;
    side->nresults = number >= side->nresults ? number + 1 : side->nresults;
    side->results[number] = (Memory){result->dtype, count, block};
    return block;
}

static void
release_device_results(Side *side)
{
    CiQueue queue = queue_of(side->device);
    for (int k = 0; k < side->nresults; k++) {
        gpu()->device->release(&queue, side->results[k].data, 0);
        side->results[k].data = NULL;
    }
}

static int32_t
run_times(const Check *check, Side *side, void *const *inputs, int times, double *ms)
{
    CiQueue queue = queue_of(side->device);
    int32_t status = gpu()->device->synchronize(&queue);
    int64_t start = ci_os_time_ns();
    for (int k = 0; k < times && !status; k++) {
        CiCall call = {.inputs = inputs,
                       .sizes = check->size_rows,
                       .scalars = check->scalars,
                       .new_result = new_device_result,
                       .arg = side};
        status = ci_program_run(side->program, &call);
        release_device_results(side);
    }
    if (!status)
        status = gpu()->device->synchronize(&queue);
    *ms = (double)(ci_os_time_ns() - start) * 1e-6 / times;
    return status;
}

/* The median time of batches, after some for warm-up. */
static const char *
time_side(Check *check, Side *side)
{
    void *inputs[MAX_INPUTS] = {0};
    CiQueue queue = queue_of(side->device);
    double ms[9] = {0}, bytes = 0;
    int32_t status = CI_OK;
    for (int k = 0; k < check->graph->ninputs && !status; k++) {
        Memory *memory = &side->inputs[k];
        size_t size = (size_t)memory->count * (size_t)ci_dtype_size(memory->dtype);
        if (!memory->data)
            continue;
        bytes += (double)size;
        status = gpu()->device->allocate(&queue, size, &inputs[k]);
        if (!status)
            status = gpu()->device->copy_in(&queue, inputs[k], memory->data, size);
    }
    for (int k = 0; k < 12 && !status; k++)
        status = run_times(check, side, inputs, 20, &ms[k < 3 ? 0 : k - 3]);
    for (int k = 0; k < check->graph->ninputs; k++)
        gpu()->device->release(&queue, inputs[k], 0);
    for (int i = 0; i < 9; i++)
        for (int j = i + 1; j < 9; j++)
            if (ms[j] < ms[i]) {
                double swap = ms[i];
                ms[i] = ms[j];
                ms[j] = swap;
            }
    for (int k = 0; k < side->nresults; k++)
        bytes += (double)side->results[k].count * ci_dtype_size(side->results[k].dtype);
    return status ? NULL
                  : ci_format(check->ctx, "%.4f ms, %.1f GB/s (best %.4f ms)", ms[4],
                              bytes / ms[4] * 1e-6, ms[0]);
}

static void
free_side(Side *side)
{
    for (int k = 0; k < MAX_INPUTS; k++)
        free(side->inputs[k].data);
    for (int k = 0; k < side->nresults; k++)
        free(side->results[k].data);
    ci_program_release(side->program);
}

static int64_t
most_elements(const CiGraph *graph)
{
    int64_t most = 0;
    for (int k = 0; k < graph->body->nnodes; k++) {
        const CiNode *node = graph->body->nodes[k];
        int64_t count = 1;
        for (int a = 0; a < node->rank; a++)
            count *= node->sizes[a]->low;
        most = count > most ? count : most;
    }
    return most;
}

/* Sizes of the inputs, and the extent of each in memory. Graphs of very large arrays are not
 * interpreted: interpreting a few blocks shows what all do. */
static void
measure(CiContext *ctx, void *arg)
{
    Check *check = arg;
    check->graph = ci_graph_parse(ctx, check->text);
    check->cannot_run |= check->graph->ninputs > MAX_INPUTS;
    check->cannot_run |= check->walks && most_elements(check->graph) > MAX_WALKED;
    check->cannot_run |= strstr(check->text, "= empty()") != NULL; /* its contents are undefined */
    /* the positions of this test are not distinct */
    check->cannot_run |= strstr(check->text, ", distinct)") != NULL;
    for (int k = 0; k < check->graph->ninputs && !check->cannot_run; k++) {
        const CiNode *input = check->graph->inputs[k];
        check->size_rows[k] = check->sizes[k];
        for (int a = 0; a < input->rank; a++)
            check->sizes[k][a] = ci_expr_evaluate(ctx, input->sizes[a], size_of_symbol, NULL);
        for (int a = 0; a < input->rank; a++)
            check->cannot_run |=
                ci_expr_evaluate(ctx, check->graph->strides[k][a], size_of_symbol, NULL) < 0;
    }
}

static bool
fill_inputs(Check *check, Side *side)
{
    bool has_positions = strstr(check->text, "gather(") || strstr(check->text, "scatter(");
    int slot = 0;
    for (int k = 0; k < check->graph->ninputs; k++) {
        const CiNode *input = check->graph->inputs[k];
        int64_t count = 1;
        if (input->kind == CI_KIND_python) {
            CiSlot value = {.c = {1.5, -0.25}};
            if (ci_dtype_is_integral(input->dtype))
                value.i = input->dtype == CI_DTYPE_bool ? 1 : 3;
            check->scalars[slot++] = value;
            continue;
        }
        for (int a = 0; a < input->rank; a++)
            count *= check->sizes[k][a];
        if (!make_memory(&side->inputs[k], input->dtype, count))
            return false;
        fill(&side->inputs[k], 17 * (uint64_t)k + 5, has_positions);
    }
    return true;
}

static CiStatus
compile_side(CiApi *api, Check *check, const char *device, const char *backend, Side *side)
{
    CiContext *ctx = ci_context_open();
    CiOptions options;
    CiStatus status;
    ci_options_default(&options);
    options.offload = "always";
    options.verify = !strcmp(backend, "interp") && !strcmp(device, "cuda");
    Check own = {.text = check->text};
    status = ci_protect(ctx, measure, &own);
    if (!status) {
        CiRequest request = {.graph = own.graph,
                             .options = &options,
                             .queue = {.backend = ci_backend_find(NULL, device, backend),
                                       .runtime = ci_api_runtime(api)},
                             .host_arrays = !side->device};
        status = ci_compile(&request);
        side->program = request.program;
        check->cannot_run |= request.info.externs > 0;
    }
    if (status)
        check->why =
            ci_format(check->ctx, "%s: %s", ci_status_name(status), ci_context_message(ctx));
    ci_context_close(ctx);
    return status;
}

static CiStatus
run_side(Check *check, Side *side)
{
    void *inputs[MAX_INPUTS] = {0};
    for (int k = 0; k < check->graph->ninputs; k++)
        inputs[k] = side->inputs[k].data;
    CiCall call = {.inputs = inputs,
                   .sizes = check->size_rows,
                   .scalars = check->scalars,
                   .new_result = new_result,
                   .arg = side};
    return (CiStatus)ci_program_run(side->program, &call);
}

/* ---- comparing ---- */

static double
tolerance(CiDtype dtype)
{
    return dtype == CI_DTYPE_bf16                 ? 3e-2
           : dtype == CI_DTYPE_f16                ? 4e-3
           : ci_dtype_real(dtype) == CI_DTYPE_f32 ? 2e-5
                                                  : 1e-11;
}

static bool
is_near(double a, double b, double scale)
{
    return a == b || (a != a && b != b) || fabs(a - b) <= scale * (1 + fmax(fabs(a), fabs(b)));
}

static const char *
compare(const Check *check, const Memory *got, const Memory *want, const char *what, int number)
{
    int size = ci_dtype_size(got->dtype);
    bool is_exact = ci_dtype_is_integral(got->dtype);
    for (int64_t i = 0; got->data && i < got->count; i++) {
        CiConst a = ci_const_load(got->dtype, got->data + i * size),
                b = ci_const_load(got->dtype, want->data + i * size);
        double scale = tolerance(got->dtype);
        if (is_exact ? a.i == b.i : is_near(a.re, b.re, scale) && is_near(a.im, b.im, scale))
            continue;
        return is_exact ? ci_format(check->ctx, "%s %d[%lld] is %lld, should be %lld", what, number,
                                    (long long)i, (long long)a.i, (long long)b.i)
                        : ci_format(check->ctx, "%s %d[%lld] is %.9g%+.9gi, should be %.9g%+.9gi",
                                    what, number, (long long)i, a.re, a.im, b.re, b.im);
    }
    return NULL;
}

static const char *
compare_sides(const Check *check, const Side *got, const Side *want)
{
    for (int k = 0; k < want->nresults; k++) {
        const char *why = compare(check, &got->results[k], &want->results[k], "result", k);
        if (why)
            return why;
    }
    for (int k = 0; k < check->graph->ninputs; k++) {
        const char *why = compare(check, &got->inputs[k], &want->inputs[k], "input", k);
        if (why)
            return why;
    }
    return NULL;
}

/* ---- bits ---- */

static uint64_t
hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
    for (size_t k = 0; k < size; k++)
        hash = (hash ^ ((const unsigned char *)bytes)[k]) * 1099511628211u;
    return hash;
}

/* All NaN are equal. */
static uint64_t
hash_memory(uint64_t hash, const Memory *memory)
{
    int size = ci_dtype_size(memory->dtype);
    for (int64_t i = 0; memory->data && i < memory->count; i++) {
        CiConst value = ci_const_load(memory->dtype, memory->data + i * size);
        value.re = value.re != value.re ? 0x1p-1000 : value.re;
        value.im = value.im != value.im ? 0x1p-1000 : value.im;
        hash = hash_bytes(hash, &value, sizeof value);
    }
    return hash;
}

/* "c: 0 81f2…, interp: …": status and hash of each backend. */
static const char *
bits_of(CiApi *api, Check *check)
{
    static const char *const backends[] = {"c", "interp"};
    CiText text = ci_text_new(check->ctx);
    for (int b = 0; b < 2 && !check->cannot_run; b++) {
        Side side = {0};
        uint64_t hash = 14695981039346656037u;
        CiStatus status = compile_side(api, check, "cpu", backends[b], &side);
        if (!status && !check->cannot_run)
            status = fill_inputs(check, &side) ? run_side(check, &side) : CI_ERR_MEMORY;
        for (int k = 0; !status && k < side.nresults; k++)
            hash = hash_memory(hash, &side.results[k]);
        for (int k = 0; !status && k < check->graph->ninputs; k++)
            hash = hash_memory(hash, &side.inputs[k]);
        ci_text_add(&text, "%s: %s %016llx ", backends[b], ci_status_name(status),
                    (unsigned long long)hash);
        free_side(&side);
    }
    return check->cannot_run ? "" : text.data;
}

/* ---- files ---- */

/* Returns NULL, or a description of the difference. */
static const char *
run_both(CiApi *api, Check *check, Side *card)
{
    Side cpu = {0};
    char text[300];
    const char *why = NULL;
    CiStatus status = compile_side(api, check, "cpu", "interp", &cpu);
    if (status) {
        why = check->why;
    } else if (!fill_inputs(check, card) || !fill_inputs(check, &cpu)) {
        why = "no memory";
    } else {
        CiQueue queue = queue_of(ci_api_runtime(api));
        CiStatus here = run_side(check, card), there = run_side(check, &cpu);
        if (here == CI_OK && there == CI_OK)
            why = compare_sides(check, card, &cpu);
        else if (here != there) { /* a check may fail, but then on both */
            const char *said = gpu()->device->last_error(&queue, text, sizeof text);
            why = ci_format(check->ctx, "%s, not %s: %s", ci_status_name(here),
                            ci_status_name(there), here && said ? said : "");
        }
        else if (here != CI_ERR_CHECK)
            why = ci_status_name(here);
    }
    why = why ? ci_format(check->ctx, "%s", why) : NULL;
    free_side(&cpu);
    return why;
}

static bool
check_graph(CiApi *api, const char *name, const char *text, const char *mode)
{
    CiContext *ctx = ci_context_open();
    bool walks = !strcmp(mode, "walk");
    Check check = {.ctx = ctx, .text = text, .walks = walks};
    Side side = {.device = !strcmp(mode, "time") ? ci_api_runtime(api) : NULL};
    const char *verdict = "ok", *why = "";
    CiStatus status = ci_protect(ctx, measure, &check);
    bool wants_bits = !strcmp(mode, "bits");
    if (!status && !wants_bits)
        status = compile_side(api, &check, "cuda", walks ? "interp" : "cuda", &side);
    else if (!status)
        why = bits_of(api, &check);
    else
        check.why = ci_format(ctx, "%s", ci_context_message(ctx));
    if (status) {
        bool is_refused =
            status == CI_ERR_LOWERING || status == CI_ERR_SYNTAX || status == CI_ERR_UNSUPPORTED;
        verdict = is_refused ? "skip" : "fail";
        why = check.why;
    } else if ((walks || !strcmp(mode, "run")) && !check.cannot_run) {
        why = run_both(api, &check, &side);
        verdict = why ? "fail" : "ok";
    } else if (walks) {
        verdict = "skip";
    } else if (!strcmp(mode, "time")) {
        why = fill_inputs(&check, &side) ? time_side(&check, &side) : NULL;
        verdict = why ? "ok" : "fail";
    }
    printf("%s %s %s\n", verdict, name, why ? why : "");
    free_side(&side);
    bool is_good = strcmp(verdict, "fail") != 0;
    ci_context_close(ctx);
    return is_good;
}

static bool
check_file(CiApi *api, const char *path, const char *mode)
{
    void *data;
    size_t size;
    bool is_good;
    if (ci_os_read(path, &data, &size)) {
        printf("fail %s cannot be read\n", path);
        return false;
    }
    char *text = calloc(1, size + 1);
    memcpy(text, data, size);
    free(data);
    char *end = strstr(text, "\n---");
    if (end)
        end[1] = 0;
    is_good = check_graph(api, path, text, mode);
    free(text);
    fflush(stdout);
    return is_good;
}

int
main(int argc, char **argv)
{
    CiApi *api;
    bool is_good = true;
    /* several graphs may become the same source */
    const char *cache = getenv("CINDUCTOR_CACHE_DIR");
    if (argc < 3 || ci_api_open(&api, 0, cache ? cache : ""))
        return 2;
    for (int k = 2; k < argc; k++)
        is_good &= check_file(api, argv[k], argv[1]);
    ci_api_close(api);
    return is_good ? 0 : 1;
}
