/* Building procs, and walking them. */
#include "ir/proc.h"

#include <string.h>


#define MANY_THREADS 512 /* their warps exchange values in fewer steps than one after another */

/* ---- words ---- */

const char *const ci_run_mode_names[] = {
#define RUN(name) #name,
#include "ir/proc.def"
};

const char *const ci_intrinsic_names[] = {
#define INTRINSIC(name, operands, has_result, has_cell, effect) #name,
#include "ir/proc.def"
};

const char *const ci_stmt_names[] = {
#define STMT(name, blocks, access, text) #name,
#include "ir/proc.def"
};

int
ci_fold_width(CiOp fold)
{
    return ci_op_width(fold);
}

bool
ci_stmt_is_running(const CiStmt *stmt)
{
    return stmt->kind == CI_STMT_let && ci_op_kind(stmt->op) == CI_OPKIND_scan;
}

/* ---- walking ---- */

void
ci_stmt_visit(const CiStmt *stmt, void (*visit)(void *arg, const CiStmt *stmt), void *arg)
{
    visit(arg, stmt);
    ci_stmts_visit(&stmt->body, visit, arg);
    ci_stmts_visit(&stmt->other, visit, arg);
}

void
ci_stmts_visit(const CiStmts *stmts, void (*visit)(void *arg, const CiStmt *stmt), void *arg)
{
    for (const CiStmt *stmt = stmts->first; stmt; stmt = stmt->next)
        ci_stmt_visit(stmt, visit, arg);
}

bool
ci_stmts_have(const CiStmts *stmts, bool (*is)(const CiStmt *stmt))
{
    for (const CiStmt *stmt = stmts->first; stmt; stmt = stmt->next)
        if (is(stmt) || ci_stmts_have(&stmt->body, is) || ci_stmts_have(&stmt->other, is))
            return true;
    return false;
}

bool
ci_stmt_is_loop(const CiStmt *stmt)
{
    return stmt->kind == CI_STMT_for || stmt->kind == CI_STMT_loop;
}

bool
ci_stmt_is_math(const CiStmt *stmt)
{
    return ci_op_is_function(stmt->op);
}

static bool
is_costly(const CiStmt *stmt)
{
    return stmt->kind == CI_STMT_let &&
           (ci_stmt_is_math(stmt) || ci_op_has(stmt->op, CI_FACT_costly));
}

bool
ci_stmt_is_costly_reduce(const CiStmt *reduction)
{
    return ci_stmts_have(&reduction->body, is_costly);
}

bool
ci_stmt_reduces_by_halves(const CiStmt *reduction)
{
    int64_t threads;
    return ci_stmt_is_costly_reduce(reduction) ||
           (ci_expr_is_const(reduction->extents[0], &threads) && threads >= MANY_THREADS);
}

bool
ci_stmt_is_straight(const CiStmt *stmt)
{
    bool is_register = stmt->kind == CI_STMT_alloc && stmt->memory->space == CI_SPACE_register,
         is_plain = stmt->kind == CI_STMT_store && stmt->op == CI_OP_none && !stmt->is_in_order;
    return stmt->kind == CI_STMT_let || is_register || is_plain;
}

bool
ci_stmt_is_ufunc(const CiStmt *stmt)
{
    return stmt->kind == CI_STMT_let && ci_op_kind(stmt->op) == CI_OPKIND_ufunc;
}

static void
count_uses(void *arg, const CiStmt *stmt)
{
    int *uses = arg;
    for (int a = 0; a < stmt->nargs; a++)
        uses[stmt->args[a]]++;
    for (int k = 0; k < stmt->ntests; k++)
        if (stmt->tests[k].compare >= CI_COMPARE_is)
            uses[stmt->tests[k].value]++;
}

void
ci_stmts_count_uses(const CiStmts *stmts, int *uses)
{
    ci_stmts_visit(stmts, count_uses, uses);
}

/* ---- building ---- */

CiProcs *
ci_procs_new(CiContext *ctx, CiSym *sym, const char *name)
{
    CiProcs *procs = CI_NEW(ctx, CiProcs);
    procs->ctx = ctx;
    procs->sym = sym;
    procs->name = name;
    return procs;
}

CiProc *
ci_procs_add(CiProcs *procs, const char *name)
{
    CiProc *proc = CI_NEW(procs->ctx, CiProc);
    proc->name = name;
    CI_PUSH(procs->ctx, procs->procs, procs->nprocs, procs->capprocs, proc);
    return proc;
}

const CiProc *
ci_procs_find(const CiProcs *procs, const char *kernel, bool is_finish)
{
    for (int k = 0; k < procs->nprocs; k++) {
        const CiProc *proc = procs->procs[k];
        const char *name = proc->head.kernel ? proc->head.kernel : proc->name;
        if (proc->is_finish == is_finish && strcmp(name, kernel) == 0)
            return proc;
    }
    return NULL;
}

CiBuild
ci_build_of(CiProcs *procs, CiProc *proc, const CiMachine *machine)
{
    return (CiBuild){.ctx = procs->ctx,
                     .sym = procs->sym,
                     .proc = proc,
                     .to = &proc->body,
                     .procs = procs,
                     .machine = machine};
}

CiMemory *
ci_proc_add_param(CiContext *ctx, CiProc *proc, CiMemory memory)
{
    CiMemory *param = CI_NEW(ctx, CiMemory);
    *param = memory;
    CI_PUSH(ctx, proc->params, proc->nparams, proc->capparams, param);
    return param;
}

static void
append(CiStmts *to, CiStmt *stmt)
{
    if (to->last)
        to->last->next = stmt;
    else
        to->first = stmt;
    to->last = stmt;
}

CiStmt *
ci_build_add(CiBuild *b, CiStmtKind kind)
{
    CiStmt *stmt = CI_NEW(b->ctx, CiStmt);
    stmt->kind = kind;
    stmt->loc = b->loc;
    stmt->value = -1;
    stmt->op = CI_OP_none;
    append(b->to, stmt);
    return stmt;
}

void
ci_build_move(CiBuild *b, CiStmt *stmt)
{
    stmt->next = NULL;
    append(b->to, stmt);
}

void
ci_build_move_all(CiBuild *b, const CiStmts *from)
{
    for (CiStmt *next, *stmt = from->first; stmt; stmt = next) {
        next = stmt->next;
        ci_build_move(b, stmt);
    }
}

void
ci_build_rewrite(CiBuild *b, CiStmts *block, void (*rewrite)(void *arg, CiStmt *stmt), void *arg)
{
    CiStmt *next, *stmt = block->first;
    *block = (CiStmts){0};
    CiStmts *outside = ci_build_enter(b, block);
    for (; stmt; stmt = next) {
        next = stmt->next;
        rewrite(arg, stmt);
    }
    ci_build_leave(b, outside);
}

CiStmts *
ci_build_enter(CiBuild *b, CiStmts *into)
{
    CiStmts *outside = b->to;
    b->to = into;
    return outside;
}

void
ci_build_leave(CiBuild *b, CiStmts *outside)
{
    b->to = outside;
}

const char *
ci_build_name(CiBuild *b, const char *stem)
{
    return ci_format(b->ctx, "%s_%d", stem, b->proc->nnames++);
}

CiMemory *
ci_build_alloc(CiBuild *b, const char *name, CiDtype dtype, int lanes, CiSpace space,
               const CiExpr *size)
{
    CiMemory *memory = CI_NEW(b->ctx, CiMemory);
    *memory =
        (CiMemory){.name = name, .dtype = dtype, .lanes = lanes, .space = space, .size = size};
    ci_build_add(b, CI_STMT_alloc)->memory = memory;
    return memory;
}

static CiStmt *
add_walk(CiBuild *b, CiStmtKind kind, const CiExpr *var, const CiExpr *extent)
{
    CiStmt *stmt = ci_build_add(b, kind);
    stmt->vars = CI_NEW_ARRAY(b->ctx, const CiExpr *, 1);
    stmt->extents = CI_NEW_ARRAY(b->ctx, const CiExpr *, 1);
    stmt->vars[0] = var;
    stmt->extents[0] = extent;
    stmt->nvars = 1;
    return stmt;
}

CiStmt *
ci_build_loop(CiBuild *b, const CiExpr *var, const CiExpr *extent, CiRunMode run)
{
    CiStmt *loop = add_walk(b, CI_STMT_for, var, extent);
    loop->run = run;
    return loop;
}

CiStmt *
ci_build_fold(CiBuild *b, const CiExpr *var, const CiExpr *extent, CiOp op, CiMemory *into)
{
    CiStmt *fold = add_walk(b, CI_STMT_fold, var, extent);
    fold->ops = CI_NEW(b->ctx, CiOp);
    fold->into = CI_NEW(b->ctx, CiMemory *);
    fold->ops[0] = op;
    fold->into[0] = into;
    fold->nops = fold->ninto = 1;
    return fold;
}

CiStmt *
ci_build_for(CiBuild *b, const char *stem, const CiExpr *extent, CiRunMode run)
{
    return ci_build_loop(b, ci_expr_index(b->sym, ci_build_name(b, stem), extent), extent, run);
}

static CiStmt *
add_test(CiBuild *b, CiStmtKind kind, CiCondition test)
{
    CiStmt *stmt = ci_build_add(b, kind);
    stmt->tests = CI_NEW(b->ctx, CiCondition);
    stmt->tests[0] = test;
    stmt->ntests = 1;
    return stmt;
}

CiStmt *
ci_build_test(CiBuild *b, CiStmtKind kind, CiCompare compare, const CiExpr *left,
              const CiExpr *right)
{
    return add_test(b, kind, (CiCondition){compare, left, right, -1});
}

void
ci_build_and(CiBuild *b, CiStmt *stmt, CiCompare compare, const CiExpr *left, const CiExpr *right)
{
    CiCondition *tests = CI_NEW_ARRAY(b->ctx, CiCondition, stmt->ntests + 1);
    memcpy(tests, stmt->tests, sizeof *tests * (size_t)stmt->ntests);
    tests[stmt->ntests++] = (CiCondition){compare, left, right, -1};
    stmt->tests = tests;
}

CiStmt *
ci_build_compare(CiBuild *b, CiStmtKind kind, CiCompare is, int value)
{
    return add_test(b, kind, (CiCondition){.compare = is, .value = value});
}

static CiStmt *
add_value(CiBuild *b, CiStmtKind kind, CiType type)
{
    CiStmt *stmt = ci_build_add(b, kind);
    CiProc *proc = b->proc;
    stmt->type = type;
    stmt->value = proc->nvalues;
    CI_PUSH(b->ctx, proc->types, proc->nvalues, proc->capvalues, type);
    return stmt;
}

static CiStmt *
add_let(CiBuild *b, CiType type, CiOp op)
{
    CiStmt *stmt = add_value(b, CI_STMT_let, type);
    stmt->op = op;
    return stmt;
}

int
ci_build_let(CiBuild *b, CiType type, CiOp op, int nargs, const int *args)
{
    CiStmt *let = add_let(b, type, op);
    let->args = CI_NEW_ARRAY(b->ctx, int, nargs + 1);
    for (int k = 0; k < nargs; k++)
        let->args[k] = args[k];
    let->nargs = nargs;
    return let->value;
}

int
ci_build_const(CiBuild *b, CiType type, CiConst constant)
{
    CiStmt *let = add_let(b, type, CI_OP_const);
    let->constant = constant;
    return let->value;
}

int
ci_build_index(CiBuild *b, const CiExpr *e)
{
    CiStmt *let = add_let(b, ci_type_of(CI_DTYPE_i64, 1), CI_OP_index);
    let->expr = e;
    return let->value;
}

const CiExpr *
ci_build_bind(CiBuild *b, int value, const CiExpr *extent)
{
    const CiExpr *symbol = ci_expr_index(b->sym, ci_build_name(b, "at"), extent);
    ci_build_let(b, b->proc->types[value], CI_OP_bind, 1, &value);
    b->to->last->expr = symbol;
    b->to->last->limit = extent;
    return symbol;
}

const CiExpr *
ci_build_named(CiBuild *b, const CiExpr *e)
{
    if (e->kind == CI_EXPR_const || e->kind == CI_EXPR_symbol)
        return e;
    return ci_build_bind(b, ci_build_index(b, e), ci_expr_add(b->sym, e, ci_expr_const(b->sym, 1)));
}

int
ci_build_load(CiBuild *b, CiMemory *memory, const CiExpr *index, int lanes)
{
    CiStmt *let = add_let(b, ci_type_of(memory->dtype, lanes), CI_OP_load);
    let->at.memory = memory;
    let->at.index = index;
    return let->value;
}

void
ci_build_store(CiBuild *b, CiMemory *memory, const CiExpr *index, int value)
{
    CiStmt *store = ci_build_add(b, CI_STMT_store);
    store->args = CI_NEW(b->ctx, int);
    store->args[0] = value;
    store->nargs = 1;
    store->at.memory = memory;
    store->at.index = index;
}

void
ci_build_yield(CiBuild *b, const int *values, int count)
{
    CiStmt *yield = ci_build_add(b, CI_STMT_yield);
    yield->args = CI_NEW_ARRAY(b->ctx, int, count + 1);
    for (int k = 0; k < count; k++)
        yield->args[k] = values[k];
    yield->nargs = count;
}
