/* Where memory is while a kernel runs. What a register holds has the form that it is computed in,
 * all other memory that of arrays. */
#include "target/c/c.h"

/* It holds values in the form that they are computed in. */
static bool
holds_values(const CiMemory *memory)
{
    return memory->space == CI_SPACE_register || memory->space == CI_SPACE_thread;
}

static bool
is_variable(const CiMemory *memory)
{
    return memory->space == CI_SPACE_register && ci_expr_equals_const(memory->size, 1);
}

const char *
ci_c_memory(CiCPrinter *p, const CiMemory *memory)
{
    return memory->space == CI_SPACE_global ? ci_emit_buffer(p->base, memory->buffer)
                                            : memory->name;
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
    else if (holds_values(memory))
        ci_text_add(&text, "%s", ci_c_element(p, memory, index));
    else
        ci_emit_widen(p->base, &text, memory->dtype, ci_c_element(p, memory, index));
    return text.data;
}

void
ci_c_print_store(CiCPrinter *p, const CiMemory *memory, const CiExpr *index, const char *value)
{
    CiText text = ci_text_new(p->ctx);
    if (holds_values(memory))
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
    const char *type = ci_c_mask_in(p, memory)
                           ? ci_c_mask_type(p, ci_c_mask_in(p, memory), memory->lanes)
                       : is_value ? ci_c_type(p, memory->dtype, memory->lanes)
                                  : ci_emit_storage(memory->dtype);
    if (memory->space == CI_SPACE_scratch)
        ci_text_line(p->out, "%s *const %s = (%s *)((char *)run->scratch + %s);", type,
                     memory->name, type, ci_emit_index_text(p->base, memory->offset));
    else if (is_variable(memory))
        ci_text_line(p->out, "%s %s = %s;", type, memory->name,
                     is_complex          ? "{0, 0}"
                     : memory->lanes > 1 ? "{0}"
                                         : "0");
    else
        ci_text_line(p->out, "%s %s[%s] __attribute__((aligned(64)));", type, memory->name,
                     ci_emit_index_text(p->base, memory->size));
}
