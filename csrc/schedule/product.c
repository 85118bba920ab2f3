/* Products of matrices become templates: what joins one is elementwise, and units are tiles. So does attention, which
 * has two of them. */
#include "schedule/plan.h"

const char *
ci_why_no_template(CiScheduler *s, const CiKernel *kernel)
{
    CiProduct product;
    return s->machine->has_templates && ci_kernel_has_product(kernel)
               ? ci_kernel_why_no_product(kernel, &product)
               : NULL;
}

/* Units of so many rows; an extent that is not known is one unit's. */
static double
units_of(const CiScheduler *s, const CiKernel *kernel, const CiProduct *product, int64_t rows)
{
    double units = 1;
    for (int k = 0; k < kernel->nouter; k++) {
        const CiExpr *extent = kernel->outer[k].extent;
        int64_t tile = k == product->row ? rows : k == product->column ? CI_CHOOSE(s, product_columns) : 1;
        units *= extent->kind == CI_EXPR_const ? (double)((extent->value + tile - 1) / tile) : 1;
    }
    return units;
}

/* The more rows a unit has, the more often its panel is read; there are units for many threads. */
static int
rows_of_unit(const CiScheduler *s, const CiKernel *kernel, const CiProduct *product)
{
    const CiExpr *extent = kernel->outer[product->row].extent;
    int64_t columns = CI_CHOOSE(s, product_columns), rows = CI_CHOOSE(s, product_rows);
    if (extent->high <= columns && extent->kind == CI_EXPR_const)
        return (int)columns;
    for (int k = 0; s->machine->packs_products && k < 3 && units_of(s, kernel, product, 2 * rows) >= (double)CI_CHOOSE(s, product_units); k++)
        rows *= 2;
    return (int)rows;
}

bool
ci_label_product(CiScheduler *s, CiKernel *kernel)
{
    CiProduct product;
    if (!s->machine->has_templates || ci_kernel_why_no_product(kernel, &product))
        return false;
    kernel->kind = CI_TEMPLATE_product;
    kernel->lanes_on_outer = true;
    kernel->outer[product.row].factor = rows_of_unit(s, kernel, &product);
    kernel->outer[product.column].factor = (int)CI_CHOOSE(s, product_columns);
    for (int k = 0; k < kernel->nouter; k++)
        kernel->outer[k].label = k == product.column ? CI_LABEL_vector : CI_LABEL_parallel;
    kernel->unit_work = ci_expr_mul(s->sym, product.length, ci_expr_const(s->sym, (int64_t)kernel->outer[product.row].factor * kernel->outer[product.column].factor));
    return true;
}

/* Tiles of narrow floats are a GPU's; a processor packs factors that are floats of the sums' type. */
static bool
has_builder(const CiMachine *machine, const CiAttention *attention)
{
    bool is_narrow = attention->narrow != attention->scores->target->dtype;
    return is_narrow ? machine->tensor_dtypes & CI_DTYPE_BIT(attention->narrow) : machine->packs_products;
}

bool
ci_has_attention(const CiScheduler *s, const CiKernel *kernel)
{
    CiAttention attention;
    return s->machine->has_templates && !ci_kernel_why_no_attention(s->sym, kernel, &attention) &&
           has_builder(s->machine, &attention);
}

bool
ci_label_attention(CiScheduler *s, CiKernel *kernel)
{
    CiAttention attention;
    if (!ci_has_attention(s, kernel))
        return false;
    (void)ci_kernel_why_no_attention(s->sym, kernel, &attention);
    kernel->kind = CI_TEMPLATE_attention;
    kernel->lanes_on_outer = true;
    for (int k = 0; k < kernel->nouter; k++)
        kernel->outer[k].label = CI_LABEL_parallel;
    kernel->outer[kernel->nouter - 1].label = CI_LABEL_vector;
    kernel->outer[kernel->nouter - 1].factor = 1;
    kernel->unit_work = kernel->stages[0].axes[0].extent;
    if (s->machine->packs_products) {
        kernel->outer[kernel->nouter - 1].factor = ci_attention_rows(s->machine, attention.narrow);
        kernel->unit_work = ci_attention_work(s->sym, kernel, s->machine, &attention);
    }
    return true;
}
