/* A tree as C: loops and branches around the code of its leaves, scalars in variables.
 *
 * Ctrl-C. Loops count their trips, and what leaves do in them, in `turns`; about every
 * CI_TREE_TURNS turns they ask whether to go on. A loop that holds no other loop never asks from
 * within its body, for a call there would cost what the compiler knows of memory: it runs in pieces
 * of at most CI_TREE_TURNS trips, and asks behind them.
 *
 * Checks. A check that fails leaves the kernel with its number in the fault: whoever wrote
 * arguments in place has proved that none can fail.
 *
 * Swaps. Buffers that exchange their memory are pointers that do; behind the tree what they hold is
 * moved to where they were, for the world outside has not seen the exchange. */
#include "device/cpu/emit_cpu.h"

#define CI_TREE_TURNS 65536
/* A loop whose leaves do less than this in a trip is short when its trips are few. */
#define CI_TREE_SHORT 4096

/* ---- turns ---- */

static void
print_ask(CiCpuEmitter *c)
{
    ci_text_line(c->out, "if (turns >= %d) {", CI_TREE_TURNS);
    ci_text_line(c->out, "    turns = 0;");
    ci_text_line(c->out, "    if (run->poll && run->poll(run->poll_arg))");
    ci_text_line(c->out, "        return %d;", (int)CI_ERR_INTERRUPTED);
    ci_text_line(c->out, "}");
}

static bool
has_loops(const CiLoopTree *tree)
{
    for (int k = 0; k < tree->count; k++) {
        const CiTreeNode *node = &tree->nodes[k];
        if (node->kind == CI_TREE_for || node->kind == CI_TREE_while || has_loops(&node->body) ||
            has_loops(&node->other))
            return true;
    }
    return false;
}

static const CiExpr *
stage_work(CiCpuEmitter *c, const CiKernel *leaf, const CiStage *stage, bool is_branch)
{
    const CiExpr *work = ci_expr_const(c->sym, leaf->nouter + stage->naxes > 0);
    for (int k = 0; k < leaf->nouter; k++)
        work = ci_expr_mul(c->sym, work, leaf->outer[k].extent);
    for (int k = 0; k < stage->naxes; k++)
        work = ci_expr_mul(c->sym, work, stage->axes[k].extent);
    for (int k = 0; k < work->nsymbols; k++)
        if (is_branch && work->symbols[k]->symbol_kind == CI_SYMBOL_unbacked)
            return ci_expr_const(c->sym, CI_TREE_SHORT);
    return work;
}

/* Elements that leaves work on in one trip: those in branches too, where a size that is known only
 * there is guessed; those in loops not, for they count their own. */
static const CiExpr *
leaf_work(CiCpuEmitter *c, const CiLoopTree *tree, bool is_branch)
{
    const CiExpr *work = ci_expr_const(c->sym, 0);
    for (int k = 0; k < tree->count; k++) {
        const CiTreeNode *node = &tree->nodes[k];
        for (int t = 0; node->leaf && t < node->leaf->nstages; t++)
            work = ci_expr_add(c->sym, work,
                               stage_work(c, node->leaf, &node->leaf->stages[t], is_branch));
        if (node->kind == CI_TREE_if) {
            work = ci_expr_add(c->sym, work, leaf_work(c, &node->body, true));
            work = ci_expr_add(c->sym, work, leaf_work(c, &node->other, true));
        }
    }
    return work;
}

/* Long enough, or with enough in it, that each trip may ask. */
static bool
asks_each_trip(CiCpuEmitter *c, const CiTreeNode *node)
{
    return has_loops(&node->body) || has_loops(&node->other) ||
           leaf_work(c, &node->body, false)->high > CI_TREE_SHORT ||
           leaf_work(c, &node->other, false)->high > CI_TREE_SHORT;
}

/* ---- regions ---- */

static void print_tree(CiCpuEmitter *c, const CiLoopTree *tree);

static void
print_body(CiCpuEmitter *c, const CiTreeNode *node, bool asks)
{
    print_tree(c, &node->body);
    ci_emit_swaps(c->base, c->out, node->region);
    if (asks) {
        const char *work =
            ci_emit_index_text(c->base, ci_expr_add(c->sym, leaf_work(c, &node->body, false),
                                                    ci_expr_const(c->sym, 1)));
        ci_text_line(c->out, "turns += %s;", work);
        print_ask(c);
    }
}

static void
print_for(CiCpuEmitter *c, const CiTreeNode *node)
{
    const char *t = node->region->var->name, *n = ci_emit_index_text(c->base, node->region->extent);
    bool asks = asks_each_trip(c, node),
         is_long = !asks && node->region->extent->high > CI_TREE_TURNS;
    if (is_long) {
        ci_text_open(c->out, "for (int64_t from_%s = 0; from_%s < %s; from_%s += %d) {", t, t, n, t,
                     CI_TREE_TURNS);
        ci_text_line(c->out, "const int64_t to_%s = %s - from_%s < %d ? %s : from_%s + %d;", t, n,
                     t, CI_TREE_TURNS, n, t, CI_TREE_TURNS);
        ci_text_open(c->out, "for (int64_t %s = from_%s; %s < to_%s; %s++) {", t, t, t, t, t);
    } else {
        ci_text_open(c->out, "for (int64_t %s = 0; %s < %s; %s++) {", t, t, n, t);
    }
    print_body(c, node, asks);
    ci_text_close(c->out);
    if (is_long) {
        ci_text_line(c->out, "turns += to_%s - from_%s;", t, t);
        print_ask(c);
        ci_text_close(c->out);
    } else if (!asks) {
        ci_text_line(c->out, "turns += %s;", n);
    }
}

static void
print_while(CiCpuEmitter *c, const CiTreeNode *node)
{
    const char *condition = ci_cpu_load(c, node->region->condition, ci_expr_const(c->sym, 0));
    bool asks = asks_each_trip(c, node);
    if (asks) {
        ci_text_open(c->out, "for (;;) {");
        print_tree(c, &node->other);
        ci_text_line(c->out, "if (!%s)", condition);
        ci_text_line(c->out, "    break;");
        print_body(c, node, true);
        ci_text_close(c->out);
        return;
    }
    ci_text_open(c->out, "for (int64_t turn = 0; turn >= 0;) {");
    ci_text_open(c->out, "for (turn = 0; turn < %d; turn++) {", CI_TREE_TURNS);
    print_tree(c, &node->other);
    ci_text_line(c->out, "if (!%s) {", condition);
    ci_text_line(c->out, "    turns += turn;");
    ci_text_line(c->out, "    turn = -2;");
    ci_text_line(c->out, "    break;");
    ci_text_line(c->out, "}");
    print_body(c, node, false);
    ci_text_close(c->out);
    ci_text_line(c->out, "turns += turn > 0 ? turn : 0;");
    print_ask(c);
    ci_text_close(c->out);
}

static void
print_if(CiCpuEmitter *c, const CiTreeNode *node)
{
    ci_text_open(c->out, "if (%s) {",
                 ci_cpu_load(c, node->region->condition, ci_expr_const(c->sym, 0)));
    print_tree(c, &node->body);
    if (node->other.count) {
        c->out->indent -= 4;
        ci_text_open(c->out, "} else {");
        print_tree(c, &node->other);
    }
    ci_text_close(c->out);
}

static void
print_check(CiCpuEmitter *c, const CiTreeNode *node)
{
    const CiExpr *first = ci_expr_const(c->sym, 0);
    const char *test =
        ci_emit_check(c->base, c->out, node->check, ci_cpu_load(c, node->check->buffer, first));
    if (!test)
        return;
    ci_text_line(c->out, "if (%s)", test);
    ci_text_line(c->out, "    return ci_fault(run, %d);", node->number);
}

/* ---- leaves ---- */

static void
print_leaf(CiCpuEmitter *c, const CiKernel *leaf)
{
    const CiKernel *whole = c->kernel;
    CiText body = ci_text_new(c->ctx), *saved = c->out;
    c->kernel = leaf;
    c->tile = leaf->lanes_on_outer ? leaf->outer[leaf->nouter - 1].factor : 0;
    body.indent = saved->indent + 4;
    c->out = &body;
    ci_cpu_emit_points(c, 0);
    c->out = saved;
    if (body.length) {
        ci_text_open(c->out, "{");
        ci_cpu_declare_placements(c, body.data);
        ci_text_add(c->out, "%s", body.data);
        ci_text_close(c->out);
    }
    c->kernel = whole;
    c->tile = 0;
}

static void
print_tree(CiCpuEmitter *c, const CiLoopTree *tree)
{
    for (int k = 0; k < tree->count; k++) {
        const CiTreeNode *node = &tree->nodes[k];
        switch (node->kind) {
        case CI_TREE_leaf:
            print_leaf(c, node->leaf);
            break;
        case CI_TREE_check:
            print_check(c, node);
            break;
        case CI_TREE_for:
            print_for(c, node);
            break;
        case CI_TREE_while:
            print_while(c, node);
            break;
        case CI_TREE_if:
            print_if(c, node);
            break;
        }
    }
}

/* ---- around the tree ---- */

static void
print_scalars(CiCpuEmitter *c)
{
    const CiExpr *first = ci_expr_const(c->sym, 0);
    for (int k = 0; k < c->kernel->nplacements; k++) {
        const CiPlacement *p = &c->kernel->placements[k];
        bool is_complex = ci_dtype_class(p->buffer->dtype) == CI_CLASS_complex;
        CiText value = ci_text_new(c->ctx);
        if (p->is_taken)
            ci_emit_widen(c->base, &value, p->buffer->dtype,
                          ci_format(c->ctx, "%s[0]", ci_emit_buffer(c->base, p->buffer)));
        else
            ci_text_add(&value, is_complex ? "{0, 0}" : "0");
        ci_text_line(c->out, "%s %s = %s;", ci_emit_type(p->buffer->dtype),
                     ci_cpu_load(c, p->buffer, first), value.data);
    }
}

static void
print_kept(CiCpuEmitter *c)
{
    const CiExpr *first = ci_expr_const(c->sym, 0);
    for (int k = 0; k < c->kernel->nplacements; k++) {
        const CiPlacement *p = &c->kernel->placements[k];
        CiText value = ci_text_new(c->ctx);
        if (!p->is_kept)
            continue;
        ci_emit_narrow(c->base, &value, p->buffer->dtype, ci_cpu_load(c, p->buffer, first));
        ci_text_line(c->out, "%s[0] = %s;", ci_emit_buffer(c->base, p->buffer), value.data);
    }
}

/* Element by element: all of a group are read, then stored where they belong. */
static void
print_moves(CiCpuEmitter *c, const int *groups, int group)
{
    const CiKernel *kernel = c->kernel;
    const CiBuffer *first = kernel->buffers[group];
    const char *type = ci_emit_storage(first->dtype),
               *n = ci_emit_index_text(c->base,
                                       ci_expr_product_of(c->sym, first->sizes, first->rank));
    ci_text_open(c->out, "for (int64_t k = 0; k < %s; k++) {", n);
    for (int store = 0; store < 2; store++)
        for (int k = 0; k < kernel->nbuffers; k++) {
            if (groups[k] != group)
                continue;
            if (store)
                ci_text_line(c->out, "((%s *)buffers[%d])[k] = kept%d;", type, k, k);
            else
                ci_text_line(c->out, "const %s kept%d = %s[k];", type, k,
                             ci_emit_buffer(c->base, kernel->buffers[k]));
        }
    ci_text_close(c->out);
}

static void
print_moved_back(CiCpuEmitter *c)
{
    const CiKernel *kernel = c->kernel;
    const int *groups = ci_swap_groups(c->ctx, kernel);
    for (int k = 0; k < kernel->nbuffers; k++) {
        CiText test = ci_text_new(c->ctx);
        for (int j = 0; j < kernel->nbuffers && groups[k] == k; j++)
            if (groups[j] == k)
                ci_text_add(&test, "%s%s != buffers[%d]", test.length ? " || " : "",
                            ci_emit_buffer(c->base, kernel->buffers[j]), j);
        if (!test.length)
            continue;
        ci_text_open(c->out, "if (%s) {", test.data);
        print_moves(c, groups, k);
        ci_text_close(c->out);
    }
}

/* With a parallel axis: of one unit. */
void
ci_cpu_emit_tree(CiCpuEmitter *c)
{
    const CiLoopTree *tree = ci_kernel_tree(c->kernel);
    CiText body = ci_text_new(c->ctx), *saved = c->out;
    c->is_tree = true;
    body.indent = saved->indent;
    c->out = &body;
    print_tree(c, tree);
    c->out = saved;
    if (ci_emit_mentions(body.data, "turns"))
        ci_text_line(c->out, "int64_t turns = 0;");
    print_scalars(c);
    ci_text_add(c->out, "%s", body.data);
    print_kept(c);
    print_moved_back(c);
    c->is_tree = false;
}
