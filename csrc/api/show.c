/* Shows a compilation to the option dump, to a caller's dump and to observers of passes. Checks the
 * names of levels and passes in options. */
#include "api/job.h"

#include <stdio.h>
#include <string.h>

#include "base/os.h"

/* ---- levels ---- */

/* True if the option names the level, or asks for all. What was before a pass is no level. */
static bool
is_listed(const char *list, const char *level)
{
    bool is_before = !strncmp(level, CI_BEFORE, strlen(CI_BEFORE));
    return ci_text_lists(list, level) || (!is_before && ci_text_lists(list, "all"));
}

bool
ci_job_wants(const CiJob *job, const char *level)
{
    return job->request->dump || is_listed(job->request->options->dump, level);
}

void
ci_job_show(CiJob *job, const char *level, const CiText *text)
{
    const CiRequest *request = job->request;
    if (is_listed(request->options->dump, level))
        fprintf(stderr, "--- %s\n%s", level, text->data);
    if (request->dump)
        request->dump(request->dump_arg, level, text->data);
}

/* ---- passes ---- */

static void
print_level(CiText *out, CiLevel level)
{
    if (level.graph)
        ci_graph_print(out, level.graph);
    else if (level.loops)
        ci_loops_print(out, level.loops);
    else
        ci_procs_print(out, level.procs);
}

/* Shows the level before a pass if the option dump names it. */
static void
show_before(void *arg, const char *pass, CiLevel level)
{
    CiJob *job = arg;
    const char *name = ci_format(job->ctx, CI_BEFORE "%s", pass);
    if (is_listed(job->request->options->dump, name))
        SHOW(job, name, print_level(&text, level));
    job->pass_began = ci_os_time_ns();
}

/* Tells the observer of a pass; pass "": of what the first pass is given. */
static void
observe(const CiJob *job, const char *pass, CiLevel level, double seconds)
{
    const CiRequest *request = job->request;
    if (!request->observe)
        return;
    CiText text = ci_text_new(job->ctx);
    print_level(&text, level);
    request->observe(request->observe_arg, pass, text.data, seconds);
}

static void
show_after(void *arg, const char *pass, CiLevel level)
{
    CiJob *job = arg;
    double seconds = (double)(ci_os_time_ns() - job->pass_began) * 1e-9;
    SHOW(job, pass, print_level(&text, level));
    observe(job, pass, level, seconds);
}

/* The plan of a level's passes, which are shown. It begins with the level as it is. */
static CiPassPlan
plan_of(CiJob *job, CiLevel level, const char *skip)
{
    observe(job, "", level, 0.0);
    return (CiPassPlan){job->request->options->verify, skip, show_before, show_after, job};
}

/* ---- passes that are left out ---- */

static bool
is_name(const char *own, const char *name, size_t length)
{
    return strlen(own) == length && !strncmp(own, name, length);
}

/* True if a level below the graph has a pass of the name. Fails if it cannot be left out. */
static bool
is_lower_pass(CiContext *ctx, const char *name, size_t length)
{
    bool is_found = false, is_needed = false;
    for (int k = 0; k < ci_loop_pass_count() && !is_found; k++) {
        is_found = is_name(ci_loop_pass_at(k)->name, name, length);
        is_needed = ci_loop_pass_at(k)->is_needed;
    }
    for (int k = 0; k < ci_proc_pass_count() && !is_found; k++) {
        is_found = is_name(ci_proc_pass_at(k)->name, name, length);
        is_needed = ci_proc_pass_at(k)->is_needed;
    }
    if (is_found && is_needed)
        ci_fail(ctx, CI_ERR_VALUE, "option skip_passes: %.*s cannot be left out", (int)length, name);
    return is_found;
}

/* The names of skip_passes that are of passes over graphs, or of none. */
static const char *
graph_skip(const CiJob *job)
{
    CiText text = ci_text_new(job->ctx);
    for (const char *at = job->request->options->skip_passes; *at;) {
        size_t length = strcspn(at, ", ");
        if (!is_lower_pass(job->ctx, at, length))
            ci_text_add(&text, "%.*s,", (int)length, at);
        at += length + strspn(at + length, ", ");
    }
    return text.data ? text.data : "";
}

CiPassPlan
ci_job_graph_plan(CiJob *job, CiGraph *graph)
{
    return plan_of(job, (CiLevel){.graph = graph}, graph_skip(job));
}

CiPassPlan
ci_job_loop_plan(CiJob *job, const CiLoops *loops)
{
    return plan_of(job, (CiLevel){.loops = loops}, job->request->options->skip_passes);
}

static bool
wants_proc_passes(const CiJob *job)
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

void
ci_job_show_procs(CiJob *job, CiKernels *kernels)
{
    const CiRequest *request = job->request;
    if (!wants_proc_passes(job))
        return;
    const CiPassPlan quiet = job->proc_plan;
    job->proc_plan = plan_of(job, (CiLevel){.procs = request->observe ? ci_expand(kernels) : NULL}, quiet.skip);
    (void)request->queue.backend->compiler->lower(kernels, request->options);
    job->proc_plan = quiet;
}

/* ---- names ---- */

const char *
ci_compile_levels(void)
{
    return
#define PASS(name, ...) #name "|" CI_BEFORE #name "|"
#include "passes/passes.def"
#include "loops/loops.def"
#undef PASS
#define PASS(function, name, families, is_needed, doc) #name "|" CI_BEFORE #name "|"
#include "codegen/procs.def"
        "graph|optimized|ranges|loops|kernels|joins|lines|wrapper|partitions|json|c|procs|source|all";
}

static bool
is_extra(const CiRequest *request, const char *name, size_t length)
{
    size_t before = strlen(CI_BEFORE);
    if (length > before && !strncmp(name, CI_BEFORE, before))
        name += before, length -= before;
    for (int k = 0; k < request->nextras; k++)
        if (is_name(request->extras[k].name, name, length))
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

void
ci_job_check_dump(CiJob *job)
{
    for (const char *at = job->request->options->dump; *at;) {
        size_t length = strcspn(at, ", ");
        if (length != 0 && !is_level(at, length) && !is_extra(job->request, at, length))
            ci_fail(job->ctx, CI_ERR_VALUE, "option dump: there is no level or pass '%.*s'",
                    (int)length, at);
        at += length + strspn(at + length, ", ");
    }
}
