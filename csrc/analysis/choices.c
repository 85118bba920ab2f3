/* The rows of choices.def, and what a user writes instead. */
#include "analysis/choices.h"

#include <stdlib.h>
#include <string.h>

static const CiChoiceRow rows[] = {
#define VALUES_any false
#define VALUES_power true
#define CHOICE(name, lanes, threads, kind, factor, most, values, doc)                              \
    {#name, {lanes, threads}, CI_ALTERNATIVE_##kind, factor, most ? most : INT64_MAX,              \
     VALUES_##values, doc},
#include "analysis/choices.def"
};

const CiChoiceRow *
ci_choice_row(CiChoice choice)
{
    return &rows[choice];
}

bool
ci_choice_allows(CiChoice choice, int64_t value)
{
    const CiChoiceRow *row = &rows[choice];
    return value > 0 && value <= row->most && (!row->is_power || (value & (value - 1)) == 0);
}

int64_t
ci_choice(const CiMachine *machine, CiChoice choice)
{
    if (machine->requested)
        machine->requested[choice] = true;
    if (machine->choices)
        return machine->choices[choice];
    return rows[choice].values[machine->column];
}

static int
find_choice(const char *name, size_t length)
{
    for (int k = 0; k < CI_CHOICE_COUNT; k++)
        if (strlen(rows[k].name) == length && !memcmp(rows[k].name, name, length))
            return k;
    return -1;
}

/* One `name=value`, of a few digits. */
static void
set_choice(CiContext *ctx, int64_t *values, const char *at, size_t length)
{
    const char *equals = memchr(at, '=', length);
    int choice = equals ? find_choice(at, (size_t)(equals - at)) : -1;
    size_t digits = equals ? strspn(equals + 1, "0123456789") : 0;
    bool is_number = digits > 0 && digits < 16 && equals + 1 + digits == at + length;
    if (choice < 0 || !is_number || strtoll(equals + 1, NULL, 10) == 0)
        ci_fail(ctx, CI_ERR_VALUE,
                "option choices: '%.*s' is no name=number of list_choices()", (int)length, at);
    values[choice] = strtoll(equals + 1, NULL, 10);
    if (!ci_choice_allows((CiChoice)choice, values[choice]))
        ci_fail(ctx, CI_ERR_VALUE, "option choices: '%.*s' is not %s up to %lld", (int)length, at,
                rows[choice].is_power ? "a power of two" : "a number",
                (long long)rows[choice].most);
}

int64_t *
ci_choices_copy(CiContext *ctx, const CiMachine *machine)
{
    int64_t *values = CI_NEW_ARRAY(ctx, int64_t, CI_CHOICE_COUNT);
    for (int k = 0; k < CI_CHOICE_COUNT; k++)
        values[k] = ci_choice(machine, (CiChoice)k);
    return values;
}

void
ci_choices_set(CiContext *ctx, CiMachine *machine, const char *text)
{
    int64_t *values = ci_choices_copy(ctx, machine);
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, ", ");
        if (length)
            set_choice(ctx, values, at, length);
        at += length + strspn(at + length, ", ");
    }
    machine->choices = values;
}
