/* The text of what runs in a kernel: axes, placements, stages, trees. */
#include "ir/kernel_text.h"

#include <string.h>

/* ---- axes ---- */

static bool
has_axis(CiTextIo *f, int k, int count)
{
    CiLexer *lex = &f->lex, ahead = *lex;
    if (f->out)
        return ci_io_more(f, k, count, NULL);
    if (k) {
        ci_lexer_next(&ahead);
        return !ci_lexer_is(&ahead, "rows") && ci_lexer_accept(lex, ",");
    }
    return lex->kind == CI_TOKEN_name && !ci_lexer_is(lex, "lanes") && !ci_lexer_is(lex, "split") &&
           !ci_lexer_is(lex, "chained");
}

/* i0<4096 parallel, i1<s0 vector 64 */
void
ci_kernel_io_axes(CiLoopIo *p, CiKernelAxis **axes, int *count)
{
    static const char *const labels[] = {
#define LABEL(name) " " #name,
#include "ir/kernel.def"
    };
    CiTextIo *f = &p->io;
    int capacity = 0;
    for (int k = 0; has_axis(f, k, *count); k++) {
        CiKernelAxis axis = f->out ? (*axes)[k] : (CiKernelAxis){.label = CI_LABEL_serial};
        ci_io_text(f, k ? "" : " ");
        axis.var = ci_loop_io_variable(p, axis.var, &axis.extent);
        for (CiLabel label = CI_LABEL_parallel; label <= CI_LABEL_vector; label++)
            if (ci_io_flag(f, labels[label], axis.label == label))
                axis.label = label;
        if (f->out ? axis.factor : f->lex.kind == CI_TOKEN_int) {
            ci_io_text(f, " ");
            axis.factor = (int)ci_io_int(f, axis.factor);
        }
        if (!f->out)
            CI_PUSH(f->ctx, *axes, *count, capacity, axis);
    }
}

/* ---- placements ---- */

/* row buf1[s1] from s1*i0 at 0 */
static void
io_placement(CiLoopIo *p, CiPlacement *placement)
{
    static const char *const places[] = {
#define STORED(name) #name,
#include "ir/kernel.def"
    };
    CiTextIo *f = &p->io;
    ci_io_indent(f);
    placement->stored = (CiStored)ci_io_choice(f, places, CI_STORED_scalar + 1, placement->stored, "place");
    ci_io_text(f, " ");
    placement->buffer = ci_loop_io_buffer(p, placement->buffer);
    placement->is_taken = ci_io_flag(f, " in", placement->is_taken);
    placement->is_kept = ci_io_flag(f, " out", placement->is_kept);
    if (placement->stored == CI_STORED_row) {
        ci_io_expr(f, "[", &placement->row_size, "]");
        ci_io_expr(f, " from ", &placement->row_base, "");
        ci_io_expr(f, " at ", &placement->scratch_offset, "");
    }
    ci_io_text(f, "\n");
}

/* The storage of the buffers that the kernel makes, a line each. */
static void
io_placements(CiLoopIo *p, CiKernel *kernel)
{
    CiTextIo *f = &p->io;
    for (int k = 0; f->out && k < kernel->nplacements; k++)
        if (kernel->placements[k].stored != CI_STORED_memory)
            io_placement(p, &kernel->placements[k]);
    while (!f->out && f->lex.kind == CI_TOKEN_name && !ci_lexer_is(&f->lex, "stage")) {
        CiPlacement placement = {.stored = CI_STORED_memory};
        io_placement(p, &placement);
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
set_axes(CiLoopIo *p, const CiKernel *kernel, const CiStage *stage, CiNest *nest,
         const CiLexer *over)
{
    int count = kernel->nouter + stage->naxes;
    bool is_scan = ci_nest_is_scan(nest);
    nest->axes = CI_NEW_ARRAY(p->io.ctx, CiAxis, count + 1);
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
io_fold(CiLoopIo *p, CiNest *nest, CiLexer *over)
{
    CiTextIo *f = &p->io;
    if (!ci_loop_io_fold(p, nest))
        return false;
    bool has_over = ci_io_flag(f, " over ", nest->naxes > nest->npoint);
    *over = f->lex;
    for (int k = nest->npoint; k < nest->naxes; k++) {
        ci_io_text(f, k > nest->npoint ? ", " : "");
        ci_io_word(f, nest->axes[k].var->name);
    }
    while (has_over && !f->out && f->lex.kind != CI_TOKEN_end && !ci_lexer_is(&f->lex, "{"))
        ci_lexer_next(&f->lex);
    ci_io_text(f, " ");
    return has_over;
}

/* A nest inside a stage: buf0 local[store] = sum.lanes over r0 { … } */
static void
io_nest(CiLoopIo *p, const CiKernel *kernel, CiStage *stage, CiNest *nest)
{
    CiTextIo *f = &p->io;
    CiLexer over;
    int outside = f->nscope;
    ci_io_indent(f);
    nest->target = ci_loop_io_buffer(p, nest->target);
    const CiPlacement *placement = ci_kernel_find_placement(kernel, nest->target);
    ci_io_text(f, placement ? " " : "");
    ci_io_text(f, placement ? ci_stored_name(placement->stored) : "");
    CiLexer store = ci_loop_io_store(p, nest); /* it may name what the body binds */
    ci_io_text(f, " = ");
    if (!f->out)
        nest->is_combined =
            f->lex.kind == CI_TOKEN_name && !ci_lexer_is(&f->lex, "distinct") && !ci_loop_is_fold(p);
    if (nest->is_combined) {
        nest->combine = ci_io_op(f, nest->combine);
        ci_io_text(f, " ");
    }
    nest->is_distinct = ci_io_flag(f, "distinct ", nest->is_distinct);
    bool has_over = io_fold(p, nest, &over);
    ci_loop_io_body(p, nest);
    if (f->out)
        return;
    nest->caplocs = nest->nlocs;
    nest->target->is_written = nest->target->kind == CI_BUFFER_input;
    ci_loop_read_store(p, nest, &store);
    ci_io_leave_scope(f, outside);
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

static void io_tree(CiLoopIo *p, CiKernel *whole, CiLoopTree *tree);

/* stage i1<s1 vector { … } */
static void
io_stage(CiLoopIo *p, CiKernel *whole, CiKernel *kernel, CiStage *stage)
{
    CiTextIo *f = &p->io;
    int outside = f->nscope;
    ci_io_indent(f);
    ci_io_text(f, "stage");
    if (ci_io_flag(f, " serial", stage->tree != NULL)) {
        stage->tree = f->out ? stage->tree : CI_NEW(f->ctx, CiLoopTree);
        ci_io_enter(f, " {\n");
        io_tree(p, whole, stage->tree);
    } else {
        ci_kernel_io_axes(p, &stage->axes, &stage->naxes);
        ci_io_enter(f, " {\n");
        for (int k = 0; f->out ? k < stage->nnests : f->lex.kind == CI_TOKEN_name; k++)
            io_nest(p, kernel, stage, f->out ? stage->nests[k] : new_nest(f->ctx));
    }
    ci_io_leave(f, "}\n");
    ci_io_leave_scope(f, outside);
}

void
ci_kernel_io_stages(CiLoopIo *p, CiKernel *whole, CiKernel *kernel)
{
    CiTextIo *f = &p->io;
    io_placements(p, kernel);
    for (int k = 0; f->out && k < kernel->nstages; k++)
        io_stage(p, whole, kernel, &kernel->stages[k]);
    while (!f->out && ci_lexer_is(&f->lex, "stage")) {
        CiStage stage = {0};
        io_stage(p, whole, kernel, &stage);
        CI_PUSH(f->ctx, kernel->stages, kernel->nstages, kernel->capstages, stage);
    }
}

/* ---- trees ---- */

/* `do` has been there: i0<s0 vector lanes on outer { … } */
static CiKernel *
io_leaf(CiLoopIo *p, CiKernel *whole, CiKernel *leaf)
{
    CiTextIo *f = &p->io;
    int outside = f->nscope;
    leaf = f->out ? leaf : CI_NEW(f->ctx, CiKernel);
    ci_kernel_io_axes(p, &leaf->outer, &leaf->nouter);
    leaf->lanes_on_outer = ci_io_flag(f, " lanes on outer", leaf->lanes_on_outer);
    ci_io_enter(f, " {\n");
    ci_kernel_io_stages(p, whole, leaf);
    ci_io_leave(f, "}\n");
    ci_io_leave_scope(f, outside);
    return leaf;
}

static void
io_inner(CiLoopIo *p, CiKernel *whole, CiRegion *region, CiLoopTree *tree)
{
    ci_io_enter(&p->io, " {\n");
    io_tree(p, whole, tree);
    if (region)
        ci_loop_io_swaps(p, region);
    ci_io_leave(&p->io, "}");
}

/* for t0<s0 { … }   while { … } test buf1 { … }   if buf1 { … } else { … } */
static void
io_tree_region(CiLoopIo *p, CiKernel *whole, CiTreeNode *node)
{
    CiTextIo *f = &p->io;
    CiRegion *region = f->out ? (CiRegion *)(uintptr_t)node->region : CI_NEW(f->ctx, CiRegion);
    int outside = f->nscope;
    node->region = region;
    if (ci_io_flag(f, "for ", node->kind == CI_TREE_for)) {
        node->kind = CI_TREE_for;
        region->kind = CI_ITEM_for;
        region->var = ci_loop_io_variable(p, region->var, &region->extent);
    } else if (ci_io_flag(f, "while", node->kind == CI_TREE_while)) {
        node->kind = CI_TREE_while;
        region->kind = CI_ITEM_while;
        io_inner(p, whole, NULL, &node->other);
        ci_io_text(f, " test ");
    } else {
        node->kind = CI_TREE_if;
        region->kind = CI_ITEM_if;
        ci_io_text(f, "if ");
    }
    if (node->kind != CI_TREE_for)
        region->condition = ci_loop_io_buffer(p, region->condition);
    io_inner(p, whole, region, &node->body);
    if (node->kind == CI_TREE_if && ci_io_flag(f, " else", node->other.count > 0))
        io_inner(p, whole, NULL, &node->other);
    ci_io_text(f, "\n");
    ci_io_leave_scope(f, outside);
}

static void
io_node(CiLoopIo *p, CiKernel *whole, CiTreeNode *node)
{
    CiTextIo *f = &p->io;
    ci_io_indent(f);
    if (ci_io_flag(f, "do", node->leaf != NULL)) {
        node->leaf = io_leaf(p, whole, node->leaf);
    } else if (f->out ? node->check != NULL : ci_loop_is_check(p)) {
        node->check = ci_loop_io_check(p, (CiCheckItem *)(uintptr_t)node->check);
        if (f->out)
            return;
        node->kind = CI_TREE_check;
        node->number = whole->nchecks;
        CI_PUSH(f->ctx, whole->checks, whole->nchecks, whole->capchecks, node->check);
    } else {
        io_tree_region(p, whole, node);
    }
}

static void
io_tree(CiLoopIo *p, CiKernel *whole, CiLoopTree *tree)
{
    CiTextIo *f = &p->io;
    for (int k = 0; f->out && k < tree->count; k++)
        io_node(p, whole, &tree->nodes[k]);
    while (!f->out && f->lex.kind == CI_TOKEN_name && !ci_lexer_is(&f->lex, "swap")) {
        CiTreeNode node = {.kind = CI_TREE_leaf};
        io_node(p, whole, &node);
        CI_PUSH(f->ctx, tree->nodes, tree->count, tree->capacity, node);
    }
}
