/* Bools in lanes are masks: computes the width of each, and converts masks between widths. */
#include "target/c/c.h"

/* A bool as a mask of so many bytes a lane. */
const char *
ci_c_as_mask(CiCPrinter *p, int value, int bytes)
{
    int lanes = ci_c_type_of(p, value).lanes, width = p->masks[value];
    const char *name = ci_c_name(p, value);
    if (width == 0)
        name = ci_format(p->ctx, "(%s != 0)", name);
    if (bytes == (width ? width : 1))
        return name;
    return ci_c_convert(p, ci_c_mask_dtype(width ? width : 1), ci_c_mask_dtype(bytes), lanes, name);
}

/* As bytes that are 0 or 1. */
const char *
ci_c_as_bytes(CiCPrinter *p, int value)
{
    int lanes = ci_c_type_of(p, value).lanes;
    const char *name = ci_c_name(p, value);
    if (p->masks[value] == 0)
        return name;
    return ci_format(p->ctx, "(%s & 1)",
                     ci_c_convert(p, ci_c_mask_dtype(p->masks[value]), CI_DTYPE_u8, lanes, name));
}

/* The number of the first lane that is true, of all lanes if none is. */
const char *
ci_c_first_true(CiCPrinter *p, int value)
{
    int lanes = ci_c_type_of(p, value).lanes, width = p->masks[value] ? p->masks[value] : 1;
    return ci_format(p->ctx, "%s(%s)", ci_c_find_lane(p, width, lanes), ci_c_as_mask(p, value, width));
}

/* The widest mask among bools, at least a byte. */
int
ci_c_common_width(const CiCPrinter *p, const int *values, int count)
{
    int width = 1;
    for (int k = 0; k < count; k++)
        width = p->masks[values[k]] > width ? p->masks[values[k]] : width;
    return width;
}

/* How wide a bool in lanes is: as what was compared, or a byte that is 0 or 1. */
static int
mask_of(CiCPrinter *p, const CiStmt *let)
{
    CiOpKind kind = ci_op_kind(let->op);
    CiDtype operand = let->nargs ? ci_c_type_of(p, let->args[0]).dtype : let->type.dtype;
    if (let->op == CI_OP_load)
        return ci_c_mask_in(p, let->at.memory);
    if (let->op == CI_OP_splat || ci_stmt_is_running(let))
        return 0;
    if (kind == CI_OPKIND_lanes)
        return p->masks[let->args[0]];
    if (!let->nargs || ci_c_why_not_vector(p->ctx, let->op, operand, let->type.dtype))
        return 0;
    if (let->op == CI_OP_cast)
        return operand == CI_DTYPE_bool ? p->masks[let->args[0]] : ci_c_width(operand);
    return operand == CI_DTYPE_bool ? ci_c_common_width(p, let->args, let->nargs)
                                    : ci_c_width(operand);
}

static void
find_mask(void *arg, const CiStmt *stmt)
{
    CiCPrinter *p = arg;
    if (stmt->kind == CI_STMT_let && stmt->type.dtype == CI_DTYPE_bool && stmt->type.lanes > 1)
        p->masks[stmt->value] = mask_of(p, stmt);
    const CiMemory *memory = stmt->kind == CI_STMT_store ? stmt->at.memory : NULL;
    if (!memory || memory->dtype != CI_DTYPE_bool || memory->lanes == 1 || memory->space == CI_SPACE_scratch)
        return; /* in scratch a bool is a byte */
    int *width = ci_map_find(p->memory_masks, CI_KEY(memory));
    if (!width) {
        width = CI_NEW(p->ctx, int);
        ci_map_put(p->memory_masks, CI_KEY(memory), width);
    }
    *width = p->masks[stmt->args[0]] > *width ? p->masks[stmt->args[0]] : *width;
}

int
ci_c_mask_in(const CiCPrinter *p, const CiMemory *memory)
{
    const int *width = ci_map_find(p->memory_masks, CI_KEY(memory));
    return width ? *width : 0;
}

void
ci_c_find_masks(CiCPrinter *p, const CiProc *proc)
{
    enum { ROUNDS = 2 }; /* a store after a load decides the mask width of the memory */
    p->masks = CI_NEW_ARRAY(p->ctx, int, proc->nvalues + 1);
    p->memory_masks = ci_map_new(p->ctx);
    for (int round = 0; round < ROUNDS; round++)
        ci_stmts_visit(&proc->body, find_mask, p);
}
