/* Prints statements as C-like languages have them. The dialect prints what differs between
 * languages. */
#include "target/c/c.h"

/* ---- lets ---- */

static void
declare(CiCPrinter *p, const CiStmt *let, const char *text)
{
    ci_text_line(p->out, "const %s v%d = %s;", ci_emit_type(let->type.dtype), let->value, text);
}

/* Prints a bound symbol. An index that is not below the limit becomes 0; one that the kernel
 * computed itself is below it. */
static void
print_bind(CiCPrinter *p, const CiStmt *let)
{
    const CiStmt *from = p->defined[let->args[0]];
    const char *name = ci_emit_index_text(p->base, let->expr),
               *value = ci_format(p->ctx, "v%d", let->args[0]);
    bool is_checked = let->expr->low < 0; /* by an earlier statement */
    if (let->limit && from->op != CI_OP_index && !is_checked)
        value = ci_format(p->ctx, "(uint64_t)%s < (uint64_t)(%s) ? %s : 0", value,
                          ci_emit_index_text(p->base, let->limit), value);
    ci_text_line(p->out, "const %s %s = %s;", p->index_type, name, value);
}

static void
print_running(CiCPrinter *p, const CiStmt *let)
{
    const char *cell = ci_c_element(p, let->cell, ci_expr_const(p->sym, 0)),
               *value = ci_format(p->ctx, "v%d", let->args[0]);
    CiText text = ci_text_new(p->ctx);
    bool may_begin = let->expr->low <= 0;
    if (may_begin)
        ci_text_add(&text, "%s > 0 ? ", ci_emit_index_text(p->base, let->expr));
    ci_emit_combine(p->base, &text, let->op, let->type.dtype, cell, value);
    if (may_begin)
        ci_text_add(&text, " : %s", value);
    declare(p, let, text.data);
    ci_text_line(p->out, "%s = v%d;", cell, let->value);
}

static const char *
math_text(CiCPrinter *p, const CiStmt *let, const char *const *names)
{
    const char *call = p->dialect->math(p, let->op, ci_dtype_compute(let->type.dtype), 1),
               *text = let->nargs > 1 ? ci_format(p->ctx, "%s(%s, %s)", call, names[0], names[1])
                                      : ci_format(p->ctx, "%s(%s)", call, names[0]);
    if (ci_dtype_is_narrow(let->type.dtype))
        text = ci_format(p->ctx, "%s(%s)", ci_emit_rounding(p->base, let->type.dtype), text);
    return text;
}

/* A float as uint64. NumPy is built for x86 without AVX-512: there a negative
 * float wraps, while the instruction of AVX-512 returns all ones for it. */
static const char *
uint64_of(CiCPrinter *p, CiDtype from, const char *value)
{
    const char *type = ci_emit_type(from), *name = ci_format(p->ctx, "uint64_of_%s", type);
    if (ci_c_needs(p, name))
        ci_text_line(&p->helpers,
                     "static inline uint64_t\n%s(%s a)\n{\n#ifdef __x86_64__\n"
                     "    return a >= (%s)0x1p63 ? (uint64_t)(int64_t)(a - (%s)0x1p63) ^ 1ULL << 63 "
                     ": (uint64_t)(int64_t)a;\n#else\n    return (uint64_t)a;\n#endif\n}",
                     name, type, type, type);
    return ci_format(p->ctx, "%s(%s)", name, value);
}

const char *
ci_c_cast(CiCPrinter *p, CiDtype from, CiDtype to, const char *value)
{
    CiText text = ci_text_new(p->ctx);
    CiDtype real = ci_dtype_real(from);
    if (real != from && ci_dtype_is_integral(to) && to != CI_DTYPE_bool) {
        value = ci_format(p->ctx, "%s.re", value);
        from = real;
    }
    value = ci_c_before_cut(p, from, to, 1, value);
    if (p->instructions && to == CI_DTYPE_u64 && !ci_dtype_is_integral(from)) /* a GPU has no instructions of C */
        return ci_c_cut_int(p, from, to, 1, uint64_of(p, from, value));
    ci_emit_scalar(p->base, &text, &(CiScalar){.op = CI_OP_cast, .dtype = to, .nargs = 1}, from,
                   &value);
    return ci_c_cut_int(p, from, to, 1, text.data);
}

const char *
ci_c_operation(CiCPrinter *p, const CiStmt *let, const char *const *names)
{
    CiScalar op = {.op = let->op,
                   .dtype = let->type.dtype,
                   .nargs = let->nargs,
                   .index = let->expr,
                   .value = let->constant};
    CiDtype operand = let->type.dtype;
    if (ci_op_kind(let->op) == CI_OPKIND_math)
        return math_text(p, let, names);
    if (let->nargs)
        operand = p->proc->types[let->args[let->op == CI_OP_where]].dtype;
    if (let->op == CI_OP_cast)
        return ci_c_cast(p, operand, op.dtype, names[0]);
    CiText text = ci_text_new(p->ctx);
    ci_emit_scalar(p->base, &text, &op, operand, names);
    return text.data;
}

static void
print_scalar(CiCPrinter *p, const CiStmt *let)
{
    const char *names[CI_MAX_OPERANDS] = {"", "", "", ""};
    for (int a = 0; a < let->nargs; a++)
        names[a] = ci_format(p->ctx, "v%d", let->args[a]);
    declare(p, let, ci_c_operation(p, let, names));
}

static const char *
load_text(CiCPrinter *p, const CiStmt *let)
{
    const char *element = ci_c_load(p, let->at.memory, let->at.index);
    return let->is_atomic ? p->dialect->load_now(p, element) : element;
}

void
ci_c_print_let(CiCPrinter *p, const CiStmt *let)
{
    p->defined[let->value] = let;
    if (let->type.lanes > 1 || ci_op_kind(let->op) == CI_OPKIND_lanes)
        p->dialect->let(p, let);
    else if (let->op == CI_OP_load)
        declare(p, let, load_text(p, let));
    else if (let->op == CI_OP_bind)
        print_bind(p, let);
    else if (ci_stmt_is_running(let))
        print_running(p, let);
    else
        print_scalar(p, let);
}

/* ---- stores ---- */

void
ci_c_print_stored(CiCPrinter *p, const CiStmt *store)
{
    const CiAccess *at = &store->at;
    const char *value = ci_format(p->ctx, "v%d", store->args[0]);
    if (p->proc->types[store->args[0]].lanes > 1) {
        p->dialect->store(p, store);
        return;
    }
    if (store->is_atomic && store->op != CI_OP_none) {
        p->dialect->atomic(p, store);
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
    if (store->is_atomic && at->memory->space == CI_SPACE_partials)
        ci_text_line(p->out, "%s;",
                     p->dialect->store_now(p, ci_c_load(p, at->memory, at->index), value));
    else
        ci_c_print_store(p, at->memory, at->index, value);
}

/* ---- control ---- */

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

const char *
ci_c_conditions(CiCPrinter *p, const CiStmt *stmt)
{
    CiText text = ci_text_new(p->ctx);
    for (int k = 0; k < stmt->ntests; k++)
        ci_text_add(&text, "%s%s", k ? " && " : "", condition_text(p, &stmt->tests[k]));
    return stmt->ntests ? text.data : "1";
}

static void
print_if(CiCPrinter *p, const CiStmt *stmt)
{
    ci_text_open(p->out, "if (%s) {", ci_c_conditions(p, stmt));
    ci_c_print_block(p, &stmt->body);
    if (stmt->other.first) {
        p->out->indent -= 4;
        ci_text_open(p->out, "} else {");
        ci_c_print_block(p, &stmt->other);
    }
    ci_text_close(p->out);
}

static void
print_for(CiCPrinter *p, const CiStmt *loop)
{
    const char *var = loop->vars[0]->name, *extent = ci_emit_index_text(p->base, loop->extents[0]);
    if (loop->run == CI_RUN_simd)
        ci_text_line(p->out, "#pragma omp simd");
    p->has_loops_left |= loop->run == CI_RUN_vector || loop->run == CI_RUN_simd;
    ci_text_open(p->out, "for (%s %s = 0; %s < %s; %s++) {", p->index_type, var, var, extent, var);
    ci_c_print_block(p, &loop->body);
    ci_text_close(p->out);
}

/* A compress of one value: stores it if the mask is true, counts it, and checks the capacity. A
 * single writer stores every value at the next position. The next value overwrites a rejected one,
 * so there is no branch to mispredict. The capacity suffices nearly always, which is stated because
 * compilers would otherwise add a second jump. */
static void
print_pack(CiCPrinter *p, const CiStmt *call)
{
    const char *cell = ci_c_element(p, call->cell, ci_expr_const(p->sym, 0));
    CiText value = ci_text_new(p->ctx);
    ci_emit_narrow(p->base, &value, call->at.memory->dtype,
                   ci_format(p->ctx, "v%d", call->args[0]));
    const char *limit = ci_emit_index_text(p->base, call->limit);
    const char *place =
        ci_format(p->ctx, "%s[%s + (%s)*%s", ci_c_memory(p, call->at.memory),
                  ci_emit_index_text(p->base, call->at.index),
                  call->at.stride ? ci_emit_index_text(p->base, call->at.stride) : "1", cell);
    if (!p->dialect->packs_alone) {
        ci_text_line(p->out, "if (v%d && %s < %s)", call->args[1], cell, limit);
        ci_text_line(p->out, "    %s++] = %s;", place, value.data);
        return;
    }
    ci_text_open(p->out, "if (__builtin_expect(%s < %s, 1)) {", cell, limit);
    ci_text_line(p->out, "%s] = %s;", place, value.data);
    ci_text_line(p->out, "%s += v%d;", cell, call->args[1]);
    ci_text_close(p->out);
}

static void
print_stmt(CiCPrinter *p, const CiStmt *stmt)
{
    switch (stmt->kind) {
    case CI_STMT_let:
        ci_c_print_let(p, stmt);
        break;
    case CI_STMT_store:
        ci_c_print_stored(p, stmt);
        break;
    case CI_STMT_alloc:
        p->dialect->alloc(p, stmt->memory);
        break;
    case CI_STMT_if:
        print_if(p, stmt);
        break;
    case CI_STMT_for:
        print_for(p, stmt);
        break;
    case CI_STMT_loop:
        ci_text_open(p->out, "for (;;) {");
        ci_c_print_block(p, &stmt->body);
        ci_text_close(p->out);
        break;
    case CI_STMT_exit:
        ci_text_line(p->out, "if (%s)", ci_c_conditions(p, stmt));
        ci_text_line(p->out, "    break;");
        break;
    case CI_STMT_call:
        print_pack(p, stmt);
        break;
    default:
        ci_fail(p->ctx, CI_ERR_INTERNAL, "proc %s: there is no C for a statement of kind %d",
                p->proc->name, (int)stmt->kind);
    }
}

void
ci_c_print_block(CiCPrinter *p, const CiStmts *block)
{
    CiEmitter *e = p->base;
    int outside = e->long_names.count, pointers = p->npointers;
    for (const CiStmt *stmt = block->first; stmt; stmt = stmt->next) {
        ci_emit_declare_names(e, p->out, stmt);
        ci_c_declare_pointer(p, stmt);
        const CiStmt *last = p->dialect->statement(p, stmt);
        if (last)
            stmt = last;
        else
            print_stmt(p, stmt);
    }
    ci_c_leave_pointers(p, pointers);
    e->long_names.count = outside;
}

void
ci_c_begin_proc(CiCPrinter *p, const CiProc *proc, CiText *body)
{
    if (!ci_name_is_safe(proc->name))
        ci_fail(p->ctx, CI_ERR_INTERNAL, "a proc has no safe name");
    p->proc = proc;
    p->base->proc = proc;
    ci_emit_name_indices(p->base);
    p->swap_groups = ci_c_swap_groups(p->ctx, proc);
    p->defined = CI_NEW_ARRAY(p->ctx, const CiStmt *, proc->nvalues + 1);
    p->lane_symbols = ci_map_new(p->ctx);
    p->npointers = 0;
    p->has_pointer = CI_NEW_ARRAY(p->ctx, bool, proc->npointers + 1);
    p->uses = CI_NEW_ARRAY(p->ctx, int, proc->nvalues + 1);
    ci_stmts_count_uses(&proc->body, p->uses);
    p->has_loops_left = false;
    body->indent = 4;
    p->out = body;
}
