/* Kernels -> procs: what a kernel says with axes, stages and placements, as statements.
 *
 * A local of a kernel is one element of register memory, a row is scratch that begins at the outer
 * point's first element. The stages of a kernel follow each other inside its outer loops. */
#include "codegen/expand_private.h"

/* ---- kernels ---- */

static const CiScalar *
find_pack(const CiNest *nest)
{
    const CiScalar *op = &nest->body.ops[nest->body.result];
    return op->op == CI_OP_pack ? op : NULL;
}

/* The counters of compresses start at zero and count over all loops of a kernel. */
static void
open_packs(CiExpander *x, const CiKernel *leaf)
{
    CiNestAt at = CI_BEFORE_NESTS;
    for (const CiNest *nest; (nest = ci_kernel_next_nest(leaf, &at));) {
        if (!find_pack(nest))
            continue;
        CiMemory *cell = ci_build_alloc(&x->b, ci_build_name(&x->b, "count"), CI_DTYPE_i64, 1,
                                        CI_SPACE_register, ci_expand_number(x, 1));
        ci_build_store(&x->b, cell, ci_expand_number(x, 0),
                       ci_build_index(&x->b, ci_expand_number(x, 0)));
        ci_map_put(x->cells, CI_KEY(nest), cell);
    }
}

/* Stores zeros after the compressed elements, up to the count that was computed before: another
 * thread may have changed the mask since. Threads that compress concurrently may also have counted
 * more elements than the buffer has space for. */
static void
add_zeros(CiExpander *x, const CiNest *nest)
{
    CiMemory *cell = ci_map_find(x->cells, CI_KEY(nest)),
             *target = ci_expand_memory(x, nest->target);
    const CiExpr *symbol = find_pack(nest)->index, *zero = ci_expand_number(x, 0),
                 *capacity = ci_expr_extent(x->b.sym, symbol->limit);
    CiStmt *loop = ci_build_add(&x->b, CI_STMT_loop);
    CiStmts *outside = ci_build_enter(&x->b, &loop->body);
    const int counts[] = {ci_build_load(&x->b, cell, zero, 1),
                          ci_build_index(&x->b, capacity)};
    const CiExpr *at = ci_build_bind(
        &x->b, ci_build_let(&x->b, ci_type_of(CI_DTYPE_i64, 1), CI_OP_minimum, 2, counts),
        ci_expr_add(x->b.sym, capacity, ci_expand_number(x, 1)));
    ci_build_test(&x->b, CI_STMT_exit, CI_COMPARE_less_equal, capacity, at);
    int nothing = ci_build_const(&x->b, ci_type_of(target->dtype, 1), (CiConst){0});
    ci_build_store(&x->b, target, ci_expr_substitute(x->b.sym, nest->store, 1, &symbol, &at),
                   nothing);
    ci_build_store(&x->b, cell, zero,
                   ci_build_index(&x->b, ci_expr_add(x->b.sym, at, ci_expand_number(x, 1))));
    ci_build_leave(&x->b, outside);
}

/* A compress that was not counted beforehand stores its count; its buffer has space for all
 * elements. */
static void
close_pack(CiExpander *x, const CiNest *nest)
{
    const CiExpr *zero = ci_expand_number(x, 0);
    if (!ci_nest_count(nest)) {
        add_zeros(x, nest);
        return;
    }
    ci_build_store(&x->b, ci_expand_memory(x, ci_nest_count(nest)), zero,
                   ci_build_load(&x->b, ci_map_find(x->cells, CI_KEY(nest)), zero, 1));
}

static void
close_packs(CiExpander *x, const CiStage *stage)
{
    for (int n = 0; n < stage->nnests; n++)
        if (find_pack(stage->nests[n]))
            close_pack(x, stage->nests[n]);
}

/* The outer loops of a kernel or a leaf, and its stages inside. */
static void
add_loops(CiExpander *x, const CiKernel *leaf)
{
    CiStmts *outside = x->b.to;
    const CiExpander around = *x;
    bool is_leaf = leaf != x->kernel;
    x->leaf = leaf;
    if (is_leaf)
        x->labels = ci_labels_of_leaf(x->b.ctx, x->b.sym, x->b.machine, leaf);
    open_packs(x, leaf);
    for (int k = 0; k < leaf->nouter; k++) {
        bool is_in_lanes = x->labels.has_lanes && k == leaf->nouter - 1;
        CiStmt *loop = ci_build_loop(&x->b, leaf->outer[k].var, leaf->outer[k].extent,
                                     is_in_lanes ? CI_RUN_vector : is_leaf ? CI_RUN_serial : CI_RUN_parallel);
        ci_build_enter(&x->b, &loop->body);
    }
    ci_expand_placements(x, leaf);
    for (int k = 0; k < leaf->nstages; k++) {
        ci_expand_stage(x, &leaf->stages[k]);
        if (leaf->nouter == 0) /* the next one may read what is packed */
            close_packs(x, &leaf->stages[k]);
    }
    ci_build_leave(&x->b, outside);
    for (int k = 0; k < leaf->nstages && leaf->nouter > 0; k++)
        close_packs(x, &leaf->stages[k]);
    x->leaf = around.leaf;
    x->labels = around.labels;
}

/* ---- trees ---- */

static void add_tree(CiExpander *x, const CiKernels *tree);

static void
stop_if(CiExpander *x, int failed, int fault)
{
    ci_build_compare(&x->b, CI_STMT_stop, CI_COMPARE_is, failed)->number = fault;
}

static int
compare(CiExpander *x, CiOp op, int left, int right)
{
    const int args[] = {left, right};
    return ci_build_let(&x->b, ci_type_of(CI_DTYPE_bool, 1), op, 2, args);
}

/* Binds a symbol to its value for the rest of the block, after a check that the value is in the
 * symbol's range. */
static void
add_check(CiExpander *x, const CiKernel *kernel)
{
    const CiCheckItem *check = kernel->check;
    int value = ci_build_load(&x->b, ci_expand_memory(x, check->buffer), ci_expand_number(x, 0), 1);
    if (!check->symbol) {
        ci_build_compare(&x->b, CI_STMT_stop, CI_COMPARE_is_not, value)->number = kernel->id;
        return;
    }
    if (check->symbol->low != CI_MINUS_INFINITY) {
        int low = ci_build_index(&x->b, ci_expand_number(x, check->symbol->low));
        stop_if(x, compare(x, CI_OP_less, value, low), kernel->id);
    }
    if (check->limit->low != CI_INFINITY) {
        int limit = ci_build_index(&x->b, check->limit);
        stop_if(x, compare(x, CI_OP_greater_equal, value, limit), kernel->id);
    }
    ci_build_let(&x->b, ci_type_of(CI_DTYPE_i64, 1), CI_OP_bind, 1, &value);
    x->b.to->last->expr = check->symbol;
    x->b.to->last->limit = check->limit->low != CI_INFINITY ? check->limit : NULL;
}

static void
add_swaps(CiExpander *x, const CiRegion *region)
{
    for (int k = 0; k < region->nswaps; k += 2) {
        CiStmt *swap = ci_build_add(&x->b, CI_STMT_swap);
        swap->memory = ci_expand_memory(x, region->swaps[k]);
        swap->partner = ci_expand_memory(x, region->swaps[k + 1]);
    }
}

static int
load_condition(CiExpander *x, const CiRegion *region)
{
    return ci_build_load(&x->b, ci_expand_memory(x, region->condition), ci_expand_number(x, 0), 1);
}

static void
add_if(CiExpander *x, const CiKernel *kernel)
{
    CiStmt *choice =
        ci_build_compare(&x->b, CI_STMT_if, CI_COMPARE_is, load_condition(x, kernel->region));
    CiStmts *outside = ci_build_enter(&x->b, &choice->body);
    add_tree(x, kernel->inner[0]);
    ci_build_enter(&x->b, &choice->other);
    add_tree(x, kernel->inner[1]);
    ci_build_leave(&x->b, outside);
}

static void
add_while(CiExpander *x, const CiKernel *kernel)
{
    CiStmt *loop = ci_build_add(&x->b, CI_STMT_loop);
    CiStmts *outside = ci_build_enter(&x->b, &loop->body);
    add_tree(x, kernel->inner[1]);
    ci_build_compare(&x->b, CI_STMT_exit, CI_COMPARE_is_not, load_condition(x, kernel->region));
    add_tree(x, kernel->inner[0]);
    add_swaps(x, kernel->region);
    ci_build_leave(&x->b, outside);
}

static void
add_for(CiExpander *x, const CiKernel *kernel)
{
    CiStmt *loop = ci_build_loop(&x->b, kernel->region->var, kernel->region->extent, CI_RUN_serial);
    loop->is_in_order = true;
    CiStmts *outside = ci_build_enter(&x->b, &loop->body);
    add_tree(x, kernel->inner[0]);
    add_swaps(x, kernel->region);
    ci_build_leave(&x->b, outside);
}

static void
add_tree(CiExpander *x, const CiKernels *tree)
{
    for (int k = 0; tree && k < tree->nkernels; k++) {
        const CiKernel *kernel = tree->kernels[k];
        if (ci_kernel_has_loops(kernel))
            add_loops(x, kernel);
        else if (kernel->check)
            add_check(x, kernel);
        else if (kernel->region->kind == CI_ITEM_for)
            add_for(x, kernel);
        else if (kernel->region->kind == CI_ITEM_while)
            add_while(x, kernel);
        else
            add_if(x, kernel);
    }
}

/* The iterations of a parallel tree's outer loops are its work units. */
static void
add_tree_kernel(CiExpander *x, const CiKernels *tree)
{
    CiStmts *outside = x->b.to;
    ci_expand_open_scalars(x);
    for (int k = 0; k < x->kernel->nouter; k++) {
        const CiKernelAxis *axis = &x->kernel->outer[k];
        CiStmt *loop = ci_build_loop(&x->b, axis->var, axis->extent, CI_RUN_parallel);
        ci_build_enter(&x->b, &loop->body);
    }
    add_tree(x, tree);
    ci_build_leave(&x->b, outside);
    ci_expand_close_scalars(x);
}

static CiProcHead
head_of(CiExpander *x, const CiKernel *kernel)
{
    CiProcHead head = {.is_tree = ci_kernel_tree(kernel) != NULL,
                       .kind = kernel->kind,
                       .axes = CI_NEW_ARRAY(x->b.ctx, CiPointAxis, kernel->nouter + 1),
                       .naxes = kernel->nouter,
                       .has_lanes = x->labels.has_lanes,
                       .chunks = x->labels.chunks,
                       .chunk = x->labels.chunk,
                       .is_chained = x->labels.is_chained,
                       .totals_first = x->labels.totals_first,
                       .unit_work = x->labels.unit_work,
                       .locs = kernel->locs,
                       .nlocs = kernel->nlocs};
    for (int k = 0; k < kernel->nouter; k++)
        head.axes[k] = (CiPointAxis){kernel->outer[k].var->name, x->labels.tiles[k]};
    ci_find_short_rows(x, &head);
    return head;
}

typedef struct Expansion {
    CiProcs *procs;
    const CiMachine *machine;
} Expansion;

static void
expand_kernel(void *arg, const CiKernel *kernel)
{
    const Expansion *expansion = arg;
    CiProcs *procs = expansion->procs;
    if (!ci_kernel_has_loops(kernel))
        return;
    CiProc *proc = ci_procs_add(procs, kernel->name);
    CiExpander x = {.b = ci_build_of(procs, proc, expansion->machine)};
    x.kernel = x.leaf = kernel;
    x.labels = ci_labels(procs->ctx, procs->sym, expansion->machine, kernel);
    proc->head = head_of(&x, kernel);
    x.memories = ci_map_new(procs->ctx);
    x.cells = ci_map_new(procs->ctx);
    ci_expand_params(&x);
    const CiKernels *tree = ci_kernel_tree(kernel);
    if (tree)
        add_tree_kernel(&x, tree);
    else
        add_loops(&x, kernel);
}

CiProcs *
ci_expand(const CiKernels *kernels)
{
    CiLoops *loops = kernels->loops;
    CiProcs *procs = ci_procs_new(loops->ctx, loops->sym, loops->name);
    Expansion expansion = {procs, kernels->machine};
    ci_kernels_visit(kernels, expand_kernel, &expansion);
    return procs;
}
