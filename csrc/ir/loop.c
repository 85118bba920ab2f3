/* The structure of loops: buffers, nests, bodies. Invariant: an operand of a body's op precedes it,
 * so one forward pass is enough for every consumer. */
#include "ir/loop.h"

#include "base/map.h"
#include "ir/layout.h"

#include <string.h>

CiLoops *
ci_loops_new(CiContext *ctx, CiSym *sym, const char *name)
{
    CiLoops *loops = CI_NEW(ctx, CiLoops);
    loops->ctx = ctx;
    loops->sym = sym;
    loops->name = ci_intern(ctx, name);
    return loops;
}

bool
ci_buffer_is_dense(const CiLoops *loops, const CiBuffer *buffer)
{
    return ci_layout_is_dense(loops->ctx, loops->sym, buffer->rank, buffer->sizes, buffer->strides);
}

int
ci_loops_device_count(const CiLoops *loops)
{
    int count = 1;
    for (int k = 0; k < loops->nbuffers; k++)
        count = loops->buffers[k]->device >= count ? loops->buffers[k]->device + 1 : count;
    return count;
}

static const CiExpr *const *
copy_exprs(CiContext *ctx, int count, const CiExpr *const *exprs)
{
    const CiExpr **copy = CI_NEW_ARRAY(ctx, const CiExpr *, count + 1);
    if (count)
        memcpy(copy, exprs, sizeof(const CiExpr *) * (size_t)count);
    return copy;
}

/* in0 and buf0 are the first of their kinds. */
static void
name_buffer(const CiLoops *loops, CiBuffer *buffer)
{
    bool is_input = buffer->kind != CI_BUFFER_temp;
    int number = is_input ? buffer->input : buffer->id - loops->ninputs;
    buffer->name = ci_intern(loops->ctx, ci_format(loops->ctx, "%s%d", is_input ? "in" : "buf", number));
}

void
ci_loops_keep_buffers(CiLoops *loops, const bool *is_kept)
{
    int count = 0;
    for (int k = 0; k < loops->nbuffers; k++) {
        CiBuffer *buffer = loops->buffers[k];
        if (k >= loops->ninputs && !is_kept[k])
            continue;
        loops->buffers[count] = buffer;
        buffer->id = count++;
        if (buffer->id != k)
            name_buffer(loops, buffer);
    }
    loops->nbuffers = count;
}

CiBuffer *
ci_loops_add_buffer(CiLoops *loops, CiBufferKind kind, CiDtype dtype, int rank,
                    const CiExpr *const *sizes, const CiExpr *const *strides)
{
    CiContext *ctx = loops->ctx;
    CiBuffer *buffer = CI_NEW(ctx, CiBuffer);
    bool is_input = kind != CI_BUFFER_temp;
    buffer->kind = kind;
    buffer->id = loops->nbuffers;
    buffer->input = is_input ? loops->ninputs++ : -1;
    CI_REQUIRE(ctx, !is_input || buffer->input == buffer->id); /* inputs come first */
    name_buffer(loops, buffer);
    buffer->dtype = dtype;
    buffer->rank = rank;
    buffer->sizes = copy_exprs(ctx, rank, sizes);
    buffer->strides = strides ? copy_exprs(ctx, rank, strides)
                              : ci_layout_dense_strides(ctx, loops->sym, rank, buffer->sizes,
                                                        ci_layout_c_order(ctx, rank));
    CI_PUSH(ctx, loops->buffers, loops->nbuffers, loops->capbuffers, buffer);
    return buffer;
}

CiNest *
ci_loops_add_nest(CiLoops *loops, CiItems *items)
{
    CiItem item = {.kind = CI_ITEM_nest, .nest = CI_NEW(loops->ctx, CiNest)};
    item.nest->fold = CI_OP_none;
    CiItems *into = items ? items : &loops->items;
    CI_PUSH(loops->ctx, into->items, into->count, into->capacity, item);
    return item.nest;
}

CiExternItem *
ci_extern_new(CiContext *ctx, const CiExtern *ext, CiOp op, int capacity)
{
    CiExternItem *item = CI_NEW(ctx, CiExternItem);
    item->ext = ext;
    item->op = op;
    item->operands = CI_NEW_ARRAY(ctx, CiBuffer *, capacity + 1);
    item->offsets = CI_NEW_ARRAY(ctx, const CiExpr *, capacity + 1);
    item->ranks = CI_NEW_ARRAY(ctx, int, capacity + 1);
    item->sizes = CI_NEW_ARRAY(ctx, const CiExpr *const *, capacity + 1);
    item->strides = CI_NEW_ARRAY(ctx, const CiExpr *const *, capacity + 1);
    return item;
}

static void
set_view(CiExternItem *item, int k, const CiExpr *offset, int rank, const CiExpr *const *sizes,
         const CiExpr *const *strides)
{
    item->offsets[k] = offset;
    item->ranks[k] = rank;
    item->sizes[k] = sizes;
    item->strides[k] = strides;
}

void
ci_extern_add_operand(CiExternItem *item, CiBuffer *buffer, const CiExpr *offset, int rank,
                      const CiExpr *const *sizes, const CiExpr *const *strides)
{
    item->operands[item->noperands] = buffer;
    set_view(item, item->noperands++, offset, rank, sizes, strides);
}

void
ci_extern_set_part(CiExternItem *item, const CiExpr *offset, int rank,
                   const CiExpr *const *sizes, const CiExpr *const *strides)
{
    set_view(item, item->noperands, offset, rank, sizes, strides);
}

void
ci_extern_set_result(CiSym *sym, CiExternItem *item, CiBuffer *buffer)
{
    item->result = buffer;
    if (!item->offsets[item->noperands])
        ci_extern_set_part(item, ci_expr_const(sym, 0), buffer->rank, buffer->sizes,
                           buffer->strides);
}

bool
ci_extern_is_whole(const CiExternItem *item, int k)
{
    const CiBuffer *buffer = k < item->noperands ? item->operands[k] : item->result;
    bool is_whole = item->ranks[k] == buffer->rank && ci_expr_equals_const(item->offsets[k], 0);
    for (int d = 0; is_whole && d < buffer->rank; d++)
        is_whole = item->sizes[k][d] == buffer->sizes[d] && item->strides[k][d] == buffer->strides[d];
    return is_whole;
}

static bool
is_same_op(const CiScalar *a, const CiScalar *b)
{
    bool is_same = a->op == b->op && a->dtype == b->dtype && a->nargs == b->nargs &&
                   a->buffer == b->buffer && a->index == b->index;
    for (int k = 0; is_same && k < a->nargs; k++)
        is_same = a->args[k] == b->args[k];
    return is_same && (a->op != CI_OP_const || ci_const_equal(a->dtype, a->value, b->value));
}

/* Slow on purpose: a body is kept below a hundred or so operations. */
int
ci_body_add(CiContext *ctx, CiBody *body, CiScalar op)
{
    for (int k = body->nops - 1; k >= 0; k--)
        if (is_same_op(&body->ops[k], &op))
            return k;
    for (int k = 0; k < op.nargs; k++)
        CI_REQUIRE(ctx, op.args[k] >= 0 && op.args[k] < body->nops);
    CI_PUSH(ctx, body->ops, body->nops, body->capops, op);
    return body->nops - 1;
}

static bool
makes_symbol(const CiScalar *op, const CiExpr *symbol)
{
    return (op->op == CI_OP_bind || op->op == CI_OP_pack) && op->index == symbol;
}

void
ci_body_link(CiContext *ctx, const CiBody *body, CiScalar *op, const CiExpr *index)
{
    for (int k = 0; k < body->nops; k++) {
        const CiScalar *bind = &body->ops[k];
        if (bind->op != CI_OP_bind || !ci_expr_depends_on(index, bind->index))
            continue;
        if (op->nargs == CI_MAX_OPERANDS)
            ci_fail(ctx, CI_ERR_LOWERING, "an index depends on more than %d others",
                    CI_MAX_OPERANDS);
        op->args[op->nargs++] = k;
    }
}

bool
ci_is_one_element(CiSym *sym, const CiBuffer *buffer)
{
    return ci_expr_equals_const(ci_expr_product_of(sym, buffer->sizes, buffer->rank), 1);
}

CiScalar *
ci_nest_next_load(const CiNest *nest, const CiScalar *load)
{
    for (int k = load ? (int)(load - nest->body.ops) + 1 : 0; nest && k < nest->body.nops; k++)
        if (nest->body.ops[k].op == CI_OP_load)
            return &nest->body.ops[k];
    return NULL;
}

bool
ci_nest_loads(const CiNest *nest, const CiBuffer *buffer)
{
    for (const CiScalar *load = NULL; (load = ci_nest_next_load(nest, load));)
        if (load->buffer == buffer)
            return true;
    return false;
}

bool
ci_body_binds(const CiBody *body, const CiExpr *symbol)
{
    for (int k = 0; k < body->nops; k++) {
        if (makes_symbol(&body->ops[k], symbol))
            return true;
    }
    return false;
}

bool
ci_nest_is_indirect(const CiNest *nest)
{
    if (nest->is_combined || !nest->body.nops)
        return nest->is_combined;
    CiOp op = nest->body.ops[nest->body.result].op;
    return op == CI_OP_place || op == CI_OP_pack;
}

static bool
is_constant(const CiBody *body, int value)
{
    const CiScalar *op = &body->ops[value];
    bool is_fixed = op->op != CI_OP_bind && op->op != CI_OP_index &&
                    (op->op != CI_OP_load || op->index->kind == CI_EXPR_const);
    for (int k = 0; k < op->nargs && is_fixed; k++)
        is_fixed = is_constant(body, op->args[k]);
    return is_fixed;
}

bool
ci_nest_places_alike(const CiNest *nest)
{
    const CiScalar *last = nest->body.nops ? &nest->body.ops[nest->body.result] : NULL;
    return last && last->op == CI_OP_place && !nest->is_combined &&
           is_constant(&nest->body, last->args[0]);
}

bool
ci_nest_is_serial(const CiNest *nest)
{
    return ci_nest_is_indirect(nest) && !ci_nest_places_alike(nest) &&
           (!nest->is_distinct || nest->body.ops[nest->body.result].op == CI_OP_pack);
}

CiBody
ci_body_substitute(CiContext *ctx, CiSym *sym, const CiBody *body, int count,
                   const CiExpr *const *from, const CiExpr *const *to)
{
    CiBody copy = *body;
    copy.ops = CI_NEW_ARRAY(ctx, CiScalar, body->nops + 1);
    copy.capops = body->nops + 1;
    for (int k = 0; k < body->nops; k++) {
        copy.ops[k] = body->ops[k];
        if (copy.ops[k].index)
            copy.ops[k].index = ci_expr_substitute(sym, copy.ops[k].index, count, from, to);
    }
    return copy;
}

void
ci_nest_substitute(CiContext *ctx, CiSym *sym, CiNest *nest, int count, const CiExpr *const *from,
                   const CiExpr *const *to)
{
    nest->body = ci_body_substitute(ctx, sym, &nest->body, count, from, to);
    nest->store = ci_expr_substitute(sym, nest->store, count, from, to);
}

void
ci_items_visit(const CiItems *items, void (*visit)(void *arg, CiItem *item), void *arg)
{
    for (int k = 0; k < items->count; k++) {
        CiItem *item = &items->items[k];
        visit(arg, item);
        if (item->region) {
            ci_items_visit(&item->region->condition_items, visit, arg);
            ci_items_visit(&item->region->body, visit, arg);
            ci_items_visit(&item->region->other, visit, arg);
        }
    }
}
