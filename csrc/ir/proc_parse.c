/* Reading the statement level's text form.
 *
 * A name of memory or of a symbol is seen from its declaration to the end of its block; names come
 * back to those outside of it, as in loop_parse.c. */
#include "ir/text_common.h"
#include "ir/loop_parse.h"
#include "ir/proc_private.h"

#include <string.h>

typedef struct Parser {
    CiLexer lex;
    CiProcs *procs;
    CiBuild b;
    CiMemory **memories;
    const CiExpr **symbols;
    int nmemories, capmemories, nsymbols, capsymbols, depth;
} Parser;

/* ---- words ---- */

static int
find_word(const CiLexer *lex, const char *const *words, int count)
{
    for (int k = 0; k < count; k++)
        if (ci_lexer_is(lex, words[k]))
            return k;
    return -1;
}

static int
expect_word(CiLexer *lex, const char *const *words, int count, const char *what)
{
    int found = find_word(lex, words, count);
    if (found < 0)
        ci_lexer_fail(lex, "no %s is called that", what);
    ci_lexer_next(lex);
    return found;
}

static CiRunMode
parse_run(CiLexer *lex)
{
    return (CiRunMode)expect_word(lex, ci_run_mode_names, CI_RUN_COUNT, "way to run");
}

static CiSpace
parse_space(CiLexer *lex)
{
    int found = find_word(lex, ci_space_names, CI_SPACE_COUNT);
    if (found < 0)
        return CI_SPACE_global;
    ci_lexer_next(lex);
    return (CiSpace)found;
}

static CiOp
parse_op(CiLexer *lex)
{
    const char *name = ci_lexer_expect_name(lex);
    CiOp op = ci_op_find(name);
    if (op == CI_OP_none)
        ci_lexer_fail(lex, "no operation is called %s", name);
    return op;
}

/* ---- pieces ---- */

static const CiExpr *
parse_expr(Parser *p)
{
    return ci_expr_parse(p->b.sym, &p->lex);
}

static const CiExpr *
parse_bracketed(Parser *p)
{
    ci_lexer_expect(&p->lex, "[");
    const CiExpr *e = parse_expr(p);
    ci_lexer_expect(&p->lex, "]");
    return e;
}

/* f32x16: one word. */
static CiType
parse_type(Parser *p)
{
    const char *word = ci_lexer_expect_name(&p->lex), *x = strchr(word, 'x');
    CiType type = {CI_DTYPE_none, 1};
    size_t length = x ? (size_t)(x - word) : strlen(word);
    const char *stem = ci_intern_chars(p->b.ctx, word, length);
    for (int lanes = 0; x && x[1] >= '0' && x[1] <= '9'; x++)
        type.lanes = lanes = 10 * lanes + x[1] - '0';
    type.dtype = ci_dtype_find(stem);
    if (type.dtype == CI_DTYPE_none)
        ci_lexer_fail(&p->lex, "no type is called %s", word);
    return type;
}

static void
enter_scope(Parser *p, CiMemory *memory)
{
    CI_PUSH(p->b.ctx, p->memories, p->nmemories, p->capmemories, memory);
}

/* name: f32x16[4] register */
static CiMemory *
parse_declaration(Parser *p)
{
    CiMemory *memory = CI_NEW(p->b.ctx, CiMemory);
    memory->is_const = ci_lexer_accept(&p->lex, "const");
    memory->name = ci_lexer_expect_name(&p->lex);
    ci_lexer_expect(&p->lex, ":");
    CiType type = parse_type(p);
    memory->dtype = type.dtype;
    memory->lanes = type.lanes;
    memory->size = parse_bracketed(p);
    if (ci_lexer_accept(&p->lex, "from"))
        memory->first = parse_bracketed(p);
    memory->space = parse_space(&p->lex);
    if (ci_lexer_accept(&p->lex, "at"))
        memory->offset = parse_bracketed(p);
    enter_scope(p, memory);
    return memory;
}

static CiMemory *
parse_memory(Parser *p)
{
    const char *name = ci_lexer_expect_name(&p->lex);
    for (int k = p->nmemories - 1; k >= 0; k--)
        if (strcmp(p->memories[k]->name, name) == 0)
            return p->memories[k];
    ci_lexer_fail(&p->lex, "no memory is called %s here", name);
}

static int
parse_value(Parser *p)
{
    ci_lexer_expect(&p->lex, "%");
    int64_t value = ci_lexer_expect_int(&p->lex);
    if (value < 0 || value >= p->b.proc->nvalues)
        ci_lexer_fail(&p->lex, "%%%lld is not defined yet", (long long)value);
    return (int)value;
}

static void
parse_values(Parser *p, CiStmt *stmt)
{
    int capacity = 0;
    do {
        int value = parse_value(p);
        CI_PUSH(p->b.ctx, stmt->args, stmt->nargs, capacity, value);
    } while (ci_lexer_accept(&p->lex, ","));
}

/* The values of a call are of its type. */
static void
parse_args(Parser *p, CiStmt *stmt)
{
    parse_values(p, stmt);
    if (stmt->kind == CI_STMT_call)
        stmt->type = p->b.proc->types[stmt->args[0]];
}

static void
parse_access(Parser *p, CiAccess *at)
{
    at->memory = parse_memory(p);
    at->index = parse_bracketed(p);
    if (ci_lexer_accept(&p->lex, "stride"))
        at->stride = parse_bracketed(p);
}

static const CiExpr *
enter_symbol(Parser *p, const CiExpr *symbol)
{
    CI_PUSH(p->b.ctx, p->symbols, p->nsymbols, p->capsymbols, symbol);
    return symbol;
}

/* ---- tests ---- */

static CiCondition
parse_test(Parser *p)
{
    static const char *const signs[] = {
#define COMPARE(name, sign) sign,
#include "ir/proc.def"
    };
    CiCondition test = {.value = -1};
    if (!ci_lexer_accept(&p->lex, "(")) {
        test.compare = ci_lexer_accept(&p->lex, "not") ? CI_COMPARE_is_not : CI_COMPARE_is;
        test.value = parse_value(p);
        return test;
    }
    test.left = parse_expr(p);
    test.compare = (CiCompare)expect_word(&p->lex, signs, CI_COMPARE_is, "comparison");
    test.right = parse_expr(p);
    ci_lexer_expect(&p->lex, ")");
    return test;
}

static void
parse_tests(Parser *p, CiStmt *stmt)
{
    int capacity = 0;
    do
        CI_PUSH(p->b.ctx, stmt->tests, stmt->ntests, capacity, parse_test(p));
    while (ci_lexer_accept(&p->lex, "and"));
}

/* ---- values and symbols ---- */

/* [at0<n], [2<=at0<n] */
static void
parse_symbol(Parser *p, CiStmt *let)
{
    CiLexer *lex = &p->lex;
    int64_t low = 0;
    ci_lexer_expect(lex, "[");
    if (lex->kind == CI_TOKEN_int) {
        low = ci_lexer_expect_int(lex);
        ci_lexer_expect(lex, "<=");
    }
    const char *name = ci_lexer_expect_name(lex);
    const CiExpr *limit = let->limit = ci_lexer_accept(lex, "<") ? parse_expr(p) : NULL;
    ci_lexer_expect(lex, "]");
    const CiExpr *known = ci_sym_find_symbol(p->b.sym, name);
    if (known && known->symbol_kind == CI_SYMBOL_unbacked)
        let->expr = known;
    else
        let->expr = low || !limit ? ci_expr_unbacked(p->b.sym, name, low, limit)
                                  : ci_expr_index(p->b.sym, name, limit);
    enter_symbol(p, let->expr);
}

/* A value has the number that is written; those between it and the last are no values. */
static void
define(Parser *p, CiStmt *stmt, int64_t value)
{
    CiProc *proc = p->b.proc;
    if (value < 0 || value > 1000000)
        ci_lexer_fail(&p->lex, "%%%lld is no number of a value", (long long)value);
    while (proc->nvalues <= value) {
        CiType none = {CI_DTYPE_none, 1};
        CI_PUSH(p->b.ctx, proc->types, proc->nvalues, proc->capvalues, none);
    }
    proc->types[value] = stmt->type;
    stmt->value = (int)value;
}

/* ---- operands ---- */

/* i0<4, i1<s0 */
static void
parse_loops(Parser *p, CiStmt *stmt)
{
    stmt->vars = CI_NEW_ARRAY(p->b.ctx, const CiExpr *, CI_MAX_FOLD_AXES);
    stmt->extents = CI_NEW_ARRAY(p->b.ctx, const CiExpr *, CI_MAX_FOLD_AXES);
    do {
        if (stmt->nvars == CI_MAX_FOLD_AXES)
            ci_lexer_fail(&p->lex, "more than %d axes", CI_MAX_FOLD_AXES);
        const char *name = ci_lexer_expect_name(&p->lex);
        ci_lexer_expect(&p->lex, "<");
        stmt->extents[stmt->nvars] = parse_expr(p);
        stmt->vars[stmt->nvars] =
            enter_symbol(p, ci_expr_index(p->b.sym, name, stmt->extents[stmt->nvars]));
        stmt->nvars++;
    } while (ci_lexer_accept(&p->lex, ","));
}

static void
parse_runs(Parser *p, CiStmt *loop)
{
    const CiExpr *most = ci_expr_add(p->b.sym, loop->extents[0], ci_expr_const(p->b.sym, 1));
    loop->runs = enter_symbol(p, ci_expr_index(p->b.sym, ci_lexer_expect_name(&p->lex), most));
}

static CiIntrinsic
parse_intrinsic(CiLexer *lex)
{
    return (CiIntrinsic)expect_word(lex, ci_intrinsic_names, CI_INTRINSIC_COUNT, "intrinsic");
}

static void
parse_in(Parser *p, CiStmt *apply)
{
    do {
        if (apply->nin == 2)
            ci_lexer_fail(&p->lex, "more than two operands");
        parse_access(p, &apply->in[apply->nin++]);
    } while (ci_lexer_accept(&p->lex, ","));
}

/* sum into a, argmax into v at k */
static void
parse_reductions(Parser *p, CiStmt *fold)
{
    int capops = 0, capinto = 0;
    do {
        CiOp op = parse_op(&p->lex);
        CI_PUSH(p->b.ctx, fold->ops, fold->nops, capops, op);
        ci_lexer_expect(&p->lex, "into");
        for (int w = 0; w < ci_fold_width(op); w++) {
            if (w)
                ci_lexer_expect(&p->lex, "at");
            CI_PUSH(p->b.ctx, fold->into, fold->ninto, capinto, parse_memory(p));
        }
    } while (ci_lexer_accept(&p->lex, ","));
}

static void
parse_operand(Parser *p, CiStmt *stmt, const CiOperand *operand)
{
    void *at = (char *)stmt + operand->offset;
    switch (operand->type) {
    case CI_OPERAND_expr:
        *(const CiExpr **)at = parse_bracketed(p);
        break;
    case CI_OPERAND_memory:
        *(CiMemory **)at = parse_memory(p);
        break;
    case CI_OPERAND_flag:
        *(bool *)at = true;
        break;
    case CI_OPERAND_number:
        stmt->number = (int)ci_lexer_expect_int(&p->lex);
        break;
    case CI_OPERAND_op:
        stmt->op = parse_op(&p->lex);
        break;
    case CI_OPERAND_intrinsic:
        stmt->intrinsic = parse_intrinsic(&p->lex);
        break;
    case CI_OPERAND_run:
        stmt->run = parse_run(&p->lex);
        break;
    case CI_OPERAND_runs:
        parse_runs(p, stmt);
        break;
    case CI_OPERAND_loops:
        parse_loops(p, stmt);
        break;
    case CI_OPERAND_args:
        parse_args(p, stmt);
        break;
    case CI_OPERAND_at:
        parse_access(p, &stmt->at);
        break;
    case CI_OPERAND_in:
        parse_in(p, stmt);
        break;
    case CI_OPERAND_tests:
        parse_tests(p, stmt);
        break;
    case CI_OPERAND_constant:
        *(CiConst *)at = ci_const_parse(&p->lex, stmt->type.dtype);
        break;
    case CI_OPERAND_symbol:
        parse_symbol(p, stmt);
        break;
    case CI_OPERAND_declaration:
        stmt->memory = parse_declaration(p);
        break;
    case CI_OPERAND_reductions:
        parse_reductions(p, stmt);
        break;
    case CI_OPERAND_order:
        stmt->order = ci_fold_order_parse(p->b.sym, &p->lex);
    }
}

/* A word of letters, or one sign. */
static const char *
first_word(Parser *p, const char *at, size_t *length)
{
    *length = strcspn(at, " ,(){}[]=");
    *length = *length ? *length : 1;
    return ci_copy_text(p->b.ctx, at, *length);
}

/* An operation precedes a name. No other operand of a statement that may have an operation does. */
static bool
has_group(Parser *p, const char *group)
{
    CiLexer ahead = p->lex;
    size_t length;
    const char *at = group + strspn(group, " ");
    if (*at != '{')
        return ci_lexer_is(&p->lex, first_word(p, at, &length));
    ci_lexer_next(&ahead);
    return ahead.kind == CI_TOKEN_name;
}

/* Reads what print_pattern of proc_text.c prints. */
static void
parse_pattern(Parser *p, CiStmt *stmt, const char *at)
{
    for (at += strspn(at, " "); *at && *at != ']'; at += strspn(at, " ")) {
        size_t length = 0;
        if (*at == '{')
            parse_operand(p, stmt, ci_stmt_operand(at));
        else if (*at != '[')
            ci_lexer_expect(&p->lex, first_word(p, at, &length));
        else if (has_group(p, at + 1))
            parse_pattern(p, stmt, at + 1);
        at = length ? at + length : ci_pattern_next(at);
    }
}

/* ---- statements ---- */

static void parse_block(Parser *p, CiStmts *block);

static void
parse_let(Parser *p)
{
    CiLexer *lex = &p->lex;
    CiStmt *let = ci_build_add(&p->b, CI_STMT_let);
    ci_lexer_expect(lex, "%");
    int64_t value = ci_lexer_expect_int(lex);
    ci_lexer_expect(lex, ":");
    let->type = parse_type(p);
    ci_lexer_expect(lex, "=");
    let->op = parse_op(lex);
    parse_pattern(p, let, ci_stmt_pattern(let));
    define(p, let, value);
}

static void
parse_stmt(Parser *p)
{
    int symbols = p->nsymbols;
    if (ci_lexer_is(&p->lex, "%")) {
        parse_let(p);
        p->b.to->last->loc = ci_form_parse_loc(&p->lex);
        return;
    }
    CiStmtKind kind = (CiStmtKind)expect_word(&p->lex, ci_stmt_names, CI_STMT_COUNT, "statement");
    CiStmt *stmt = ci_build_add(&p->b, kind);
    parse_pattern(p, stmt, ci_stmt_pattern(stmt));
    if (!ci_stmt_blocks(stmt)) {
        stmt->loc = ci_form_parse_loc(&p->lex);
        return;
    }
    ci_form_enter(&p->lex, &p->depth);
    stmt->loc = ci_form_parse_loc(&p->lex);
    parse_block(p, &stmt->body);
    ci_form_leave(&p->lex, &p->depth);
    if (ci_stmt_blocks(stmt) > 1 && ci_lexer_accept(&p->lex, "else")) {
        ci_form_enter(&p->lex, &p->depth);
        parse_block(p, &stmt->other);
        ci_form_leave(&p->lex, &p->depth);
    }
    p->nsymbols = symbols;
}

/* Symbols of loops inside may have taken the names of those outside: asking again gives them back.
 */
static void
restore_names(Parser *p, int symbols)
{
    p->nsymbols = symbols;
    for (int k = 0; k < symbols; k++)
        if (p->symbols[k]->symbol_kind == CI_SYMBOL_index)
            ci_expr_index(p->b.sym, p->symbols[k]->name, p->symbols[k]->limit);
}

static void
parse_block(Parser *p, CiStmts *block)
{
    int memories = p->nmemories, symbols = p->nsymbols;
    CiStmts *outside = ci_build_enter(&p->b, block);
    while (!ci_lexer_is(&p->lex, "}"))
        parse_stmt(p);
    ci_build_leave(&p->b, outside);
    p->nmemories = memories;
    restore_names(p, symbols);
}

static void
parse_axes(CiLexer *lex, CiProcHead *head)
{
    int capacity = 0;
    do {
        CiPointAxis axis = {.var = ci_lexer_expect_name(lex)};
        if (ci_lexer_accept(lex, "by"))
            axis.tile = (int)ci_lexer_expect_int(lex);
        CI_PUSH(lex->ctx, head->axes, head->naxes, capacity, axis);
    } while (ci_lexer_accept(lex, ","));
}

static void
parse_head(Parser *p, CiProc *proc)
{
    CiLexer *lex = &p->lex;
    CiProcHead *head = &proc->head;
    proc->is_finish = ci_lexer_accept(lex, "finishes");
    if (proc->is_finish)
        head->kernel = ci_lexer_expect_name(lex);
    head->is_tree = ci_lexer_accept(lex, "tree");
    if (ci_lexer_accept(lex, "template"))
        head->kind = (CiTemplate)expect_word(lex, ci_template_names, CI_TEMPLATE_COUNT, "template");
    if (ci_lexer_accept(lex, "over"))
        parse_axes(lex, head);
    if (head->naxes && ci_lexer_accept(lex, "in")) {
        ci_lexer_expect(lex, "lanes");
        head->has_lanes = true;
    }
    if (ci_lexer_accept(lex, "rows")) {
        head->row = parse_bracketed(p);
        ci_lexer_expect(lex, "up");
        ci_lexer_expect(lex, "to");
        head->short_row = ci_lexer_expect_int(lex);
    }
    head->is_chained = ci_lexer_accept(lex, "chained");
    if (head->is_chained || ci_lexer_is(lex, "parts")) {
        ci_lexer_expect(lex, "parts");
        head->parts = parse_bracketed(p);
        head->part = ci_lexer_accept(lex, "of") ? parse_bracketed(p) : NULL;
    }
}

static void
parse_proc(Parser *p)
{
    CiLexer *lex = &p->lex;
    ci_lexer_expect(lex, "proc");
    CiProc *proc = p->b.proc = ci_procs_add(p->procs, ci_lexer_expect_name(lex));
    p->nmemories = p->nsymbols = 0;
    ci_lexer_expect(lex, "(");
    while (!ci_lexer_is(lex, ")") && !ci_lexer_is(lex, ";")) {
        if (proc->nparams)
            ci_lexer_expect(lex, ",");
        CiMemory *param = parse_declaration(p);
        CI_PUSH(p->b.ctx, proc->params, proc->nparams, proc->capparams, param);
    }
    if (ci_lexer_accept(lex, ";"))
        do
            CI_PUSH(p->b.ctx, proc->sizes, proc->nsizes, proc->capsizes, parse_expr(p));
        while (ci_lexer_accept(lex, ","));
    ci_lexer_expect(lex, ")");
    if (ci_lexer_accept(lex, "given"))
        do
            CI_PUSH(p->b.ctx, proc->facts, proc->nfacts, proc->capfacts, parse_expr(p));
        while (ci_lexer_accept(lex, ","));
    parse_head(p, proc);
    ci_form_enter(lex, &p->depth);
    proc->head.locs = ci_form_parse_locs(lex, &proc->head.nlocs);
    parse_block(p, &proc->body);
    ci_form_leave(lex, &p->depth);
}

static void
parse_procs(CiContext *ctx, void *arg)
{
    Parser *p = arg;
    CiLexer *lex = &p->lex;
    if (ci_lexer_accept(lex, "symbols")) {
        ci_lexer_expect(lex, "{");
        do
            ci_form_parse_symbol(p->b.sym, lex);
        while (ci_lexer_accept(lex, ","));
        ci_lexer_expect(lex, "}");
    }
    ci_lexer_expect(lex, "procs");
    p->procs = ci_procs_new(ctx, p->b.sym, ci_form_parse_name(lex));
    ci_lexer_expect(lex, "{");
    while (!ci_lexer_is(lex, "}"))
        parse_proc(p);
    ci_lexer_expect(lex, "}");
    if (lex->kind != CI_TOKEN_end)
        ci_lexer_fail(lex, "unexpected text after the end");
}

CiProcs *
ci_procs_parse(CiContext *ctx, const char *text)
{
    Parser parser = {.b = {.ctx = ctx, .sym = ci_sym_new(ctx)}};
    ci_lexer_init(&parser.lex, ctx, text);
    ci_lexer_run(ctx, &parser.lex, parse_procs, &parser);
    return parser.procs;
}

void
ci_procs_verify_text(const CiProcs *procs)
{
    CiText once = ci_text_new(procs->ctx), twice = ci_text_new(procs->ctx);
    ci_procs_print(&once, procs);
    ci_procs_print(&twice, ci_procs_parse(procs->ctx, once.data));
    ci_form_require_same(procs->ctx, "procs", once.data, twice.data);
}
