/* Which alternatives a program has, and what tells its plan from another. */
#include "api/alternatives.h"

#include <string.h>

#include "base/hash.h"
#include "base/text.h"

/* Joins that are raced, at most: the closest ones. */
enum { MAX_JOINS = 3 };

static const char *const kinds[] = {
#define KIND(name) #name,
    CI_ALTERNATIVE_KINDS(KIND)
#undef KIND
};

static void
add(const CiRequest *request, CiProgramPlan *plan, CiAlternativeKind kind, const char *option,
    const char *value)
{
    CiAlternative made = {kinds[kind], option, value};
    CI_PUSH(request->graph->ctx, plan->alternatives, plan->count, plan->capacity, made);
}

/* ---- options ---- */

typedef enum Numerics { CI_exact, CI_numpy, CI_close, CI_fast } Numerics;

static Numerics
numerics_of(const CiOptions *options)
{
    static const char *const names[] = {"exact", "numpy", "close", "fast"};
    int k = 0;
    while (k < CI_fast && strcmp(options->numerics, names[k]) != 0)
        k++;
    return (Numerics)k;
}

static void
add_options(const CiRequest *request, CiProgramPlan *plan)
{
    Numerics numerics = numerics_of(request->options);
#define ALTERNATIVE(kind, option, value, least)                                                    \
    if (numerics >= CI_##least)                                                                    \
        add(request, plan, CI_ALTERNATIVE_##kind, #option, value);
#include "api/alternatives.def"
}

/* ---- joins ---- */

/* Closer: what it saves is a smaller part of what both touch. */
static bool
is_closer(const CiJoin *a, const CiJoin *b)
{
    return (double)a->saved * (double)b->bytes < (double)b->saved * (double)a->bytes;
}

static void
add_joins(const CiRequest *request, CiProgramPlan *plan, const CiKernels *kernels)
{
    const CiJoin *close[MAX_JOINS + 1];
    int count = 0;
    for (int k = 0; k < kernels->njoins; k++) {
        const CiJoin *join = &kernels->joins[k];
        if (join->bytes < ci_choice(kernels->machine, CI_CHOICE_raced_bytes))
            continue;
        int at = count < MAX_JOINS ? count++ : MAX_JOINS;
        for (; at > 0 && is_closer(join, close[at - 1]); at--)
            close[at] = close[at - 1];
        close[at] = join;
    }
    for (int k = 0; k < count; k++)
        add(request, plan, CI_ALTERNATIVE_fusion, "apart",
            ci_format(request->graph->ctx, "%d", close[k]->number));
}

/* ---- thresholds ---- */

static void
add_choices(const CiRequest *request, CiProgramPlan *plan, const CiMachine *machine)
{
    CiContext *ctx = request->graph->ctx;
    for (int k = 0; k < CI_CHOICE_COUNT; k++) {
        const CiChoiceRow *row = ci_choice_row((CiChoice)k);
        if (row->kind == CI_ALTERNATIVE_none || !machine->requested[k])
            continue;
        int64_t value = machine->choices[k], less = value / row->factor;
        if (less < value && ci_choice_allows((CiChoice)k, less))
            add(request, plan, row->kind, row->name, ci_format(ctx, "%lld", (long long)less));
        if (value < INT64_MAX / 1000 / row->factor &&
            ci_choice_allows((CiChoice)k, value * row->factor))
            add(request, plan, row->kind, row->name,
                ci_format(ctx, "%lld", (long long)(value * row->factor)));
    }
}

/* ---- the plan ---- */

/* The digest of a plan: its steps in order, the text of its kernels, and the number of threads. */
static void
find_digest(const CiRequest *request, CiProgramPlan *plan, CiKernels *kernels, const CiWrapper *wrapper)
{
    const CiCompiler *compiler = request->queue.backend->compiler;
    CiText text = ci_text_new(request->graph->ctx);
    uint8_t digest[32];
    CiSha256 hash;
    ci_wrapper_print_python(&text, wrapper);
    if (request->info.kernels > 0 && compiler->lower)
        ci_procs_print(&text, compiler->lower(kernels, request->options));
    ci_sha256_init(&hash);
    ci_sha256_add_text(&hash, text.data);
    ci_sha256_add_text(&hash, request->options->numerics);
    if (request->options->threads == 1)
        ci_sha256_add_text(&hash, "on one thread");
    ci_sha256_finish(&hash, digest);
    ci_sha256_hex(digest, plan->digest);
}

CiProgramPlan *
ci_plan_new(const CiRequest *request, CiKernels *kernels, const CiWrapper *wrapper)
{
    CiProgramPlan *plan = CI_NEW(request->graph->ctx, CiProgramPlan);
    find_digest(request, plan, kernels, wrapper);
    plan->peak_bytes = wrapper->peak_bytes;
    add_options(request, plan);
    add_joins(request, plan, kernels);
    add_choices(request, plan, kernels->machine);
    return plan;
}
