/* Printing procs. Invariant: parse(print(procs)) prints the same text. An index expression is in
 * brackets wherever a line may end after it, because the % of the next line would continue it. */
#include "ir/text_common.h"
#include "ir/loop_text.h"
#include "ir/proc_private.h"

#include <string.h>

static void
print_expr(CiText *out, const char *before, const CiExpr *e, const char *after)
{
    ci_text_add(out, "%s", before);
    ci_expr_print(out, e, CI_STYLE_text);
    ci_text_add(out, "%s", after);
}

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
    print_expr(out, "[", memory->size, "]");
    if (memory->first)
        print_expr(out, " from [", memory->first, "]");
    if (memory->space != CI_SPACE_global)
        ci_text_add(out, " %s", ci_space_name(memory->space));
    if (memory->offset)
        print_expr(out, " at [", memory->offset, "]");
}

static void
print_values(CiText *out, const char *before, const CiStmt *stmt)
{
    for (int k = 0; k < stmt->nargs; k++)
        ci_text_add(out, "%s%%%d", k ? ", " : before, stmt->args[k]);
}

static void
print_access(CiText *out, const CiAccess *at)
{
    ci_text_add(out, " %s", at->memory->name);
    print_expr(out, "[", at->index, "]");
    if (at->stride)
        print_expr(out, " stride [", at->stride, "]");
}

static void
print_live(CiText *out, const CiStmt *stmt)
{
    if (stmt->live)
        print_expr(out, " live [", stmt->live, "]");
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
        ci_text_add(out, k ? " and " : " ");
        if (test->compare >= CI_COMPARE_is) {
            ci_text_add(out, "%s%%%d", test->compare == CI_COMPARE_is ? "" : "not ", test->value);
            continue;
        }
        print_expr(out, "(", test->left, " ");
        print_expr(out, signs[test->compare], test->right, ")");
    }
}

/* [at0<n], [2<=at0<n]: what the symbol's value is promised to be. */
static void
print_bound(CiText *out, const CiStmt *bind)
{
    const CiExpr *symbol = bind->expr;
    ci_text_add(out, " [");
    if (symbol->low != 0 && symbol->low != CI_MINUS_INFINITY)
        ci_text_add(out, "%lld<=", (long long)symbol->low);
    ci_text_add(out, "%s", symbol->name);
    if (bind->limit)
        print_expr(out, "<", bind->limit, "");
    ci_text_add(out, "]");
}

static void
print_load(CiText *out, const CiStmt *stmt)
{
    print_access(out, &stmt->at);
    ci_text_add(out, stmt->is_atomic ? " atomic" : "");
}

static void
print_let(CiText *out, const CiStmt *stmt)
{
    ci_text_add(out, "%%%d: ", stmt->value);
    print_type(out, stmt->type);
    ci_text_add(out, " = %s", ci_op_name(stmt->op));
    if (stmt->op == CI_OP_load)
        print_load(out, stmt);
    else if (stmt->op == CI_OP_const) {
        ci_text_add(out, " ");
        ci_const_print(out, stmt->type.dtype, stmt->constant);
    } else if (stmt->op == CI_OP_index || stmt->op == CI_OP_iota || stmt->op == CI_OP_turn)
        print_expr(out, " [", stmt->expr, "]");
    print_values(out, " ", stmt);
    if (stmt->op == CI_OP_bind)
        print_bound(out, stmt);
    if (stmt->cell) {
        ci_text_add(out, " in %s", stmt->cell->name);
        print_expr(out, " from [", stmt->expr, "]");
    }
    print_live(out, stmt);
    if (stmt->op == CI_OP_load && stmt->live) {
        ci_text_add(out, " else ");
        ci_const_print(out, stmt->type.dtype, stmt->at.otherwise);
    }
}

static void
print_store(CiText *out, const CiStmt *stmt)
{
    ci_text_add(out, "store");
    if (stmt->op != CI_OP_none)
        ci_text_add(out, " %s", ci_op_name(stmt->op));
    print_access(out, &stmt->at);
    print_values(out, " = ", stmt);
    ci_text_add(out, stmt->is_in_order ? " in order" : stmt->is_atomic ? " atomic" : "");
    print_live(out, stmt);
}

static void
print_call(CiText *out, const CiStmt *stmt)
{
    ci_text_add(out, "call %s", ci_intrinsic_name(stmt->intrinsic));
    print_access(out, &stmt->at);
    print_values(out, " (", stmt);
    ci_text_add(out, ")");
    if (stmt->cell)
        ci_text_add(out, " in %s", stmt->cell->name);
    if (stmt->limit)
        print_expr(out, " below [", stmt->limit, "]");
    print_live(out, stmt);
}

static void
print_apply(CiText *out, const CiStmt *stmt)
{
    ci_text_add(out, "apply %s", ci_op_name(stmt->op));
    print_access(out, &stmt->at);
    ci_text_add(out, " of");
    for (int k = 0; k < stmt->nin; k++) {
        ci_text_add(out, k ? "," : "");
        print_access(out, &stmt->in[k]);
    }
    print_expr(out, " for [", stmt->expr, "]");
}

static void
print_loops(CiText *out, const CiStmt *stmt)
{
    for (int k = 0; k < stmt->nvars; k++) {
        ci_text_add(out, "%s%s<", k ? ", " : " ", stmt->vars[k]->name);
        ci_expr_print(out, stmt->extents[k], CI_STYLE_text);
    }
}

static void
print_fold(CiText *out, const CiStmt *stmt)
{
    ci_text_add(out, "fold");
    for (int k = 0, at = 0; k < stmt->nops; k++) {
        ci_text_add(out, "%s%s into", k ? ", " : " ", ci_op_name(stmt->ops[k]));
        for (int w = 0; w < ci_fold_width(stmt->ops[k]); w++)
            ci_text_add(out, "%s%s", w ? " at " : " ", stmt->into[at++]->name);
    }
    ci_text_add(out, " over");
    print_loops(out, stmt);
    ci_fold_order_print(out, " in ", stmt->order);
    if (stmt->count) {
        print_expr(out, " from [", stmt->from, "]");
        print_expr(out, " for [", stmt->count, "]");
    }
    if (stmt->blocks)
        print_expr(out, " of blocks [", stmt->blocks, "]");
}

void
ci_stmt_print(CiText *out, const CiStmt *stmt)
{
    switch (stmt->kind) {
    case CI_STMT_for:
        ci_text_add(out, "for");
        print_loops(out, stmt);
        ci_text_add(out, " %s", ci_run_mode_name(stmt->run));
        if (stmt->runs)
            ci_text_add(out, " runs %s", stmt->runs->name);
        if ((stmt->run == CI_RUN_grid || stmt->run == CI_RUN_meet) && stmt->number > 1)
            ci_text_add(out, " by %d", stmt->number);
        break;
    case CI_STMT_loop:
        ci_text_add(out, "loop");
        break;
    case CI_STMT_if:
        ci_text_add(out, "if");
        print_tests(out, stmt);
        break;
    case CI_STMT_let:
        print_let(out, stmt);
        break;
    case CI_STMT_store:
        print_store(out, stmt);
        break;
    case CI_STMT_alloc:
        ci_text_add(out, "alloc ");
        print_memory(out, stmt->memory);
        break;
    case CI_STMT_barrier:
        ci_text_add(out, "barrier");
        break;
    case CI_STMT_wait:
    case CI_STMT_publish:
        print_expr(out, stmt->kind == CI_STMT_wait ? "wait [" : "publish [", stmt->expr, "]");
        break;
    case CI_STMT_call:
        print_call(out, stmt);
        break;
    case CI_STMT_apply:
        print_apply(out, stmt);
        break;
    case CI_STMT_exit:
        ci_text_add(out, stmt->ntests ? "exit if" : "exit");
        print_tests(out, stmt);
        break;
    case CI_STMT_stop:
        ci_text_add(out, stmt->ntests ? "stop %d if" : "stop %d", stmt->number);
        print_tests(out, stmt);
        break;
    case CI_STMT_poll:
        print_expr(out, "poll [", stmt->expr, "]");
        break;
    case CI_STMT_prefetch:
        ci_text_add(out, "prefetch");
        print_access(out, &stmt->at);
        break;
    case CI_STMT_swap:
        ci_text_add(out, "swap %s, %s", stmt->memory->name, stmt->partner->name);
        break;
    case CI_STMT_fold:
        print_fold(out, stmt);
        break;
    default:
        ci_text_add(out, "yield");
        print_values(out, " ", stmt);
    }
}

static bool
has_body(const CiStmt *stmt)
{
    return stmt->kind == CI_STMT_for || stmt->kind == CI_STMT_loop || stmt->kind == CI_STMT_if ||
           stmt->kind == CI_STMT_fold;
}

static void
print_block(CiText *out, const CiStmts *block)
{
    for (const CiStmt *stmt = block->first; stmt; stmt = stmt->next) {
        ci_text_indent(out);
        ci_stmt_print(out, stmt);
        ci_text_add(out, has_body(stmt) ? " {" : "");
        ci_loop_print_locs(out, &stmt->loc, 1);
        ci_text_add(out, "\n");
        for (int side = 0; side < 2 && has_body(stmt); side++) {
            if (side && !stmt->other.first)
                continue;
            if (side)
                ci_text_line(out, "} else {");
            out->indent += 2;
            print_block(out, side ? &stmt->other : &stmt->body);
            out->indent -= 2;
        }
        if (has_body(stmt))
            ci_text_line(out, "}");
    }
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
        print_expr(out, k ? ", " : "; ", proc->sizes[k], "");
    ci_text_add(out, ")");
    for (int k = 0; k < proc->nfacts; k++)
        print_expr(out, k ? ", " : " given ", proc->facts[k], "");
    ci_text_add(out, " {\n");
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
    if (e)
        ci_form_collect_symbols(symbols->seen, e);
}

static void
collect_stmt(void *arg, const CiStmt *stmt)
{
    Symbols *symbols = arg;
    if (stmt->op == CI_OP_bind) /* before other symbols, because it is older if a level above knows
                                 * it */
        ci_map_put(stmt->expr->symbol_kind == CI_SYMBOL_index ? symbols->made : symbols->seen,
                   CI_KEY(stmt->expr), (void *)stmt->expr);
    for (int k = 0; k < stmt->nvars; k++)
        collect(symbols, stmt->extents[k]);
    if (stmt->op != CI_OP_bind)
        collect(symbols, stmt->expr);
    collect(symbols, stmt->live);
    collect(symbols, stmt->at.index);
    collect(symbols, stmt->at.stride);
    for (int k = 0; k < stmt->nin; k++) {
        collect(symbols, stmt->in[k].index);
        collect(symbols, stmt->in[k].stride);
    }
    collect(symbols, stmt->limit);
    if (stmt->memory)
        collect(symbols, stmt->memory->size);
    for (int k = 0; k < stmt->ntests; k++) {
        collect(symbols, stmt->tests[k].left);
        collect(symbols, stmt->tests[k].right);
    }
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
