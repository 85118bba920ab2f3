/* Copies to tiles, and products of tiles. */
#include "device/interp/run.h"

#include <string.h>

enum { CHUNK = 8, ATOM = 64, WARP_ROWS = 16 };

void
ci_interp_copy(CiInterpRun *r, const CiInterpStmt *stmt)
{
    int64_t size = ci_dtype_size(stmt->dtype), count = ci_formula_evaluate(&stmt->limit, r->env),
            live = stmt->has_live ? ci_formula_evaluate(&stmt->live, r->env) : count,
            to = ci_formula_evaluate(&stmt->at.index.formula, r->env),
            from = ci_formula_evaluate(&stmt->in[0].index.formula, r->env);
    if (r->checks) {
        ci_interp_check_line(r, &stmt->in[0], live, false);
        ci_interp_check_line(r, &stmt->at, count, true);
    }
    if (r->failure)
        return;
    char *target = (char *)r->memory[stmt->at.memory] + size * to;
    memset(target, 0, (size_t)(size * count));
    if (live > 0)
        memcpy(target, (const char *)r->memory[stmt->in[0].memory] + size * from, (size_t)(size * live));
}

/* One row (or column) of a tile of that size, step by step. */
static void
read_side(CiInterpRun *r, const CiInterpStmt *stmt, int which, int64_t side, int64_t size, int64_t steps, float *out)
{
    const CiInterpAccess *in = &stmt->in[which];
    int64_t first = ci_formula_evaluate(&in->index.formula, r->env);
    bool is_across = stmt->number >> which & 1;
    for (int64_t s = 0; s < steps; s++) {
        int64_t step = s % ATOM, along = is_across ? side : step, line = is_across ? step : side,
                chunk = along % ATOM / CHUNK ^ line % CHUNK;
        int64_t at = first + s / ATOM * size + along / ATOM * ATOM * ATOM + line * ATOM + chunk * CHUNK + along % CHUNK;
        ci_interp_gather(stmt->dtype, &out[s], r->memory[in->memory], at, 1, 1);
    }
}

static int64_t place_of(int64_t row, int64_t column, int64_t threads);

static float
rounded(const CiInterpStmt *stmt, float value)
{
    uint16_t narrow;
    ci_interp_scatter(stmt->dtype, &value, &narrow, 0, 1, 1);
    ci_interp_gather(stmt->dtype, &value, &narrow, 0, 1, 1);
    return value;
}

/* A row of what the threads have, rounded to the type of the other factor. */
static void
read_own(CiInterpRun *r, const CiInterpStmt *stmt, int64_t row, int64_t threads, int64_t steps, float *out)
{
    const CiInterpAccess *in = &stmt->in[0];
    int64_t first = ci_formula_evaluate(&in->index.formula, r->env);
    const float *own = r->memory[in->memory];
    for (int64_t s = 0; s < steps; s++)
        out[s] = rounded(stmt, own[first + place_of(row, s, threads)]);
}

/* The sum of a row and a column: its thread, and its number among those of the thread. */
static int64_t
place_of(int64_t row, int64_t column, int64_t threads)
{
    int64_t thread = row / WARP_ROWS * CI_WARP + row % 8 * 4 + column % 8 / 2,
            number = column / 8 * 4 + row % WARP_ROWS / 8 * 2 + column % 2;
    return thread + threads * number;
}

void
ci_interp_multiply(CiInterpRun *r, const CiInterpStmt *stmt)
{
    int64_t rows = stmt->value, columns = stmt->lanes, steps = ci_formula_evaluate(&stmt->limit, r->env);
    float *sums = r->memory[stmt->at.memory];
    size_t bytes = sizeof(float) * (size_t)((columns + 1) * steps);
    if (r->checks) {
        if (!stmt->is_own)
            ci_interp_check_line(r, &stmt->in[0], rows * steps, false);
        ci_interp_check_line(r, &stmt->in[1], columns * steps, false);
    }
    float *right = ci_allocator_take(r->runtime->allocator, bytes), *left = right ? right + columns * steps : NULL;
    if (!right) {
        r->failure = CI_ERR_MEMORY;
        return;
    }
    for (int64_t c = 0; c < columns; c++)
        read_side(r, stmt, 1, c, columns * ATOM, steps, right + c * steps);
    for (int64_t row = 0; row < rows; row++) {
        if (stmt->is_own)
            read_own(r, stmt, row, 2 * rows, steps, left);
        else
            read_side(r, stmt, 0, row, rows * ATOM, steps, left);
        for (int64_t c = 0; c < columns; c++) {
            float *sum = &sums[place_of(row, c, 2 * rows)];
            *sum = stmt->number & 8 ? 0 : *sum;
            for (int64_t s = 0; s < steps; s++)
                *sum += left[s] * right[c * steps + s];
            *sum = stmt->number & 16 ? rounded(stmt, *sum) : *sum;
        }
    }
    ci_allocator_give(r->runtime->allocator, right, bytes);
}
