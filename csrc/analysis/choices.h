/* Tuning thresholds. Each is a row of choices.def, with a value for each kind of machine (column). */
#ifndef CI_ANALYSIS_CHOICES_H
#define CI_ANALYSIS_CHOICES_H

#include "base/context.h"
#include "ir/machine.h"

typedef enum CiChoice {
#define CHOICE(name, lanes, threads, kind, factor, most, values, doc) CI_CHOICE_##name,
#include "analysis/choices.def"
    CI_CHOICE_COUNT
} CiChoice;

/* The scope of an alternative: how one kernel runs, which nests are fused, or the whole program. */
#define CI_ALTERNATIVE_KINDS(KIND) KIND(none) KIND(kernel) KIND(fusion) KIND(program)
typedef enum CiAlternativeKind {
#define KIND(name) CI_ALTERNATIVE_##name,
    CI_ALTERNATIVE_KINDS(KIND)
#undef KIND
} CiAlternativeKind;

typedef struct CiChoiceRow {
    const char *name;
    int64_t values[CI_COLUMN_COUNT];
    CiAlternativeKind kind;
    int64_t factor;
    int64_t most;  /* the largest value that a user may set; INT64_MAX: any */
    bool is_power; /* values are powers of two */
    const char *doc;
} CiChoiceRow;

const CiChoiceRow *ci_choice_row(CiChoice choice);
bool ci_choice_allows(CiChoice choice, int64_t value);
/* The value that the user set for the machine, or the row's. Records in machine->requested that it had an effect. */
int64_t ci_choice(const CiMachine *machine, CiChoice choice);
/* The value of a threshold for s->machine. */
#define CI_CHOOSE(s, name) ci_choice((s)->machine, CI_CHOICE_##name)
/* Copies the values of all choices of the machine, by number. */
int64_t *ci_choices_copy(CiContext *ctx, const CiMachine *machine);
/* text: `few_points=8, l1_lines=1024`, numbers from 1 on; fails with CI_ERR_VALUE. */
void ci_choices_set(CiContext *ctx, CiMachine *machine, const char *text);

#endif
