/* A proc as a chain of stencils.
 *
 * Every value gets a place in the frame, unless the statement after it takes it from the accumulator
 * and nothing else needs it. A place is free again after the last statement that needs its value.
 * Constants and arguments are put in the frame once. In an innermost loop, the index of an
 * access is often affine in the loop's variable. The address of its first element is then
 * computed before the loop, and a register has the number of the element. All other index expressions are
 * computed at the access. */
#include "device/stencil/translate.h"

#include "target/emit.h"

#include <stdio.h>

/* ---- the other statements ---- */

static void
alloc(Translator *t, const CiMemory *memory)
{
    Slot *place = CI_NEW(t->ctx, Slot);
    int64_t size, bytes = memory->lanes * ci_stencil_size(memory->dtype);
    if (memory->space == CI_SPACE_scratch) {
        place->slot = ci_stencil_take_number(t);
        ci_stencil_make_x(t, memory->offset);
        ci_stencil_x_to_slot(t, place->slot);
        ci_stencil_put(t, "x_is_element", RUN, (int64_t)offsetof(CiRun, scratch));
        ci_stencil_put(t, "x_adds_slot", place->slot, 0);
        ci_stencil_x_to_slot(t, place->slot);
    } else if (!ci_expr_is_const(memory->size, &size) || size > MAX_FRAME) {
        REFUSE(t, "memory %s has no fixed size", memory->name);
    } else if (memory->space == CI_SPACE_register) {
        *place = (Slot){ci_stencil_take_bytes(t, size * VECTOR_BYTES, VECTOR_BYTES), true, ci_stencil_mask_of_lanes(memory->lanes)};
        ci_stencil_check_type(t, ci_type_of(memory->dtype, memory->lanes));
    } else if (memory->space == CI_SPACE_stack) {
        int bottom = ci_stencil_take_bytes(t, size * bytes, VECTOR_BYTES);
        place->slot = ci_stencil_take_number(t);
        ci_stencil_put(t, "x_is_frame", bottom, 0);
        ci_stencil_x_to_slot(t, place->slot);
    } else {
        REFUSE(t, "memory %s is not of a kind that stencils reach", memory->name);
    }
    ci_map_put(t->memories, CI_KEY(memory), place);
}

static void
address_to_slot(Translator *t, const CiAccess *at, int slot)
{
    int width = ci_stencil_size(at->memory->dtype);
    Address address = ci_stencil_address(t, at);
    if (t->x_is_i)
        REFUSE(t, "a call in a loop over elements");
    ci_stencil_put(t, "x_times", width, 0);
    ci_stencil_put(t, "x_adds_slot", address.slot, 0);
    ci_stencil_put(t, "x_adds", address.offset, 0);
    ci_stencil_x_to_slot(t, slot);
}

static void
apply(Translator *t, const CiStmt *stmt)
{
    CiDtype dtype = stmt->in[0].memory->dtype;
    int given = ci_stencil_take_bytes(t, 40, 8);
    address_to_slot(t, &stmt->at, given);
    for (int k = 0; k < 2; k++) {
        int slot = given + 8 + 16 * k;
        if (k < stmt->nin) {
            address_to_slot(t, &stmt->in[k], slot);
            ci_stencil_make_x(t, stmt->in[k].stride ? stmt->in[k].stride : ci_expr_const(t->sym, 1));
            ci_stencil_put(t, "x_times", ci_stencil_size(dtype), 0);
        } else {
            ci_stencil_x_is(t, 0);
            ci_stencil_x_to_slot(t, slot);
        }
        ci_stencil_x_to_slot(t, slot + 8);
    }
    ci_stencil_make_x(t, stmt->expr);
    ci_stencil_put(t, "apply", ci_op_ufunc_loop(stmt->op, dtype), given);
    ci_stencil_forget(t);
}

/* Appends the values that a mask selects, whose count is in the statement's cell. */
static void
pack(Translator *t, const CiStmt *stmt)
{
    CiType type = t->proc->types[stmt->args[0]];
    const CiExpr *lanes = ci_expr_const(t->sym, type.lanes), *one = ci_expr_const(t->sym, 1), *all = ci_expr_const(t->sym, INT64_MAX);
    const Slot *cell = ci_stencil_slot(t, stmt->cell);
    int size = ci_stencil_size(type.dtype), given = ci_stencil_take_bytes(t, 3 * VECTOR_BYTES, VECTOR_BYTES);
    if (ci_stencil_is_register(stmt->at.memory))
        REFUSE(t, "values are packed in registers");
    if (type.dtype == CI_DTYPE_bool) {
        ci_stencil_mask_to_acc(t, stmt->args[0], 1);
        ci_stencil_put(t, "bytes_of_mask", 0, 0);
        t->acc = -1;
    } else {
        ci_stencil_to_acc(t, stmt->args[0]);
    }
    ci_stencil_put(t, "acc_to_slot", given + 2 * VECTOR_BYTES, 0);
    ci_stencil_mask_to_acc(t, stmt->args[1], size);
    ci_stencil_put(t, "acc_to_slot", given + VECTOR_BYTES, 0);
    address_to_slot(t, &stmt->at, given);
    ci_stencil_make_x(t, stmt->at.stride ? stmt->at.stride : one);
    ci_stencil_put(t, "x_times", size, 0);
    ci_stencil_x_to_slot(t, given + 8);
    ci_stencil_make_x(t, stmt->limit ? stmt->limit : all);
    ci_stencil_x_to_slot(t, given + 16);
    ci_stencil_put(t, cell->has_values ? "x_is_frame" : "x_is_slot", cell->slot, 0);
    ci_stencil_x_to_slot(t, given + 24);
    ci_stencil_make_x(t, stmt->live ? stmt->live : lanes);
    ci_stencil_put(t, "pack", size, given);
    ci_stencil_forget(t);
}

static void
stop(Translator *t, const CiStmt *stmt)
{
    int on = ci_stencil_label(t->code);
    ci_stencil_test(t, stmt, on);
    ci_stencil_put(t, "stop", stmt->number, CI_ERR_CHECK);
    ci_stencil_put(t, "end", CI_ERR_CHECK, 0);
    ci_stencil_here(t, on);
}

static void
statement(Translator *t, const CiStmt *stmt, int number)
{
    switch (stmt->kind) {
    case CI_STMT_let:
        if (stmt->op == CI_OP_load)
            ci_stencil_load(t, stmt, number);
        else
            ci_stencil_let(t, stmt, number);
        break;
    case CI_STMT_store:
        if (!ci_stencil_has_type(stmt->at.memory->dtype))
            REFUSE(t, "values of %s", ci_dtype_name(stmt->at.memory->dtype));
        ci_stencil_store(t, stmt);
        break;
    case CI_STMT_alloc:
        alloc(t, stmt->memory);
        break;
    case CI_STMT_for:
        if (stmt->nvars != 1)
            REFUSE(t, "a loop of several variables");
        if (stmt->run == CI_RUN_parallel)
            ci_stencil_parallel(t, stmt);
        else if (stmt->run == CI_RUN_serial || stmt->run == CI_RUN_vector || stmt->run == CI_RUN_simd)
            ci_stencil_serial(t, stmt);
        else
            REFUSE(t, "a loop that runs %s", ci_run_mode_names[stmt->run]);
        break;
    case CI_STMT_loop:
        ci_stencil_endless(t, stmt);
        break;
    case CI_STMT_exit:
        ci_stencil_leave(t, stmt);
        break;
    case CI_STMT_if:
        ci_stencil_branch(t, stmt);
        break;
    case CI_STMT_apply:
        apply(t, stmt);
        break;
    case CI_STMT_call:
        pack(t, stmt);
        break;
    case CI_STMT_stop:
        stop(t, stmt);
        break;
    case CI_STMT_poll:
        ci_stencil_make_x(t, stmt->expr);
        ci_stencil_put_jump(t, "poll", ITERATIONS, CI_POLL_ITERATIONS, t->interrupted);
        ci_stencil_forget(t);
        break;
    case CI_STMT_prefetch:
        break;
    default:
        REFUSE(t, "%s has no stencil", ci_stmt_names[stmt->kind]);
    }
}

static void
translate(Translator *t, const CiStmts *block)
{
    for (const CiStmt *stmt = block->first; stmt; stmt = stmt->next) {
        int number = t->number++;
        statement(t, stmt, number);
        for (int v = t->ended[number]; v >= 0; v = t->values[v].next) {
            Value *value = &t->values[v];
            if (value->slot >= 0 && !value->is_borrowed)
                ci_stencil_give_value(t, value->slot);
        }
    }
}

/* ---- what is known before ---- */

/* An operand is needed until the end of the statement around that is in the block of its
 * definition: an inner loop comes back to it. */
static void
use(Translator *t, int value)
{
    Value *root = ci_stencil_root(t, value);
    root->uses++;
    root->last = t->ancestors[root->depth];
}

static void
look_at_constant(Translator *t, const CiStmt *let)
{
    uint64_t bits = ci_stencil_bits(let->type.dtype, let->constant);
    int slot = (int)(intptr_t)ci_map_find(t->constants, bits) - 1;
    if (!ci_stencil_has_type(let->type.dtype))
        REFUSE(t, "values of %s", ci_dtype_name(let->type.dtype));
    if (slot < 0) {
        slot = ci_stencil_take_bytes(t, VECTOR_BYTES, VECTOR_BYTES);
        ci_map_put(t->constants, bits, (void *)(intptr_t)(slot + 1));
        ci_stencil_x_is(t, (int64_t)bits);
        ci_stencil_put(t, "x_to_acc", 0, 0);
        ci_stencil_put(t, "acc_to_slot", slot, 0);
    }
    t->values[let->value].slot = slot;
    t->values[let->value].is_borrowed = true;
}

static void
look(Translator *t, const CiStmts *block, int depth)
{
    if (depth == MAX_DEPTH)
        REFUSE(t, "loops are more than %d deep", MAX_DEPTH);
    for (const CiStmt *stmt = block->first; stmt; stmt = stmt->next) {
        t->ancestors[depth] = t->number++;
        for (int k = 0; k < stmt->nargs; k++)
            use(t, stmt->args[k]);
        for (int k = 0; k < stmt->ntests; k++)
            if (stmt->tests[k].compare >= CI_COMPARE_is)
                use(t, stmt->tests[k].value);
        if (stmt->kind == CI_STMT_let) {
            Value *value = &t->values[stmt->value];
            *value = (Value){.root = stmt->value, .slot = -1, .depth = depth, .next = -1, .last = t->ancestors[depth]};
            if (stmt->op == CI_OP_splat || stmt->op == CI_OP_bind)
                value->root = t->values[stmt->args[0]].root;
            if (stmt->op == CI_OP_splat)
                ci_stencil_root(t, stmt->value)->uses--;
            if (stmt->op == CI_OP_const)
                look_at_constant(t, stmt);
        }
        look(t, &stmt->body, depth + 1);
        look(t, &stmt->other, depth + 1);
    }
}

static void
find_ends(Translator *t)
{
    t->count = ci_stencil_count_statements(&t->proc->body);
    t->ended = CI_NEW_ARRAY(t->ctx, int, t->count + 1);
    for (int k = 0; k < t->count; k++)
        t->ended[k] = -1;
    look(t, &t->proc->body, 0);
    for (int v = 0; v < t->proc->nvalues; v++) {
        Value *value = &t->values[v];
        if (value->root != v || value->slot >= 0 || value->last < 0)
            continue;
        value->next = t->ended[value->last];
        t->ended[value->last] = v;
    }
}

/* ---- parameters ---- */

static void
take_argument(Translator *t, const CiMemory *memory, Slot *place)
{
    char name[32];
    int width = memory->dtype == CI_DTYPE_f32 ? 8 : ci_stencil_size(memory->dtype);
    if (!ci_stencil_has_type(memory->dtype))
        REFUSE(t, "values of %s", ci_dtype_name(memory->dtype));
    *place = (Slot){ci_stencil_take_value(t), true, 1};
    ci_stencil_x_is(t, 0);
    snprintf(name, sizeof name, "load_%d_%d", width, width);
    ci_stencil_put(t, name, SCALARS, 16 * ci_emit_scalar_slot(t->kernels->loops, memory->buffer));
    if (memory->dtype == CI_DTYPE_f32)
        ci_stencil_put(t, "cast_f64_f32", 0, 0);
    if (memory->dtype == CI_DTYPE_bool)
        ci_stencil_put(t, "mask_of_bytes", 0, 0);
    ci_stencil_put(t, "acc_to_slot", place->slot, 0);
}

static void
take_parameters(Translator *t)
{
    ci_stencil_x_is(t, 0);
    ci_stencil_x_to_slot(t, ZERO);
    ci_stencil_x_to_slot(t, ITERATIONS);
    for (int k = 0; k < t->proc->nsizes; k++) {
        ci_stencil_put(t, "x_is_element", SIZES, 8 * k);
        ci_stencil_x_to_slot(t, ci_stencil_new_symbol(t, t->proc->sizes[k]));
    }
    for (int k = 0; k < t->proc->nparams; k++) {
        const CiMemory *memory = t->proc->params[k];
        Slot *place = CI_NEW(t->ctx, Slot);
        if (memory->space == CI_SPACE_argument) {
            take_argument(t, memory, place);
        } else if (memory->space == CI_SPACE_global) {
            place->slot = ci_stencil_take_number(t);
            ci_stencil_put(t, "x_is_element", BUFFERS, 8 * k);
            ci_stencil_x_to_slot(t, place->slot);
        } else if (memory->space == CI_SPACE_partials) {
            place->slot = ci_stencil_take_number(t);
            ci_stencil_compute(t, memory->offset);
            ci_stencil_x_to_slot(t, place->slot);
            ci_stencil_put(t, "x_is_element", RUN, (int64_t)offsetof(CiRun, partials));
            ci_stencil_put(t, "x_adds_slot", place->slot, 0);
            ci_stencil_x_to_slot(t, place->slot);
        } else {
            REFUSE(t, "memory %s is not of a kind that stencils reach", memory->name);
        }
        ci_map_put(t->memories, CI_KEY(memory), place);
    }
}

int
ci_stencil_translate(CiStencilCode *code, const CiKernels *kernels, const CiProc *proc)
{
    CiContext *ctx = code->ctx;
    Translator t = {.block = translate,
                    .ctx = ctx,
                    .code = code,
                    .sym = kernels->loops->sym,
                    .kernels = kernels,
                    .proc = proc,
                    .values = CI_NEW_ARRAY(ctx, Value, proc->nvalues + 1),
                    .slots = ci_map_new(ctx),
                    .memories = ci_map_new(ctx),
                    .constants = ci_map_new(ctx),
                    .frame = HEAD,
                    .acc = -1,
                    .interrupted = ci_stencil_label(code)};
    const CiStencil *entry = ci_stencil_find("entry");
    int start = code->size;
    if (!entry)
        REFUSE(&t, "cinductor was built without stencils");
    for (int v = 0; v < proc->nvalues; v++)
        t.values[v] = (Value){.root = v, .slot = -1, .last = -1, .next = -1};
    ci_stencil_copy(code, entry, 0, 0, -1);
    take_parameters(&t);
    find_ends(&t);
    ci_stencil_forget(&t);
    t.number = 0;
    translate(&t, &proc->body);
    CI_REQUIRE(ctx, t.number == t.count);
    ci_stencil_put(&t, "end", CI_OK, 0);
    ci_stencil_here(&t, t.interrupted);
    ci_stencil_put(&t, "end", CI_ERR_INTERRUPTED, 0);
    ci_stencil_enter_jumps(code);
    ci_stencil_enter_numbers(code, start, entry, t.frame);
    return start;
}
