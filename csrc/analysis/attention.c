/* Attention as a template: a softmax along rows of scores, which a product makes, between that product and one
 * with values. The sum of the softmax divides the second product. */
#include "analysis/templates.h"

#include <string.h>

static bool
is_same(const CiBody *a, int x, const CiBody *b, int y)
{
    const CiScalar *p = &a->ops[x], *q = &b->ops[y];
    bool is = p->op == q->op && p->dtype == q->dtype && p->buffer == q->buffer && p->index == q->index &&
              p->nargs == q->nargs && !memcmp(&p->value, &q->value, sizeof p->value);
    for (int k = 0; is && k < p->nargs; k++)
        is = is_same(a, p->args[k], b, q->args[k]);
    return is;
}

static const CiScalar *
result_of(const CiNest *nest)
{
    return &nest->body.ops[nest->body.result];
}

/* A factor of a product: the narrow float of which it is the f32, or else the factor. */
static const CiScalar *
factor_of(const CiNest *product, int k)
{
    const CiBody *body = &product->body;
    const CiScalar *factor = &body->ops[result_of(product)->args[k]];
    const CiScalar *narrow = factor->op == CI_OP_cast ? &body->ops[factor->args[0]] : NULL;
    return narrow && ci_dtype_size(narrow->dtype) == 2 && ci_dtype_class(narrow->dtype) == CI_CLASS_float ? narrow : factor;
}

static bool
is_product(const CiKernel *kernel, const CiNest *nest)
{
    return nest->order.kind == CI_FOLD_fused && nest->fold == CI_OP_sum && nest->npoint == kernel->nouter + 1 &&
           nest->naxes == nest->npoint + 1 && result_of(nest)->op == CI_OP_multiply &&
           factor_of(nest, 0)->dtype == factor_of(nest, 1)->dtype;
}

/* One factor is of a row and a step, the other one of a step and a column. The first one's number; -1: no. */
static int
left_factor(const CiKernel *kernel, const CiNest *nest)
{
    const CiExpr *row = kernel->outer[kernel->nouter - 1].var, *column = nest->axes[kernel->nouter].var,
                 *step = nest->axes[kernel->nouter + 1].var;
    const int *factors = result_of(nest)->args;
    int left = ci_body_varies(&nest->body, factors[0], column);
    bool is_row_by_column = ci_body_varies(&nest->body, factors[left], row) && !ci_body_varies(&nest->body, factors[left], column) &&
                            ci_body_varies(&nest->body, factors[!left], column) && !ci_body_varies(&nest->body, factors[!left], row);
    return is_row_by_column && ci_body_varies(&nest->body, factors[0], step) && ci_body_varies(&nest->body, factors[1], step) ? left : -1;
}

static bool
loads(const CiBody *body, int position, const CiNest *made)
{
    const CiScalar *op = &body->ops[position];
    return op->op == CI_OP_load && op->buffer == made->target && op->index == made->store;
}

/* exp(x - maximum), where x is what the maximum is of. */
static bool
has_weights(const CiAttention *a)
{
    const CiBody *body = &a->weights->body;
    const CiScalar *power = result_of(a->weights), *distance = &body->ops[power->args[0]];
    return power->op == CI_OP_exp && distance->op == CI_OP_subtract &&
           distance->dtype == a->scores->target->dtype && loads(body, distance->args[1], a->top) &&
           is_same(body, distance->args[0], &a->top->body, a->top->body.result);
}

/* Quotients, if there are any: weights by their sum. */
static bool
has_quotients(const CiAttention *a)
{
    const CiScalar *quotient = a->quotients ? result_of(a->quotients) : NULL;
    return !quotient || (quotient->op == CI_OP_divide && quotient->dtype == a->weights->target->dtype &&
                         loads(&a->quotients->body, quotient->args[0], a->weights) &&
                         loads(&a->quotients->body, quotient->args[1], a->sum));
}

/* The left factor of the second product is a weight, rounded if it is narrow, or its quotient. */
static bool
multiplies_weights(CiSym *sym, const CiKernel *kernel, const CiAttention *a)
{
    int left = left_factor(kernel, a->product);
    const CiNest *made = a->quotients ? a->quotients : a->weights;
    const CiScalar *load = left < 0 ? NULL : factor_of(a->product, left);
    if (load && a->narrow != a->scores->target->dtype)
        load = load->op == CI_OP_cast ? &a->product->body.ops[load->args[0]] : NULL;
    const CiExpr *key = made->axes[kernel->nouter].var, *step = a->product->axes[kernel->nouter + 1].var;
    return load && load->op == CI_OP_load && load->buffer == made->target &&
           load->index == ci_expr_substitute(sym, made->store, 1, &key, &step);
}

static bool
is_fold_of_row(const CiKernel *kernel, const CiNest *nest, CiOp op)
{
    return nest->fold == op && nest->npoint == kernel->nouter && nest->naxes == nest->npoint + 1;
}

static bool
is_pointwise(const CiKernel *kernel, const CiNest *nest)
{
    return nest->naxes == nest->npoint && nest->npoint == kernel->nouter + 1 && !ci_nest_is_serial(nest);
}

/* Sorts the nests into *a; what follows the second product is elementwise. */
static const char *
find_nests(const CiKernel *kernel, CiAttention *a)
{
    CiNestAt at = CI_BEFORE_NESTS;
    int stage = 0; /* of the elements */
    for (const CiNest *nest; (nest = ci_kernel_next_nest(kernel, &at));) {
        if (a->product && (!is_pointwise(kernel, nest) ||
                           nest->axes[kernel->nouter].extent != a->product->axes[kernel->nouter].extent))
            return "what joins attention is elementwise";
        if (a->product)
            continue;
        if (!a->scores && is_product(kernel, nest))
            a->scores = nest;
        else if (a->sum && is_product(kernel, nest))
            a->product = nest;
        else if (a->scores && !a->top && !a->elements && is_pointwise(kernel, nest))
            a->elements = nest, stage = at.stage;
        else if (a->scores && !a->top && is_fold_of_row(kernel, nest, CI_OP_max) && (!a->elements || at.stage == stage))
            a->top = nest;
        else if (a->top && !a->weights && is_pointwise(kernel, nest))
            a->weights = nest;
        else if (a->weights && !a->sum && is_fold_of_row(kernel, nest, CI_OP_sum))
            a->sum = nest;
        else if (a->sum && !a->quotients && is_pointwise(kernel, nest))
            a->quotients = nest;
        else
            return "there is more than two products and a softmax";
    }
    return a->product ? NULL : "two products with a softmax between them are missing";
}

const char *
ci_kernel_why_no_attention(CiSym *sym, const CiKernel *kernel, CiAttention *out)
{
    *out = (CiAttention){0};
    if (!kernel->nouter)
        return "there are no rows";
    const char *why = find_nests(kernel, out);
    if (why)
        return why;
    int first = kernel->nouter;
    const CiExpr *keys = out->scores->axes[first].extent;
    if ((out->elements && out->elements->axes[first].extent != keys) || out->top->axes[first].extent != keys || out->weights->axes[first].extent != keys ||
        out->sum->axes[first].extent != keys || out->product->axes[first + 1].extent != keys ||
        (out->quotients && out->quotients->axes[first].extent != keys))
        return "rows differ in length";
    out->narrow = factor_of(out->scores, 0)->dtype;
    bool is_wide = out->narrow == out->scores->target->dtype;
    if (factor_of(out->product, 0)->dtype != out->narrow || out->product->target->dtype != out->scores->target->dtype)
        return "the products differ in type";
    if (out->quotients && !is_wide)
        return "weights are divided before they are rounded";
    if (!ci_attention_has_size(out->scores->axes[first + 1].extent, is_wide) ||
        !ci_attention_has_size(out->product->axes[first].extent, is_wide))
        return "a head is too large";
    if (left_factor(kernel, out->scores) < 0)
        return "a factor of the scores is not that of rows or of columns alone";
    if (!has_weights(out) || !loads(&out->sum->body, out->sum->body.result, out->weights))
        return "weights are not the exponentials of scores less their maximum";
    if (!has_quotients(out))
        return "what is between the sum and the second product is more than a division";
    return multiplies_weights(sym, kernel, out) ? NULL : "the second product is not one of weights";
}

/* ---- sizes of a unit on a processor ---- */

/* Rows of a unit: the lanes of two vectors. */
static int
rows_of_unit(const CiMachine *machine, CiDtype dtype)
{
    return 2 * machine->vector_bytes / (int)ci_dtype_size(dtype);
}

static const CiExpr *
find_work(CiSym *sym, const CiKernel *kernel, const CiMachine *machine, const CiAttention *a)
{
    const CiExpr *head = a->scores->axes[kernel->nouter + 1].extent, *columns = a->product->axes[kernel->nouter].extent,
                 *keys = a->scores->axes[kernel->nouter].extent;
    int64_t rows = rows_of_unit(machine, a->scores->target->dtype);
    return ci_expr_mul(sym, ci_expr_mul(sym, ci_expr_add(sym, head, columns), keys), ci_expr_const(sym, rows));
}

/* ---- the kind ---- */

/* Tiles of narrow floats are a GPU's; a processor packs factors that are floats of the sums' type. */
static bool
has_builder(const CiMachine *machine, const CiAttention *attention)
{
    bool is_narrow = attention->narrow != attention->scores->target->dtype;
    return is_narrow ? machine->tensor_dtypes & CI_DTYPE_BIT(attention->narrow) : machine->packs_products;
}

static bool
fits(CiSym *sym, const CiMachine *machine, const CiKernel *kernel)
{
    CiAttention attention;
    return machine->has_templates && !ci_kernel_why_no_attention(sym, kernel, &attention) &&
           has_builder(machine, &attention);
}

static void
label(CiLabeller *l)
{
    CiAttention attention;
    int *rows = &l->labels->tiles[l->kernel->nouter - 1];
    (void)ci_kernel_why_no_attention(l->sym, l->kernel, &attention);
    l->labels->has_lanes = true;
    *rows = l->machine->packs_products ? rows_of_unit(l->machine, attention.narrow) : 1;
    l->labels->unit_work = l->machine->packs_products ? find_work(l->sym, l->kernel, l->machine, &attention)
                                                      : l->kernel->stages[0].axes[0].extent;
}

static const char *
why_not(CiSym *sym, const CiKernel *kernel)
{
    CiAttention attention;
    return ci_kernel_why_no_attention(sym, kernel, &attention);
}

const CiTemplateKind ci_template_attention = {true, fits, label, why_not};
