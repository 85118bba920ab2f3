/* From a graph to a program, level by level. Everything made on the way lives in the graph's
 * context; the executable and the program do not, and are held by the job until the request gets
 * them. */
#include "api/compile.h"

#include <stdio.h>
#include <string.h>

#include "api/alternatives.h"
#include "api/given.h"
#include "base/os.h"
#include "base/text.h"
#include "codegen/codegen.h"
#include "device/cpu/compiler.h"
#include "ir/choices.h"
#include "ir/range.h"
#include "lower/lower.h"
#include "passes/pass.h"
#include "schedule/schedule.h"
#include "wrapper/partition.h"

typedef struct Job {
    CiRequest *request;
    CiContext *ctx;
    CiProgramDevice devices[CI_MAX_DEVICES]; /* what is built for each */
    int ndevices;
    int64_t lap; /* when the level being timed began */
    int64_t pass_began;
    CiProcPlan proc_plan;
} Job;

static double
lap_ms(Job *job)
{
    int64_t now = ci_os_time_ns(), since = job->lap;
    job->lap = now;
    return (double)(now - since) * 1e-6;
}

/* Does the option name a level, or ask for all? What was before a pass is no level of its own. */
static bool
is_listed(const char *list, const char *level)
{
    bool is_before = !strncmp(level, CI_BEFORE, strlen(CI_BEFORE));
    return ci_text_lists(list, level) || (!is_before && ci_text_lists(list, "all"));
}

static bool
is_wanted(const Job *job, const char *level)
{
    return job->request->dump || is_listed(job->request->options->dump, level);
}

static void
show(Job *job, const char *level, const CiText *text)
{
    const CiRequest *request = job->request;
    if (is_listed(request->options->dump, level))
        fprintf(stderr, "--- %s\n%s", level, text->data);
    if (request->dump)
        request->dump(request->dump_arg, level, text->data);
}

/* Texts are made only when someone looks. */
#define SHOW(job, level, print)                                                                    \
    do {                                                                                           \
        if (is_wanted((job), (level))) {                                                           \
            CiText text = ci_text_new((job)->ctx);                                                 \
            print;                                                                                 \
            show((job), (level), &text);                                                           \
        }                                                                                          \
    } while (0)

/* Of a level that has passes: the graph, or the procs. */
static void
print_level(CiText *out, CiGraph *graph, const CiProcs *procs)
{
    if (graph)
        ci_graph_print(out, graph);
    else
        ci_procs_print(out, procs);
}

/* Shows the level before a pass if the option dump names it. */
static void
show_before(Job *job, const char *pass, CiGraph *graph, const CiProcs *procs)
{
    const char *level = ci_format(job->ctx, CI_BEFORE "%s", pass);
    if (is_listed(job->request->options->dump, level))
        SHOW(job, level, print_level(&text, graph, procs));
    job->pass_began = ci_os_time_ns();
}

/* Shows the level after the pass, and tells the observer. */
static void
show_pass(Job *job, const char *pass, CiGraph *graph, const CiProcs *procs)
{
    const CiRequest *request = job->request;
    double seconds = (double)(ci_os_time_ns() - job->pass_began) * 1e-9;
    SHOW(job, pass, print_level(&text, graph, procs));
    if (!request->observe)
        return;
    CiText text = ci_text_new(job->ctx);
    print_level(&text, graph, procs);
    request->observe(request->observe_arg, pass, text.data, seconds);
}

static void
before_graph_pass(void *arg, const char *pass, CiGraph *graph)
{
    show_before(arg, pass, graph, NULL);
}

static void
after_graph_pass(void *arg, const char *pass, CiGraph *graph)
{
    show_pass(arg, pass, graph, NULL);
}

static void
before_proc_pass(void *arg, const char *pass, const CiProcs *procs)
{
    show_before(arg, pass, NULL, procs);
}

static void
after_proc_pass(void *arg, const char *pass, const CiProcs *procs)
{
    show_pass(arg, pass, NULL, procs);
}

/* ---- names of passes over procs ---- */

static const CiProcPass *
find_proc_pass(const char *name, size_t length)
{
    for (int k = 0; k < ci_proc_pass_count(); k++) {
        const CiProcPass *pass = ci_proc_pass_at(k);
        if (strlen(pass->name) == length && !strncmp(pass->name, name, length))
            return pass;
    }
    return NULL;
}

/* The names of skip_passes that are of passes over graphs, or of none. */
static const char *
graph_skip(const Job *job)
{
    CiText text = ci_text_new(job->ctx);
    for (const char *at = job->request->options->skip_passes; *at;) {
        size_t length = strcspn(at, ", ");
        const CiProcPass *pass = find_proc_pass(at, length);
        if (pass && pass->is_needed)
            ci_fail(job->ctx, CI_ERR_VALUE, "option skip_passes: %s cannot be left out", pass->name);
        if (!pass)
            ci_text_add(&text, "%.*s,", (int)length, at);
        at += length + strspn(at + length, ", ");
    }
    return text.data ? text.data : "";
}

static bool
wants_proc_passes(const Job *job)
{
    const CiRequest *request = job->request;
    bool wants = request->dump || request->observe;
    for (int k = 0; k < ci_proc_pass_count() && !wants; k++) {
        const char *name = ci_proc_pass_at(k)->name;
        wants = ci_text_lists(request->options->dump, name) ||
                ci_text_lists(request->options->dump, ci_format(job->ctx, CI_BEFORE "%s", name));
    }
    return wants;
}

/* The kernels are lowered once more, for those who look. */
static void
show_proc_passes(Job *job, CiKernels *kernels)
{
    const CiRequest *request = job->request;
    if (!wants_proc_passes(job))
        return;
    if (request->observe) {
        CiText text = ci_text_new(job->ctx);
        ci_procs_print(&text, ci_expand(kernels));
        request->observe(request->observe_arg, "", text.data, 0.0);
    }
    const CiProcPlan quiet = job->proc_plan;
    job->proc_plan.before = before_proc_pass;
    job->proc_plan.after = after_proc_pass;
    job->proc_plan.arg = job;
    (void)request->queue.backend->compiler->lower(kernels, request->options);
    job->proc_plan = quiet;
}

const char *
ci_compile_levels(void)
{
    return
#define PASS(name, is_needed, doc) #name "|" CI_BEFORE #name "|"
#include "passes/passes.def"
#undef PASS
#define PASS(function, name, families, is_needed, doc) #name "|" CI_BEFORE #name "|"
#include "codegen/procs.def"
        "graph|ranges|loops|kernels|joins|wrapper|partitions|json|c|procs|source|all";
}

static bool
is_extra(const CiRequest *request, const char *name, size_t length)
{
    size_t before = strlen(CI_BEFORE);
    if (length > before && !strncmp(name, CI_BEFORE, before))
        name += before, length -= before;
    for (int k = 0; k < request->nextras; k++)
        if (strlen(request->extras[k].name) == length &&
            !strncmp(request->extras[k].name, name, length))
            return true;
    return false;
}

static bool
is_level(const char *name, size_t length)
{
    for (const char *at = ci_compile_levels(); *at; at += strspn(at, "|")) {
        size_t size = strcspn(at, "|");
        if (size == length && !strncmp(at, name, length))
            return true;
        at += size;
    }
    return false;
}

/* A misspelt level would print nothing, so it is refused. */
static void
check_dump_option(Job *job)
{
    for (const char *at = job->request->options->dump; *at;) {
        size_t length = strcspn(at, ", ");
        if (length != 0 && !is_level(at, length) && !is_extra(job->request, at, length))
            ci_fail(job->ctx, CI_ERR_VALUE, "option dump: there is no level or pass '%.*s'",
                    (int)length, at);
        at += length + strspn(at + length, ", ");
    }
}

static int
count_nests(const CiItems *items)
{
    int count = 0;
    for (int i = 0; i < items->count; i++) {
        const CiItem *item = &items->items[i];
        count += item->kind == CI_ITEM_nest;
        if (item->kind == CI_ITEM_for || item->kind == CI_ITEM_while || item->kind == CI_ITEM_if)
            count += count_nests(&item->region->condition_items) +
                     count_nests(&item->region->body) + count_nests(&item->region->other);
    }
    return count;
}

static void
count_kernels(const CiKernels *kernels, CiCompileInfo *info)
{
    for (int i = 0; kernels && i < kernels->nkernels; i++) {
        const CiKernel *kernel = kernels->kernels[i];
        info->externs += kernel->ext != NULL;
        info->kernels += ci_kernel_has_loops(kernel);
        for (int k = 0; kernel->region && k < 2; k++)
            count_kernels(kernel->inner[k], info);
    }
}

/* Refuses ufunc nodes if the runtime has no loops of NumPy's, as in programs that embed the
 * core. */
static void
check_ufuncs(Job *job, const CiBlock *block)
{
    for (int k = 0; k < block->nnodes; k++) {
        const CiNode *node = block->nodes[k];
        if (ci_op_kind(node->op) == CI_OPKIND_ufunc)
            ci_fail(job->ctx, CI_ERR_UNSUPPORTED, "%s: this runtime has no loops of NumPy's",
                    ci_op_name(node->op));
        for (int b = 0; b < node->nblocks; b++)
            check_ufuncs(job, node->blocks[b]);
    }
}

static void
run_passes(Job *job)
{
    CiRequest *request = job->request;
    CiGraph *graph = request->graph;
    bool verify = request->options->verify;
    if (verify)
        ci_graph_verify(graph);
    if (request->queue.runtime && !request->queue.runtime->ufuncs)
        check_ufuncs(job, graph->body);
    SHOW(job, "graph", ci_graph_print(&text, graph));
    if (request->observe) {
        CiText text = ci_text_new(job->ctx);
        ci_graph_print(&text, graph);
        request->observe(request->observe_arg, "", text.data, 0.0);
    }
    lap_ms(job);
    CiPassPlan plan = {.verify = verify,
                       .skip = graph_skip(job),
                       .extras = request->extras,
                       .nextras = request->nextras,
                       .before = before_graph_pass,
                       .after = after_graph_pass,
                       .arg = job};
    graph = request->graph = ci_passes_run(graph, &plan);
    if (request->options->index_asserts)
        ci_graph_assert_indices(graph);
    if (request->options->index_asserts && verify)
        ci_graph_verify(graph);
    request->info.passes_ms = lap_ms(job);
    request->info.nodes = ci_graph_node_count(graph);
    SHOW(job, "ranges", ci_ranges_print(&text, graph));
}

/* The target: the compiler's properties, and the user's choices. */
static CiTarget *
make_target(Job *job)
{
    const CiRequest *request = job->request;
    const CiBackend *backend = request->queue.backend;
    CiTarget *target = CI_NEW(job->ctx, CiTarget);
    backend->compiler->fill_target(target, request->options);
    target->device = backend->device->name;
    target->backend = backend->compiler->name;
    ci_choices_set(job->ctx, target, request->options->choices);
    if (request->planned)
        target->asked = CI_NEW_ARRAY(job->ctx, bool, CI_CHOICE_COUNT);
    return target;
}

static CiLoops *
lower(Job *job, const CiTarget *target)
{
    CiRequest *request = job->request;
    const CiDevice *device = request->queue.backend->device;
    bool has_own_order = request->queue.backend->compiler->has_own_order;
    CiLowerOptions options = {.packs_operands = device->allocate && !request->host_arrays,
                              .takes_extern = device->takes_extern,
                              .has_atomic = target->has_atomic,
                              .inline_limit = (int)request->options->inline_limit,
                              .target = target,
                              .own_order = has_own_order ||
                                           !ci_options_have_numpys_order(request->options),
                              .is_online =
                                  has_own_order || !strcmp(request->options->numerics, "fast"),
                              .shortens_results = !ci_backend_has_memory(request->queue.backend)};
    CiLoops *loops = ci_lower(request->graph, &options);
    request->info.lower_ms = lap_ms(job);
    CiLoops *given = ci_given_loops(request, loops);
    loops = given ? given : loops;
    request->info.nests = count_nests(&loops->items);
    if (request->options->verify)
        ci_loops_verify(loops);
    SHOW(job, "loops", ci_loops_print(&text, loops));
    return loops;
}

/* Prints the fusions of the scheduler, in order. */
static void
print_joins(CiText *text, const CiKernels *kernels)
{
    if (!kernels->njoins)
        ci_text_add(text, "# nothing is put together\n");
    for (int k = 0; k < kernels->njoins; k++) {
        const CiJoin *join = &kernels->joins[k];
        ci_text_add(text, "%d: %s and %s", join->number, join->first, join->second);
        if (join->loc.line > 0)
            ci_text_add(text, "  @%s:%d", join->loc.file, join->loc.line);
        ci_text_add(text, "\n");
    }
}

static CiKernels *
schedule(Job *job, CiLoops *loops, const CiTarget *target)
{
    CiRequest *request = job->request;
    CiScheduleOptions options = {.fusion = request->options->fusion,
                                 .has_device_memory =
                                     ci_backend_has_memory(request->queue.backend),
                                 .reuse = request->options->reuse,
                                 .fusion_limit = request->options->fusion_limit,
                                 .apart = request->options->apart,
                                 .library_threads = request->options->library_threads};
    lap_ms(job);
    CiKernels *kernels = ci_schedule(loops, target, &options);
    CiKernels *given = ci_given_kernels(request, kernels);
    kernels = given ? given : kernels;
    job->proc_plan.skip = request->options->skip_passes;
    kernels->plan = &job->proc_plan;
    ci_given_code(request, kernels);
    request->info.schedule_ms = lap_ms(job);
    count_kernels(kernels, &request->info);
    if (request->options->verify) {
        ci_kernels_verify(kernels);
        ci_kernels_verify_text(kernels);
    }
    SHOW(job, "kernels", ci_kernels_print(&text, kernels));
    SHOW(job, "joins", print_joins(&text, kernels));
    return kernels;
}

/* Refused for the caller to take the host's own backend instead. */
static void
check_device_pays(Job *job, const CiKernels *kernels)
{
    const CiRequest *request = job->request;
    bool may_leave =
        request->queue.backend->compiler->why_slower && !strcmp(request->options->offload, "auto");
    const char *why =
        may_leave ? request->queue.backend->compiler->why_slower(kernels, request->host_arrays)
                  : NULL;
    if (why)
        ci_fail(job->ctx, CI_ERR_OFFLOAD, "%s", why);
}

/* The compiler flags of the C backend's kernels. */
static const char *
flags_of(const Job *job)
{
    const CiOptions *options = job->request->options;
    return ci_compiler_flags_text(job->ctx, ci_cpu_level(options),
                                  !strcmp(options->numerics, "fast"));
}

static void
print_json(Job *job, CiText *text, const CiKernels *kernels, const CiWrapper *wrapper)
{
    const CiCompiler *compiler = job->request->queue.backend->compiler;
    CiText source = ci_text_new(job->ctx);
    bool is_c = !strcmp(compiler->name, "c") && job->request->info.kernels > 0;
    if (is_c)
        compiler->emit(&source, kernels, job->request->options);
    ci_wrapper_print_json(text, wrapper, is_c ? source.data : NULL, is_c ? flags_of(job) : NULL);
}

/* The whole program as one file; one that says why it is none where C alone cannot do it. */
static void
print_c(Job *job, CiText *text, const CiKernels *kernels, const CiWrapper *wrapper)
{
    const CiRequest *request = job->request;
    const char *why = strcmp(request->queue.backend->compiler->name, "c")
                          ? "kernels are C with backend='c'"
                          : ci_wrapper_why_no_c(wrapper);
    if (why) {
        ci_text_add(text, "#error %s\n", why);
        return;
    }
    ci_text_add(text, "/* cc %s FILE.c -o FILE.so -lmvec -lm -lc */\n", flags_of(job));
    request->queue.backend->compiler->emit(text, kernels, request->options);
    ci_wrapper_print_c(text, wrapper);
}

static void
print_partitions(CiText *text, const CiWrapper *wrapper)
{
    const CiPartitions *partitions = ci_partition(wrapper);
    ci_partitions_verify(partitions);
    ci_partitions_print(text, partitions);
}

static CiWrapper *
wrap(Job *job, CiKernels *kernels)
{
    CiRequest *request = job->request;
    CiWrapOptions options = {.has_device_memory = ci_backend_has_memory(request->queue.backend),
                             .takes_extern = request->queue.backend->device->takes_extern,
                             .starts_copies = request->queue.backend->device->copy_out_start,
                             .has_no_reuse = !request->options->reuse,
                             .env = ci_given_env(request, kernels->loops)};
    options.host_arrays = options.has_device_memory && request->host_arrays;
    options.records = request->options->graphs && request->queue.backend->device->record_begin &&
                      request->options->interpreted_kernels == 0;
    options.records_extern = request->queue.backend->device->records_extern;
    options.has_pools = request->options->pools && request->options->reuse &&
                        (!options.has_device_memory || options.records);
    lap_ms(job);
    CiWrapper *wrapper = ci_wrap_with(kernels, &options);
    request->info.wrap_ms = lap_ms(job);
    if (request->options->verify)
        ci_wrapper_verify(wrapper);
    SHOW(job, "wrapper", ci_wrapper_print_python(&text, wrapper));
    SHOW(job, "partitions", print_partitions(&text, wrapper));
    SHOW(job, "json", print_json(job, &text, kernels, wrapper));
    SHOW(job, "c", print_c(job, &text, kernels, wrapper));
    return wrapper;
}

/* Kernels with loops, in regions too. */
static bool
runs_on(const CiKernels *kernels, int device)
{
    for (int i = 0; kernels && i < kernels->nkernels; i++) {
        const CiKernel *kernel = kernels->kernels[i];
        if (ci_kernel_has_loops(kernel) && kernel->device == device)
            return true;
        for (int k = 0; kernel->region && k < 2; k++)
            if (runs_on(kernel->inner[k], device))
                return true;
    }
    return false;
}

static void
find_devices(Job *job, const CiKernels *kernels)
{
    job->ndevices = ci_loops_device_count(kernels->loops);
    for (int k = 0; k < job->ndevices; k++) {
        job->devices[k].queue = job->request->queue;
        job->devices[k].queue.index += k;
    }
}

static void
build(Job *job, CiKernels *kernels)
{
    CiRequest *request = job->request;
    const CiCompiler *compiler = request->queue.backend->compiler;
    find_devices(job, kernels);
    if (request->info.kernels == 0)
        return;
    if (compiler->lower)
        show_proc_passes(job, kernels);
    if (compiler->lower)
        SHOW(job, "procs", ci_procs_print(&text, compiler->lower(kernels, request->options)));
    if (compiler->emit)
        SHOW(job, "source", compiler->emit(&text, kernels, request->options));
    for (int k = 0; k < job->ndevices; k++) {
        if (!runs_on(kernels, k))
            continue;
        CiExecutable *made = compiler->build(job->ctx, &job->devices[k].queue, kernels,
                                             request->options, &request->info.build);
        if (request->options->interpreted_kernels > 0)
            made = ci_executable_mixed(job->ctx, made, kernels, request->options);
        job->devices[k].executable = made;
    }
}

static void
compile_body(CiContext *ctx, void *arg)
{
    Job *job = arg;
    CiRequest *request = job->request;
    char message[512];
    check_dump_option(job);
    run_passes(job);
    const CiTarget *target = make_target(job);
    CiLoops *loops = lower(job, target);
    CiKernels *kernels = schedule(job, loops, target);
    check_device_pays(job, kernels);
    CiWrapper *wrapper = wrap(job, kernels);
    if (request->planned) {
        request->planned(request->planned_arg, ci_plan_new(request, kernels, wrapper));
        return;
    }
    build(job, kernels);
    CiStatus status = ci_program_open(wrapper, request->options, job->devices, job->ndevices,
                                      &request->program, message, sizeof message);
    if (status)
        ci_fail(ctx, status, "%s", message);
}

CiStatus
ci_compile(CiRequest *request)
{
    int64_t start = ci_os_time_ns();
    Job job = {.request = request, .ctx = request->graph->ctx, .lap = start};
    request->program = NULL;
    request->info = (CiCompileInfo){0};
    CiStatus status = ci_protect(job.ctx, compile_body, &job);
    for (int k = 0; status && k < job.ndevices; k++)
        if (job.devices[k].executable)
            job.devices[k].executable->close(job.devices[k].executable);
    request->info.total_ms = (double)(ci_os_time_ns() - start) * 1e-6;
    return status;
}
