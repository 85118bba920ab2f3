/* Levels given as text. Each has symbols of its own: what they share with the graph is found by
 * name. */
#include "api/from_text.h"

#include <string.h>

#include "analysis/templates.h"
#include "base/text.h"

static const char *
given(const CiRequest *request, const char *level)
{
    const CiTextInput *given = request->given;
    return given && !strcmp(given->level, level) ? given->text : NULL;
}

/* ---- library calls ---- */

typedef struct Calls {
    CiContext *ctx;
    const CiGraph *graph;
} Calls;

typedef struct Wanted {
    const CiExternItem *item;
    const CiExtern *found;
} Wanted;

static bool
is_wanted(void *arg, const CiNode *node)
{
    Wanted *wanted = arg;
    const CiExternItem *item = wanted->item;
    bool is_it = node->ext && node->op == item->op && !strcmp(node->ext->name, item->ext->name) &&
                 !strcmp(node->ext->key, item->ext->key);
    wanted->found = is_it ? node->ext : NULL;
    return is_it;
}

static void
set_call(const Calls *calls, CiExternItem *item)
{
    Wanted wanted = {item, NULL};
    if (!ci_block_has(calls->graph->body, is_wanted, &wanted))
        ci_fail(calls->ctx, CI_ERR_VALUE, "the graph has no library call %s %s", item->ext->name,
                item->ext->key);
    item->ext = wanted.found;
}

static void
set_call_of_item(void *arg, CiItem *item)
{
    if (item->ext)
        set_call(arg, item->ext);
}

static void
set_call_of_kernel(void *arg, const CiKernel *kernel)
{
    if (kernel->ext)
        set_call(arg, kernel->ext);
}

/* ---- what is taken and given ---- */

static void
print_list(CiText *text, int count, const CiExpr *const *list)
{
    for (int k = 0; k < count; k++) {
        ci_text_add(text, " ");
        ci_expr_print(text, list[k], CI_STYLE_text);
    }
}

/* Inputs and results as text: the symbols of two levels have names in common, and nothing else. */
static const char *
ends_of(const CiLoops *loops)
{
    CiText text = ci_text_new(loops->ctx);
    for (int k = 0; k < loops->ninputs; k++) {
        const CiBuffer *in = loops->buffers[k];
        ci_text_add(&text, "%s:", ci_dtype_name(in->dtype));
        print_list(&text, in->rank, in->sizes);
        ci_text_add(&text, " by");
        print_list(&text, in->rank, in->strides);
        ci_text_add(&text, "; ");
    }
    ci_text_add(&text, "->");
    for (int k = 0; k < loops->nresults; k++) {
        const CiResult *result = &loops->results[k];
        ci_text_add(&text, " %s:", ci_dtype_name(result->dtype));
        print_list(&text, result->rank, result->sizes);
    }
    return text.data;
}

static void
check_ends(const CiLoops *read, const CiLoops *made)
{
    const char *is = ends_of(read), *should_be = ends_of(made);
    if (strcmp(is, should_be) != 0)
        ci_fail(made->ctx, CI_ERR_VALUE,
                "the text is not of this graph: it takes and gives\n%s\nnot\n%s", is, should_be);
}

/* ---- levels ---- */

CiLoops *
ci_given_loops(const CiRequest *request, const CiLoops *made)
{
    const char *text = given(request, "loops");
    if (!text)
        return NULL;
    CiLoops *loops = ci_loops_parse(made->ctx, text);
    Calls calls = {made->ctx, request->graph};
    check_ends(loops, made);
    ci_items_visit(&loops->items, set_call_of_item, &calls);
    ci_loops_verify(loops);
    return loops;
}

CiKernels *
ci_given_kernels(const CiRequest *request, const CiKernels *made)
{
    CiContext *ctx = made->loops->ctx;
    const char *text = given(request, "kernels");
    if (!text)
        return NULL;
    CiKernels *kernels = ci_kernels_parse(ctx, text, made->machine);
    Calls calls = {ctx, request->graph};
    check_ends(kernels->loops, made->loops);
    ci_kernels_visit(kernels, set_call_of_kernel, &calls);
    ci_kernels_verify(kernels);
    return kernels;
}

/* Sets the buffers of parameters, which a text knows by name. */
static void
link_proc(CiContext *ctx, CiProc *proc, const CiProc *made)
{
    bool fits = proc->nparams == made->nparams && proc->nsizes == made->nsizes;
    for (int k = 0; fits && k < proc->nparams; k++) {
        CiMemory *read = proc->params[k];
        const CiMemory *own = made->params[k];
        fits = !strcmp(read->name, own->name) && read->dtype == own->dtype &&
               read->lanes == own->lanes && read->space == own->space;
        read->buffer = own->buffer;
    }
    if (!fits)
        ci_fail(ctx, CI_ERR_VALUE, "proc %s does not take what its kernel does", proc->name);
}

static CiProcs *
read_procs(CiContext *ctx, const char *text, const CiProcs *made)
{
    CiProcs *procs = ci_procs_parse(ctx, text);
    bool fits = procs->nprocs == made->nprocs;
    for (int k = 0; fits && k < procs->nprocs; k++) {
        fits = !strcmp(procs->procs[k]->name, made->procs[k]->name);
        if (fits)
            link_proc(ctx, procs->procs[k], made->procs[k]);
    }
    if (!fits)
        ci_fail(ctx, CI_ERR_VALUE, "the procs are not those of the graph's kernels");
    ci_procs_verify(procs);
    return procs;
}

void
ci_given_code(const CiRequest *request, CiKernels *kernels)
{
    CiContext *ctx = kernels->loops->ctx;
    const CiCompiler *compiler = request->queue.backend->compiler;
    const char *text = given(request, "procs");
    kernels->given_source = given(request, "source");
    if (text && !compiler->lower)
        ci_fail(ctx, CI_ERR_UNSUPPORTED, "%s has no procs", compiler->name);
    if (text)
        kernels->given_procs = read_procs(ctx, text, compiler->lower(kernels, request->options));
    if (kernels->given_source && strcmp(compiler->name, "c") != 0)
        ci_fail(ctx, CI_ERR_UNSUPPORTED, "source is given to backend='c' alone");
}

CiWrapper *
ci_given_lines(const CiRequest *request, const CiKernels *kernels, const CiShapeEnv *env)
{
    const char *text = given(request, "lines");
    return text ? ci_wrapper_parse(kernels, request->options, env, text) : NULL;
}

const CiShapeEnv *
ci_given_env(const CiRequest *request, const CiLoops *loops)
{
    const CiShapeEnv *env = request->graph->env;
    CiContext *ctx = loops->ctx;
    if (!env || !request->given || env->sym == loops->sym)
        return env;
    CiShapeEnv *own = ci_shape_env_new(ctx, loops->sym);
    for (int k = 0; k < env->nsources; k++) {
        CiSymbolSource source = env->sources[k];
        source.symbol = ci_sym_find_symbol(loops->sym, source.symbol->name);
        if (source.symbol)
            CI_PUSH(ctx, own->sources, own->nsources, own->capsources, source);
    }
    return own;
}
