/* Printing procs. Invariant: parse(print(procs)) prints the same text. An index expression is in
 * brackets wherever a line may end after it, because the % of the next line would continue it. */
#include "ir/text_common.h"
#include "ir/loop_text.h"
#include "ir/proc_private.h"

#include <string.h>

static void
print_type(CiText *out, CiType type)
{
    ci_text_add(out, "%s", ci_dtype_name(type.dtype));
    if (type.lanes > 1)
        ci_text_add(out, "x%d", type.lanes);
}

/* name: f32x16[4] register */
static void
print_memory(CiText *out, const CiMemory *memory)
{
    ci_text_add(out, "%s: ", memory->name);
    print_type(out, ci_type_of(memory->dtype, memory->lanes));
    ci_form_add_expr(out, "[", memory->size, "]");
    if (memory->first)
        ci_form_add_expr(out, " from [", memory->first, "]");
    if (memory->space != CI_SPACE_global)
        ci_text_add(out, " %s", ci_space_names[memory->space]);
    if (memory->offset)
        ci_form_add_expr(out, " at [", memory->offset, "]");
}

static void
print_values(CiText *out, const CiStmt *stmt)
{
    for (int k = 0; k < stmt->nargs; k++)
        ci_text_add(out, "%s%%%d", k ? ", " : "", stmt->args[k]);
}

static void
print_access(CiText *out, const CiAccess *at)
{
    ci_text_add(out, "%s", at->memory->name);
    ci_form_add_expr(out, "[", at->index, "]");
    if (at->stride)
        ci_form_add_expr(out, " stride [", at->stride, "]");
}

static void
print_in(CiText *out, const CiStmt *apply)
{
    for (int k = 0; k < apply->nin; k++) {
        ci_text_add(out, k ? ", " : "");
        print_access(out, &apply->in[k]);
    }
}

static void
print_tests(CiText *out, const CiStmt *stmt)
{
    static const char *const signs[] = {
#define COMPARE(name, sign) sign " ",
#include "ir/proc.def"
    };
    for (int k = 0; k < stmt->ntests; k++) {
        const CiCondition *test = &stmt->tests[k];
        ci_text_add(out, k ? " and " : "");
        if (test->compare >= CI_COMPARE_is) {
            ci_text_add(out, "%s%%%d", test->compare == CI_COMPARE_is ? "" : "not ", test->value);
            continue;
        }
        ci_form_add_expr(out, "(", test->left, " ");
        ci_form_add_expr(out, signs[test->compare], test->right, ")");
    }
}

/* [at0<n], [2<=at0<n]: what the symbol's value is promised to be. */
static void
print_symbol(CiText *out, const CiStmt *bind)
{
    const CiExpr *symbol = bind->expr;
    ci_text_add(out, "[");
    if (symbol->low != 0 && symbol->low != CI_MINUS_INFINITY)
        ci_text_add(out, "%lld<=", (long long)symbol->low);
    ci_text_add(out, "%s", symbol->name);
    if (bind->limit)
        ci_form_add_expr(out, "<", bind->limit, "");
    ci_text_add(out, "]");
}

static void
print_loops(CiText *out, const CiStmt *stmt)
{
    for (int k = 0; k < stmt->nvars; k++) {
        ci_text_add(out, "%s%s<", k ? ", " : "", stmt->vars[k]->name);
        ci_expr_print(out, stmt->extents[k], CI_STYLE_text);
    }
}

static void
print_reductions(CiText *out, const CiStmt *fold)
{
    for (int k = 0, at = 0; k < fold->nops; k++) {
        ci_text_add(out, "%s%s into", k ? ", " : "", ci_op_name(fold->ops[k]));
        for (int w = 0; w < ci_fold_width(fold->ops[k]); w++)
            ci_text_add(out, "%s%s", w ? " at " : " ", fold->into[at++]->name);
    }
}

static void
print_operand(CiText *out, const CiStmt *stmt, const CiOperand *operand)
{
    const void *at = (const char *)stmt + operand->offset;
    switch (operand->type) {
    case CI_OPERAND_expr:
        ci_form_add_expr(out, "[", *(const CiExpr *const *)at, "]");
        break;
    case CI_OPERAND_memory:
        ci_text_add(out, "%s", (*(CiMemory *const *)at)->name);
        break;
    case CI_OPERAND_flag:
        break;
    case CI_OPERAND_number:
        ci_text_add(out, "%d", stmt->number);
        break;
    case CI_OPERAND_op:
        ci_text_add(out, "%s", ci_op_name(stmt->op));
        break;
    case CI_OPERAND_intrinsic:
        ci_text_add(out, "%s", ci_intrinsic_names[stmt->intrinsic]);
        break;
    case CI_OPERAND_run:
        ci_text_add(out, "%s", ci_run_mode_names[stmt->run]);
        break;
    case CI_OPERAND_runs:
        ci_text_add(out, "%s", stmt->runs->name);
        break;
    case CI_OPERAND_loops:
        print_loops(out, stmt);
        break;
    case CI_OPERAND_args:
        print_values(out, stmt);
        break;
    case CI_OPERAND_at:
        print_access(out, &stmt->at);
        break;
    case CI_OPERAND_in:
        print_in(out, stmt);
        break;
    case CI_OPERAND_tests:
        print_tests(out, stmt);
        break;
    case CI_OPERAND_constant:
        ci_const_print(out, stmt->type.dtype, *(const CiConst *)at);
        break;
    case CI_OPERAND_symbol:
        print_symbol(out, stmt);
        break;
    case CI_OPERAND_declaration:
        print_memory(out, stmt->memory);
        break;
    case CI_OPERAND_reductions:
        print_reductions(out, stmt);
        break;
    case CI_OPERAND_order:
        ci_fold_order_print(out, "", stmt->order);
    }
}

/* Operands that may be missing are pointers, flags and these. */
static bool
has_operand(const CiStmt *stmt, const CiOperand *operand)
{
    const void *at = (const char *)stmt + operand->offset;
    switch (operand->type) {
    case CI_OPERAND_flag:
        return *(const bool *)at;
    case CI_OPERAND_number:
        return stmt->number > 1;
    case CI_OPERAND_op:
        return stmt->op != CI_OP_none;
    case CI_OPERAND_tests:
        return stmt->ntests > 0;
    case CI_OPERAND_order:
        return stmt->order.kind != CI_FOLD_serial;
    case CI_OPERAND_constant:
        return true;
    default:
        return *(void *const *)at != NULL;
    }
}

/* Up to the end of the group. */
static void
print_pattern(CiText *out, const CiStmt *stmt, const char *at)
{
    while (*at && *at != ']') {
        size_t words = strcspn(at, "{[]");
        if (words)
            ci_text_add_chars(out, at, words);
        else if (*at == '{')
            print_operand(out, stmt, ci_stmt_operand(at));
        else if (has_operand(stmt, ci_stmt_operand(at)))
            print_pattern(out, stmt, at + 1);
        at = words ? at + words : ci_pattern_next(at);
    }
}

void
ci_stmt_print(CiText *out, const CiStmt *stmt)
{
    const char *pattern = ci_stmt_pattern(stmt);
    if (stmt->kind == CI_STMT_let) {
        ci_text_add(out, "%%%d: ", stmt->value);
        print_type(out, stmt->type);
        ci_text_add(out, " = %s", ci_op_name(stmt->op));
    } else {
        ci_text_add(out, "%s", ci_stmt_names[stmt->kind]);
    }
    bool is_empty = *pattern == '[' && !has_operand(stmt, ci_stmt_operand(pattern));
    ci_text_add(out, *pattern && !is_empty ? " " : "");
    print_pattern(out, stmt, pattern);
}

static void
print_block(CiText *out, const CiStmts *block)
{
    for (const CiStmt *stmt = block->first; stmt; stmt = stmt->next) {
        ci_text_indent(out);
        int blocks = ci_stmt_blocks(stmt);
        ci_stmt_print(out, stmt);
        ci_text_add(out, blocks ? " {" : "");
        ci_loop_print_locs(out, &stmt->loc, 1);
        ci_text_add(out, "\n");
        for (int side = 0; side < blocks; side++) {
            if (side && !stmt->other.first)
                continue;
            if (side)
                ci_text_line(out, "} else {");
            out->indent += 2;
            print_block(out, side ? &stmt->other : &stmt->body);
            out->indent -= 2;
        }
        if (blocks)
            ci_text_line(out, "}");
    }
}

/* over i0 by 64, i1 by 8 in lanes parts [46] of [65536]: what passes have still to do. */
static void
print_head(CiText *out, const CiProc *proc)
{
    const CiProcHead *head = &proc->head;
    if (proc->is_finish)
        ci_text_add(out, " finishes %s", head->kernel);
    if (head->is_tree)
        ci_text_add(out, " tree");
    if (head->kind)
        ci_text_add(out, " template %s", ci_template_names[head->kind]);
    for (int k = 0; k < head->naxes; k++) {
        ci_text_add(out, "%s%s", k ? ", " : " over ", head->axes[k].var);
        if (head->axes[k].tile)
            ci_text_add(out, " by %d", head->axes[k].tile);
    }
    if (head->has_lanes)
        ci_text_add(out, " in lanes");
    if (head->row) {
        ci_form_add_expr(out, " rows [", head->row, "]");
        ci_text_add(out, " up to %lld", (long long)head->short_row);
    }
    if (head->parts)
        ci_form_add_expr(out, head->is_chained ? " chained parts [" : " parts [", head->parts, "]");
    if (head->parts && head->part)
        ci_form_add_expr(out, " of [", head->part, "]");
}

static void
print_proc(CiText *out, const CiProc *proc)
{
    ci_text_indent(out);
    ci_text_add(out, "proc %s(", proc->name);
    for (int k = 0; k < proc->nparams; k++) {
        ci_text_add(out, "%s%s", k ? ", " : "", proc->params[k]->is_const ? "const " : "");
        print_memory(out, proc->params[k]);
    }
    for (int k = 0; k < proc->nsizes; k++)
        ci_form_add_expr(out, k ? ", " : "; ", proc->sizes[k], "");
    ci_text_add(out, ")");
    for (int k = 0; k < proc->nfacts; k++)
        ci_form_add_expr(out, k ? ", " : " given ", proc->facts[k], "");
    print_head(out, proc);
    ci_text_add(out, " {");
    ci_loop_print_locs(out, proc->head.locs, proc->head.nlocs);
    ci_text_add(out, "\n");
    out->indent += 2;
    print_block(out, &proc->body);
    out->indent -= 2;
    ci_text_line(out, "}");
}

/* ---- symbols: all but those that statements make ---- */

typedef struct Symbols {
    CiMap *seen, *made;
} Symbols;

static void
collect(Symbols *symbols, const CiExpr *e)
{
    ci_form_collect_symbols(symbols->seen, e);
}

static void
collect_expr(void *arg, const CiExpr **e)
{
    collect(arg, *e);
}

static void
collect_stmt(void *arg, const CiStmt *stmt)
{
    Symbols *symbols = arg;
    if (stmt->op == CI_OP_bind) /* before other symbols, because it is older if a level above knows
                                 * it */
        ci_map_put(stmt->expr->symbol_kind == CI_SYMBOL_index ? symbols->made : symbols->seen,
                   CI_KEY(stmt->expr), (void *)stmt->expr);
    ci_stmt_each_expr(stmt, collect_expr, symbols);
    if (stmt->kind == CI_STMT_alloc)
        collect(symbols, stmt->memory->size);
}

/* Variables of loops around the kernels are symbols of the text, too. */
static void
collect_given(Symbols *symbols, const CiExpr *e)
{
    collect(symbols, e);
    for (int k = 0; k < e->nsymbols; k++)
        if (e->symbols[k]->symbol_kind == CI_SYMBOL_index)
            ci_map_put(symbols->seen, CI_KEY(e->symbols[k]), (void *)e->symbols[k]);
}

/* Collects the limits of symbols that no statement makes. */
static void
collect_limits(Symbols *symbols)
{
    for (int k = 0; k < ci_map_count(symbols->seen); k++) {
        const CiExpr *symbol = ci_map_value_at(symbols->seen, k);
        if (symbol->limit)
            collect_given(symbols, symbol->limit);
    }
}

static void
collect_param(Symbols *symbols, const CiMemory *param)
{
    collect_given(symbols, param->size);
    if (param->first)
        collect_given(symbols, param->first);
}

void
ci_procs_print(CiText *out, const CiProcs *procs)
{
    Symbols symbols = {ci_map_new(procs->ctx), ci_map_new(procs->ctx)};
    for (int p = 0; p < procs->nprocs; p++) {
        const CiProc *proc = procs->procs[p];
        for (int k = 0; k < proc->nparams; k++)
            collect_param(&symbols, proc->params[k]);
        for (int k = 0; k < proc->nsizes; k++)
            collect_given(&symbols, proc->sizes[k]);
        for (int k = 0; k < proc->nfacts; k++)
            collect(&symbols, proc->facts[k]);
        ci_stmts_visit(&proc->body, collect_stmt, &symbols);
        const CiExpr *const sizes[] = {proc->head.row, proc->head.parts, proc->head.part};
        for (int k = 0; k < 3; k++)
            if (sizes[k])
                collect_given(&symbols, sizes[k]);
    }
    collect_limits(&symbols);
    ci_loop_print_symbols(out, symbols.seen, symbols.made);
    ci_text_add(out, "procs ");
    ci_form_print_name(out, procs->name);
    ci_text_add(out, " {\n");
    out->indent += 2;
    for (int p = 0; p < procs->nprocs; p++)
        print_proc(out, procs->procs[p]);
    out->indent -= 2;
    ci_text_add(out, "}\n");
}
