/* Walking statements. */
#include "device/interp/run.h"

#include <string.h>

#include "base/os.h"

#define POLL_NS 5000000
#define LEFT (-1) /* of a loop, by an exit */
/* Most iterations that a body runs at once: enough to have both whole groups and a remainder. */
#define MAX_TOGETHER 21

static int32_t run_block(CiInterpRun *r, const CiInterpStmts *block);

static int32_t
poll(CiInterpRun *r)
{
    CiRuntime *runtime = r->runtime;
    if (!runtime->poll || r->launch->is_on_pool || ++r->iterations_since_poll < 64)
        return CI_OK;
    r->iterations_since_poll = 0;
    int64_t now = ci_os_time_ns();
    if (now - r->last_poll < POLL_NS)
        return CI_OK;
    r->last_poll = now;
    return runtime->poll(runtime->poll_arg) ? CI_ERR_INTERRUPTED : CI_OK;
}

static bool
evaluate_test(const CiInterpRun *r, const CiInterpTest *test)
{
    if (test->compare >= CI_COMPARE_is) {
        bool value = *(const uint8_t *)ci_interp_value(r, test->value);
        return value == (test->compare == CI_COMPARE_is);
    }
    int64_t left = ci_formula_evaluate(&test->left, r->env),
            right = ci_formula_evaluate(&test->right, r->env);
    return test->compare == CI_COMPARE_less         ? left < right
           : test->compare == CI_COMPARE_less_equal ? left <= right
                                                    : left == right;
}

static bool
are_all_true(const CiInterpRun *r, const CiInterpStmt *stmt)
{
    for (int k = 0; k < stmt->ntests; k++)
        if (!evaluate_test(r, &stmt->tests[k]))
            return false;
    return true;
}

/* Sets the running unit and thread for the checks. */
static void
begin_iteration(CiInterpChecks *checks, CiRunMode run, const CiInterpMark *around, int64_t iteration,
                int64_t iterations)
{
    if (run == CI_RUN_parallel || run == CI_RUN_grid)
        checks->now.block = around->block < 0 ? iteration : around->block * iterations + iteration;
    if (run == CI_RUN_grid)
        checks->now.epoch = 0;
    if (run == CI_RUN_thread)
        checks->now.thread = iteration;
}

/* around: NULL without checks. */
static int32_t
run_all_iterations(CiInterpRun *r, const CiInterpStmt *stmt, const CiInterpMark *around)
{
    int64_t iterations = ci_formula_evaluate(&stmt->extent, r->env);
    int64_t most = stmt->has_runs ? MAX_TOGETHER : 1;
    for (int64_t iteration = 0; iteration < iterations; iteration += most) {
        r->env[stmt->slot] = iteration;
        if (stmt->has_runs)
            r->env[stmt->other_slot] = iterations - iteration < most ? iterations - iteration : most;
        if (around)
            begin_iteration(r->checks, stmt->run, around, iteration, iterations);
        int32_t status = run_block(r, &stmt->body);
        if (status == CI_OK)
            status = poll(r);
        if (status)
            return status == LEFT ? CI_OK : status;
    }
    return CI_OK;
}

/* Without a loop over threads, a block has one. */
static bool
has_threads(const CiInterpStmts *block)
{
    for (int k = 0; k < block->count; k++) {
        const CiInterpStmt *stmt = &block->stmts[k];
        if ((stmt->kind == CI_STMT_for && stmt->run == CI_RUN_thread) || has_threads(&stmt->body) ||
            has_threads(&stmt->other))
            return true;
    }
    return false;
}

static int32_t
run_for(CiInterpRun *r, const CiInterpStmt *stmt)
{
    CiInterpChecks *checks = r->checks;
    bool is_thread = stmt->run == CI_RUN_thread, is_grid = stmt->run == CI_RUN_grid;
    if (!checks)
        return run_all_iterations(r, stmt, NULL);
    const CiInterpMark around = checks->now;
    bool was_shared_out = checks->is_shared_out;
    checks->now.loop += (is_grid || stmt->run == CI_RUN_parallel) && around.block < 0;
    checks->is_shared_out = is_grid ? has_threads(&stmt->body) : checks->is_shared_out && !is_thread;
    int32_t status = run_all_iterations(r, stmt, &around);
    checks->now.block = around.block;
    checks->now.thread = around.thread;
    checks->is_shared_out = was_shared_out;
    return status;
}

static int32_t
run_pair(CiInterpRun *r, const CiInterpStmt *stmt, int64_t x, int64_t y)
{
    r->env[stmt->slot] = x;
    r->env[stmt->other_slot] = y;
    return run_block(r, &stmt->body);
}

/* Combines pairs of threads by halves, down to the distance `number`. */
static int32_t
run_reduce_separately(CiInterpRun *r, const CiInterpStmt *stmt, int64_t threads)
{
    int32_t status = CI_OK;
    for (int64_t half = threads / 2; half >= stmt->number; half /= 2)
        for (int64_t x = 0; x < half && !status; x++)
            status = run_pair(r, stmt, x, x + half);
    return status;
}

/* Combines the threads of a warp by halves, then the warps in sequence or by halves too
 * (ci_stmt_reduces_by_halves). */
static int32_t
run_reduction(CiInterpRun *r, const CiInterpStmt *stmt)
{
    int64_t threads = ci_formula_evaluate(&stmt->extent, r->env),
            lanes = threads < CI_WARP ? threads : CI_WARP;
    int32_t status = CI_OK;
    if (stmt->number > 1)
        return run_reduce_separately(r, stmt, threads);
    for (int64_t first = 0; first < threads; first += lanes)
        for (int64_t half = lanes / 2; half > 0; half /= 2)
            for (int64_t x = first; x < first + half && !status; x++)
                status = run_pair(r, stmt, x, x + half);
    for (int64_t half = stmt->is_costly ? threads / lanes / 2 : 0; half > 0; half /= 2)
        for (int64_t warp = 0; warp < half && !status; warp++)
            status = run_pair(r, stmt, lanes * warp, lanes * (warp + half));
    for (int64_t y = lanes; y < threads && !stmt->is_costly && !status; y += lanes)
        status = run_pair(r, stmt, 0, y);
    return status;
}

/* Copies the values of a group's first thread to its other threads. */
static void
publish_group(CiInterpRun *r, const CiInterpStmt *stmt, int64_t first)
{
    for (int k = 0; k < stmt->body.count; k++) {
        const CiInterpStmt *store = &stmt->body.stmts[k];
        if (store->kind != CI_STMT_store)
            continue;
        size_t size = ci_dtype_size(store->dtype);
        char *memory = r->memory[store->at.memory];
        for (int64_t x = first + 1; x < first + stmt->number; x++)
            memcpy(memory + size * (size_t)x, memory + size * (size_t)first, size);
    }
}

/* Combines the threads of each group by halves. */
static int32_t
run_registers(CiInterpRun *r, const CiInterpStmt *stmt)
{
    int64_t threads = ci_formula_evaluate(&stmt->extent, r->env);
    int32_t status = CI_OK;
    for (int64_t first = 0; first < threads && !status; first += stmt->number) {
        for (int64_t half = stmt->number / 2; half > 0; half /= 2)
            for (int64_t x = first; x < first + half && !status; x++)
                status = run_pair(r, stmt, x, x + half);
        publish_group(r, stmt, first);
    }
    return status;
}

static int32_t
run_prefix(CiInterpRun *r, const CiInterpStmt *stmt)
{
    int64_t threads = ci_formula_evaluate(&stmt->extent, r->env);
    int32_t status = CI_OK;
    for (int64_t y = 1; y < threads && !status; y++)
        status = run_pair(r, stmt, y - 1, y);
    return status;
}

static int32_t
run_loop(CiInterpRun *r, const CiInterpStmt *stmt)
{
    int32_t status = CI_OK;
    while (!status) {
        status = run_block(r, &stmt->body);
        if (status == CI_OK)
            status = poll(r);
    }
    return status == LEFT ? CI_OK : status;
}

/* Memory that a statement asks for stays with it for the statement's next time. */
static int32_t
allocate(CiInterpRun *r, const CiInterpStmt *stmt)
{
    const CiInterpMemory *memory = &r->kernel->memories[stmt->memory];
    int64_t size = ci_formula_evaluate(&memory->size, r->env);
    size_t bytes =
        (size_t)(size > 0 ? size * memory->lanes : 1) * (size_t)ci_dtype_size(memory->dtype);
    size_t *capacity = &r->capacity[stmt->memory];
    if (r->checks && memory->is_shared)
        ci_interp_begin_marks(r, stmt->memory, size);
    if (bytes <= *capacity)
        return CI_OK;
    if (*capacity)
        ci_allocator_give(r->runtime->allocator, r->memory[stmt->memory], *capacity);
    *capacity = 0;
    r->memory[stmt->memory] = ci_allocator_take(r->runtime->allocator, bytes);
    if (!r->memory[stmt->memory])
        return CI_ERR_MEMORY;
    *capacity = bytes;
    return CI_OK;
}

static int32_t
stop(CiInterpRun *r, const CiInterpStmt *stmt)
{
    if (!are_all_true(r, stmt))
        return CI_OK;
    if (r->fault)
        *r->fault = (CiFault){.kind = CI_ERR_CHECK, .node = stmt->number};
    return CI_ERR_CHECK;
}

static void
swap(CiInterpRun *r, const CiInterpStmt *stmt)
{
    void *kept = r->memory[stmt->memory];
    r->memory[stmt->memory] = r->memory[stmt->partner];
    r->memory[stmt->partner] = kept;
    if (r->checks)
        ci_interp_swap_marks(r, stmt->memory, stmt->partner);
}

/* The unit before has published, which is the last one to do so. */
static int32_t
take_ticket(CiInterpRun *r, const CiInterpStmt *stmt)
{
    if (r->ticket != ci_formula_evaluate(&stmt->limit, r->env))
        return CI_ERR_INTERNAL;
    r->ticket += stmt->kind == CI_STMT_publish;
    if (r->checks)
        r->checks->is_sequential = stmt->kind == CI_STMT_wait;
    return CI_OK;
}

static int32_t
run_one(CiInterpRun *r, const CiInterpStmt *stmt)
{
    switch (stmt->kind) {
    case CI_STMT_let:
        ci_interp_let(r, stmt);
        return r->failure;
    case CI_STMT_store:
    case CI_STMT_call:
        ci_interp_access(r, stmt);
        return r->failure;
    case CI_STMT_apply:
        ci_interp_apply(r, stmt);
        return r->failure;
    case CI_STMT_copy:
        ci_interp_copy(r, stmt);
        return r->failure;
    case CI_STMT_multiply:
        ci_interp_multiply(r, stmt);
        return r->failure;
    case CI_STMT_commit:
        return CI_OK;
    case CI_STMT_for:
        return stmt->run == CI_RUN_reduce     ? run_reduction(r, stmt)
               : stmt->run == CI_RUN_near   ? run_registers(r, stmt)
               : stmt->run == CI_RUN_prefix ? run_prefix(r, stmt)
                                            : run_for(r, stmt);
    case CI_STMT_loop:
        return run_loop(r, stmt);
    case CI_STMT_if:
        return run_block(r, are_all_true(r, stmt) ? &stmt->body : &stmt->other);
    case CI_STMT_exit:
        return are_all_true(r, stmt) ? LEFT : CI_OK;
    case CI_STMT_alloc:
        return allocate(r, stmt);
    case CI_STMT_stop:
        return stop(r, stmt);
    case CI_STMT_swap:
        swap(r, stmt);
        return CI_OK;
    case CI_STMT_wait:
    case CI_STMT_publish:
        return take_ticket(r, stmt);
    default: /* a barrier, also after copies */
        if (r->checks)
            r->checks->now.epoch++;
        return CI_OK;
    }
}

static int32_t
run_block(CiInterpRun *r, const CiInterpStmts *block)
{
    int32_t status = CI_OK;
    for (int k = 0; k < block->count && !status; k++)
        status = run_one(r, &block->stmts[k]);
    return status;
}

int32_t
ci_interp_run(CiInterpRun *r)
{
    return run_block(r, &r->kernel->body);
}
