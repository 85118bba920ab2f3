/* User passes. Their output is not trusted: it is verified, and must have the same inputs and
 * results as the graph before, because guards and recipes of results refer to that one. Library
 * calls are found again by name and key, which identify a call. */
#include <string.h>

#include "passes/pass.h"

typedef struct Extra {
    const CiExtraPass *pass;
    const CiGraph *before;
    CiGraph *given, *made;
} Extra;

/* ---- library calls ---- */

static void
collect_externs(CiContext *ctx, const CiBlock *block, const CiNode ***found, int *count,
                int *capacity)
{
    for (int k = 0; k < block->nnodes; k++) {
        if (block->nodes[k]->ext)
            CI_PUSH(ctx, *found, *count, *capacity, block->nodes[k]);
        for (int b = 0; b < block->nodes[k]->nblocks; b++)
            collect_externs(ctx, block->nodes[k]->blocks[b], found, count, capacity);
    }
}

static const CiExtern *
find_extern(const CiNode *const *known, int count, const CiExtern *wanted)
{
    for (int k = 0; k < count; k++)
        if (!strcmp(known[k]->ext->name, wanted->name) && !strcmp(known[k]->ext->key, wanted->key))
            return known[k]->ext;
    return NULL;
}

static void
bind_externs(Extra *x)
{
    CiContext *ctx = x->made->ctx;
    const CiNode **known = NULL, **used = NULL;
    int nknown = 0, nused = 0, capacity = 0;
    collect_externs(ctx, x->before->body, &known, &nknown, &capacity);
    capacity = 0;
    collect_externs(ctx, x->made->body, &used, &nused, &capacity);
    for (int k = 0; k < nused; k++) {
        CiNode *node = (CiNode *)(uintptr_t)used[k];
        if (node->ext->call)
            continue;
        node->ext = find_extern(known, nknown, node->ext);
        if (!node->ext)
            ci_fail(ctx, CI_ERR_VALUE, "%%%d is a library call that the graph did not have",
                    node->id);
    }
}

/* ---- what is taken and given ---- */

/* Graphs before and after may have symbols of their own, so sizes are compared as text. */
static bool
is_like(CiContext *ctx, const CiNode *a, const CiNode *b)
{
    CiText one = ci_text_new(ctx), other = ci_text_new(ctx);
    if (a->rank != b->rank || a->dtype != b->dtype || a->kind != b->kind ||
        a->device != b->device)
        return false;
    for (int k = 0; k < a->rank; k++) {
        ci_expr_print(&one, a->sizes[k], CI_STYLE_text);
        ci_expr_print(&other, b->sizes[k], CI_STYLE_text);
        ci_text_add(&one, ",");
        ci_text_add(&other, ",");
    }
    return !strcmp(one.data, other.data);
}

static const CiWrite *
find_write(const CiGraph *g, const CiNode *input)
{
    for (int k = 0; k < g->nwrites; k++)
        if (g->writes[k].input->index == input->index)
            return &g->writes[k];
    return NULL;
}

static const char *
why_not_same(CiContext *ctx, const CiGraph *before, const CiGraph *made)
{
    if (made->ninputs != before->ninputs)
        return "it takes other inputs";
    for (int k = 0; k < made->ninputs; k++) {
        if (!is_like(ctx, before->inputs[k], made->inputs[k]))
            return ci_format(ctx, "in%d has another type", k);
        if (!find_write(before, before->inputs[k]) != !find_write(made, made->inputs[k]))
            return ci_format(ctx, "in%d is written, or is no longer", k);
    }
    if (made->body->nresults != before->body->nresults)
        return ci_format(ctx, "it has %d results instead of %d", made->body->nresults,
                         before->body->nresults);
    for (int k = 0; k < made->body->nresults; k++)
        if (!is_like(ctx, before->body->results[k], made->body->results[k]))
            return ci_format(ctx, "result %d has another type", k);
    return NULL;
}

/* ---- running ---- */

static void
body_run(CiContext *ctx, void *arg)
{
    Extra *x = arg;
    x->made = x->pass->run(x->pass->data, x->given);
    x->made->at = x->made->body;
    ci_graph_number(x->made);
    bind_externs(x);
    ci_graph_verify(x->made);
    const char *why = why_not_same(ctx, x->before, x->made);
    if (why)
        ci_fail(ctx, CI_ERR_VALUE, "%s", why);
}

CiGraph *
ci_pass_run_extra(CiGraph *g, const CiExtraPass *pass)
{
    /* A pass may change what it is given, and results of that are compared with these. */
    Extra x = {.pass = pass, .before = ci_graph_copy_to(g->ctx, g), .given = g};
    CiStatus status = ci_protect(g->ctx, body_run, &x);
    if (status == CI_ERR_MEMORY || status == CI_ERR_INTERRUPTED || status == CI_ERR_PASS)
        ci_fail(g->ctx, status, "%s", ci_format(g->ctx, "%s", ci_context_message(g->ctx)));
    if (status)
        ci_fail(g->ctx, CI_ERR_PASS, "%s",
                ci_format(g->ctx, "the pass '%s' breaks the graph: %s", pass->name,
                          ci_context_message(g->ctx)));
    return x.made;
}
