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
form_axes(CiLoopForm *p, CiNest *nest, CiAxisKind kind, int *capacity)
{
    CiForm *f = &p->form;
    int from = kind == CI_AXIS_point ? 0 : nest->npoint;
    int count = (kind == CI_AXIS_point ? nest->npoint : nest->naxes) - from;
    if (!f->out && (f->lex.kind != CI_TOKEN_name || (kind == CI_AXIS_point && ci_loop_is_fold(p))))
        return;
    for (int k = 0; ci_form_more(f, k, count, NULL); k++) {
        CiAxis axis = f->out ? nest->axes[from + k] : (CiAxis){.kind = kind};
        ci_form_text(f, k ? "" : " ");
        axis.var = ci_loop_form_variable(p, axis.var, &axis.extent);
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
form_loops_of(CiLoopForm *p, CiNest *nest, const CiLexer *store)
{
    CiForm *f = &p->form;
    const CiLexer *lex = &f->lex;
    int capacity = 0, outside = f->nscope;
    if (!f->out)
        nest->is_combined =
            !ci_lexer_is(lex, "for") && !ci_lexer_is(lex, "apart") && !ci_lexer_is(lex, "distinct");
    if (nest->is_combined) {
        nest->combine = ci_form_op(f, nest->combine);
        ci_form_text(f, " ");
    }
    nest->is_apart = ci_form_flag(f, "apart ", nest->is_apart);
    nest->is_distinct = ci_form_flag(f, "distinct ", nest->is_distinct);
    ci_form_text(f, "for");
    form_axes(p, nest, CI_AXIS_point, &capacity);
    nest->npoint = f->out ? nest->npoint : nest->naxes;
    ci_form_text(f, " ");
    if (ci_loop_form_fold(p, nest)) {
        form_axes(p, nest, ci_nest_is_scan(nest) ? CI_AXIS_scan : CI_AXIS_reduce, &capacity);
        ci_form_text(f, " ");
    }
    ci_loop_form_body(p, nest);
    nest->caplocs = nest->nlocs;
    if (store)
        ci_loop_read_store(p, nest, store);
    else if (!f->out)
        nest->store = plain_store(f->sym, nest);
    if (!nest->store)
        ci_lexer_fail(&f->lex, "%s has another number of axes than its nest", nest->target->name);
    ci_form_leave_scope(f, outside);
}

/* ---- items, printed ---- */

/* Symbols in the sizes of a buffer that is declared before the check that finds their values. */
static void
print_defined_of(CiLoopForm *p, const CiBuffer *buffer)
{
    for (int k = 0; k < buffer->rank; k++)
        for (int n = 0; n < buffer->sizes[k]->nsymbols; n++)
            ci_loop_print_defined(p, buffer->sizes[k]->symbols[n]);
}

static void
declare_up_to(CiLoopForm *p, int end)
{
    for (; p->ndeclared < end; p->ndeclared++) {
        print_defined_of(p, p->loops->buffers[p->ndeclared]);
        ci_form_indent(&p->form);
        ci_loop_form_declaration(p, p->loops->buffers[p->ndeclared], false);
        ci_form_text(&p->form, "\n");
    }
}

/* `buf0: f32[3]` where that has not been declared, else `buf0`. */
static bool
print_target(CiLoopForm *p, CiBuffer *target, bool may_declare)
{
    bool is_new = may_declare && target->id >= p->ndeclared;
    declare_up_to(p, target->id + !is_new);
    ci_form_indent(&p->form);
    if (is_new)
        ci_loop_form_declaration(p, target, false);
    else
        ci_loop_form_buffer(p, target);
    p->ndeclared += is_new;
    return is_new;
}

static void
print_nest(CiLoopForm *p, CiNest *nest)
{
    CiLexer store = p->form.lex;
    if (ci_nest_count(nest))
        declare_up_to(p, ci_nest_count(nest)->id + 1);
    if (!print_target(p, nest->target, plain_store(p->form.sym, nest) == nest->store))
        ci_loop_form_store(p, nest);
    ci_form_text(&p->form, " = ");
    form_loops_of(p, nest, &store);
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


static void form_items(CiLoopForm *p, CiItems *items);

/* A buffer that a region stores lives outside of it, and is declared before, where its size is
 * known there. */
static void
declare_before_region(CiLoopForm *p, const CiRegion *region)
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
form_inner(CiLoopForm *p, CiRegion *region, CiItems *items, const char *close)
{
    ci_form_enter(&p->form, " {\n");
    form_items(p, items);
    if (items == &region->body)
        ci_loop_form_swaps(p, region);
    ci_form_leave(&p->form, close);
}

static void
form_region(CiLoopForm *p, CiItem *item)
{
    CiForm *f = &p->form;
    CiRegion *region = item->region;
    int outside = f->nscope;
    if (ci_form_flag(f, "for ", item->kind == CI_ITEM_for)) {
        item->kind = CI_ITEM_for;
        region->var = ci_loop_form_variable(p, region->var, &region->extent);
        region->is_parallel = ci_form_flag(f, " parallel", region->is_parallel);
        form_inner(p, region, &region->body, "}\n");
    } else if (ci_form_flag(f, "while", item->kind == CI_ITEM_while)) {
        item->kind = CI_ITEM_while;
        form_inner(p, region, &region->condition_items, "} test ");
        region->condition = ci_loop_form_buffer(p, region->condition);
        form_inner(p, region, &region->body, "}\n");
    } else {
        item->kind = CI_ITEM_if;
        ci_form_text(f, "if ");
        region->condition = ci_loop_form_buffer(p, region->condition);
        form_inner(p, region, &region->body, "} else");
        form_inner(p, region, &region->other, "}\n");
    }
    region->kind = item->kind;
    ci_form_leave_scope(f, outside);
}

static void
print_item(CiLoopForm *p, CiItem *item)
{
    CiForm *f = &p->form;
    if (item->kind == CI_ITEM_nest) {
        print_nest(p, item->nest);
    } else if (item->kind == CI_ITEM_extern) {
        print_target(p, item->ext->result, true);
        ci_form_text(f, " = extern ");
        ci_loop_form_extern(p, item->ext);
        ci_form_loc(f, "  ", item->ext->loc);
        ci_form_text(f, "\n");
    } else if (item->check) {
        ci_form_indent(f);
        ci_loop_form_check(p, item->check);
        if (item->check->symbol)
            ci_map_put(p->printed, CI_KEY(item->check->symbol), (void *)item->check->symbol);
    } else {
        declare_before_region(p, item->region);
        ci_form_indent(f);
        form_region(p, item);
    }
}

/* name: type | name: type = … | name = extern … | name[store] = for …; false: nothing but a declaration. */
static bool
read_store(CiLoopForm *p, CiItem *item)
{
    CiForm *f = &p->form;
    CiLexer store;
    bool has_store = false, is_new = !ci_map_find(p->buffers, CI_KEY(f->lex.string));
    CiBuffer *buffer =
        is_new ? ci_loop_form_declaration(p, NULL, false) : ci_loop_form_buffer(p, NULL);
    if (is_new && !ci_lexer_is(&f->lex, "="))
        return false;
    item->nest = CI_NEW(f->ctx, CiNest);
    item->nest->target = buffer;
    item->nest->fold = CI_OP_none;
    if (!is_new && ci_lexer_is(&f->lex, "[")) {
        has_store = true;
        store = ci_loop_form_store(p, item->nest);
    }
    ci_form_text(f, "=");
    buffer->is_written = buffer->kind == CI_BUFFER_input;
    if (ci_form_flag(f, "extern", false)) {
        *item = (CiItem){.kind = CI_ITEM_extern, .ext = ci_loop_form_extern(p, NULL)};
        item->ext->loc = ci_form_loc(f, "  ", item->ext->loc);
        ci_extern_set_result(f->sym, item->ext, buffer);
        return true;
    }
    form_loops_of(p, item->nest, has_store ? &store : NULL);
    return true;
}

static void
read_item(CiLoopForm *p, CiItems *items)
{
    CiForm *f = &p->form;
    CiItem item = {.kind = CI_ITEM_nest};
    if (ci_lexer_is(&f->lex, "for") || ci_lexer_is(&f->lex, "while") || ci_lexer_is(&f->lex, "if")) {
        item.region = CI_NEW(f->ctx, CiRegion);
        form_region(p, &item);
    } else if (ci_loop_read_defined(p)) {
        return;
    } else if (ci_loop_is_check(p)) {
        item.check = ci_loop_form_check(p, NULL);
        item.kind = item.check->symbol ? CI_ITEM_symbol : CI_ITEM_check;
    } else if (!read_store(p, &item)) {
        return;
    }
    CI_PUSH(f->ctx, items->items, items->count, items->capacity, item);
}

static void
form_items(CiLoopForm *p, CiItems *items)
{
    CiForm *f = &p->form;
    for (int k = 0; f->out && k < items->count; k++)
        print_item(p, &items->items[k]);
    while (!f->out && f->lex.kind == CI_TOKEN_name && !ci_lexer_is(&f->lex, "return") &&
           !ci_lexer_is(&f->lex, "swap"))
        read_item(p, items);
}

static void
form_text(void *arg)
{
    CiLoopForm *p = arg;
    ci_loop_form_head(p, "loops");
    ci_form_enter(&p->form, " {\n");
    form_items(p, &p->loops->items);
    declare_up_to(p, p->form.out ? p->loops->nbuffers : 0);
    ci_loop_form_end(p);
}

void
ci_loops_print(CiText *out, const CiLoops *loops)
{
    CiLoopForm p = ci_loop_printer(out, loops);
    ci_items_visit(&loops->items, note_defined, p.defined);
    ci_form_with_symbols(&p.form, p.defined, form_text, &p);
}

static void
read_whole(CiContext *ctx, void *arg)
{
    (void)ctx;
    ci_form_with_symbols(&((CiLoopForm *)arg)->form, NULL, form_text, arg);
}

CiLoops *
ci_loops_parse(CiContext *ctx, const char *text)
{
    CiLoopForm p = ci_loop_reader(ctx, text);
    ci_lexer_run(ctx, &p.form.lex, read_whole, &p);
    return p.loops;
}
