/* Memory in generated code. A register contains values in the type that they are computed in, all
 * other memory in that of arrays. */
#include "target/c/c.h"

const char *
ci_c_memory(CiCPrinter *p, const CiMemory *memory)
{
    ci_emit_note(p->base, memory);
    return ci_emit_name(p->base, memory->space == CI_SPACE_global ? ci_emit_buffer(p->base, memory->buffer)
                                                                  : memory->name);
}

/* ---- pointers (proc_pointers.c) ---- */

static const char *
pointer_name(CiCPrinter *p, const CiStmt *stmt)
{
    return ci_format(p->ctx, stmt->kind == CI_STMT_prefetch ? "ahead%d" : "base%d", stmt->at.pointer - 1);
}

void
ci_c_declare_pointer(CiCPrinter *p, const CiStmt *stmt)
{
    const CiMemory *memory = stmt->at.memory;
    int64_t offset;
    if (!stmt->at.pointer || p->has_pointer[stmt->at.pointer])
        return;
    p->has_pointer[stmt->at.pointer] = true;
    CI_PUSH(p->ctx, p->pointers, p->npointers, p->cappointers, stmt->at.pointer);
    const char *name = pointer_name(p, stmt), *from = ci_c_memory(p, memory),
               *start = ci_emit_index_text(p->base, ci_pointer_start(p->sym, stmt->at.index, &offset));
    if (stmt->kind == CI_STMT_prefetch)
        ci_text_line(p->out, "const uint64_t %s = (uint64_t)%s + %d*(%s);", name, from,
                     (int)ci_dtype_size(memory->dtype), start);
    else
        ci_text_line(p->out, "%s%s *const %s = %s + %s;", memory->is_const ? "const " : "",
                     ci_dtype_storage(memory->dtype), name, from, start);
}

void
ci_c_leave_pointers(CiCPrinter *p, int outside)
{
    while (p->npointers > outside)
        p->has_pointer[p->pointers[--p->npointers]] = false;
}

const char *
ci_c_pointer(CiCPrinter *p, const CiStmt *stmt)
{
    const CiAccess *at = &stmt->at;
    int64_t offset, size = ci_dtype_size(at->memory->dtype);
    bool is_ahead = stmt->kind == CI_STMT_prefetch;
    if (at->pointer) {
        (void)ci_pointer_start(p->sym, at->index, &offset);
        const char *name = pointer_name(p, stmt);
        return !offset && !is_ahead ? name
                                    : ci_format(p->ctx, "%s + %lld", name, (long long)offset * (is_ahead ? size : 1));
    }
    const char *memory = ci_c_memory(p, at->memory), *index = ci_emit_index_text(p->base, at->index);
    return is_ahead ? ci_format(p->ctx, "(uint64_t)%s + %d*(%s)", memory, (int)size, index)
                    : ci_format(p->ctx, "%s + %s", memory, index);
}

/* ---- elements ---- */

/* True if values are stored in the type that they are computed in. */
static bool
has_values(const CiMemory *memory)
{
    return memory->space == CI_SPACE_register || memory->space == CI_SPACE_thread;
}

static bool
is_variable(const CiMemory *memory)
{
    return memory->space == CI_SPACE_register && ci_expr_equals_const(memory->size, 1);
}

const char *
ci_c_element(CiCPrinter *p, const CiMemory *memory, const CiExpr *index)
{
    const char *name = ci_c_memory(p, memory);
    if (memory->space == CI_SPACE_thread)
        return p->dialect->thread_element(p, memory, index);
    return is_variable(memory)
               ? name
               : ci_format(p->ctx, "%s[%s]", name, ci_emit_index_text(p->base, index));
}

const char *
ci_c_load(CiCPrinter *p, const CiMemory *memory, const CiExpr *index)
{
    CiText text = ci_text_new(p->ctx);
    if (memory->space == CI_SPACE_argument)
        ci_text_add(&text, "%s", p->dialect->argument(p, memory));
    else if (has_values(memory))
        ci_text_add(&text, "%s", ci_c_element(p, memory, index));
    else
        ci_emit_widen(p->base, &text, memory->dtype, ci_c_element(p, memory, index));
    return text.data;
}

void
ci_c_print_store(CiCPrinter *p, const CiMemory *memory, const CiExpr *index, const char *value)
{
    CiText text = ci_text_new(p->ctx);
    if (has_values(memory))
        ci_text_add(&text, "%s", value);
    else
        ci_emit_narrow(p->base, &text, memory->dtype, value);
    ci_text_line(p->out, "%s = %s;", ci_c_element(p, memory, index), text.data);
}

void
ci_c_print_alloc(CiCPrinter *p, const CiMemory *memory)
{
    bool is_value = memory->space == CI_SPACE_register || memory->lanes > 1,
         is_complex = ci_dtype_class(memory->dtype) == CI_CLASS_complex;
    const char *type = memory->mask ? ci_c_mask_type(p, memory->mask, memory->lanes)
                       : is_value ? ci_c_type(p, memory->dtype, memory->lanes)
                                  : ci_dtype_storage(memory->dtype),
               *name = ci_c_memory(p, memory);
    if (memory->space == CI_SPACE_scratch)
        ci_text_line(p->out, "%s *const %s = (%s *)((char *)%s->scratch + %s);", type, name, type,
                     ci_emit_use(p->base, "run"), ci_emit_index_text(p->base, memory->offset));
    else if (is_variable(memory))
        ci_text_line(p->out, "%s %s = %s;", type, name,
                     is_complex          ? "{0, 0}"
                     : memory->lanes > 1 ? "{0}"
                                         : "0");
    else
        ci_text_line(p->out, "%s %s[%s] __attribute__((aligned(64)));", type, name,
                     ci_emit_index_text(p->base, memory->size));
}
