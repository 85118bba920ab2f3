/* The verifier of kernels: checks a kernel, and fails with CI_ERR_INTERNAL if one of these rules
 * does not hold.
 *
 * Each nest runs over axes of its kernel. A buffer has one placement, and is a parameter of the
 * kernel where that reads or leaves it in memory. Rows begin at the first element of their outer point. */
#include "base/map.h"
#include "analysis/templates.h"

typedef struct Verifier {
    CiContext *ctx;
    CiSym *sym;
    const CiKernel *whole; /* the kernel */
    const CiKernel *part;  /* it, or a leaf of its tree */
    CiMap *made;           /* buffer -> buffer that a nest of the kernel stores */
} Verifier;

static _Noreturn void
refuse(const Verifier *v, const char *why)
{
    ci_fail(v->ctx, CI_ERR_INTERNAL, "%s: %s", v->whole->name, why);
}

/* ---- axes ---- */

static bool
is_axis(const CiKernelAxis *axes, int naxes, const CiExpr *var)
{
    for (int k = 0; k < naxes; k++)
        if (axes[k].var == var)
            return true;
    return false;
}

/* ---- placements ---- */

static void
verify_buffer(const Verifier *v, const CiBuffer *buffer)
{
    const CiPlacement *placement = ci_kernel_find_placement(v->part, buffer);
    bool is_in_memory = !placement || placement->is_taken || placement->is_kept;
    if (is_in_memory && ci_kernel_buffer_position(v->whole, buffer) < 0)
        refuse(v, ci_format(v->ctx, "%s has no place", buffer->name));
    if (!is_in_memory && ci_kernel_buffer_position(v->whole, buffer) >= 0)
        refuse(v, ci_format(v->ctx, "%s is memory and is not", buffer->name));
}

/* Checks that rows do not depend on inner axes. */
static void
verify_rows(const Verifier *v)
{
    const CiKernel *part = v->part;
    for (int k = 0; k < part->nplacements; k++) {
        const CiPlacement *row = &part->placements[k];
        if (row->stored != CI_STORED_row)
            continue;
        for (int s = 0; s < part->nstages; s++) {
            for (int a = 0; a < part->stages[s].naxes; a++)
                if (ci_expr_depends_on(row->row_base, part->stages[s].axes[a].var))
                    refuse(v, ci_format(v->ctx, "the row %s begins elsewhere at each %s",
                                        row->buffer->name, part->stages[s].axes[a].var->name));
        }
    }
}

static void
verify_placements(const Verifier *v)
{
    const CiKernel *part = v->part;
    for (int k = 0; k < part->nplacements; k++) {
        const CiPlacement *placement = &part->placements[k];
        const CiBuffer *buffer = placement->buffer;
        if (placement->stored == CI_STORED_memory)
            continue;
        if (buffer->kind != CI_BUFFER_temp || (buffer->is_result && !placement->is_kept))
            refuse(v, ci_format(v->ctx, "%s outlives the kernel and is %s", buffer->name,
                                ci_stored_name(placement->stored)));
        if (!ci_map_find(v->made, CI_KEY(buffer)) && !placement->is_taken)
            refuse(v, ci_format(v->ctx, "nothing makes %s, which is %s", buffer->name,
                                ci_stored_name(placement->stored)));
        verify_buffer(v, buffer);
    }
}

/* ---- stages and trees ---- */

static void
verify_stage(const Verifier *v, const CiStage *stage)
{
    for (int n = 0; n < stage->nnests; n++) {
        const CiNest *nest = stage->nests[n];
        for (int k = 0; k < nest->naxes; k++)
            if (!is_axis(v->part->outer, v->part->nouter, nest->axes[k].var) &&
                !is_axis(stage->axes, stage->naxes, nest->axes[k].var))
                refuse(v, ci_format(v->ctx, "%s of the nest into %s is no axis of its stage",
                                    nest->axes[k].var->name, nest->target->name));
        verify_buffer(v, nest->target);
        for (int k = 0; k < nest->body.nops; k++) {
            const CiBuffer *buffer = nest->body.ops[k].buffer;
            if (buffer && buffer->kind != CI_BUFFER_scalar)
                verify_buffer(v, buffer);
        }
    }
}

static void
verify_part(const Verifier *v)
{
    verify_placements(v);
    for (int s = 0; s < v->part->nstages; s++)
        verify_stage(v, &v->part->stages[s]);
    verify_rows(v);
}

static void
verify_tree(const Verifier *v, const CiKernels *tree)
{
    for (int k = 0; tree && k < tree->nkernels; k++) {
        const CiKernel *kernel = tree->kernels[k];
        const CiBuffer *asked = kernel->check ? kernel->check->buffer : kernel->region ? kernel->region->condition : NULL;
        if (asked && asked->kind != CI_BUFFER_scalar)
            verify_buffer(v, asked);
        Verifier leaf = *v;
        leaf.part = kernel;
        verify_part(&leaf);
        verify_tree(v, kernel->inner[0]);
        verify_tree(v, kernel->inner[1]);
    }
}

static void
verify_template(const Verifier *v)
{
    const char *why = ci_template_why_not(v->sym, v->whole);
    if (why)
        refuse(v, ci_format(v->ctx, "it is no %s: %s", ci_template_names[v->whole->kind], why));
}

static void
note_made(void *arg, const CiNest *nest)
{
    ci_map_put(arg, CI_KEY(nest->target), nest->target);
    if (ci_nest_count(nest))
        ci_map_put(arg, CI_KEY(ci_nest_count(nest)), ci_nest_count(nest));
}

static void
verify_kernel(void *arg, const CiKernel *kernel)
{
    const CiKernels *kernels = arg;
    CiContext *ctx = kernels->loops->ctx;
    if (!ci_kernel_has_loops(kernel))
        return;
    Verifier v = {ctx, kernels->loops->sym, kernel, kernel, ci_map_new(ctx)};
    ci_kernel_visit_nests(kernel, note_made, v.made);
    const CiKernels *tree = ci_kernel_tree(kernel);
    if (tree) {
        verify_placements(&v);
        verify_tree(&v, tree);
    } else {
        verify_part(&v);
    }
    verify_template(&v);
}

void
ci_kernels_verify(const CiKernels *kernels)
{
    ci_kernels_visit(kernels, verify_kernel, (void *)kernels);
}
