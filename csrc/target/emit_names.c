/* The names that emitted code has for buffers, sizes, variables and lines.
 *
 * Invariant: a user's name reaches a source only inside a comment, escaped. */
#include "target/emit.h"

#include <string.h>

const char *
ci_emit_buffer(CiEmitter *e, const CiBuffer *buffer)
{
    const char *digits = !strncmp(buffer->name, "in", 2)    ? buffer->name + 2
                         : !strncmp(buffer->name, "buf", 3) ? buffer->name + 3
                                                            : "";
    bool is_ours = *digits && strspn(digits, "0123456789") == strlen(digits);
    return is_ours ? buffer->name : ci_format(e->ctx, "b%d", buffer->id);
}

static void
print_symbol(CiText *out, const CiExpr *symbol, void *arg)
{
    CiEmitter *e = arg;
    const CiProc *proc = e->proc;
    int k = 0;
    while (k < proc->nsizes && proc->sizes[k] != symbol)
        k++;
    if (k < proc->nsizes) /* a variable of a loop around the kernel, too */
        ci_text_add(out, "size%d", k);
    else if (symbol->symbol_kind == CI_SYMBOL_index)
        ci_text_add(out, "%s", symbol->name);
    else if (proc->head.is_tree && symbol->symbol_kind == CI_SYMBOL_unbacked)
        ci_text_add(out, "data_%s", symbol->name); /* of a check in the tree */
    else
        ci_fail(e->ctx, CI_ERR_INTERNAL, "%s is no argument of proc %s", symbol->name, proc->name);
}

/* A whole expression that the proc takes precomputed is that argument. */
void
ci_emit_index(CiEmitter *e, CiText *out, const CiExpr *index)
{
    for (int k = 0; k < e->proc->nsizes; k++)
        if (e->proc->sizes[k] == index) {
            ci_text_add(out, "size%d", k);
            return;
        }
    ci_expr_print_with(out, index, e->spelling->style, print_symbol, e);
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
