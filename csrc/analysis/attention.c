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

/* The float that is the f32 of a narrow one, in which a factor of a product ends; or NULL. */
static const CiScalar *
narrow_factor(const CiNest *product, int k)
{
    const CiBody *body = &product->body;
    const CiScalar *factor = &body->ops[result_of(product)->args[k]];
    const CiScalar *narrow = factor->op == CI_OP_cast ? &body->ops[factor->args[0]] : NULL;
    return narrow && ci_dtype_size(narrow->dtype) == 2 && ci_dtype_class(narrow->dtype) == CI_CLASS_float ? narrow : NULL;
}

static bool
is_product(const CiKernel *kernel, const CiNest *nest)
{
    return nest->order.kind == CI_FOLD_fused && nest->fold == CI_OP_sum && nest->npoint == kernel->nouter + 1 &&
           nest->naxes == nest->npoint + 1 && result_of(nest)->op == CI_OP_multiply && narrow_factor(nest, 0) &&
           narrow_factor(nest, 1) && narrow_factor(nest, 0)->dtype == narrow_factor(nest, 1)->dtype;
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
    const CiScalar *power = result_of(a->weights),
                   *distance = power->op == CI_OP_exp ? &body->ops[power->args[0]] : power;
    return distance->op == CI_OP_subtract && distance->dtype == CI_DTYPE_f32 && loads(body, distance->args[1], a->top) &&
           is_same(body, distance->args[0], &a->top->body, a->top->body.result);
}

/* The left factor of the second product is a weight, rounded. */
static bool
multiplies_weights(CiSym *sym, const CiKernel *kernel, const CiAttention *a)
{
    int left = left_factor(kernel, a->product);
    const CiScalar *narrow = left < 0 ? NULL : narrow_factor(a->product, left);
    const CiScalar *load = narrow && narrow->op == CI_OP_cast ? &a->product->body.ops[narrow->args[0]] : NULL;
    const CiExpr *key = a->weights->axes[kernel->nouter].var, *step = a->product->axes[kernel->nouter + 1].var;
    return load && load->op == CI_OP_load && load->buffer == a->weights->target &&
           load->index == ci_expr_substitute(sym, a->weights->store, 1, &key, &step);
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
        out->sum->axes[first].extent != keys || out->product->axes[first + 1].extent != keys)
        return "rows differ in length";
    if (out->scores->axes[first + 1].extent->high > CI_ATTENTION_SIZE || out->product->axes[first].extent->high > CI_ATTENTION_SIZE)
        return "a head is too large";
    if (left_factor(kernel, out->scores) < 0)
        return "a factor of the scores is not that of rows or of columns alone";
    if (!has_weights(out) || !loads(&out->sum->body, out->sum->body.result, out->weights))
        return "weights are not the exponentials of scores less their maximum";
    return multiplies_weights(sym, kernel, out) ? NULL : "the second product is not one of weights";
}

static bool
fits(CiSym *sym, const CiMachine *machine, const CiKernel *kernel)
{
    CiAttention attention;
    return machine->has_templates && machine->tensor_dtypes && !ci_kernel_why_no_attention(sym, kernel, &attention);
}

static void
label(CiSym *sym, const CiMachine *machine, CiKernel *kernel)
{
    (void)sym;
    (void)machine;
    kernel->lanes_on_outer = true;
    for (int k = 0; k < kernel->nouter; k++)
        kernel->outer[k].label = CI_LABEL_parallel;
    kernel->outer[kernel->nouter - 1].label = CI_LABEL_vector;
    kernel->outer[kernel->nouter - 1].factor = 1;
    kernel->unit_work = kernel->stages[0].axes[0].extent;
}

static const char *
measure(CiSym *sym, const CiKernel *kernel, CiTemplateMeasure *out)
{
    CiAttention attention;
    (void)out;
    return ci_kernel_why_no_attention(sym, kernel, &attention);
}

static const CiExpr *
scratch(CiSym *sym, const CiMachine *machine, const CiKernel *kernel)
{
    (void)machine;
    (void)kernel;
    return ci_expr_const(sym, 0);
}

const CiTemplateKind ci_template_attention = {true, fits, label, measure, scratch};
