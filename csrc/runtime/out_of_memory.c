/* The out-of-memory report: evaluates the memory plan with the sizes of a call, to find peak
 * memory. */
#include "runtime/out_of_memory.h"

#include <stdio.h>
#include <string.h>

#define MAX_SHOWN 4

/* State of a pass over the steps; both branches of an `if` are visited. */
typedef struct Walk {
    const CiProgram *program;
    const int64_t *values;
    int64_t live;
} Walk;

static int64_t
bytes_of(const Walk *walk, int slot)
{
    return walk->values[walk->program->slots[slot].bytes];
}

static bool
takes_memory(const CiStep *step)
{
    return step->kind == CI_STEP_alloc || step->kind == CI_STEP_alloc_result;
}

static void
pass_step(Walk *walk, const CiStep *step)
{
    if (takes_memory(step))
        walk->live += bytes_of(walk, step->slot);
    if (step->kind == CI_STEP_free)
        walk->live -= bytes_of(walk, step->slot);
}

static int
find_peak(Walk *walk, int64_t *peak)
{
    int at = 0;
    *peak = walk->live = 0;
    for (int i = 0; i < walk->program->nsteps; i++) {
        pass_step(walk, &walk->program->steps[i]);
        if (walk->live > *peak) {
            *peak = walk->live;
            at = i;
        }
    }
    return at;
}

/* True if the slot's memory is allocated at step `at`: it has been taken and not freed. */
static bool
is_allocated(const CiProgram *program, int slot, int at)
{
    for (int i = at; i >= 0; i--) {
        const CiStep *step = &program->steps[i];
        if (step->slot == slot && (takes_memory(step) || step->kind == CI_STEP_reuse))
            return true;
        if ((step->slot == slot && step->kind == CI_STEP_free) ||
            (step->other == slot && step->kind == CI_STEP_reuse))
            return false;
    }
    return false;
}

/* The next smaller buffer that is allocated there; among equal ones the next in order. -1 if there
 * is none. */
static int
next_largest(const Walk *walk, int at, int before)
{
    int best = -1;
    for (int k = walk->program->ninputs; k < walk->program->nslots; k++) {
        int64_t bytes = bytes_of(walk, k), limit = before < 0 ? 0 : bytes_of(walk, before);
        bool is_next = before < 0 || bytes < limit || (bytes == limit && k > before);
        if (is_next && bytes && (best < 0 || bytes > bytes_of(walk, best)) &&
            is_allocated(walk->program, k, at))
            best = k;
    }
    return best;
}

void
ci_program_report_shortage(const CiProgram *program, const CiStep *step, const int64_t *values,
                           CiCall *call)
{
    Walk walk = {.program = program, .values = values};
    char *message = call->message;
    size_t capacity = call->message_size;
    int64_t peak;
    if (!takes_memory(step) || !capacity)
        return;
    int at = find_peak(&walk, &peak), shown = -1;
    int length = snprintf(message, capacity,
                          "no memory for %lld bytes of %s; the program holds %lld bytes at most",
                          (long long)bytes_of(&walk, step->slot), program->slots[step->slot].name,
                          (long long)peak);
    for (int k = 0; k < MAX_SHOWN && length > 0 && (size_t)length < capacity; k++) {
        shown = next_largest(&walk, at, shown);
        if (shown < 0)
            break;
        length += snprintf(message + length, capacity - (size_t)length, "%s%lld of %s",
                           k ? ", " : ": ", (long long)bytes_of(&walk, shown),
                           program->slots[shown].name);
    }
}
