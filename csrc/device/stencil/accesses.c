/* Loads and stores. */
#include "device/stencil/translate.h"

#include <stdio.h>
#include <string.h>

/* x is the element's number from what the address says. */
Address
ci_stencil_address(Translator *t, const CiAccess *at)
{
    int width = ci_stencil_size(at->memory->dtype);
    for (int k = 0; k < t->nfixed; k++) {
        const Fixed *fixed = &t->fixed[k];
        if (fixed->memory != at->memory || fixed->index != at->index)
            continue;
        if (!fixed->moves) {
            ci_stencil_make_x(t, ci_expr_const(t->sym, 0));
        } else if (!t->x_is_i) {
            ci_stencil_put(t, "x_is_i", 0, 0);
        }
        return (Address){fixed->slot, fixed->offset};
    }
    /* An element of memory may be a vector. */
    const CiExpr *index = ci_expr_mul(t->sym, at->index, ci_expr_const(t->sym, at->memory->lanes));
    int64_t constant = index->kind == CI_EXPR_linear || index->kind == CI_EXPR_const ? index->value : 0;
    ci_stencil_make_x(t, ci_expr_sub(t->sym, index, ci_expr_const(t->sym, constant)));
    return (Address){ci_stencil_slot(t, at->memory)->slot, constant * width};
}

static int
slot_in_register(Translator *t, const CiAccess *at, int lanes)
{
    const Slot *place = ci_stencil_slot(t, at->memory);
    int64_t index;
    if (!ci_expr_is_const(at->index, &index) || lanes != at->memory->lanes)
        REFUSE(t, "registers are indexed by what is not constant");
    return place->slot + VECTOR_BYTES * (int)index;
}

static const char *
name_access(char *out, size_t capacity, const char *what, CiDtype dtype, int lanes)
{
    int width = ci_stencil_size(dtype);
    snprintf(out, capacity, "%s_%d_%d", what, width, width * lanes);
    return out;
}

/* Of elements that are live, or not adjacent. */
static const char *
kind_of_access(Translator *t, const CiStmt *stmt, bool is_store, int lanes)
{
    const CiAccess *at = &stmt->at;
    if (at->stride && lanes > 1 && !ci_expr_equals_const(at->stride, 1)) {
        if (stmt->live || lanes * ci_stencil_size(at->memory->dtype) != VECTOR_BYTES || at->memory->dtype == CI_DTYPE_bool)
            REFUSE(t, "few lanes that are not adjacent");
        ci_stencil_make_n(t, at->stride);
        return is_store ? "store_stride" : "load_stride";
    }
    if (!stmt->live)
        return is_store ? "store" : "load";
    ci_stencil_make_n(t, stmt->live);
    return is_store ? "store_live" : "load_live";
}

static void
put_access(Translator *t, const char *kind, const CiAccess *at, int lanes)
{
    char name[40];
    Address address = ci_stencil_address(t, at);
    if (strstr(kind, "stride"))
        snprintf(name, sizeof name, "%s_%d", kind, ci_stencil_size(at->memory->dtype));
    else
        name_access(name, sizeof name, kind, at->memory->dtype, lanes);
    ci_stencil_put(t, name, address.slot, address.offset);
}

/* The value of lanes that are not live comes first. */
static void
otherwise_to_acc(Translator *t, uint64_t bits)
{
    ci_stencil_x_is(t, (int64_t)bits);
    ci_stencil_put(t, "x_to_acc", 0, 0);
    t->acc = -1;
}

void
ci_stencil_load(Translator *t, const CiStmt *stmt, int number)
{
    Value *value = &t->values[stmt->value];
    CiDtype dtype = stmt->at.memory->dtype;
    ci_stencil_check_type(t, stmt->type);
    for (int k = 0; k < stmt->at.index->nsymbols; k++)
        ci_stencil_symbol(t, stmt->at.index->symbols[k]);
    if (ci_stencil_is_register(stmt->at.memory)) {
        int slot = slot_in_register(t, &stmt->at, stmt->at.memory->lanes == 1 ? 1 : stmt->type.lanes);
        value->mask = ci_stencil_slot(t, stmt->at.memory)->mask;
        if (ci_stencil_is_borrowed(t, stmt, number)) {
            value->slot = slot;
            value->is_borrowed = true;
            return;
        }
        if (stmt->live) {
            otherwise_to_acc(t, ci_stencil_bits(dtype, stmt->at.otherwise));
            ci_stencil_make_n(t, stmt->live);
            ci_stencil_put(t, "live_to_acc", slot, dtype == CI_DTYPE_bool ? value->mask : ci_stencil_size(dtype));
        } else {
            ci_stencil_put(t, "slot_to_acc", slot, 0);
        }
    } else {
        const char *kind = kind_of_access(t, stmt, false, stmt->type.lanes);
        if (stmt->live) {
            uint64_t bits = dtype == CI_DTYPE_bool && stmt->at.otherwise.i ? 0x0101010101010101
                            : dtype == CI_DTYPE_bool                       ? 0
                                                     : ci_stencil_bits(dtype, stmt->at.otherwise);
            otherwise_to_acc(t, bits);
        }
        put_access(t, kind, &stmt->at, stmt->type.lanes);
        if (dtype == CI_DTYPE_bool)
            ci_stencil_put(t, "mask_of_bytes", 0, 0);
        value->mask = 1;
    }
    ci_stencil_define(t, stmt, number);
}

void
ci_stencil_store(Translator *t, const CiStmt *stmt)
{
    CiType type = t->proc->types[stmt->args[0]];
    if (stmt->op != CI_OP_none || stmt->is_atomic)
        REFUSE(t, "a store that combines");
    bool is_bool = type.dtype == CI_DTYPE_bool;
    if (ci_stencil_is_register(stmt->at.memory)) {
        int slot = slot_in_register(t, &stmt->at, type.lanes);
        if (is_bool)
            ci_stencil_mask_to_acc(t, stmt->args[0], ci_stencil_slot(t, stmt->at.memory)->mask);
        else
            ci_stencil_to_acc(t, stmt->args[0]);
        if (stmt->live)
            ci_stencil_make_n(t, stmt->live);
        ci_stencil_put(t, stmt->live ? "live_to_slot" : "acc_to_slot", slot,
            is_bool ? ci_stencil_slot(t, stmt->at.memory)->mask : ci_stencil_size(type.dtype));
        return;
    }
    if (is_bool) {
        ci_stencil_mask_to_acc(t, stmt->args[0], 1);
        ci_stencil_put(t, "bytes_of_mask", 0, 0);
        t->acc = -1;
    } else {
        ci_stencil_to_acc(t, stmt->args[0]);
    }
    put_access(t, kind_of_access(t, stmt, true, type.lanes), &stmt->at, type.lanes);
}
