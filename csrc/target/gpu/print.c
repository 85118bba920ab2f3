/* Prints a proc as a GPU kernel, and the statements that C lacks. Loops over blocks and threads are
 * not printed: they are the launch. Parameters, in order: buffers, sizes, scalars. */
#include "target/gpu/print.h"

/* ---- launches ---- */

static int
points_together(const CiProc *proc)
{
    const CiStmt *grid = ci_stmts_find_loop(&proc->body, CI_RUN_grid);
    return grid && grid->number > 1 ? grid->number : 1;
}

static int
threads_of_point(const CiProc *proc)
{
    const CiStmt *threads = ci_stmts_find_loop(&proc->body, CI_RUN_thread);
    return threads ? (int)threads->extents[0]->value : 1;
}

int
ci_gpu_threads(const CiProc *proc)
{
    return threads_of_point(proc) * points_together(proc);
}

static void
add_shared(void *arg, const CiStmt *stmt)
{
    int64_t *bytes = arg, end;
    if (stmt->kind != CI_STMT_alloc || stmt->memory->space != CI_SPACE_shared)
        return;
    end = stmt->memory->offset->value +
          stmt->memory->size->value * ci_dtype_size(stmt->memory->dtype);
    *bytes = end > *bytes ? (end + 15) / 16 * 16 : *bytes;
}

/* Bytes of shared memory that one point needs. */
static int64_t
shared_of_point(const CiProc *proc)
{
    int64_t bytes = 0;
    ci_stmts_visit(&proc->body, add_shared, &bytes);
    return bytes;
}

int64_t
ci_gpu_shared_bytes(const CiProc *proc)
{
    return shared_of_point(proc) * points_together(proc);
}

typedef struct Alignment {
    const CiProc *proc;
    const CiMemory *memory;
    int bytes;
} Alignment;

static void
align(void *arg, const CiStmt *stmt)
{
    Alignment *a = arg;
    if (stmt->kind == CI_STMT_copy && stmt->in[0].memory == a->memory)
        a->bytes = (int)(stmt->expr->value * ci_dtype_size(a->memory->dtype));
    if (stmt->at.memory != a->memory || !stmt->at.is_aligned)
        return;
    CiType type = a->proc->types[stmt->kind == CI_STMT_let ? stmt->value : stmt->args[0]];
    int bytes = type.lanes * ci_dtype_size(a->memory->dtype);
    a->bytes = bytes > a->bytes ? bytes : a->bytes;
}

int
ci_gpu_alignment(const CiProc *proc, const CiMemory *param)
{
    Alignment a = {proc, param, 0};
    ci_stmts_visit(&proc->body, align, &a);
    return a.bytes;
}

/* ---- numbers of elements ---- */

/* True if 32 bits hold the value and small multiples of it. */
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
    return ci_emit_function(p->base, ci_op_function(op), dtype);
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
        return ci_format(p->ctx,
                         p->base->spelling->is_cpp ? "%s{(%s)%s.re, (%s)%s.im}"
                                                   : "((%s){(%s)%s.re, (%s)%s.im})",
                         type, part, slot, part, slot);
    return ci_format(p->ctx, "(%s)%s", type, slot);
}

/* The element of this thread, or of the other thread of a pair; if a thread has several, its k-th. */
static const char *
thread_element(CiCPrinter *c, const CiMemory *memory, const CiExpr *index)
{
    const CiGpuPrinter *p = (const CiGpuPrinter *)c;
    if (p->other && index == p->other)
        return ci_format(c->ctx, "other_%s", memory->name);
    if (ci_expr_equals_const(memory->size, p->threads))
        return memory->name;
    const CiExpr *part = ci_expr_floordiv(c->sym, index, ci_expr_const(c->sym, p->threads));
    return ci_format(c->ctx, "%s[%s]", memory->name, ci_emit_index_text(c->base, part));
}

/* Rows of points that share a thread block are stored one after another. */
static void
print_shared(CiGpuPrinter *p, const CiMemory *memory)
{
    CiCPrinter *c = &p->c;
    const char *type = ci_dtype_storage(memory->dtype);
    int64_t bytes = shared_of_point(c->proc);
    const char *point =
        p->together > 1
            ? ci_format(c->ctx, " + %lld*(%s/%d)", (long long)bytes, p->gpu->thread, p->threads)
            : "";
    ci_text_line(c->out, "%s%s *const %s = (%s%s *)(rows + %lld%s);", p->gpu->shared, type,
                 memory->name, p->gpu->shared, type, (long long)memory->offset->value, point);
}

static void
print_alloc(CiCPrinter *c, const CiMemory *memory)
{
    CiGpuPrinter *p = (CiGpuPrinter *)c;
    bool is_value = memory->space == CI_SPACE_register || memory->space == CI_SPACE_thread;
    int64_t count = memory->space == CI_SPACE_thread ? memory->size->value / p->threads : 0;
    const char *type = is_value || memory->lanes > 1 ? ci_emit_type(memory->dtype)
                                                     : ci_dtype_storage(memory->dtype);
    if (memory->lanes > 1)
        type = ci_gpu_lanes_type(c, type, memory->lanes);
    if (memory->space == CI_SPACE_shared)
        print_shared(p, memory);
    else if (count == 1 || (is_value && ci_expr_equals_const(memory->size, 1)))
        ci_text_line(c->out, "%s %s%s;", type, memory->name,
                     c->base->spelling->is_cpp ? "{}" : " = {0}");
    else if (count)
        ci_text_line(c->out, "%s %s[%lld];", type, memory->name, (long long)count);
    else
        ci_text_line(c->out, "%s %s[%s];", type, memory->name,
                     ci_emit_index_text(c->base, memory->size));
}

/* Points that share a block: where there are more of them than points, an idle one takes the last
 * point, stores nothing, and waits where others do. */
static void
print_grid(CiGpuPrinter *p, const CiStmt *grid)
{
    CiCPrinter *c = &p->c;
    const char *var = grid->vars[0]->name, *type = c->index_type,
               *extent = ci_emit_index_text(c->base, grid->extents[0]);
    const char *point = p->gpu->block;
    if (p->together > 1)
        point = ci_format(c->ctx, "(%s*%d + %s/%d)", p->gpu->block, p->together, p->gpu->thread,
                          p->threads);
    if (p->may_idle && p->threads >= p->gpu->warp) { /* no thread of another warp waits for these */
        ci_text_line(c->out, "const %s %s = (%s)%s;", type, var, type, point);
        ci_text_line(c->out, "if (%s >= %s)", var, extent);
        ci_text_line(c->out, "    return;");
        p->may_idle = false;
    } else if (p->may_idle) {
        ci_text_line(c->out, "const bool is_active = (%s)%s < %s;", type, point, extent);
        ci_text_line(c->out, "const %s %s = is_active ? (%s)%s : %s - 1;", type, var, type, point,
                     extent);
    } else {
        ci_text_line(c->out, "const %s %s = (%s)%s;", type, var, type, point);
    }
    ci_c_print_block(c, &grid->body);
}

/* Prints the iteration of this thread. */
static void
print_threads(CiGpuPrinter *p, const CiStmt *loop)
{
    CiCPrinter *c = &p->c;
    ci_text_open(c->out, p->may_idle ? "if (is_active) {" : "{");
    ci_text_line(c->out,
                 p->together > 1 ? "const %s %s = (%s)%s %% %d;" : "const %s %s = (%s)%s;",
                 c->index_type, loop->vars[0]->name, c->index_type, p->gpu->thread, p->threads);
    p->is_in_thread = true;
    ci_c_print_block(c, &loop->body);
    p->is_in_thread = false;
    ci_text_close(c->out);
}

/* Opens a test so that one thread stores a value which all threads of a point would store. */
static bool
opens_guard(CiGpuPrinter *p, const CiStmt *stmt)
{
    bool is_memory = stmt->kind == CI_STMT_store &&
                     (stmt->is_atomic || stmt->at.memory->space == CI_SPACE_global ||
                      stmt->at.memory->space == CI_SPACE_shared);
    if (p->is_in_thread || !is_memory)
        return false;
    ci_text_open(p->c.out, "if (%s%s %% %d == 0) {", p->may_idle ? "is_active && " : "",
                 p->gpu->thread, p->threads);
    return true;
}

static const CiStmt *
print_loop(CiGpuPrinter *p, const CiStmt *loop)
{
    if (loop->run == CI_RUN_grid)
        print_grid(p, loop);
    else if (loop->run == CI_RUN_thread)
        print_threads(p, loop);
    else if (loop->run == CI_RUN_reduce)
        ci_gpu_print_block_reduce(p, loop);
    else if (loop->run == CI_RUN_near)
        ci_gpu_print_registers(p, loop);
    else if (loop->run == CI_RUN_prefix)
        ci_gpu_print_prefix(p, loop);
    else if (loop->run == CI_RUN_unroll)
        ci_text_line(p->c.out, "#pragma unroll");
    bool is_own = loop->run == CI_RUN_grid || loop->run == CI_RUN_thread ||
                  loop->run == CI_RUN_reduce || loop->run == CI_RUN_near || loop->run == CI_RUN_prefix;
    return is_own ? loop : NULL;
}

static bool
is_waited_for(const CiStmt *stmt)
{
    return stmt->kind == CI_STMT_barrier || stmt->kind == CI_STMT_synchronize || stmt->run == CI_RUN_reduce || stmt->run == CI_RUN_prefix;
}

/* If several threads fail, one of their checks is reported. */
static void
print_stop(CiCPrinter *c, const CiStmt *stmt)
{
    const CiGpuPrinter *p = (const CiGpuPrinter *)c;
    if (p->gpu->waits_for_ended && ci_stmts_have(&c->proc->body, is_waited_for))
        ci_fail(c->ctx, CI_ERR_UNSUPPORTED,
                "kernel %s: a check may end threads that others wait for at a barrier",
                c->proc->name);
    ci_text_open(c->out, "if (%s) {", ci_c_conditions(c, stmt));
    ci_text_line(c->out, "*fault = %d;", stmt->number + 1);
    ci_text_line(c->out, "return;");
    ci_text_close(c->out);
}

/* Loads a bool from memory that all blocks see. */
static const char *
load_now(CiCPrinter *c, const char *element)
{
    return ci_format(c->ctx, "*(const volatile %suint8_t *)&%s", c->dialect->global, element);
}

static const char *
store_now(CiCPrinter *c, const char *element, const char *value)
{
    return ci_format(c->ctx, "*(volatile %suint8_t *)&%s = %s", c->dialect->global, element, value);
}

static const char *
own_memory(CiCPrinter *c, int number)
{
    return ci_format(c->ctx, "home_%s", ci_c_memory(c, c->proc->params[number]));
}

static const CiStmt *
print_own(CiCPrinter *c, const CiStmt *stmt)
{
    CiGpuPrinter *p = (CiGpuPrinter *)c;
    if (stmt->kind == CI_STMT_for)
        return print_loop(p, stmt);
    if (stmt->kind == CI_STMT_stop)
        print_stop(c, stmt);
    else if (stmt->kind == CI_STMT_swap)
        ci_c_print_swap(c, stmt);
    else if (stmt->kind == CI_STMT_barrier)
        ci_gpu_print_barrier(p);
    else if (ci_gpu_is_of_tiles(stmt))
        ci_gpu_print_tiles(p, stmt);
    else if (ci_stmt_is_in_lanes(c->proc, stmt))
        return ci_gpu_print_lanes(c, stmt);
    else if (opens_guard(p, stmt)) {
        ci_c_print_stored(c, stmt);
        ci_text_close(c->out);
    } else
        return NULL;
    return stmt;
}

CiCPrinter *
ci_gpu_printer_new(CiEmitter *base, CiSym *sym, const CiGpuDialect *gpu)
{
    static const CiCDialect own = {.statement = print_own,
                                       .let = ci_gpu_print_choice,
                                       .math = math,
                                       .argument = argument,
                                       .alloc = print_alloc,
                                       .atomic = ci_gpu_print_atomic,
                                       .load_now = load_now,
                                       .store_now = store_now,
                                       .thread_element = thread_element,
                                       .own_memory = own_memory};
    CiGpuPrinter *printer = CI_NEW(base->ctx, CiGpuPrinter);
    CiCDialect *dialect = CI_NEW(base->ctx, CiCDialect);
    CiCPrinter *p = &printer->c;
    printer->gpu = gpu;
    ci_c_printer_open(p, base->ctx, NULL, 0);
    *dialect = own;
    dialect->global = gpu->global;
    p->dialect = dialect;
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

/* True if the memory may be declared `restrict`. On stored memory `restrict` means that only this
 * thread stores there: after a barrier the compiler would not reload elements that other threads
 * have stored. */
static bool
is_restrict(const CiGpuPrinter *p, int number)
{
    CiTouched touched = ci_stmts_touch(&p->c.proc->body, p->c.proc->params[number]);
    bool is_moved = p->c.swap_groups && p->c.swap_groups[number] >= 0;
    return !is_moved && (!p->is_shared_out || !touched.is_loaded || !touched.is_stored);
}

static bool
is_stop(const CiStmt *stmt)
{
    return stmt->kind == CI_STMT_stop;
}

/* A launch gives all sizes 64 bits, of which the lower half may be taken. */
static void
print_parameters(CiCPrinter *p, CiText *out, bool is_wide)
{
    const CiGpuPrinter *own = (const CiGpuPrinter *)p;
    const CiProc *proc = p->proc;
    const char *separator = "";
    for (int k = 0; k < proc->nparams; k++, separator = ", ") {
        const CiMemory *memory = proc->params[k];
        if (memory->space == CI_SPACE_global)
            ci_text_add(out, "%s%s%s%s *%s%s", separator, own->gpu->global,
                        memory->is_const ? "const " : "", ci_dtype_storage(memory->dtype),
                        is_restrict(own, k) ? own->gpu->restrict_word : "",
                        ci_c_memory(p, memory));
    }
    for (int k = 0; k < proc->nsizes; k++, separator = ", ")
        ci_text_add(out, "%sconst %s size%d", separator,
                    own->gpu->has_wide_sizes || is_wide || !is_small(proc->sizes[k]) ? "int64_t"
                                                                                     : "int32_t",
                    k);
    for (int k = 0; k < proc->nparams; k++)
        if (proc->params[k]->space == CI_SPACE_argument) {
            ci_text_add(out, "%sconst %s %s", separator, slot_type(proc->params[k]->dtype),
                        slot_name(p, proc->params[k]));
            separator = ", ";
        }
    bool has_partials = false;
    for (int k = 0; k < proc->nparams; k++)
        has_partials |= proc->params[k]->space == CI_SPACE_partials;
    if (has_partials)
        ci_text_add(out, "%s%sunsigned char *partials", separator, own->gpu->global);
    if (ci_stmts_have(&proc->body, is_stop))
        ci_text_add(out, "%s%sint *%sfault", has_partials ? ", " : separator, own->gpu->global,
                    own->gpu->restrict_word);
}

/* Prints the partial results for later units, and the original pointers of swapped buffers. */
static void
print_pointers(CiCPrinter *p)
{
    const char *global = p->dialect->global;
    for (int k = 0; k < p->proc->nparams; k++) {
        const CiMemory *memory = p->proc->params[k];
        const char *type = ci_dtype_storage(memory->dtype);
        if (memory->space == CI_SPACE_partials)
            ci_text_line(p->out, "%s%s *const %s = (%s%s *)(partials + %s);", global, type,
                         memory->name, global, type, ci_emit_index_text(p->base, memory->offset));
    }
    for (int k = 0; k < p->proc->nparams && p->swap_groups; k++)
        if (p->swap_groups[k] >= 0)
            ci_text_line(p->out, "%sconst %s *const %s = %s;", global,
                         ci_dtype_storage(p->proc->params[k]->dtype), own_memory(p, k),
                         ci_c_memory(p, p->proc->params[k]));
}

static void
print_moved_back(CiGpuPrinter *p)
{
    if (!p->c.swap_groups)
        return;
    p->c.moves_from = p->is_shared_out ? ci_format(p->c.ctx, "(int)%s", p->gpu->thread) : NULL;
    p->c.moves_step = p->threads;
    if (p->is_shared_out)
        ci_gpu_print_barrier(p);
    ci_c_print_moved_back(&p->c);
}

/* True if the block has statements outside loops over threads, other than those for the numbers of
 * points. */
static bool
is_of_block(const CiStmts *block)
{
    const CiStmt *grid = block->first;
    return grid && (grid->body.first != grid->body.last || grid->body.first->run != CI_RUN_thread);
}

/* A product whose left factor is in registers, as are the sums: both leave enough of them for a second block. */
static bool
is_of_half_the_registers(const CiStmt *stmt)
{
    enum { REGISTERS = 65536, OTHERS = 7168 };
    int64_t sums, left;
    return stmt->kind == CI_STMT_multiply && stmt->in[0].memory->space == CI_SPACE_thread &&
           ci_expr_is_const(stmt->at.memory->size, &sums) && ci_expr_is_const(stmt->in[0].memory->size, &left) &&
           sums + left <= REGISTERS / 2 - OTHERS;
}

/* Blocks that should run at once, as ", N". Loops that only wait for memory gain from full
 * occupancy. Rows in registers need the registers, and expensive folds half of them. While one block of an attention
 * computes weights, another one multiplies. */
static const char *
blocks_at_once(const CiCPrinter *p)
{
    const CiProc *proc = p->proc;
    const CiStmt *reduction = ci_stmts_find_loop(&proc->body, CI_RUN_reduce);
    bool waits = reduction && reduction->number > 1;
    for (int k = 0; k < proc->nparams && reduction; k++)
        waits |= proc->params[k]->space == CI_SPACE_partials && !proc->is_finish;
    int threads = reduction && ci_stmt_is_costly_reduce(reduction) ? 1024 : 2048;
    if (ci_stmts_have(&proc->body, is_of_half_the_registers))
        return ", 2";
    return waits ? ci_format(p->ctx, ", %d", threads / ci_gpu_threads(proc)) : "";
}

static bool
is_block_reduce(const CiStmt *stmt)
{
    return stmt->run == CI_RUN_reduce || stmt->run == CI_RUN_prefix;
}

static bool
reduces_again(const CiStmt *grid)
{
    for (const CiStmt *stmt = grid->body.first; stmt; stmt = stmt->next)
        if (!is_block_reduce(stmt) && stmt->run != CI_RUN_thread && ci_stmts_have(&stmt->body, is_block_reduce))
            return true;
    return false;
}

static void
begin(CiGpuPrinter *p, const CiProc *proc)
{
    const CiStmt *grid = ci_stmts_find_loop(&proc->body, CI_RUN_grid);
    p->threads = threads_of_point(proc);
    p->together = points_together(proc);
    p->may_idle =
        p->together > 1 &&
        !ci_sym_known_multiple_of(p->c.sym, grid->extents[0], ci_expr_const(p->c.sym, p->together));
    p->is_shared_out = is_of_block(&proc->body);
    p->reduces_again = grid && reduces_again(grid);
    p->is_in_thread = false;
    p->other = NULL;
    p->shared = ci_text_new(p->c.ctx);
    p->shared.indent = 4;
    p->declared = ci_map_new(p->c.ctx);
    p->shared_bytes = 0;
}

void
ci_gpu_print_proc(CiCPrinter *p, CiText *out, const CiProc *proc)
{
    CiGpuPrinter *own = (CiGpuPrinter *)p;
    CiText body = ci_text_new(p->ctx);
    bool is_wide = needs_wide(proc);
    p->index_type = is_wide ? "int64_t" : "int32_t";
    ci_c_begin_proc(p, proc, &body);
    p->lane_symbols = ci_proc_lane_symbols(p->ctx, proc);
    begin(own, proc);
    if (shared_of_point(proc))
        ci_text_line(&body, ci_stmts_have(&proc->body, ci_gpu_is_of_tiles) ? own->gpu->rows_of_tiles : own->gpu->rows, (long long)ci_gpu_shared_bytes(proc));
    print_pointers(p);
    ci_c_print_block(p, &proc->body);
    print_moved_back(own);
    ci_text_add(out, "\n");
    ci_text_line(out, own->gpu->kernel, ci_gpu_threads(proc), blocks_at_once(p));
    ci_text_add(out, "%s(", proc->name);
    print_parameters(p, out, is_wide);
    ci_text_add(out, ")\n{\n%s%s%s}\n", own->gpu->first ? own->gpu->first : "", own->shared.data ? own->shared.data : "", body.data);
}
