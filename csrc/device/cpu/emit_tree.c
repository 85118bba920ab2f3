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

static void
open_block(CiCpuEmitter *c)
{
    ci_text_line(c->out, "{");
    c->out->indent += 4;
}

static void
close_block(CiCpuEmitter *c)
{
    c->out->indent -= 4;
    ci_text_line(c->out, "}");
}

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
print_swaps(CiCpuEmitter *c, const CiRegion *region)
{
    for (int k = 0; k < region->nswaps; k += 2) {
        const char *a = ci_emit_buffer(c->base, region->swaps[k]),
                   *b = ci_emit_buffer(c->base, region->swaps[k + 1]),
                   *type = ci_emit_storage(region->swaps[k]->dtype);
        ci_text_line(c->out, "%s *const swap%d = %s;", type, k, a);
        ci_text_line(c->out, "%s = %s;", a, b);
        ci_text_line(c->out, "%s = swap%d;", b, k);
    }
}

static void
print_body(CiCpuEmitter *c, const CiTreeNode *node, bool asks)
{
    print_tree(c, &node->body);
    print_swaps(c, node->region);
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
        ci_text_line(c->out, "for (int64_t from_%s = 0; from_%s < %s; from_%s += %d) {", t, t, n, t,
                     CI_TREE_TURNS);
        c->out->indent += 4;
        ci_text_line(c->out, "const int64_t to_%s = %s - from_%s < %d ? %s : from_%s + %d;", t, n,
                     t, CI_TREE_TURNS, n, t, CI_TREE_TURNS);
        ci_text_line(c->out, "for (int64_t %s = from_%s; %s < to_%s; %s++) {", t, t, t, t, t);
    } else {
        ci_text_line(c->out, "for (int64_t %s = 0; %s < %s; %s++) {", t, t, n, t);
    }
    c->out->indent += 4;
    print_body(c, node, asks);
    close_block(c);
    if (is_long) {
        ci_text_line(c->out, "turns += to_%s - from_%s;", t, t);
        print_ask(c);
        close_block(c);
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
        ci_text_line(c->out, "for (;;) {");
        c->out->indent += 4;
        print_tree(c, &node->other);
        ci_text_line(c->out, "if (!%s)", condition);
        ci_text_line(c->out, "    break;");
        print_body(c, node, true);
        close_block(c);
        return;
    }
    ci_text_line(c->out, "for (int64_t turn = 0; turn >= 0;) {");
    c->out->indent += 4;
    ci_text_line(c->out, "for (turn = 0; turn < %d; turn++) {", CI_TREE_TURNS);
    c->out->indent += 4;
    print_tree(c, &node->other);
    ci_text_line(c->out, "if (!%s) {", condition);
    ci_text_line(c->out, "    turns += turn;");
    ci_text_line(c->out, "    turn = -2;");
    ci_text_line(c->out, "    break;");
    ci_text_line(c->out, "}");
    print_body(c, node, false);
    close_block(c);
    ci_text_line(c->out, "turns += turn > 0 ? turn : 0;");
    print_ask(c);
    close_block(c);
}

static void
print_if(CiCpuEmitter *c, const CiTreeNode *node)
{
    ci_text_line(c->out, "if (%s) {",
                 ci_cpu_load(c, node->region->condition, ci_expr_const(c->sym, 0)));
    c->out->indent += 4;
    print_tree(c, &node->body);
    c->out->indent -= 4;
    if (node->other.count) {
        ci_text_line(c->out, "} else {");
        c->out->indent += 4;
        print_tree(c, &node->other);
        c->out->indent -= 4;
    }
    ci_text_line(c->out, "}");
}

/* A symbol that data defines has its value from here to the end of the block. */
static void
print_check(CiCpuEmitter *c, const CiTreeNode *node)
{
    const CiCheckItem *check = node->check;
    const char *value = ci_cpu_load(c, check->buffer, ci_expr_const(c->sym, 0));
    if (!check->symbol) {
        ci_text_line(c->out, "if (!%s)", value);
    } else {
        const char *name = ci_emit_index_text(c->base, check->symbol);
        bool has_low = check->symbol->low != CI_MINUS_INFINITY,
             has_limit = check->limit->low != CI_INFINITY;
        ci_text_line(c->out, "const int64_t %s = %s;", name, value);
        if (!has_low && !has_limit)
            return;
        CiText test = ci_text_new(c->ctx);
        if (has_low)
            ci_text_add(&test, "%s < %lld", name, (long long)check->symbol->low);
        if (has_limit)
            ci_text_add(&test, "%s%s >= %s", has_low ? " || " : "", name,
                        ci_emit_index_text(c->base, check->limit));
        ci_text_line(c->out, "if (%s)", test.data);
    }
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
        open_block(c);
        ci_cpu_declare_placements(c, body.data);
        ci_text_add(c->out, "%s", body.data);
        close_block(c);
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

typedef struct Swapped {
    const CiBuffer **buffers;
    int *groups; /* equal: their memory may be each other's */
    int count, capacity, group_capacity;
} Swapped;

static int
find_swapped(CiCpuEmitter *c, Swapped *swapped, const CiBuffer *buffer)
{
    for (int k = 0; k < swapped->count; k++)
        if (swapped->buffers[k] == buffer)
            return k;
    int count = swapped->count, group = count;
    CI_PUSH(c->ctx, swapped->groups, count, swapped->group_capacity, group);
    CI_PUSH(c->ctx, swapped->buffers, swapped->count, swapped->capacity, buffer);
    return swapped->count - 1;
}

static void
find_all_swapped(CiCpuEmitter *c, const CiLoopTree *tree, Swapped *swapped)
{
    for (int k = 0; k < tree->count; k++) {
        const CiTreeNode *node = &tree->nodes[k];
        for (int n = 0; node->region && n < node->region->nswaps; n += 2) {
            int a = find_swapped(c, swapped, node->region->swaps[n]),
                b = find_swapped(c, swapped, node->region->swaps[n + 1]), old = swapped->groups[b];
            for (int j = 0; j < swapped->count; j++)
                if (swapped->groups[j] == old)
                    swapped->groups[j] = swapped->groups[a];
        }
        find_all_swapped(c, &node->body, swapped);
        find_all_swapped(c, &node->other, swapped);
    }
}

/* Element by element: all of a group are read, then stored where they belong. */
static void
print_moves(CiCpuEmitter *c, const Swapped *swapped, int group)
{
    const CiBuffer *first = swapped->buffers[group];
    const char *type = ci_emit_storage(first->dtype),
               *n = ci_emit_index_text(c->base,
                                       ci_expr_product_of(c->sym, first->sizes, first->rank));
    ci_text_line(c->out, "for (int64_t k = 0; k < %s; k++) {", n);
    for (int store = 0; store < 2; store++)
        for (int k = 0; k < swapped->count; k++) {
            const char *name = ci_emit_buffer(c->base, swapped->buffers[k]);
            int position = ci_kernel_buffer_position(c->kernel, swapped->buffers[k]);
            if (swapped->groups[k] != swapped->groups[group])
                continue;
            if (store)
                ci_text_line(c->out, "    ((%s *)buffers[%d])[k] = kept%d;", type, position, k);
            else
                ci_text_line(c->out, "    const %s kept%d = %s[k];", type, k, name);
        }
    ci_text_line(c->out, "}");
}

static void
print_moved_back(CiCpuEmitter *c, const CiLoopTree *tree)
{
    Swapped swapped = {0};
    find_all_swapped(c, tree, &swapped);
    for (int k = 0; k < swapped.count; k++) {
        int earlier = 0;
        while (swapped.groups[earlier] != swapped.groups[k])
            earlier++;
        if (earlier < k)
            continue;
        CiText test = ci_text_new(c->ctx);
        for (int j = 0; j < swapped.count; j++)
            if (swapped.groups[j] == swapped.groups[k])
                ci_text_add(&test, "%s%s != buffers[%d]", test.length ? " || " : "",
                            ci_emit_buffer(c->base, swapped.buffers[j]),
                            ci_kernel_buffer_position(c->kernel, swapped.buffers[j]));
        ci_text_line(c->out, "if (%s) {", test.data);
        c->out->indent += 4;
        print_moves(c, &swapped, k);
        close_block(c);
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
    print_moved_back(c, tree);
    c->is_tree = false;
}
