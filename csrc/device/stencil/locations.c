/* Stencils one after another, places in the frame, and index expressions. */
#include "device/stencil/translate.h"

#include <string.h>

/* ---- stencils and places ---- */

void
ci_stencil_put_jump(Translator *t, const char *name, int64_t first, int64_t second, int label)
{
    const CiStencil *stencil = ci_stencil_find(name);
    if (!stencil)
        REFUSE(t, "there is no stencil %s", name);
    ci_stencil_copy(t->code, stencil, first, second, label);
    if (name[0] == 'x' && strncmp(name, "x_to_", 5) != 0) {
        t->x = NULL;
        t->x_is_i = !strcmp(name, "x_is_i");
    }
}

void
ci_stencil_put(Translator *t, const char *name, int64_t first, int64_t second)
{
    ci_stencil_put_jump(t, name, first, second, -1);
}

int
ci_stencil_take_bytes(Translator *t, int64_t bytes, int align)
{
    int slot = (t->frame + align - 1) / align * align;
    if (bytes > MAX_FRAME - slot)
        REFUSE(t, "its values take more than %d bytes", MAX_FRAME);
    t->frame = slot + (int)bytes;
    return slot;
}

int
ci_stencil_take_number(Translator *t)
{
    return ci_stencil_take_bytes(t, 8, 8);
}

int
ci_stencil_take_value(Translator *t)
{
    return t->nfree ? t->free[--t->nfree] : ci_stencil_take_bytes(t, VECTOR_BYTES, VECTOR_BYTES);
}

void
ci_stencil_give_value(Translator *t, int slot)
{
    CI_PUSH(t->ctx, t->free, t->nfree, t->capfree, slot);
}

/* Jumps come here too: it is not known what registers have. */
void
ci_stencil_forget(Translator *t)
{
    t->acc = -1;
    t->x = t->n = NULL;
    t->x_is_i = false;
}

void
ci_stencil_here(Translator *t, int label)
{
    ci_stencil_location_label(t->code, label);
    ci_stencil_forget(t);
}

int
ci_stencil_symbol(Translator *t, const CiExpr *symbol)
{
    void *found = ci_map_find(t->slots, CI_KEY(symbol));
    if (!found)
        REFUSE(t, "%s is not known", symbol->name);
    return (int)(intptr_t)found - 1;
}

int
ci_stencil_new_symbol(Translator *t, const CiExpr *symbol)
{
    int slot = ci_stencil_take_number(t);
    ci_map_put(t->slots, CI_KEY(symbol), (void *)(intptr_t)(slot + 1));
    return slot;
}

Slot *
ci_stencil_slot(Translator *t, const CiMemory *memory)
{
    Slot *place = ci_map_find(t->memories, CI_KEY(memory));
    if (!place)
        REFUSE(t, "memory %s is not of a kind that stencils reach", memory->name);
    return place;
}

/* ---- index expressions ---- */

void
ci_stencil_x_to_slot(Translator *t, int slot)
{
    ci_stencil_put(t, "x_to_slot", slot, 0);
}

/* The slot of a symbol, or a new one with the expression in it. */
int
ci_stencil_operand(Translator *t, const CiExpr *e)
{
    if (e->kind == CI_EXPR_symbol)
        return ci_stencil_symbol(t, e);
    int slot = ci_stencil_take_number(t);
    ci_stencil_compute(t, e);
    ci_stencil_x_to_slot(t, slot);
    return slot;
}

void
ci_stencil_x_is(Translator *t, int64_t value)
{
    ci_stencil_put(t, (int32_t)value == value ? "x_is" : "x_is_wide", value, 0);
}

static void
compute_linear(Translator *t, const CiExpr *e)
{
    int slots[64];
    if (e->nargs > 64)
        REFUSE(t, "an index has %d terms", e->nargs);
    for (int k = 0; k < e->nargs; k++)
        slots[k] = ci_stencil_operand(t, e->args[k]);
    ci_stencil_x_is(t, e->value);
    for (int k = 0; k < e->nargs; k++)
        if (e->coefs[k] == 1)
            ci_stencil_put(t, "x_adds_slot", slots[k], 0);
        else
            ci_stencil_put(t, "x_adds_times", slots[k], e->coefs[k]);
}

void
ci_stencil_compute(Translator *t, const CiExpr *e)
{
    static const char *const names[] = {[CI_EXPR_product] = "x_times_slot",
                                        [CI_EXPR_floordiv] = "x_floordiv",
                                        [CI_EXPR_mod] = "x_mod",
                                        [CI_EXPR_min] = "x_min",
                                        [CI_EXPR_max] = "x_max"};
    int slots[16];
    if (e->kind == CI_EXPR_const) {
        ci_stencil_x_is(t, e->value);
    } else if (e->kind == CI_EXPR_symbol) {
        ci_stencil_put(t, "x_is_slot", ci_stencil_symbol(t, e), 0);
    } else if (e->kind == CI_EXPR_linear) {
        compute_linear(t, e);
    } else {
        if (e->nargs > 16)
            REFUSE(t, "an index has %d factors", e->nargs);
        for (int k = 1; k < e->nargs; k++)
            slots[k] = ci_stencil_operand(t, e->args[k]);
        ci_stencil_compute(t, e->args[0]);
        for (int k = 1; k < e->nargs; k++)
            ci_stencil_put(t, names[e->kind], slots[k], 0);
    }
}

void
ci_stencil_make_x(Translator *t, const CiExpr *e)
{
    if (t->x == e)
        return;
    ci_stencil_compute(t, e);
    t->x = e;
}

void
ci_stencil_make_n(Translator *t, const CiExpr *e)
{
    if (t->n == e)
        return;
    ci_stencil_make_x(t, e);
    ci_stencil_put(t, "x_to_n", 0, 0);
    t->n = e;
}

/* ---- types ---- */

int
ci_stencil_size(CiDtype dtype)
{
    return (int)ci_dtype_size(dtype);
}

int
ci_stencil_mask_of_lanes(int lanes)
{
    return lanes <= 4 ? 8 : lanes == 8 ? 4 : 1;
}

bool
ci_stencil_has_type(CiDtype dtype)
{
    bool is_number = dtype == CI_DTYPE_f32 || dtype == CI_DTYPE_f64 || ci_dtype_is_integral(dtype);
    return is_number && ci_stencil_size(dtype) != 2;
}

uint64_t
ci_stencil_bits(CiDtype dtype, CiConst constant)
{
    unsigned char bytes[16] = {0}, all[8];
    int size = ci_stencil_size(dtype);
    ci_const_store(dtype, constant, bytes);
    for (int k = 0; k < 8; k++)
        all[k] = dtype == CI_DTYPE_bool ? (unsigned char)(bytes[0] ? 255 : 0) : bytes[k % size];
    uint64_t bits;
    memcpy(&bits, all, sizeof bits);
    return bits;
}
