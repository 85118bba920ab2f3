/* Matrix products as templates: one nest sums the products of two factors, which vary along different
 * outer axes, and the other stages are elementwise. Units are tiles of rows and columns. */
#include "analysis/choices.h"
#include "analysis/templates.h"

bool
ci_kernel_has_product(const CiKernel *kernel)
{
    CiNestAt at = CI_BEFORE_NESTS;
    for (const CiNest *nest; (nest = ci_kernel_next_nest(kernel, &at));)
        if (nest->order.kind == CI_FOLD_fused)
            return true;
    return false;
}

bool
ci_body_varies(const CiBody *body, int position, const CiExpr *symbol)
{
    const CiScalar *op = &body->ops[position];
    if (op->index && ci_expr_depends_on(op->index, symbol))
        return true;
    for (int k = 0; k < op->nargs; k++)
        if (ci_body_varies(body, op->args[k], symbol))
            return true;
    return false;
}

/* The axis along which the left factor varies and the right one does not; -1: none. */
static int
find_row(const CiKernel *kernel, const CiProduct *product)
{
    const CiBody *body = &product->nest->body;
    for (int k = product->column - 1; k >= 0; k--)
        if (ci_body_varies(body, product->left, kernel->outer[k].var) &&
            !ci_body_varies(body, product->right, kernel->outer[k].var))
            return k;
    return -1;
}

static const char *
find_factors(const CiKernel *kernel, CiProduct *out)
{
    const CiBody *body = &out->nest->body;
    const CiScalar *times = &body->ops[body->result];
    const CiExpr *column = kernel->outer[out->column].var, *step = kernel->stages[0].axes[0].var;
    bool is_turned = ci_body_varies(body, times->args[0], column);
    out->left = times->args[is_turned];
    out->right = times->args[!is_turned];
    if (ci_body_varies(body, out->left, column) || !ci_body_varies(body, out->right, column))
        return "both factors vary along the last axis, or none does";
    if (!ci_body_varies(body, out->left, step) || !ci_body_varies(body, out->right, step))
        return "a factor is the same in each step";
    out->row = find_row(kernel, out);
    return out->row < 0 ? "no axis is that of one factor alone" : NULL;
}

static bool
has_loads_alone(const CiBody *body)
{
    for (int k = 0; k < body->nops; k++)
        if (ci_op_is_function(body->ops[k].op) && ci_op_kind(body->ops[k].op) == CI_OPKIND_ufunc)
            return false;
    return true;
}

const char *
ci_kernel_why_no_product(const CiKernel *kernel, CiProduct *out)
{
    *out = (CiProduct){.column = kernel->nouter - 1};
    if (kernel->nouter < 2 || !kernel->nstages || kernel->stages[0].nnests != 1 ||
        kernel->stages[0].naxes != 1)
        return "a product is alone in the first stage";
    out->nest = kernel->stages[0].nests[0];
    out->length = kernel->stages[0].axes[0].extent;
    if (out->nest->order.kind != CI_FOLD_fused || out->nest->npoint != kernel->nouter)
        return "a product is alone in the first stage";
    for (int s = 1; s < kernel->nstages; s++) {
        for (int n = 0; n < kernel->stages[s].nnests; n++)
            if (kernel->stages[s].naxes || ci_nest_is_serial(kernel->stages[s].nests[n]))
                return "what joins a product is elementwise";
    }
    if (!has_loads_alone(&out->nest->body))
        return "a loop of NumPy's is called for each factor";
    return find_factors(kernel, out);
}

int
ci_product_panel(const CiExpr *columns, int tile)
{
    int64_t most = columns->high < tile ? columns->high : tile;
    return (int)((most + 31) / 32 * 32);
}

static bool
fits(CiSym *sym, const CiMachine *machine, const CiKernel *kernel)
{
    CiProduct product;
    (void)sym;
    return machine->has_templates && !ci_kernel_why_no_product(kernel, &product);
}

/* Units of so many rows; an extent that is not known is one unit's. */
static double
units_of(const CiMachine *machine, const CiKernel *kernel, const CiProduct *product, int64_t rows)
{
    double units = 1;
    int64_t columns = ci_choice(machine, CI_CHOICE_product_columns);
    for (int k = 0; k < kernel->nouter; k++) {
        const CiExpr *extent = kernel->outer[k].extent;
        int64_t tile = k == product->row ? rows : k == product->column ? columns : 1;
        units *= extent->kind == CI_EXPR_const ? (double)((extent->value + tile - 1) / tile) : 1;
    }
    return units;
}

/* The more rows a unit has, the more often its panel is read; there are units for many threads. */
static int
rows_of_unit(const CiMachine *machine, const CiKernel *kernel, const CiProduct *product)
{
    const CiExpr *extent = kernel->outer[product->row].extent;
    int64_t columns = ci_choice(machine, CI_CHOICE_product_columns), rows = ci_choice(machine, CI_CHOICE_product_rows);
    double units = (double)ci_choice(machine, CI_CHOICE_product_units);
    if (extent->high <= columns && extent->kind == CI_EXPR_const)
        return (int)columns;
    for (int k = 0; machine->packs_products && k < 3 && units_of(machine, kernel, product, 2 * rows) >= units; k++)
        rows *= 2;
    return (int)rows;
}

static void
label(CiLabeller *l)
{
    CiProduct product;
    int64_t columns = CI_CHOOSE(l, product_columns);
    (void)ci_kernel_why_no_product(l->kernel, &product);
    int rows = rows_of_unit(l->machine, l->kernel, &product);
    l->labels->has_lanes = true;
    l->labels->tiles[product.row] = rows;
    l->labels->tiles[product.column] = (int)columns;
    l->labels->unit_work = ci_expr_mul(l->sym, product.length, ci_expr_const(l->sym, rows * columns));
}

static const char *
why_not(CiSym *sym, const CiKernel *kernel)
{
    CiProduct product;
    (void)sym;
    return ci_kernel_why_no_product(kernel, &product);
}

const CiTemplateKind ci_template_product = {false, fits, label, why_not};
