/* Runs the text of a graph on every CPU backend, with and without fusion, and returns the
 * results. With CINDUCTOR_TEST_CUDA=1 it also runs on a GPU, with inputs and results in host
 * memory. */
#ifndef TEST_GRAPH_RUN_H
#define TEST_GRAPH_RUN_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/cinductor.h"
#include "ci_test.h"

#define MAX_RESULTS 4
#define MAX_SYMBOLS 32

typedef struct Run {
    CiApi *api;
    const CiBackend *backend;
    CiProgram *program;
    void *results[MAX_RESULTS];
    int64_t counts[MAX_RESULTS]; /* elements of the results */
    int64_t symbols[MAX_SYMBOLS];
    int32_t status;
    const char *reason;
} Run;

static inline void *
new_result(void *arg, int number, const CiResultBuffer *result)
{
    Run *run = arg;
    int64_t count = 1;
    for (int axis = 0; axis < result->rank; axis++)
        count *= result->sizes[axis];
    run->counts[number] = count;
    run->results[number] = calloc((size_t)count + 1, (size_t)ci_dtype_size(result->dtype));
    return run->results[number];
}

static inline void
drop_results(Run *run)
{
    for (int i = 0; i < MAX_RESULTS; i++) {
        free(run->results[i]);
        run->results[i] = NULL;
    }
}

static inline void
call_any(Run *run, void *const *inputs, const int64_t *const *sizes, const CiSlot *scalars)
{
    drop_results(run);
    CiCall made = {.inputs = inputs,
                   .sizes = sizes,
                   .scalars = scalars,
                   .new_result = new_result,
                   .arg = run,
                   .symbols = run->symbols};
    run->status = ci_program_run(run->program, &made);
    run->reason = made.reason;
}

static inline void
call(Run *run, void *const *inputs, const int64_t *const *sizes, const CiSlot *scalars)
{
    call_any(run, inputs, sizes, scalars);
    CHECK_INT(run->status, CI_OK);
}

/* Element i of result k. */
static inline double
got(const Run *run, int k, int i)
{
    return run->results[k] ? ((const double *)run->results[k])[i] : NAN;
}

static inline bool
is_usable(const CiBackend *backend)
{
    CiOptions options;
    char text[512];
    ci_options_default(&options);
    const char *wants_cuda = getenv("CINDUCTOR_TEST_CUDA");
    return (!strcmp(backend->device->name, "cpu") || (wants_cuda && !strcmp(wants_cuda, "1"))) &&
           !(backend->compiler->why_not_available &&
             backend->compiler->why_not_available(&options, text, sizeof text));
}

static inline void
for_each_backend(const char *text, void (*body)(Run *run))
{
    for (int i = 0; i < 2 * ci_backend_count(NULL); i++) {
        Run run = {.backend = ci_backend_at(NULL, i / 2)};
        char message[CI_API_MESSAGE];
        CiOptions options;
        ci_options_default(&options);
        options.verify = true;
        options.fusion = i % 2 == 0;
        if (!is_usable(run.backend))
            continue;
        int failures = ci_test_failures;
        CiApiTarget target = {.device = run.backend->device->name,
                              .backend = run.backend->compiler->name,
                              .options = &options,
                              .host_arrays = true};
        CHECK_INT(ci_api_open(&run.api, 2, ""), CI_OK);
        if (ci_api_compile_text(run.api, text, &target, &run.program, message))
            CI_TEST_SAY("%s: %s", run.backend->compiler->name, message);
        else
            body(&run);
        if (failures != ci_test_failures)
            printf("  with backend %s, fusion %d\n", run.backend->compiler->name, options.fusion);
        drop_results(&run);
        ci_program_release(run.program);
        ci_api_close(run.api);
    }
}

#endif
