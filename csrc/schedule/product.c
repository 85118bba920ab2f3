/* Products of matrices become templates: what joins one is elementwise, and units are tiles. */
#include "schedule/plan.h"

const char *
ci_why_no_template(CiScheduler *s, const CiKernel *kernel)
{
    CiProduct product;
    return s->machine->has_templates && ci_kernel_has_product(kernel)
               ? ci_kernel_why_no_product(kernel, &product)
               : NULL;
}

static int
rows_of_unit(const CiScheduler *s, const CiExpr *extent)
{
    int64_t columns = CI_CHOOSE(s, product_columns);
    bool is_small = extent->high <= columns && extent->kind == CI_EXPR_const;
    return (int)(is_small ? columns : CI_CHOOSE(s, product_rows));
}

bool
ci_label_product(CiScheduler *s, CiKernel *kernel)
{
    CiProduct product;
    if (!s->machine->has_templates || ci_kernel_why_no_product(kernel, &product))
        return false;
    kernel->kind = CI_TEMPLATE_product;
    kernel->lanes_on_outer = true;
    kernel->outer[product.row].factor = rows_of_unit(s, kernel->outer[product.row].extent);
    kernel->outer[product.column].factor = (int)CI_CHOOSE(s, product_columns);
    for (int k = 0; k < kernel->nouter; k++)
        kernel->outer[k].label = k == product.column ? CI_LABEL_vector : CI_LABEL_parallel;
    kernel->unit_work = ci_expr_mul(s->sym, product.length, ci_expr_const(s->sym, CI_CHOOSE(s, product_rows) * CI_CHOOSE(s, product_columns)));
    return true;
}
