/* Row-and-column reductions (margins of a table) as templates: one stage folds its rows, the other
 * its columns, each in NumPy's order.
 *
 * Both orders are possible in one pass over the rows. A row's fold is a tree that depends only on
 * its length, so some of the columns are a subtree of every row; a column's fold goes from row to
 * row. So units are subtrees of columns, which iterate over all rows. Their partial results of each
 * row are combined afterwards. */
#include "analysis/choices.h"
#include "analysis/templates.h"

/* The parts of a row-and-column reduction (margins of a table). */
typedef struct CiMargins {
    const CiStage *rows, *columns;
    const CiExpr *height, *width; /* rows, and what is in each */
} CiMargins;

/* True if the nest accumulates where it stores, in NumPy's order for rows, or for columns. */
static bool
is_margin(const CiNest *nest, bool is_row)
{
    const CiFoldOrder *order = &nest->order;
    CiDtype dtype = nest->body.ops[nest->body.result].dtype;
    return ci_nest_is_fold(nest) && ci_op_kind(nest->fold) == CI_OPKIND_reduce &&
           nest->npoint == 1 && nest->naxes == 2 && !nest->is_combined &&
           !ci_nest_is_indirect(nest) && order->kind == CI_FOLD_pairwise && !order->chunk &&
           !order->alone && order->ninner == (is_row ? 1 : 0) &&
           ci_dtype_sum(dtype) == nest->target->dtype &&
           !ci_op_is_order_free(nest->fold, nest->target->dtype);
}

/* Reads another's target, or asks a loop of NumPy's. */
static bool
is_plain(const CiKernel *kernel, const CiNest *nest)
{
    for (int k = 0; k < nest->body.nops; k++) {
        const CiScalar *op = &nest->body.ops[k];
        if (ci_op_is_function(op->op) && ci_op_kind(op->op) == CI_OPKIND_ufunc)
            return false;
        for (int s = 0; op->op == CI_OP_load && s < kernel->nstages; s++)
            for (int n = 0; n < kernel->stages[s].nnests; n++)
                if (op->buffer == kernel->stages[s].nests[n]->target)
                    return false;
    }
    return true;
}

static bool
is_all(const CiKernel *kernel, const CiStage *stage, bool is_row)
{
    for (int n = 0; n < stage->nnests; n++)
        if (!is_margin(stage->nests[n], is_row) || !is_plain(kernel, stage->nests[n]))
            return false;
    return stage->naxes == 2 && stage->nnests > 0;
}

/* NULL where a kernel folds the rows and the columns of a table, which *out then describes. */
static const char *
why_no_margins(const CiKernel *kernel, CiMargins *out)
{
    *out = (CiMargins){0};
    if (kernel->nouter || kernel->nstages != 2)
        return "one stage folds rows, another one columns";
    for (int s = 0; s < 2; s++) {
        if (is_all(kernel, &kernel->stages[s], true))
            out->rows = &kernel->stages[s];
        else if (is_all(kernel, &kernel->stages[s], false))
            out->columns = &kernel->stages[s];
    }
    if (!out->rows || !out->columns)
        return "one stage folds rows, another one columns";
    out->height = out->rows->axes[0].extent;
    out->width = out->rows->axes[1].extent;
    if (out->columns->axes[0].extent != out->width || out->columns->axes[1].extent != out->height)
        return "they fold other tables";
    if (out->height->kind != CI_EXPR_const || out->width->kind != CI_EXPR_const)
        return "who knows whether its rows are long";
    bool is_short = out->width->low < 4 * CI_MARGINS_COLUMNS;
    return is_short ? "its rows are too short to be shared out" : NULL;
}

/* The number of parts of the columns: a power of two, enough for all threads, or more if parts stay wide. */
static int
choose_parts(const CiMachine *machine, const CiMargins *margins)
{
    int64_t width = margins->width->low, least = ci_choice(machine, CI_CHOICE_margin_columns);
    int parts = 1;
    while (width / (2 * parts) >= (least < CI_MARGINS_COLUMNS ? CI_MARGINS_COLUMNS : least) &&
           (parts < ci_choice(machine, CI_CHOICE_least_units) || width / (2 * parts) >= 2 * least))
        parts *= 2;
    return parts;
}

/* One pass pays if there is a part for every thread, or little work. */
static bool
fits(CiSym *sym, const CiMachine *machine, const CiKernel *kernel)
{
    CiMargins margins;
    (void)sym;
    return machine->has_margins && !why_no_margins(kernel, &margins) &&
           (choose_parts(machine, &margins) >= ci_choice(machine, CI_CHOICE_margin_units) ||
            margins.height->low <=
                ci_choice(machine, CI_CHOICE_margin_chunks) * machine->chunk_elements / margins.width->low);
}

/* Vectorizes each stage along memory, which is along the rows. */
static void
label_stages(CiKernel *kernel, const CiMargins *margins)
{
    for (int t = 0; t < kernel->nstages; t++) {
        CiStage *stage = &kernel->stages[t];
        int across = stage == margins->columns ? 0 : 1;
        stage->axes[across].label = CI_LABEL_vector;
        stage->axes[1 - across].label = CI_LABEL_serial;
    }
}

static void
label(CiSym *sym, const CiMachine *machine, CiKernel *kernel)
{
    CiMargins margins;
    (void)why_no_margins(kernel, &margins);
    kernel->split_chunks = choose_parts(machine, &margins);
    const CiExpr *columns = ci_expr_ceildiv(sym, margins.width, ci_expr_const(sym, kernel->split_chunks));
    kernel->unit_work = ci_expr_mul(sym, margins.height, columns);
    label_stages(kernel, &margins);
}

static const char *
why_not(CiSym *sym, const CiKernel *kernel)
{
    CiMargins margins;
    const char *why = why_no_margins(kernel, &margins);
    (void)sym;
    if (!why && (kernel->split_chunks < 1 || margins.width->low / kernel->split_chunks < CI_MARGINS_COLUMNS))
        why = "its units are not subtrees of columns";
    return why;
}

const CiTemplateKind ci_template_margins = {true, fits, label, why_not};
