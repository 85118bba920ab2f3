/* Statements that C has not, and a proc as a kernel: blocks and threads are where it runs, not
 * loops. Parameters, in order: buffers, sizes, the scalars that it takes. */
#include "target/cuda/print.h"

/* ---- launches ---- */

static const CiStmt *
find_loop(const CiStmts *block, CiRunMode run)
{
    for (const CiStmt *stmt = block->first; stmt; stmt = stmt->next) {
        bool is_it = stmt->kind == CI_STMT_for && stmt->run == run;
        const CiStmt *inside = is_it ? stmt : find_loop(&stmt->body, run);
        inside = inside ? inside : find_loop(&stmt->other, run);
        if (inside)
            return inside;
    }
    return NULL;
}

const CiExpr *
ci_cuda_blocks(CiSym *sym, const CiProc *proc)
{
    const CiStmt *grid = find_loop(&proc->body, CI_RUN_grid);
    return grid ? grid->extents[0] : ci_expr_const(sym, 1);
}

int
ci_cuda_threads(const CiProc *proc)
{
    const CiStmt *threads = find_loop(&proc->body, CI_RUN_thread);
    return threads ? (int)threads->extents[0]->value : 1;
}

typedef struct Alignment {
    CiSym *sym;
    const CiProc *proc;
    const CiMemory *memory;
    const CiMap *lane_symbols;
    int bytes;
} Alignment;

static void
align(void *arg, const CiStmt *stmt)
{
    Alignment *a = arg;
    if (stmt->at.memory != a->memory || (stmt->kind != CI_STMT_let && stmt->kind != CI_STMT_store))
        return;
    CiType type = a->proc->types[stmt->kind == CI_STMT_let ? stmt->value : stmt->args[0]];
    int bytes = type.lanes * ci_dtype_size(a->memory->dtype);
    if (bytes > a->bytes && ci_cuda_moves_at_once(a->sym, a->lane_symbols, stmt, type))
        a->bytes = bytes;
}

int
ci_cuda_alignment(CiContext *ctx, CiSym *sym, const CiProc *proc, const CiMemory *param)
{
    Alignment a = {sym, proc, param, ci_cuda_lane_symbols(ctx, proc), 0};
    ci_stmts_visit(&proc->body, align, &a);
    return a.bytes;
}

/* ---- numbers of elements ---- */

/* 32 bits hold it and a few of it. */
static bool
is_small(const CiExpr *e)
{
    return !e || (e->low > -(INT64_C(1) << 30) && e->high < INT64_C(1) << 30);
}

static void
look_at_exprs(void *arg, const CiStmt *stmt)
{
    bool *is_wide = arg;
    for (int k = 0; k < stmt->nvars; k++)
        *is_wide |= !is_small(stmt->extents[k]);
    for (int k = 0; k < stmt->ntests; k++)
        *is_wide |= !is_small(stmt->tests[k].left) || !is_small(stmt->tests[k].right);
    bool is_limit = stmt->kind == CI_STMT_call || stmt->op == CI_OP_bind;
    *is_wide |= (is_limit && !is_small(stmt->limit)) || !is_small(stmt->expr) ||
                (stmt->at.memory && !is_small(stmt->at.index));
}

static bool
needs_wide(const CiProc *proc)
{
    bool is_wide = false;
    ci_stmts_visit(&proc->body, look_at_exprs, &is_wide);
    return is_wide;
}

/* ---- the dialect ---- */

static const char *
math(CiCPrinter *p, CiOp op, CiDtype dtype, int lanes)
{
    (void)lanes;
    return ci_format(p->ctx, "%s%s", ci_op_function(op), dtype == CI_DTYPE_f64 ? "" : "f");
}

static const char *
slot_name(CiCPrinter *p, const CiMemory *memory)
{
    return ci_format(p->ctx, "slot%d",
                     ci_emit_scalar_slot(p->base->kernels->loops, memory->buffer));
}

static const char *
argument(CiCPrinter *p, const CiMemory *memory)
{
    const char *type = ci_emit_type(memory->dtype), *slot = slot_name(p, memory),
               *part = ci_emit_type(ci_dtype_real(memory->dtype));
    if (ci_dtype_class(memory->dtype) == CI_CLASS_complex)
        return ci_format(p->ctx, "%s{(%s)%s.re, (%s)%s.im}", type, part, slot, part, slot);
    return ci_format(p->ctx, "(%s)%s", type, slot);
}

static void
print_alloc(CiCPrinter *p, const CiMemory *memory)
{
    bool is_register = memory->space == CI_SPACE_register;
    const char *type = is_register || memory->lanes > 1 ? ci_emit_type(memory->dtype)
                                                        : ci_emit_storage(memory->dtype);
    if (memory->lanes > 1)
        type = ci_format(p->ctx, "ci_lanes<%s, %d>", type, memory->lanes);
    if (is_register && ci_expr_equals_const(memory->size, 1))
        ci_text_line(p->out, "%s %s{};", type, memory->name);
    else
        ci_text_line(p->out, "%s %s[%s];", type, memory->name,
                     ci_emit_index_text(p->base, memory->size));
}

/* The body of a loop that is not one here: its variable is where the kernel runs. */
static void
print_place(CiCPrinter *p, const CiStmt *loop, const char *place)
{
    ci_text_open(p->out, "{");
    ci_text_line(p->out, "const %s %s = (%s)%s;", p->index_type, loop->vars[0]->name, p->index_type,
                 place);
    ci_c_print_block(p, &loop->body);
    ci_text_close(p->out);
}

static const CiStmt *
print_own(CiCPrinter *p, const CiStmt *stmt)
{
    if (stmt->kind == CI_STMT_for && stmt->run == CI_RUN_grid)
        print_place(p, stmt, "blockIdx.x");
    else if (stmt->kind == CI_STMT_for && stmt->run == CI_RUN_thread)
        print_place(p, stmt, "threadIdx.x");
    else if (ci_cuda_is_in_lanes(p, stmt))
        return ci_cuda_print_lanes(p, stmt);
    else
        return NULL;
    return stmt;
}

CiCPrinter *
ci_cuda_printer_new(CiEmitter *base, CiSym *sym)
{
    static const CiCDialect dialect = {
        .statement = print_own, .math = math, .argument = argument, .alloc = print_alloc};
    CiCPrinter *p = ci_c_printer_new(base->ctx, NULL, 0);
    p->dialect = &dialect;
    p->base = base;
    p->sym = sym;
    return p;
}

/* ---- functions ---- */

static const char *
slot_type(CiDtype dtype)
{
    return ci_dtype_class(dtype) == CI_CLASS_complex ? "ci_c128"
           : ci_dtype_is_integral(dtype)             ? "int64_t"
                                                     : "double";
}

/* A launch gives all sizes 64 bits, of which the lower half may be taken. */
static void
print_parameters(CiCPrinter *p, CiText *out, bool is_wide)
{
    const CiProc *proc = p->proc;
    const char *separator = "";
    for (int k = 0; k < proc->nparams; k++, separator = ", ") {
        const CiMemory *memory = proc->params[k];
        if (memory->space == CI_SPACE_global)
            ci_text_add(out, "%s%s%s *__restrict__ %s", separator, memory->is_const ? "const " : "",
                        ci_emit_storage(memory->dtype), ci_c_memory(p, memory));
    }
    for (int k = 0; k < proc->nsizes; k++, separator = ", ")
        ci_text_add(out, "%sconst %s size%d", separator,
                    is_wide || !is_small(proc->sizes[k]) ? "int64_t" : "int32_t", k);
    for (int k = 0; k < proc->nparams; k++)
        if (proc->params[k]->space == CI_SPACE_argument) {
            ci_text_add(out, "%sconst %s %s", separator, slot_type(proc->params[k]->dtype),
                        slot_name(p, proc->params[k]));
            separator = ", ";
        }
}

void
ci_cuda_print_proc(CiCPrinter *p, CiText *out, const CiProc *proc)
{
    CiText body = ci_text_new(p->ctx);
    bool is_wide = needs_wide(proc);
    p->index_type = is_wide ? "int64_t" : "int32_t";
    ci_c_begin_proc(p, proc, &body);
    p->lane_symbols = ci_cuda_lane_symbols(p->ctx, proc);
    ci_c_print_block(p, &proc->body);
    ci_text_add(out, "\nextern \"C\" __global__ void __launch_bounds__(%d)\n%s(",
                ci_cuda_threads(proc), proc->name);
    print_parameters(p, out, is_wide);
    ci_text_add(out, ")\n{\n%s}\n", body.data);
}
