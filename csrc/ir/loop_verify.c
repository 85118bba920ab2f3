/* The verifier of loops.
 *
 * An element number is checked by its range. If it is affine in loop variables of constant extent,
 * the range is exact and must be within the buffer. Otherwise the range is an estimate, and only an
 * index that is entirely out of bounds is refused. */
#include "ir/loop.h"

#include "base/map.h"

/* The variable of a `for` around an item. */
typedef struct Scope {
    const CiExpr *var;
    const struct Scope *outer;
} Scope;

typedef struct Verifier {
    CiContext *ctx;
    CiSym *sym;
    const char *name;
    CiMap *targets; /* buffer -> buffer that something stores anywhere */
    CiMap *stored;  /* buffer -> buffer once something has stored it */
    int nest;
    const Scope *scope;
    int depth; /* regions around: a branch or a later iteration may know more of an index than its
                * range */
} Verifier;

static _Noreturn void
fail_nest(const Verifier *v, const CiNest *nest, const char *rule)
{
    ci_fail(v->ctx, CI_ERR_INTERNAL, "loops %s: nest %d, into %s: %s", v->name, v->nest,
            nest->target ? nest->target->name : "nothing", rule);
}

/* ---- scopes ---- */

static bool
is_in_scope(const Verifier *v, const CiExpr *symbol)
{
    bool is = symbol->symbol_kind != CI_SYMBOL_index;
    for (const Scope *at = v->scope; at && !is; at = at->outer)
        is = at->var == symbol;
    return is;
}

/* Every loop variable in an expression of a nest is of a loop around it, an axis, or made in its
 * body. */
static void
verify_scope(const Verifier *v, const CiNest *nest, const CiExpr *e)
{
    for (int k = 0; k < e->nsymbols; k++) {
        const CiExpr *symbol = e->symbols[k];
        bool is_known = is_in_scope(v, symbol) || ci_body_binds(&nest->body, symbol);
        for (int a = 0; a < nest->naxes && !is_known; a++)
            is_known = nest->axes[a].var == symbol;
        if (!is_known)
            fail_nest(v, nest, ci_format(v->ctx, "%s is used outside its loop", symbol->name));
    }
}

/* ---- bounds ---- */

/* Lowest and highest element a buffer has, from its first; false when sizes are not constant. */
static bool
find_extent(const CiBuffer *buffer, int64_t *low, int64_t *high)
{
    *low = *high = 0;
    for (int k = 0; k < buffer->rank; k++) {
        int64_t size, stride, reach;
        if (!ci_expr_is_const(buffer->sizes[k], &size) ||
            !ci_expr_is_const(buffer->strides[k], &stride) || size == 0)
            return false;
        if (__builtin_mul_overflow(size - 1, stride, &reach))
            return false;
        *low += reach < 0 ? reach : 0;
        *high += reach > 0 ? reach : 0;
    }
    return true;
}

static bool
is_plain_variable(const CiExpr *e)
{
    return e->kind == CI_EXPR_symbol && e->symbol_kind == CI_SYMBOL_index && e->limit &&
           ci_expr_is_const(e->limit, NULL);
}

static bool
has_exact_range(const CiExpr *e)
{
    if (e->kind == CI_EXPR_const || is_plain_variable(e))
        return true;
    for (int k = 0; k < e->nargs; k++)
        if (!is_plain_variable(e->args[k]))
            return false;
    return e->kind == CI_EXPR_linear;
}

static void
verify_element(const Verifier *v, const CiNest *nest, const CiBuffer *buffer, const CiExpr *index)
{
    int64_t low, high;
    if (!find_extent(buffer, &low, &high))
        return;
    bool is_inside = index->low >= low && index->high <= high;
    bool is_disjoint = index->high < low || index->low > high;
    if (is_disjoint || (!is_inside && !v->depth && has_exact_range(index)))
        fail_nest(v, nest, ci_format(v->ctx, "an element of %s is out of bounds", buffer->name));
}

/* A nest with an axis that is constantly empty runs nothing. */
static bool
is_never_run(const CiNest *nest)
{
    for (int k = 0; k < nest->naxes; k++)
        if (nest->axes[k].extent->high <= 0)
            return true;
    return false;
}

/* True if the buffer may be read here: it is an argument, was stored, or nothing ever stores it, so that it
 * is an empty array, or one without elements. */
static bool
is_defined(const Verifier *v, const CiBuffer *buffer)
{
    return buffer->kind != CI_BUFFER_temp || ci_map_find(v->stored, CI_KEY(buffer)) ||
           !ci_map_find(v->targets, CI_KEY(buffer));
}

/* ---- bodies ---- */

static void
verify_load(const Verifier *v, const CiNest *nest, const CiScalar *op)
{
    if (!op->buffer || !op->index || op->buffer->dtype != op->dtype)
        fail_nest(v, nest, "a load needs a buffer of its dtype and an index");
    if (!is_never_run(nest) && !is_defined(v, op->buffer))
        fail_nest(v, nest,
                  ci_format(v->ctx, "%s is read before anything stored it", op->buffer->name));
    if (!is_never_run(nest))
        verify_element(v, nest, op->buffer, op->index);
}

/* Every symbol of an index is an axis, a size, or made by an operand. */
static void
verify_linked(const Verifier *v, const CiNest *nest, const CiScalar *op, const CiExpr *index,
              int first)
{
    int nbinds = 0;
    for (int k = 0; k < index->nsymbols; k++)
        nbinds += ci_body_binds(&nest->body, index->symbols[k]);
    if (nbinds != op->nargs - first)
        fail_nest(v, nest, "an index and the binds it names differ");
    for (int k = first; k < op->nargs; k++) {
        const CiScalar *bind = &nest->body.ops[op->args[k]];
        if (bind->op != CI_OP_bind || !ci_expr_depends_on(index, bind->index))
            fail_nest(v, nest, "an operand is no bind of the index");
    }
}

/* The one that a nest yields. */
static void
verify_storing(const Verifier *v, const CiNest *nest, const CiScalar *op)
{
    const CiBody *body = &nest->body;
    if (op != &body->ops[body->result] || nest->fold != CI_OP_none)
        fail_nest(v, nest, ci_format(v->ctx, "%s does not end a nest", ci_op_name(op->op)));
    if (op->nargs < 1 || body->ops[op->args[0]].dtype != op->dtype)
        fail_nest(v, nest, ci_format(v->ctx, "%s changes a dtype", ci_op_name(op->op)));
    if (op->op == CI_OP_place)
        verify_linked(v, nest, op, nest->store, 1);
    else if (op->nargs != 2 || body->ops[op->args[1]].dtype != CI_DTYPE_bool ||
             !ci_expr_depends_on(nest->store, op->index) || nest->is_combined)
        fail_nest(v, nest, "pack needs a condition, and a store that counts");
    if (op->op == CI_OP_pack && op->buffer &&
        (op->buffer->kind != CI_BUFFER_temp || op->buffer->dtype != CI_DTYPE_i64 ||
         op->buffer->rank || op->buffer == nest->target))
        fail_nest(v, nest, "what was packed is counted in an i64 of its own");
}

static void
verify_bind(const Verifier *v, const CiNest *nest, const CiBody *body, const CiScalar *op)
{
    if (op->nargs != 1 || op->dtype != CI_DTYPE_i64 ||
        body->ops[op->args[0]].dtype != CI_DTYPE_i64 || !op->index || !op->index->limit)
        fail_nest(v, nest, "bind needs an i64 and a symbol with a limit");
}

static void
verify_compute(const Verifier *v, const CiNest *nest, const CiBody *body, const CiScalar *op)
{
    int first = op->op == CI_OP_where;
    CiOpKind kind = ci_op_kind(op->op);
    bool is_known = kind == CI_OPKIND_pointwise || ci_op_is_function(op->op) ||
                    op->op == CI_OP_where || op->op == CI_OP_cast;
    if (!is_known)
        fail_nest(v, nest, ci_format(v->ctx, "%s is no scalar operation", ci_op_name(op->op)));
    if (op->nargs != ci_op_arity(op->op))
        fail_nest(v, nest,
                  ci_format(v->ctx, "%s has the wrong number of operands", ci_op_name(op->op)));
    CiDtype operand = body->ops[op->args[first]].dtype;
    for (int k = first; k < op->nargs; k++)
        if (body->ops[op->args[k]].dtype != operand)
            fail_nest(v, nest,
                      ci_format(v->ctx, "operands of %s differ in dtype", ci_op_name(op->op)));
    if (first && body->ops[op->args[0]].dtype != CI_DTYPE_bool)
        fail_nest(v, nest, "the condition of where is no bool");
    if (op->op != CI_OP_cast &&
        (ci_op_why_not(op->op, operand) || op->dtype != ci_op_result(op->op, operand)))
        fail_nest(v, nest,
                  ci_format(v->ctx, "%s of %s does not give %s", ci_op_name(op->op),
                            ci_dtype_name(operand), ci_dtype_name(op->dtype)));
}

static void
verify_body(const Verifier *v, const CiNest *nest)
{
    const CiBody *body = &nest->body;
    for (int k = 0; k < body->nops; k++) {
        const CiScalar *op = &body->ops[k];
        for (int i = 0; i < op->nargs; i++)
            if (op->args[i] < 0 || op->args[i] >= k)
                fail_nest(v, nest, "an operand is defined after its use");
        if (op->op == CI_OP_load || op->op == CI_OP_index) {
            verify_linked(v, nest, op, op->index, 0);
            verify_scope(v, nest, op->index);
        }
        if (op->op == CI_OP_load)
            verify_load(v, nest, op);
        else if (op->op == CI_OP_index || op->op == CI_OP_const)
            continue;
        else if (op->op == CI_OP_bind)
            verify_bind(v, nest, body, op);
        else if (op->op == CI_OP_place || op->op == CI_OP_pack)
            verify_storing(v, nest, op);
        else
            verify_compute(v, nest, body, op);
    }
    if (body->result < 0 || body->result >= body->nops)
        fail_nest(v, nest, "it yields nothing");
    bool is_bound = false;
    for (int k = 0; k < nest->store->nsymbols; k++)
        is_bound |= ci_body_binds(body, nest->store->symbols[k]);
    CiOp yielded = body->ops[body->result].op;
    if (is_bound && yielded != CI_OP_place && yielded != CI_OP_pack)
        fail_nest(v, nest, "a store where data says needs place or pack");
    if (nest->is_combined && (nest->combine == CI_OP_none || yielded != CI_OP_place))
        fail_nest(v, nest, "only placed values are combined");
}

static void
verify_axes(const Verifier *v, const CiNest *nest)
{
    bool is_scan = ci_op_kind(nest->fold) == CI_OPKIND_scan;
    if (nest->order.kind == CI_FOLD_fused &&
        (nest->fold != CI_OP_sum || nest->body.ops[nest->body.result].op != CI_OP_multiply))
        fail_nest(v, nest, "what is fused is a sum of products");
    if (nest->npoint > nest->naxes || (nest->fold == CI_OP_none && nest->npoint != nest->naxes))
        fail_nest(v, nest, "axes to fold over need a fold");
    for (int k = 0; k < nest->naxes; k++) {
        CiAxisKind kind = k < nest->npoint ? CI_AXIS_point
                          : is_scan        ? CI_AXIS_scan
                                           : CI_AXIS_reduce;
        verify_scope(v, nest, nest->axes[k].extent);
        if (nest->axes[k].kind != kind)
            fail_nest(v, nest, "point axes come first, then those of the fold");
        if (kind == CI_AXIS_reduce && ci_expr_depends_on(nest->store, nest->axes[k].var))
            fail_nest(v, nest, "the store depends on a folded axis");
    }
}

static void
note_nest(Verifier *v, const CiNest *nest)
{
    ci_map_put(v->stored, CI_KEY(nest->target), nest->target);
    if (ci_nest_count(nest))
        ci_map_put(v->stored, CI_KEY(ci_nest_count(nest)), ci_nest_count(nest));
}

static void
verify_nest(Verifier *v, const CiNest *nest)
{
    if (!nest->target || !nest->store)
        fail_nest(v, nest, "it stores nowhere");
    verify_axes(v, nest);
    verify_scope(v, nest, nest->store);
    verify_body(v, nest);
    CiDtype yielded = nest->body.ops[nest->body.result].dtype;
    CiDtype made = nest->fold == CI_OP_none ? yielded : ci_op_result(nest->fold, yielded);
    if (made != nest->target->dtype)
        fail_nest(v, nest, ci_format(v->ctx, "it makes %s", ci_dtype_name(made)));
    if (!is_never_run(nest))
        verify_element(v, nest, nest->target, nest->store);
    note_nest(v, nest);
    v->nest++;
}

static void
verify_extern(Verifier *v, const CiExternItem *item)
{
    for (int k = 0; k < item->noperands; k++)
        if (!is_defined(v, item->operands[k]))
            ci_fail(v->ctx, CI_ERR_INTERNAL, "loops %s: %s is read before anything stored it",
                    v->name, item->operands[k]->name);
    for (int k = 0; k <= item->noperands; k++)
        for (int s = 0; s < item->offsets[k]->nsymbols; s++)
            if (!is_in_scope(v, item->offsets[k]->symbols[s]))
                ci_fail(v->ctx, CI_ERR_INTERNAL, "loops %s: %s is used outside its loop", v->name,
                        item->offsets[k]->symbols[s]->name);
    ci_map_put(v->stored, CI_KEY(item->result), item->result);
}

/* Notes what the item stores. */
static void
note_store(void *arg, CiItem *item)
{
    Verifier *v = arg;
    if (item->kind == CI_ITEM_nest)
        note_nest(v, item->nest);
    else if (item->kind == CI_ITEM_extern)
        ci_map_put(v->stored, CI_KEY(item->ext->result), item->ext->result);
}

static void
verify_swaps(const Verifier *v, const CiItem *item)
{
    const CiRegion *region = item->region;
    for (int k = 0; k < region->nswaps; k += 2) {
        const CiBuffer *a = region->swaps[k], *b = region->swaps[k + 1];
        bool is_fit =
            item->kind != CI_ITEM_if && a != b && a->rank == b->rank && a->dtype == b->dtype;
        for (int d = 0; is_fit && d < a->rank; d++)
            is_fit = a->sizes[d] == b->sizes[d] && a->strides[d] == b->strides[d];
        is_fit = is_fit && a->kind == CI_BUFFER_temp && b->kind == CI_BUFFER_temp &&
                 a->is_swapped && b->is_swapped && !a->is_result && !b->is_result;
        /* One of the two may be empty before the first iteration. */
        if (!is_fit || !(ci_map_find(v->stored, CI_KEY(a)) || ci_map_find(v->stored, CI_KEY(b))))
            ci_fail(v->ctx, CI_ERR_INTERNAL, "loops %s: %s and %s cannot exchange their memory",
                    v->name, a->name, b->name);
        ci_map_put(v->stored, CI_KEY(a), (void *)a);
        ci_map_put(v->stored, CI_KEY(b), (void *)b);
    }
}

static void
verify_check(const Verifier *v, const CiItem *item)
{
    const CiCheckItem *check = item->check;
    bool is_symbol = item->kind == CI_ITEM_symbol;
    if (check->buffer->rank || check->buffer->dtype != (is_symbol ? CI_DTYPE_i64 : CI_DTYPE_bool) ||
        !is_defined(v, check->buffer))
        ci_fail(v->ctx, CI_ERR_INTERNAL, "loops %s: %s cannot be %s", v->name, check->buffer->name,
                is_symbol ? "a symbol's value" : "checked");
    if (is_symbol && (check->symbol->symbol_kind != CI_SYMBOL_unbacked || !check->limit))
        ci_fail(v->ctx, CI_ERR_INTERNAL, "loops %s: %s is no unbacked symbol", v->name,
                check->symbol->name);
}

static void verify_items(Verifier *v, const CiItems *items);

static void
verify_region(Verifier *v, const CiItem *item)
{
    const CiRegion *region = item->region;
    const Scope scope = {region->var, v->scope};
    for (int k = 0; region->var && k < region->extent->nsymbols; k++)
        if (!is_in_scope(v, region->extent->symbols[k]))
            ci_fail(v->ctx, CI_ERR_INTERNAL, "loops %s: for %s: %s is used outside its loop",
                    v->name, region->var->name, region->extent->symbols[k]->name);
    v->depth++;
    v->scope = region->var ? &scope : v->scope;
    if (item->kind != CI_ITEM_if) /* an iteration may read what the previous one stored */
        ci_items_visit(&region->body, note_store, v);
    verify_items(v, &region->condition_items);
    verify_items(v, &region->body);
    verify_items(v, &region->other);
    verify_swaps(v, item);
    v->scope = region->var ? scope.outer : v->scope;
    v->depth--;
}

static void
verify_items(Verifier *v, const CiItems *items)
{
    for (int k = 0; k < items->count; k++) {
        const CiItem *item = &items->items[k];
        if (item->kind == CI_ITEM_nest) {
            verify_nest(v, item->nest);
        } else if (item->kind == CI_ITEM_extern) {
            verify_extern(v, item->ext);
        } else if (item->check) {
            verify_check(v, item);
        } else {
            verify_region(v, item);
        }
    }
}

void
ci_loops_verify(const CiLoops *loops)
{
    Verifier v = {.ctx = loops->ctx,
                  .sym = loops->sym,
                  .name = loops->name,
                  .stored = ci_map_new(loops->ctx)};
    ci_items_visit(&loops->items, note_store, &v);
    v.targets = v.stored;
    v.stored = ci_map_new(loops->ctx);
    for (int k = 0; k < loops->nbuffers; k++)
        CI_REQUIRE(loops->ctx, loops->buffers[k]->id == k &&
                                   (k < loops->ninputs) == (loops->buffers[k]->input >= 0));
    verify_items(&v, &loops->items);
    for (int k = 0; k < loops->nresults; k++) {
        const CiBuffer *buffer = loops->results[k].buffer;
        if (buffer->kind == CI_BUFFER_temp && !buffer->is_result)
            ci_fail(loops->ctx, CI_ERR_INTERNAL, "loops %s: %s is returned but no result",
                    loops->name, buffer->name);
    }
}
