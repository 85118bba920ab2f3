/* The rules of simplify.def that compute attributes: views of views, casts of casts, copies of
 * memory without another user.
 *
 * needs: a valid graph. keeps: values bit for bit, and the observable identity of memory. A view of
 * a view of a version is a view of that same version; no rule looks through an assign. */
#include "passes/identity.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

/* ---- casts ---- */

/* Every value of a is a value of b. */
static bool
is_lossless(CiDtype a, CiDtype b)
{
    CiClass from = ci_dtype_class(a), to = ci_dtype_class(b);
    int from_size = ci_dtype_size(a), to_size = ci_dtype_size(b);
    bool to_float = to == CI_CLASS_float || to == CI_CLASS_complex;
    if (a == CI_DTYPE_bool)
        return true;
    if (from == CI_CLASS_int || from == CI_CLASS_uint)
        return to == from           ? to_size >= from_size
               : to == CI_CLASS_int ? to_size > from_size /* from unsigned */
                                    : to_float && ci_dtype_mantissa(b) + 1 >= 8 * from_size;
    return to_float && ci_dtype_exponent(b) >= ci_dtype_exponent(a) &&
           ci_dtype_mantissa(b) >= ci_dtype_mantissa(a) &&
           (from != CI_CLASS_complex || to == CI_CLASS_complex);
}

/* Going to c over b is the same as going there directly. Integers reach narrow floats through
 * float, others do not, so that way round is not one step. */
static bool
is_skippable(CiDtype a, CiDtype b, CiDtype c)
{
    CiClass from = ci_dtype_class(a), over = ci_dtype_class(b), to = ci_dtype_class(c);
    bool from_int = from == CI_CLASS_int || from == CI_CLASS_uint;
    bool over_int = over == CI_CLASS_int || over == CI_CLASS_uint;
    bool to_int = to == CI_CLASS_int || to == CI_CLASS_uint;
    if (!is_lossless(a, b))
        return false;
    if (from_int && !over_int &&
        (to_int || ci_dtype_is_narrow(c))) /* wraps there, saturates here */
        return false;
    return true;
}

static CiNode *
rule_cast_cast(CiGraph *g, CiNode *node)
{
    CiNode *inner = node->args[0];
    if (inner->op != CI_OP_cast)
        return NULL;
    CiNode *source = inner->args[0];
    if (source->dtype == node->dtype)
        return is_lossless(source->dtype, inner->dtype) ? source : NULL;
    return is_skippable(source->dtype, inner->dtype, node->dtype)
               ? ci_graph_cast(g, source, node->dtype, node->loc)
               : NULL;
}

/* ---- copies ---- */

/* Nothing in the graph writes its memory. */
static bool
is_only_returned(CiGraph *g, CiNode *node)
{
    return !(ci_node_info(g, node)->flags & (CI_IDENTITY_viewed | CI_IDENTITY_written));
}

static bool
has_order_of(const CiNode *a, const CiNode *b)
{
    for (int k = 0; k < a->rank; k++)
        if (a->order[k] != b->order[k])
            return false;
    return true;
}

/* A copy of a fresh value moves into its memory: if only the copy reads it, or if the copy is only returned, so that
 * others read the same elements. */
static CiNode *
rule_copy_fresh(CiGraph *g, CiNode *node)
{
    CiNode *source = node->args[0];
    const CiNodeInfo *info = ci_node_info(g, source);
    if (!ci_node_is_fresh(source) || info->flags & CI_IDENTITY_observed)
        return NULL;
    if (info->uses > 1 || info->flags & CI_IDENTITY_viewed) /* others read it: they need it as it is */
        return is_only_returned(g, node) && has_order_of(node, source) ? source : NULL;
    source->order = node->order;
    return source;
}

/* ---- views ---- */

static bool
has_sizes(CiGraph *g, const CiNode *node, int rank, const CiExpr *const *sizes)
{
    if (node->rank != rank)
        return false;
    for (int k = 0; k < rank; k++)
        if (!ci_sym_known_eq(g->sym, node->sizes[k], sizes[k]))
            return false;
    return true;
}

static CiNode *
rule_reshape_reshape(CiGraph *g, CiNode *node)
{
    CiNode *inner = node->args[0];
    if (inner->op != CI_OP_reshape)
        return NULL;
    return ci_graph_reshape(g, inner->args[0], node->rank, node->sizes, node->loc);
}

static CiNode *
rule_reshape_same(CiGraph *g, CiNode *node)
{
    return has_sizes(g, node->args[0], node->rank, node->sizes) ? node->args[0] : NULL;
}

static CiNode *
rule_permute_permute(CiGraph *g, CiNode *node)
{
    const CiNode *inner = node->args[0];
    int axes[CI_MAX_RANK];
    if (inner->op != CI_OP_permute)
        return NULL;
    for (int k = 0; k < node->rank; k++)
        axes[k] = inner->axes[node->axes[k]];
    return ci_graph_permute(g, inner->args[0], axes, node->loc);
}

static CiNode *
rule_permute_identity(CiGraph *g, CiNode *node)
{
    (void)g;
    for (int k = 0; k < node->rank; k++)
        if (node->axes[k] != k)
            return NULL;
    return node->args[0];
}

/* Element k of the outer slice is element start + step*k of the inner one. */
static CiNode *
rule_slice_slice(CiGraph *g, CiNode *node)
{
    const CiNode *inner = node->args[0];
    const CiExpr *starts[CI_MAX_RANK], *steps[CI_MAX_RANK];
    if (inner->op != CI_OP_slice)
        return NULL;
    for (int k = 0; k < node->rank; k++) {
        starts[k] = ci_expr_add(g->sym, inner->starts[k],
                                ci_expr_mul(g->sym, inner->steps[k], node->starts[k]));
        steps[k] = ci_expr_mul(g->sym, inner->steps[k], node->steps[k]);
        if (ci_expr_equals_const(node->sizes[k], 0)) /* an empty range may start anywhere */
            return NULL;
    }
    return ci_graph_slice(g, inner->args[0], starts, steps, node->sizes, node->loc);
}

static CiNode *
rule_slice_whole(CiGraph *g, CiNode *node)
{
    for (int k = 0; k < node->rank; k++)
        if (!ci_expr_equals_const(node->starts[k], 0) || !ci_expr_equals_const(node->steps[k], 1))
            return NULL;
    return has_sizes(g, node->args[0], node->rank, node->sizes) ? node->args[0] : NULL;
}

static CiNode *
rule_expand_expand(CiGraph *g, CiNode *node)
{
    CiNode *inner = node->args[0];
    if (inner->op != CI_OP_expand)
        return NULL;
    return ci_graph_expand(g, inner->args[0], node->rank, node->sizes, node->loc);
}

static CiNode *
rule_expand_same(CiGraph *g, CiNode *node)
{
    return has_sizes(g, node->args[0], node->rank, node->sizes) ? node->args[0] : NULL;
}

static const CiRule rules[] = {
#define RULE(name, pattern, replacement) {#name, pattern, replacement, CI_OP_none, NULL, false},
#define FUNCTION(name, op) {#name, NULL, NULL, CI_OP_##op, rule_##name, false},
#include "passes/simplify.def"
};

void
ci_pass_simplify(CiGraph *g)
{
    ci_rewrite(g, rules, (int)(sizeof rules / sizeof rules[0]));
}
