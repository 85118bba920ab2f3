/* The pieces of the loop level's text. Loop variables of different nests may share a name: a reader
 * takes whatever symbol has the name, and then each variable in scope takes the place of its namesake. */
#include "ir/loop_text.h"

#include <string.h>

/* ---- head ---- */

CiLoopIo
ci_loop_printer(CiText *out, const CiLoops *loops)
{
    return (CiLoopIo){.io = ci_io_printer(loops->ctx, loops->sym, out),
                        .loops = (CiLoops *)(uintptr_t)loops,
                        .ndeclared = loops->ninputs,
                        .defined = ci_map_new(loops->ctx),
                        .printed = ci_map_new(loops->ctx)};
}

CiLoopIo
ci_loop_reader(CiContext *ctx, const char *text)
{
    CiLoops *loops = ci_loops_new(ctx, ci_sym_new(ctx), "");
    return (CiLoopIo){.io = ci_io_reader(ctx, loops->sym, text),
                        .loops = loops,
                        .buffers = ci_map_new(ctx),
                        .declared = ci_map_new(ctx)};
}

const CiExpr *
ci_loop_io_variable(CiLoopIo *p, const CiExpr *var, const CiExpr **extent)
{
    CiTextIo *f = &p->io;
    const char *name = ci_io_word(f, f->out ? var->name : NULL);
    ci_io_expr(f, "<", extent, "");
    if (f->nscope == CI_MAX_SCOPE)
        ci_lexer_fail(&f->lex, "more than %d loops inside each other", CI_MAX_SCOPE);
    return ci_io_enter_scope(f, f->out ? var : ci_expr_index(f->sym, name, *extent));
}

CiBuffer *
ci_loop_io_buffer(CiLoopIo *p, CiBuffer *buffer)
{
    CiTextIo *f = &p->io;
    const char *name = ci_io_word(f, f->out ? buffer->name : NULL);
    if (!f->out)
        buffer = ci_map_find(p->buffers, CI_KEY(name));
    if (!buffer)
        ci_lexer_fail(&f->lex, "no buffer is called %s", name);
    return buffer;
}

CiBuffer *
ci_loop_io_declaration(CiLoopIo *p, CiBuffer *buffer, bool is_input)
{
    CiTextIo *f = &p->io;
    const char *name = ci_io_word(f, f->out ? buffer->name : NULL);
    CiTextType type = {.kind = CI_KIND_array};
    if (f->out)
        type = (CiTextType){.kind = buffer->kind == CI_BUFFER_scalar ? CI_KIND_python : CI_KIND_array,
                            .dtype = buffer->dtype,
                            .rank = buffer->rank,
                            .sizes = buffer->sizes,
                            .strides = buffer->strides};
    ci_io_text(f, ": ");
    ci_io_type(f, &type);
    if (!f->out) {
        CiBufferKind kind = !is_input                    ? CI_BUFFER_temp
                            : type.kind == CI_KIND_array ? CI_BUFFER_input
                                                         : CI_BUFFER_scalar;
        if (ci_map_find(p->buffers, CI_KEY(name)))
            ci_lexer_fail(&f->lex, "%s is declared twice", name);
        buffer = ci_loops_add_buffer(p->loops, kind, type.dtype, type.rank, type.sizes, type.strides);
        buffer->name = name;
        ci_map_put(p->buffers, CI_KEY(name), buffer);
    }
    buffer->device = ci_io_device(f, buffer->device);
    return buffer;
}

void
ci_loop_io_head(CiLoopIo *p, const char *word)
{
    CiTextIo *f = &p->io;
    CiLoops *loops = p->loops;
    ci_io_text(f, word);
    ci_io_text(f, " ");
    loops->name = ci_io_name(f, loops->name);
    ci_io_text(f, "(");
    if (f->out || !ci_lexer_is(&f->lex, ")"))
        for (int k = 0; ci_io_more(f, k, f->out ? loops->ninputs : 0, NULL); k++)
            ci_loop_io_declaration(p, f->out ? loops->buffers[k] : NULL, true);
    ci_io_text(f, ")");
}

/* ---- bodies and nests ---- */

static void
io_operands(CiTextIo *f, CiScalar *op, int limit)
{
    for (int k = 0; ci_io_more(f, k, op->nargs, "%"); k++) {
        ci_io_text(f, k ? "" : " ");
        if (k == CI_MAX_OPERANDS)
            ci_lexer_fail(&f->lex, "more than %d operands", CI_MAX_OPERANDS);
        op->args[k] = ci_io_value(f, op->args[k], limit);
        op->nargs = f->out ? op->nargs : k + 1;
    }
}

/* An expression stands in brackets, for the % of the next line would go on with it. */
static void
io_scalar(CiLoopIo *p, CiBody *body, int number)
{
    CiTextIo *f = &p->io;
    CiScalar op = f->out ? body->ops[number] : (CiScalar){.op = CI_OP_none};
    const CiExpr *extent;
    ci_io_indent(f);
    ci_io_text(f, "%");
    if (ci_io_int(f, number) != number)
        ci_lexer_fail(&f->lex, "operations are numbered from 0 on");
    ci_io_text(f, ": ");
    op.dtype = ci_io_dtype(f, op.dtype);
    ci_io_text(f, " = ");
    op.op = ci_io_op(f, op.op);
    if (op.op == CI_OP_load) {
        ci_io_text(f, " ");
        op.buffer = ci_loop_io_buffer(p, op.buffer);
    }
    if (op.op == CI_OP_load || op.op == CI_OP_index) { /* the binds in the expression say the operands */
        ci_io_expr(f, op.op == CI_OP_load ? "[" : " [", &op.index, "]");
    } else if (op.op == CI_OP_const) {
        ci_io_text(f, " ");
        op.value = ci_io_const(f, op.dtype, op.value);
    } else if (ci_op_arity(op.op) < 1 && op.op != CI_OP_place) {
        ci_lexer_fail(&f->lex, "%s is no scalar operation", ci_op_name(op.op));
    } else {
        io_operands(f, &op, number);
    }
    if (op.op == CI_OP_bind || op.op == CI_OP_pack) {
        extent = f->out ? op.index->limit : NULL;
        ci_io_text(f, " [");
        op.index = ci_loop_io_variable(p, op.index, &extent);
        ci_io_text(f, "]");
        if (ci_io_flag(f, " into ", op.buffer != NULL))
            op.buffer = ci_loop_io_buffer(p, op.buffer);
    } else if (!f->out && op.index) {
        ci_body_link(f->ctx, body, &op, op.index);
    }
    ci_io_text(f, "\n");
    if (!f->out)
        CI_PUSH(f->ctx, body->ops, body->nops, body->capops, op);
}

void
ci_loop_io_body(CiLoopIo *p, CiNest *nest)
{
    CiTextIo *f = &p->io;
    CiBody *body = &nest->body;
    ci_io_enter(f, "{\n");
    for (int k = 0; f->out ? k < body->nops : ci_lexer_is(&f->lex, "%"); k++)
        io_scalar(p, body, k);
    ci_io_indent(f);
    ci_io_text(f, "yield ");
    body->result = ci_io_value(f, body->result, body->nops);
    ci_io_text(f, "\n");
    ci_io_leave(f, "}");
    nest->locs = ci_io_locs(f, nest->locs, &nest->nlocs);
    ci_io_text(f, "\n");
}

CiFoldOrder
ci_fold_order_io(CiTextIo *f, CiFoldOrder order)
{
    static const char *const names[] = {"", "lanes", "rows", "pairwise", "fused"};
    order.kind = (CiFoldKind)ci_io_choice(f, names, 5, order.kind, "order");
    if (order.kind != CI_FOLD_pairwise)
        return order;
    ci_io_text(f, " ");
    order.ninner = (int)ci_io_int(f, order.ninner);
    ci_io_if(f, " by [", &order.chunk, "]");
    if (ci_io_flag(f, " or ", order.alone != NULL)) {
        order.nalone = (int)ci_io_int(f, order.nalone);
        ci_io_expr(f, " where [", &order.alone, "]");
    }
    return order;
}

bool
ci_loop_is_fold(const CiLoopIo *p)
{
    const CiLexer *lex = &p->io.lex;
    CiOp op = lex->kind == CI_TOKEN_name ? ci_op_find(lex->string) : CI_OP_none;
    CiOpKind kind = ci_op_kind(op);
    return kind == CI_OPKIND_reduce || kind == CI_OPKIND_argreduce || kind == CI_OPKIND_online ||
           kind == CI_OPKIND_scan;
}

bool
ci_loop_io_fold(CiLoopIo *p, CiNest *nest)
{
    CiTextIo *f = &p->io;
    if (f->out ? nest->fold == CI_OP_none : !ci_loop_is_fold(p))
        return false;
    nest->fold = ci_io_op(f, nest->fold);
    if (ci_io_flag(f, ".", nest->order.kind != CI_FOLD_serial))
        nest->order = ci_fold_order_io(f, nest->order);
    return true;
}

CiLexer
ci_loop_io_store(CiLoopIo *p, const CiNest *nest)
{
    CiTextIo *f = &p->io;
    CiLexer *lex = &f->lex;
    const CiExpr *at = nest->store;
    if (f->out) {
        ci_io_expr(f, "[", &at, "]");
        return *lex;
    }
    ci_lexer_expect(lex, "[");
    CiLexer store = *lex;
    for (int depth = 1; depth; ci_lexer_next(lex)) {
        if (lex->kind == CI_TOKEN_end)
            ci_lexer_fail(lex, "a '[' is not closed");
        depth += ci_lexer_is(lex, "[") - ci_lexer_is(lex, "]");
    }
    return store;
}

void
ci_loop_read_store(CiLoopIo *p, CiNest *nest, const CiLexer *store)
{
    CiLexer after = p->io.lex;
    if (p->io.out)
        return;
    p->io.lex = *store;
    ci_io_expr(&p->io, "", &nest->store, "]");
    p->io.lex = after;
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

/* +offset; sizes; strides] */
static void
io_layout(CiTextIo *f, View *view)
{
    int nstrides = view->rank;
    ci_io_expr(f, "", &view->offset, "; ");
    ci_io_exprs(f, &view->rank, &view->sizes, "; ");
    ci_io_exprs(f, &nstrides, &view->strides, "]");
    if (!f->out && nstrides != view->rank)
        ci_lexer_fail(&f->lex, "%d strides for %d axes", nstrides, view->rank);
}

static View
io_view(CiLoopIo *p, View view)
{
    CiTextIo *f = &p->io;
    CiBuffer *buffer = view.buffer = ci_loop_io_buffer(p, view.buffer);
    view.is_whole = !ci_io_flag(f, "[+", !view.is_whole);
    if (!view.is_whole)
        io_layout(f, &view);
    else if (!f->out)
        view = (View){buffer,       true,          ci_expr_const(f->sym, 0),
                      buffer->rank, buffer->sizes, buffer->strides};
    return view;
}

static View
view_of(const CiExternItem *e, int k)
{
    return (View){k < e->noperands ? e->operands[k] : e->result, ci_extern_is_whole(e, k),
                  e->offsets[k], e->ranks[k], e->sizes[k], e->strides[k]};
}

/* ---- items ---- */

static CiExternItem *
read_call(CiTextIo *f)
{
    CiExtern *ext = CI_NEW(f->ctx, CiExtern);
    ext->name = ci_io_name(f, NULL);
    ext->key = "";
    CiOp op = ci_op_find(ext->name);
    bool is_known = ci_op_kind(op) == CI_OPKIND_extern;
    return ci_extern_new(f->ctx, ext, is_known ? op : CI_OP_extern, CI_MAX_RANK);
}

static void
io_operand(CiLoopIo *p, CiExternItem *e, int k)
{
    View view = {0};
    if (!p->io.out && k == CI_MAX_RANK)
        ci_lexer_fail(&p->io.lex, "more than %d operands", CI_MAX_RANK);
    view = io_view(p, p->io.out ? view_of(e, k) : view);
    if (!p->io.out)
        ci_extern_add_operand(e, view.buffer, view.offset, view.rank, view.sizes, view.strides);
}

CiExternItem *
ci_loop_io_extern(CiLoopIo *p, CiExternItem *e)
{
    CiTextIo *f = &p->io;
    if (!f->out)
        e = read_call(f);
    else if (e->op == CI_OP_extern)
        ci_io_name(f, e->ext ? e->ext->name : "");
    else
        ci_io_text(f, ci_op_name(e->op));
    ci_io_text(f, "(");
    if (f->out || !ci_lexer_is(&f->lex, ")"))
        for (int k = 0; ci_io_more(f, k, e->noperands, NULL); k++)
            io_operand(p, e, k);
    ci_io_text(f, ")");
    CiExtern *ext = (CiExtern *)(uintptr_t)e->ext;
    if (ci_io_flag(f, " key ", ext && ext->key && *ext->key))
        ext->key = ci_io_string(f, ext->key);
    View part = f->out ? view_of(e, e->noperands) : (View){0};
    if (ci_io_flag(f, " into [+", !part.is_whole)) {
        io_layout(f, &part);
        if (!f->out)
            ci_extern_set_part(e, part.offset, part.rank, part.sizes, part.strides);
    }
    return e;
}

CiCheckItem *
ci_loop_io_check(CiLoopIo *p, CiCheckItem *check)
{
    CiTextIo *f = &p->io;
    check = f->out ? check : CI_NEW(f->ctx, CiCheckItem);
    if (ci_io_flag(f, "check ", !check->symbol)) {
        check->buffer = ci_loop_io_buffer(p, check->buffer);
        ci_io_text(f, " ");
        check->why = ci_io_string(f, check->why);
    } else {
        const char *name = ci_io_word(f, f->out ? check->symbol->name : NULL);
        ci_io_text(f, " = symbol ");
        check->buffer = ci_loop_io_buffer(p, check->buffer);
        check->symbol = ci_io_bounds(f, name, check->symbol, &check->limit);
        if (!f->out)
            ci_map_put(p->declared, CI_KEY(check->symbol->name), p->loops);
    }
    check->loc = ci_io_loc(f, "  ", check->loc);
    ci_io_text(f, "\n");
    return check;
}

/* `check`, or `u0 =` of what is no buffer. */
bool
ci_loop_is_check(const CiLoopIo *p)
{
    CiLexer ahead = p->io.lex;
    if (ci_lexer_is(&ahead, "check"))
        return true;
    if (ahead.kind != CI_TOKEN_name || ci_map_find(p->buffers, CI_KEY(ahead.string)))
        return false;
    ci_lexer_next(&ahead);
    return ci_lexer_is(&ahead, "=");
}

void
ci_loop_print_defined(CiLoopIo *p, const CiExpr *symbol)
{
    CiCheckItem *check = ci_map_find(p->defined, CI_KEY(symbol));
    if (!check || ci_map_find(p->printed, CI_KEY(symbol)))
        return;
    ci_map_put(p->printed, CI_KEY(symbol), (void *)symbol);
    for (int k = 0; k < check->limit->nsymbols; k++)
        ci_loop_print_defined(p, check->limit->symbols[k]);
    ci_io_indent(&p->io);
    ci_io_bounded(&p->io, symbol, &check->limit);
    ci_io_text(&p->io, "\n");
}

bool
ci_loop_read_defined(CiLoopIo *p)
{
    CiLexer ahead = p->io.lex, *here = CI_NEW(p->io.ctx, CiLexer);
    const CiExpr *limit;
    *here = ahead;
    ci_lexer_next(&ahead);
    if (!ci_lexer_is(&ahead, "in"))
        return false;
    uint64_t name = CI_KEY(ci_io_bounded(&p->io, NULL, &limit)->name);
    if (!ci_map_find(p->declared, name))
        ci_map_put(p->declared, name, here);
    return true;
}

/* Refuses a text that declares a symbol which no check defines. */
static void
require_definitions(CiLoopIo *p)
{
    for (int k = 0; k < ci_map_count(p->declared); k++) {
        CiLexer *where = ci_map_value_at(p->declared, k);
        if ((void *)where != p->loops)
            ci_lexer_fail(where, "no line defines the symbol");
    }
}

void
ci_loop_io_swaps(CiLoopIo *p, CiRegion *region)
{
    CiTextIo *f = &p->io;
    for (int k = 0; f->out ? k < region->nswaps : ci_lexer_is(&f->lex, "swap"); k += 2) {
        ci_io_indent(f);
        for (int side = 0; side < 2; side++) {
            ci_io_text(f, side ? ", " : "swap ");
            CiBuffer *buffer = ci_loop_io_buffer(p, f->out ? region->swaps[k + side] : NULL);
            buffer->is_swapped = true;
            if (!f->out)
                CI_PUSH(f->ctx, region->swaps, region->nswaps, region->capswaps, buffer);
        }
        ci_io_text(f, "\n");
    }
}

/* ---- results ---- */

static CiResult
io_result(CiLoopIo *p, CiResult r)
{
    CiTextIo *f = &p->io;
    r.kind = ci_io_kind(f, r.kind);
    View view = {r.buffer, r.is_whole, r.offset, r.rank, r.sizes, r.strides};
    view = io_view(p, view);
    return (CiResult){.buffer = view.buffer,
                      .dtype = view.buffer->dtype,
                      .kind = r.kind,
                      .is_whole = view.is_whole,
                      .offset = view.offset,
                      .rank = view.rank,
                      .sizes = view.sizes,
                      .strides = view.strides};
}

void
ci_loop_io_end(CiLoopIo *p)
{
    CiTextIo *f = &p->io;
    CiLoops *loops = p->loops;
    ci_io_indent(f);
    ci_io_text(f, "return");
    ci_io_text(f, f->out && !loops->nresults ? "" : " ");
    for (int k = 0; f->out || k || f->lex.kind == CI_TOKEN_name; k++) {
        if (!ci_io_more(f, k, loops->nresults, NULL))
            break;
        CiResult result =
            io_result(p, f->out ? loops->results[k] : (CiResult){.kind = CI_KIND_array});
        if (f->out)
            continue;
        result.buffer->is_result = result.buffer->kind == CI_BUFFER_temp;
        CI_PUSH(f->ctx, loops->results, loops->nresults, loops->capresults, result);
    }
    ci_io_text(f, "\n");
    ci_io_end(f);
    if (!f->out)
        require_definitions(p);
}
