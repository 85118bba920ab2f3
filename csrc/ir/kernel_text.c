/* Printing kernels. This form is for people and for golden files; nothing reads it back. Refusals
 * of the scheduler are comments, at the end, in the order they were met. */
#include "ir/form.h"
#include "ir/kernel.h"
#include "ir/loop_text.h"

static void
print_axes(CiText *out, const CiKernelAxis *axes, int naxes)
{
    static const char *const labels[] = {"",       " parallel", " vector", " unroll",
                                         " block", " thread",   " lane"};
    for (int k = 0; k < naxes; k++) {
        ci_text_add(out, "%s%s<", k ? ", " : " ", axes[k].var->name);
        ci_expr_print(out, axes[k].extent, CI_STYLE_text);
        ci_text_add(out, "%s", labels[axes[k].label]);
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
    if (placement) {
        static const char *const places[] = {"memory", "local", "row", "register", "scalar"};
        ci_text_add(out, " %s", places[placement->place]);
    }
    ci_text_add(out, "[");
    ci_expr_print(out, nest->store, CI_STYLE_text);
    ci_text_add(out, "] = ");
    ci_loop_print_fold(out, nest);
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

static void
print_rows(CiText *out, const CiKernel *kernel)
{
    for (int k = 0; k < kernel->nplacements; k++) {
        const CiPlacement *placement = &kernel->placements[k];
        if (placement->place != CI_PLACE_row)
            continue;
        ci_text_indent(out);
        ci_text_add(out, "row %s[", placement->buffer->name);
        ci_expr_print(out, placement->row_size, CI_STYLE_text);
        ci_text_add(out, "] from ");
        ci_expr_print(out, placement->row_base, CI_STYLE_text);
        ci_text_add(out, "\n");
    }
}

static void
print_scalars(CiText *out, const CiKernel *kernel)
{
    for (int k = 0; k < kernel->nplacements; k++) {
        const CiPlacement *placement = &kernel->placements[k];
        if (placement->place == CI_PLACE_scalar)
            ci_text_line(out, "scalar %s%s%s", placement->buffer->name,
                         placement->is_taken ? " in" : "", placement->is_kept ? " out" : "");
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

/* A leaf with no axes of its own is its stages. */
static void
print_leaf(CiText *out, const CiKernel *leaf)
{
    print_rows(out, leaf);
    if (leaf->nouter) {
        ci_text_indent(out);
        ci_text_add(out, "for");
        print_axes(out, leaf->outer, leaf->nouter);
        ci_text_add(out, leaf->lanes_on_outer ? " lanes on outer {\n" : " {\n");
        out->indent += 2;
    }
    for (int k = 0; k < leaf->nstages; k++)
        print_stage(out, leaf, &leaf->stages[k]);
    if (leaf->nouter) {
        out->indent -= 2;
        ci_text_line(out, "}");
    }
}

static void
print_tree_region(CiText *out, const CiTreeNode *node)
{
    const CiRegion *region = node->region;
    ci_text_indent(out);
    if (node->kind == CI_TREE_for) {
        ci_text_add(out, "for %s<", region->var->name);
        ci_expr_print(out, region->extent, CI_STYLE_text);
        ci_text_add(out, " {\n");
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

static void print_list(CiText *out, const CiKernels *kernels);

static void
print_region(CiText *out, const CiKernel *kernel)
{
    const CiRegion *region = kernel->region;
    if (region->var) {
        ci_text_add(out, "for %s<", region->var->name);
        ci_expr_print(out, region->extent, CI_STYLE_text);
    } else {
        ci_text_add(out, "%s %s", region->condition_items.count ? "while" : "if",
                    region->condition->name);
    }
    ci_text_add(out, " {\n");
    for (int k = 0; k < 2; k++) {
        if (k && kernel->inner[k])
            ci_text_line(out, region->condition_items.count ? "} test after {" : "} else {");
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
    ci_text_add(out, "for");
    print_axes(out, kernel->outer, kernel->nouter);
    if (kernel->lanes_on_outer)
        ci_text_add(out, " lanes on outer");
    if (kernel->row) {
        ci_text_add(out, ", rows of ");
        ci_expr_print(out, kernel->row, CI_STYLE_text);
        ci_text_add(out, "<=%lld are lanes", (long long)kernel->short_row);
    }
    if (kernel->split_extent) {
        ci_text_add(out, " split ");
        ci_expr_print(out, kernel->split_extent, CI_STYLE_text);
    }
    ci_text_add(out, " {");
    ci_loop_print_locs(out, kernel->locs, kernel->nlocs);
    ci_text_add(out, "\n");
    out->indent += 2;
    print_arguments(out, kernel);
    print_rows(out, kernel);
    print_scalars(out, kernel);
    for (int k = 0; k < kernel->nstages; k++)
        print_stage(out, kernel, &kernel->stages[k]);
    out->indent -= 2;
    ci_text_line(out, "}");
}

static void
print_kernel(CiText *out, const CiKernel *kernel)
{
    ci_text_indent(out);
    ci_text_add(out, "%s: ", kernel->name);
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
}

void
ci_kernels_print(CiText *out, const CiKernels *kernels)
{
    ci_loop_print_symbols(out, kernels->loops);
    ci_text_add(out, "kernels ");
    ci_loop_print_head(out, kernels->loops);
    if (kernels->target)
        ci_text_add(out, " device=%s backend=%s", kernels->target->device,
                    kernels->target->backend);
    ci_text_add(out, " {\n");
    out->indent += 2;
    print_list(out, kernels);
    ci_loop_print_results(out, kernels->loops);
    out->indent -= 2;
    ci_text_add(out, "}\n");
}
