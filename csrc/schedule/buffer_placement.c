/* Places buffers: a value that one kernel computes and reads needs no memory. Then finds the pointers
 * and sizes that a kernel takes, which are those that its code has. */
#include "schedule/plan.h"

static void
add_reader(CiScheduler *s, const CiBuffer *buffer, int fusion)
{
    int *reader = &s->totals->readers[buffer->id];
    *reader = *reader == CI_NO_READER || *reader == fusion ? fusion : CI_SEVERAL_READERS;
}

static const CiExpr *
count_stored(CiScheduler *s, const CiNest *nest)
{
    const CiExpr *count = ci_expr_const(s->sym, 1);
    for (int k = 0; k < nest->naxes; k++) {
        if (nest->axes[k].kind != CI_AXIS_reduce)
            count = ci_expr_mul(s->sym, count, nest->axes[k].extent);
    }
    return count;
}

/* True if the kernel stores all of the buffer before this nest reads it. Otherwise, in a loop, the
 * read sees a value of an earlier iteration. */
static bool
is_made_before(CiScheduler *s, const CiFusion *fusion, int position, const CiBuffer *buffer)
{
    for (int n = 0; n < position; n++) {
        const CiNest *nest = fusion->nests[n].nest;
        if (nest->target == buffer && !ci_nest_is_indirect(nest) &&
            count_stored(s, nest) == ci_expr_product_of(s->sym, buffer->sizes, buffer->rank))
            return true;
    }
    return false;
}

static void
find_readers_of_fusion(CiScheduler *s, CiFusion *fusion)
{
    fusion->number = s->totals->nfusions++;
    for (int n = 0; n < fusion->nnests; n++) {
        for (int r = 0; r < fusion->nests[n].nreads; r++) {
            const CiBuffer *buffer = fusion->nests[n].reads[r];
            bool is_of_iteration = !s->is_in_loop || is_made_before(s, fusion, n, buffer);
            add_reader(s, buffer, is_of_iteration ? fusion->number : CI_SEVERAL_READERS);
        }
    }
    for (int k = 0; fusion->ext && k < fusion->ext->noperands; k++)
        s->totals->readers[fusion->ext->operands[k]->id] = CI_SEVERAL_READERS;
    if (fusion->check)
        s->totals->readers[fusion->check->buffer->id] = CI_SEVERAL_READERS;
    const CiRegion *region = fusion->region ? fusion->region->region : NULL;
    if (region && region->condition)
        s->totals->readers[region->condition->id] = CI_SEVERAL_READERS;
    for (int k = 0; region && k < region->nswaps; k++)
        s->totals->readers[region->swaps[k]->id] = CI_SEVERAL_READERS;
}

static void
find_readers_of_list(CiScheduler *s)
{
    for (int d = 0; d < s->nfusions; d++) {
        find_readers_of_fusion(s, &s->fusions[d]);
        for (int k = 0; k < 2; k++) {
            if (s->fusions[d].inner[k])
                find_readers_of_list(s->fusions[d].inner[k]);
        }
    }
}

void
ci_find_readers(CiScheduler *s)
{
    CiLoops *loops = s->loops;
    s->totals->readers = CI_NEW_ARRAY(s->ctx, int, loops->nbuffers + 1);
    for (int k = 0; k < loops->nbuffers; k++)
        s->totals->readers[k] = CI_NO_READER;
    find_readers_of_list(s);
    for (int k = 0; k < loops->nresults; k++)
        s->totals->readers[loops->results[k].buffer->id] = CI_SEVERAL_READERS;
}

/* The part of an index that depends on nothing outside, and in *outer the rest. */
static bool
split_outer(CiSym *sym, const CiKernel *kernel, const CiExpr *index, const CiExpr **outer,
            const CiExpr **inner)
{
    const CiExpr *coef;
    *outer = ci_expr_const(sym, 0);
    *inner = index;
    for (int k = 0; k < kernel->nouter; k++) {
        if (!ci_expr_split_linear(sym, *inner, kernel->outer[k].var, &coef, inner))
            return false;
        *outer = ci_expr_add(sym, *outer, ci_expr_mul(sym, coef, kernel->outer[k].var));
    }
    return true;
}

/* The elements of a buffer that a kernel accesses. */
typedef struct Reach {
    const CiExpr *outer; /* common to all accesses */
    int64_t low, high;   /* elements within the outer point */
    const CiExpr *most;  /* the highest of them in terms of sizes; NULL: not known */
    bool is_one_element; /* always the same one */
    bool is_same_loop;   /* read only in the making stage, at the index of the store */
} Reach;

/* The highest value of an index in terms of sizes that a launch knows, or NULL. */
static const CiExpr *
most_of(CiSym *sym, const CiExpr *e)
{
    const CiExpr *coef, *rest, *one = ci_expr_const(sym, 1);
    for (int k = 0; k < e->nsymbols;) {
        const CiExpr *symbol = e->symbols[k];
        if (symbol->symbol_kind == CI_SYMBOL_size || symbol->symbol_kind == CI_SYMBOL_argument) {
            k++;
            continue;
        }
        if (symbol->symbol_kind != CI_SYMBOL_index || !symbol->limit ||
            !ci_expr_split_linear(sym, e, symbol, &coef, &rest) || !ci_expr_is_const(coef, NULL) ||
            coef->value < 0)
            return NULL;
        e = ci_expr_add(sym, rest, ci_expr_mul(sym, coef, ci_expr_sub(sym, symbol->limit, one)));
        k = 0;
    }
    return e;
}

static bool
add_access(CiSym *sym, const CiKernel *kernel, const CiExpr *index, Reach *reach)
{
    const CiExpr *outer, *inner;
    if (!split_outer(sym, kernel, index, &outer, &inner) ||
        (reach->outer && reach->outer != outer))
        return false;
    reach->low = !reach->outer || inner->low < reach->low ? inner->low : reach->low;
    reach->high = !reach->outer || inner->high > reach->high ? inner->high : reach->high;
    const CiExpr *most = most_of(sym, inner);
    if (reach->outer)
        most = most && reach->most ? ci_expr_max(sym, most, reach->most) : NULL;
    reach->most = most;
    reach->outer = outer;
    reach->is_one_element = reach->low == reach->high;
    return true;
}

static bool
find_accesses(CiSym *sym, const CiKernel *kernel, int maker_stage, const CiNest *maker,
              Reach *reach)
{
    *reach = (Reach){.is_same_loop = maker->fold == CI_OP_none ||
                                         ci_op_kind(maker->fold) == CI_OPKIND_scan};
    CiNestAt at = CI_BEFORE_NESTS;
    for (const CiNest *nest; (nest = ci_kernel_next_nest(kernel, &at));) {
        for (CiNestAccess one = {0}; ci_nest_next_access(nest, &one);) {
            if (one.buffer != maker->target)
                continue;
            if (!add_access(sym, kernel, one.index, reach))
                return false;
            reach->is_same_loop &= one.load ? at.stage == maker_stage && one.index == maker->store : nest == maker;
        }
    }
    return true;
}

/* A row of a size that only a launch knows is no larger than what it saves: the buffer has such a
 * row for each outer point. */
static bool
may_place_row(CiSym *sym, const CiMachine *machine, const CiLabels *labels, const CiKernel *kernel)
{
    const CiExpr *all = ci_labels_rows_end(sym, labels, kernel, kernel->nplacements);
    if (ci_template_is_whole(kernel)) /* its loops have no rows */
        return true;
    if (ci_expr_is_const(all, NULL))
        return all->value <= machine->row_bytes;
    return machine->has_rows_of_any_size && kernel->nouter > 0;
}

/* A kernel whose buffers are placed, and how the machine runs it. */
typedef struct Placer {
    CiContext *ctx;
    CiSym *sym;
    const CiMachine *machine;
    CiKernel *kernel;
    const CiLabels *labels;
} Placer;

static bool
place_row(Placer *p, const Reach *reach, CiBuffer *buffer)
{
    if (reach->low == CI_MINUS_INFINITY || !reach->most)
        return false;
    const CiExpr *low = ci_expr_const(p->sym, reach->low);
    CiPlacement row = {.buffer = buffer, .stored = CI_STORED_row, .row_base = ci_expr_add(p->sym, reach->outer, low)};
    row.row_size = ci_expr_add(p->sym, ci_expr_sub(p->sym, reach->most, low), ci_expr_const(p->sym, 1));
    CI_PUSH(p->ctx, p->kernel->placements, p->kernel->nplacements, p->kernel->capplacements, row);
    bool is_placed = may_place_row(p->sym, p->machine, p->labels, p->kernel);
    p->kernel->nplacements -= !is_placed;
    return is_placed;
}

/* The maker's stage, or -1. */
static int
find_maker(const CiKernel *kernel, const CiBuffer *buffer, const CiNest **maker)
{
    CiNestAt at = CI_BEFORE_NESTS;
    for (const CiNest *nest; (nest = ci_kernel_next_nest(kernel, &at));)
        if (nest->target == buffer) {
            *maker = nest;
            return at.stage;
        }
    return -1;
}

/* Places a row whose size is bounded by the ranges of sizes; false if it is unbounded or too
 * large. */
static bool
place_bounded_row(Placer *p, CiBuffer *buffer)
{
    const CiNest *maker = NULL;
    Reach reach;
    int stage = find_maker(p->kernel, buffer, &maker);
    if (stage < 0 || !find_accesses(p->sym, p->kernel, stage, maker, &reach) || reach.is_same_loop ||
        reach.high == CI_INFINITY)
        return false;
    reach.most = ci_expr_const(p->sym, reach.high);
    return place_row(p, &reach, buffer);
}

void
ci_kernel_place_rows(const CiKernels *kernels, CiKernel *kernel)
{
    const CiLoops *loops = kernels->loops;
    const CiLabels labels = ci_labels(loops->ctx, loops->sym, kernels->machine, kernel);
    Placer p = {loops->ctx, loops->sym, kernels->machine, kernel, &labels};
    int count = 0;
    for (int k = 0; k < kernel->nbuffers; k++) {
        if (kernel->buffers[k]->is_private && kernel->is_stored[k] && place_bounded_row(&p, kernel->buffers[k]))
            continue;
        kernel->buffers[count] = kernel->buffers[k];
        kernel->is_stored[count++] = kernel->is_stored[k];
    }
    kernel->nbuffers = count;
}

/* True if all stores to the target are in the kernel, at known elements, and `first` is the first of them. */
static bool
is_made_here(const CiScheduler *s, const CiKernel *kernel, const CiNest *first)
{
    int count = 0;
    CiNestAt at = CI_BEFORE_NESTS;
    for (const CiNest *nest; (nest = ci_kernel_next_nest(kernel, &at));) {
        if (nest->target != first->target)
            continue;
        if (ci_nest_is_indirect(nest) || (count == 0 && nest != first))
            return false;
        count++;
    }
    return count == s->totals->nwriters[first->target->id];
}

static void
place_target(CiScheduler *s, Placer *p, int fusion, int stage, const CiNest *nest)
{
    CiBuffer *buffer = nest->target;
    CiKernel *kernel = p->kernel;
    Reach reach;
    bool is_private = buffer->kind == CI_BUFFER_temp &&
                      s->totals->readers[buffer->id] == fusion && is_made_here(s, kernel, nest);
    if (!is_private || !find_accesses(s->sym, kernel, stage, nest, &reach))
        return;
    if (reach.is_same_loop || reach.is_one_element) {
        CiPlacement placement = {.buffer = buffer, .stored = reach.is_same_loop ? CI_STORED_register : CI_STORED_local};
        CI_PUSH(s->ctx, kernel->placements, kernel->nplacements, kernel->capplacements, placement);
    } else if (p->labels->chunks || !place_row(p, &reach, buffer)) {
        buffer->is_private = !p->labels->chunks;
    }
}

void
ci_take_buffer(CiScheduler *s, CiKernel *kernel, CiBuffer *buffer, bool is_stored)
{
    int stored_count = kernel->nbuffers, stored_capacity = kernel->capbuffers;
    int position = ci_kernel_buffer_position(kernel, buffer);
    if (position < 0) {
        position = kernel->nbuffers;
        CI_PUSH(s->ctx, kernel->buffers, kernel->nbuffers, kernel->capbuffers, buffer);
        CI_PUSH(s->ctx, kernel->is_stored, stored_count, stored_capacity, false);
    }
    kernel->is_stored[position] |= is_stored;
}

typedef struct CiSizeCollector {
    CiScheduler *scheduler;
    CiKernel *kernel;
    const CiBody *body;
} CiSizeCollector;

static void
take_symbol(void *arg, const CiExpr *symbol)
{
    CiSizeCollector *collector = arg;
    CiKernel *kernel = collector->kernel;
    for (int k = 0; k < kernel->nsize_args; k++) {
        if (kernel->size_args[k] == symbol)
            return;
    }
    if (ci_is_kernel_axis(kernel, symbol) ||
        (collector->body && ci_body_binds(collector->body, symbol)))
        return;
    CI_PUSH(collector->scheduler->ctx, kernel->size_args, kernel->nsize_args, kernel->capsize_args,
            symbol);
}

void
ci_take_symbols(CiScheduler *s, CiKernel *kernel, const CiBody *body, const CiExpr *e)
{
    CiSizeCollector collector = {s, kernel, body};
    ci_expr_visit_symbols(e, take_symbol, &collector);
}

static void
take_element(CiScheduler *s, CiKernel *kernel, const CiKernel *leaf, CiBuffer *buffer,
             bool is_stored)
{
    if (buffer->kind != CI_BUFFER_scalar && !ci_kernel_find_placement(leaf, buffer))
        ci_take_buffer(s, kernel, buffer, is_stored);
}

void
ci_take_operands(CiScheduler *s, CiKernel *kernel, const CiKernel *leaf, const CiNest *nest)
{
    for (int k = 0; k < nest->body.nops; k++) {
        const CiScalar *op = &nest->body.ops[k];
        if (op->op == CI_OP_load)
            take_element(s, kernel, leaf, op->buffer, false);
        if (op->index)
            ci_take_symbols(s, kernel, &nest->body, op->index);
        if (op->op == CI_OP_pack || op->op == CI_OP_bind) /* it stores, or reads, up to there */
            ci_take_symbols(s, kernel, &nest->body, op->index->limit);
    }
    take_element(s, kernel, leaf, nest->target, true);
    if (ci_nest_count(nest))
        take_element(s, kernel, leaf, ci_nest_count(nest), true);
    ci_take_symbols(s, kernel, &nest->body, nest->store);
    if (nest->order.chunk)
        ci_take_symbols(s, kernel, &nest->body, nest->order.chunk);
    if (nest->order.alone)
        ci_take_symbols(s, kernel, &nest->body, nest->order.alone);
    for (int k = 0; k < nest->naxes; k++)
        ci_take_symbols(s, kernel, &nest->body, nest->axes[k].extent);
}

static void
place_targets(CiScheduler *s, CiKernel *kernel, const CiLabels *labels, int fusion)
{
    Placer p = {s->ctx, s->sym, s->machine, kernel, labels};
    CiNestAt at = CI_BEFORE_NESTS;
    for (const CiNest *nest; (nest = ci_kernel_next_nest(kernel, &at));)
        place_target(s, &p, fusion, at.stage, nest);
}

void
ci_place_leaf(CiScheduler *s, CiKernel *leaf, const CiFusion *fusion)
{
    const CiLabels labels = ci_labels_of_leaf(s->ctx, s->sym, s->machine, leaf);
    place_targets(s, leaf, &labels, fusion->number);
}

void
ci_place_buffers(CiScheduler *s, int fusion)
{
    CiKernel *kernel = s->fusions[fusion].kernel;
    const CiLabels labels = ci_labels(s->ctx, s->sym, s->machine, kernel);
    place_targets(s, kernel, &labels, s->fusions[fusion].number);
    CiNestAt at = CI_BEFORE_NESTS;
    for (const CiNest *nest; (nest = ci_kernel_next_nest(kernel, &at));)
        ci_take_operands(s, kernel, kernel, nest);
}
