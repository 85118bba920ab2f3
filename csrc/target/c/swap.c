/* Memories that exchange their contents: values of registers, or pointers. After the statements the
 * contents of swapped pointers are moved to their original memory, because callers have not seen
 * the exchange. */
#include "target/c/c.h"

void
ci_c_print_swap(CiCPrinter *p, const CiStmt *stmt)
{
    bool is_pointer = stmt->memory->space == CI_SPACE_global;
    const char *a = ci_c_memory(p, stmt->memory), *b = ci_c_memory(p, stmt->partner),
               *type = is_pointer ? ci_format(p->ctx, "%s%s *", p->dialect->global,
                                              ci_dtype_storage(stmt->memory->dtype))
                                  : ci_format(p->ctx, "%s ", ci_emit_type(stmt->memory->dtype));
    ci_text_open(p->out, "{");
    ci_text_line(p->out, "%sconst other = %s;", type, a);
    ci_text_line(p->out, "%s = %s;", a, b);
    ci_text_line(p->out, "%s = other;", b);
    ci_text_close(p->out);
}

typedef struct Swaps {
    const CiProc *proc;
    int *groups; /* by parameter */
    bool is_any;
} Swaps;

static int
position_of(const CiProc *proc, const CiMemory *memory)
{
    int k = 0;
    while (proc->params[k] != memory)
        k++;
    return k;
}

static void
join_groups(void *arg, const CiStmt *stmt)
{
    Swaps *swaps = arg;
    if (stmt->kind != CI_STMT_swap || stmt->memory->space != CI_SPACE_global)
        return;
    int a = swaps->groups[position_of(swaps->proc, stmt->memory)],
        b = swaps->groups[position_of(swaps->proc, stmt->partner)];
    for (int k = 0; k < swaps->proc->nparams; k++)
        if (swaps->groups[k] == a || swaps->groups[k] == b)
            swaps->groups[k] = a < b ? a : b;
    swaps->is_any = true;
}

const int *
ci_c_swap_groups(CiContext *ctx, const CiProc *proc)
{
    Swaps swaps = {proc, CI_NEW_ARRAY(ctx, int, proc->nparams + 1), false};
    int *sizes = CI_NEW_ARRAY(ctx, int, proc->nparams + 1);
    for (int k = 0; k < proc->nparams; k++)
        swaps.groups[k] = k;
    ci_stmts_visit(&proc->body, join_groups, &swaps);
    for (int k = 0; k < proc->nparams; k++)
        sizes[swaps.groups[k]]++;
    for (int k = 0; k < proc->nparams; k++)
        if (sizes[swaps.groups[k]] == 1)
            swaps.groups[k] = -1;
    return swaps.is_any ? swaps.groups : NULL;
}

/* Element by element: all of a group are read, then stored where they belong. */
static void
print_moves(CiCPrinter *p, int group)
{
    const CiMemory *first = p->proc->params[group];
    const char *type = ci_dtype_storage(first->dtype),
               *n = ci_emit_index_text(p->base, first->size);
    if (p->moves_from)
        ci_text_open(p->out, "for (int64_t k = %s; k < %s; k += %d) {", p->moves_from, n,
                     p->moves_step);
    else
        ci_text_open(p->out, "for (int64_t k = 0; k < %s; k++) {", n);
    for (int store = 0; store < 2; store++)
        for (int k = 0; k < p->proc->nparams; k++) {
            if (p->swap_groups[k] != group)
                continue;
            if (store)
                ci_text_line(p->out, "((%s%s *)%s)[k] = kept%d;", p->dialect->global, type,
                             p->dialect->own_memory(p, k), k);
            else
                ci_text_line(p->out, "const %s kept%d = %s[k];", type, k,
                             ci_c_memory(p, p->proc->params[k]));
        }
    ci_text_close(p->out);
}

void
ci_c_print_moved_back(CiCPrinter *p)
{
    const CiProc *proc = p->proc;
    const int *groups = p->swap_groups;
    for (int k = 0; k < proc->nparams && groups; k++) {
        CiText test = ci_text_new(p->ctx);
        for (int j = 0; j < proc->nparams && groups[k] == k; j++)
            if (groups[j] == k)
                ci_text_add(&test, "%s%s != %s", test.length ? " || " : "",
                            ci_c_memory(p, proc->params[j]), p->dialect->own_memory(p, j));
        if (!test.length)
            continue;
        ci_text_open(p->out, "if (%s) {", test.data);
        print_moves(p, k);
        ci_text_close(p->out);
    }
}
