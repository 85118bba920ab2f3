/* The text of what runs in a kernel: axes, placements, stages, trees. */
#include "ir/kernel_text.h"

#include <string.h>

/* ---- axes ---- */

/* i0<4096, i1<s0 */
void
ci_kernel_form_axes(CiLoopForm *p, CiKernelAxis **axes, int *count)
{
    CiForm *f = &p->form;
    int capacity = 0;
    bool has_axes = f->out || f->lex.kind == CI_TOKEN_name;
    for (int k = 0; has_axes && ci_form_more(f, k, *count, NULL); k++) {
        CiKernelAxis axis = f->out ? (*axes)[k] : (CiKernelAxis){0};
        ci_form_text(f, k ? "" : " ");
        axis.var = ci_loop_form_variable(p, axis.var, &axis.extent);
        if (!f->out)
            CI_PUSH(f->ctx, *axes, *count, capacity, axis);
    }
}

/* ---- placements ---- */

/* row buf1[s1] from s1*i0 */
static void
form_placement(CiLoopForm *p, CiPlacement *placement)
{
    static const char *const places[] = {
#define PLACE(name) #name,
#include "ir/kernel.def"
    };
    CiForm *f = &p->form;
    ci_form_indent(f);
    placement->place = (CiPlace)ci_form_choice(f, places, CI_PLACE_scalar + 1, placement->place, "place");
    ci_form_text(f, " ");
    placement->buffer = ci_loop_form_buffer(p, placement->buffer);
    placement->is_taken = ci_form_flag(f, " in", placement->is_taken);
    placement->is_kept = ci_form_flag(f, " out", placement->is_kept);
    if (placement->place == CI_PLACE_row) {
        ci_form_expr(f, "[", &placement->row_size, "]");
        ci_form_expr(f, " from ", &placement->row_base, "");
    }
    ci_form_text(f, "\n");
}

/* The storage of the buffers that the kernel makes, a line each. */
static void
form_placements(CiLoopForm *p, CiKernel *kernel)
{
    CiForm *f = &p->form;
    for (int k = 0; f->out && k < kernel->nplacements; k++)
        if (kernel->placements[k].place != CI_PLACE_memory)
            form_placement(p, &kernel->placements[k]);
    while (!f->out && f->lex.kind == CI_TOKEN_name && !ci_lexer_is(&f->lex, "stage")) {
        CiPlacement placement = {.place = CI_PLACE_memory};
        form_placement(p, &placement);
        CI_PUSH(f->ctx, kernel->placements, kernel->nplacements, kernel->capplacements, placement);
    }
}

/* ---- nests and stages ---- */

static bool
is_listed(const CiLexer *list, const char *name)
{
    CiLexer at = *list;
    while (at.kind == CI_TOKEN_name) {
        if (strcmp(at.string, name) == 0)
            return true;
        ci_lexer_next(&at);
        if (!ci_lexer_accept(&at, ","))
            break;
    }
    return false;
}

/* Sets the nest's axes from those of the kernel and the stage. The axes after `over` are not
 * points; they come last. */
static void
set_axes(CiLoopForm *p, const CiKernel *kernel, const CiStage *stage, CiNest *nest,
         const CiLexer *over)
{
    int count = kernel->nouter + stage->naxes;
    bool is_scan = ci_nest_is_scan(nest);
    nest->axes = CI_NEW_ARRAY(p->form.ctx, CiAxis, count + 1);
    for (int is_over = 0; is_over < 2; is_over++) {
        for (int k = 0; k < count; k++) {
            const CiKernelAxis *axis =
                k < kernel->nouter ? &kernel->outer[k] : &stage->axes[k - kernel->nouter];
            CiAxisKind kind = !is_over ? CI_AXIS_point : is_scan ? CI_AXIS_scan : CI_AXIS_reduce;
            if ((over && is_listed(over, axis->var->name)) == is_over)
                nest->axes[nest->naxes++] = (CiAxis){kind, axis->var, axis->extent};
        }
        if (!is_over)
            nest->npoint = nest->naxes;
    }
}

/* sum.lanes over r0; *over: the axes after that, which are read later. False: there are none. */
static bool
form_fold(CiLoopForm *p, CiNest *nest, CiLexer *over)
{
    CiForm *f = &p->form;
    if (!ci_loop_form_fold(p, nest))
        return false;
    bool has_over = ci_form_flag(f, " over ", nest->naxes > nest->npoint);
    *over = f->lex;
    for (int k = nest->npoint; k < nest->naxes; k++) {
        ci_form_text(f, k > nest->npoint ? ", " : "");
        ci_form_word(f, nest->axes[k].var->name);
    }
    while (has_over && !f->out && f->lex.kind != CI_TOKEN_end && !ci_lexer_is(&f->lex, "{"))
        ci_lexer_next(&f->lex);
    ci_form_text(f, " ");
    return has_over;
}

/* A nest inside a stage: buf0 local[store] = sum.lanes over r0 { … } */
static void
form_nest(CiLoopForm *p, const CiKernel *kernel, CiStage *stage, CiNest *nest)
{
    CiForm *f = &p->form;
    CiLexer over;
    int outside = f->nscope;
    ci_form_indent(f);
    nest->target = ci_loop_form_buffer(p, nest->target);
    const CiPlacement *placement = ci_kernel_find_placement(kernel, nest->target);
    ci_form_text(f, placement ? " " : "");
    ci_form_text(f, placement ? ci_place_name(placement->place) : "");
    CiLexer store = ci_loop_form_store(p, nest); /* it may name what the body binds */
    ci_form_text(f, " = ");
    if (!f->out)
        nest->is_combined =
            f->lex.kind == CI_TOKEN_name && !ci_lexer_is(&f->lex, "distinct") && !ci_loop_is_fold(p);
    if (nest->is_combined) {
        nest->combine = ci_form_op(f, nest->combine);
        ci_form_text(f, " ");
    }
    nest->is_distinct = ci_form_flag(f, "distinct ", nest->is_distinct);
    bool has_over = form_fold(p, nest, &over);
    ci_loop_form_body(p, nest);
    if (f->out)
        return;
    nest->caplocs = nest->nlocs;
    nest->target->is_written = nest->target->kind == CI_BUFFER_input;
    ci_loop_read_store(p, nest, &store);
    ci_form_leave_scope(f, outside);
    set_axes(p, kernel, stage, nest, has_over ? &over : NULL);
    CI_PUSH(f->ctx, stage->nests, stage->nnests, stage->capnests, nest);
}

static CiNest *
new_nest(CiContext *ctx)
{
    CiNest *nest = CI_NEW(ctx, CiNest);
    nest->fold = CI_OP_none;
    return nest;
}

static void form_tree(CiLoopForm *p, CiKernel *whole, CiLoopTree *tree);

/* stage i1<s1 { … } */
static void
form_stage(CiLoopForm *p, CiKernel *whole, CiKernel *kernel, CiStage *stage)
{
    CiForm *f = &p->form;
    int outside = f->nscope;
    ci_form_indent(f);
    ci_form_text(f, "stage");
    if (ci_form_flag(f, " serial", stage->tree != NULL)) {
        stage->tree = f->out ? stage->tree : CI_NEW(f->ctx, CiLoopTree);
        ci_form_enter(f, " {\n");
        form_tree(p, whole, stage->tree);
    } else {
        ci_kernel_form_axes(p, &stage->axes, &stage->naxes);
        ci_form_enter(f, " {\n");
        for (int k = 0; f->out ? k < stage->nnests : f->lex.kind == CI_TOKEN_name; k++)
            form_nest(p, kernel, stage, f->out ? stage->nests[k] : new_nest(f->ctx));
    }
    ci_form_leave(f, "}\n");
    ci_form_leave_scope(f, outside);
}

void
ci_kernel_form_stages(CiLoopForm *p, CiKernel *whole, CiKernel *kernel)
{
    CiForm *f = &p->form;
    form_placements(p, kernel);
    for (int k = 0; f->out && k < kernel->nstages; k++)
        form_stage(p, whole, kernel, &kernel->stages[k]);
    while (!f->out && ci_lexer_is(&f->lex, "stage")) {
        CiStage stage = {0};
        form_stage(p, whole, kernel, &stage);
        CI_PUSH(f->ctx, kernel->stages, kernel->nstages, kernel->capstages, stage);
    }
}

/* ---- trees ---- */

/* `do` has been there: i0<s0 { … } */
static CiKernel *
form_leaf(CiLoopForm *p, CiKernel *whole, CiKernel *leaf)
{
    CiForm *f = &p->form;
    int outside = f->nscope;
    leaf = f->out ? leaf : CI_NEW(f->ctx, CiKernel);
    ci_kernel_form_axes(p, &leaf->outer, &leaf->nouter);
    ci_form_enter(f, " {\n");
    ci_kernel_form_stages(p, whole, leaf);
    ci_form_leave(f, "}\n");
    ci_form_leave_scope(f, outside);
    return leaf;
}

static void
form_inner(CiLoopForm *p, CiKernel *whole, CiRegion *region, CiLoopTree *tree)
{
    ci_form_enter(&p->form, " {\n");
    form_tree(p, whole, tree);
    if (region)
        ci_loop_form_swaps(p, region);
    ci_form_leave(&p->form, "}");
}

/* for t0<s0 { … }   while { … } test buf1 { … }   if buf1 { … } else { … } */
static void
form_tree_region(CiLoopForm *p, CiKernel *whole, CiTreeNode *node)
{
    CiForm *f = &p->form;
    CiRegion *region = f->out ? (CiRegion *)(uintptr_t)node->region : CI_NEW(f->ctx, CiRegion);
    int outside = f->nscope;
    node->region = region;
    if (ci_form_flag(f, "for ", node->kind == CI_TREE_for)) {
        node->kind = CI_TREE_for;
        region->kind = CI_ITEM_for;
        region->var = ci_loop_form_variable(p, region->var, &region->extent);
    } else if (ci_form_flag(f, "while", node->kind == CI_TREE_while)) {
        node->kind = CI_TREE_while;
        region->kind = CI_ITEM_while;
        form_inner(p, whole, NULL, &node->other);
        ci_form_text(f, " test ");
    } else {
        node->kind = CI_TREE_if;
        region->kind = CI_ITEM_if;
        ci_form_text(f, "if ");
    }
    if (node->kind != CI_TREE_for)
        region->condition = ci_loop_form_buffer(p, region->condition);
    form_inner(p, whole, region, &node->body);
    if (node->kind == CI_TREE_if && ci_form_flag(f, " else", node->other.count > 0))
        form_inner(p, whole, NULL, &node->other);
    ci_form_text(f, "\n");
    ci_form_leave_scope(f, outside);
}

static void
form_node(CiLoopForm *p, CiKernel *whole, CiTreeNode *node)
{
    CiForm *f = &p->form;
    ci_form_indent(f);
    if (ci_form_flag(f, "do", node->leaf != NULL)) {
        node->leaf = form_leaf(p, whole, node->leaf);
    } else if (f->out ? node->check != NULL : ci_loop_is_check(p)) {
        node->check = ci_loop_form_check(p, (CiCheckItem *)(uintptr_t)node->check);
        if (f->out)
            return;
        node->kind = CI_TREE_check;
        node->number = whole->nchecks;
        CI_PUSH(f->ctx, whole->checks, whole->nchecks, whole->capchecks, node->check);
    } else {
        form_tree_region(p, whole, node);
    }
}

static void
form_tree(CiLoopForm *p, CiKernel *whole, CiLoopTree *tree)
{
    CiForm *f = &p->form;
    for (int k = 0; f->out && k < tree->count; k++)
        form_node(p, whole, &tree->nodes[k]);
    while (!f->out && f->lex.kind == CI_TOKEN_name && !ci_lexer_is(&f->lex, "swap")) {
        CiTreeNode node = {.kind = CI_TREE_leaf};
        form_node(p, whole, &node);
        CI_PUSH(f->ctx, tree->nodes, tree->count, tree->capacity, node);
    }
}
