/* Values: where they are, and the operations that make them. */
#include "device/interp/ops.h"
#include "device/stencil/translate.h"

#include <stdio.h>
#include <string.h>

/* ---- values ---- */

void
ci_stencil_check_type(Translator *t, CiType type)
{
    if (!ci_stencil_has_type(type.dtype))
        REFUSE(t, "values of %s", ci_dtype_name(type.dtype));
    if (type.dtype != CI_DTYPE_bool && type.lanes * ci_stencil_size(type.dtype) > VECTOR_BYTES)
        REFUSE(t, "a value of %d lanes of %s is wider than a register", type.lanes,
               ci_dtype_name(type.dtype));
}

Value *
ci_stencil_root(Translator *t, int value)
{
    return &t->values[t->values[value].root];
}

void
ci_stencil_to_acc(Translator *t, int value)
{
    int root = t->values[value].root;
    if (t->acc == root)
        return;
    if (t->values[root].slot < 0)
        ci_fail(t->ctx, CI_ERR_INTERNAL, "value %d has no place", root);
    ci_stencil_put(t, "slot_to_acc", t->values[root].slot, 0);
    t->acc = root;
}

static int
slot_of(Translator *t, int value)
{
    Value *root = ci_stencil_root(t, value);
    if (root->slot < 0)
        ci_fail(t->ctx, CI_ERR_INTERNAL, "value %d has no place", value);
    return root->slot;
}

static void
widen_mask(Translator *t, int from, int to)
{
    char name[32];
    if (from == to || from == 0)
        return;
    snprintf(name, sizeof name, "mask_%d_%d", from, to);
    ci_stencil_put(t, name, 0, 0);
    t->acc = -1;
}

/* A mask with lanes of so many bytes, in the accumulator. */
void
ci_stencil_mask_to_acc(Translator *t, int value, int width)
{
    ci_stencil_to_acc(t, value);
    widen_mask(t, ci_stencil_root(t, value)->mask, width);
}

/* The slot of such a mask, which may be a new one: *made. */
static int
mask_slot(Translator *t, int value, int width, int *made)
{
    Value *root = ci_stencil_root(t, value);
    *made = -1;
    if (root->mask == width || root->mask == 0)
        return slot_of(t, value);
    ci_stencil_mask_to_acc(t, value, width);
    *made = ci_stencil_take_value(t);
    ci_stencil_put(t, "acc_to_slot", *made, 0);
    return *made;
}

bool
ci_stencil_is_register(const CiMemory *memory)
{
    return memory->space == CI_SPACE_register || memory->space == CI_SPACE_argument;
}

/* A load from a register that is not stored to while the value is needed. */
bool
ci_stencil_is_borrowed(const Translator *t, const CiStmt *load, int number)
{
    if (!ci_stencil_is_register(load->at.memory) || !ci_expr_is_const(load->at.index, NULL) || load->live)
        return false;
    if (load->at.memory->space == CI_SPACE_argument)
        return true;
    int last = t->values[load->value].last;
    for (const CiStmt *stmt = load->next; stmt; stmt = stmt->next) {
        if (stmt->body.first || stmt->other.first)
            return false;
        if (++number >= last)
            return true;
        bool is_store = stmt->kind == CI_STMT_store && stmt->at.memory == load->at.memory;
        if (is_store || (stmt->kind == CI_STMT_call && stmt->cell == load->at.memory))
            return false;
    }
    return true;
}

static bool
is_value_of(const Translator *t, int value, int root)
{
    return t->values[value].root == root;
}

/* The statement takes the value from the accumulator, and nowhere else. */
static bool
takes_acc(const Translator *t, const CiStmt *stmt, int root)
{
    if (stmt->kind == CI_STMT_store)
        return stmt->op == CI_OP_none && is_value_of(t, stmt->args[0], root);
    if (stmt->kind != CI_STMT_let || stmt->nargs == 0)
        return false;
    bool is_first = is_value_of(t, stmt->args[0], root);
    switch (stmt->op) {
    case CI_OP_cast:
    case CI_OP_where:
    case CI_OP_odds:
    case CI_OP_evens:
    case CI_OP_low:
    case CI_OP_high:
        return is_first && t->proc->types[stmt->args[0]].dtype != CI_DTYPE_bool;
    case CI_OP_odd:
    case CI_OP_even:
    case CI_OP_bind:
        return false;
    default:
        if (ci_op_kind(stmt->op) != CI_OPKIND_pointwise ||
            t->proc->types[stmt->args[0]].dtype == CI_DTYPE_bool)
            return false;
        return is_first || (stmt->nargs == 2 && is_value_of(t, stmt->args[1], root));
    }
}

/* The accumulator has the value: it goes to a place if it is needed later. */
void
ci_stencil_define(Translator *t, const CiStmt *let, int number)
{
    int root = let->value;
    t->acc = root;
    const CiStmt *next = let->next;
    for (number++; next && next->kind == CI_STMT_let; next = next->next, number++) {
        bool is_nothing = next->op == CI_OP_const || next->op == CI_OP_splat ||
                          (next->op == CI_OP_load && ci_stencil_is_borrowed(t, next, number));
        if (!is_nothing)
            break;
    }
    if (t->values[root].uses == 1 && next && takes_acc(t, next, root))
        return;
    t->values[root].slot = ci_stencil_take_value(t);
    ci_stencil_put(t, "acc_to_slot", t->values[root].slot, 0);
}

/* ---- operations ---- */

/* The first bytes of a register, again where there is room. */
static void
repeat(Translator *t, int slot, int bytes)
{
    char name[32];
    int address = ci_stencil_take_number(t);
    if (bytes == VECTOR_BYTES)
        return;
    ci_stencil_put(t, "x_is_frame", slot, 0);
    ci_stencil_x_to_slot(t, address);
    ci_stencil_x_is(t, 0);
    snprintf(name, sizeof name, "load_1_%d", bytes);
    ci_stencil_put(t, name, address, 0);
}

/* The interpreter's function, for what has no stencil of its own: so many values of these sizes. */
static void
call_operation(Translator *t, const CiStmt *let, CiInterpOp function, int count, int result_size)
{
    int out = ci_stencil_take_bytes(t, 4 * VECTOR_BYTES, VECTOR_BYTES);
    int64_t address = 0;
    bool turned = let->nargs == 2 && t->acc == t->values[let->args[1]].root;
    if (!function)
        REFUSE(t, "%s has no stencil", ci_op_name(let->op));
    for (int k = 0; k < let->nargs; k++) {
        int number = turned ? 1 - k : k;
        ci_stencil_to_acc(t, let->args[number]);
        ci_stencil_put(t, "acc_to_slot", out + VECTOR_BYTES * (number + 1), 0);
    }
    memcpy(&address, &function, sizeof function);
    ci_stencil_x_is(t, count);
    ci_stencil_put(t, "operation", address, out);
    ci_stencil_forget(t);
    repeat(t, out, count * result_size);
}

/* A pointwise operation, whose result is of the operands' type, or a mask. */
static void
call_pointwise(Translator *t, const CiStmt *let, CiDtype dtype)
{
    char name[32];
    int size = ci_stencil_size(dtype);
    bool is_mask = let->type.dtype == CI_DTYPE_bool;
    if (dtype == CI_DTYPE_bool || let->nargs > 2)
        REFUSE(t, "%s has no stencil", ci_op_name(let->op));
    call_operation(t, let, ci_interp_function(let->op, dtype), VECTOR_BYTES / size, is_mask ? 1 : ci_stencil_size(let->type.dtype));
    if (!is_mask)
        return;
    ci_stencil_put(t, "mask_of_bytes", 0, 0);
    snprintf(name, sizeof name, "mask_1_%d", size);
    if (size > 1)
        ci_stencil_put(t, name, 0, 0);
}

static void
binary(Translator *t, const CiStmt *let, CiDtype dtype)
{
    char name[40];
    int a = let->args[0], b = let->args[1], made = -1, slot;
    bool is_turned = false;
    if (dtype == CI_DTYPE_bool) {
        int width = ci_stencil_root(t, a)->mask ? ci_stencil_root(t, a)->mask : ci_stencil_root(t, b)->mask;
        int most = ci_stencil_mask_of_lanes(let->type.lanes);
        width = width && width < most ? width : most;
        t->values[let->value].mask = width;
        slot = mask_slot(t, b, width, &made);
        ci_stencil_mask_to_acc(t, a, width);
    } else {
        is_turned = t->acc == t->values[b].root && t->acc != t->values[a].root && ci_stencil_root(t, a)->slot >= 0;
        slot = slot_of(t, is_turned ? a : b);
        ci_stencil_to_acc(t, is_turned ? b : a);
    }
    snprintf(name, sizeof name, "%s_%s%s", ci_op_name(let->op), ci_dtype_name(dtype),
             is_turned ? "_turned" : "");
    ci_stencil_put(t, name, slot, 0);
    if (made >= 0)
        ci_stencil_give_value(t, made);
}

/* True if stencils take the second operand from the accumulator as well as the first. */
static bool
has_stencils(const char *name, int nargs)
{
    char turned[48];
    snprintf(turned, sizeof turned, "%s_turned", name);
    return ci_stencil_find(name) && (nargs == 1 || ci_stencil_find(turned));
}

static void
pointwise(Translator *t, const CiStmt *let)
{
    char name[40];
    CiDtype dtype = t->proc->types[let->args[0]].dtype;
    if (let->nargs == 2 && t->proc->types[let->args[1]].dtype != dtype)
        REFUSE(t, "%s of two types", ci_op_name(let->op));
    t->values[let->value].mask = ci_stencil_size(dtype);
    snprintf(name, sizeof name, "%s_%s", ci_op_name(let->op), ci_dtype_name(dtype));
    if (let->nargs == 0 || !has_stencils(name, let->nargs)) {
        call_pointwise(t, let, dtype);
        return;
    }
    if (let->nargs == 2) {
        binary(t, let, dtype);
        return;
    }
    ci_stencil_to_acc(t, let->args[0]);
    if (dtype == CI_DTYPE_bool)
        t->values[let->value].mask = ci_stencil_root(t, let->args[0])->mask ? ci_stencil_root(t, let->args[0])->mask : 1;
    ci_stencil_put(t, name, 0, 0);
}

/* The type with stencils for masks of the same width. */
static CiDtype
type_of_mask(CiDtype dtype)
{
    int size = ci_stencil_size(dtype);
    bool is_own = dtype == CI_DTYPE_f32 || dtype == CI_DTYPE_f64 || dtype == CI_DTYPE_bool;
    return is_own ? dtype : size == 1 ? CI_DTYPE_u8 : size == 4 ? CI_DTYPE_i32 : CI_DTYPE_i64;
}

static void
cast(Translator *t, const CiStmt *let)
{
    char name[40];
    CiDtype from = t->proc->types[let->args[0]].dtype, to = let->type.dtype;
    int from_size = ci_stencil_size(from), to_size = ci_stencil_size(to);
    if (from == CI_DTYPE_bool)
        ci_stencil_mask_to_acc(t, let->args[0], to_size);
    else
        ci_stencil_to_acc(t, let->args[0]);
    t->values[let->value].mask = from_size;
    if (from == to)
        return;
    bool is_mask = from == CI_DTYPE_bool || to == CI_DTYPE_bool;
    snprintf(name, sizeof name, "cast_%s_%s", ci_dtype_name(is_mask ? type_of_mask(from) : from), ci_dtype_name(is_mask ? type_of_mask(to) : to));
    if (ci_stencil_find(name))
        ci_stencil_put(t, name, 0, 0);
    else
        call_operation(t, let, ci_interp_cast(from, to), VECTOR_BYTES / (from_size > to_size ? from_size : to_size), to_size);
}

static void
where(Translator *t, const CiStmt *let)
{
    int width = ci_stencil_size(let->type.dtype), made[2] = {-1, -1}, slots[2];
    if (let->type.dtype == CI_DTYPE_bool)
        width = ci_stencil_mask_of_lanes(let->type.lanes);
    for (int k = 0; k < 2; k++)
        slots[k] = let->type.dtype == CI_DTYPE_bool ? mask_slot(t, let->args[k + 1], width, &made[k])
                                                    : slot_of(t, let->args[k + 1]);
    ci_stencil_mask_to_acc(t, let->args[0], width);
    ci_stencil_put(t, "where", slots[0], slots[1]);
    t->values[let->value].mask = width;
    for (int k = 0; k < 2; k++)
        if (made[k] >= 0)
            ci_stencil_give_value(t, made[k]);
}

/* Every second lane, or a half of them. */
static void
part_lanes(Translator *t, const CiStmt *let)
{
    char name[32];
    CiDtype dtype = let->type.dtype;
    const Value *root = ci_stencil_root(t, let->args[0]);
    int width = dtype == CI_DTYPE_bool ? (root->mask ? root->mask : 8) : ci_stencil_size(dtype);
    int bytes = width * t->proc->types[let->args[0]].lanes;
    t->values[let->value].mask = width;
    if (bytes > VECTOR_BYTES)
        REFUSE(t, "lanes of a mask");
    if (let->op == CI_OP_low || let->op == CI_OP_high) {
        ci_stencil_to_acc(t, let->args[0]);
        snprintf(name, sizeof name, "%s_%d", let->op == CI_OP_low ? "low" : "high", bytes);
        ci_stencil_put(t, name, 0, 0);
        return;
    }
    bool is_odd = let->op == CI_OP_odd || let->op == CI_OP_odds, is_one = let->nargs == 1;
    if (!is_one && bytes != VECTOR_BYTES)
        REFUSE(t, "neighbours of few lanes");
    int made = -1, slot = dtype == CI_DTYPE_bool ? mask_slot(t, let->args[!is_one], width, &made)
                                                 : slot_of(t, let->args[!is_one]);
    ci_stencil_to_acc(t, let->args[0]);
    snprintf(name, sizeof name, "%s_%d", is_odd ? "odds" : "evens", width);
    ci_stencil_put(t, name, slot, 0);
    if (made >= 0)
        ci_stencil_give_value(t, made);
}

static void
index_value(Translator *t, const CiStmt *let)
{
    if (let->type.dtype != CI_DTYPE_i64 || (let->op == CI_OP_iota && let->type.lanes > 4))
        REFUSE(t, "%s of %s", ci_op_name(let->op), ci_dtype_name(let->type.dtype));
    ci_stencil_make_x(t, let->expr);
    ci_stencil_put(t, let->op == CI_OP_iota && let->type.lanes > 1 ? "iota_8" : "x_to_acc", 0, 0);
}

static void
first_true(Translator *t, const CiStmt *let)
{
    int lanes = t->proc->types[let->args[0]].lanes, width = ci_stencil_mask_of_lanes(lanes);
    ci_stencil_mask_to_acc(t, let->args[0], width);
    ci_stencil_put(t, "first_true", width == 8 ? 3 : width == 4 ? 2 : 0, lanes);
}

static void
bind(Translator *t, const CiStmt *let)
{
    if (let->type.lanes > 1 || t->proc->types[let->args[0]].dtype != CI_DTYPE_i64)
        REFUSE(t, "each lane has an index of its own");
    ci_stencil_put(t, "x_is_slot", slot_of(t, let->args[0]), 0);
    ci_stencil_x_to_slot(t, ci_stencil_new_symbol(t, let->expr));
}

void
ci_stencil_let(Translator *t, const CiStmt *let, int number)
{
    if (let->op == CI_OP_const || let->op == CI_OP_splat)
        return; /* they have places */
    ci_stencil_check_type(t, let->type);
    switch (let->op) {
    case CI_OP_bind:
        bind(t, let);
        return;
    case CI_OP_index:
    case CI_OP_iota:
        index_value(t, let);
        break;
    case CI_OP_first_true:
        first_true(t, let);
        break;
    case CI_OP_cast:
        cast(t, let);
        break;
    case CI_OP_where:
        where(t, let);
        break;
    case CI_OP_odd:
    case CI_OP_even:
    case CI_OP_odds:
    case CI_OP_evens:
    case CI_OP_low:
    case CI_OP_high:
        part_lanes(t, let);
        break;
    default:
        if (ci_op_kind(let->op) != CI_OPKIND_pointwise)
            REFUSE(t, "%s has no stencil", ci_op_name(let->op));
        pointwise(t, let);
        break;
    }
    ci_stencil_define(t, let, number);
}
