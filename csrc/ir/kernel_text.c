/* Printing kernels. Invariant: parse(print(kernels)) prints the same text, and makes the same
 * source. Refusals of the scheduler are comments, at the end, in the order they were met. */
#include "ir/text_common.h"
#include "ir/kernel.h"
#include "ir/loop_text.h"

static void
print_axes(CiText *out, const CiKernelAxis *axes, int naxes)
{
    static const char *const labels[] = {
#define LABEL(name) " " #name,
#include "ir/kernel.def"
    };
    for (int k = 0; k < naxes; k++) {
        ci_text_add(out, "%s%s<", k ? ", " : " ", axes[k].var->name);
        ci_expr_print(out, axes[k].extent, CI_STYLE_text);
        ci_text_add(out, "%s", axes[k].label == CI_LABEL_serial ? "" : labels[axes[k].label]);
        if (axes[k].factor)
            ci_text_add(out, " %d", axes[k].factor);
    }
}

/* A nest inside a stage: where the value goes, how it is folded, its body. */
static void
print_nest(CiText *out, const CiKernel *kernel, const CiNest *nest)
{
    const CiPlacement *placement = ci_kernel_find_placement(kernel, nest->target);
    ci_text_indent(out);
    ci_text_add(out, "%s", nest->target->name);
    if (placement)
        ci_text_add(out, " %s", ci_place_name(placement->place));
    ci_form_add_expr(out, "[", nest->store, "] = ");
    if (nest->is_combined)
        ci_text_add(out, "%s ", ci_op_name(nest->combine));
    ci_text_add(out, nest->is_distinct ? "distinct " : "");
    ci_loop_print_fold(out, nest);
    for (int k = nest->npoint; k < nest->naxes; k++)
        ci_text_add(out, "%s%s", k > nest->npoint ? ", " : " over ", nest->axes[k].var->name);
    ci_text_add(out, nest->fold == CI_OP_none ? "" : " ");
    ci_loop_print_body(out, nest);
}

static void
print_arguments(CiText *out, const CiKernel *kernel)
{
    ci_text_indent(out);
    ci_text_add(out, "takes");
    for (int k = 0; k < kernel->nbuffers; k++)
        ci_text_add(out, "%s%s%s", k ? ", " : " ",
                    kernel->is_stored && kernel->is_stored[k] ? "out " : "",
                    kernel->buffers[k]->name);
    ci_text_add(out, kernel->nsize_args ? "; sizes " : "");
    ci_form_print_exprs(out, kernel->nsize_args, kernel->size_args, NULL);
    ci_text_add(out, "\n");
}

/* Prints the numbers for launches, each with its word; NULL is omitted. */
static void
print_units(CiText *out, const CiKernel *kernel)
{
    const struct {
        const char *word;
        const CiExpr *value;
    } parts[] = {
#define LAUNCH(word, member) {#word, kernel->member},
#include "ir/kernel.def"
    };
    const char *between = "";
    ci_text_indent(out);
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
        if (!parts[k].value || (k > 0 && ci_expr_equals_const(parts[k].value, 0)))
            continue;
        ci_text_add(out, "%s%s ", between, parts[k].word);
        ci_expr_print(out, parts[k].value, CI_STYLE_text);
        between = ", ";
    }
    ci_text_add(out, "\n");
}

/* Where what the kernel makes lives, a line each. */
static void
print_placements(CiText *out, const CiKernel *kernel)
{
    for (int k = 0; k < kernel->nplacements; k++) {
        const CiPlacement *placement = &kernel->placements[k];
        if (placement->place == CI_PLACE_memory)
            continue;
        ci_text_indent(out);
        ci_text_add(out, "%s %s%s%s", ci_place_name(placement->place), placement->buffer->name,
                    placement->is_taken ? " in" : "", placement->is_kept ? " out" : "");
        if (placement->place == CI_PLACE_row) {
            ci_form_add_expr(out, "[", placement->row_size, "] from ");
            ci_expr_print(out, placement->row_base, CI_STYLE_text);
            ci_form_add_expr(out, " at ", placement->scratch_offset, "");
        }
        ci_text_add(out, "\n");
    }
}

static void print_tree(CiText *out, const CiLoopTree *tree);

static void
print_stage(CiText *out, const CiKernel *kernel, const CiStage *stage)
{
    ci_text_indent(out);
    ci_text_add(out, stage->tree ? "stage serial" : "stage");
    print_axes(out, stage->axes, stage->naxes);
    ci_text_add(out, " {\n");
    out->indent += 2;
    for (int k = 0; k < stage->nnests; k++)
        print_nest(out, kernel, stage->nests[k]);
    if (stage->tree)
        print_tree(out, stage->tree);
    out->indent -= 2;
    ci_text_line(out, "}");
}

static void
print_leaf(CiText *out, const CiKernel *leaf)
{
    ci_text_indent(out);
    ci_text_add(out, "do");
    print_axes(out, leaf->outer, leaf->nouter);
    ci_text_add(out, leaf->lanes_on_outer ? " lanes on outer {\n" : " {\n");
    out->indent += 2;
    print_placements(out, leaf);
    for (int k = 0; k < leaf->nstages; k++)
        print_stage(out, leaf, &leaf->stages[k]);
    out->indent -= 2;
    ci_text_line(out, "}");
}

static void
print_tree_region(CiText *out, const CiTreeNode *node)
{
    const CiRegion *region = node->region;
    ci_text_indent(out);
    if (node->kind == CI_TREE_for) {
        ci_text_add(out, "for %s<", region->var->name);
        ci_form_add_expr(out, "", region->extent, " {\n");
    } else if (node->kind == CI_TREE_if) {
        ci_text_add(out, "if %s {\n", region->condition->name);
    } else {
        ci_text_add(out, "while {\n");
        out->indent += 2;
        print_tree(out, &node->other);
        out->indent -= 2;
        ci_text_line(out, "} test %s {", region->condition->name);
    }
    out->indent += 2;
    print_tree(out, &node->body);
    ci_loop_print_swaps(out, region);
    out->indent -= 2;
    if (node->kind == CI_TREE_if && node->other.count) {
        ci_text_line(out, "} else {");
        out->indent += 2;
        print_tree(out, &node->other);
        out->indent -= 2;
    }
    ci_text_line(out, "}");
}

static void
print_tree(CiText *out, const CiLoopTree *tree)
{
    for (int k = 0; k < tree->count; k++) {
        if (tree->nodes[k].check) {
            ci_text_indent(out);
            ci_loop_print_check(out, tree->nodes[k].check);
        } else if (tree->nodes[k].leaf)
            print_leaf(out, tree->nodes[k].leaf);
        else
            print_tree_region(out, &tree->nodes[k]);
    }
}

/* ---- what is declared before the kernels ---- */

typedef struct Symbols {
    CiMap *seen;
    CiMap *defined; /* by a check: symbol -> CiCheckItem */
    CiMap *inside;  /* variables of loops around kernels, in this text */
} Symbols;

static void
collect_nest(void *arg, const CiNest *nest)
{
    ci_loop_collect_nest(((Symbols *)arg)->seen, nest);
}

static void
collect_expr(const Symbols *symbols, const CiExpr *e)
{
    if (e)
        ci_form_collect_symbols(symbols->seen, e);
}

static void
collect_variable(void *arg, const CiExpr *symbol)
{
    const Symbols *symbols = arg;
    if (symbol->symbol_kind == CI_SYMBOL_index && !ci_map_find(symbols->inside, CI_KEY(symbol)))
        ci_map_put(symbols->seen, CI_KEY(symbol), (void *)(uintptr_t)symbol);
}

/* Variables of loops that are not in this text are symbols of it. */
static void
collect_size(Symbols *symbols, const CiExpr *e)
{
    collect_expr(symbols, e);
    ci_expr_visit_symbols(e, collect_variable, symbols);
}

/* Collects the limits of symbols that no check defines in this text. */
static void
collect_limits(Symbols *symbols)
{
    for (int k = 0; k < ci_map_count(symbols->seen); k++) {
        const CiExpr *symbol = ci_map_value_at(symbols->seen, k);
        if (symbol->limit && !ci_map_find(symbols->defined, CI_KEY(symbol)))
            collect_size(symbols, symbol->limit);
    }
}

static void
collect_check(const Symbols *symbols, const CiCheckItem *check)
{
    if (!check->symbol)
        return;
    collect_expr(symbols, check->limit);
    ci_map_put(symbols->defined, CI_KEY(check->symbol), (void *)check);
}

static void
collect_tree(const Symbols *symbols, const CiLoopTree *tree)
{
    for (int k = 0; k < tree->count; k++) {
        const CiTreeNode *node = &tree->nodes[k];
        if (node->region)
            collect_expr(symbols, node->region->extent);
        collect_tree(symbols, &node->body);
        collect_tree(symbols, &node->other);
    }
}

static void
collect_list(Symbols *symbols, const CiKernels *kernels)
{
    for (int k = 0; k < kernels->nkernels; k++) {
        const CiKernel *kernel = kernels->kernels[k];
        if (kernel->region && kernel->region->var)
            ci_map_put(symbols->inside, CI_KEY(kernel->region->var), (void *)kernel->region);
        for (int n = 0; n < 2; n++)
            if (kernel->inner[n])
                collect_list(symbols, kernel->inner[n]);
        if (kernel->region)
            collect_expr(symbols, kernel->region->extent);
        if (kernel->ext)
            ci_loop_collect_extern(symbols->seen, kernel->ext);
        if (kernel->check)
            collect_check(symbols, kernel->check);
        for (int n = 0; n < kernel->nchecks; n++)
            collect_check(symbols, kernel->checks[n]);
        for (int n = 0; n < kernel->nouter; n++)
            collect_expr(symbols, kernel->outer[n].extent);
        for (int n = 0; n < kernel->nsize_args; n++)
            collect_size(symbols, kernel->size_args[n]);
        ci_kernel_visit_nests(kernel, collect_nest, symbols);
        if (ci_kernel_tree(kernel))
            collect_tree(symbols, ci_kernel_tree(kernel));
    }
}

/* Temps, in the order of their numbers, wherever they live. */
static void
print_buffers(CiText *out, const CiLoops *loops)
{
    for (int k = loops->ninputs; k < loops->nbuffers; k++) {
        ci_text_indent(out);
        ci_loop_print_declaration(out, loops, loops->buffers[k]);
        ci_text_add(out, loops->buffers[k]->is_private ? " private\n" : "\n");
    }
}

static void print_list(CiText *out, const CiKernels *kernels);

static void
print_region(CiText *out, const CiKernel *kernel)
{
    const CiRegion *region = kernel->region;
    if (region->var) {
        ci_text_add(out, "loop %s<", region->var->name);
        ci_expr_print(out, region->extent, CI_STYLE_text);
        ci_text_add(out, region->is_parallel ? " parallel" : "");
    } else {
        ci_text_add(out, "%s %s", region->kind == CI_ITEM_while ? "while" : "if",
                    region->condition->name);
    }
    ci_text_add(out, " {\n");
    for (int k = 0; k < 2; k++) {
        if (k && kernel->inner[k])
            ci_text_line(out, region->kind == CI_ITEM_while ? "} test after {" : "} else {");
        out->indent += 2;
        if (kernel->inner[k])
            print_list(out, kernel->inner[k]);
        if (k == 0)
            ci_loop_print_swaps(out, region);
        out->indent -= 2;
    }
    ci_text_line(out, "}");
}

static void
print_loops(CiText *out, const CiKernel *kernel)
{
    ci_text_add(out, kernel->kind ? "template %s for" : "for", ci_template_names[kernel->kind]);
    print_axes(out, kernel->outer, kernel->nouter);
    if (kernel->lanes_on_outer)
        ci_text_add(out, " lanes on outer");
    if (kernel->row) {
        ci_form_add_expr(out, ", rows of ", kernel->row, "");
        ci_text_add(out, "<=%lld are lanes", (long long)kernel->short_row);
    }
    if (kernel->split_extent) {
        ci_text_add(out, kernel->is_chained ? " chained " : " split ");
        ci_expr_print(out, kernel->split_extent, CI_STYLE_text);
    } else if (kernel->split_parts) {
        ci_text_add(out, " split into %d", kernel->split_parts);
    }
    ci_text_add(out, " {");
    ci_loop_print_locs(out, kernel->locs, kernel->nlocs);
    ci_text_add(out, "\n");
    out->indent += 2;
    print_arguments(out, kernel);
    print_units(out, kernel);
    print_placements(out, kernel);
    for (int k = 0; k < kernel->nstages; k++)
        print_stage(out, kernel, &kernel->stages[k]);
    out->indent -= 2;
    ci_text_line(out, "}");
}

static void
print_kernel(CiText *out, const CiKernel *kernel)
{
    ci_text_indent(out);
    ci_text_add(out, "%s:", kernel->name);
    ci_form_print_device(out, kernel->device);
    ci_text_add(out, " ");
    if (kernel->check) {
        ci_loop_print_check(out, kernel->check);
    } else if (kernel->ext) {
        ci_text_add(out, "extern ");
        ci_loop_print_extern(out, kernel->ext);
        ci_text_add(out, " -> %s", kernel->ext->result->name);
        ci_loop_print_locs(out, &kernel->ext->loc, 1);
        ci_text_add(out, "\n");
    } else if (kernel->region) {
        print_region(out, kernel);
    } else {
        print_loops(out, kernel);
    }
}

static void
print_list(CiText *out, const CiKernels *kernels)
{
    for (int k = 0; k < kernels->nkernels; k++)
        print_kernel(out, kernels->kernels[k]);
    for (int k = 0; k < kernels->nrefusals; k++)
        ci_text_line(out, "# %s", kernels->refusals[k]);
    for (int k = 0; k < kernels->nnotes; k++)
        ci_text_line(out, "# %s", kernels->notes[k]);
}

void
ci_kernels_print(CiText *out, const CiKernels *kernels)
{
    CiContext *ctx = kernels->loops->ctx;
    Symbols own = {ci_map_new(ctx), ci_map_new(ctx), ci_map_new(ctx)}, *symbols = &own;
    CiMap *printed = ci_map_new(ctx);
    ci_loop_collect_buffers(symbols->seen, kernels->loops);
    collect_list(symbols, kernels);
    ci_loop_collect_results(symbols->seen, kernels->loops);
    collect_limits(symbols);
    ci_loop_print_symbols(out, symbols->seen, symbols->defined);
    ci_text_add(out, "kernels ");
    ci_loop_print_head(out, kernels->loops);
    if (kernels->machine)
        ci_text_add(out, " device=%s backend=%s", kernels->machine->device,
                    kernels->machine->backend);
    ci_text_add(out, " {\n");
    out->indent += 2;
    for (int k = 0; k < ci_map_count(symbols->defined); k++) {
        const CiCheckItem *check = ci_map_value_at(symbols->defined, k);
        ci_loop_print_defined(out, symbols->defined, check->symbol, printed);
    }
    print_buffers(out, kernels->loops);
    print_list(out, kernels);
    ci_loop_print_results(out, kernels->loops);
    out->indent -= 2;
    ci_text_add(out, "}\n");
}

/* ---- one kernel ---- */

static bool
is_used(const CiKernel *kernel, const CiBuffer *buffer)
{
    return buffer->kind == CI_BUFFER_scalar || ci_kernel_find_placement(kernel, buffer) ||
           ci_kernel_buffer_position(kernel, buffer) >= 0;
}

void
ci_kernels_print_alone(CiText *out, const CiKernels *kernels, const CiKernel *kernel)
{
    const CiLoops *whole = kernels->loops;
    CiKernel *list[] = {(CiKernel *)(uintptr_t)kernel};
    CiLoops loops = {.ctx = whole->ctx, .sym = whole->sym, .name = whole->name};
    CiKernels alone = {
        .loops = &loops, .machine = kernels->machine, .kernels = list, .nkernels = 1};
    int capacity = 0;
    for (int k = 0; k < whole->nbuffers; k++) {
        if (!is_used(kernel, whole->buffers[k]))
            continue;
        loops.ninputs += k < whole->ninputs;
        CI_PUSH(whole->ctx, loops.buffers, loops.nbuffers, capacity, whole->buffers[k]);
    }
    ci_kernels_print(out, &alone);
}
