/* What a schedule promises, looked at while it runs (option `verify`): accesses stay inside of
 * their memory, what is bound is below its limit, and no unit of a parallel loop touches what
 * another stores.
 *
 * Of each element of a parameter two marks are kept: the unit that stored it last, and the one that
 * loaded it, or that several did. A mark of an earlier loop says nothing. */
#include "device/interp/run.h"

#include <string.h>

#define UNIT_BITS 40
#define SEVERAL ((INT64_C(1) << UNIT_BITS) - 1)

static bool
is_of_this_loop(const CiInterpChecks *checks, int64_t mark)
{
    return mark >> UNIT_BITS == checks->loops;
}

/* NULL: there is no memory for marks, and nothing is said about races. */
static int64_t *
marks_of(CiInterpRun *r, int memory)
{
    CiInterpChecks *checks = r->checks;
    size_t bytes = 2 * sizeof(int64_t) * (size_t)checks->sizes[memory];
    if (!checks->marks[memory] && bytes > 0) {
        checks->marks[memory] = ci_allocator_take(r->runtime->allocator, bytes);
        if (checks->marks[memory])
            memset(checks->marks[memory], 0, bytes);
    }
    return checks->marks[memory];
}

static bool
is_race(CiInterpChecks *checks, int64_t *marks, bool is_store)
{
    int64_t now = (checks->loops << UNIT_BITS) + checks->unit;
    bool was_stored = is_of_this_loop(checks, marks[0]) && marks[0] != now,
         was_loaded = is_of_this_loop(checks, marks[1]) && marks[1] != now;
    if (is_store)
        marks[0] = now;
    else
        marks[1] = was_loaded ? (checks->loops << UNIT_BITS) + SEVERAL : now;
    return was_stored || (is_store && was_loaded);
}

static bool
is_fine(CiInterpRun *r, int memory, int64_t element, bool is_store)
{
    CiInterpChecks *checks = r->checks;
    if (checks->sizes[memory] < 0)
        return true;
    element -= checks->firsts[memory];
    if (element < 0 || element >= checks->sizes[memory])
        return false;
    if (checks->unit < 0 || memory >= r->kernel->nbuffers)
        return true;
    int64_t *marks = marks_of(r, memory);
    return !marks || !is_race(checks, marks + 2 * element, is_store);
}

void
ci_interp_check(CiInterpRun *r, const CiInterpStmt *stmt, int64_t count)
{
    const CiInterpAccess *at = &stmt->at;
    int64_t numbers[CI_INTERP_LANES];
    count = at->element > 1 && count > 0 ? 1 : count;
    ci_interp_numbers(r, &at->index, ci_formula_evaluate(&at->stride, r->env), numbers, count);
    for (int64_t k = 0; k < count; k++)
        if (!is_fine(r, at->memory, numbers[k], stmt->kind != CI_STMT_let))
            r->failure = CI_ERR_INTERNAL;
}

int32_t
ci_interp_open_checks(CiInterpRun *r, CiInterpChecks *checks)
{
    size_t count = (size_t)r->kernel->nmemories + 1, bytes = count * 3 * sizeof(int64_t);
    checks->sizes = ci_allocator_take(r->runtime->allocator, bytes);
    if (!checks->sizes)
        return CI_ERR_MEMORY;
    memset(checks->sizes, 0, bytes);
    checks->firsts = checks->sizes + count;
    checks->marks = (int64_t **)(checks->firsts + count);
    checks->unit = -1;
    for (int k = 0; k < r->kernel->nmemories; k++) {
        const CiInterpMemory *memory = &r->kernel->memories[k];
        checks->sizes[k] = -1;
        if (!memory->has_size || k >= r->kernel->nparams)
            continue;
        checks->firsts[k] = ci_formula_evaluate(&memory->first, r->env);
        checks->sizes[k] = ci_formula_evaluate(&memory->size, r->env) - checks->firsts[k];
    }
    r->checks = checks;
    return CI_OK;
}

void
ci_interp_close_checks(CiInterpRun *r)
{
    size_t count = (size_t)r->kernel->nmemories + 1;
    for (int k = 0; k < r->kernel->nmemories; k++)
        if (r->checks->marks[k])
            ci_allocator_give(r->runtime->allocator, r->checks->marks[k],
                              2 * sizeof(int64_t) * (size_t)r->checks->sizes[k]);
    ci_allocator_give(r->runtime->allocator, r->checks->sizes, count * 3 * sizeof(int64_t));
}
