/* Statements as C, and a proc as a function.
 *
 * Invariant: a function's body is printed before its head, so that the head declares exactly the
 * names that the body mentions. */
#include "target/c/c.h"

/* ---- lets ---- */

static void
declare(CiCPrinter *p, const CiStmt *let, const char *text)
{
    ci_text_line(p->out, "const %s v%d = %s;", ci_emit_type(let->type.dtype), let->value, text);
}

/* What is not below the limit becomes 0; what the kernel itself has computed is below. */
static void
print_bind(CiCPrinter *p, const CiStmt *let)
{
    const CiStmt *from = p->defined[let->args[0]];
    const char *name = ci_emit_index_text(p->base, let->expr),
               *value = ci_format(p->ctx, "v%d", let->args[0]);
    bool is_checked = let->expr->low < 0; /* by what stands before it */
    if (let->limit && from->op != CI_OP_index && !is_checked)
        value = ci_format(p->ctx, "(uint64_t)%s < (uint64_t)(%s) ? %s : 0", value,
                          ci_emit_index_text(p->base, let->limit), value);
    ci_text_line(p->out, "const int64_t %s = %s;", name, value);
}

static void
print_running(CiCPrinter *p, const CiStmt *let)
{
    const char *cell = ci_c_element(p, let->cell, ci_expr_const(p->sym, 0)),
               *value = ci_format(p->ctx, "v%d", let->args[0]);
    CiText text = ci_text_new(p->ctx);
    ci_text_add(&text, "%s > 0 ? ", ci_emit_index_text(p->base, let->expr));
    ci_emit_combine(p->base, &text, let->op, let->type.dtype, cell, value);
    ci_text_add(&text, " : %s", value);
    declare(p, let, text.data);
    ci_text_line(p->out, "%s = v%d;", cell, let->value);
}

static void
print_math(CiCPrinter *p, const CiStmt *let)
{
    CiDtype dtype = ci_dtype_compute(let->type.dtype);
    const char *text = ci_format(p->ctx, "%s(v%d", ci_c_math(p, let->op, dtype, 1), let->args[0]);
    text = let->nargs > 1 ? ci_format(p->ctx, "%s, v%d)", text, let->args[1])
                          : ci_format(p->ctx, "%s)", text);
    if (ci_dtype_is_narrow(let->type.dtype))
        text = ci_format(p->ctx, "%s(%s)", ci_emit_rounding(p->base, let->type.dtype), text);
    declare(p, let, text);
}

static void
print_scalar(CiCPrinter *p, const CiStmt *let)
{
    const char *names[CI_MAX_OPERANDS] = {"", "", "", ""};
    CiScalar op = {.op = let->op,
                   .dtype = let->type.dtype,
                   .nargs = let->nargs,
                   .index = let->expr,
                   .value = let->constant};
    CiDtype operand = let->type.dtype;
    for (int a = 0; a < let->nargs; a++)
        names[a] = ci_format(p->ctx, "v%d", let->args[a]);
    if (let->nargs)
        operand = p->proc->types[let->args[let->op == CI_OP_where]].dtype;
    CiText text = ci_text_new(p->ctx);
    ci_emit_scalar(p->base, &text, &op, operand, names);
    declare(p, let, text.data);
}

static void
print_let(CiCPrinter *p, const CiStmt *let)
{
    p->defined[let->value] = let;
    if (let->type.lanes > 1 || ci_op_kind(let->op) == CI_OPKIND_lanes)
        ci_c_print_vector_let(p, let);
    else if (let->op == CI_OP_load)
        declare(p, let, ci_c_load(p, let->at.memory, let->at.index));
    else if (let->op == CI_OP_bind)
        print_bind(p, let);
    else if (ci_stmt_is_running(let))
        print_running(p, let);
    else if (ci_op_kind(let->op) == CI_OPKIND_math)
        print_math(p, let);
    else
        print_scalar(p, let);
}

/* ---- stores ---- */

static void
print_store(CiCPrinter *p, const CiStmt *store)
{
    const CiAccess *at = &store->at;
    const char *value = ci_format(p->ctx, "v%d", store->args[0]);
    if (p->proc->types[store->args[0]].lanes > 1) {
        ci_c_print_vector_store(p, store);
        return;
    }
    if (store->op != CI_OP_none) {
        const char *old = ci_format(p->ctx, "old%d", store->args[0]), *names[2] = {old, value};
        CiText text = ci_text_new(p->ctx);
        ci_text_line(p->out, "const %s %s = %s;", ci_emit_type(at->memory->dtype), old,
                     ci_c_load(p, at->memory, at->index));
        ci_emit_pointwise(p->base, &text, store->op, at->memory->dtype, names);
        value = text.data;
    }
    ci_c_print_store(p, at->memory, at->index, value);
}

/* ---- control ---- */

static void print_block(CiCPrinter *p, const CiStmts *block);

static const char *
condition_text(CiCPrinter *p, const CiCondition *test)
{
    static const char *const signs[] = {
#define COMPARE(name, sign) sign,
#include "ir/proc.def"
    };
    if (test->compare >= CI_COMPARE_is)
        return ci_format(p->ctx, test->compare == CI_COMPARE_is ? "v%d" : "!v%d", test->value);
    return ci_format(p->ctx, "%s %s %s", ci_emit_index_text(p->base, test->left),
                     signs[test->compare], ci_emit_index_text(p->base, test->right));
}

static const char *
conditions_text(CiCPrinter *p, const CiStmt *stmt)
{
    CiText text = ci_text_new(p->ctx);
    for (int k = 0; k < stmt->ntests; k++)
        ci_text_add(&text, "%s%s", k ? " && " : "", condition_text(p, &stmt->tests[k]));
    return stmt->ntests ? text.data : "1";
}

static void
print_if(CiCPrinter *p, const CiStmt *stmt)
{
    ci_text_open(p->out, "if (%s) {", conditions_text(p, stmt));
    print_block(p, &stmt->body);
    if (stmt->other.first) {
        p->out->indent -= 4;
        ci_text_open(p->out, "} else {");
        print_block(p, &stmt->other);
    }
    ci_text_close(p->out);
}

typedef struct Hazard {
    CiSym *sym;
    const CiStmts *body;
    const CiExpr *var, *extent;
    CiMap *owned; /* memory that each trip has for itself */
    const CiAccess *stored;
    bool is_found;
} Hazard;

/* Another trip's element of the same memory. */
static void
meet(void *arg, const CiStmt *stmt)
{
    Hazard *h = arg;
    const CiAccess *at = &stmt->at;
    if (at->memory != h->stored->memory || at->index == h->stored->index)
        return;
    const CiBuffer *buffer = at->memory->buffer;
    const CiExpr *other = ci_expr_index(h->sym, "other", h->extent),
                 *index = ci_expr_substitute(h->sym, at->index, 1, &h->var, &other);
    h->is_found |= !buffer || !ci_sym_known_apart(h->sym, h->stored->index, index, buffer->rank,
                                                  buffer->strides, 0, NULL);
}

static void
find_hazard(void *arg, const CiStmt *stmt)
{
    Hazard *h = arg;
    if (stmt->kind == CI_STMT_call || stmt->kind == CI_STMT_apply ||
        (stmt->cell && !ci_map_find(h->owned, CI_KEY(stmt->cell))))
        h->is_found = true;
    bool is_own = stmt->kind == CI_STMT_store && ci_map_find(h->owned, CI_KEY(stmt->at.memory));
    if (stmt->kind == CI_STMT_alloc)
        ci_map_put(h->owned, CI_KEY(stmt->memory), h);
    if (stmt->kind != CI_STMT_store || is_own)
        return;
    h->stored = &stmt->at;
    h->is_found |= stmt->op != CI_OP_none || !ci_expr_depends_on(stmt->at.index, h->var);
    ci_stmts_visit(h->body, meet, h);
}

/* No trip needs what another has stored, for all that a compiler must be told. */
static bool
may_be_vectors(CiCPrinter *p, const CiStmt *loop)
{
    Hazard h = {p->sym, &loop->body, loop->vars[0], loop->extents[0], ci_map_new(p->ctx),
                NULL,   false};
    ci_stmts_visit(&loop->body, find_hazard, &h);
    return !h.is_found;
}

static void
print_for(CiCPrinter *p, const CiStmt *loop)
{
    const char *var = loop->vars[0]->name, *extent = ci_emit_index_text(p->base, loop->extents[0]);
    if (loop->run == CI_RUN_vector) {
        p->has_loops_left = true;
        if (may_be_vectors(p, loop))
            ci_text_line(p->out, "#pragma omp simd");
    }
    ci_text_open(p->out, "for (int64_t %s = 0; %s < %s; %s++) {", var, var, extent, var);
    print_block(p, &loop->body);
    ci_text_close(p->out);
}

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
                   *extent = ci_emit_index_text(p->base, loops[k]->extents[0]);
        ci_text_line(p->out, k ? "int64_t %s = rest %% (%s);" : "int64_t %s = rest;", var, extent);
        if (k)
            ci_text_line(p->out, "rest /= %s;", extent);
    }
}

/* As many units at once as are neighbours along the last loop. */
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
    print_block(p, &last->body);
    ci_text_close(p->out);
}

/* Loops that run side by side, one in the other, share one number of units: the first is decoded,
 * and from one to the next variables go on as a counter does. */
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
    if (loops[count - 1]->runs) {
        print_runs(p, loops, count);
        return;
    }
    if (count == 1) {
        const char *var = outer->vars[0]->name;
        ci_text_open(p->out, "for (int64_t %s = begin; %s < end; %s++) {", var, var, var);
        print_block(p, &outer->body);
        ci_text_close(p->out);
        return;
    }
    ci_text_open(p->out, "if (begin < end) {");
    ci_text_line(p->out, "int64_t rest = begin;");
    decode_unit(p, loops, count);
    ci_text_open(p->out, "for (int64_t unit = begin; unit < end; unit++) {");
    print_block(p, &loops[count - 1]->body);
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
    ci_text_line(p->out, "if (%s)", conditions_text(p, stmt));
    ci_text_line(p->out, "    return ci_fault(run, %d);", stmt->number);
}

static void
print_poll(CiCPrinter *p, const CiStmt *stmt)
{
    ci_text_line(p->out, "turns += %s;", ci_emit_index_text(p->base, stmt->expr));
    ci_text_open(p->out, "if (turns >= %d) {", CI_POLL_TURNS);
    ci_text_line(p->out, "turns = 0;");
    ci_text_line(p->out, "if (run->poll && run->poll(run->poll_arg))");
    ci_text_line(p->out, "    return %d;", (int)CI_ERR_INTERRUPTED);
    ci_text_close(p->out);
}

/* A value that is kept, and counted, where a mask is true; there is room for so many. */
static void
print_pack(CiCPrinter *p, const CiStmt *call)
{
    const char *cell = ci_c_element(p, call->cell, ci_expr_const(p->sym, 0));
    CiText value = ci_text_new(p->ctx);
    ci_emit_narrow(p->base, &value, call->at.memory->dtype,
                   ci_format(p->ctx, "v%d", call->args[0]));
    ci_text_line(p->out, "if (v%d && %s < %s)", call->args[1], cell,
                 ci_emit_index_text(p->base, call->limit));
    ci_text_line(p->out, "    %s[%s + (%s)*%s++] = %s;", ci_c_memory(p, call->at.memory),
                 ci_emit_index_text(p->base, call->at.index),
                 call->at.stride ? ci_emit_index_text(p->base, call->at.stride) : "1", cell,
                 value.data);
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
    int64_t size = ci_dtype_size(apply->at.memory->dtype);
    CiText operands = ci_text_new(p->ctx);
    for (int k = 0; k < 2; k++) {
        const CiAccess *in = &apply->in[k];
        if (k >= apply->nin)
            ci_text_add(&operands, ", 0, 0");
        else
            ci_text_add(&operands, ", %s, (%s) * %d", address_text(p, in),
                        in->stride ? ci_emit_index_text(p->base, in->stride) : "1", (int)size);
    }
    ci_text_line(p->out, "run->apply(run->ufuncs, %d, %s, %s%s);",
                 ci_op_ufunc_loop(apply->op, apply->at.memory->dtype),
                 ci_emit_index_text(p->base, apply->expr), address_text(p, &apply->at),
                 operands.data);
}

static void
print_stmt(CiCPrinter *p, const CiStmt *stmt)
{
    switch (stmt->kind) {
    case CI_STMT_let:
        print_let(p, stmt);
        break;
    case CI_STMT_store:
        print_store(p, stmt);
        break;
    case CI_STMT_alloc:
        ci_c_print_alloc(p, stmt->memory);
        break;
    case CI_STMT_if:
        print_if(p, stmt);
        break;
    case CI_STMT_for:
        if (is_parallel(stmt))
            print_units(p, stmt);
        else
            print_for(p, stmt);
        break;
    case CI_STMT_loop:
        ci_text_open(p->out, "for (;;) {");
        print_block(p, &stmt->body);
        ci_text_close(p->out);
        break;
    case CI_STMT_exit:
        ci_text_line(p->out, "if (%s)", conditions_text(p, stmt));
        ci_text_line(p->out, "    break;");
        break;
    case CI_STMT_stop:
        print_stop(p, stmt);
        break;
    case CI_STMT_poll:
        print_poll(p, stmt);
        break;
    case CI_STMT_prefetch:
        ci_text_line(p->out, "__builtin_prefetch((const void *)((uint64_t)%s + %d*(%s)));",
                     ci_c_memory(p, stmt->at.memory), ci_dtype_size(stmt->at.memory->dtype),
                     ci_emit_index_text(p->base, stmt->at.index));
        break;
    case CI_STMT_swap:
        ci_c_print_swap(p, stmt);
        break;
    case CI_STMT_call:
        if (stmt->type.lanes > 1)
            ci_c_print_vector_pack(p, stmt);
        else
            print_pack(p, stmt);
        break;
    case CI_STMT_apply:
        print_apply(p, stmt);
        break;
    default:
        ci_fail(p->ctx, CI_ERR_INTERNAL, "proc %s: there is no C for a statement of kind %d",
                p->proc->name, (int)stmt->kind);
    }
}

static void
print_block(CiCPrinter *p, const CiStmts *block)
{
    for (const CiStmt *stmt = block->first; stmt; stmt = stmt->next)
        print_stmt(p, stmt);
}

/* ---- functions ---- */

static void
declare_arguments(CiCPrinter *p, CiText *out, const char *body)
{
    static const char *const parameters[] = {"buffers", "sizes", "scalars", "begin", "end", "run"};
    const CiKernel *kernel = p->proc->kernel;
    for (int k = 0; k < kernel->nbuffers; k++) {
        const char *name = ci_emit_buffer(p->base, kernel->buffers[k]);
        bool is_moved = kernel->buffers[k]->is_swapped && ci_kernel_tree(kernel);
        if (ci_emit_mentions(body, name))
            ci_text_add(out, "    %s%s *%s%s = buffers[%d];\n",
                        kernel->is_stored[k] ? "" : "const ",
                        ci_emit_storage(kernel->buffers[k]->dtype),
                        is_moved ? "" : "restrict const ", name, k);
    }
    CiText partials = ci_text_new(p->ctx);
    for (int k = 0; k < p->proc->nparams; k++) {
        const CiMemory *memory = p->proc->params[k];
        const char *type = ci_emit_storage(memory->dtype);
        if (memory->space == CI_SPACE_partials && ci_emit_mentions(body, memory->name))
            ci_text_add(&partials, "    %s *const %s = (%s *)((char *)run->partials + %s);\n", type,
                        memory->name, type, ci_emit_index_text(p->base, memory->offset));
    }
    body = ci_format(p->ctx, "%s%s", partials.data, body);
    for (int k = 0; k < kernel->nsize_args; k++) {
        const char *name = ci_format(p->ctx, "size%d", k);
        if (ci_emit_mentions(body, name))
            ci_text_add(out, "    const int64_t %s = sizes[%d];\n", name, k);
    }
    if (ci_emit_mentions(body, "turns"))
        ci_text_add(out, "    int64_t turns = 0;\n");
    ci_text_add(out, "%s", partials.data);
    const char *all = ci_format(p->ctx, "%s%s", out->data, body);
    for (size_t k = 0; k < sizeof parameters / sizeof *parameters; k++)
        if (!ci_emit_mentions(all, parameters[k]))
            ci_text_add(out, "    (void)%s;\n", parameters[k]);
}

void
ci_c_print_proc(CiCPrinter *p, CiText *out, const CiProc *proc)
{
    CiText body = ci_text_new(p->ctx), head = ci_text_new(p->ctx);
    if (!ci_name_is_safe(proc->name))
        ci_fail(p->ctx, CI_ERR_INTERNAL, "a proc has no safe name");
    p->proc = proc;
    p->base->kernel = proc->kernel;
    p->defined = CI_NEW_ARRAY(p->ctx, const CiStmt *, proc->nvalues + 1);
    ci_c_find_masks(p, proc);
    p->lane_symbols = ci_map_new(p->ctx);
    p->has_loops_left = false;
    body.indent = 4;
    p->out = &body;
    print_block(p, &proc->body);
    ci_c_print_moved_back(p);
    declare_arguments(p, &head, body.data);
    ci_text_add(out,
                "%sint32_t\n%s(void *const *buffers, const int64_t *sizes, const void *scalars, "
                "int64_t begin, int64_t end, CiRun *run)\n{\n%s%s    return 0;\n}\n",
                p->has_loops_left ? "CI_OPTIMIZED " : "", proc->name, head.data, body.data);
}
