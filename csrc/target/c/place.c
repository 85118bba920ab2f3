/* Memory in generated code. A register contains values in the type that they are computed in, all
 * other memory in that of arrays.
 *
 * in0 + 8*c + 4 and in0 + 8*c + 12 differ by a constant. Printed in full, each is a product and
 * sums of its own, which a compiler merges only after a dozen passes over all of them. With a
 * pointer to in0 + 8*c, named once, both are a constant offset in an instruction from the start.
 *
 * Invariant: such a pointer is within its memory, because the elements accessed through it are at
 * or after it. A prefetch may be out of bounds, so its address is a number. */
#include "target/c/c.h"

struct CiCBase {
    const CiMemory *memory;
    const CiExpr *steps; /* elements after its beginning */
    bool is_ahead;       /* it is a number, for lines that are asked for ahead */
    const char *name;    /* NULL: not declared */
    int accesses;        /* of the block, that are not printed yet */
    CiCBase *outer;      /* of as many steps in other memory, or outside */
};

const char *
ci_c_memory(CiCPrinter *p, const CiMemory *memory)
{
    ci_emit_note(p->base, memory);
    return ci_emit_name(p->base, memory->space == CI_SPACE_global ? ci_emit_buffer(p->base, memory->buffer)
                                                                  : memory->name);
}

/* ---- pointers that are shared ---- */

/* The index without its number, which is not negative. */
static const CiExpr *
steps_of(CiCPrinter *p, const CiExpr *index, int64_t *number)
{
    *number = index->kind == CI_EXPR_linear && index->value > 0 ? index->value : 0;
    return *number ? ci_expr_sub(p->sym, index, ci_expr_const(p->sym, *number)) : index;
}

static CiCBase *
find_in(const CiMap *bases, const CiMemory *memory, const CiExpr *steps, bool is_ahead)
{
    CiCBase *base = ci_map_find(bases, CI_KEY(steps));
    while (base && (base->memory != memory || base->is_ahead != is_ahead))
        base = base->outer;
    return base;
}

static bool
is_in_lanes(const CiCPrinter *p, const CiStmt *stmt)
{
    return stmt->kind == CI_STMT_prefetch ||
           (stmt->kind == CI_STMT_store && ci_c_type_of(p, stmt->args[0]).lanes > 1) ||
           (stmt->kind == CI_STMT_let && stmt->op == CI_OP_load && stmt->type.lanes > 1);
}

/* Accesses of swapped memory do not share pointers, because the memory moves. Accesses of one element do
 * not either: C compilers optimize loops over single elements by their indices. */
static bool
may_share(CiCPrinter *p, const CiStmt *stmt)
{
    int64_t number;
    const CiMemory *memory = is_in_lanes(p, stmt) ? stmt->at.memory : NULL;
    return memory && memory->space == CI_SPACE_global && !memory->buffer->is_swapped &&
           !ci_expr_is_const(stmt->at.index, NULL) &&
           steps_of(p, stmt->at.index, &number)->low >= 0;
}

CiMap *
ci_c_count_bases(CiCPrinter *p, const CiStmts *block)
{
    CiMap *counted = ci_map_new(p->ctx);
    for (const CiStmt *stmt = block->first; stmt; stmt = stmt->next) {
        int64_t number;
        if (!may_share(p, stmt))
            continue;
        bool is_ahead = stmt->kind == CI_STMT_prefetch;
        const CiExpr *steps = steps_of(p, stmt->at.index, &number);
        CiCBase *base = find_in(counted, stmt->at.memory, steps, is_ahead);
        if (!base) {
            base = CI_NEW(p->ctx, CiCBase);
            *base = (CiCBase){.memory = stmt->at.memory,
                              .steps = steps,
                              .is_ahead = is_ahead,
                              .outer = ci_map_find(counted, CI_KEY(steps))};
            ci_map_put(counted, CI_KEY(steps), base);
        }
        base->accesses++;
    }
    return counted;
}

static void
declare(CiCPrinter *p, const CiCBase *base)
{
    const CiMemory *memory = base->memory;
    const char *from = ci_c_memory(p, memory), *steps = ci_emit_index_text(p->base, base->steps);
    if (base->is_ahead)
        ci_text_line(p->out, "const uint64_t %s = (uint64_t)%s + %d*(%s);", base->name, from,
                     (int)ci_dtype_size(memory->dtype), steps);
    else
        ci_text_line(p->out, "%s%s *const %s = %s + %s;",
                     memory->is_const ? "const " : "",
                     ci_dtype_storage(memory->dtype), base->name, from, steps);
}

void
ci_c_declare_base(CiCPrinter *p, const CiMap *counted, const CiStmt *stmt)
{
    int64_t number;
    if (!may_share(p, stmt) || ci_c_has_lanes(p, stmt->at.index))
        return;
    bool is_ahead = stmt->kind == CI_STMT_prefetch;
    const CiExpr *steps = steps_of(p, stmt->at.index, &number);
    CiCBase *base = find_in(counted, stmt->at.memory, steps, is_ahead);
    if (base->accesses-- < 2 || find_in(p->bases, stmt->at.memory, steps, is_ahead))
        return;
    base->name = ci_format(p->ctx, is_ahead ? "ahead%d" : "base%d", p->nbases++);
    declare(p, base);
    CiCBase *own = CI_NEW(p->ctx, CiCBase);
    *own = *base;
    own->outer = ci_map_find(p->bases, CI_KEY(steps));
    ci_map_put(p->bases, CI_KEY(steps), own);
}

void
ci_c_forget_bases(CiCPrinter *p, const CiMap *counted)
{
    for (int k = 0; k < ci_map_count(counted); k++)
        for (const CiCBase *base = ci_map_value_at(counted, k); base; base = base->outer)
            if (base->name) {
                CiCBase *own = ci_map_find(p->bases, CI_KEY(base->steps));
                ci_map_put(p->bases, CI_KEY(base->steps), own->outer);
            }
}

/* NULL: there is none. */
static const CiCBase *
find(CiCPrinter *p, const CiMemory *memory, const CiExpr *index, bool is_ahead, int64_t *number)
{
    return p->nbases ? find_in(p->bases, memory, steps_of(p, index, number), is_ahead) : NULL;
}

const char *
ci_c_pointer(CiCPrinter *p, const CiMemory *memory, const CiExpr *index)
{
    int64_t number;
    const CiCBase *base = find(p, memory, index, false, &number);
    if (!base)
        return ci_format(p->ctx, "%s + %s", ci_c_memory(p, memory),
                         ci_emit_index_text(p->base, index));
    return number ? ci_format(p->ctx, "%s + %lld", base->name, (long long)number) : base->name;
}

const char *
ci_c_ahead(CiCPrinter *p, const CiMemory *memory, const CiExpr *index)
{
    int64_t number;
    int size = (int)ci_dtype_size(memory->dtype);
    const CiCBase *base = find(p, memory, index, true, &number);
    return base ? ci_format(p->ctx, "%s + %lld", base->name, (long long)number * size)
                : ci_format(p->ctx, "(uint64_t)%s + %d*(%s)", ci_c_memory(p, memory), size,
                            ci_emit_index_text(p->base, index));
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
    const char *type = ci_c_mask_in(p, memory)
                           ? ci_c_mask_type(p, ci_c_mask_in(p, memory), memory->lanes)
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
