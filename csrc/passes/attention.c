/* Attention: of a softmax of scores between two products both products become cinductor's own, so that one kernel may
 * compute all of it without the scores in memory. Between products of narrow floats the softmax gets its steps in float32.
 *
 *   matmul(divide(e, sum(e)), v)  where e = exp(x - max(x)) and x is element-wise of matmul(q, k)
 *   ->
 *   product(divide(e, sum(e)), v), if these are float32 or float64
 *   product(narrow(e), v) / sum(e)  where e = exp(float32(x) - max(float32(x))), if they are narrow
 *
 * Scores keep their own operations, and are rounded as these say. Nothing else may read what is
 * between the products, because it would have to be in memory then.
 *
 * needs: a device that multiplies tiles of the narrow type; or a processor, and numerics that allow another order of sums.
 * keeps: x. Narrow weights are rounded once instead of four times. */
#include "passes/pass.h"

#include "ir/kernel.h"

typedef struct Info {
    int uses, inside;      /* operands that are this node, of all nodes and of those between the products */
    bool is_seen, depends; /* on the scores */
    CiNode *copy;          /* of the scores or a node that depends on them, with cinductor's product */
    CiNode *instead;       /* what later nodes read in its place; NULL: it */
} Info;

typedef struct Attention {
    CiGraph *g;
    const CiMachine *machine;
    bool is_wide;              /* products are of float32 or float64, not of narrow floats */
    CiNode *scores;            /* the first product */
    CiNode *weights, *values;  /* factors of the second one */
    CiNode *elements;          /* x */
    int nothers;               /* products besides the first that x depends on */
} Attention;

static Info *
info_of(CiGraph *g, CiNode *node)
{
    if (!node->mark)
        node->mark = CI_NEW(g->ctx, Info);
    return node->mark;
}

static void
forget(void *arg, CiNode *node)
{
    (void)arg;
    node->mark = NULL;
}

static void
count_uses(CiGraph *g, const CiBlock *block)
{
    for (int k = 0; k < block->nnodes; k++) {
        for (int a = 0; a < block->nodes[k]->nargs; a++)
            info_of(g, block->nodes[k]->args[a])->uses++;
        for (int b = 0; b < block->nodes[k]->nblocks; b++)
            count_uses(g, block->nodes[k]->blocks[b]);
    }
    for (int k = 0; k < block->nresults; k++)
        info_of(g, block->results[k])->uses++;
}

/* ---- matching ---- */

/* The type is one of factors. */
static bool
is_factor(const Attention *a, const CiNode *node)
{
    if (a->is_wide)
        return node->dtype == CI_DTYPE_f32 || node->dtype == CI_DTYPE_f64;
    return ci_dtype_size(node->dtype) == 2 && (a->machine->tensor_dtypes & CI_DTYPE_BIT(node->dtype));
}

/* Skips what leaves elements where they are, and floats what they are but for rounding. */
static CiNode *
skip(CiNode *node)
{
    while (node->op == CI_OP_copy || (node->op == CI_OP_cast && ci_dtype_is_float(node->args[0]->dtype)))
        node = node->args[0];
    return node;
}

static bool
is_matmul(const CiNode *node)
{
    return node->op == CI_OP_matmul && !*node->ext->key && node->nargs == 2 && node->args[0]->rank > 1 &&
           node->args[1]->rank > 1;
}

/* A library's product, whose result has the type of its factors. */
static bool
is_call(const Attention *a, const CiNode *node)
{
    return is_matmul(node) && is_factor(a, node) && node->args[0]->dtype == node->dtype &&
           node->args[1]->dtype == node->dtype;
}

/* A factor of a product of cinductor's; of one of narrow floats, the narrow one; or NULL. */
static CiNode *
factor_of(const Attention *a, const CiNode *product, int k)
{
    CiNode *factor = product->args[k]->op == CI_OP_expand ? product->args[k]->args[0] : product->args[k];
    if (a->is_wide)
        return factor;
    return factor->op == CI_OP_cast && is_factor(a, factor->args[0]) ? factor->args[0] : NULL;
}

/* A product with sums of float32; or of cinductor's, of factors that are not narrow. */
static bool
is_product(const Attention *a, const CiNode *node)
{
    if (a->is_wide)
        return node->op == CI_OP_product && is_factor(a, node);
    return (node->op == CI_OP_product || is_matmul(node)) && node->dtype == CI_DTYPE_f32 && factor_of(a, node, 0) &&
           factor_of(a, node, 1) && factor_of(a, node, 0)->dtype == factor_of(a, node, 1)->dtype;
}

static bool
is_last_axis(const CiNode *fold)
{
    return fold->naxes == 1 && fold->axes[0] == fold->args[0]->rank - 1;
}

static bool
has_sizes_of(const CiNode *node, const CiNode *other)
{
    bool is_same = node->rank == other->rank;
    for (int k = 0; is_same && k < node->rank; k++)
        is_same = node->sizes[k] == other->sizes[k];
    return is_same;
}

/* The reduction of each row whose value is broadcast along that row; or NULL. */
static CiNode *
row_fold(CiNode *value, CiOp op, const CiNode *elements)
{
    int last = elements->rank - 1;
    value = skip(value);
    value = value->op == CI_OP_expand ? skip(value->args[0]) : value;
    bool is_alongside = value->op == CI_OP_reshape && value->rank == elements->rank &&
                     ci_expr_equals_const(value->sizes[last], 1);
    for (int k = 0; is_alongside && k < last; k++)
        is_alongside = value->sizes[k] == elements->sizes[k];
    CiNode *fold = is_alongside ? skip(value->args[0]) : NULL;
    return fold && fold->op == op && is_last_axis(fold) && fold->args[0]->rank == elements->rank ? fold : NULL;
}

/* e = exp(x - max(x)); weights = e / sum(e). */
static bool
match_softmax(Attention *a)
{
    CiNode *quotient = skip(a->weights);
    CiNode *power = quotient->op == CI_OP_divide ? skip(quotient->args[0]) : quotient;
    CiNode *distance = power->op == CI_OP_exp ? skip(power->args[0]) : power;
    if (quotient->op != CI_OP_divide || power->op != CI_OP_exp || distance->op != CI_OP_subtract ||
        !has_sizes_of(power, a->weights))
        return false;
    a->elements = distance->args[0];
    const CiNode *sum = row_fold(quotient->args[1], CI_OP_sum, a->weights),
                 *top = row_fold(distance->args[1], CI_OP_max, a->weights);
    if (!sum || !top || skip(sum->args[0]) != power || skip(top->args[0]) != skip(a->elements) ||
        !has_sizes_of(a->elements, a->weights) || !ci_dtype_is_float(a->elements->dtype))
        return false;
    const CiNode *steps[] = {quotient, power, distance, sum, top, a->elements};
    for (size_t k = 0; a->is_wide && k < sizeof steps / sizeof *steps; k++)
        if (steps[k]->dtype != a->weights->dtype)
            return false;
    return a->is_wide || ci_dtype_size(a->elements->dtype) <= 4;
}

static bool
is_elementwise(const CiNode *node)
{
    CiOpKind kind = ci_op_kind(node->op);
    return kind == CI_OPKIND_pointwise || kind == CI_OPKIND_math || node->op == CI_OP_cast ||
           node->op == CI_OP_where || node->op == CI_OP_copy;
}

/* Marks the nodes between x and the first product that have an element for each score. */
static bool
find_scores(Attention *a, CiNode *node)
{
    Info *info = info_of(a->g, node);
    if (info->is_seen)
        return info->depends;
    info->is_seen = true;
    if (is_call(a, node) || is_product(a, node)) {
        a->nothers += a->scores && a->scores != node;
        a->scores = node;
        info->depends = has_sizes_of(node, a->weights);
        a->nothers += !info->depends;
        return info->depends;
    }
    for (int k = 0; is_elementwise(node) && k < node->nargs; k++)
        info->depends |= find_scores(a, node->args[k]);
    a->nothers += info->depends && !has_sizes_of(node, a->weights);
    return info->depends;
}

/* Counts what the nodes between the products read of each other. */
static void
count_inside(Attention *a, CiNode *node)
{
    Info *info = info_of(a->g, node);
    info->inside++;
    if (info->inside > 1 || node == a->scores)
        return;
    bool is_part = info->depends || node->op == CI_OP_max || node->op == CI_OP_sum ||
                   node->op == CI_OP_reshape || node->op == CI_OP_expand || is_elementwise(node);
    for (int k = 0; is_part && k < node->nargs; k++)
        count_inside(a, node->args[k]);
}

/* A node between the products is read elsewhere. */
static bool
has_other_readers(const Attention *a, const CiBlock *block)
{
    for (int k = 0; k < block->nnodes; k++) {
        const Info *info = block->nodes[k]->mark;
        if (info && (info->depends || block->nodes[k] == a->weights) && info->uses != info->inside)
            return true;
    }
    return false;
}

static void
forget_search(CiBlock *block)
{
    for (int k = 0; k < block->nnodes; k++) {
        Info *info = block->nodes[k]->mark;
        if (info)
            *info = (Info){.uses = info->uses, .instead = info->instead};
    }
}

static bool
is_long(const CiExpr *size)
{
    return !ci_expr_equals_const(size, 1);
}

/* Tiles have at most so many columns; a head is read as a whole. */
static bool
has_sizes(const Attention *a)
{
    const CiExpr *columns = a->values->sizes[a->values->rank - 1], *steps = a->scores->args[0]->sizes[a->scores->args[0]->rank - 1];
    return ci_attention_has_size(columns, a->is_wide) && ci_attention_has_size(steps, a->is_wide) && is_long(a->values->sizes[a->values->rank - 1]) &&
           is_long(a->weights->sizes[a->weights->rank - 1]) && is_long(a->weights->sizes[a->weights->rank - 2]);
}

static bool
match(Attention *a, const CiNode *root, const CiBlock *block)
{
    bool has_product = is_product(a, root);
    if (!has_product && !is_call(a, root))
        return false;
    a->weights = has_product ? factor_of(a, root, 0) : root->args[0];
    a->values = has_product ? factor_of(a, root, 1) : root->args[1];
    if (!match_softmax(a) || !find_scores(a, a->elements) || a->nothers || !has_sizes(a))
        return false;
    if (has_product && a->is_wide && a->scores->op == CI_OP_product)
        return false; /* nothing is left to do */
    count_inside(a, root->args[0]);
    return !has_other_readers(a, block);
}

/* ---- rewriting ---- */

static CiNode *
factor(Attention *a, CiNode *node, int rank, const CiExpr *const *batch, CiLoc loc)
{
    const CiExpr *sizes[CI_MAX_RANK];
    for (int k = 0; k < rank; k++)
        sizes[k] = k < rank - 2 ? batch[k] : node->sizes[node->rank - rank + k];
    bool is_same = node->rank == rank;
    for (int k = 0; is_same && k < rank; k++)
        is_same = node->sizes[k] == sizes[k];
    node = is_same ? node : ci_graph_expand(a->g, node, rank, sizes, loc);
    return a->is_wide ? node : ci_graph_cast(a->g, node, CI_DTYPE_f32, loc);
}

/* A call of a library as cinductor's own product; its factors are broadcast to the sizes of the result. */
static CiNode *
own_product(Attention *a, const CiNode *like, CiNode *left, CiNode *right)
{
    left = factor(a, left, like->rank, like->sizes, like->loc);
    right = factor(a, right, like->rank, like->sizes, like->loc);
    return ci_graph_product(a->g, left, right, like->loc);
}

/* x, with a product of cinductor's for the call. */
static CiNode *
rebuild(Attention *a, CiNode *node)
{
    Info *info = info_of(a->g, node);
    if (!info->depends || (node == a->scores && node->op == CI_OP_product))
        return node;
    if (info->copy)
        return info->copy;
    if (node == a->scores) {
        bool has_product = is_product(a, node);
        CiNode *left = has_product ? factor_of(a, node, 0) : node->args[0],
               *right = has_product ? factor_of(a, node, 1) : node->args[1];
        info->copy = ci_graph_cast(a->g, own_product(a, node, left, right), node->dtype, node->loc);
        return info->copy;
    }
    CiNode like = *node;
    like.mark = NULL;
    like.args = CI_NEW_ARRAY(a->g->ctx, CiNode *, node->nargs + 1);
    for (int k = 0; k < node->nargs; k++)
        like.args[k] = rebuild(a, node->args[k]);
    info->copy = ci_graph_add(a->g, &like);
    return info->copy;
}

/* Of each row, broadcast along it. */
static CiNode *
fold_rows(Attention *a, CiOp op, CiNode *node, CiLoc loc)
{
    const CiExpr *sizes[CI_MAX_RANK];
    int last = node->rank - 1;
    CiNode *fold = ci_graph_reduce(a->g, op, node, 1, &last, loc);
    for (int k = 0; k < last; k++)
        sizes[k] = node->sizes[k];
    sizes[last] = ci_expr_const(a->g->sym, 1);
    return ci_graph_reshape(a->g, fold, node->rank, sizes, loc);
}

static CiNode *
apply(Attention *a, CiOp op, CiNode *left, CiNode *right, CiLoc loc)
{
    CiNode *args[] = {left, right};
    return ci_graph_pointwise(a->g, op, right ? 2 : 1, args, loc);
}

static CiNode *
rewrite(Attention *a, const CiNode *root)
{
    CiLoc loc = root->loc;
    CiNode *x = ci_graph_cast(a->g, rebuild(a, a->elements), a->is_wide ? root->dtype : CI_DTYPE_f32, loc),
           *distance = apply(a, CI_OP_subtract, x, fold_rows(a, CI_OP_max, x, loc), loc),
           *power = apply(a, CI_OP_exp, distance, NULL, loc), *sum = fold_rows(a, CI_OP_sum, power, loc);
    if (a->is_wide)
        return own_product(a, root, apply(a, CI_OP_divide, power, sum, loc), a->values);
    CiNode *weights = ci_graph_cast(a->g, power, a->weights->dtype, loc),
           *product = own_product(a, root, weights, a->values),
           *result = apply(a, CI_OP_divide, product, sum, loc);
    return ci_graph_cast(a->g, result, root->dtype, loc);
}

static CiNode *
forward(CiNode *node)
{
    Info *info = node->mark;
    return info && info->instead ? info->instead : node;
}

static void
sweep(CiGraph *g, const Attention *empty, CiBlock *block, bool *has_changed)
{
    CiBlock *before = ci_graph_enter(g, block);
    CiNode **nodes = block->nodes;
    int count = block->nnodes;
    block->nodes = CI_NEW_ARRAY(g->ctx, CiNode *, count + 1);
    block->capnodes = count + 1;
    block->nnodes = 0;
    CiBlock old = {.nodes = nodes, .nnodes = count};
    for (int k = 0; k < count; k++) {
        Attention a = *empty;
        for (int n = 0; n < nodes[k]->nargs; n++)
            nodes[k]->args[n] = forward(nodes[k]->args[n]);
        for (int n = 0; n < nodes[k]->nblocks; n++)
            sweep(g, empty, nodes[k]->blocks[n], has_changed);
        bool is_one = match(&a, nodes[k], &old);
        CiNode *instead = is_one ? rewrite(&a, nodes[k]) : NULL;
        if (is_one || a.weights)
            forget_search(&old);
        if (is_one)
            info_of(g, nodes[k])->instead = instead;
        CI_PUSH(g->ctx, block->nodes, block->nnodes, block->capnodes, nodes[k]);
        *has_changed |= is_one;
    }
    for (int k = 0; k < block->nresults; k++)
        block->results[k] = forward(block->results[k]);
    (void)ci_graph_enter(g, before);
}

void
ci_graph_attention(CiGraph *g, const CiMachine *machine, bool has_numpys_order)
{
    bool has_changed = false;
    const Attention empty = {.g = g, .machine = machine, .is_wide = machine->packs_products};
    if (!machine->has_templates || (empty.is_wide ? has_numpys_order : !machine->tensor_dtypes))
        return;
    ci_block_visit(g->body, forget, NULL);
    for (int k = 0; k < g->ninputs; k++)
        forget(NULL, g->inputs[k]);
    count_uses(g, g->body);
    for (int k = 0; k < g->nwrites; k++)
        info_of(g, g->writes[k].value)->uses++;
    sweep(g, &empty, g->body, &has_changed);
    for (int k = 0; k < g->nwrites; k++)
        g->writes[k].value = forward(g->writes[k].value);
    if (has_changed) {
        ci_pass_dce(g);
        ci_graph_number(g);
    }
}
