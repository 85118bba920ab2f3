/* Reading the kernel level's text form. */
#include "ir/text_common.h"
#include "ir/kernel.h"
#include "ir/loop_parse.h"

#include <stdlib.h>
#include <string.h>

/* ---- axes ---- */

/* i0<4096 parallel, i1<s0 vector 64 */
static CiKernelAxis *
parse_axes(CiLoopParser *p, int *count)
{
    CiLexer *lex = &p->lex;
    CiKernelAxis *axes = NULL;
    int capacity = 0;
    while (lex->kind == CI_TOKEN_name && !ci_lexer_is(lex, "lanes") && !ci_lexer_is(lex, "split") &&
           !ci_lexer_is(lex, "chained")) {
        CiKernelAxis axis = {.label = CI_LABEL_serial};
        axis.var = ci_loop_parse_variable(p, &axis.extent);
        if (ci_lexer_accept(lex, "parallel"))
            axis.label = CI_LABEL_parallel;
        else if (ci_lexer_accept(lex, "vector"))
            axis.label = CI_LABEL_vector;
        if (lex->kind == CI_TOKEN_int)
            axis.factor = (int)ci_lexer_expect_int(lex);
        CI_PUSH(lex->ctx, axes, *count, capacity, axis);
        CiLexer ahead = *lex;
        ci_lexer_next(&ahead);
        if (!ci_lexer_is(lex, ",") || ci_lexer_is(&ahead, "rows"))
            break;
        ci_lexer_next(lex);
    }
    return axes;
}

static bool
accept_lanes_on_outer(CiLexer *lex)
{
    if (!ci_lexer_accept(lex, "lanes"))
        return false;
    ci_lexer_expect(lex, "on");
    ci_lexer_expect(lex, "outer");
    return true;
}

/* ---- placements ---- */

/* row buf1[s1] from s1*i0 at 0 short 64: where what the kernel makes lives, a line each. */
static void
parse_placements(CiLoopParser *p, CiKernel *kernel)
{
    CiLexer *lex = &p->lex;
    for (int place = CI_PLACE_local; place <= CI_PLACE_scalar; place++) {
        if (!ci_lexer_accept(lex, ci_place_name((CiPlace)place)))
            continue;
        CiPlacement placement = {.place = (CiPlace)place, .buffer = ci_loop_find_buffer(p)};
        placement.is_taken = ci_lexer_accept(lex, "in");
        placement.is_kept = ci_lexer_accept(lex, "out");
        if (place == CI_PLACE_row) {
            ci_lexer_expect(lex, "[");
            placement.row_size = ci_loop_parse_expr(p);
            ci_lexer_expect(lex, "]");
            ci_lexer_expect(lex, "from");
            placement.row_base = ci_loop_parse_expr(p);
            ci_lexer_expect(lex, "at");
            placement.scratch_offset = ci_loop_parse_expr(p);
        }
        CI_PUSH(lex->ctx, kernel->placements, kernel->nplacements, kernel->capplacements,
                placement);
        place = CI_PLACE_local - 1; /* the next line */
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
set_axes(CiLoopParser *p, const CiKernel *kernel, const CiStage *stage, CiNest *nest,
         const CiLexer *over)
{
    int count = kernel->nouter + stage->naxes;
    bool is_scan = ci_nest_is_scan(nest);
    nest->axes = CI_NEW_ARRAY(p->lex.ctx, CiAxis, count + 1);
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

/* = add distinct sum.lanes over r0; the position of `over` is recorded, and the text after it
 * skipped. */
static bool
parse_head_of_nest(CiLoopParser *p, CiNest *nest, CiLexer *over)
{
    CiLexer *lex = &p->lex;
    ci_lexer_expect(lex, "=");
    nest->fold = CI_OP_none;
    if (lex->kind == CI_TOKEN_name && !ci_lexer_is(lex, "distinct") &&
        !ci_loop_parse_fold(p, nest)) {
        nest->is_combined = true;
        nest->combine = ci_op_find(ci_lexer_expect_name(lex));
    }
    nest->is_distinct = ci_lexer_accept(lex, "distinct");
    if (!ci_lexer_accept(lex, "over"))
        return false;
    *over = *lex;
    while (lex->kind != CI_TOKEN_end && !ci_lexer_is(lex, "{"))
        ci_lexer_next(lex);
    return true;
}

/* buf0 local[store] = sum.lanes over r0 { … } */
static void
parse_nest(CiLoopParser *p, const CiKernel *kernel, CiStage *stage)
{
    CiLexer *lex = &p->lex, over;
    CiNest *nest = CI_NEW(lex->ctx, CiNest);
    int outside = p->nscope;
    nest->target = ci_loop_find_buffer(p);
    nest->target->is_written = nest->target->kind == CI_BUFFER_input;
    const CiPlacement *placement = ci_kernel_find_placement(kernel, nest->target);
    if (placement)
        ci_lexer_expect(lex, ci_place_name(placement->place));
    CiLexer store = ci_loop_skip_store(p); /* it may name what the body binds */
    bool has_over = parse_head_of_nest(p, nest, &over);
    ci_loop_parse_body(p, &nest->body);
    while (ci_lexer_is(lex, "@"))
        CI_PUSH(lex->ctx, nest->locs, nest->nlocs, nest->caplocs, ci_form_parse_loc(lex));
    ci_loop_parse_store(p, nest, &store);
    ci_loop_leave_scope(p, outside);
    set_axes(p, kernel, stage, nest, has_over ? &over : NULL);
    CI_PUSH(lex->ctx, stage->nests, stage->nnests, stage->capnests, nest);
}

static void parse_tree(CiLoopParser *p, CiKernel *whole, CiLoopTree *tree);

/* stage i1<s1 vector { … } */
static void
parse_stages(CiLoopParser *p, CiKernel *whole, CiKernel *kernel)
{
    CiLexer *lex = &p->lex;
    while (ci_lexer_accept(lex, "stage")) {
        CiStage stage = {0};
        int outside = p->nscope;
        if (ci_lexer_accept(lex, "serial")) {
            stage.tree = CI_NEW(lex->ctx, CiLoopTree);
            ci_form_enter(lex, &p->depth);
            parse_tree(p, whole, stage.tree);
        } else {
            stage.axes = parse_axes(p, &stage.naxes);
            ci_form_enter(lex, &p->depth);
            while (lex->kind == CI_TOKEN_name)
                parse_nest(p, kernel, &stage);
        }
        ci_form_leave(lex, &p->depth);
        ci_loop_leave_scope(p, outside);
        CI_PUSH(lex->ctx, kernel->stages, kernel->nstages, kernel->capstages, stage);
    }
}

/* ---- trees ---- */

/* do i0<s0 vector lanes on outer { … } */
static CiKernel *
parse_leaf(CiLoopParser *p, CiKernel *whole)
{
    CiLexer *lex = &p->lex;
    CiKernel *leaf = CI_NEW(lex->ctx, CiKernel);
    int outside = p->nscope;
    leaf->outer = parse_axes(p, &leaf->nouter);
    leaf->lanes_on_outer = accept_lanes_on_outer(lex);
    ci_form_enter(lex, &p->depth);
    parse_placements(p, leaf);
    parse_stages(p, whole, leaf);
    ci_form_leave(lex, &p->depth);
    ci_loop_leave_scope(p, outside);
    return leaf;
}

static void
parse_inner(CiLoopParser *p, CiKernel *whole, CiRegion *region, CiLoopTree *tree)
{
    ci_form_enter(&p->lex, &p->depth);
    parse_tree(p, whole, tree);
    ci_loop_parse_swaps(p, region);
    ci_form_leave(&p->lex, &p->depth);
}

/* for t0<s0 { … }   while { … } test buf1 { … }   if buf1 { … } else { … } */
static CiTreeNode
parse_tree_region(CiLoopParser *p, CiKernel *whole)
{
    CiLexer *lex = &p->lex;
    CiRegion *region = CI_NEW(lex->ctx, CiRegion);
    CiTreeNode node = {.kind = CI_TREE_for, .region = region};
    int outside = p->nscope;
    region->kind = CI_ITEM_for;
    if (ci_lexer_accept(lex, "for")) {
        region->var = ci_loop_parse_variable(p, &region->extent);
    } else if (ci_lexer_accept(lex, "while")) {
        node.kind = CI_TREE_while;
        region->kind = CI_ITEM_while;
        parse_inner(p, whole, region, &node.other);
        ci_lexer_expect(lex, "test");
        region->condition = ci_loop_find_buffer(p);
    } else {
        ci_lexer_expect(lex, "if");
        node.kind = CI_TREE_if;
        region->kind = CI_ITEM_if;
        region->condition = ci_loop_find_buffer(p);
    }
    parse_inner(p, whole, region, &node.body);
    if (node.kind == CI_TREE_if && ci_lexer_accept(lex, "else"))
        parse_inner(p, whole, region, &node.other);
    ci_loop_leave_scope(p, outside);
    return node;
}

static void
parse_tree(CiLoopParser *p, CiKernel *whole, CiLoopTree *tree)
{
    CiLexer *lex = &p->lex;
    while (lex->kind == CI_TOKEN_name && !ci_lexer_is(lex, "swap")) {
        CiTreeNode node = {.kind = CI_TREE_leaf};
        if (ci_lexer_accept(lex, "do")) {
            node.leaf = parse_leaf(p, whole);
        } else if (ci_loop_is_check(p)) {
            node.kind = CI_TREE_check;
            node.check = ci_loop_parse_check(p).check;
            node.number = whole->nchecks;
            CI_PUSH(lex->ctx, whole->checks, whole->nchecks, whole->capchecks, node.check);
        } else {
            node = parse_tree_region(p, whole);
        }
        CI_PUSH(lex->ctx, tree->nodes, tree->count, tree->capacity, node);
    }
}

/* ---- kernels ---- */

/* takes in0, out buf0; sizes s0, 4*s1 */
static void
parse_arguments(CiLoopParser *p, CiKernel *kernel)
{
    CiLexer *lex = &p->lex;
    int capstored = 0, nstored = 0;
    ci_lexer_expect(lex, "takes");
    while (lex->kind == CI_TOKEN_name && !ci_lexer_is(lex, "work")) {
        bool is_stored = ci_lexer_accept(lex, "out");
        CiBuffer *buffer = ci_loop_find_buffer(p);
        buffer->is_written |= is_stored && buffer->kind == CI_BUFFER_input;
        CI_PUSH(lex->ctx, kernel->buffers, kernel->nbuffers, kernel->capbuffers, buffer);
        CI_PUSH(lex->ctx, kernel->is_stored, nstored, capstored, is_stored);
        if (!ci_lexer_accept(lex, ","))
            break;
    }
    if (!ci_lexer_accept(lex, ";"))
        return;
    ci_lexer_expect(lex, "sizes");
    do
        CI_PUSH(lex->ctx, kernel->size_args, kernel->nsize_args, kernel->capsize_args,
                ci_loop_parse_expr(p));
    while (ci_lexer_accept(lex, ","));
}

/* work 64*s0, scratch 4096 */
static void
parse_units(CiLoopParser *p, CiKernel *kernel)
{
    CiLexer *lex = &p->lex;
    const struct {
        const char *word;
        const CiExpr **value;
    } parts[] = {
#define LAUNCH(word, member) {#word, &kernel->member},
#include "ir/kernel.def"
    };
    const size_t count = sizeof parts / sizeof *parts;
    kernel->scratch_bytes = ci_expr_const(p->loops->sym, 0);
    do {
        size_t k = 0;
        while (k < count && !ci_lexer_is(lex, parts[k].word))
            k++;
        if (k == count)
            ci_lexer_fail(lex, "expected what a launch is told");
        ci_lexer_next(lex);
        *parts[k].value = ci_loop_parse_expr(p);
    } while (ci_lexer_accept(lex, ","));
}

/* , rows of s1<=16 are lanes */
static void
parse_short_rows(CiLoopParser *p, CiKernel *kernel)
{
    CiLexer *lex = &p->lex;
    if (!ci_lexer_accept(lex, ","))
        return;
    ci_lexer_expect(lex, "rows");
    ci_lexer_expect(lex, "of");
    kernel->row = ci_loop_parse_expr(p);
    ci_lexer_expect(lex, "<=");
    kernel->short_row = ci_lexer_expect_int(lex);
    ci_lexer_expect(lex, "are");
    ci_lexer_expect(lex, "lanes");
}

/* for i0<s0 parallel, rows of s1<=16 are lanes split 4096 { … } */
static void
parse_loops(CiLoopParser *p, CiKernel *kernel)
{
    CiLexer *lex = &p->lex;
    int outside = p->nscope;
    kernel->outer = parse_axes(p, &kernel->nouter);
    kernel->nparallel = kernel->nouter;
    kernel->lanes_on_outer = accept_lanes_on_outer(lex);
    parse_short_rows(p, kernel);
    if (ci_lexer_accept(lex, "split")) {
        if (ci_lexer_accept(lex, "into"))
            kernel->split_parts = (int)ci_lexer_expect_int(lex);
        else
            kernel->split_extent = ci_loop_parse_expr(p);
    } else if (ci_lexer_accept(lex, "chained")) {
        kernel->is_chained = true;
        kernel->split_extent = ci_loop_parse_expr(p);
    }
    ci_form_enter(lex, &p->depth);
    while (ci_lexer_is(lex, "@"))
        CI_PUSH(lex->ctx, kernel->locs, kernel->nlocs, kernel->caplocs, ci_form_parse_loc(lex));
    parse_arguments(p, kernel);
    parse_units(p, kernel);
    parse_placements(p, kernel);
    parse_stages(p, kernel, kernel);
    ci_form_leave(lex, &p->depth);
    ci_loop_leave_scope(p, outside);
}

static CiKernels *parse_list(CiLoopParser *p, const CiMachine *machine);

static CiKernels *
parse_block(CiLoopParser *p, const CiMachine *machine, CiRegion *region)
{
    ci_form_enter(&p->lex, &p->depth);
    CiKernels *kernels = parse_list(p, machine);
    ci_loop_parse_swaps(p, region);
    ci_form_leave(&p->lex, &p->depth);
    return kernels->nkernels ? kernels : NULL;
}

/* loop t0<s0 { … }   while buf1 { … } test after { … }   if buf1 { … } else { … } */
static void
parse_region(CiLoopParser *p, const CiMachine *machine, CiKernel *kernel)
{
    CiLexer *lex = &p->lex;
    CiRegion *region = kernel->region = CI_NEW(lex->ctx, CiRegion);
    region->device = kernel->device;
    int outside = p->nscope;
    region->kind = CI_ITEM_for;
    if (ci_lexer_accept(lex, "loop")) {
        region->var = ci_loop_parse_variable(p, &region->extent);
        region->is_parallel = ci_lexer_accept(lex, "parallel");
    } else {
        region->kind = ci_lexer_accept(lex, "while") ? CI_ITEM_while : CI_ITEM_if;
        if (region->kind == CI_ITEM_if)
            ci_lexer_expect(lex, "if");
        region->condition = ci_loop_find_buffer(p);
    }
    kernel->inner[0] = parse_block(p, machine, region);
    if (region->kind == CI_ITEM_while && ci_lexer_accept(lex, "test")) {
        ci_lexer_expect(lex, "after");
        kernel->inner[1] = parse_block(p, machine, region);
    } else if (region->kind == CI_ITEM_if && ci_lexer_accept(lex, "else")) {
        kernel->inner[1] = parse_block(p, machine, region);
    }
    ci_loop_leave_scope(p, outside);
}

/* template product */
static CiTemplate
parse_template(CiLexer *lex)
{
    if (!ci_lexer_accept(lex, "template"))
        return CI_TEMPLATE_none;
    for (int kind = CI_TEMPLATE_none + 1; kind < CI_TEMPLATE_COUNT; kind++)
        if (ci_lexer_accept(lex, ci_template_names[kind]))
            return (CiTemplate)kind;
    ci_lexer_fail(lex, "there is no such template");
}

/* k0: … */
static CiKernel *
parse_kernel(CiLoopParser *p, const CiMachine *machine)
{
    CiLexer *lex = &p->lex;
    CiKernel *kernel = CI_NEW(lex->ctx, CiKernel);
    kernel->name = ci_lexer_expect_name(lex);
    kernel->id = (int)strtol(kernel->name + 1, NULL, 10);
    ci_lexer_expect(lex, ":");
    kernel->device = ci_form_parse_device(lex);
    if (ci_lexer_accept(lex, "extern")) {
        kernel->ext = ci_loop_parse_extern(p);
        kernel->ext->device = kernel->device;
        ci_lexer_expect(lex, "->");
        ci_extern_set_result(p->loops->sym, kernel->ext, ci_loop_find_buffer(p));
        kernel->ext->loc = ci_form_parse_loc(lex);
    } else if (ci_loop_is_check(p)) {
        kernel->check = ci_loop_parse_check(p).check;
    } else if (ci_lexer_is(lex, "for") || ci_lexer_is(lex, "template")) {
        kernel->kind = parse_template(lex);
        ci_lexer_expect(lex, "for");
        parse_loops(p, kernel);
    } else {
        parse_region(p, machine, kernel);
    }
    return kernel;
}

static CiKernels *
parse_list(CiLoopParser *p, const CiMachine *machine)
{
    CiKernels *kernels = CI_NEW(p->lex.ctx, CiKernels);
    kernels->loops = p->loops;
    kernels->machine = machine;
    while (p->lex.kind == CI_TOKEN_name && !ci_lexer_is(&p->lex, "return") &&
           !ci_lexer_is(&p->lex, "swap")) {
        CiKernel *kernel = parse_kernel(p, machine);
        CI_PUSH(p->lex.ctx, kernels->kernels, kernels->nkernels, kernels->capkernels, kernel);
    }
    return kernels;
}

/* u0 in [0, s0), then buf0: f64[u0] private: declarations come before the first kernel. */
static void
parse_declarations(CiLoopParser *p)
{
    CiLexer ahead = p->lex;
    const CiExpr *limit;
    for (ci_lexer_next(&ahead); ci_lexer_is(&ahead, "in"); ci_lexer_next(&ahead)) {
        const char *name = ci_lexer_expect_name(&p->lex);
        (void)ci_form_parse_range(p->loops->sym, &p->lex, name, &limit);
        ahead = p->lex;
    }
    while (p->lex.kind == CI_TOKEN_name && strncmp(p->lex.string, "buf", 3) == 0) {
        CiBuffer *buffer = ci_loop_parse_declaration(p, ci_lexer_expect_name(&p->lex), false);
        buffer->is_private = ci_lexer_accept(&p->lex, "private");
    }
}

typedef struct Parser {
    CiLoopParser p;
    const CiMachine *machine;
    CiKernels *kernels;
} Parser;

static void
parse_whole(CiContext *ctx, void *arg)
{
    Parser *parser = arg;
    CiLoopParser *p = &parser->p;
    CiLexer *lex = &p->lex;
    const CiMachine *machine = parser->machine;
    (void)ctx;
    ci_loop_parse_head(p, "kernels");
    if (ci_lexer_accept(lex, "device")) {
        ci_lexer_expect(lex, "=");
        ci_lexer_expect(lex, machine->device);
        ci_lexer_expect(lex, "backend");
        ci_lexer_expect(lex, "=");
        ci_lexer_expect(lex, machine->backend);
    }
    ci_lexer_expect(lex, "{");
    parse_declarations(p);
    parser->kernels = parse_list(p, machine);
    ci_loop_parse_end(p);
}

CiKernels *
ci_kernels_parse(CiContext *ctx, const char *text, const CiMachine *machine)
{
    Parser parser = {.p = ci_loop_parser(ctx, text), .machine = machine};
    ci_lexer_run(ctx, &parser.p.lex, parse_whole, &parser);
    return parser.kernels;
}

/* Without comments, which refusals and notes are. */
static const char *
without_comments(CiContext *ctx, const char *text)
{
    CiText out = ci_text_new(ctx);
    for (const char *line = text, *end; *line; line = end) {
        end = line + strcspn(line, "\n");
        end += *end == '\n';
        if (line[strspn(line, " ")] != '#')
            ci_text_add(&out, "%.*s", (int)(end - line), line);
    }
    return out.data;
}

void
ci_kernels_verify_text(const CiKernels *kernels)
{
    CiContext *ctx = kernels->loops->ctx;
    CiText once = ci_text_new(ctx), twice = ci_text_new(ctx);
    ci_kernels_print(&once, kernels);
    ci_kernels_print(&twice, ci_kernels_parse(ctx, once.data, kernels->machine));
    ci_form_require_same(ctx, "kernels", without_comments(ctx, once.data), twice.data);
}
