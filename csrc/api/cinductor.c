/* The C API: contexts and non-local failures do not leave it. */
#include "api/cinductor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WARM_BYTES ((size_t)256 << 20)

struct CiApi {
    CiRuntime runtime;
};

struct CiApiGraph {
    CiContext *ctx;
    CiGraph *graph;
};

CiStatus
ci_api_open(CiApi **out, int threads, const char *cache)
{
    CiApi *api = *out = calloc(1, sizeof *api);
    if (!api)
        return CI_ERR_MEMORY;
    api->runtime.pool = ci_pool_open(threads);
    api->runtime.allocator = ci_allocator_open(WARM_BYTES);
    bool wants_cache = !cache || *cache;
    if (wants_cache)
        api->runtime.cache = ci_cache_open(cache);
    api->runtime.registry = ci_registry_open();
    if (api->runtime.pool && api->runtime.allocator && api->runtime.registry &&
        (api->runtime.cache || !wants_cache))
        return CI_OK;
    ci_api_close(api);
    *out = NULL;
    return CI_ERR_MEMORY;
}

void
ci_api_close(CiApi *api)
{
    if (!api)
        return;
    ci_runtime_shut(&api->runtime);
    if (api->runtime.pool)
        ci_pool_close(api->runtime.pool);
    if (api->runtime.allocator)
        ci_allocator_close(api->runtime.allocator);
    if (api->runtime.cache)
        ci_cache_close(api->runtime.cache);
    ci_registry_close(api->runtime.registry);
    free(api);
}

CiRuntime *
ci_api_runtime(CiApi *api)
{
    return &api->runtime;
}

typedef struct Building {
    CiApiGraph *graph;
    const char *text; /* a name or a source */
    void (*body)(CiGraph *graph, void *arg);
    void *arg;
    CiText printed;
    CiGraph *copy;
} Building;

static void
open_body(CiContext *ctx, void *arg)
{
    Building *building = arg;
    building->graph->graph = ci_graph_new(ctx, ci_format(ctx, "%s", building->text));
}

static void
build_body(CiContext *ctx, void *arg)
{
    (void)ctx;
    Building *building = arg;
    building->body(building->graph->graph, building->arg);
}

static void
parse_body(CiContext *ctx, void *arg)
{
    Building *building = arg;
    building->graph->graph = ci_graph_parse(ctx, building->text);
}

static void
print_body(CiContext *ctx, void *arg)
{
    Building *building = arg;
    building->printed = ci_text_new(ctx);
    ci_graph_print(&building->printed, building->graph->graph);
}

static void
copy_body(CiContext *ctx, void *arg)
{
    Building *building = arg;
    building->copy = ci_graph_copy_to(ctx, building->graph->graph);
}

CiStatus
ci_api_graph_open(const char *name, CiApiGraph **out)
{
    CiApiGraph *graph = *out = calloc(1, sizeof *graph);
    CiStatus status = CI_ERR_MEMORY;
    if (graph)
        graph->ctx = ci_context_open();
    if (graph && graph->ctx)
        status = ci_protect(graph->ctx, open_body, &(Building){.graph = graph, .text = name});
    if (status) {
        ci_api_graph_close(graph);
        *out = NULL;
    }
    return status;
}

void
ci_api_graph_close(CiApiGraph *graph)
{
    if (graph)
        ci_context_close(graph->ctx);
    free(graph);
}

CiStatus
ci_api_graph_build(CiApiGraph *graph, void (*body)(CiGraph *graph, void *arg), void *arg)
{
    Building building = {.graph = graph, .body = body, .arg = arg};
    return ci_protect(graph->ctx, build_body, &building);
}

CiStatus
ci_api_graph_parse(CiApiGraph *graph, const char *text)
{
    return ci_protect(graph->ctx, parse_body, &(Building){.graph = graph, .text = text});
}

CiStatus
ci_api_graph_print(CiApiGraph *graph, const char **text)
{
    Building building = {.graph = graph};
    CiStatus status = ci_protect(graph->ctx, print_body, &building);
    *text = status ? "" : building.printed.data;
    return status;
}

const char *
ci_api_graph_message(const CiApiGraph *graph)
{
    return ci_context_message(graph->ctx);
}

typedef struct Failure {
    CiStatus status;
    const char *message;
} Failure;

/* Puts a failure that happened elsewhere into a context. */
static void
fail_body(CiContext *ctx, void *arg)
{
    Failure *failure = arg;
    ci_fail(ctx, failure->status, "%s", failure->message);
}

static CiStatus
fail_with(CiContext *ctx, CiStatus status, const char *message)
{
    return ci_protect(ctx, fail_body, &(Failure){status, message});
}

/* The backend asked for, or the first of the device that can be used here. */
static CiStatus
choose_backend(CiContext *ctx, const CiApiTarget *target, const CiOptions *options, CiQueue *queue)
{
    const char *device = target->device ? target->device : "cpu";
    char why[512] = "";
    const CiRegistry *registry = queue->runtime->registry;
    for (int i = 0; i < ci_backend_count(registry); i++) {
        const CiBackend *backend = ci_backend_at(registry, i);
        const CiCompiler *compiler = backend->compiler;
        if (strcmp(backend->device->name, device) ||
            (target->backend && strcmp(compiler->name, target->backend)))
            continue;
        queue->backend = backend;
        char text[512];
        const char *reason = compiler->why_not_available
                                 ? compiler->why_not_available(options, text, sizeof text)
                                 : NULL;
        if (!reason)
            return CI_OK;
        size_t length = strlen(why);
        snprintf(why + length, sizeof why - length, "; %s: %s", compiler->name, reason);
    }
    char message[1024];
    snprintf(message, sizeof message, "no backend %s%sof device %s can be used here%s",
             target->backend ? target->backend : "", target->backend ? " " : "", device, why);
    return fail_with(ctx, CI_ERR_DEVICE, message);
}

static CiStatus
compile_in(CiApi *api, CiContext *ctx, CiApiGraph *graph, const CiApiTarget *target,
           CiRequest *request)
{
    Building building = {.graph = graph};
    request->queue = (CiQueue){.runtime = &api->runtime, .index = target->index};
    CiStatus status = choose_backend(ctx, target, request->options, &request->queue);
    if (!status)
        status = ci_protect(ctx, copy_body, &building);
    if (status)
        return status;
    request->graph = building.copy;
    request->host_arrays = target->host_arrays;
    request->dump = target->dump;
    request->dump_arg = target->dump_arg;
    return ci_compile(request);
}

CiStatus
ci_api_graph_compile(CiApi *api, CiApiGraph *graph, const CiApiTarget *target, CiProgram **program,
                     CiCompileInfo *info)
{
    CiApiTarget defaults = {0};
    CiOptions options;
    ci_options_default(&options);
    target = target ? target : &defaults;
    CiRequest request = {.options = target->options ? target->options : &options};
    CiContext *ctx = ci_context_open();
    *program = NULL;
    if (!ctx)
        return fail_with(graph->ctx, CI_ERR_MEMORY, ci_status_text(CI_ERR_MEMORY));
    CiStatus status = compile_in(api, ctx, graph, target, &request);
    if (status)
        fail_with(graph->ctx, status, ci_context_message(ctx));
    *program = request.program;
    if (info)
        *info = request.info;
    ci_context_close(ctx);
    return status;
}

CiStatus
ci_api_compile_text(CiApi *api, const char *text, const CiApiTarget *target, CiProgram **program,
                    char *message)
{
    CiApiGraph *graph;
    *program = NULL;
    CiStatus status = ci_api_graph_open("f", &graph);
    if (status) {
        snprintf(message, CI_API_MESSAGE, "%s", ci_status_text(status));
        return status;
    }
    status = ci_api_graph_parse(graph, text);
    if (!status)
        status = ci_api_graph_compile(api, graph, target, program, NULL);
    snprintf(message, CI_API_MESSAGE, "%s", status ? ci_api_graph_message(graph) : "");
    ci_api_graph_close(graph);
    return status;
}
