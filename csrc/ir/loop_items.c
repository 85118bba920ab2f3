/* Loops as text. Invariant: parse(print(loops)) prints the same text. A buffer is declared where it
 * is first stored when the store is the plain one, else on a line of its own; declarations keep the
 * order of ids. */
#include "ir/loop_text.h"

#include <string.h>

/* ---- head ---- */

/* Symbols that are declared where they are defined, with what defines them. */
static void
note_defined(void *arg, CiItem *item)
{
    CiMap *defined = arg;
    if (item->kind == CI_ITEM_symbol)
        ci_map_put(defined, CI_KEY(item->check->symbol), item->check);
}

/* ---- nests ---- */

static void
io_axes(CiLoopIo *p, CiNest *nest, CiAxisKind kind, int *capacity)
{
    CiTextIo *f = &p->io;
    int from = kind == CI_AXIS_point ? 0 : nest->npoint;
    int count = (kind == CI_AXIS_point ? nest->npoint : nest->naxes) - from;
    if (!f->out && (f->lex.kind != CI_TOKEN_name || (kind == CI_AXIS_point && ci_loop_is_fold(p))))
        return;
    for (int k = 0; ci_io_more(f, k, count, NULL); k++) {
        CiAxis axis = f->out ? nest->axes[from + k] : (CiAxis){.kind = kind};
        ci_io_text(f, k ? "" : " ");
        axis.var = ci_loop_io_variable(p, axis.var, &axis.extent);
        if (!f->out)
            CI_PUSH(f->ctx, nest->axes, nest->naxes, *capacity, axis);
    }
}

/* The store that a declaration at the nest implies: each point axis is the buffer's axis of that
 * number. NULL: there are not as many. */
static const CiExpr *
plain_store(CiSym *sym, const CiNest *nest)
{
    const CiBuffer *target = nest->target;
    int nstored = ci_nest_is_scan(nest) ? nest->naxes : nest->npoint;
    const CiExpr *plain = ci_expr_const(sym, 0);
    for (int k = 0; nstored == target->rank && k < nstored; k++)
        plain = ci_expr_add(sym, plain, ci_expr_mul(sym, nest->axes[k].var, target->strides[k]));
    return nstored == target->rank ? plain : NULL;
}

/* add apart for i0<4 sum r0<8 { … } */
static void
io_loops_of(CiLoopIo *p, CiNest *nest, const CiLexer *store)
{
    CiTextIo *f = &p->io;
    const CiLexer *lex = &f->lex;
    int capacity = 0, outside = f->nscope;
    if (!f->out)
        nest->is_combined =
            !ci_lexer_is(lex, "for") && !ci_lexer_is(lex, "apart") && !ci_lexer_is(lex, "distinct");
    if (nest->is_combined) {
        nest->combine = ci_io_op(f, nest->combine);
        ci_io_text(f, " ");
    }
    nest->is_separate = ci_io_flag(f, "apart ", nest->is_separate);
    nest->is_distinct = ci_io_flag(f, "distinct ", nest->is_distinct);
    ci_io_text(f, "for");
    io_axes(p, nest, CI_AXIS_point, &capacity);
    nest->npoint = f->out ? nest->npoint : nest->naxes;
    ci_io_text(f, " ");
    if (ci_loop_io_fold(p, nest)) {
        io_axes(p, nest, ci_nest_is_scan(nest) ? CI_AXIS_scan : CI_AXIS_reduce, &capacity);
        ci_io_text(f, " ");
    }
    ci_loop_io_body(p, nest);
    nest->caplocs = nest->nlocs;
    if (store)
        ci_loop_read_store(p, nest, store);
    else if (!f->out)
        nest->store = plain_store(f->sym, nest);
    if (!nest->store)
        ci_lexer_fail(&f->lex, "%s has another number of axes than its nest", nest->target->name);
    ci_io_leave_scope(f, outside);
}

/* ---- items, printed ---- */

/* Symbols in the sizes of a buffer that is declared before the check that finds their values. */
static void
print_defined_of(CiLoopIo *p, const CiBuffer *buffer)
{
    for (int k = 0; k < buffer->rank; k++)
        for (int n = 0; n < buffer->sizes[k]->nsymbols; n++)
            ci_loop_print_defined(p, buffer->sizes[k]->symbols[n]);
}

static void
declare_up_to(CiLoopIo *p, int end)
{
    for (; p->ndeclared < end; p->ndeclared++) {
        print_defined_of(p, p->loops->buffers[p->ndeclared]);
        ci_io_indent(&p->io);
        ci_loop_io_declaration(p, p->loops->buffers[p->ndeclared], false);
        ci_io_text(&p->io, "\n");
    }
}

/* `buf0: f32[3]` where that has not been declared, else `buf0`. */
static bool
print_target(CiLoopIo *p, CiBuffer *target, bool may_declare)
{
    bool is_new = may_declare && target->id >= p->ndeclared;
    declare_up_to(p, target->id + !is_new);
    ci_io_indent(&p->io);
    if (is_new)
        ci_loop_io_declaration(p, target, false);
    else
        ci_loop_io_buffer(p, target);
    p->ndeclared += is_new;
    return is_new;
}

static void
print_nest(CiLoopIo *p, CiNest *nest)
{
    CiLexer store = p->io.lex;
    if (ci_nest_count(nest))
        declare_up_to(p, ci_nest_count(nest)->id + 1);
    if (!print_target(p, nest->target, plain_store(p->io.sym, nest) == nest->store))
        ci_loop_io_store(p, nest);
    ci_io_text(&p->io, " = ");
    io_loops_of(p, nest, &store);
}

static int
last_buffer_of(const CiItems *items)
{
    int last = -1;
    for (int k = 0; k < items->count; k++) {
        const CiItem *item = &items->items[k];
        int id = item->kind == CI_ITEM_nest     ? item->nest->target->id
                 : item->kind == CI_ITEM_extern ? item->ext->result->id
                                                : -1;
        last = id > last ? id : last;
    }
    return last;
}

/* Of a size that a loop around its nest, or data, decides. */
static bool
varies(const CiBuffer *buffer)
{
    for (int k = 0; k < buffer->rank; k++)
        for (int n = 0; n < buffer->sizes[k]->nsymbols; n++)
            if (buffer->sizes[k]->symbols[n]->symbol_kind == CI_SYMBOL_index ||
                buffer->sizes[k]->symbols[n]->symbol_kind == CI_SYMBOL_unbacked)
                return true;
    return false;
}


static void io_items(CiLoopIo *p, CiItems *items);

/* A buffer that a region stores lives outside of it, and is declared before, where its size is
 * known there. */
static void
declare_before_region(CiLoopIo *p, const CiRegion *region)
{
    const CiItems *inner[3] = {&region->condition_items, &region->body, &region->other};
    for (int k = 0; k < 3; k++) {
        int end = p->ndeclared;
        while (end <= last_buffer_of(inner[k]) && !varies(p->loops->buffers[end]))
            end++;
        declare_up_to(p, end);
    }
}

/* ---- items ---- */

static void
io_inner(CiLoopIo *p, CiRegion *region, CiItems *items, const char *close)
{
    ci_io_enter(&p->io, " {\n");
    io_items(p, items);
    if (items == &region->body)
        ci_loop_io_swaps(p, region);
    ci_io_leave(&p->io, close);
}

static void
io_region(CiLoopIo *p, CiItem *item)
{
    CiTextIo *f = &p->io;
    CiRegion *region = item->region;
    int outside = f->nscope;
    if (ci_io_flag(f, "for ", item->kind == CI_ITEM_for)) {
        item->kind = CI_ITEM_for;
        region->var = ci_loop_io_variable(p, region->var, &region->extent);
        region->is_parallel = ci_io_flag(f, " parallel", region->is_parallel);
        io_inner(p, region, &region->body, "}\n");
    } else if (ci_io_flag(f, "while", item->kind == CI_ITEM_while)) {
        item->kind = CI_ITEM_while;
        io_inner(p, region, &region->condition_items, "} test ");
        region->condition = ci_loop_io_buffer(p, region->condition);
        io_inner(p, region, &region->body, "}\n");
    } else {
        item->kind = CI_ITEM_if;
        ci_io_text(f, "if ");
        region->condition = ci_loop_io_buffer(p, region->condition);
        io_inner(p, region, &region->body, "} else");
        io_inner(p, region, &region->other, "}\n");
    }
    region->kind = item->kind;
    ci_io_leave_scope(f, outside);
}

static void
print_item(CiLoopIo *p, CiItem *item)
{
    CiTextIo *f = &p->io;
    if (item->kind == CI_ITEM_nest) {
        print_nest(p, item->nest);
    } else if (item->kind == CI_ITEM_extern) {
        print_target(p, item->ext->result, true);
        ci_io_text(f, " = extern ");
        ci_loop_io_extern(p, item->ext);
        ci_io_loc(f, "  ", item->ext->loc);
        ci_io_text(f, "\n");
    } else if (item->check) {
        ci_io_indent(f);
        ci_loop_io_check(p, item->check);
        if (item->check->symbol)
            ci_map_put(p->printed, CI_KEY(item->check->symbol), (void *)item->check->symbol);
    } else {
        declare_before_region(p, item->region);
        ci_io_indent(f);
        io_region(p, item);
    }
}

/* name: type | name: type = … | name = extern … | name[store] = for …; false: nothing but a declaration. */
static bool
read_store(CiLoopIo *p, CiItem *item)
{
    CiTextIo *f = &p->io;
    CiLexer store;
    bool has_store = false, is_new = !ci_map_find(p->buffers, CI_KEY(f->lex.string));
    CiBuffer *buffer =
        is_new ? ci_loop_io_declaration(p, NULL, false) : ci_loop_io_buffer(p, NULL);
    if (is_new && !ci_lexer_is(&f->lex, "="))
        return false;
    item->nest = CI_NEW(f->ctx, CiNest);
    item->nest->target = buffer;
    item->nest->fold = CI_OP_none;
    if (!is_new && ci_lexer_is(&f->lex, "[")) {
        has_store = true;
        store = ci_loop_io_store(p, item->nest);
    }
    ci_io_text(f, "=");
    buffer->is_written = buffer->kind == CI_BUFFER_input;
    if (ci_io_flag(f, "extern", false)) {
        *item = (CiItem){.kind = CI_ITEM_extern, .ext = ci_loop_io_extern(p, NULL)};
        item->ext->loc = ci_io_loc(f, "  ", item->ext->loc);
        ci_extern_set_result(f->sym, item->ext, buffer);
        return true;
    }
    io_loops_of(p, item->nest, has_store ? &store : NULL);
    return true;
}

static void
read_item(CiLoopIo *p, CiItems *items)
{
    CiTextIo *f = &p->io;
    CiItem item = {.kind = CI_ITEM_nest};
    if (ci_lexer_is(&f->lex, "for") || ci_lexer_is(&f->lex, "while") || ci_lexer_is(&f->lex, "if")) {
        item.region = CI_NEW(f->ctx, CiRegion);
        io_region(p, &item);
    } else if (ci_loop_read_defined(p)) {
        return;
    } else if (ci_loop_is_check(p)) {
        item.check = ci_loop_io_check(p, NULL);
        item.kind = item.check->symbol ? CI_ITEM_symbol : CI_ITEM_check;
    } else if (!read_store(p, &item)) {
        return;
    }
    CI_PUSH(f->ctx, items->items, items->count, items->capacity, item);
}

static void
io_items(CiLoopIo *p, CiItems *items)
{
    CiTextIo *f = &p->io;
    for (int k = 0; f->out && k < items->count; k++)
        print_item(p, &items->items[k]);
    while (!f->out && f->lex.kind == CI_TOKEN_name && !ci_lexer_is(&f->lex, "return") &&
           !ci_lexer_is(&f->lex, "swap"))
        read_item(p, items);
}

static void
io_text(void *arg)
{
    CiLoopIo *p = arg;
    ci_loop_io_head(p, "loops");
    ci_io_enter(&p->io, " {\n");
    io_items(p, &p->loops->items);
    declare_up_to(p, p->io.out ? p->loops->nbuffers : 0);
    ci_loop_io_end(p);
}

void
ci_loops_print(CiText *out, const CiLoops *loops)
{
    CiLoopIo p = ci_loop_printer(out, loops);
    ci_items_visit(&loops->items, note_defined, p.defined);
    ci_io_with_symbols(&p.io, p.defined, io_text, &p);
}

static void
read_whole(CiContext *ctx, void *arg)
{
    (void)ctx;
    ci_io_with_symbols(&((CiLoopIo *)arg)->io, NULL, io_text, arg);
}

CiLoops *
ci_loops_parse(CiContext *ctx, const char *text)
{
    CiLoopIo p = ci_loop_reader(ctx, text);
    ci_lexer_run(ctx, &p.io.lex, read_whole, &p);
    return p.loops;
}
