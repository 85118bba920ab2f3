/* Statements as text. An index expression is in brackets wherever a line may end after it, because the
 * % of the next line would continue it. A name of memory or of a symbol is seen from its declaration to
 * the end of its block; names come back to those outside of it. */
#include "ir/loop_text.h"
#include "ir/proc_private.h"

#include <string.h>

/* ---- pieces ---- */

#define MOST_LANES (1 << 24)
#define MOST_POINTERS 1000000

/* The bytes of a mask that the word of a type names; 0: none. */
static int
mask_of_word(const char *word)
{
    static const char *const masks[] = {"bool8x", "bool16x", "bool32x", "bool64x"};
    for (int k = 0; k < 4; k++)
        if (strncmp(word, masks[k], strlen(masks[k])) == 0)
            return 1 << k;
    return 0;
}

/* f32x16, bool32x16: one word. */
static CiType
io_type(CiTextIo *f, CiType type)
{
    const char *word = f->out ? ci_dtype_name(type.dtype) : NULL;
    if (type.mask)
        word = ci_format(f->ctx, "%s%d", word, 8 * type.mask);
    word = ci_io_word(f, word && type.lanes > 1 ? ci_format(f->ctx, "%sx%d", word, type.lanes) : word);
    if (f->out)
        return type;
    const char *x = strchr(word, 'x');
    type.lanes = 1;
    type.mask = mask_of_word(word);
    size_t length = type.mask ? strlen("bool") : x ? (size_t)(x - word) : strlen(word);
    type.dtype = ci_dtype_find(ci_intern_chars(f->ctx, word, length));
    for (int lanes = 0; x && x[1] >= '0' && x[1] <= '9' && lanes < MOST_LANES; x++)
        type.lanes = lanes = 10 * lanes + x[1] - '0';
    if (type.dtype == CI_DTYPE_none || type.lanes < 1 || (x && x[1]))
        ci_lexer_fail(&f->lex, "no type is called %s", word);
    return type;
}

/* name: f32x16[4] register */
CiMemory *
ci_proc_io_declaration(CiProcIo *p, CiMemory *memory)
{
    static const char *const spaces[] = {
#define SPACE(name) " " #name,
#include "ir/proc.def"
    };
    CiTextIo *f = &p->io;
    memory = f->out ? memory : CI_NEW(f->ctx, CiMemory);
    memory->is_const = ci_io_flag(f, "const ", memory->is_const);
    memory->name = ci_io_word(f, memory->name);
    ci_io_text(f, ": ");
    CiType type = {memory->dtype, memory->lanes, memory->mask};
    type = io_type(f, type);
    memory->dtype = type.dtype;
    memory->lanes = type.lanes;
    memory->mask = type.mask;
    ci_io_expr(f, "[", &memory->size, "]");
    ci_io_if(f, " from [", &memory->first, "]");
    CiSpace space = CI_SPACE_global; /* has no word */
    for (CiSpace k = 0; k < CI_SPACE_COUNT; k++)
        if (k != CI_SPACE_global && ci_io_flag(f, spaces[k], memory->space == k))
            space = k;
    memory->space = space;
    ci_io_if(f, " at [", &memory->offset, "]");
    if (!f->out)
        CI_PUSH(f->ctx, p->memories, p->nmemories, p->capmemories, memory);
    return memory;
}

static CiMemory *
io_memory(CiProcIo *p, CiMemory *memory)
{
    const char *name = ci_io_word(&p->io, p->io.out ? memory->name : NULL);
    if (p->io.out)
        return memory;
    for (int k = p->nmemories - 1; k >= 0; k--)
        if (strcmp(p->memories[k]->name, name) == 0)
            return p->memories[k];
    ci_lexer_fail(&p->io.lex, "no memory is called %s here", name);
}

static int
io_value(CiProcIo *p, int value)
{
    return ci_io_value(&p->io, value, p->io.out ? 0 : p->b.proc->nvalues);
}

/* The values of a call are of its type. */
static void
io_args(CiProcIo *p, CiStmt *stmt)
{
    int capacity = 0;
    for (int k = 0; ci_io_more(&p->io, k, stmt->nargs, NULL); k++) {
        int value = io_value(p, p->io.out ? stmt->args[k] : 0);
        if (!p->io.out)
            CI_PUSH(p->io.ctx, stmt->args, stmt->nargs, capacity, value);
    }
    if (!p->io.out && stmt->kind == CI_STMT_call)
        stmt->type = p->b.proc->types[stmt->args[0]];
}

static int
io_pointer(CiProcIo *p, int pointer)
{
    CiLexer at = p->io.lex;
    pointer = ci_io_count(&p->io, pointer, 1);
    if (!p->io.out && pointer > MOST_POINTERS)
        ci_lexer_fail(&at, "more than %d pointers", MOST_POINTERS);
    if (!p->io.out && pointer > p->b.proc->npointers)
        p->b.proc->npointers = pointer;
    return pointer;
}

static void
io_access(CiProcIo *p, CiAccess *at)
{
    at->memory = io_memory(p, at->memory);
    ci_io_expr(&p->io, "[", &at->index, "]");
    ci_io_if(&p->io, " stride [", &at->stride, "]");
    at->is_aligned = ci_io_flag(&p->io, " aligned", at->is_aligned);
    at->is_shifted = ci_io_flag(&p->io, " shifted", at->is_shifted);
    if (ci_io_flag(&p->io, " pointer ", at->pointer > 0))
        at->pointer = io_pointer(p, at->pointer);
}

static CiCondition
io_test(CiProcIo *p, CiCondition test)
{
    static const char *const signs[] = {
#define COMPARE(name, sign) sign,
#include "ir/proc.def"
    };
    CiTextIo *f = &p->io;
    if (!ci_io_flag(f, "(", test.compare < CI_COMPARE_is)) {
        bool is_not = ci_io_flag(f, "not ", test.compare == CI_COMPARE_is_not);
        test.compare = is_not ? CI_COMPARE_is_not : CI_COMPARE_is;
        test.value = io_value(p, test.value);
        return test;
    }
    ci_io_expr(f, "", &test.left, " ");
    test.compare = (CiCompare)ci_io_choice(f, signs, CI_COMPARE_is, test.compare, "comparison");
    ci_io_expr(f, " ", &test.right, ")");
    return test;
}

static void
io_tests(CiProcIo *p, CiStmt *stmt)
{
    CiTextIo *f = &p->io;
    int capacity = 0;
    for (int k = 0; !k || ci_io_flag(f, " and ", k < stmt->ntests); k++) {
        CiCondition test = io_test(p, f->out ? stmt->tests[k] : (CiCondition){.value = -1});
        if (!f->out)
            CI_PUSH(f->ctx, stmt->tests, stmt->ntests, capacity, test);
    }
}

/* [at0<n], [-2<=at0<n]: what the symbol's value is promised to be. */
static void
io_symbol(CiTextIo *f, CiStmt *bind)
{
    const CiExpr *symbol = bind->expr;
    int64_t low = f->out ? symbol->low : 0;
    ci_io_text(f, "[");
    if (f->out ? low != 0 && low != CI_MINUS_INFINITY
               : f->lex.kind == CI_TOKEN_int || ci_lexer_is(&f->lex, "-")) {
        low = ci_io_int(f, low);
        ci_io_text(f, "<=");
    }
    const char *name = ci_io_word(f, f->out ? symbol->name : NULL);
    ci_io_if(f, "<", &bind->limit, "");
    ci_io_text(f, "]");
    if (f->out) {
        ci_io_enter_scope(f, symbol);
        if (f->seen && symbol->symbol_kind != CI_SYMBOL_index)
            ci_io_collect_symbols(f->seen, symbol);
        return;
    }
    const CiExpr *known = ci_sym_find_symbol(f->sym, name), *limit = bind->limit;
    if (known && known->symbol_kind == CI_SYMBOL_unbacked)
        bind->expr = known;
    else
        bind->expr = low || !limit ? ci_expr_unbacked(f->sym, name, low, limit)
                                   : ci_expr_index(f->sym, name, limit);
    ci_io_enter_scope(f, bind->expr);
}

/* A value has the number that is written; those between it and the last are no values. */
static void
define(CiProcIo *p, CiStmt *stmt, int64_t value)
{
    CiProc *proc = p->b.proc;
    if (value < 0 || value > 1000000)
        ci_lexer_fail(&p->io.lex, "%%%lld is no number of a value", (long long)value);
    while (proc->nvalues <= value) {
        CiType none = ci_type_of(CI_DTYPE_none, 1);
        CI_PUSH(p->io.ctx, proc->types, proc->nvalues, proc->capvalues, none);
    }
    proc->types[value] = stmt->type;
    stmt->value = (int)value;
}

/* ---- operands ---- */

/* i0<4, i1<s0 */
static void
io_loops(CiTextIo *f, CiStmt *stmt)
{
    if (!f->out) {
        stmt->vars = CI_NEW_ARRAY(f->ctx, const CiExpr *, CI_MAX_FOLD_AXES);
        stmt->extents = CI_NEW_ARRAY(f->ctx, const CiExpr *, CI_MAX_FOLD_AXES);
    }
    for (int k = 0; ci_io_more(f, k, stmt->nvars, NULL); k++) {
        if (k == CI_MAX_FOLD_AXES)
            ci_lexer_fail(&f->lex, "more than %d axes", CI_MAX_FOLD_AXES);
        const char *name = ci_io_word(f, f->out ? stmt->vars[k]->name : NULL);
        ci_io_expr(f, "<", &stmt->extents[k], "");
        const CiExpr *var = f->out ? stmt->vars[k] : ci_expr_index(f->sym, name, stmt->extents[k]);
        stmt->vars[k] = ci_io_enter_scope(f, var);
        stmt->nvars = f->out ? stmt->nvars : k + 1;
    }
}

static void
io_runs(CiTextIo *f, CiStmt *loop)
{
    const char *name = ci_io_word(f, f->out ? loop->runs->name : NULL);
    if (f->out) {
        ci_io_enter_scope(f, loop->runs);
        return;
    }
    const CiExpr *most = ci_expr_add(f->sym, loop->extents[0], ci_expr_const(f->sym, 1));
    loop->runs = ci_io_enter_scope(f, ci_expr_index(f->sym, name, most));
}

static void
io_in(CiProcIo *p, CiStmt *apply)
{
    for (int k = 0; ci_io_more(&p->io, k, apply->nin, NULL); k++) {
        if (k == 2)
            ci_lexer_fail(&p->io.lex, "more than two operands");
        io_access(p, &apply->in[k]);
        apply->nin = p->io.out ? apply->nin : k + 1;
    }
}

/* sum into a, argmax into v at k */
static void
io_reductions(CiProcIo *p, CiStmt *fold)
{
    CiTextIo *f = &p->io;
    int capops = 0, capinto = 0;
    for (int k = 0, at = 0; ci_io_more(f, k, fold->nops, NULL); k++) {
        CiOp op = ci_io_op(f, f->out ? fold->ops[k] : CI_OP_none);
        ci_io_text(f, " into");
        for (int w = 0; w < ci_fold_width(op); w++, at++) {
            ci_io_text(f, w ? " at " : " ");
            CiMemory *into = io_memory(p, f->out ? fold->into[at] : NULL);
            if (!f->out)
                CI_PUSH(f->ctx, fold->into, fold->ninto, capinto, into);
        }
        if (!f->out)
            CI_PUSH(f->ctx, fold->ops, fold->nops, capops, op);
    }
}

static void
io_operand(CiProcIo *p, CiStmt *stmt, const CiOperand *operand)
{
    CiTextIo *f = &p->io;
    void *at = (char *)stmt + operand->offset;
    switch (operand->type) {
    case CI_OPERAND_expr:
        ci_io_expr(f, "[", at, "]");
        break;
    case CI_OPERAND_memory:
        *(CiMemory **)at = io_memory(p, *(CiMemory **)at);
        break;
    case CI_OPERAND_flag:
        *(bool *)at = true;
        break;
    case CI_OPERAND_number:
        stmt->number = ci_io_count(f, stmt->number, 0);
        break;
    case CI_OPERAND_op:
        stmt->op = ci_io_op(f, stmt->op);
        break;
    case CI_OPERAND_intrinsic:
        stmt->intrinsic = (CiIntrinsic)ci_io_choice(f, ci_intrinsic_names, CI_INTRINSIC_COUNT,
                                                    stmt->intrinsic, "intrinsic");
        break;
    case CI_OPERAND_run:
        stmt->run =
            (CiRunMode)ci_io_choice(f, ci_run_mode_names, CI_RUN_COUNT, stmt->run, "way to run");
        break;
    case CI_OPERAND_runs:
        io_runs(f, stmt);
        break;
    case CI_OPERAND_loops:
        io_loops(f, stmt);
        break;
    case CI_OPERAND_args:
        io_args(p, stmt);
        break;
    case CI_OPERAND_at:
        io_access(p, &stmt->at);
        break;
    case CI_OPERAND_in:
        io_in(p, stmt);
        break;
    case CI_OPERAND_tests:
        io_tests(p, stmt);
        break;
    case CI_OPERAND_constant:
        *(CiConst *)at = ci_io_const(f, stmt->type.dtype, *(CiConst *)at);
        break;
    case CI_OPERAND_symbol:
        io_symbol(f, stmt);
        break;
    case CI_OPERAND_declaration:
        stmt->memory = ci_proc_io_declaration(p, stmt->memory);
        break;
    case CI_OPERAND_reductions:
        io_reductions(p, stmt);
        break;
    case CI_OPERAND_order:
        stmt->order = ci_fold_order_io(f, stmt->order);
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

/* An operation precedes a name. No other operand of a statement that may have an operation does. */
static bool
has_group(CiTextIo *f, const CiStmt *stmt, const char *group)
{
    CiLexer ahead = f->lex;
    if (f->out)
        return has_operand(stmt, ci_stmt_operand(group));
    if (*group != '{')
        return ci_io_is(f, ci_copy_text(f->ctx, group, strcspn(group, "{")));
    ci_lexer_next(&ahead);
    return ahead.kind == CI_TOKEN_name;
}

/* Up to the end of the group. */
static void
io_pattern(CiProcIo *p, CiStmt *stmt, const char *at)
{
    CiTextIo *f = &p->io;
    while (*at && *at != ']') {
        size_t words = strcspn(at, "{[]");
        if (words)
            ci_io_text(f, ci_copy_text(f->ctx, at, words));
        else if (*at == '{')
            io_operand(p, stmt, ci_stmt_operand(at));
        else if (has_group(f, stmt, at + 1))
            io_pattern(p, stmt, at + 1);
        at = words ? at + words : ci_pattern_next(at);
    }
}

/* ---- statements ---- */

/* Its line, without what is inside of it. */
static CiStmt *
io_line(CiProcIo *p, CiStmt *stmt)
{
    CiTextIo *f = &p->io;
    int64_t value = f->out ? stmt->value : 0;
    bool is_let = ci_io_flag(f, "%", f->out && stmt->kind == CI_STMT_let);
    if (is_let) {
        stmt = f->out ? stmt : ci_build_add(&p->b, CI_STMT_let);
        value = ci_io_int(f, value);
        ci_io_text(f, ": ");
        stmt->type = io_type(f, stmt->type);
        ci_io_text(f, " = ");
        stmt->op = ci_io_op(f, stmt->op);
    } else {
        int kind = ci_io_choice(f, ci_stmt_names, CI_STMT_COUNT, f->out ? stmt->kind : 0, "statement");
        stmt = f->out ? stmt : ci_build_add(&p->b, (CiStmtKind)kind);
    }
    const char *pattern = ci_stmt_pattern(stmt);
    bool is_empty = !*pattern || (f->out && *pattern == '[' && !has_group(f, stmt, pattern + 1));
    ci_io_text(f, is_empty ? "" : " ");
    io_pattern(p, stmt, pattern);
    stmt->in_lane_loop = ci_io_flag(f, " joined", stmt->in_lane_loop);
    if (is_let && !f->out)
        define(p, stmt, value);
    return stmt;
}

void
ci_stmt_print(CiText *out, const CiStmt *stmt)
{
    CiProcIo p = {.io = ci_io_printer(out->ctx, NULL, out)};
    io_line(&p, (CiStmt *)(uintptr_t)stmt);
}

static void
io_stmt(CiProcIo *p, CiStmt *stmt)
{
    CiTextIo *f = &p->io;
    int outside = f->nscope;
    ci_io_indent(f);
    stmt = io_line(p, stmt);
    if (ci_stmt_blocks(stmt)) {
        ci_io_enter(f, " {");
        stmt->loc = ci_io_loc(f, "  ", stmt->loc);
        ci_io_text(f, "\n");
        ci_proc_io_block(p, &stmt->body);
        ci_io_leave(f, "}");
        if (ci_stmt_blocks(stmt) > 1 && ci_io_flag(f, " else", stmt->other.first)) {
            ci_io_enter(f, " {\n");
            ci_proc_io_block(p, &stmt->other);
            ci_io_leave(f, "}");
        }
        ci_io_leave_scope(f, outside);
    } else {
        stmt->loc = ci_io_loc(f, "  ", stmt->loc);
    }
    ci_io_text(f, "\n");
}

void
ci_proc_io_block(CiProcIo *p, CiStmts *block)
{
    CiTextIo *f = &p->io;
    int memories = p->nmemories, symbols = f->nscope;
    for (CiStmt *stmt = f->out ? block->first : NULL; stmt; stmt = stmt->next)
        io_stmt(p, stmt);
    if (f->out)
        return;
    CiStmts *outside = ci_build_enter(&p->b, block);
    while (!ci_lexer_is(&f->lex, "}"))
        io_stmt(p, NULL);
    ci_build_leave(&p->b, outside);
    p->nmemories = memories;
    ci_io_leave_scope(f, symbols);
}
