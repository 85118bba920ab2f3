/* Procs -> what the interpreter runs. */
#include "base/map.h"
#include "device/interp/program.h"
#include "target/emit.h"

#include <string.h>

typedef struct Compiler {
    CiContext *ctx; /* the executable's */
    const CiKernels *kernels;
    const CiInterpMath *math;
    const CiProc *proc;
    CiInterpKernel *out;
    CiMap *slots;    /* symbol -> its slot and one */
    CiMap *varying;  /* symbol -> the value that it has in lanes, and one */
    CiMap *memories; /* CiMemory -> its number and one */
    int capmemories, nswapped;
    bool *is_splat; /* per value */
    size_t frame;   /* bytes of the values that are alive here */
} Compiler;

static void
put(CiMap *map, const void *key, int number)
{
    ci_map_put(map, CI_KEY(key), (void *)(intptr_t)(number + 1));
}

static int
find(const CiMap *map, const void *key)
{
    return (int)(intptr_t)ci_map_find(map, CI_KEY(key)) - 1;
}

/* ---- formulas ---- */

static int
find_slot(Compiler *c, const CiExpr *e)
{
    int slot = find(c->slots, e);
    if (slot >= 0 || e->kind != CI_EXPR_symbol)
        return slot;
    ci_fail(c->ctx, CI_ERR_INTERNAL, "%s is unknown in proc %s", e->name, c->proc->name);
}

static CiFormula
make_formula(Compiler *c, const CiExpr *e)
{
    CiFormula f = {.kind = e->kind, .value = e->value, .nargs = e->nargs};
    int slot = find_slot(c, e);
    if (slot >= 0)
        return (CiFormula){.kind = CI_EXPR_symbol, .slot = slot};
    CiFormula *args = CI_NEW_ARRAY(c->ctx, CiFormula, e->nargs + 1);
    int64_t *coefs = CI_NEW_ARRAY(c->ctx, int64_t, e->nargs + 1);
    for (int k = 0; k < e->nargs; k++) {
        args[k] = make_formula(c, e->args[k]);
        coefs[k] = e->kind == CI_EXPR_linear ? e->coefs[k] : 0;
    }
    f.args = args;
    f.coefs = coefs;
    return f;
}

static CiFormula
make_optional(Compiler *c, const CiExpr *e, int64_t missing)
{
    return e ? make_formula(c, e) : (CiFormula){.kind = CI_EXPR_const, .value = missing};
}

static CiInterpIndex
make_index(Compiler *c, const CiExpr *e)
{
    CiInterpIndex index = {.formula = make_formula(c, e)};
    for (int k = 0; k < e->nsymbols; k++) {
        int value = find(c->varying, e->symbols[k]);
        if (value < 0)
            continue;
        if (index.nvarying == CI_MAX_OPERANDS)
            ci_fail(c->ctx, CI_ERR_INTERNAL, "an index depends on more than %d others",
                    CI_MAX_OPERANDS);
        index.slots[index.nvarying] = find_slot(c, e->symbols[k]);
        index.values[index.nvarying++] = value;
    }
    return index;
}

static int
add_slot(Compiler *c, const CiExpr *symbol)
{
    put(c->slots, symbol, c->out->nslots);
    return c->out->nslots++;
}

/* ---- memory ---- */

static bool
is_known(const Compiler *c, const CiExpr *e)
{
    for (int k = 0; k < e->nsymbols; k++)
        if (find(c->slots, e->symbols[k]) < 0)
            return false;
    return true;
}

static int
add_memory(Compiler *c, const CiMemory *memory, bool is_param)
{
    CiInterpMemory made = {.dtype = memory->dtype, .slot_of_scalar = -1, .lanes = memory->lanes};
    made.is_partial = memory->space == CI_SPACE_partials;
    made.is_shared = memory->space == CI_SPACE_shared || made.is_partial;
    made.offset = made.is_partial ? make_formula(c, memory->offset) : (CiFormula){0};
    if (memory->space == CI_SPACE_argument)
        made.slot_of_scalar = ci_emit_scalar_slot(c->kernels->loops, memory->buffer);
    made.has_size =
        !is_param || (is_known(c, memory->size) && (!memory->first || is_known(c, memory->first)));
    if (made.has_size) {
        made.size = make_formula(c, memory->size);
        made.first = make_optional(c, memory->first, 0);
    }
    put(c->memories, memory, c->out->nmemories);
    CI_PUSH(c->ctx, c->out->memories, c->out->nmemories, c->capmemories, made);
    return c->out->nmemories - 1;
}

static CiInterpAccess
make_access(Compiler *c, const CiAccess *at)
{
    return (CiInterpAccess){.memory = find(c->memories, at->memory),
                            .element = at->memory->lanes,
                            .index = make_index(c, at->index),
                            .stride = make_optional(c, at->stride, 1)};
}

/* The size of a parameter, which may name what the kernel does not take, is asked for here alone.
 */
static int
find_swapped(Compiler *c, const CiMemory *memory)
{
    int found = find(c->memories, memory);
    for (int k = 0; k < c->out->nswapped; k++)
        if (c->out->swapped[k] == found)
            return found;
    c->out->memories[found].size = make_formula(c, memory->size);
    c->out->swapped[c->out->nswapped++] = found;
    return found;
}

/* ---- values ---- */

/* Allocates a value's bytes, which are free again after its block. Vector math routines may read
 * whole vectors. */
static void
place_value(Compiler *c, const CiStmt *stmt)
{
    size_t bytes = (size_t)stmt->type.lanes * (size_t)ci_interp_size(stmt->type.dtype);
    if (stmt->op == CI_OP_index || stmt->op == CI_OP_iota) /* they are i64 at first */
        bytes = (size_t)stmt->type.lanes * sizeof(int64_t);
    if (stmt->type.lanes > CI_INTERP_LANES)
        ci_fail(c->ctx, CI_ERR_INTERNAL, "a value of %d lanes", stmt->type.lanes);
    c->out->values[stmt->value] = c->frame;
    c->frame += (bytes + 63) / 64 * 64;
    if (c->frame > c->out->value_bytes)
        c->out->value_bytes = c->frame;
}

static CiDtype
dtype_of(const Compiler *c, int value)
{
    return c->proc->types[value].dtype;
}

/* Finds the rounding for results of an operation that are not exact in a narrow float type. */
static void
find_rounding(CiInterpStmt *to, CiOp op, CiDtype operand, CiDtype result)
{
    const CiInterpNarrow *narrow = ci_interp_narrow(result);
    bool rounds = op == CI_OP_cast ? operand != result : ci_op_rounds(op, result);
    to->round = narrow && rounds ? narrow->round : NULL;
}

static void
find_ufunc(Compiler *c, CiInterpStmt *to, const CiStmt *stmt)
{
    to->is_ufunc = true;
    to->ufunc = ci_op_ufunc_loop(stmt->op, dtype_of(c, stmt->args[0]));
    for (int a = 0; a < stmt->nargs; a++)
        to->is_one[a] = c->is_splat[stmt->args[a]] || stmt->type.lanes == 1;
}

static void
find_function(Compiler *c, CiInterpStmt *to, const CiStmt *stmt)
{
    CiDtype operand = stmt->nargs ? dtype_of(c, stmt->args[0]) : stmt->type.dtype;
    if (ci_op_kind(stmt->op) == CI_OPKIND_math) {
        to->is_math = true;
        to->routine = ci_interp_math_find(c->math, stmt->op, stmt->type.dtype);
        find_rounding(to, stmt->op, operand, stmt->type.dtype);
    } else if (ci_op_kind(stmt->op) == CI_OPKIND_ufunc) {
        find_ufunc(c, to, stmt);
    } else if (stmt->op == CI_OP_cast) {
        to->compute = ci_interp_cast(operand, stmt->type.dtype);
        find_rounding(to, stmt->op, operand, stmt->type.dtype);
    } else if (stmt->op == CI_OP_where) {
        to->compute = ci_interp_where(stmt->type.dtype);
    } else if (ci_stmt_is_running(stmt)) {
        to->compute = ci_interp_function(ci_op_combine(stmt->op), operand);
        find_rounding(to, ci_op_combine(stmt->op), operand, stmt->type.dtype);
    } else if (ci_op_kind(stmt->op) == CI_OPKIND_pointwise) {
        to->compute = ci_interp_function(stmt->op, operand);
        find_rounding(to, stmt->op, operand, stmt->type.dtype);
    } else {
        return;
    }
    if (!to->compute && !to->is_math && !to->is_ufunc)
        ci_fail(c->ctx, CI_ERR_INTERNAL, "%s", ci_op_why_not(stmt->op, operand));
}

static void
bind_symbol(Compiler *c, CiInterpStmt *to, const CiStmt *stmt)
{
    to->low = stmt->expr->low;
    to->has_limit = stmt->limit != NULL;
    to->limit = make_optional(c, stmt->limit, 0);
    to->slot = add_slot(c, stmt->expr);
    if (stmt->type.lanes > 1)
        put(c->varying, stmt->expr, stmt->value);
}

static void
make_let(Compiler *c, CiInterpStmt *to, const CiStmt *stmt)
{
    CiDtype stored = ci_dtype_compute(stmt->type.dtype);
    to->dtype = stmt->type.dtype;
    to->lanes = stmt->op == CI_OP_first_true ? c->proc->types[stmt->args[0]].lanes : stmt->type.lanes;
    to->value = stmt->value;
    place_value(c, stmt);
    c->is_splat[stmt->value] = stmt->op == CI_OP_splat;
    ci_const_store(stored, stmt->op == CI_OP_load ? stmt->at.otherwise : stmt->constant,
                   to->constant);
    if (stmt->op == CI_OP_bind)
        bind_symbol(c, to, stmt);
    else if (stmt->expr)
        to->expr = make_index(c, stmt->expr);
    if (stmt->op == CI_OP_load)
        to->at = make_access(c, &stmt->at);
    else
        find_function(c, to, stmt);
    if (stmt->cell)
        to->cell = find(c->memories, stmt->cell);
}

static void
make_store(Compiler *c, CiInterpStmt *to, const CiStmt *stmt)
{
    CiType type = c->proc->types[stmt->args[0]];
    to->dtype = type.dtype;
    to->lanes = type.lanes;
    to->at = make_access(c, &stmt->at);
    to->is_atomic = stmt->is_atomic;
    if (stmt->op != CI_OP_none) {
        to->compute = ci_interp_function(stmt->op, type.dtype);
        find_rounding(to, stmt->op, type.dtype, type.dtype);
    }
}

static void
make_call(Compiler *c, CiInterpStmt *to, const CiStmt *stmt)
{
    make_store(c, to, stmt);
    to->cell = find(c->memories, stmt->cell);
    to->has_limit = stmt->limit != NULL;
    to->limit = make_optional(c, stmt->limit, 0);
}

static void
make_apply(Compiler *c, CiInterpStmt *to, const CiStmt *stmt)
{
    to->dtype = stmt->in[0].memory->dtype;
    to->ufunc = ci_op_ufunc_loop(stmt->op, to->dtype);
    to->limit = make_formula(c, stmt->expr);
    to->at = make_access(c, &stmt->at);
    to->nargs = stmt->nin;
    for (int k = 0; k < stmt->nin; k++)
        to->in[k] = make_access(c, &stmt->in[k]);
}

static void
make_copy(Compiler *c, CiInterpStmt *to, const CiStmt *stmt)
{
    to->dtype = stmt->at.memory->dtype;
    to->limit = make_formula(c, stmt->expr);
    to->at = make_access(c, &stmt->at);
    to->in[0] = make_access(c, &stmt->in[0]);
}

static void
make_multiply(Compiler *c, CiInterpStmt *to, const CiStmt *stmt)
{
    make_copy(c, to, stmt);
    to->dtype = stmt->in[1].memory->dtype;
    to->is_own = stmt->in[0].memory->space == CI_SPACE_thread;
    to->in[1] = make_access(c, &stmt->in[1]);
    to->lanes = (int)stmt->limit->value;
    to->value = (int)(stmt->at.memory->size->value / stmt->limit->value);
}

/* ---- statements ---- */

static CiInterpStmts make_block(Compiler *c, const CiStmts *block);

static void
make_tests(Compiler *c, CiInterpStmt *to, const CiStmt *stmt)
{
    to->tests = CI_NEW_ARRAY(c->ctx, CiInterpTest, stmt->ntests + 1);
    to->ntests = stmt->ntests;
    for (int k = 0; k < stmt->ntests; k++) {
        const CiCondition *test = &stmt->tests[k];
        to->tests[k].compare = test->compare;
        to->tests[k].value = test->value;
        if (test->compare >= CI_COMPARE_is)
            continue;
        to->tests[k].left = make_formula(c, test->left);
        to->tests[k].right = make_formula(c, test->right);
    }
}

static void
make_kind(Compiler *c, CiInterpStmt *to, const CiStmt *stmt)
{
    switch (stmt->kind) {
    case CI_STMT_let:
        make_let(c, to, stmt);
        break;
    case CI_STMT_store:
        make_store(c, to, stmt);
        break;
    case CI_STMT_call:
        make_call(c, to, stmt);
        break;
    case CI_STMT_apply:
        make_apply(c, to, stmt);
        break;
    case CI_STMT_copy:
        make_copy(c, to, stmt);
        break;
    case CI_STMT_multiply:
        make_multiply(c, to, stmt);
        break;
    case CI_STMT_for:
        to->extent = make_formula(c, stmt->extents[0]);
        to->run = stmt->run;
        to->slot = add_slot(c, stmt->vars[0]);
        to->has_runs = stmt->runs != NULL;
        if (stmt->nvars > 1 || stmt->runs)
            to->other_slot = add_slot(c, stmt->runs ? stmt->runs : stmt->vars[1]);
        break;
    case CI_STMT_alloc:
        to->memory = add_memory(c, stmt->memory, false);
        break;
    case CI_STMT_swap:
        to->memory = find_swapped(c, stmt->memory);
        to->partner = find_swapped(c, stmt->partner);
        break;
    case CI_STMT_wait:
    case CI_STMT_publish:
        to->limit = make_formula(c, stmt->expr);
        break;
    default:
        break;
    }
}

static CiInterpStmt
make_stmt(Compiler *c, const CiStmt *stmt)
{
    CiInterpStmt to = {
        .kind = stmt->kind, .nargs = stmt->nargs, .op = stmt->op, .number = stmt->number};
    to.is_costly = stmt->run == CI_RUN_reduce && ci_stmt_reduces_by_halves(stmt);
    for (int k = 0; k < stmt->nargs; k++)
        to.args[k] = stmt->args[k];
    to.has_live = stmt->live != NULL;
    to.live = make_optional(c, stmt->live, 0);
    make_tests(c, &to, stmt);
    make_kind(c, &to, stmt);
    to.body = make_block(c, &stmt->body);
    to.other = make_block(c, &stmt->other);
    return to;
}

static CiInterpStmts
make_block(Compiler *c, const CiStmts *block)
{
    CiInterpStmts list = {0};
    size_t frame = c->frame;
    for (const CiStmt *stmt = block->first; stmt; stmt = stmt->next)
        CI_PUSH(c->ctx, list.stmts, list.count, list.capacity, make_stmt(c, stmt));
    c->frame = frame;
    return list;
}

static void
make_kernel(Compiler *c, CiInterpKernel *out, const CiProc *proc)
{
    c->proc = proc;
    c->out = out;
    c->slots = ci_map_new(c->ctx);
    c->varying = ci_map_new(c->ctx);
    c->memories = ci_map_new(c->ctx);
    c->capmemories = 0;
    c->frame = 0;
    for (int k = 0; k < proc->nsizes; k++)
        add_slot(c, proc->sizes[k]);
    out->nsizes = proc->nsizes;
    while (out->nbuffers < proc->nparams && proc->params[out->nbuffers]->space == CI_SPACE_global)
        out->nbuffers++;
    out->nparams = proc->nparams;
    out->swapped = CI_NEW_ARRAY(c->ctx, int, out->nbuffers + 1);
    out->values = CI_NEW_ARRAY(c->ctx, size_t, proc->nvalues + 1);
    c->is_splat = CI_NEW_ARRAY(c->ctx, bool, proc->nvalues + 1);
    out->nvalues = proc->nvalues;
    for (int k = 0; k < proc->nparams; k++)
        add_memory(c, proc->params[k], true);
    out->body = make_block(c, &proc->body);
}

typedef struct Program {
    Compiler c;
    CiInterpExecutable *exe;
    const CiProcs *procs;
} Program;

static void
make_kernels(void *arg, const CiKernel *kernel)
{
    Program *program = arg;
    CiInterpExecutable *exe = program->exe;
    for (int side = 0; side < 2; side++) {
        const CiProc *proc = ci_procs_find(program->procs, kernel->name, side);
        if (proc)
            make_kernel(&program->c, side ? &exe->finishes[kernel->id] : &exe->kernels[kernel->id],
                        proc);
    }
}

void
ci_interp_compile(CiInterpExecutable *exe, const CiKernels *kernels, const CiProcs *procs)
{
    int count = ci_kernels_count(kernels);
    exe->kernels = CI_NEW_ARRAY(exe->ctx, CiInterpKernel, count + 1);
    exe->finishes = CI_NEW_ARRAY(exe->ctx, CiInterpKernel, count + 1);
    Program program = {.c = {.ctx = exe->ctx, .kernels = kernels, .math = &exe->math},
                       .exe = exe,
                       .procs = procs};
    ci_kernels_visit(kernels, make_kernels, &program);
}
