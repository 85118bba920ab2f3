/* From a graph to a program, level by level. Everything made on the way lives in the graph's
 * context; the executable and the program do not, and are held by the job until the request gets
 * them. */
#include "api/job.h"

#include <string.h>

#include "analysis/templates.h"
#include "api/alternatives.h"
#include "api/from_text.h"
#include "base/os.h"
#include "device/cpu/compiler.h"
#include "analysis/choices.h"
#include "ir/range.h"
#include "lower/lower.h"
#include "schedule/schedule.h"
#include "wrapper/partition.h"

static double
level_ms(CiJob *job)
{
    int64_t now = ci_os_time_ns(), since = job->level_start;
    job->level_start = now;
    return (double)(now - since) * 1e-6;
}

static void
count_nest(void *arg, CiItem *item)
{
    int *count = arg;
    *count += item->kind == CI_ITEM_nest;
}

static void
count_kernel(void *arg, const CiKernel *kernel)
{
    CiCompileInfo *info = arg;
    info->externs += kernel->ext != NULL;
    info->kernels += ci_kernel_has_loops(kernel);
}

/* Refuses ufunc nodes if the runtime has no loops of NumPy's, as in programs that embed the
 * core. */
static void
check_ufuncs(void *job, CiNode *node)
{
    if (ci_op_kind(node->op) == CI_OPKIND_ufunc)
        ci_fail(((CiJob *)job)->ctx, CI_ERR_UNSUPPORTED, "%s: this runtime has no loops of NumPy's", ci_op_name(node->op));
}

static void
run_passes(CiJob *job)
{
    CiRequest *request = job->request;
    CiGraph *graph = request->graph;
    bool verify = request->options->verify;
    if (verify)
        ci_graph_verify(graph);
    if (request->queue.runtime && !request->queue.runtime->ufuncs)
        ci_block_visit(graph->body, check_ufuncs, job);
    SHOW(job, "graph", ci_graph_print(&text, graph));
    level_ms(job);
    CiPassPlan plan = ci_job_graph_plan(job, graph);
    const CiExtraPasses extras = {request->extras, request->nextras};
    graph = request->graph = ci_passes_run(graph, &plan, extras);
    if (request->options->index_asserts)
        ci_graph_assert_indices(graph);
    if (request->options->index_asserts && verify)
        ci_graph_verify(graph);
    request->info.passes_ms = level_ms(job);
    request->info.nodes = ci_graph_node_count(graph);
    SHOW(job, "optimized", ci_graph_print(&text, graph));
    SHOW(job, "ranges", ci_ranges_print(&text, graph));
}

/* The machine, with the user's choices. */
static CiMachine *
make_machine(CiJob *job)
{
    const CiRequest *request = job->request;
    CiMachine *machine = CI_NEW(job->ctx, CiMachine);
    *machine = ci_backend_machine(request->queue.backend, request->options, request->host_arrays);
    ci_choices_set(job->ctx, machine, request->options->choices);
    if (request->planned)
        machine->requested = CI_NEW_ARRAY(job->ctx, bool, CI_CHOICE_COUNT);
    return machine;
}

static CiLoops *
lower(CiJob *job, const CiMachine *machine)
{
    CiRequest *request = job->request;
    if (request->options->fusion && strcmp(request->options->templates, "never") != 0)
        ci_graph_attention(request->graph, machine, ci_options_have_numpys_order(request->options));
    CiLoops *loops = ci_lower(request->graph, machine, request->options);
    request->info.lower_ms = level_ms(job);
    CiLoops *given = ci_given_loops(request, loops);
    loops = given ? given : loops;
    request->info.nests = 0;
    ci_items_visit(&loops->items, count_nest, &request->info.nests);
    if (request->options->verify)
        ci_loops_verify(loops);
    SHOW(job, "loops", ci_loops_print(&text, loops));
    return loops;
}

static void
rewrite_loops(CiJob *job, CiLoops *loops, const CiMachine *machine)
{
    CiPassPlan plan = ci_job_loop_plan(job, loops);
    ci_loop_passes_run(loops, machine, job->request->options, &plan);
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
schedule(CiJob *job, CiLoops *loops, const CiMachine *machine)
{
    CiRequest *request = job->request;
    CiKernels *kernels = ci_schedule(loops, machine, request->options);
    CiKernels *given = ci_given_kernels(request, kernels);
    kernels = given ? given : kernels;
    job->proc_plan.skip = request->options->skip_passes;
    kernels->plan = &job->proc_plan;
    ci_given_code(request, kernels);
    request->info.schedule_ms = level_ms(job);
    ci_kernels_visit(kernels, count_kernel, &request->info);
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
check_device_pays(CiJob *job, const CiKernels *kernels)
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
flags_of(const CiJob *job)
{
    const CiOptions *options = job->request->options;
    return ci_compiler_flags_text(job->ctx, ci_cpu_level(options),
                                  !strcmp(options->numerics, "fast"));
}

static void
print_json(CiJob *job, CiText *text, const CiKernels *kernels, const CiWrapper *wrapper)
{
    const CiCompiler *compiler = job->request->queue.backend->compiler;
    const CiProcs *procs = compiler->lower ? compiler->lower(kernels, job->request->options) : NULL;
    CiText source = ci_text_new(job->ctx);
    bool is_c = !strcmp(compiler->name, "c") && job->request->info.kernels > 0;
    if (is_c)
        compiler->emit(&source, kernels, job->request->options);
    const char *level = ci_cpu_level_name(ci_cpu_level(job->request->options));
    ci_wrapper_print_json(text, wrapper, procs, is_c ? source.data : NULL, is_c ? flags_of(job) : NULL,
                          !strcmp(compiler->name, "c") ? level : NULL);
}

/* The whole program as one file; one that says why it is none where C alone cannot do it. */
static void
print_c(CiJob *job, CiText *text, const CiKernels *kernels, const CiWrapper *wrapper)
{
    const CiRequest *request = job->request;
    const char *why = strcmp(request->queue.backend->compiler->name, "c")
                          ? "kernels are C with backend='c'"
                          : ci_wrapper_why_no_c(wrapper);
    if (why) {
        ci_text_add(text, "#error %s\n", why);
        return;
    }
    ci_text_add(text, "/* cc %s FILE.c -o FILE.so %s-lm -lc */\n", flags_of(job),
                ci_cpu_has_routines(request->options) ? "-lmvec " : "");
    request->queue.backend->compiler->emit(text, kernels, request->options);
    ci_wrapper_print_c(text, wrapper, request->queue.backend->compiler->lower(kernels, request->options));
}

static void
print_partitions(CiText *text, const CiWrapper *wrapper)
{
    const CiPartitions *partitions = ci_partition(wrapper);
    ci_partitions_verify(partitions);
    ci_partitions_print(text, partitions);
}

static CiWrapper *
wrap(CiJob *job, CiKernels *kernels)
{
    CiRequest *request = job->request;
    const CiShapeEnv *env = ci_given_env(request, kernels->loops);
    level_ms(job);
    CiWrapper *wrapper = ci_given_lines(request, kernels, env);
    if (!wrapper)
        wrapper = ci_wrap(kernels, request->options, env);
    request->info.wrap_ms = level_ms(job);
    if (request->options->verify)
        ci_wrapper_verify(wrapper);
    SHOW(job, "lines", ci_wrapper_print(&text, wrapper));
    SHOW(job, "wrapper", ci_wrapper_print_python(&text, wrapper));
    SHOW(job, "partitions", print_partitions(&text, wrapper));
    SHOW(job, "json", print_json(job, &text, kernels, wrapper));
    SHOW(job, "c", print_c(job, &text, kernels, wrapper));
    return wrapper;
}

static void
note_device(void *arg, const CiKernel *kernel)
{
    bool *is_used = arg;
    is_used[kernel->device] |= ci_kernel_has_loops(kernel);
}

static void
find_devices(CiJob *job, const CiKernels *kernels)
{
    job->ndevices = ci_loops_device_count(kernels->loops);
    for (int k = 0; k < job->ndevices; k++) {
        job->devices[k].queue = job->request->queue;
        job->devices[k].queue.index += k;
    }
}

static void
build(CiJob *job, CiKernels *kernels)
{
    CiRequest *request = job->request;
    const CiCompiler *compiler = request->queue.backend->compiler;
    bool is_used[CI_MAX_DEVICES] = {false};
    ci_kernels_visit(kernels, note_device, is_used);
    find_devices(job, kernels);
    if (request->info.kernels == 0)
        return;
    if (compiler->lower)
        ci_job_show_procs(job, kernels);
    if (compiler->lower)
        SHOW(job, "procs", ci_procs_print(&text, compiler->lower(kernels, request->options)));
    if (compiler->emit)
        SHOW(job, "source", compiler->emit(&text, kernels, request->options));
    for (int k = 0; k < job->ndevices; k++) {
        if (!is_used[k])
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
    CiJob *job = arg;
    CiRequest *request = job->request;
    char message[512];
    ci_job_check_dump(job);
    run_passes(job);
    const CiMachine *machine = make_machine(job);
    CiLoops *loops = lower(job, machine);
    level_ms(job);
    rewrite_loops(job, loops, machine);
    CiKernels *kernels = schedule(job, loops, machine);
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
    CiJob job = {.request = request, .ctx = request->graph->ctx, .level_start = start};
    request->program = NULL;
    request->info = (CiCompileInfo){0};
    CiStatus status = ci_protect(job.ctx, compile_body, &job);
    for (int k = 0; status && k < job.ndevices; k++)
        if (job.devices[k].executable)
            job.devices[k].executable->close(job.devices[k].executable);
    request->info.total_ms = (double)(ci_os_time_ns() - start) * 1e-6;
    return status;
}
