/* Batched library calls: a product of stacks, the element-wise work on its result and the next
 * product become one loop over the leading axes, whose iterations are independent.
 *
 *   buf0: f32[16,512,512] = extern matmul(in0, in1)          for t0<16 parallel {
 *   buf1 = for i0<16, i1<512, i2<512 { … buf0 … }              buf3: f32[512,512] = extern matmul(…)
 *   buf2 = extern matmul(buf1, in2)                            …
 *
 * An iteration makes the same call for its own matrices as the whole call makes for each of them,
 * so the bits do not change. A buffer that only the loop uses is as large as one problem, and still
 * in cache when it is read. An item joins the loop if it accesses only its own iteration's part of
 * all buffers that the loop makes. Items between that do not join are moved before or after the
 * loop, as their dependences require. */
#include "loops/loops.h"

#define MAX_AXES 8

typedef struct Marks { /* by buffer */
    bool *made, *read; /* by members of the loop; read: of what they do not make */
    bool *made_later, *read_later; /* by items that go after it */
    int *nreaders, *nwriters;      /* members of it */
} Marks;

typedef struct Batch {
    const CiLoopRewriter *r;
    int naxes; /* in front, of the stack */
    const CiExpr *extents[MAX_AXES], *steps[MAX_AXES]; /* steps: iterations from one to the
                                                          * next */
    const CiExpr *at[MAX_AXES];                         /* their values in an iteration */
    const CiExpr *var, *iterations;
    Marks marks;
    int *nreaders, *nwriters; /* of the program, by buffer */
    CiItems before, body, after;
    CiBuffer **parts; /* by buffer of before: its part, where only the loop uses it */
} Batch;

/* ---- the part of one iteration ---- */

static const CiExpr *
part_of(const Batch *b, const CiBuffer *buffer)
{
    return ci_expr_product_of(b->r->sym, buffer->sizes + b->naxes, buffer->rank - b->naxes);
}

/* True if the problems of the stack are stored one after another. */
static bool
is_stacked(const Batch *b, const CiBuffer *buffer)
{
    if (buffer->kind != CI_BUFFER_temp || buffer->is_swapped || buffer->rank < b->naxes)
        return false;
    const CiExpr *part = part_of(b, buffer);
    for (int k = 0; k < b->naxes; k++)
        if (buffer->sizes[k] != b->extents[k] ||
            buffer->strides[k] != ci_expr_mul(b->r->sym, part, b->steps[k]))
            return false;
    return true;
}

/* The element number within the iteration's own part of a stacked buffer, for an index of a nest;
 * NULL if the element may belong to another iteration's part. An index that is in range of the
 * buffer in every iteration is in range of the part. */
static const CiExpr *
element_of_part(const Batch *b, const CiBuffer *buffer, const CiNest *nest, const CiExpr *index)
{
    const CiExpr *coef;
    for (int k = 0; k < b->naxes; k++)
        if (!ci_expr_split_linear(b->r->sym, index, nest->axes[k].var, &coef, &index) ||
            coef != buffer->strides[k])
            return NULL;
    return index;
}

static bool
nest_requires_disjoint(const Batch *b, const CiNest *nest, const CiBuffer *buffer)
{
    for (CiNestAccess at = {0}; ci_nest_next_access(nest, &at);)
        if (at.buffer == buffer && !element_of_part(b, buffer, nest, at.index))
            return false;
    return true;
}

static bool
has_stack_axes(const Batch *b, const CiNest *nest)
{
    bool has = nest->npoint >= b->naxes;
    for (int k = 0; has && k < b->naxes; k++)
        has = nest->axes[k].extent == b->extents[k];
    return has;
}

/* NULL when the nest is one of the loop's. */
static const char *
why_not_nest(const Batch *b, const CiNest *nest)
{
    if (ci_nest_is_indirect(nest) || !has_stack_axes(b, nest))
        return "it has other axes";
    if (!is_stacked(b, nest->target) || b->marks.read[nest->target->id])
        return "it stores to what others read";
    if (!nest_requires_disjoint(b, nest, nest->target))
        return "it stores to other parts";
    for (const CiScalar *load = NULL; (load = ci_nest_next_load(nest, load));)
        if (b->marks.made[load->buffer->id] && !nest_requires_disjoint(b, nest, load->buffer))
            return "it reads other parts";
    return NULL;
}

/* The axis of the stack that axis `axis` of an operand is; -1: none, one of its matrix. */
static int
stack_axis(const Batch *b, const CiExternItem *call, int operand, int axis)
{
    int front = call->ranks[operand] - 2;
    return axis < front ? axis + b->naxes - front : -1;
}

static bool
takes_own_part(const Batch *b, const CiExternItem *call, int operand)
{
    const CiBuffer *buffer = call->operands[operand];
    bool is_own = call->ranks[operand] == b->naxes + 2;
    for (int k = 0; is_own && k < b->naxes; k++)
        is_own = call->sizes[operand][k] == b->extents[k] &&
                 call->strides[operand][k] == buffer->strides[k];
    return is_own;
}

static const char *
why_not_call(const Batch *b, const CiExternItem *call)
{
    if (!ci_op_has(call->op, CI_FACT_stacks) || call->result->rank != b->naxes + 2)
        return "it is no call of a stack";
    if (!is_stacked(b, call->result) || b->marks.read[call->result->id] ||
        !ci_extern_is_whole(call, call->noperands))
        return "it stores to what others read";
    for (int k = 0; k < call->noperands; k++) {
        if (call->ranks[k] < 2 || call->operands[k] == call->result)
            return "its operands are no stacks";
        if (b->marks.made[call->operands[k]->id] && !takes_own_part(b, call, k))
            return "it reads other parts";
        for (int axis = 0; axis < call->ranks[k] - 2; axis++) {
            const CiExpr *size = call->sizes[k][axis];
            if (!ci_expr_equals_const(size, 1) &&
                size != b->extents[stack_axis(b, call, k, axis)])
                return "its operands are stacks of other lengths";
        }
    }
    return NULL;
}

/* ---- who joins ---- */

static CiBuffer *
target_of(const CiItem *item)
{
    return item->nest ? item->nest->target : item->ext->result;
}

typedef void (*Visit)(void *arg, const CiBuffer *buffer);

static void
visit_reads(const CiItem *item, Visit visit, void *arg)
{
    for (const CiScalar *load = NULL; (load = ci_nest_next_load(item->nest, load));)
        visit(arg, load->buffer);
    if (item->nest && item->nest->is_combined)
        visit(arg, item->nest->target);
    for (int k = 0; item->ext && k < item->ext->noperands; k++)
        visit(arg, item->ext->operands[k]);
}

typedef struct Reading {
    const bool *marks;
    bool is_any;
} Reading;

static void
look_at_read(void *arg, const CiBuffer *buffer)
{
    Reading *reading = arg;
    reading->is_any |= reading->marks[buffer->id];
}

static bool
reads_any(const CiItem *item, const bool *marks)
{
    Reading reading = {marks, false};
    visit_reads(item, look_at_read, &reading);
    return reading.is_any;
}

static void
mark_read(void *arg, const CiBuffer *buffer)
{
    Marks *marks = arg;
    marks->read[buffer->id] |= !marks->made[buffer->id];
    marks->nreaders[buffer->id]++;
}

static void
mark_read_later(void *arg, const CiBuffer *buffer)
{
    ((Marks *)arg)->read_later[buffer->id] = true;
}

static void
push(Batch *b, CiItems *items, const CiItem *item)
{
    CI_PUSH(b->r->ctx, items->items, items->count, items->capacity, *item);
}

static void
join(Batch *b, const CiItem *item)
{
    visit_reads(item, mark_read, &b->marks);
    b->marks.made[target_of(item)->id] = true;
    b->marks.nwriters[target_of(item)->id]++;
    push(b, &b->body, item);
}

static void
put_after(Batch *b, const CiItem *item)
{
    visit_reads(item, mark_read_later, &b->marks);
    b->marks.made_later[target_of(item)->id] = true;
    push(b, &b->after, item);
}

/* Items that nothing moves past: what data decide, regions, calls that may do anything, stores to
 * arguments. */
static bool
is_barrier(const CiItem *item)
{
    if (item->nest)
        return item->nest->target->kind != CI_BUFFER_temp;
    return !item->ext || ci_op_has(item->ext->op, CI_FACT_effect) || item->ext->ext->may_fail;
}

/* True if the item reads a result of the items after the loop, or overwrites their operands. */
static bool
is_deferred(const Batch *b, const CiItem *item)
{
    int target = target_of(item)->id;
    return b->marks.made_later[target] || b->marks.read_later[target] ||
           reads_any(item, b->marks.made_later);
}

static void
place_item(Batch *b, const CiItem *item)
{
    const char *why = item->nest ? why_not_nest(b, item->nest) : why_not_call(b, item->ext);
    int target = target_of(item)->id;
    if (is_deferred(b, item))
        put_after(b, item);
    else if (!why)
        join(b, item);
    else if (reads_any(item, b->marks.made) || b->marks.made[target] || b->marks.read[target])
        put_after(b, item);
    else
        push(b, &b->before, item);
}

/* ---- is it worth it? ---- */

static bool
is_only_the_loops(const Batch *b, const CiBuffer *buffer)
{
    int id = buffer->id;
    return b->marks.made[id] && !buffer->is_result &&
           b->marks.nreaders[id] == b->nreaders[id] &&
           b->marks.nwriters[id] == b->nwriters[id];
}

/* True if the buffers that only the loop uses are larger than the caches, and the parts of one
 * iteration are not. */
static bool
is_worth_it(const Batch *b)
{
    const CiLoopRewriter *r = b->r;
    int64_t all = 0, most = 0, iterations = ci_amount_likely(ci_amount_of(ci_amount(1), b->iterations));
    for (int k = 0; k < r->loops->nbuffers; k++) {
        const CiBuffer *buffer = r->loops->buffers[k];
        if (!is_only_the_loops(b, buffer))
            continue;
        int64_t bytes = ci_amount_likely(ci_cost_of_buffer(buffer));
        CiAmount part = ci_amount_of(ci_amount(ci_dtype_size(buffer->dtype)), part_of(b, buffer));
        int64_t own = ci_amount_likely(part);
        all = all + bytes < all ? INT64_MAX : all + bytes;
        most = own > most ? own : most;
    }
    if (r->options->library_threads != 1) /* side by side its calls would wait for each other */
        return false;
    return iterations > 1 && all >= CI_CHOOSE(r, stack_bytes) && most <= CI_CHOOSE(r, batch_bytes) &&
           all / iterations >= CI_CHOOSE(r, launch_bytes) * b->body.count;
}

/* ---- the loop ---- */

static CiBuffer *
part_for(Batch *b, CiBuffer *buffer)
{
    if (!is_only_the_loops(b, buffer))
        return buffer;
    if (!b->parts[buffer->id])
        b->parts[buffer->id] = ci_loops_add_buffer(
            b->r->loops, CI_BUFFER_temp, buffer->dtype, buffer->rank - b->naxes,
            buffer->sizes + b->naxes, buffer->strides + b->naxes);
    return b->parts[buffer->id];
}

/* The first element of the iteration's part in the buffer that is used now. */
static const CiExpr *
first_of_part(const Batch *b, const CiBuffer *before, const CiBuffer *now)
{
    return before == now ? ci_expr_mul(b->r->sym, part_of(b, before), b->var)
                         : ci_expr_const(b->r->sym, 0);
}

static const CiExpr *
index_in_iteration(Batch *b, const CiNest *nest, const CiExpr *index)
{
    const CiExpr *vars[MAX_AXES];
    for (int k = 0; k < b->naxes; k++)
        vars[k] = nest->axes[k].var;
    return ci_expr_substitute(b->r->sym, index, b->naxes, vars, b->at);
}

/* An element of a buffer; for a buffer that the loop makes, an element of the iteration's part. */
static const CiExpr *
element_in_iteration(Batch *b, const CiNest *nest, CiBuffer **buffer, const CiExpr *index)
{
    CiBuffer *before = *buffer;
    if (!b->marks.made[before->id])
        return index_in_iteration(b, nest, index);
    *buffer = part_for(b, before);
    return ci_expr_add(b->r->sym, element_of_part(b, before, nest, index),
                       first_of_part(b, before, *buffer));
}

static void
put_nest(Batch *b, CiNest *nest)
{
    for (int k = 0; k < nest->body.nops; k++) {
        CiScalar *op = &nest->body.ops[k];
        if (op->op == CI_OP_load)
            op->index = element_in_iteration(b, nest, &op->buffer, op->index);
        else if (op->op == CI_OP_index)
            op->index = index_in_iteration(b, nest, op->index);
    }
    nest->store = element_in_iteration(b, nest, &nest->target, nest->store);
    nest->axes += b->naxes;
    nest->naxes -= b->naxes;
    nest->npoint -= b->naxes;
}

/* The offset of the iteration's matrix in an operand. If the matrices are equally spaced along the
 * whole stack, the offset is iteration * step. */
static const CiExpr *
matrix_in_iteration(const Batch *b, const CiExternItem *call, int k)
{
    CiSym *sym = b->r->sym;
    const CiExpr *offset = call->offsets[k];
    bool is_even = call->ranks[k] == b->naxes + 2;
    for (int axis = 0; is_even && axis < b->naxes; axis++)
        is_even = call->sizes[k][axis] == b->extents[axis] &&
                  call->strides[k][axis] ==
                      ci_expr_mul(sym, call->strides[k][b->naxes - 1], b->steps[axis]);
    if (is_even)
        return ci_expr_add(sym, offset,
                           ci_expr_mul(sym, call->strides[k][b->naxes - 1], b->var));
    for (int axis = 0; axis < call->ranks[k] - 2; axis++) {
        int of = stack_axis(b, call, k, axis);
        if (!ci_expr_equals_const(call->sizes[k][axis], 1))
            offset = ci_expr_add(sym, offset, ci_expr_mul(sym, call->strides[k][axis], b->at[of]));
    }
    return offset;
}

static CiExternItem *
call_in_iteration(Batch *b, const CiExternItem *call)
{
    CiExternItem *own = ci_extern_new(b->r->ctx, call->ext, call->op, call->noperands);
    own->loc = call->loc;
    for (int k = 0; k < call->noperands; k++) {
        CiBuffer *buffer = call->operands[k], *now = buffer;
        const CiExpr *offset;
        int front = call->ranks[k] - 2;
        if (b->marks.made[buffer->id]) {
            now = part_for(b, buffer);
            offset = ci_expr_add(b->r->sym, call->offsets[k], first_of_part(b, buffer, now));
        } else {
            offset = matrix_in_iteration(b, call, k);
        }
        ci_extern_add_operand(own, now, offset, 2, call->sizes[k] + front, call->strides[k] + front);
    }
    CiBuffer *result = part_for(b, call->result);
    const CiBuffer *before = call->result;
    ci_extern_set_part(own, first_of_part(b, before, result), 2, before->sizes + b->naxes,
                       before->strides + b->naxes);
    ci_extern_set_result(b->r->sym, own, result);
    return own;
}

static CiItem
make_loop(Batch *b)
{
    CiRegion *region = CI_NEW(b->r->ctx, CiRegion);
    *region = (CiRegion){
        .kind = CI_ITEM_for, .var = b->var, .extent = b->iterations, .is_parallel = true};
    b->parts = CI_NEW_ARRAY(b->r->ctx, CiBuffer *, b->r->loops->nbuffers + 1);
    for (int k = 0; k < b->body.count; k++) {
        CiItem *item = &b->body.items[k];
        if (item->nest)
            put_nest(b, item->nest);
        else
            item->ext = call_in_iteration(b, item->ext);
    }
    region->body = b->body;
    return (CiItem){.kind = CI_ITEM_for, .region = region};
}

/* ---- where loops are ---- */

static void
begin(Batch *b, const CiLoopRewriter *r, const CiExternItem *call)
{
    int n = r->loops->nbuffers + 1, naxes = call->result->rank - 2;
    *b = (Batch){.r = r, .naxes = naxes};
    ci_count_all_uses(r->loops, &b->nreaders, &b->nwriters);
    bool **marks[] = {&b->marks.made, &b->marks.read, &b->marks.made_later, &b->marks.read_later};
    for (int k = 0; k < 4; k++)
        *marks[k] = CI_NEW_ARRAY(r->ctx, bool, n);
    b->marks.nreaders = CI_NEW_ARRAY(r->ctx, int, n);
    b->marks.nwriters = CI_NEW_ARRAY(r->ctx, int, n);
    b->iterations = ci_expr_const(r->sym, 1);
    for (int k = naxes - 1; k >= 0; k--) {
        b->extents[k] = call->result->sizes[k];
        b->steps[k] = b->iterations;
        b->iterations = ci_expr_mul(r->sym, b->iterations, b->extents[k]);
    }
}

/* Computes the position along each axis from the iteration number: (t // step) % extent. */
static void
number_iterations(Batch *b)
{
    CiSym *sym = b->r->sym;
    b->var = ci_new_loop_variable(b->r->ctx, sym, b->iterations);
    for (int k = 0; k < b->naxes; k++) {
        b->at[k] = ci_expr_floordiv(sym, b->var, b->steps[k]);
        if (k > 0)
            b->at[k] = ci_expr_mod(sym, b->at[k], b->extents[k]);
    }
}

/* The loop that begins with the call at `first`; false: there is none that is worth it. */
static bool
find_loop(const CiLoopRewriter *r, const CiItems *items, int first, Batch *b, int *last)
{
    const CiExternItem *call = items->items[first].ext;
    int naxes = call->result->rank - 2;
    if (!ci_op_has(call->op, CI_FACT_stacks) || naxes < 1 || naxes > MAX_AXES)
        return false;
    begin(b, r, call);
    for (*last = first; *last < items->count && !is_barrier(&items->items[*last]); ++*last)
        place_item(b, &items->items[*last]);
    return b->body.count > 1 && is_worth_it(b);
}

/* Items that are moved after a loop may begin another loop. */
void
ci_loops_batch_calls(const CiLoopRewriter *r, CiItems *items)
{
    CiItems made = {0};
    for (int k = 0; k < items->count; k++) {
        CiItem *item = &items->items[k];
        Batch batch;
        int last;
        if (!item->ext || !find_loop(r, items, k, &batch, &last)) {
            CI_PUSH(r->ctx, made.items, made.count, made.capacity, *item);
            continue;
        }
        number_iterations(&batch);
        CiItem loop = make_loop(&batch);
        ci_add_items(r->ctx, &made, &batch.before);
        CI_PUSH(r->ctx, made.items, made.count, made.capacity, loop);
        ci_loops_batch_calls(r, &batch.after);
        ci_add_items(r->ctx, &made, &batch.after);
        k = last - 1;
    }
    *items = made;
}
