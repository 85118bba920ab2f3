/* Reading the statement level's text form.
 *
 * A name of memory or of a symbol is seen from its declaration to the end of its block; names come
 * back to those outside of it, as in loop_parse.c. */
#include "ir/text_common.h"
#include "ir/loop_parse.h"
#include "ir/proc.h"

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
    static const char *const words[] = {
#define RUN(name) #name,
#include "ir/proc.def"
    };
    return (CiRunMode)expect_word(lex, words, CI_RUN_COUNT, "way to run");
}

static CiSpace
parse_space(CiLexer *lex)
{
    static const char *const words[] = {
#define SPACE(name) #name,
#include "ir/proc.def"
    };
    int found = find_word(lex, words, CI_SPACE_COUNT);
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

static void
parse_access(Parser *p, CiAccess *at)
{
    at->memory = parse_memory(p);
    at->index = parse_bracketed(p);
    if (ci_lexer_accept(&p->lex, "stride"))
        at->stride = parse_bracketed(p);
}

static void
parse_cell(Parser *p, CiStmt *stmt)
{
    if (ci_lexer_accept(&p->lex, "in"))
        stmt->cell = parse_memory(p);
}

static void
parse_live(Parser *p, CiStmt *stmt)
{
    if (ci_lexer_accept(&p->lex, "live"))
        stmt->live = parse_bracketed(p);
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

/* ---- lets ---- */

/* [at0<n], [2<=at0<n] */
static void
parse_bound(Parser *p, CiStmt *let)
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
    if (let->op == CI_OP_load) {
        parse_access(p, &let->at);
        let->is_atomic = ci_lexer_accept(lex, "atomic");
    } else if (let->op == CI_OP_const)
        let->constant = ci_const_parse(lex, let->type.dtype);
    else if (let->op == CI_OP_index || let->op == CI_OP_iota || let->op == CI_OP_turn)
        let->expr = parse_bracketed(p);
    else
        parse_values(p, let);
    if (let->op == CI_OP_bind)
        parse_bound(p, let);
    parse_cell(p, let);
    if (let->cell) {
        ci_lexer_expect(lex, "from");
        let->expr = parse_bracketed(p);
    }
    parse_live(p, let);
    if (ci_lexer_accept(lex, "else"))
        let->at.otherwise = ci_const_parse(lex, let->type.dtype);
    define(p, let, value);
}

/* ---- statements ---- */

static void parse_block(Parser *p, CiStmts *block);

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
parse_store(Parser *p, CiStmt *store)
{
    CiLexer ahead = p->lex;
    ci_lexer_next(&ahead);
    if (!ci_lexer_is(&ahead, "["))
        store->op = parse_op(&p->lex);
    parse_access(p, &store->at);
    ci_lexer_expect(&p->lex, "=");
    parse_values(p, store);
    store->is_in_order = ci_lexer_accept(&p->lex, "in");
    if (store->is_in_order)
        ci_lexer_expect(&p->lex, "order");
    store->is_atomic = ci_lexer_accept(&p->lex, "atomic");
    parse_live(p, store);
}

static void
parse_call(Parser *p, CiStmt *call)
{
    static const char *const words[] = {
#define INTRINSIC(name, operands, has_result, has_cell, effect) #name,
#include "ir/proc.def"
    };
    call->intrinsic = (CiIntrinsic)expect_word(&p->lex, words, CI_INTRINSIC_COUNT, "intrinsic");
    parse_access(p, &call->at);
    ci_lexer_expect(&p->lex, "(");
    parse_values(p, call);
    ci_lexer_expect(&p->lex, ")");
    parse_cell(p, call);
    if (ci_lexer_accept(&p->lex, "below"))
        call->limit = parse_bracketed(p);
    parse_live(p, call);
    call->type = p->b.proc->types[call->args[0]];
}

static void
parse_apply(Parser *p, CiStmt *apply)
{
    apply->op = parse_op(&p->lex);
    parse_access(p, &apply->at);
    ci_lexer_expect(&p->lex, "of");
    do {
        if (apply->nin == 2)
            ci_lexer_fail(&p->lex, "more than two operands");
        parse_access(p, &apply->in[apply->nin++]);
    } while (ci_lexer_accept(&p->lex, ","));
    ci_lexer_expect(&p->lex, "for");
    apply->expr = parse_bracketed(p);
}

/* fold sum into a, argmax into v at k over r0<s1 in lanes */
static void
parse_fold(Parser *p, CiStmt *fold)
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
    ci_lexer_expect(&p->lex, "over");
    parse_loops(p, fold);
    if (ci_lexer_accept(&p->lex, "in"))
        fold->order = ci_fold_order_parse(p->b.sym, &p->lex);
    if (ci_lexer_accept(&p->lex, "from")) {
        fold->from = parse_bracketed(p);
        ci_lexer_expect(&p->lex, "for");
        fold->count = parse_bracketed(p);
    }
    if (ci_lexer_accept(&p->lex, "of")) {
        ci_lexer_expect(&p->lex, "blocks");
        fold->blocks = parse_bracketed(p);
    }
}

static void
parse_words(Parser *p, CiStmt *stmt)
{
    CiLexer *lex = &p->lex;
    switch (stmt->kind) {
    case CI_STMT_for:
        parse_loops(p, stmt);
        stmt->run = parse_run(lex);
        if (ci_lexer_accept(lex, "by"))
            stmt->number = (int)ci_lexer_expect_int(lex);
        if (ci_lexer_accept(lex, "runs")) {
            const CiExpr *most =
                ci_expr_add(p->b.sym, stmt->extents[0], ci_expr_const(p->b.sym, 1));
            stmt->runs = enter_symbol(p, ci_expr_index(p->b.sym, ci_lexer_expect_name(lex), most));
        }
        break;
    case CI_STMT_if:
        parse_tests(p, stmt);
        break;
    case CI_STMT_store:
        parse_store(p, stmt);
        break;
    case CI_STMT_alloc:
        stmt->memory = parse_declaration(p);
        break;
    case CI_STMT_call:
        parse_call(p, stmt);
        break;
    case CI_STMT_apply:
        parse_apply(p, stmt);
        break;
    case CI_STMT_stop:
        stmt->number = (int)ci_lexer_expect_int(lex);
        /* fallthrough */
    case CI_STMT_exit:
        if (ci_lexer_accept(lex, "if"))
            parse_tests(p, stmt);
        break;
    case CI_STMT_poll:
    case CI_STMT_wait:
    case CI_STMT_publish:
        stmt->expr = parse_bracketed(p);
        break;
    case CI_STMT_prefetch:
        parse_access(p, &stmt->at);
        break;
    case CI_STMT_swap:
        stmt->memory = parse_memory(p);
        ci_lexer_expect(lex, ",");
        stmt->partner = parse_memory(p);
        break;
    case CI_STMT_fold:
        parse_fold(p, stmt);
        break;
    case CI_STMT_yield:
        parse_values(p, stmt);
        break;
    default:
        break;
    }
}

static void
parse_stmt(Parser *p)
{
    static const char *const words[] = {
#define STMT(name) #name,
#include "ir/proc.def"
    };
    int symbols = p->nsymbols;
    if (ci_lexer_is(&p->lex, "%")) {
        parse_let(p);
        p->b.to->last->loc = ci_form_parse_loc(&p->lex);
        return;
    }
    CiStmtKind kind = (CiStmtKind)expect_word(&p->lex, words, CI_STMT_COUNT, "statement");
    CiStmt *stmt = ci_build_add(&p->b, kind);
    parse_words(p, stmt);
    if (kind != CI_STMT_for && kind != CI_STMT_loop && kind != CI_STMT_if && kind != CI_STMT_fold) {
        stmt->loc = ci_form_parse_loc(&p->lex);
        return;
    }
    ci_form_enter(&p->lex, &p->depth);
    stmt->loc = ci_form_parse_loc(&p->lex);
    parse_block(p, &stmt->body);
    ci_form_leave(&p->lex, &p->depth);
    if (kind == CI_STMT_if && ci_lexer_accept(&p->lex, "else")) {
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
    ci_form_enter(lex, &p->depth);
    parse_block(p, &proc->body);
    ci_form_leave(lex, &p->depth);
}

CiProcs *
ci_procs_parse(CiContext *ctx, const char *text)
{
    Parser parser = {.b = {.ctx = ctx, .sym = ci_sym_new(ctx)}}, *p = &parser;
    CiLexer *lex = &p->lex;
    ci_lexer_init(lex, ctx, text);
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
    return p->procs;
}

void
ci_procs_verify_text(const CiProcs *procs)
{
    CiText once = ci_text_new(procs->ctx), twice = ci_text_new(procs->ctx);
    ci_procs_print(&once, procs);
    ci_procs_print(&twice, ci_procs_parse(procs->ctx, once.data));
    const char *a = once.data, *b = twice.data;
    while (*a && strcspn(a, "\n") == strcspn(b, "\n") && !strncmp(a, b, strcspn(a, "\n"))) {
        a += strcspn(a, "\n") + 1;
        b += strcspn(b, "\n") + 1;
    }
    if (*a || *b)
        ci_fail(procs->ctx, CI_ERR_INTERNAL, "read back, the line of procs\n%.*s\nprints as\n%.*s",
                (int)strcspn(a, "\n"), a, (int)strcspn(b, "\n"), b);
}
