/* Checks the schedule's assumptions at run time (option `verify`): accesses are in bounds and bound
 * symbols are below their limit. No unit of a parallel loop accesses an element that another one
 * stores, and no thread one that another thread of its block stores between the same barriers.
 *
 * Each element of a parameter, and of shared memory of a block, has two marks: its last writer, and
 * its reader (or that it has several). */
#include "device/interp/run.h"

#include <string.h>

#define SEVERAL (-2)

static size_t
bytes_of_marks(const CiInterpChecks *checks, int memory)
{
    return 2 * sizeof(CiInterpMark) * (size_t)checks->sizes[memory];
}

/* NULL: there is no memory for marks, and nothing is said about races. */
static CiInterpMark *
marks_of(CiInterpRun *r, int memory)
{
    CiInterpChecks *checks = r->checks;
    size_t bytes = bytes_of_marks(checks, memory);
    if (!checks->marks[memory] && bytes > 0) {
        checks->marks[memory] = ci_allocator_take(r->runtime->allocator, bytes);
        if (checks->marks[memory])
            memset(checks->marks[memory], 0, bytes);
    }
    return checks->marks[memory];
}

static void
forget_marks(CiInterpRun *r, int memory)
{
    if (r->checks->marks[memory])
        ci_allocator_give(r->runtime->allocator, r->checks->marks[memory],
                          bytes_of_marks(r->checks, memory));
    r->checks->marks[memory] = NULL;
}

void
ci_interp_begin_marks(CiInterpRun *r, int memory, int64_t size)
{
    forget_marks(r, memory);
    r->checks->sizes[memory] = size;
}

void
ci_interp_swap_marks(CiInterpRun *r, int memory, int partner)
{
    CiInterpMark *kept = r->checks->marks[memory];
    r->checks->marks[memory] = r->checks->marks[partner];
    r->checks->marks[partner] = kept;
}

/* True if the mark is by another unit or thread that may still be running. */
static bool
is_other(const CiInterpMark *mark, const CiInterpMark *now)
{
    return mark->loop == now->loop && (mark->block != now->block ||
                                       (mark->epoch == now->epoch && mark->thread != now->thread));
}

static bool
is_race(const CiInterpChecks *checks, CiInterpMark *marks, bool is_store)
{
    CiInterpMark now = checks->now;
    if (checks->is_shared_out) /* one of the threads stores, all of them load */
        now.thread = is_store ? 0 : SEVERAL;
    bool was_stored = is_other(&marks[0], &now), was_loaded = is_other(&marks[1], &now);
    was_stored &= !(now.is_atomic && marks[0].is_atomic);
    if (is_store) {
        was_loaded &= !(now.is_atomic && marks[1].is_atomic);
        marks[0] = now;
        return was_stored || was_loaded;
    }
    now.is_atomic &= !was_loaded || marks[1].is_atomic;
    if (was_loaded && marks[1].block != now.block)
        now.block = SEVERAL;
    else if (was_loaded)
        now.thread = SEVERAL;
    marks[1] = now;
    return was_stored;
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
    bool has_marks = memory < r->kernel->nbuffers || r->kernel->memories[memory].is_shared;
    bool is_handed_on = checks->is_sequential && r->kernel->memories[memory].is_partial;
    if (checks->now.block < 0 || !has_marks || is_handed_on)
        return true;
    CiInterpMark *marks = marks_of(r, memory);
    return !marks || !is_race(checks, marks + 2 * element, is_store);
}

void
ci_interp_check(CiInterpRun *r, const CiInterpStmt *stmt, int64_t count)
{
    const CiInterpAccess *at = &stmt->at;
    int64_t numbers[CI_INTERP_LANES];
    count = at->element > 1 && count > 0 ? 1 : count;
    r->checks->now.is_atomic = stmt->is_atomic;
    ci_interp_numbers(r, &at->index, ci_formula_evaluate(&at->stride, r->env), numbers, count);
    for (int64_t k = 0; k < count; k++)
        if (!is_fine(r, at->memory, numbers[k], stmt->kind != CI_STMT_let))
            r->failure = CI_ERR_INTERNAL;
}

void
ci_interp_check_line(CiInterpRun *r, const CiInterpAccess *at, int64_t count, bool is_store)
{
    int64_t first = ci_formula_evaluate(&at->index.formula, r->env),
            stride = ci_formula_evaluate(&at->stride, r->env);
    r->checks->now.is_atomic = false;
    for (int64_t k = 0; k < count; k++)
        if (!is_fine(r, at->memory, first + k * stride, is_store))
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
    checks->marks = (CiInterpMark **)(checks->firsts + count);
    checks->now.block = -1;
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
        forget_marks(r, k);
    ci_allocator_give(r->runtime->allocator, r->checks->sizes, count * 3 * sizeof(int64_t));
}
