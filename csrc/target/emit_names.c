/* The names that emitted code has for buffers, sizes, variables and lines, and which of them it uses.
 *
 * Invariant: a user's name reaches a source only inside a comment, escaped. */
#include "target/emit.h"

#include <stdlib.h>
#include <string.h>

/* ---- what is used ---- */

void
ci_emit_note(CiEmitter *e, const void *thing)
{
    ci_map_put(e->used, CI_KEY(thing), (void *)e->proc);
}

bool
ci_emit_has(const CiEmitter *e, const void *thing)
{
    return ci_map_find(e->used, CI_KEY(thing)) == e->proc;
}

const char *
ci_emit_use(CiEmitter *e, const char *name)
{
    name = ci_intern(e->ctx, name);
    ci_emit_note(e, name);
    return name;
}

bool
ci_emit_uses(CiEmitter *e, const char *name)
{
    return ci_map_find(e->used, CI_KEY(ci_intern(e->ctx, name)));
}

bool
ci_emit_has_name(CiEmitter *e, const char *name)
{
    return ci_emit_has(e, ci_intern(e->ctx, name));
}

/* ---- holes ---- */

/* Characters around the number of a hole. No text of a source has them. */
#define HOLE_BEGIN '\1'
#define HOLE_END '\2'

void
ci_emit_begin_holes(CiEmitter *e)
{
    e->names = ci_map_new(e->ctx);
}

const char *
ci_emit_name(CiEmitter *e, const char *name)
{
    if (!e->names)
        return name;
    name = ci_intern(e->ctx, name);
    uintptr_t number = (uintptr_t)ci_map_find(e->names, CI_KEY(name));
    if (!number) {
        number = (uintptr_t)ci_map_count(e->names) + 1;
        ci_map_put(e->names, CI_KEY(name), (void *)number);
    }
    return ci_format(e->ctx, "%c%d%c", HOLE_BEGIN, (int)number, HOLE_END);
}

void
ci_emit_fill(const CiEmitter *e, CiText *out, const char *text)
{
    for (const char *hole; (hole = strchr(text, HOLE_BEGIN)) != NULL; text++) {
        ci_text_add_chars(out, text, (size_t)(hole - text));
        int number = (int)strtol(hole + 1, (char **)&text, 10);
        ci_text_add(out, "%s", (const char *)(uintptr_t)ci_map_key_at(e->names, number - 1));
    }
    ci_text_add(out, "%s", text);
}

/* ---- names ---- */

const char *
ci_emit_buffer(CiEmitter *e, const CiBuffer *buffer)
{
    const char *digits = !strncmp(buffer->name, "in", 2)    ? buffer->name + 2
                         : !strncmp(buffer->name, "buf", 3) ? buffer->name + 3
                                                            : "";
    bool is_internal = *digits && strspn(digits, "0123456789") == strlen(digits);
    return is_internal ? buffer->name : ci_format(e->ctx, "b%d", buffer->id);
}

static void
print_size(CiEmitter *e, CiText *out, int number)
{
    ci_emit_note(e, e->proc->sizes[number]);
    ci_text_add(out, "size%d", number);
}

int
ci_emit_size_number(const CiProc *proc, const CiExpr *e)
{
    int k = 0;
    while (k < proc->nsizes && proc->sizes[k] != e)
        k++;
    return k < proc->nsizes ? k : -1;
}

static bool
print_name(CiText *out, const CiExpr *symbol, void *arg)
{
    CiEmitter *e = arg;
    const CiProc *proc = e->proc;
    if (symbol->kind != CI_EXPR_symbol)
        return ci_emit_name_of(e, out, symbol);
    int size = ci_emit_size_number(proc, symbol);
    if (size >= 0) /* a variable of a loop around the kernel, too */
        print_size(e, out, size);
    else if (symbol->symbol_kind == CI_SYMBOL_index)
        ci_text_add(out, "%s", symbol->name);
    else if (proc->head.is_tree && symbol->symbol_kind == CI_SYMBOL_unbacked)
        ci_text_add(out, "data_%s", symbol->name); /* of a check in the tree */
    else
        ci_fail(e->ctx, CI_ERR_INTERNAL, "%s is no argument of proc %s", symbol->name, proc->name);
    return true;
}

bool
ci_emit_name_of(CiEmitter *e, CiText *out, const CiExpr *index)
{
    if (index->may_divide_by_zero) {
        ci_emit_use(e, "ci_floordiv");
        ci_emit_use(e, "ci_mod");
    }
    return ci_expr_names_print(&e->long_names, out, index, e->spelling->style, print_name, e);
}

/* A whole expression that the proc takes precomputed is that argument. */
void
ci_emit_index(CiEmitter *e, CiText *out, const CiExpr *index)
{
    int size = ci_emit_size_number(e->proc, index);
    if (size >= 0) {
        print_size(e, out, size);
        return;
    }
    if (index->calls_floordiv)
        ci_emit_use(e, "ci_floordiv");
    if (index->calls_mod)
        ci_emit_use(e, "ci_mod");
    if (!ci_expr_is_long(index) || !print_name(out, index, e))
        ci_expr_print_with(out, index, e->spelling->style, print_name, e);
}

const char *
ci_emit_index_text(CiEmitter *e, const CiExpr *index)
{
    CiText text = ci_text_new(e->ctx);
    ci_emit_index(e, &text, index);
    return text.data;
}

void
ci_emit_locations(CiText *out, const CiProc *proc)
{
    const CiProcHead *head = &proc->head;
    for (int k = 0; k < head->nlocs; k++) {
        ci_text_add(out, k ? ", " : "/* ");
        ci_text_add_safe(out, head->locs[k].file);
        ci_text_add(out, ":%d", head->locs[k].line);
    }
    ci_text_add(out, head->nlocs ? " */\n" : "");
}
