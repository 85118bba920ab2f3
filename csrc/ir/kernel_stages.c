/* The text of what runs in a kernel: axes, placements, stages, trees. */
#include "ir/kernel_text.h"

#include <string.h>

/* ---- axes ---- */

/* i0<4096, i1<s0 */
void
ci_kernel_io_axes(CiLoopIo *p, CiKernelAxis **axes, int *count)
{
    CiTextIo *f = &p->io;
    int capacity = 0;
    bool has_axes = f->out || f->lex.kind == CI_TOKEN_name;
    for (int k = 0; has_axes && ci_io_more(f, k, *count, NULL); k++) {
        CiKernelAxis axis = f->out ? (*axes)[k] : (CiKernelAxis){0};
        ci_io_text(f, k ? "" : " ");
        axis.var = ci_loop_io_variable(p, axis.var, &axis.extent);
        if (!f->out)
            CI_PUSH(f->ctx, *axes, *count, capacity, axis);
    }
}

/* ---- placements ---- */

/* row buf1[s1] from s1*i0 */
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

static void io_tree(CiLoopIo *p, CiKernel *whole, CiKernels *tree);

/* stage i1<s1 { … } */
static void
io_stage(CiLoopIo *p, CiKernel *whole, CiKernel *kernel, CiStage *stage)
{
    CiTextIo *f = &p->io;
    int outside = f->nscope;
    ci_io_indent(f);
    ci_io_text(f, "stage");
    if (ci_io_flag(f, " serial", stage->tree != NULL)) {
        stage->tree = f->out ? stage->tree : CI_NEW(f->ctx, CiKernels);
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

/* `do` has been there: i0<s0 { … } */
static void
io_leaf(CiLoopIo *p, CiKernel *whole, CiKernel *leaf)
{
    CiTextIo *f = &p->io;
    int outside = f->nscope;
    ci_kernel_io_axes(p, &leaf->outer, &leaf->nouter);
    ci_io_enter(f, " {\n");
    ci_kernel_io_stages(p, whole, leaf);
    ci_io_leave(f, "}\n");
    ci_io_leave_scope(f, outside);
}

static void
io_inner(CiLoopIo *p, CiKernel *whole, CiRegion *region, CiKernels **tree)
{
    CiTextIo *f = &p->io;
    *tree = f->out ? *tree : CI_NEW(f->ctx, CiKernels);
    ci_io_enter(f, " {\n");
    io_tree(p, whole, *tree);
    if (region)
        ci_loop_io_swaps(p, region);
    ci_io_leave(f, "}");
}

/* for t0<s0 { … }   while { … } test buf1 { … }   if buf1 { … } else { … } */
static void
io_tree_region(CiLoopIo *p, CiKernel *whole, CiKernel *kernel)
{
    CiTextIo *f = &p->io;
    CiRegion *region = kernel->region = f->out ? kernel->region : CI_NEW(f->ctx, CiRegion);
    int outside = f->nscope;
    if (ci_io_flag(f, "for ", region->kind == CI_ITEM_for)) {
        region->kind = CI_ITEM_for;
        region->var = ci_loop_io_variable(p, region->var, &region->extent);
    } else if (ci_io_flag(f, "while", region->kind == CI_ITEM_while)) {
        region->kind = CI_ITEM_while;
        io_inner(p, whole, NULL, &kernel->inner[1]);
        ci_io_text(f, " test ");
    } else {
        region->kind = CI_ITEM_if;
        ci_io_text(f, "if ");
    }
    if (region->kind != CI_ITEM_for)
        region->condition = ci_loop_io_buffer(p, region->condition);
    io_inner(p, whole, region, &kernel->inner[0]);
    if (region->kind == CI_ITEM_if && ci_io_flag(f, " else", kernel->inner[1] && kernel->inner[1]->nkernels))
        io_inner(p, whole, NULL, &kernel->inner[1]);
    ci_io_text(f, "\n");
    ci_io_leave_scope(f, outside);
}

static void
io_tree_kernel(CiLoopIo *p, CiKernel *whole, CiKernel *kernel)
{
    CiTextIo *f = &p->io;
    ci_io_indent(f);
    if (ci_io_flag(f, "do", ci_kernel_has_loops(kernel))) {
        io_leaf(p, whole, kernel);
    } else if (f->out ? kernel->check != NULL : ci_loop_is_check(p)) {
        kernel->check = ci_loop_io_check(p, kernel->check);
        if (f->out)
            return;
        kernel->id = whole->nchecks;
        CI_PUSH(f->ctx, whole->checks, whole->nchecks, whole->capchecks, kernel->check);
    } else {
        io_tree_region(p, whole, kernel);
    }
}

static void
io_tree(CiLoopIo *p, CiKernel *whole, CiKernels *tree)
{
    CiTextIo *f = &p->io;
    for (int k = 0; f->out && k < tree->nkernels; k++)
        io_tree_kernel(p, whole, tree->kernels[k]);
    while (!f->out && f->lex.kind == CI_TOKEN_name && !ci_lexer_is(&f->lex, "swap")) {
        CiKernel *kernel = CI_NEW(f->ctx, CiKernel);
        io_tree_kernel(p, whole, kernel);
        CI_PUSH(f->ctx, tree->kernels, tree->nkernels, tree->capkernels, kernel);
    }
}
