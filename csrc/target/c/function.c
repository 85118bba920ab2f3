/* A proc as a function for the CPU: work units, polls, calls of NumPy's loops.
 *
 * Invariant: a function's body is printed before its head, so that the head declares exactly the
 * names that the body uses. */
#include "target/c/c.h"

static bool
is_parallel(const CiStmt *stmt)
{
    return stmt && stmt->kind == CI_STMT_for && stmt->run == CI_RUN_parallel;
}

/* Variables of loops that share the number `rest`. */
static void
decode_unit(CiCPrinter *p, const CiStmt *const *loops, int count)
{
    for (int k = count - 1; k >= 0; k--) {
        const char *var = loops[k]->vars[0]->name,
                   *extent = k ? ci_emit_index_text(p->base, loops[k]->extents[0]) : "";
        ci_text_line(p->out, k ? "int64_t %s = rest %% (%s);" : "int64_t %s = rest;", var, extent);
        if (k)
            ci_text_line(p->out, "rest /= %s;", extent);
    }
}

/* Runs units that are neighbours along the last loop at once, as one range. */
static void
print_runs(CiCPrinter *p, const CiStmt *const *loops, int count)
{
    const CiStmt *last = loops[count - 1];
    const char *runs = last->runs->name, *var = last->vars[0]->name,
               *extent = ci_emit_index_text(p->base, last->extents[0]);
    ci_text_open(p->out, "for (int64_t unit = begin, next; unit < end; unit = next) {");
    ci_text_line(p->out, "int64_t rest = unit;");
    decode_unit(p, loops, count);
    ci_text_line(p->out, "next = %s - %s < end - unit ? unit + %s - %s : end;", extent, var, extent,
                 var);
    ci_text_line(p->out, "const int64_t %s = next - unit;", runs);
    ci_c_print_block(p, &last->body);
    ci_text_close(p->out);
}

/* Nested parallel loops share one unit number. The first unit is decoded into their variables by division; for each
 * further unit they advance like the digits of a counter. */
static void
print_units(CiCPrinter *p, const CiStmt *outer)
{
    const CiStmt *loops[CI_MAX_FOLD_AXES];
    int count = 0;
    for (const CiStmt *stmt = outer; is_parallel(stmt) && count < CI_MAX_FOLD_AXES;) {
        if (stmt->extents[0]->high <= 0) /* there are none, nor can a number be divided by it */
            return;
        loops[count++] = stmt;
        stmt = stmt->body.first == stmt->body.last ? stmt->body.first : NULL;
    }
    ci_emit_use(p->base, "begin");
    ci_emit_use(p->base, "end");
    if (loops[count - 1]->runs) {
        print_runs(p, loops, count);
        return;
    }
    if (count == 1) {
        const char *var = outer->vars[0]->name;
        ci_text_open(p->out, "for (int64_t %s = begin; %s < end; %s++) {", var, var, var);
        ci_c_print_block(p, &outer->body);
        ci_text_close(p->out);
        return;
    }
    ci_text_open(p->out, "if (begin < end) {");
    ci_text_line(p->out, "int64_t rest = begin;");
    decode_unit(p, loops, count);
    ci_text_open(p->out, "for (int64_t unit = begin; unit < end; unit++) {");
    ci_c_print_block(p, &loops[count - 1]->body);
    for (int k = count - 1; k > 0; k--) {
        const char *var = loops[k]->vars[0]->name;
        ci_text_open(p->out, "if (++%s == %s) {", var,
                     ci_emit_index_text(p->base, loops[k]->extents[0]));
        ci_text_line(p->out, "%s = 0;", var);
    }
    ci_text_line(p->out, "%s++;", loops[0]->vars[0]->name);
    for (int k = count - 1; k > 0; k--)
        ci_text_close(p->out);
    ci_text_close(p->out);
    ci_text_close(p->out);
}

static void
print_stop(CiCPrinter *p, const CiStmt *stmt)
{
    ci_text_line(p->out, "if (%s)", ci_c_conditions(p, stmt));
    ci_text_line(p->out, "    return %s(%s, %d);", ci_emit_use(p->base, "ci_fault"),
                 ci_emit_use(p->base, "run"), stmt->number);
}

static void
print_poll(CiCPrinter *p, const CiStmt *stmt)
{
    ci_text_line(p->out, "%s += %s;", ci_emit_use(p->base, "turns"),
                 ci_emit_index_text(p->base, stmt->expr));
    ci_text_open(p->out, "if (turns >= %d) {", CI_POLL_ITERATIONS);
    ci_text_line(p->out, "turns = 0;");
    ci_text_line(p->out, "if (%s->poll && run->poll(run->poll_arg))", ci_emit_use(p->base, "run"));
    ci_text_line(p->out, "    return %d;", (int)CI_ERR_INTERRUPTED);
    ci_text_close(p->out);
}

/* Prints the test whether the ticket of a unit has come. The acquire makes the stores of earlier units visible, which
 * they publish with a release. */
static void
print_ticket(CiCPrinter *p, const CiStmt *let)
{
    ci_text_line(p->out, "const uint8_t v%d = !%s->is_again && __atomic_load_n(run->turn, "
                         "__ATOMIC_ACQUIRE) >= %s;",
                 let->value, ci_emit_use(p->base, "run"), ci_emit_index_text(p->base, let->expr));
}

static void
print_wait(CiCPrinter *p, const CiStmt *stmt)
{
    const char *unit = ci_emit_index_text(p->base, stmt->expr);
    ci_text_open(p->out, "if (__builtin_expect(__atomic_load_n(%s->turn, __ATOMIC_ACQUIRE) < %s, 0)) {",
                 ci_emit_use(p->base, "run"), unit);
    ci_text_line(p->out, "const int32_t status = run->wait(run->wait_arg, %s);", unit);
    ci_text_line(p->out, "if (status)");
    ci_text_line(p->out, "    return status;");
    ci_text_close(p->out);
}

static void
print_publish(CiCPrinter *p, const CiStmt *stmt)
{
    ci_text_line(p->out, "__atomic_store_n(%s->turn, %s + 1, __ATOMIC_RELEASE);",
                 ci_emit_use(p->base, "run"), ci_emit_index_text(p->base, stmt->expr));
}

static const char *
address_text(CiCPrinter *p, const CiAccess *at)
{
    return ci_format(p->ctx, "%s + (%s)", ci_c_memory(p, at->memory),
                     ci_emit_index_text(p->base, at->index));
}

static void
print_apply(CiCPrinter *p, const CiStmt *apply)
{
    CiDtype dtype = apply->in[0].memory->dtype;
    int64_t size = ci_dtype_size(dtype);
    CiText operands = ci_text_new(p->ctx);
    for (int k = 0; k < 2; k++) {
        const CiAccess *in = &apply->in[k];
        if (k >= apply->nin)
            ci_text_add(&operands, ", 0, 0");
        else
            ci_text_add(&operands, ", %s, (%s) * %d", address_text(p, in),
                        in->stride ? ci_emit_index_text(p->base, in->stride) : "1", (int)size);
    }
    ci_text_line(p->out, "%s->apply(run->ufuncs, %d, %s, %s%s);", ci_emit_use(p->base, "run"),
                 ci_op_ufunc_loop(apply->op, dtype), ci_emit_index_text(p->base, apply->expr),
                 address_text(p, &apply->at), operands.data);
}

static void
print_prefetch(CiCPrinter *p, const CiStmt *stmt)
{
    ci_text_line(p->out, "__builtin_prefetch((const void *)(%s));",
                 ci_c_pointer(p, stmt));
}

static const CiStmt *
print_own(CiCPrinter *p, const CiStmt *stmt)
{
    switch (stmt->kind) {
    case CI_STMT_let:
        if (stmt->op != CI_OP_turn)
            return NULL;
        print_ticket(p, stmt);
        return stmt;
    case CI_STMT_wait:
        print_wait(p, stmt);
        return stmt;
    case CI_STMT_publish:
        print_publish(p, stmt);
        return stmt;
    case CI_STMT_for:
        if (is_parallel(stmt))
            print_units(p, stmt);
        return is_parallel(stmt) ? stmt : NULL;
    case CI_STMT_call:
        if (stmt->type.lanes > 1)
            ci_c_print_vector_pack(p, stmt);
        return stmt->type.lanes > 1 ? stmt : NULL;
    case CI_STMT_stop:
        print_stop(p, stmt);
        return stmt;
    case CI_STMT_poll:
        print_poll(p, stmt);
        return stmt;
    case CI_STMT_prefetch:
        print_prefetch(p, stmt);
        return stmt;
    case CI_STMT_swap:
        ci_c_print_swap(p, stmt);
        return stmt;
    case CI_STMT_apply:
        print_apply(p, stmt);
        return stmt;
    default:
        return NULL;
    }
}

static const char *
argument(CiCPrinter *p, const CiMemory *memory)
{
    CiText text = ci_text_new(p->ctx);
    ci_emit_slot(p->base, &text, memory->buffer);
    return text.data;
}

static const char *
own_memory(CiCPrinter *p, int number)
{
    return ci_format(p->ctx, "%s[%d]", ci_emit_use(p->base, "buffers"), number);
}

/* ---- functions ---- */

/* Declares what the body uses, which has been printed; names the arguments that nothing uses. */
static void
declare_arguments(CiCPrinter *p, CiText *out)
{
    static const char *const parameters[] = {"buffers", "sizes", "scalars", "begin", "end", "run"};
    CiText partials = ci_text_new(p->ctx);
    for (int k = 0; k < p->proc->nparams; k++) {
        const CiMemory *memory = p->proc->params[k];
        const char *type = ci_dtype_storage(memory->dtype);
        if (!ci_emit_has(p->base, memory))
            continue;
        if (memory->space == CI_SPACE_global)
            ci_text_add(out, "    %s%s *%s%s = %s;\n", memory->is_const ? "const " : "", type,
                        p->swap_groups && p->swap_groups[k] >= 0 ? "" : "restrict const ",
                        ci_c_memory(p, memory), own_memory(p, k));
        if (memory->space == CI_SPACE_partials)
            ci_text_add(&partials, "    %s *const %s = (%s *)((char *)%s->partials + %s);\n", type,
                        ci_c_memory(p, memory), type, ci_emit_use(p->base, "run"),
                        ci_emit_index_text(p->base, memory->offset));
    }
    for (int k = 0; k < p->proc->nsizes; k++)
        if (ci_emit_has(p->base, p->proc->sizes[k]))
            ci_text_add(out, "    const int64_t size%d = %s[%d];\n", k,
                        ci_emit_use(p->base, "sizes"), k);
    if (ci_emit_has_name(p->base, "turns"))
        ci_text_add(out, "    int64_t turns = 0;\n");
    ci_text_add(out, "%s", partials.data);
    for (size_t k = 0; k < sizeof parameters / sizeof *parameters; k++)
        if (!ci_emit_has_name(p->base, parameters[k]))
            ci_text_add(out, "    (void)%s;\n", parameters[k]);
}

static const char *
load_now(CiCPrinter *p, const char *element)
{
    return ci_format(p->ctx, "__atomic_load_n(&%s, __ATOMIC_RELAXED)", element);
}

static const char *
store_now(CiCPrinter *p, const char *element, const char *value)
{
    return ci_format(p->ctx, "__atomic_store_n(&%s, %s, __ATOMIC_RELAXED)", element, value);
}

void
ci_c_print_proc(CiCPrinter *p, CiText *out, const CiProc *proc)
{
    CiText body = ci_text_new(p->ctx), head = ci_text_new(p->ctx);
    static const CiCDialect dialect = {.statement = print_own,
                                       .load_now = load_now,
                                       .store_now = store_now,
                                       .let = ci_c_print_vector_let,
                                       .store = ci_c_print_vector_store,
                                       .math = ci_c_math,
                                       .argument = argument,
                                       .alloc = ci_c_print_alloc,
                                       .packs_alone = true,
                                       .global = "",
                                       .own_memory = own_memory};
    p->dialect = &dialect;
    p->index_type = "int64_t";
    ci_c_begin_proc(p, proc, &body);
    ci_c_print_block(p, &proc->body);
    ci_c_print_moved_back(p);
    declare_arguments(p, &head);
    ci_text_add(out,
                "%sint32_t\n%s(void *const *buffers, const int64_t *sizes, const void *scalars, "
                "int64_t begin, int64_t end, CiRun *run)\n{\n%s%s    return 0;\n}\n",
                p->has_loops_left ? ci_format(p->ctx, "%s ", ci_emit_use(p->base, "CI_OPTIMIZED")) : "",
                ci_emit_name(p->base, proc->name), head.data, body.data);
}
