/* Kernels -> what the interpreter runs. Everything needed is copied, so that the compilation's
 * memory may go. */
#include "device/interp/program.h"

#include "device/emit.h"

#include <string.h>

typedef struct Compiler {
    CiContext *ctx; /* the executable's */
    const CiKernels *kernels;
    const CiKernel *kernel;
    const CiInterpMath *math;
    CiInterpKernel *out;
    const CiNest *nest;
    CiBuffer **temps;
    int ntemps, captemps;
    const CiExpr **vars; /* of the tree's loops */
    int nvars, capvars;
    int widest; /* most axes of a nest */
} Compiler;

/* ---- formulas ---- */

static int
find_slot(Compiler *c, const CiExpr *symbol)
{
    for (int k = 0; k < c->kernel->nsize_args; k++)
        if (c->kernel->size_args[k] == symbol)
            return k;
    for (int k = 0; k < c->nvars; k++)
        if (c->vars[k] == symbol)
            return c->kernel->nsize_args + k;
    for (int k = 0; c->nest && k < c->nest->naxes; k++)
        if (c->nest->axes[k].var == symbol)
            return c->kernel->nsize_args + c->nvars + k;
    for (int k = 0; c->nest && k < c->nest->body.nops; k++) {
        const CiScalar *op = &c->nest->body.ops[k];
        if ((op->op == CI_OP_bind || op->op == CI_OP_pack) && op->index == symbol)
            return c->kernel->nsize_args + c->nvars + c->nest->naxes + k;
    }
    return -1;
}

static CiFormula
make_formula(Compiler *c, const CiExpr *e)
{
    CiFormula f = {.kind = e->kind, .value = e->value, .nargs = e->nargs};
    int slot = find_slot(c, e);
    if (slot >= 0)
        return (CiFormula){.kind = CI_EXPR_symbol, .slot = slot};
    if (e->kind == CI_EXPR_symbol)
        ci_fail(c->ctx, CI_ERR_INTERNAL, "%s is unknown in kernel %s", e->name, c->kernel->name);
    CiFormula *args = CI_NEW_ARRAY(c->ctx, CiFormula, e->nargs + 1);
    int64_t *coefs = CI_NEW_ARRAY(c->ctx, int64_t, e->nargs + 1);
    for (int k = 0; k < e->nargs; k++) {
        args[k] = make_formula(c, e->args[k]);
        coefs[k] = e->kind == CI_EXPR_linear ? e->coefs[k] : 0;
    }
    f.args = args;
    f.coefs = coefs;
    return f;
}

/* Symbols that data gives differ from lane to lane; the count of packed values is one of them. */
static void
find_binds(Compiler *c, const CiExpr *e, CiInterpIndex *index)
{
    for (int k = 0; k < c->nest->body.nops; k++) {
        const CiScalar *op = &c->nest->body.ops[k];
        if (op->op != CI_OP_bind || !ci_expr_depends_on(e, op->index))
            continue;
        if (index->nbinds == CI_MAX_OPERANDS)
            ci_fail(c->ctx, CI_ERR_INTERNAL, "an index depends on more than %d others",
                    CI_MAX_OPERANDS);
        index->slots[index->nbinds] = find_slot(c, op->index);
        index->limits[index->nbinds] = make_formula(c, op->index->limit);
        index->binds[index->nbinds++] = k;
    }
}

static CiInterpIndex
make_index(Compiler *c, const CiExpr *e, const CiExpr *lane_var)
{
    CiSym *sym = c->kernels->loops->sym;
    const CiExpr *coef = ci_expr_const(sym, 0), *rest = e;
    CiInterpIndex index = {0};
    find_binds(c, e, &index);
    index.is_linear =
        !index.nbinds && (!lane_var || ci_expr_split_linear(sym, e, lane_var, &coef, &rest));
    if (index.is_linear) {
        index.base = make_formula(c, rest);
        index.stride = make_formula(c, coef);
    } else {
        index.whole = make_formula(c, e);
    }
    return index;
}

/* ---- memory ---- */

/* Memories: buffers the kernel takes, then the ones made inside it. */
static int
find_memory(Compiler *c, CiBuffer *buffer)
{
    int position = ci_kernel_buffer_position(c->kernel, buffer);
    if (position >= 0)
        return position;
    for (int k = 0; k < c->ntemps; k++)
        if (c->temps[k] == buffer)
            return c->kernel->nbuffers + k;
    CI_PUSH(c->ctx, c->temps, c->ntemps, c->captemps, buffer);
    return c->kernel->nbuffers + c->ntemps - 1;
}

/* ---- bodies ---- */

static void
fill_const(CiInterpScalar *to, const CiScalar *op)
{
    ci_const_store(op->dtype == CI_DTYPE_f16 ? CI_DTYPE_f32 : op->dtype, op->value, to->value);
}

static void
fill_function(Compiler *c, CiInterpScalar *to, const CiScalar *op, CiDtype operand)
{
    to->kind = CI_INTERP_op;
    bool moves = op->op == CI_OP_copy || op->op == CI_OP_bind || op->op == CI_OP_place ||
                 op->op == CI_OP_pack;
    if (op->op == CI_OP_cast || moves)
        to->op = ci_interp_cast(operand, op->dtype);
    else if (op->op == CI_OP_where)
        to->op = ci_interp_where(op->dtype);
    else
        to->op = ci_interp_rows(operand)->ops[op->op];
    if (!to->op)
        ci_fail(c->ctx, CI_ERR_INTERNAL, "%s", ci_op_why_not(op->op, operand));
}

static CiInterpScalar
make_scalar(Compiler *c, const CiScalar *op, CiDtype operand, const CiExpr *lane_var)
{
    CiInterpScalar to = {.dtype = op->dtype, .nargs = op->nargs};
    memcpy(to.args, op->args, sizeof to.args);
    if (op->op == CI_OP_load && op->buffer->kind == CI_BUFFER_scalar) {
        to.kind = CI_INTERP_slot;
        to.memory = ci_emit_scalar_slot(c->kernels->loops, op->buffer);
    } else if (op->op == CI_OP_load) {
        to.kind = CI_INTERP_load;
        to.memory = find_memory(c, op->buffer);
        to.index = make_index(c, op->index, lane_var);
    } else if (op->op == CI_OP_index) {
        to.kind = CI_INTERP_index;
        to.index = make_index(c, op->index, lane_var);
    } else if (op->op == CI_OP_const) {
        to.kind = CI_INTERP_const;
        fill_const(&to, op);
    } else if (ci_op_kind(op->op) == CI_OPKIND_math) {
        to.kind = CI_INTERP_math;
        to.routine = ci_interp_math_find(c->math, op->op, op->dtype);
        to.rounds = op->dtype == CI_DTYPE_f16;
    } else {
        fill_function(c, &to, op, operand);
    }
    return to;
}

/* ---- nests ---- */

static CiInterpShape
choose_shape(const CiNest *nest, bool is_ordered)
{
    if (nest->fold == CI_OP_none)
        return CI_SHAPE_point;
    if (ci_nest_is_scan(nest))
        return CI_SHAPE_scan;
    if (is_ordered ? nest->order == CI_FOLD_lanes
                   : nest->axes[nest->naxes - 1].extent->high > CI_INTERP_BLOCK)
        return CI_SHAPE_inner;
    return CI_SHAPE_outer;
}

static void
fill_fold(Compiler *c, CiInterpNest *to, const CiNest *nest, CiDtype value)
{
    CiDtype dtype = nest->fold == CI_OP_none ? value : ci_fold_dtype(nest, value);
    bool is_scan = ci_nest_is_scan(nest);
    to->needs_truth = nest->fold != CI_OP_none && dtype != value;
    to->dtype = is_scan || nest->fold == CI_OP_none ? dtype : ci_dtype_compute(dtype);
    to->is_arg = nest->fold != CI_OP_none && ci_op_kind(nest->fold) == CI_OPKIND_argreduce;
    to->is_ordered = nest->fold != CI_OP_none && !ci_op_is_order_free(nest->fold, to->dtype);
    to->shape = choose_shape(nest, to->is_ordered);
    if (nest->fold != CI_OP_none && !to->is_arg)
        to->combine = ci_interp_rows(to->dtype)->ops[ci_op_combine(nest->fold)];
    if (nest->fold != CI_OP_none && !to->is_arg && !to->combine)
        ci_fail(c->ctx, CI_ERR_INTERNAL, "%s", ci_op_why_not(nest->fold, dtype));
    to->store_cast = ci_interp_cast(to->is_arg ? CI_DTYPE_i64 : to->dtype, nest->target->dtype);
}

static void
fill_indirect(Compiler *c, CiInterpNest *to, const CiNest *nest)
{
    const CiScalar *result = &nest->body.ops[nest->body.result];
    to->pack_slot = -1;
    if (nest->is_combined)
        to->placed = ci_interp_rows(nest->target->dtype)->ops[nest->combine];
    if (result->op != CI_OP_pack)
        return;
    to->pack_slot = find_slot(c, result->index);
    to->pack_value = result->args[0];
    to->pack_mask = result->args[1];
    to->pack_limit = make_formula(c, result->index->limit);
}

static void
make_nest(Compiler *c, CiInterpNest *to, const CiNest *nest)
{
    c->nest = nest;
    const CiBody *body = &nest->body;
    to->naxes = nest->naxes;
    to->npoint = nest->npoint;
    to->first_slot = c->kernel->nsize_args + c->nvars;
    to->fold = nest->fold;
    to->order = nest->order;
    to->target_dtype = nest->target->dtype;
    fill_fold(c, to, nest, body->ops[body->result].dtype);
    to->lane_axis = to->shape == CI_SHAPE_outer ? nest->npoint - 1 : nest->naxes - 1;
    const CiExpr *lane_var = to->lane_axis >= 0 ? nest->axes[to->lane_axis].var : NULL;
    to->extents = CI_NEW_ARRAY(c->ctx, CiFormula, nest->naxes + 1);
    for (int k = 0; k < nest->naxes; k++)
        to->extents[k] = make_formula(c, nest->axes[k].extent);
    to->ops = CI_NEW_ARRAY(c->ctx, CiInterpScalar, body->nops + 1);
    to->nops = body->nops;
    to->result = body->result;
    for (int k = 0; k < body->nops; k++) {
        const CiScalar *op = &body->ops[k];
        CiDtype operand = op->nargs ? body->ops[op->args[op->op == CI_OP_where]].dtype : op->dtype;
        to->ops[k] = make_scalar(c, op, operand, lane_var);
    }
    to->target = find_memory(c, nest->target);
    to->store = make_index(c, nest->store, lane_var);
    fill_indirect(c, to, nest);
    c->nest = NULL;
    if (body->nops > c->out->max_ops)
        c->out->max_ops = body->nops;
    if (nest->naxes + body->nops > c->widest) /* an operation may make a symbol */
        c->widest = nest->naxes + body->nops;
}

static CiFormula
bytes_of(Compiler *c, const CiBuffer *buffer)
{
    CiSym *sym = c->kernels->loops->sym;
    const CiExpr *bytes = ci_expr_const(sym, ci_dtype_size(buffer->dtype));
    for (int k = 0; k < buffer->rank; k++)
        bytes = ci_expr_mul(sym, bytes, buffer->sizes[k]);
    return make_formula(c, bytes);
}

/* ---- trees ---- */

static void
find_vars(Compiler *c, const CiLoopTree *tree)
{
    for (int k = 0; k < tree->count; k++) {
        const CiTreeNode *node = &tree->nodes[k];
        if (node->kind == CI_TREE_for)
            CI_PUSH(c->ctx, c->vars, c->nvars, c->capvars, node->region->var);
        if (node->check && node->check->symbol)
            CI_PUSH(c->ctx, c->vars, c->nvars, c->capvars, node->check->symbol);
        find_vars(c, &node->body);
        find_vars(c, &node->other);
    }
}

static CiInterpNode
make_leaf(Compiler *c, const CiKernel *kernel)
{
    CiInterpNode node = {.kind = CI_TREE_leaf};
    int count = 0;
    for (int t = 0; t < kernel->nstages; t++)
        count += kernel->stages[t].nnests;
    node.nests = CI_NEW_ARRAY(c->ctx, CiInterpNest, count + 1);
    for (int t = 0; t < kernel->nstages; t++)
        for (int n = 0; n < kernel->stages[t].nnests; n++)
            make_nest(c, &node.nests[node.nnests++], kernel->stages[t].nests[n]);
    return node;
}

static void
add_swapped(Compiler *c, CiInterpKernel *out, CiBuffer *buffer)
{
    int memory = find_memory(c, buffer), count = out->nswapped;
    for (int k = 0; k < count; k++)
        if (out->swapped[k] == memory)
            return;
    out->swapped[out->nswapped] = memory;
    out->swapped_bytes[out->nswapped++] = bytes_of(c, buffer);
}

static CiInterpNode
make_check(Compiler *c, const CiTreeNode *from)
{
    const CiCheckItem *check = from->check;
    CiInterpNode node = {.kind = from->kind, .number = from->number};
    node.condition = find_memory(c, check->buffer);
    if (check->symbol) {
        node.is_symbol = true;
        node.slot = find_slot(c, check->symbol);
        node.low = check->symbol->low;
        node.has_limit = check->limit->low != CI_INFINITY;
        node.extent = make_formula(c, check->limit);
    }
    return node;
}

static CiInterpNodes make_nodes(Compiler *c, const CiLoopTree *tree);

static CiInterpNode
make_region(Compiler *c, const CiTreeNode *from)
{
    const CiRegion *region = from->region;
    CiInterpNode node = {.kind = from->kind, .nswaps = region->nswaps};
    if (from->kind == CI_TREE_for) {
        node.slot = find_slot(c, region->var);
        node.extent = make_formula(c, region->extent);
    } else {
        node.condition = find_memory(c, region->condition);
    }
    node.swaps = CI_NEW_ARRAY(c->ctx, int, region->nswaps + 1);
    for (int k = 0; k < region->nswaps; k++) {
        node.swaps[k] = find_memory(c, region->swaps[k]);
        add_swapped(c, c->out, region->swaps[k]);
    }
    node.body = make_nodes(c, &from->body);
    node.other = make_nodes(c, &from->other);
    return node;
}

static CiInterpNodes
make_nodes(Compiler *c, const CiLoopTree *tree)
{
    CiInterpNodes list = {0};
    for (int k = 0; k < tree->count; k++) {
        const CiTreeNode *from = &tree->nodes[k];
        CiInterpNode node = from->kind == CI_TREE_leaf    ? make_leaf(c, from->leaf)
                            : from->kind == CI_TREE_check ? make_check(c, from)
                                                          : make_region(c, from);
        CI_PUSH(c->ctx, list.nodes, list.count, list.capacity, node);
    }
    return list;
}

static void
make_kernel(Compiler *c, CiInterpKernel *out, const CiKernel *kernel)
{
    const CiLoopTree *tree = ci_kernel_tree(kernel);
    c->kernel = kernel;
    c->out = out;
    c->ntemps = c->nvars = c->widest = 0;
    out->swapped = CI_NEW_ARRAY(c->ctx, int, kernel->nbuffers + 1);
    out->swapped_bytes = CI_NEW_ARRAY(c->ctx, CiFormula, kernel->nbuffers + 1);
    if (tree && kernel->nouter) {
        CiRegion region = {.var = kernel->outer[0].var, .extent = kernel->outer[0].extent};
        CiTreeNode node = {.kind = CI_TREE_for, .region = &region, .body = *tree};
        const CiLoopTree whole = {&node, 1, 1};
        find_vars(c, &whole);
        out->nodes = make_nodes(c, &whole);
    } else if (tree) {
        find_vars(c, tree);
        out->nodes = make_nodes(c, tree);
    } else {
        CI_PUSH(c->ctx, out->nodes.nodes, out->nodes.count, out->nodes.capacity,
                make_leaf(c, kernel));
    }
    out->nsizes = kernel->nsize_args;
    out->nslots = kernel->nsize_args + c->nvars + c->widest;
    out->nbuffers = kernel->nbuffers;
    out->ntemps = c->ntemps;
    out->temp_bytes = CI_NEW_ARRAY(c->ctx, CiFormula, c->ntemps + 1);
    for (int k = 0; k < c->ntemps; k++)
        out->temp_bytes[k] = bytes_of(c, c->temps[k]);
}

static void
make_kernels(Compiler *c, CiInterpExecutable *exe, const CiKernels *kernels)
{
    for (int k = 0; k < kernels->nkernels; k++) {
        const CiKernel *kernel = kernels->kernels[k];
        for (int side = 0; side < 2 && kernel->region; side++)
            if (kernel->inner[side])
                make_kernels(c, exe, kernel->inner[side]);
        if (!ci_kernel_has_loops(kernel))
            continue;
        while (kernel->id >= exe->nkernels) {
            int capacity = exe->nkernels ? 2 * exe->nkernels : 8;
            exe->kernels =
                ci_grow(c->ctx, exe->kernels, sizeof *exe->kernels * (size_t)exe->nkernels,
                        sizeof *exe->kernels * (size_t)capacity);
            memset(exe->kernels + exe->nkernels, 0,
                   sizeof *exe->kernels * (size_t)(capacity - exe->nkernels));
            exe->nkernels = capacity;
        }
        c->kernels = kernels;
        make_kernel(c, &exe->kernels[kernel->id], kernel);
    }
}

void
ci_interp_compile(CiInterpExecutable *exe, const CiKernels *kernels)
{
    Compiler c = {.ctx = exe->ctx, .math = &exe->math};
    make_kernels(&c, exe, kernels);
}
