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

/* Element by element: all of a group are read, then stored where they belong. */
static void
print_moves(CiCPrinter *p, const int *groups, int group)
{
    const CiKernel *kernel = p->proc->kernel;
    const CiBuffer *first = kernel->buffers[group];
    const char *type = ci_dtype_storage(first->dtype),
               *n = ci_emit_index_text(p->base,
                                       ci_expr_product_of(p->sym, first->sizes, first->rank));
    if (p->moves_from)
        ci_text_open(p->out, "for (int64_t k = %s; k < %s; k += %d) {", p->moves_from, n,
                     p->moves_step);
    else
        ci_text_open(p->out, "for (int64_t k = 0; k < %s; k++) {", n);
    for (int store = 0; store < 2; store++)
        for (int k = 0; k < kernel->nbuffers; k++) {
            if (groups[k] != group)
                continue;
            if (store)
                ci_text_line(p->out, "((%s%s *)%s)[k] = kept%d;", p->dialect->global, type,
                             p->dialect->own_memory(p, k), k);
            else
                ci_text_line(p->out, "const %s kept%d = %s[k];", type, k,
                             ci_emit_buffer(p->base, kernel->buffers[k]));
        }
    ci_text_close(p->out);
}

void
ci_c_print_moved_back(CiCPrinter *p)
{
    const CiKernel *kernel = p->proc->kernel;
    const CiLoopTree *tree = ci_kernel_tree(kernel);
    if (!tree || !ci_tree_swaps(tree))
        return;
    const int *groups = ci_swap_groups(p->ctx, kernel);
    for (int k = 0; k < kernel->nbuffers; k++) {
        CiText test = ci_text_new(p->ctx);
        for (int j = 0; j < kernel->nbuffers && groups[k] == k; j++)
            if (groups[j] == k)
                ci_text_add(&test, "%s%s != %s", test.length ? " || " : "",
                            ci_emit_buffer(p->base, kernel->buffers[j]), p->dialect->own_memory(p, j));
        if (!test.length)
            continue;
        ci_text_open(p->out, "if (%s) {", test.data);
        print_moves(p, groups, k);
        ci_text_close(p->out);
    }
}
