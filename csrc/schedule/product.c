/* Products of matrices become templates: what joins one is elementwise, and units are tiles. */
#include "schedule/plan.h"

/* Rows and columns of a unit: the panel of one factor stays in cache while rows of the other
 * pass. */
#define ROWS 48
#define COLUMNS 64

const char *
ci_why_no_template(CiScheduler *s, const CiKernel *kernel)
{
    CiProduct product;
    return s->machine->has_templates && ci_kernel_has_product(kernel)
               ? ci_kernel_why_no_product(kernel, &product)
               : NULL;
}

static int
rows_of_unit(const CiExpr *extent)
{
    return extent->high <= COLUMNS && extent->kind == CI_EXPR_const ? COLUMNS : ROWS;
}

bool
ci_label_product(CiScheduler *s, CiKernel *kernel)
{
    CiProduct product;
    if (!s->machine->has_templates || ci_kernel_why_no_product(kernel, &product))
        return false;
    kernel->kind = CI_TEMPLATE_product;
    kernel->lanes_on_outer = true;
    kernel->outer[product.row].factor = rows_of_unit(kernel->outer[product.row].extent);
    kernel->outer[product.column].factor = COLUMNS;
    for (int k = 0; k < kernel->nouter; k++)
        kernel->outer[k].label = k == product.column ? CI_LABEL_vector : CI_LABEL_parallel;
    kernel->unit_work = ci_expr_mul(s->sym, product.length, ci_expr_const(s->sym, ROWS * COLUMNS));
    return true;
}
