/* Reading the loop level's text form.
 *
 * Loop variables of different nests may share a name: an expression is read with whatever symbol
 * has the name, then each variable in scope takes the place of its namesake. */
#include "ir/loop_parse.h"

#include "ir/text_common.h"

#include <string.h>

/* Inner loops may have taken the names; asking for a variable again gives the name back to it. */
void
ci_loop_leave_scope(CiLoopParser *p, int outside)
{
    p->nscope = outside;
    for (int k = 0; k < outside; k++)
        ci_expr_index(p->loops->sym, p->scope[k]->name, p->scope[k]->limit);
}

static const CiExpr *
enter_scope(CiLoopParser *p, const CiExpr *variable)
{
    if (p->nscope == CI_MAX_SCOPE)
        ci_lexer_fail(&p->lex, "more than %d loops inside each other", CI_MAX_SCOPE);
    p->scope[p->nscope++] = variable;
    return variable;
}

const CiExpr *
ci_loop_parse_expr(CiLoopParser *p)
{
    return ci_expr_parse(p->loops->sym, &p->lex);
}

const CiExpr *
ci_loop_parse_variable(CiLoopParser *p, const CiExpr **extent)
{
    const char *name = ci_lexer_expect_name(&p->lex);
    ci_lexer_expect(&p->lex, "<");
    *extent = ci_loop_parse_expr(p);
    return enter_scope(p, ci_expr_index(p->loops->sym, name, *extent));
}

CiBuffer *
ci_loop_find_buffer(CiLoopParser *p)
{
    const char *name = ci_lexer_expect_name(&p->lex);
    CiBuffer *buffer = ci_map_find(p->buffers, CI_KEY(name));
    if (!buffer)
        ci_lexer_fail(&p->lex, "no buffer is called %s", name);
    return buffer;
}

CiBuffer *
ci_loop_parse_declaration(CiLoopParser *p, const char *name, bool is_input)
{
    ci_lexer_expect(&p->lex, ":");
    CiFormType type = ci_form_parse_type(p->loops->sym, &p->lex);
    CiBufferKind kind = !is_input                    ? CI_BUFFER_temp
                        : type.kind == CI_KIND_array ? CI_BUFFER_input
                                                     : CI_BUFFER_scalar;
    if (ci_map_find(p->buffers, CI_KEY(name)))
        ci_lexer_fail(&p->lex, "%s is declared twice", name);
    CiBuffer *buffer =
        ci_loops_add_buffer(p->loops, kind, type.dtype, type.rank, type.sizes, type.strides);
    buffer->name = name;
    buffer->device = ci_form_parse_device(&p->lex);
    ci_map_put(p->buffers, CI_KEY(name), buffer);
    return buffer;
}

/* ---- bodies ---- */

static int
parse_ref(CiLoopParser *p, int limit)
{
    ci_lexer_expect(&p->lex, "%");
    int64_t position = ci_lexer_expect_int(&p->lex);
    if (position < 0 || position >= limit)
        ci_lexer_fail(&p->lex, "%%%d is not defined yet", (int)position);
    return (int)position;
}

static void
parse_operands(CiLoopParser *p, CiScalar *op, int limit)
{
    if (!ci_lexer_is(&p->lex, "%"))
        return;
    do {
        if (op->nargs == CI_MAX_OPERANDS)
            ci_lexer_fail(&p->lex, "more than %d operands", CI_MAX_OPERANDS);
        op->args[op->nargs++] = parse_ref(p, limit);
    } while (ci_lexer_accept(&p->lex, ","));
}

/* An expression stands in brackets, for the % of the next line would go on with it. */
static void
parse_scalar(CiLoopParser *p, CiBody *body)
{
    CiLexer *lex = &p->lex;
    CiScalar op = {.op = CI_OP_none};
    const CiExpr *extent;
    ci_lexer_expect(lex, "%");
    if (ci_lexer_expect_int(lex) != body->nops)
        ci_lexer_fail(lex, "operations are numbered from 0 on");
    ci_lexer_expect(lex, ":");
    const char *dtype = ci_lexer_expect_name(lex);
    op.dtype = ci_dtype_find(dtype);
    if (op.dtype == CI_DTYPE_none)
        ci_lexer_fail(lex, "no dtype is called %s", dtype);
    ci_lexer_expect(lex, "=");
    const char *name = ci_lexer_expect_name(lex);
    op.op = ci_op_find(name);
    if (op.op == CI_OP_load)
        op.buffer = ci_loop_find_buffer(p);
    if (op.op == CI_OP_load || op.op == CI_OP_index) {
        ci_lexer_expect(lex, "[");
        op.index = ci_loop_parse_expr(p);
        ci_lexer_expect(lex, "]");
    } else if (op.op == CI_OP_const) {
        op.value = ci_const_parse(lex, op.dtype);
    } else if (op.op == CI_OP_none || (ci_op_arity(op.op) < 1 && op.op != CI_OP_place)) {
        ci_lexer_fail(lex, "no scalar operation is called %s", name);
    } else {
        parse_operands(p, &op, body->nops);
    }
    if (op.op == CI_OP_bind || op.op == CI_OP_pack) {
        ci_lexer_expect(lex, "[");
        op.index = ci_loop_parse_variable(p, &extent);
        ci_lexer_expect(lex, "]");
        if (ci_lexer_accept(lex, "into"))
            op.buffer = ci_loop_find_buffer(p);
    } else if (op.index)
        ci_body_link(lex->ctx, body, &op, op.index);
    CI_PUSH(lex->ctx, body->ops, body->nops, body->capops, op);
}

void
ci_loop_parse_body(CiLoopParser *p, CiBody *body)
{
    ci_lexer_expect(&p->lex, "{");
    while (ci_lexer_is(&p->lex, "%"))
        parse_scalar(p, body);
    ci_lexer_expect(&p->lex, "yield");
    body->result = parse_ref(p, body->nops);
    ci_lexer_expect(&p->lex, "}");
}

/* ---- nests ---- */

static void
parse_axes(CiLoopParser *p, CiNest *nest, CiAxisKind kind, int *capacity)
{
    do {
        CiAxis axis = {.kind = kind};
        axis.var = ci_loop_parse_variable(p, &axis.extent);
        CI_PUSH(p->lex.ctx, nest->axes, nest->naxes, *capacity, axis);
    } while (ci_lexer_accept(&p->lex, ","));
}

static bool
is_fold(CiOp op)
{
    CiOpKind kind = ci_op_kind(op);
    return kind == CI_OPKIND_reduce || kind == CI_OPKIND_argreduce || kind == CI_OPKIND_online ||
           kind == CI_OPKIND_scan;
}

/* lanes; rows; fused; pairwise 1 by [8192] */
CiFoldOrder
ci_fold_order_parse(CiSym *sym, CiLexer *lex)
{
    CiFoldOrder order = {.kind = CI_FOLD_lanes};
    if (ci_lexer_accept(lex, "rows")) {
        order.kind = CI_FOLD_rows;
    } else if (ci_lexer_accept(lex, "fused")) {
        order.kind = CI_FOLD_fused;
    } else if (ci_lexer_accept(lex, "pairwise")) {
        order.kind = CI_FOLD_pairwise;
        order.ninner = (int)ci_lexer_expect_int(lex);
        if (ci_lexer_accept(lex, "by")) {
            ci_lexer_expect(lex, "[");
            order.chunk = ci_expr_parse(sym, lex);
            ci_lexer_expect(lex, "]");
        }
        if (ci_lexer_accept(lex, "or")) {
            order.nalone = (int)ci_lexer_expect_int(lex);
            ci_lexer_expect(lex, "where");
            ci_lexer_expect(lex, "[");
            order.alone = ci_expr_parse(sym, lex);
            ci_lexer_expect(lex, "]");
        }
    } else {
        ci_lexer_expect(lex, "lanes");
    }
    return order;
}

bool
ci_loop_parse_fold(CiLoopParser *p, CiNest *nest)
{
    CiLexer *lex = &p->lex;
    CiOp fold = lex->kind == CI_TOKEN_name ? ci_op_find(lex->string) : CI_OP_none;
    if (!is_fold(fold))
        return false;
    nest->fold = fold;
    ci_lexer_next(lex);
    if (ci_lexer_accept(lex, "."))
        nest->order = ci_fold_order_parse(p->loops->sym, lex);
    return true;
}

static void
set_plain_store(CiLoopParser *p, CiNest *nest)
{
    CiSym *sym = p->loops->sym;
    const CiBuffer *target = nest->target;
    int nstored = ci_op_kind(nest->fold) == CI_OPKIND_scan ? nest->naxes : nest->npoint;
    if (nstored != target->rank)
        ci_lexer_fail(&p->lex, "%s has %d axes, its nest %d", target->name, target->rank, nstored);
    nest->store = ci_expr_const(sym, 0);
    for (int k = 0; k < nstored; k++)
        nest->store =
            ci_expr_add(sym, nest->store, ci_expr_mul(sym, nest->axes[k].var, target->strides[k]));
}

void
ci_loop_parse_store(CiLoopParser *p, CiNest *nest, const CiLexer *store)
{
    CiLexer after = p->lex;
    p->lex = *store;
    nest->store = ci_loop_parse_expr(p);
    if (!ci_lexer_is(&p->lex, "]"))
        ci_lexer_fail(&p->lex, "expected ']'");
    p->lex = after;
}

CiLexer
ci_loop_skip_store(CiLoopParser *p)
{
    CiLexer *lex = &p->lex;
    ci_lexer_expect(lex, "[");
    CiLexer store = *lex;
    for (int depth = 1; depth; ci_lexer_next(lex)) {
        if (lex->kind == CI_TOKEN_end)
            ci_lexer_fail(lex, "a '[' is not closed");
        depth += ci_lexer_is(lex, "[") - ci_lexer_is(lex, "]");
    }
    return store;
}

/* `for` has been read. */
static void
parse_loops_of(CiLoopParser *p, CiNest *nest, const CiLexer *store)
{
    CiLexer *lex = &p->lex;
    int capacity = 0, outside = p->nscope;
    if (lex->kind == CI_TOKEN_name && !is_fold(ci_op_find(lex->string)))
        parse_axes(p, nest, CI_AXIS_point, &capacity);
    nest->npoint = nest->naxes;
    if (ci_loop_parse_fold(p, nest) && lex->kind == CI_TOKEN_name)
        parse_axes(p, nest,
                   ci_op_kind(nest->fold) == CI_OPKIND_scan ? CI_AXIS_scan : CI_AXIS_reduce,
                   &capacity);
    ci_loop_parse_body(p, &nest->body);
    while (ci_lexer_is(lex, "@"))
        CI_PUSH(lex->ctx, nest->locs, nest->nlocs, nest->caplocs, ci_form_parse_loc(lex));
    if (store)
        ci_loop_parse_store(p, nest, store);
    else
        set_plain_store(p, nest);
    ci_loop_leave_scope(p, outside);
}

/* ---- views of buffers ---- */

typedef struct View {
    CiBuffer *buffer;
    bool is_whole;
    const CiExpr *offset;
    int rank;
    const CiExpr *const *sizes;
    const CiExpr *const *strides;
} View;

/* [+offset; sizes; strides] */
static void
parse_layout(CiLoopParser *p, View *view)
{
    CiLexer *lex = &p->lex;
    int nstrides;
    ci_lexer_expect(lex, "[");
    ci_lexer_expect(lex, "+");
    view->offset = ci_loop_parse_expr(p);
    ci_lexer_expect(lex, ";");
    view->sizes = ci_form_parse_exprs(p->loops->sym, lex, ";", &view->rank);
    ci_lexer_expect(lex, ";");
    view->strides = ci_form_parse_exprs(p->loops->sym, lex, "]", &nstrides);
    ci_lexer_expect(lex, "]");
    if (nstrides != view->rank)
        ci_lexer_fail(lex, "%d strides for %d axes", nstrides, view->rank);
}

static View
parse_view(CiLoopParser *p)
{
    View view = {.buffer = ci_loop_find_buffer(p),
                 .is_whole = true,
                 .offset = ci_expr_const(p->loops->sym, 0)};
    view.rank = view.buffer->rank;
    view.sizes = view.buffer->sizes;
    view.strides = view.buffer->strides;
    view.is_whole = !ci_lexer_is(&p->lex, "[");
    if (!view.is_whole)
        parse_layout(p, &view);
    return view;
}

/* ---- items ---- */

CiExternItem *
ci_loop_parse_extern(CiLoopParser *p)
{
    CiContext *ctx = p->lex.ctx;
    CiExtern *ext = CI_NEW(ctx, CiExtern);
    ext->name = ci_form_parse_name(&p->lex);
    ext->key = "";
    CiOp op = ci_op_find(ext->name);
    bool is_known = ci_op_kind(op) == CI_OPKIND_extern;
    CiExternItem *item = ci_extern_new(ctx, ext, is_known ? op : CI_OP_extern, CI_MAX_RANK);
    ci_lexer_expect(&p->lex, "(");
    while (!ci_lexer_accept(&p->lex, ")")) {
        if (item->noperands)
            ci_lexer_expect(&p->lex, ",");
        if (item->noperands == CI_MAX_RANK)
            ci_lexer_fail(&p->lex, "more than %d operands", CI_MAX_RANK);
        View view = parse_view(p);
        ci_extern_add_operand(item, view.buffer, view.offset, view.rank, view.sizes, view.strides);
    }
    if (ci_lexer_accept(&p->lex, "key"))
        ext->key = ci_form_parse_name(&p->lex);
    if (ci_lexer_accept(&p->lex, "into")) {
        View view = {0};
        parse_layout(p, &view);
        ci_extern_set_part(item, view.offset, view.rank, view.sizes, view.strides);
    }
    item->loc = ci_form_parse_loc(&p->lex);
    return item;
}

static void
mark_written(CiBuffer *buffer)
{
    buffer->is_written = buffer->kind == CI_BUFFER_input;
}

CiItem
ci_loop_parse_check(CiLoopParser *p)
{
    CiLexer *lex = &p->lex;
    CiItem item = {.kind = CI_ITEM_symbol, .check = CI_NEW(lex->ctx, CiCheckItem)};
    if (ci_lexer_accept(lex, "check")) {
        item.kind = CI_ITEM_check;
        item.check->buffer = ci_loop_find_buffer(p);
        item.check->why = ci_form_parse_name(lex);
    } else {
        CiLexer name = *lex; /* the symbol, which its range declares */
        ci_lexer_next(lex);
        ci_lexer_expect(lex, "=");
        ci_lexer_expect(lex, "symbol");
        item.check->buffer = ci_loop_find_buffer(p);
        item.check->symbol =
            ci_form_parse_range(p->loops->sym, lex, name.string, &item.check->limit);
    }
    item.check->loc = ci_form_parse_loc(lex);
    return item;
}

/* `check`, or `u0 =` of what is no buffer. */
bool
ci_loop_is_check(CiLoopParser *p)
{
    CiLexer ahead = p->lex;
    if (ci_lexer_is(&ahead, "check"))
        return true;
    if (ahead.kind != CI_TOKEN_name || ci_map_find(p->buffers, CI_KEY(ahead.string)))
        return false;
    ci_lexer_next(&ahead);
    return ci_lexer_is(&ahead, "=");
}

/* name: type | name: type = … | name = extern … | name[store] = for … */
static void
parse_store(CiLoopParser *p, CiItems *items)
{
    CiLexer *lex = &p->lex;
    const char *name = lex->string;
    CiBuffer *buffer = ci_map_find(p->buffers, CI_KEY(name));
    CiLexer store;
    bool has_store = false;
    if (!buffer) {
        ci_lexer_next(lex);
        buffer = ci_loop_parse_declaration(p, name, false);
        if (!ci_lexer_is(lex, "="))
            return;
    } else {
        ci_lexer_next(lex);
        has_store = ci_lexer_is(lex, "[");
        if (has_store)
            store = ci_loop_skip_store(p);
    }
    ci_lexer_expect(lex, "=");
    mark_written(buffer);
    if (ci_lexer_accept(lex, "extern")) {
        CiItem item = {.kind = CI_ITEM_extern, .ext = ci_loop_parse_extern(p)};
        ci_extern_set_result(p->loops->sym, item.ext, buffer);
        CI_PUSH(lex->ctx, items->items, items->count, items->capacity, item);
        return;
    }
    CiNest *nest = ci_loops_add_nest(p->loops, items);
    nest->target = buffer;
    if (!ci_lexer_is(lex, "for") && !ci_lexer_is(lex, "apart") && !ci_lexer_is(lex, "distinct")) {
        nest->is_combined = true;
        nest->combine = ci_op_find(ci_lexer_expect_name(lex));
    }
    nest->is_apart = ci_lexer_accept(lex, "apart");
    nest->is_distinct = ci_lexer_accept(lex, "distinct");
    ci_lexer_expect(lex, "for");
    parse_loops_of(p, nest, has_store ? &store : NULL);
}

static void parse_items(CiLoopParser *p, CiItems *items);

/* swap buf1, buf2 */
void
ci_loop_parse_swaps(CiLoopParser *p, CiRegion *region)
{
    while (ci_lexer_accept(&p->lex, "swap")) {
        for (int k = 0; k < 2; k++) {
            if (k)
                ci_lexer_expect(&p->lex, ",");
            CiBuffer *buffer = ci_loop_find_buffer(p);
            buffer->is_swapped = true;
            CI_PUSH(p->lex.ctx, region->swaps, region->nswaps, region->capswaps, buffer);
        }
    }
}

static void
parse_inner(CiLoopParser *p, CiRegion *region, CiItems *items)
{
    ci_form_enter(&p->lex, &p->depth);
    parse_items(p, items);
    ci_loop_parse_swaps(p, region);
    ci_form_leave(&p->lex, &p->depth);
}

static void
parse_region(CiLoopParser *p, CiItems *items)
{
    CiLexer *lex = &p->lex;
    CiItem item = {.kind = CI_ITEM_for, .region = CI_NEW(lex->ctx, CiRegion)};
    CiRegion *region = item.region;
    int outside = p->nscope;
    if (ci_lexer_accept(lex, "for")) {
        region->var = ci_loop_parse_variable(p, &region->extent);
        region->is_parallel = ci_lexer_accept(lex, "parallel");
        parse_inner(p, region, &region->body);
    } else if (ci_lexer_accept(lex, "while")) {
        item.kind = CI_ITEM_while;
        parse_inner(p, region, &region->condition_items);
        ci_lexer_expect(lex, "test");
        region->condition = ci_loop_find_buffer(p);
        parse_inner(p, region, &region->body);
    } else {
        item.kind = CI_ITEM_if;
        ci_lexer_expect(lex, "if");
        region->condition = ci_loop_find_buffer(p);
        parse_inner(p, region, &region->body);
        ci_lexer_expect(lex, "else");
        parse_inner(p, region, &region->other);
    }
    region->kind = item.kind;
    ci_loop_leave_scope(p, outside);
    CI_PUSH(lex->ctx, items->items, items->count, items->capacity, item);
}

/* u0 in [0, s0): of a symbol that a size names before its check. */
static bool
is_range(CiLoopParser *p)
{
    CiLexer ahead = p->lex;
    ci_lexer_next(&ahead);
    return ci_lexer_is(&ahead, "in");
}

static void
parse_items(CiLoopParser *p, CiItems *items)
{
    while (p->lex.kind == CI_TOKEN_name && !ci_lexer_is(&p->lex, "return") &&
           !ci_lexer_is(&p->lex, "swap")) {
        if (ci_lexer_is(&p->lex, "for") || ci_lexer_is(&p->lex, "while") ||
            ci_lexer_is(&p->lex, "if"))
            parse_region(p, items);
        else if (is_range(p)) {
            const CiExpr *limit;
            const char *name = ci_lexer_expect_name(&p->lex);
            (void)ci_form_parse_range(p->loops->sym, &p->lex, name, &limit);
        } else if (ci_loop_is_check(p)) {
            CiItem item = ci_loop_parse_check(p);
            CI_PUSH(p->lex.ctx, items->items, items->count, items->capacity, item);
        } else
            parse_store(p, items);
    }
}

static void
parse_results(CiLoopParser *p)
{
    CiLoops *loops = p->loops;
    ci_lexer_expect(&p->lex, "return");
    while (p->lex.kind == CI_TOKEN_name) {
        CiResult result = {.kind = CI_KIND_array};
        if (ci_lexer_accept(&p->lex, "scalar"))
            result.kind = CI_KIND_scalar;
        else if (ci_lexer_accept(&p->lex, "python"))
            result.kind = CI_KIND_python;
        View view = parse_view(p);
        result.buffer = view.buffer;
        result.dtype = view.buffer->dtype;
        result.is_whole = view.is_whole;
        result.offset = view.offset;
        result.rank = view.rank;
        result.sizes = view.sizes;
        result.strides = view.strides;
        view.buffer->is_result = view.buffer->kind == CI_BUFFER_temp;
        CI_PUSH(p->lex.ctx, loops->results, loops->nresults, loops->capresults, result);
        if (!ci_lexer_accept(&p->lex, ","))
            break;
    }
}

CiLoopParser
ci_loop_parser(CiContext *ctx, const char *text)
{
    CiLoopParser p = {.loops = ci_loops_new(ctx, ci_sym_new(ctx), ""), .buffers = ci_map_new(ctx)};
    ci_lexer_init(&p.lex, ctx, text);
    return p;
}

void
ci_loop_parse_head(CiLoopParser *p, const char *word)
{
    CiLexer *lex = &p->lex;
    if (ci_lexer_accept(lex, "symbols")) {
        ci_lexer_expect(lex, "{");
        do {
            const CiExpr *symbol = ci_form_parse_symbol(p->loops->sym, lex);
            if (symbol->kind == CI_EXPR_symbol && symbol->symbol_kind == CI_SYMBOL_index)
                enter_scope(p, symbol);
        } while (ci_lexer_accept(lex, ","));
        ci_lexer_expect(lex, "}");
    }
    ci_lexer_expect(lex, word);
    p->loops->name = ci_form_parse_name(lex);
    ci_lexer_expect(lex, "(");
    while (!ci_lexer_accept(lex, ")")) {
        if (p->loops->ninputs)
            ci_lexer_expect(lex, ",");
        ci_loop_parse_declaration(p, ci_lexer_expect_name(lex), true);
    }
}

void
ci_loop_parse_end(CiLoopParser *p)
{
    parse_results(p);
    ci_lexer_expect(&p->lex, "}");
    if (p->lex.kind != CI_TOKEN_end)
        ci_lexer_fail(&p->lex, "unexpected text after the end");
}

static void
parse_whole(CiContext *ctx, void *arg)
{
    CiLoopParser *p = arg;
    (void)ctx;
    ci_loop_parse_head(p, "loops");
    ci_lexer_expect(&p->lex, "{");
    parse_items(p, &p->loops->items);
    ci_loop_parse_end(p);
}

CiLoops *
ci_loops_parse(CiContext *ctx, const char *text)
{
    CiLoopParser p = ci_loop_parser(ctx, text);
    ci_lexer_run(ctx, &p.lex, parse_whole, &p);
    return p.loops;
}
