/* The verifier of procs, run after every pass: definition before use, scopes of values, memory and
 * symbols, types, and the accesses each statement may make. proc_bounds.c proves that accesses are
 * in bounds. */
#include "ir/proc_private.h"

#include <string.h>

static void
require(CiProcVerifier *v, const CiStmt *stmt, bool holds, const char *why)
{
    if (!holds)
        ci_proc_fail(v, stmt, why);
}

/* ---- scope ---- */

static CiType
type_of(CiProcVerifier *v, const CiStmt *stmt, int value)
{
    require(v, stmt, value >= 0 && value < v->proc->nvalues && v->is_alive[value],
            "a value is used where it is not defined");
    return v->proc->types[value];
}

static void
require_memory(CiProcVerifier *v, const CiStmt *stmt, const CiMemory *memory)
{
    for (int k = 0; k < v->nmemories; k++)
        if (v->memories[k] == memory)
            return;
    ci_proc_fail(v, stmt, "memory is named where it is not allocated");
}

/* A register that a thread stores to must be the thread's own, because other threads do not see the
 * store. */
static void
require_own(CiProcVerifier *v, const CiStmt *stmt, const CiMemory *memory)
{
    for (int k = 0; v->thread && memory && k < v->nshared; k++)
        require(v, stmt, v->memories[k] != memory || memory->space != CI_SPACE_register,
                "a thread stores what all of them have");
}

static const CiProcSymbol *
find_symbol(const CiProcVerifier *v, const CiExpr *symbol)
{
    for (int k = v->nsymbols - 1; k >= 0; k--)
        if (v->symbols[k].symbol == symbol)
            return &v->symbols[k];
    return NULL;
}

/* Lanes of the symbols that it names: 1, or those of the ones that data bound in lanes. */
static int
require_index(CiProcVerifier *v, const CiStmt *stmt, const CiExpr *e)
{
    int lanes = 1;
    for (int k = 0; e && k < e->nsymbols; k++) {
        const CiProcSymbol *symbol = find_symbol(v, e->symbols[k]);
        bool is_size = e->symbols[k]->symbol_kind == CI_SYMBOL_size ||
                       e->symbols[k]->symbol_kind == CI_SYMBOL_argument;
        require(v, stmt, symbol || is_size, "an index names an unknown symbol");
        if (symbol && symbol->lanes > 1)
            lanes = symbol->lanes;
    }
    return lanes;
}

typedef struct Scope {
    CiProcVerifier *v;
    const CiStmt *stmt;
} Scope;

static void
require_expr(void *arg, const CiExpr **e)
{
    Scope *scope = arg;
    (void)require_index(scope->v, scope->stmt, *e);
}

static void
require_touched(void *arg, CiMemory **memory, CiTouch touch)
{
    Scope *scope = arg;
    if (touch != CI_TOUCH_allocs)
        require_memory(scope->v, scope->stmt, *memory);
}

/* All that the statement names is defined. */
static void
verify_scope(CiProcVerifier *v, const CiStmt *stmt)
{
    Scope scope = {v, stmt};
    for (int a = 0; a < stmt->nargs; a++)
        (void)type_of(v, stmt, stmt->args[a]);
    ci_stmt_each_memory(stmt, require_touched, &scope);
    ci_stmt_each_expr(stmt, require_expr, &scope);
}

static void
add_memory(CiProcVerifier *v, const CiStmt *stmt, const CiMemory *memory)
{
    for (int k = 0; k < v->nmemories; k++)
        require(v, stmt, strcmp(v->memories[k]->name, memory->name) != 0,
                "two memories have one name");
    CI_PUSH(v->ctx, v->memories, v->nmemories, v->capmemories, memory);
}

static void
add_symbol(CiProcVerifier *v, const CiExpr *symbol, int lanes)
{
    CiProcSymbol seen = {symbol, lanes};
    CI_PUSH(v->ctx, v->symbols, v->nsymbols, v->capsymbols, seen);
}

/* ---- types ---- */

static bool
is_type(CiType a, CiDtype dtype, int lanes)
{
    return a.dtype == dtype && a.lanes == lanes;
}

static void
verify_pointwise(CiProcVerifier *v, const CiStmt *let)
{
    CiType first = type_of(v, let, let->args[0]);
    require(v, let, ci_op_arity(let->op) == let->nargs, "a count of operands that it has not");
    for (int a = 0; a < let->nargs; a++) {
        CiType type = type_of(v, let, let->args[a]);
        bool is_alike =
            type.dtype == first.dtype || ci_op_compares_signs(let->op, first.dtype, type.dtype);
        require(v, let, is_alike && type.lanes == let->type.lanes, "operands differ in type");
    }
    require(v, let, !ci_op_why_not(let->op, first.dtype) || let->nargs == 2,
            "it is not defined for its operands");
    require(v, let, ci_op_result(let->op, first.dtype) == let->type.dtype,
            "the result has another type");
}

static void
verify_where(CiProcVerifier *v, const CiStmt *let)
{
    require(v, let, let->nargs == 3, "where has three operands");
    CiType test = type_of(v, let, let->args[0]);
    require(v, let, is_type(test, CI_DTYPE_bool, let->type.lanes), "where asks no bool");
    for (int a = 1; a < 3; a++)
        require(v, let, is_type(type_of(v, let, let->args[a]), let->type.dtype, let->type.lanes),
                "operands differ in type");
}

/* Operations on what stands in which lane: twice or half as many lanes as the operand, of two as many. */
static void
verify_lanes(CiProcVerifier *v, const CiStmt *let)
{
    CiType from = type_of(v, let, let->args[0]);
    bool is_found = let->op == CI_OP_first_true;
    int lanes = is_found ? from.lanes : let->op == CI_OP_splat ? 1 : (3 - ci_op_arity(let->op)) * let->type.lanes;
    bool is_right = !is_found || is_type(let->type, CI_DTYPE_i64, 1);
    require(v, let, is_right && is_type(from, is_found ? CI_DTYPE_bool : let->type.dtype, lanes), "lanes do not fit");
}

static void
verify_bind(CiProcVerifier *v, const CiStmt *let)
{
    CiType from = type_of(v, let, let->args[0]);
    require(v, let, is_type(from, CI_DTYPE_i64, let->type.lanes), "a symbol is bound to no i64");
    require(v, let, let->expr && let->expr->kind == CI_EXPR_symbol, "no symbol is bound");
    add_symbol(v, let->expr, let->type.lanes);
}

static void
verify_running(CiProcVerifier *v, const CiStmt *let)
{
    require(v, let, let->cell && let->expr, "a running form has no cell");
    require(v, let, require_index(v, let, let->expr) == 1, "a position differs from lane to lane");
    require_own(v, let, let->cell);
    require(v, let, let->cell->dtype == let->type.dtype && let->cell->lanes == 1,
            "the cell is of another type");
    require(v, let, is_type(type_of(v, let, let->args[0]), let->type.dtype, let->type.lanes),
            "operands differ in type");
}

/* A thread's elements are as far apart as there are threads; what all of them know is the first's. */
static bool
is_own(CiProcVerifier *v, const CiExpr *index)
{
    if (!v->thread)
        return v->nmeets > 0 || ci_expr_is_const(index, NULL);
    return !ci_expr_depends_on(ci_expr_sub(v->sym, index, v->thread), v->thread) &&
           ci_sym_known_multiple_of(v->sym, ci_expr_sub(v->sym, index, v->thread),
                                    v->thread->limit);
}

/* An element of memory, or of as many as there are lanes. */
static void
verify_access(CiProcVerifier *v, const CiStmt *stmt, CiType type)
{
    const CiAccess *at = &stmt->at;
    int lanes = require_index(v, stmt, at->index);
    require(v, stmt, lanes == 1 || lanes == type.lanes, "an index has other lanes than the value");
    require(v, stmt, lanes == 1 || at->stride, "an index with lanes has no stride");
    require(v, stmt, at->memory->dtype == type.dtype, "memory is of another type");
    require(v, stmt, at->memory->lanes == 1 || at->memory->lanes == type.lanes,
            "elements of memory have other lanes");
    bool is_stored = stmt->kind != CI_STMT_let;
    require_own(v, stmt, is_stored ? at->memory : NULL);
    require_own(v, stmt, stmt->cell);
    require(v, stmt, !is_stored || !at->memory->is_const, "what is constant is stored");
    if (at->memory->space == CI_SPACE_register)
        require(v, stmt, ci_expr_is_const(at->index, NULL) || v->nunrolled > 0,
                "a register is chosen by no constant");
    require(v, stmt, at->memory->space != CI_SPACE_thread || is_own(v, at->index),
            "a thread touches what another has");
    ci_proc_prove_access(v, stmt, type.lanes);
}

static void
verify_let(CiProcVerifier *v, const CiStmt *let)
{
    require(v, let, let->value >= 0 && !v->is_defined[let->value], "a value is defined twice");
    if (let->op == CI_OP_load)
        verify_access(v, let, let->type);
    else if (let->op == CI_OP_bind)
        verify_bind(v, let);
    else if (let->op == CI_OP_index || let->op == CI_OP_iota)
        require(v, let,
                require_index(v, let, let->expr) <= let->type.lanes &&
                    (let->type.dtype == CI_DTYPE_i64 || let->type.dtype == CI_DTYPE_i32),
                "an index is no i64, nor an i32");
    else if (let->op == CI_OP_turn)
        require(v, let, is_type(let->type, CI_DTYPE_bool, 1) && require_index(v, let, let->expr) == 1,
                "a turn is no bool");
    else if (let->op == CI_OP_where)
        verify_where(v, let);
    else if (ci_stmt_is_running(let))
        verify_running(v, let);
    else if (ci_op_kind(let->op) == CI_OPKIND_lanes)
        verify_lanes(v, let);
    else if (ci_op_kind(let->op) == CI_OPKIND_pointwise || ci_op_is_function(let->op))
        verify_pointwise(v, let);
    else if (let->op == CI_OP_cast)
        require(v, let, type_of(v, let, let->args[0]).lanes == let->type.lanes,
                "operands differ in lanes");
    else
        require(v, let, let->op == CI_OP_const && let->type.lanes == 1, "no operation of a proc");
    v->is_alive[let->value] = v->is_defined[let->value] = true;
    CI_PUSH(v->ctx, v->values, v->nvalues, v->capvalues, let->value);
}

static void
verify_call(CiProcVerifier *v, const CiStmt *call)
{
    CiType type = type_of(v, call, call->args[0]), mask = type_of(v, call, call->args[1]);
    require(v, call, call->nargs == 2 && is_type(mask, CI_DTYPE_bool, type.lanes),
            "it packs a value by a bool");
    require_own(v, call, call->cell);
    require(v, call, call->cell && call->cell->dtype == CI_DTYPE_i64, "the cell is no i64");
    require(v, call, !call->at.memory->is_const && call->at.memory->dtype == type.dtype,
            "memory is of another type");
}

/* All of its elements are inside. */
static void
verify_line(CiProcVerifier *v, const CiStmt *apply, const CiAccess *at, bool is_stored)
{
    enum { MANY = 1 << 20 };
    CiStmt access = {.kind = is_stored ? CI_STMT_store : CI_STMT_let, .at = *at};
    require(v, apply, require_index(v, apply, at->index) == 1, "an index has lanes");
    require(v, apply, !at->stride || at->stride->low >= 0, "it goes backwards");
    require(v, apply, at->memory->lanes == 1 && at->memory->space != CI_SPACE_register,
            "memory is not what a loop of NumPy's takes");
    access.live = apply->expr;
    ci_proc_prove_access(v, &access, MANY);
}

static void
verify_apply(CiProcVerifier *v, const CiStmt *apply)
{
    require(v, apply, ci_op_kind(apply->op) == CI_OPKIND_ufunc, "it is no ufunc");
    require(v, apply, apply->nin == ci_op_arity(apply->op), "a count of operands that it has not");
    require(v, apply, require_index(v, apply, apply->expr) == 1, "a count has lanes");
    verify_line(v, apply, &apply->at, true);
    require(v, apply, !apply->at.memory->is_const && !apply->at.stride, "results are apart");
    CiDtype operand = apply->in[0].memory->dtype;
    require(v, apply, apply->at.memory->dtype == ci_op_result(apply->op, operand),
            "results are of another type");
    for (int k = 0; k < apply->nin; k++) {
        require(v, apply, apply->in[k].memory->dtype == operand, "operands differ in type");
        verify_line(v, apply, &apply->in[k], false);
    }
}

static void
verify_copy(CiProcVerifier *v, const CiStmt *copy)
{
    const CiMemory *to = copy->at.memory, *from = copy->nin ? copy->in[0].memory : NULL;
    require(v, copy, from && to->space == CI_SPACE_shared && from->space == CI_SPACE_global && v->thread,
            "a thread copies elements of a buffer to shared memory");
    require(v, copy, to->dtype == from->dtype, "elements are of another type");
    verify_line(v, copy, &copy->at, true);
    if (!copy->live)
        verify_line(v, copy, &copy->in[0], false);
}

static void
verify_multiply(CiProcVerifier *v, const CiStmt *multiply)
{
    int64_t steps, columns, size;
    const CiMemory *sums = multiply->at.memory, *left = multiply->in[0].memory, *right = multiply->in[1].memory;
    bool is_own = left->space == CI_SPACE_thread && left->dtype == CI_DTYPE_f32;
    require(v, multiply, v->ngrids && !v->thread, "the threads of a block multiply together");
    require(v, multiply, multiply->nin == 2 && sums->space == CI_SPACE_thread && sums->dtype == CI_DTYPE_f32,
            "sums of f32 belong to threads");
    require(v, multiply,
            ci_expr_is_const(multiply->expr, &steps) && ci_expr_is_const(multiply->limit, &columns) && steps % 64 == 0 &&
                (is_own || steps == 64) && ci_expr_is_const(sums->size, &size) && columns % 64 == 0 && size % (64 * columns) == 0,
            "a tile has an unknown or odd size");
    require(v, multiply, !(multiply->number & 16) || multiply->number & 4, "sums are rounded before the product has ended");
    require(v, multiply, right->space == CI_SPACE_shared && !multiply->in[0].stride && !multiply->in[1].stride, "the right factor is a tile");
    require(v, multiply, is_own || (left->space == CI_SPACE_shared && left->dtype == right->dtype),
            "the left factor is a tile of the same type, or sums of the threads");
}

static void
verify_tests(CiProcVerifier *v, const CiStmt *stmt)
{
    for (int k = 0; k < stmt->ntests; k++) {
        const CiCondition *test = &stmt->tests[k];
        if (test->compare >= CI_COMPARE_is) {
            require(v, stmt, is_type(type_of(v, stmt, test->value), CI_DTYPE_bool, 1),
                    "a test asks no bool");
            continue;
        }
        require(v, stmt,
                require_index(v, stmt, test->left) == 1 && require_index(v, stmt, test->right) == 1,
                "a test differs from lane to lane");
    }
}

/* ---- folds ---- */

static void
verify_yield(CiProcVerifier *v, const CiStmt *fold, const CiStmt *yield)
{
    require(v, fold, yield && yield->kind == CI_STMT_yield && yield->nargs == fold->ninto,
            "a fold ends in no yield for each accumulator");
    for (int k = 0; k < fold->ninto; k++)
        require(v, fold, is_type(type_of(v, yield, yield->args[k]), fold->into[k]->dtype, 1),
                "what is folded is of another type than its accumulator");
}

static void
verify_fold(CiProcVerifier *v, const CiStmt *fold)
{
    int count = 0;
    for (int k = 0; k < fold->nops; k++) {
        CiOpKind kind = ci_op_kind(fold->ops[k]);
        bool is_reduction = kind == CI_OPKIND_reduce || kind == CI_OPKIND_argreduce ||
                            kind == CI_OPKIND_online;
        require(v, fold, is_reduction, "it is no reduction");
        count += ci_fold_width(fold->ops[k]);
    }
    require(v, fold, count == fold->ninto && fold->nvars > 0, "accumulators are missing");
    for (int k = 0; k < fold->ninto; k++)
        require_own(v, fold, fold->into[k]);
}

/* ---- statements ---- */

static void verify_block(CiProcVerifier *v, const CiStmts *block, const CiStmt *owner);

static bool
is_of_pairs(const CiStmt *stmt)
{
    return stmt->run == CI_RUN_reduce || stmt->run == CI_RUN_near || stmt->run == CI_RUN_prefix;
}

/* Grids are outermost. The threads of a block, whose number is constant, synchronize at the end of
 * each loop over them, so no thread can wait for one that does not arrive. */
static void
verify_threads(CiProcVerifier *v, const CiStmt *stmt)
{
    bool is_grid = stmt->run == CI_RUN_grid, is_pair = is_of_pairs(stmt),
         is_shared = stmt->run == CI_RUN_thread || is_pair;
    require(v, stmt, !is_grid || v->nblocks == 1, "blocks of threads are inside of something");
    require(v, stmt, !is_shared || (v->ngrids && !v->thread && !v->nmeets),
            "threads are of no block");
    require(v, stmt, !is_shared || stmt->extents[0]->kind == CI_EXPR_const,
            "a block has an unknown count of threads");
    require(v, stmt, !is_pair || stmt->nvars == 2, "a reduction over threads has two variables");
}

static void
verify_body(CiProcVerifier *v, const CiStmt *stmt)
{
    int symbols = v->nsymbols, facts = v->nfacts;
    bool loops = stmt->kind == CI_STMT_for || stmt->kind == CI_STMT_loop;
    const CiExpr *thread = v->thread;
    int64_t iterations;
    for (int k = 0; k < stmt->nvars; k++) {
        require(v, stmt, require_index(v, stmt, stmt->extents[k]) == 1,
                "an extent differs from lane to lane");
        add_symbol(v, stmt->vars[k], 1);
    }
    verify_threads(v, stmt);
    bool is_unrolled = stmt->kind == CI_STMT_for && stmt->run == CI_RUN_unroll;
    require(v, stmt, !is_unrolled || ci_expr_is_const(stmt->extents[0], &iterations),
            "an unrolled loop has an unknown count");
    v->nunrolled += is_unrolled;
    v->nloops += loops;
    v->ngrids += stmt->run == CI_RUN_grid;
    v->nmeets += is_of_pairs(stmt);
    int shared = v->nshared;
    if (stmt->run == CI_RUN_thread) {
        v->thread = stmt->vars[0];
        v->nshared = v->nmemories;
    }
    if (stmt->runs) {
        require(v, stmt, stmt->run == CI_RUN_parallel, "a loop that is not parallel runs together");
        add_symbol(v, stmt->runs, 1);
        ci_proc_add_fact(v, ci_expr_add(v->sym, stmt->vars[0], stmt->runs), stmt->extents[0], 0);
    }
    ci_proc_add_tests(v, stmt, false);
    verify_block(v, &stmt->body, stmt);
    v->nfacts = facts;
    ci_proc_add_tests(v, stmt, true);
    verify_block(v, &stmt->other, stmt);
    v->nfacts = facts;
    v->nsymbols = symbols;
    v->nloops -= loops;
    v->ngrids -= stmt->run == CI_RUN_grid;
    v->nmeets -= is_of_pairs(stmt);
    v->thread = thread;
    v->nshared = shared;
    v->nunrolled -= is_unrolled;
}

static void
verify_swap(CiProcVerifier *v, const CiStmt *stmt)
{
    bool is_alike = stmt->memory->dtype == stmt->partner->dtype && stmt->memory->space == stmt->partner->space;
    require(v, stmt, is_alike, "memories that are not alike change places");
}

static void
verify_stmt(CiProcVerifier *v, const CiStmt *stmt, const CiStmt *owner)
{
    verify_scope(v, stmt);
    verify_tests(v, stmt);
    switch (stmt->kind) {
    case CI_STMT_let:
        verify_let(v, stmt);
        break;
    case CI_STMT_store:
        verify_access(v, stmt, type_of(v, stmt, stmt->args[0]));
        break;
    case CI_STMT_alloc:
        require_index(v, stmt, stmt->memory->size);
        add_memory(v, stmt, stmt->memory);
        break;
    case CI_STMT_call:
        verify_call(v, stmt);
        break;
    case CI_STMT_apply:
        verify_apply(v, stmt);
        break;
    case CI_STMT_copy:
        verify_copy(v, stmt);
        break;
    case CI_STMT_multiply:
        verify_multiply(v, stmt);
        break;
    case CI_STMT_exit:
        require(v, stmt, v->nloops > 0, "it leaves no loop");
        ci_proc_add_tests(v, stmt, true);
        break;
    case CI_STMT_stop:
        ci_proc_add_tests(v, stmt, true);
        break;
    case CI_STMT_prefetch:
        require(v, stmt, require_index(v, stmt, stmt->at.index) == 1, "an index has lanes");
        require(v, stmt, stmt->at.memory->space == CI_SPACE_global, "it is no buffer");
        break;
    case CI_STMT_swap:
        verify_swap(v, stmt);
        break;
    case CI_STMT_yield:
        require(v, stmt, owner && owner->kind == CI_STMT_fold && !stmt->next,
                "it is not at the end of a reduction");
        break;
    case CI_STMT_fold:
        verify_fold(v, stmt);
        verify_body(v, stmt);
        break;
    case CI_STMT_barrier:
    case CI_STMT_commit:
    case CI_STMT_synchronize:
        require(v, stmt, v->ngrids && !v->thread, "one thread of a block waits for the others");
        break;
    default:
        if (ci_stmt_blocks(stmt))
            verify_body(v, stmt);
    }
}

static void
verify_block(CiProcVerifier *v, const CiStmts *block, const CiStmt *owner)
{
    int values = v->nvalues, memories = v->nmemories, symbols = v->nsymbols, facts = v->nfacts;
    v->nblocks++;
    for (const CiStmt *stmt = block->first; stmt; stmt = stmt->next)
        verify_stmt(v, stmt, owner);
    v->nblocks--;
    if (owner && owner->kind == CI_STMT_fold && block == &owner->body)
        verify_yield(v, owner, block->last);
    for (int k = values; k < v->nvalues; k++)
        v->is_alive[v->values[k]] = false;
    v->nvalues = values;
    v->nmemories = memories;
    v->nsymbols = symbols;
    v->nfacts = facts;
}

/* ---- what others store now ---- */

typedef struct ReportUse {
    CiProcVerifier *v;
    const CiMemory *memory;
} ReportUse;

static void
require_atomic(void *arg, const CiStmt *stmt)
{
    const ReportUse *reported = arg;
    bool is_published = stmt->at.memory == reported->memory || stmt->cell == reported->memory;
    require(reported->v, stmt, !is_published || stmt->is_atomic, "others store what it touches now");
}

/* Memory that is loaded atomically is stored and loaded in no other way. */
static void
find_reported(void *arg, const CiStmt *stmt)
{
    ReportUse reported = {arg, stmt->at.memory};
    if (stmt->op == CI_OP_load && stmt->is_atomic)
        ci_stmts_visit(&reported.v->proc->body, require_atomic, &reported);
}

/* ---- heads ---- */

static void
verify_head(CiProcVerifier *v, const CiProcs *procs)
{
    const CiProcHead *head = &v->proc->head;
    const CiExpr *chunks = head->chunks, *chunk = head->chunk;
    for (int k = 0; k < head->naxes; k++)
        require(v, NULL, head->axes[k].tile >= 0, "an axis has tiles of less than nothing");
    require(v, NULL, !head->has_lanes || (head->naxes && head->axes[head->naxes - 1].tile > 0),
            "lanes are those of the last axis, in tiles");
    require(v, NULL, !chunk || chunk->high > 0, "a part has no elements");
    require(v, NULL, !chunks || chunk || (chunks->kind == CI_EXPR_const && chunks->value > 0 &&
                                          !(chunks->value & (chunks->value - 1))),
            "subtrees are a power of two");
    require(v, NULL, !v->proc->is_finish || ci_procs_find(procs, head->kernel, false),
            "what it finishes is not there");
}

/* Sizes of parameters may name what the kernel does not take: nothing of them is computed here. */
static int
verify_proc(const CiProcs *procs, const CiProc *proc)
{
    CiProcVerifier verifier = {.ctx = procs->ctx, .sym = procs->sym, .proc = proc}, *v = &verifier;
    v->is_alive = CI_NEW_ARRAY(v->ctx, bool, proc->nvalues + 1);
    v->is_defined = CI_NEW_ARRAY(v->ctx, bool, proc->nvalues + 1);
    for (int k = 0; k < proc->nparams; k++)
        add_memory(v, NULL, proc->params[k]);
    for (int k = 0; k < proc->nsizes; k++)
        for (int n = 0; n < proc->sizes[k]->nsymbols; n++)
            add_symbol(v, proc->sizes[k]->symbols[n], 1);
    for (int k = 0; k < proc->nfacts; k++)
        CI_PUSH(v->ctx, v->facts, v->nfacts, v->capfacts, proc->facts[k]);
    verify_head(v, procs);
    verify_block(v, &proc->body, NULL);
    ci_stmts_visit(&proc->body, find_reported, v);
    ci_proc_verify_turns(v);
    ci_proc_verify_lane_loops(v);
    ci_proc_verify_masks(v);
    ci_proc_verify_pointers(v);
    return v->nunproved;
}

int
ci_procs_verify(const CiProcs *procs)
{
    int unproved = 0;
    for (int k = 0; k < procs->nprocs; k++)
        unproved += verify_proc(procs, procs->procs[k]);
    return unproved;
}
