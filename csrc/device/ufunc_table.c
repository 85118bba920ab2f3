/* Functions of float16 by table: NumPy's loop computes the value and the float flags of each of the
 * 65,536 operands once, and a lookup gives them from then on. */
#include "device/ufunc.h"

#include "base/float_flags.h"

#include <stdlib.h>

#define OPERANDS 65536

/* A table costs as much as NumPy's loop for this many elements, so the loop computes the first
 * ones: no program takes more than twice as long as with the better choice. */
#define FIRST_ELEMENTS (2 * OPERANDS)

/* An entry: the value's 16 bits, and above them one bit per flag. */
static const int flags_of_entry[] = {FE_DIVBYZERO, FE_OVERFLOW, FE_UNDERFLOW, FE_INVALID};
#define FLAGS ((int)(sizeof flags_of_entry / sizeof *flags_of_entry))

static uint32_t
entry_of(uint16_t value, unsigned flags)
{
    uint32_t entry = value;
    for (int k = 0; k < FLAGS; k++)
        entry |= flags & (unsigned)flags_of_entry[k] ? UINT32_C(0x10000) << k : 0;
    return entry;
}

static unsigned
flags_in(uint32_t entry)
{
    unsigned flags = 0;
    for (int k = 0; k < FLAGS; k++)
        flags |= entry >> (16 + k) & 1 ? (unsigned)flags_of_entry[k] : 0;
    return flags;
}

static void
call(const CiUfuncLoop *numpys, const uint16_t *from, uint16_t *to, intptr_t count)
{
    char *operands[] = {(char *)(uintptr_t)from, (char *)to};
    const intptr_t steps[] = {sizeof *from, sizeof *to};
    numpys->loop(operands, &count, steps, numpys->data);
}

/* NULL: no memory. The values are those of one call, as an array has them; each flag needs a call
 * of its own. */
static uint32_t *
make_entries(const CiUfuncLoop *numpys)
{
    uint32_t *entries = malloc(sizeof *entries * OPERANDS);
    uint16_t *values = malloc(sizeof *values * 2 * OPERANDS), *from = values, one;

    for (int k = 0; values != NULL && k < OPERANDS; k++)
        from[k] = (uint16_t)k;
    if (entries != NULL && values != NULL)
        call(numpys, from, values + OPERANDS, OPERANDS);
    for (int k = 0; entries != NULL && values != NULL && k < OPERANDS; k++) {
        ci_float_flags_clear();
        call(numpys, &from[k], &one, 1);
        entries[k] = entry_of(values[OPERANDS + k], ci_float_flags_read());
    }
    ci_float_flags_clear();
    if (values == NULL) {
        free(entries);
        entries = NULL;
    }
    free(values);
    return entries;
}

/* True in one call only: that which reaches the number. */
static bool
is_time_to_make(CiUfuncTable *table, intptr_t count)
{
    int64_t before = atomic_fetch_add_explicit(&table->computed, count, memory_order_relaxed);
    return before < FIRST_ELEMENTS && before + count >= FIRST_ELEMENTS;
}

static const uint32_t *
find_entries(CiUfuncTable *table, intptr_t count)
{
    uint32_t *entries = atomic_load_explicit(&table->entries, memory_order_acquire);
    if (entries == NULL && is_time_to_make(table, count)) {
        entries = make_entries(&table->numpys);
        atomic_store_explicit(&table->entries, entries, memory_order_release);
    }
    return entries;
}

static void
look_up(char **operands, const intptr_t *count, const intptr_t *steps, void *data)
{
    CiUfuncTable *table = data;
    const uint32_t *entries = find_entries(table, *count);
    const char *from = operands[0];
    char *to = operands[1];
    uint32_t all = 0;

    if (entries == NULL) {
        table->numpys.loop(operands, count, steps, table->numpys.data);
        return;
    }
    for (intptr_t k = 0; k < *count; k++) {
        uint32_t entry = entries[*(const uint16_t *)(const void *)from];
        all |= entry;
        *(uint16_t *)(void *)to = (uint16_t)entry;
        from += steps[0];
        to += steps[1];
    }
    if (all >> 16)
        ci_float_flags_raise(flags_in(all));
}

CiUfuncLoop
ci_ufunc_table_open(CiUfuncTable *table, CiUfuncLoop numpys)
{
    table->numpys = numpys;
    return (CiUfuncLoop){look_up, table, false};
}

void
ci_ufunc_table_close(CiUfuncTable *table)
{
    free(atomic_exchange(&table->entries, NULL));
}
