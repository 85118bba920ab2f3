/* Schedules kernels that reduce one table over its rows and over its columns in one pass. The columns
 * are divided into parts, one for each work unit. */
#include "schedule/plan.h"

/* The number of parts of the columns: a power of two, enough for all threads, or more if parts stay wide. */
static int
choose_parts(const CiScheduler *s, const CiMargins *margins)
{
    int64_t width = margins->width->low, least = CI_CHOOSE(s, margin_columns);
    int parts = 1;
    while (width / (2 * parts) >= (least < CI_MARGINS_COLUMNS ? CI_MARGINS_COLUMNS : least) &&
           (parts < CI_CHOOSE(s, least_units) || width / (2 * parts) >= 2 * least))
        parts *= 2;
    return parts;
}

/* True if one pass pays: there is a part for every thread, or there is little work. */
bool
ci_has_margins(const CiScheduler *s, const CiKernel *kernel)
{
    CiMargins margins;
    return s->machine->has_margins && !ci_kernel_why_no_margins(kernel, &margins) &&
           (choose_parts(s, &margins) >= CI_CHOOSE(s, margin_units) ||
            margins.height->low <= CI_CHOOSE(s, margin_chunks) * s->machine->chunk_elements / margins.width->low);
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

bool
ci_label_margins(CiScheduler *s, CiKernel *kernel)
{
    CiMargins margins;
    if (!ci_has_margins(s, kernel) || ci_kernel_why_no_margins(kernel, &margins))
        return false;
    CiSym *sym = s->sym;
    kernel->kind = CI_TEMPLATE_margins;
    kernel->split_parts = choose_parts(s, &margins);
    const CiExpr *columns = ci_expr_ceildiv(sym, margins.width, ci_expr_const(sym, kernel->split_parts));
    kernel->unit_work = ci_expr_mul(sym, margins.height, columns);
    label_stages(kernel, &margins);
    return true;
}
