/* The rows of choices.def, and what a user writes instead. */
#include "ir/choices.h"

#include <stdlib.h>
#include <string.h>

static const CiChoiceRow rows[] = {
#define CHOICE(name, cpu, gpu, kind, factor, doc)                                                  \
    {#name, {cpu, gpu}, CI_ALTERNATIVE_##kind, factor, doc},
#include "ir/choices.def"
};

const CiChoiceRow *
ci_choice_row(CiChoice choice)
{
    return &rows[choice];
}

int64_t
ci_choice(const CiMachine *machine, CiChoice choice)
{
    if (machine->asked)
        machine->asked[choice] = true;
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
