/* Computes the part of an array that a collective takes apart from the array, and before it. The members
 * then exchange their borders while each computes the inside of its part.
 *
 * A collective at the head of an iteration may take a part of an array that the iteration before has made. Then it moves
 * to the end of that iteration, and another one before the loop serves the first iteration. The last
 * one is in vain.
 *
 *   %1 = add(%0, in1)             %1 = add(slice(%0), slice(in1))
 *   %2 = slice(%1)                %2 = add(%0, in1)
 *   %3 = send_recv(%2)            %3 = send_recv(%1)
 *
 * The slice is moved to the operands of element-by-element operations, and to the operand of a concatenation that
 * has all of its elements. What is computed twice is at most one eighth of the array along some axis.
 *
 * needs: composite operations are gone. keeps: values bit for bit. */
#include "passes/pass.h"

/* An array is this many times as long as a part of it that is computed twice. */
#define LEAST_RATIO 8
#define MAX_NODES 64

typedef struct Part {
    const CiExpr *starts[CI_MAX_RANK], *steps[CI_MAX_RANK], *sizes[CI_MAX_RANK];
} Part;

/* A collective that takes a part of an array; the next one that takes one of the same array. */
typedef struct Sender {
    CiNode *collective;
    struct Sender *next;
} Sender;

typedef struct Mover {
    CiGraph *g;
    const CiNode *array; /* of which a part is taken; the others that collectives take parts of are in memory before it */
    int left; /* nodes that may still be made */
} Mover;

static bool
is_whole_along(const CiNode *node, const Part *part, int axis)
{
    return part->sizes[axis] == node->sizes[axis] && ci_expr_equals_const(part->starts[axis], 0) &&
           ci_expr_equals_const(part->steps[axis], 1);
}

static bool
is_whole(const CiNode *node, const Part *part)
{
    int axis = 0;
    while (axis < node->rank && is_whole_along(node, part, axis))
        axis++;
    return axis == node->rank;
}

static Part
part_of_slice(const CiNode *slice)
{
    Part part;
    for (int k = 0; k < slice->rank; k++) {
        part.starts[k] = slice->starts[k];
        part.steps[k] = slice->steps[k];
        part.sizes[k] = slice->sizes[k];
    }
    return part;
}

static bool
is_by_elements(const CiNode *node)
{
    CiOpKind kind = ci_op_kind(node->op);
    return kind == CI_OPKIND_pointwise || kind == CI_OPKIND_math;
}

/* ---- moving a slice to operands ---- */

static CiNode *take(Mover *m, CiNode *node, const Part *part);

static CiNode *
take_slice(Mover *m, const CiNode *slice, const Part *part)
{
    Part inner;
    for (int k = 0; k < slice->rank; k++) {
        CiSym *sym = m->g->sym;
        inner.starts[k] = ci_expr_add(sym, slice->starts[k], ci_expr_mul(sym, slice->steps[k], part->starts[k]));
        inner.steps[k] = ci_expr_mul(sym, slice->steps[k], part->steps[k]);
        inner.sizes[k] = part->sizes[k];
    }
    return take(m, slice->args[0], &inner);
}

/* The operand of a concatenation that has the whole part, which then starts there; NULL if none is known to. */
static CiNode *
find_operand(const Mover *m, const CiNode *concat, Part *part)
{
    CiSym *sym = m->g->sym;
    int axis = concat->axes[0];
    const CiExpr *one = ci_expr_const(sym, 1), *start = part->starts[axis],
                 *last = ci_expr_add(sym, start, ci_expr_mul(sym, part->steps[axis], ci_expr_sub(sym, part->sizes[axis], one)));
    if (!ci_sym_known_le(sym, ci_expr_const(sym, 0), part->steps[axis]) || !ci_sym_known_le(sym, one, part->sizes[axis]))
        return NULL;
    const CiExpr *from = ci_expr_const(sym, 0);
    for (int k = 0; k < concat->nargs; k++) {
        const CiExpr *to = ci_expr_add(sym, from, concat->args[k]->sizes[axis]);
        if (ci_sym_known_le(sym, from, start) && ci_sym_known_le(sym, ci_expr_add(sym, last, one), to)) {
            part->starts[axis] = ci_expr_sub(sym, start, from);
            return concat->args[k];
        }
        from = to;
    }
    return NULL;
}

static CiNode *
take_concat(Mover *m, CiNode *concat, const Part *part)
{
    int axis = concat->axes[0];
    Part inner = *part;
    CiNode **args = CI_NEW_ARRAY(m->g->ctx, CiNode *, concat->nargs);
    CiNode *operand = find_operand(m, concat, &inner);
    if (operand)
        return take(m, operand, &inner);
    if (!is_whole_along(concat, part, axis))
        return ci_graph_slice(m->g, concat, part->starts, part->steps, part->sizes, concat->loc);
    for (int k = 0; k < concat->nargs; k++) {
        inner.sizes[axis] = concat->args[k]->sizes[axis];
        args[k] = take(m, concat->args[k], &inner);
    }
    return ci_graph_concat(m->g, concat->nargs, args, axis, concat->loc);
}

/* Operands are broadcast: an axis may be missing in one, or have one element. */
static CiNode *
take_elements(Mover *m, const CiNode *node, const Part *part)
{
    const CiExpr *zero = ci_expr_const(m->g->sym, 0), *one = ci_expr_const(m->g->sym, 1);
    CiNode like = *node;
    like.args = CI_NEW_ARRAY(m->g->ctx, CiNode *, node->nargs);
    for (int a = 0; a < node->nargs; a++) {
        CiNode *arg = node->args[a];
        int shift = node->rank - arg->rank;
        Part inner;
        for (int k = 0; k < arg->rank; k++) {
            bool is_repeated = arg->sizes[k] != node->sizes[k + shift];
            inner.starts[k] = is_repeated ? zero : part->starts[k + shift];
            inner.steps[k] = is_repeated ? one : part->steps[k + shift];
            inner.sizes[k] = is_repeated ? arg->sizes[k] : part->sizes[k + shift];
        }
        like.args[a] = take(m, arg, &inner);
    }
    return ci_graph_add(m->g, &like);
}

/* The part of a node, computed from parts of its operands where that is possible. */
static CiNode *
take(Mover *m, CiNode *node, const Part *part)
{
    if (is_whole(node, part) || m->left <= 0)
        return node;
    m->left--;
    if (is_by_elements(node) && (node == m->array || !node->mark))
        return take_elements(m, node, part);
    if (node->op == CI_OP_slice)
        return take_slice(m, node, part);
    if (node->op == CI_OP_concat)
        return take_concat(m, node, part);
    return ci_graph_slice(m->g, node, part->starts, part->steps, part->sizes, node->loc);
}

/* ---- collectives ---- */

/* The array, computed by elements in the same block, of which a collective takes a small part; else NULL. */
static CiNode *
array_of(const Mover *m, const CiNode *node)
{
    const CiNode *slice = node->nargs == 1 ? node->args[0] : NULL;
    if (!ci_op_has(node->op, CI_FACT_collective) || slice->op != CI_OP_slice || !is_by_elements(slice->args[0]))
        return NULL;
    for (int k = 0; k < slice->rank; k++) {
        const CiExpr *several = ci_expr_mul(m->g->sym, slice->sizes[k], ci_expr_const(m->g->sym, LEAST_RATIO));
        if (ci_sym_known_le(m->g->sym, several, slice->args[0]->sizes[k]))
            return slice->args[0];
    }
    return NULL;
}

/* Notes in the marks of arrays which collectives take parts of them. */
static void
note_senders(Mover *m, const CiBlock *block)
{
    for (int k = 0; k < block->nnodes; k++)
        block->nodes[k]->mark = NULL;
    for (int k = 0; k < block->nnodes; k++) {
        CiNode *array = array_of(m, block->nodes[k]);
        if (!array)
            continue;
        Sender *sender = CI_NEW(m->g->ctx, Sender);
        *sender = (Sender){block->nodes[k], array->mark};
        array->mark = sender;
    }
}

/* ---- collectives at the head of an iteration ---- */

static void
replace_uses(CiBlock *block, const CiNode *from, CiNode *to)
{
    for (int k = 0; k < block->nnodes; k++) {
        const CiNode *node = block->nodes[k];
        for (int a = 0; a < node->nargs; a++)
            if (node->args[a] == from)
                node->args[a] = to;
        for (int b = 0; b < node->nblocks; b++)
            replace_uses(node->blocks[b], from, to);
    }
    for (int k = 0; k < block->nresults; k++)
        if (block->results[k] == from)
            block->results[k] = to;
}

/* A collective of the same part of another array. */
static CiNode *
repeat(CiGraph *g, const CiNode *collective, CiNode *array)
{
    const CiNode *slice = collective->args[0];
    CiNode like = *collective, *args[1] = {ci_graph_slice(g, array, slice->starts, slice->steps, slice->sizes, slice->loc)};
    like.args = args;
    return ci_graph_add(g, &like);
}

/* True if it takes a part of an array that iterations pass on, and is the same in all of them. */
static bool
is_at_head(const CiNode *node, const CiExpr *induction)
{
    const CiNode *slice = node->nargs == 1 ? node->args[0] : NULL;
    if (!ci_op_has(node->op, CI_FACT_collective) || slice->op != CI_OP_slice || slice->args[0]->op != CI_OP_param ||
        slice->args[0]->index == 0)
        return false;
    for (int k = 0; k < slice->rank; k++)
        if (ci_expr_depends_on(slice->starts[k], induction) || ci_expr_depends_on(slice->sizes[k], induction))
            return false;
    return true;
}

/* Moves the first collectives of a loop's body to its end; the loop gets their results as further values. */
static void
rotate(Mover *m, CiNode *loop)
{
    CiGraph *g = m->g;
    CiBlock *body = loop->blocks[0], *outer = g->at;
    int count = body->nnodes, kept = 0;
    bool is_head = true;
    for (int k = 0; k < count; k++) {
        CiNode *node = body->nodes[k];
        is_head = is_head && (!ci_op_has(node->op, CI_FACT_effect) || is_at_head(node, loop->starts[1]));
        if (!is_head || !ci_op_has(node->op, CI_FACT_collective)) {
            body->nodes[kept++] = node;
            continue;
        }
        int carried = node->args[0]->args[0]->index - 1; /* the first parameter is the number of the iteration */
        CiNode **args = CI_NEW_ARRAY(g->ctx, CiNode *, loop->nargs + 1);
        for (int a = 0; a < loop->nargs; a++)
            args[a] = loop->args[a];
        args[loop->nargs++] = repeat(g, node, loop->args[carried]);
        loop->args = args;
        CiNode *param = ci_graph_param(g, body, node->dtype, node->kind, node->rank, node->sizes, node->order);
        replace_uses(body, node, param);
        ci_graph_enter(g, body);
        ci_graph_block_result(g, body, repeat(g, node, body->results[carried]));
        ci_graph_enter(g, outer);
    }
    for (int k = count; k < body->nnodes; k++)
        body->nodes[kept++] = body->nodes[k];
    body->nnodes = kept;
}

/* Appends results of the loop for values that it has got; last: the last one that there was. */
static void
add_results(CiGraph *g, const CiNode *last)
{
    CiNode like = *last;
    for (int k = last->index + 1; k < last->args[0]->blocks[0]->nresults; k++) {
        like.index = k;
        ci_graph_add(g, &like);
    }
}

static void
walk(Mover *m, CiBlock *block)
{
    CiGraph *g = m->g;
    CiBlock *before = ci_graph_enter(g, block);
    CiNode **nodes = block->nodes;
    int count = block->nnodes;
    note_senders(m, block);
    block->nodes = NULL;
    block->nnodes = block->capnodes = 0;
    for (int k = 0; k < count; k++) {
        for (const Sender *s = nodes[k]->mark; s; s = s->next) {
            Part part = part_of_slice(s->collective->args[0]);
            m->array = nodes[k];
            m->left = MAX_NODES;
            CiNode *made = take(m, nodes[k], &part);
            if (m->left > 0)
                s->collective->args[0] = made;
        }
        if (nodes[k]->op == CI_OP_for)
            rotate(m, nodes[k]);
        CI_PUSH(g->ctx, block->nodes, block->nnodes, block->capnodes, nodes[k]);
        bool is_last = k + 1 == count || nodes[k + 1]->op != CI_OP_result;
        if (nodes[k]->op == CI_OP_result && is_last && nodes[k]->args[0]->op == CI_OP_for)
            add_results(g, nodes[k]);
        for (int b = 0; b < nodes[k]->nblocks; b++)
            walk(m, nodes[k]->blocks[b]);
    }
    ci_graph_enter(g, before);
}

void
ci_pass_send_early(CiGraph *g)
{
    Mover m = {.g = g};
    walk(&m, g->body);
}
