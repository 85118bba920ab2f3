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

typedef struct Wanted {
    const CiExtern *like, *found;
} Wanted;

static void
find_extern(void *arg, CiNode *node)
{
    Wanted *wanted = arg;
    if (!wanted->found && node->ext && !strcmp(node->ext->name, wanted->like->name) &&
        !strcmp(node->ext->key, wanted->like->key))
        wanted->found = node->ext;
}

static void
bind_extern(void *arg, CiNode *node)
{
    const Extra *x = arg;
    if (!node->ext || node->ext->call)
        return;
    Wanted wanted = {.like = node->ext};
    ci_block_visit(x->before->body, find_extern, &wanted);
    node->ext = wanted.found;
    if (!node->ext)
        ci_fail(x->made->ctx, CI_ERR_VALUE, "%%%d is a library call that the graph did not have", node->id);
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
    ci_block_visit(x->made->body, bind_extern, x);
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
