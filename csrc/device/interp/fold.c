/* Folds, in the orders of ir/loop.h.
 *
 * inner   one point at a time, lanes along the innermost reduce axis: accumulators of one fold
 * outer   256 points at a time, the reduce axes walked serially: accumulators per point, in rows
 * Both are one thing: `width` values side by side, `lanes` rows of accumulators, blocks of 32 *
 * lanes rows, and a binary counter of finished blocks. inner has width 1 and takes its values L at
 * a time. */
#include "device/interp/run.h"

#include <string.h>

#define MOST_LEVELS 48

typedef struct Fold {
    CiInterpOp combine;
    CiDtype dtype;
    int size;
    int64_t width; /* points */
    int lanes;     /* rows of accumulators */
    bool is_ordered;
    int64_t count, blocks;
    char *rows;  /* lanes * width values */
    char *stack; /* MOST_LEVELS * width values */
    int64_t *at; /* argmax, argmin: width */
    _Alignas(16) char identity[16];
} Fold;

static char *
row_of(const Fold *f, char *rows, int64_t row)
{
    return rows + (size_t)(row * f->width * f->size);
}

static void
fill_identity(Fold *f)
{
    for (int64_t k = 0; k < f->lanes * f->width; k++)
        memcpy(f->rows + (size_t)(k * f->size), f->identity, (size_t)f->size);
}

static void
start_fold(Fold *f, const CiInterpNest *nest, int64_t width)
{
    CiOp like = nest->fold == CI_OP_argmax   ? CI_OP_max
                : nest->fold == CI_OP_argmin ? CI_OP_min
                                             : nest->fold;
    f->width = width;
    f->count = f->blocks = 0;
    ci_const_store(nest->dtype, ci_op_identity(like, nest->dtype), f->identity);
    fill_identity(f);
    for (int64_t k = 0; k < width && f->at; k++)
        f->at[k] = 0;
}

static void
pairwise(Fold *f)
{
    for (int64_t h = f->lanes / 2; h; h /= 2)
        f->combine(f->rows, f->rows, row_of(f, f->rows, h), NULL, h * f->width);
}

static void
close_block(Fold *f)
{
    pairwise(f);
    int depth = __builtin_popcountll((unsigned long long)f->blocks);
    for (int64_t k = f->blocks; k & 1; k >>= 1)
        f->combine(f->rows, row_of(f, f->stack, --depth), f->rows, NULL, f->width);
    memcpy(row_of(f, f->stack, depth), f->rows, (size_t)(f->width * f->size));
    f->blocks++;
    fill_identity(f);
}

static void
make_zero(const CiInterpNest *nest, const Fold *f, char *value)
{
    memcpy(value, f->identity, (size_t)f->size);
    if (ci_op_combine(nest->fold) == CI_OP_add)
        memset(value, 0, (size_t)f->size);
}

/* A zero from min and max is +0, whatever the order met. */
static void
plain_zero(const CiInterpNest *nest, Fold *f)
{
    for (int64_t k = 0; k < f->width && nest->dtype == CI_DTYPE_f32; k++)
        ((float *)f->rows)[k] += 0.0f;
    for (int64_t k = 0; k < f->width && nest->dtype == CI_DTYPE_f64; k++)
        ((double *)f->rows)[k] += 0.0;
}

/* Lanes of a few values: each has a lane of its own, and they fold in order. */
static void
fold_few(Fold *f)
{
    for (int64_t k = 1; k < f->count; k++)
        f->combine(f->rows, f->rows, row_of(f, f->rows, k), NULL, f->width);
}

/* Leaves the results in the first row. */
static void
finish_fold(Fold *f, const CiInterpNest *nest)
{
    if (!f->is_ordered) {
        pairwise(f);
        plain_zero(nest, f);
        return;
    }
    if (nest->order == CI_FOLD_serial) {
        for (int64_t k = 0; k < f->width && f->count == 0; k++)
            make_zero(nest, f, f->rows + (size_t)(k * f->size));
        return;
    }
    if (f->lanes > 1 && f->count > 0 && f->count <= CI_SERIAL_LIMIT) {
        fold_few(f);
        return;
    }
    if (f->count % (CI_BLOCK_CHAIN * f->lanes))
        close_block(f);
    int depth = __builtin_popcountll((unsigned long long)f->blocks) - 1;
    for (int64_t k = 0; k < f->width && depth < 0; k++)
        make_zero(nest, f, f->rows + (size_t)(k * f->size));
    if (depth >= 0)
        memcpy(f->rows, row_of(f, f->stack, depth), (size_t)(f->width * f->size));
    while (depth-- > 0)
        f->combine(f->rows, row_of(f, f->stack, depth), f->rows, NULL, f->width);
}

/* One value for each point. */
static void
take_row(Fold *f, const CiInterpNest *nest, const void *values)
{
    char *row = row_of(f, f->rows, f->count % f->lanes);
    bool is_first_of_serial = nest->order == CI_FOLD_serial && f->is_ordered && f->count == 0;
    if (nest->is_arg)
        ci_interp_rows(nest->dtype)
            ->outer[nest->fold == CI_OP_argmin](f->rows, f->at, values, f->width, f->count);
    else if (is_first_of_serial)
        memcpy(row, values, (size_t)(f->width * f->size));
    else
        f->combine(row, row, values, NULL, f->width);
    f->count++;
    if (f->is_ordered && nest->order != CI_FOLD_serial &&
        f->count % (CI_BLOCK_CHAIN * f->lanes) == 0)
        close_block(f);
}

/* Values in a line, for one point. */
static void
take_line(Fold *f, const CiInterpNest *nest, const char *values, int64_t count)
{
    if (nest->is_arg) {
        ci_interp_rows(nest->dtype)
            ->inner[nest->fold == CI_OP_argmin](f->rows, f->at, values, count, f->count);
        f->count += count;
        return;
    }
    for (int64_t k = 0; k < count;) {
        int64_t at = f->count % f->lanes,
                some = f->lanes - at < count - k ? f->lanes - at : count - k;
        f->combine(row_of(f, f->rows, at), row_of(f, f->rows, at), values + k * f->size, NULL,
                   some);
        k += some;
        f->count += some;
        if (f->is_ordered && f->count % (CI_BLOCK_CHAIN * f->lanes) == 0)
            close_block(f);
    }
}

static void
store_fold(CiInterpRun *r, const CiInterpNest *nest, const Fold *f, int64_t start)
{
    ci_interp_store(r, nest, nest->is_arg ? (const void *)f->at : f->rows, start, f->width);
}

static int32_t
open_fold(CiInterpRun *r, const CiInterpNest *nest, int64_t widest, Fold *f, size_t *bytes)
{
    int lanes = ci_lane_count(nest->dtype);
    bool has_one_row = nest->is_arg || (nest->shape == CI_SHAPE_outer &&
                                        (!nest->is_ordered || nest->order != CI_FOLD_lanes));
    *f = (Fold){.combine = nest->combine,
                .dtype = nest->dtype,
                .size = ci_interp_size(nest->dtype),
                .is_ordered = nest->is_ordered};
    f->lanes = has_one_row ? 1 : lanes;
    size_t rows = (size_t)(f->lanes * widest * f->size),
           stack = (size_t)(MOST_LEVELS * widest * f->size);
    size_t at = nest->is_arg ? sizeof(int64_t) * (size_t)widest : 0;
    *bytes = rows + stack + at + 64;
    f->rows = ci_allocator_take(r->runtime->allocator, *bytes);
    if (!f->rows)
        return CI_ERR_MEMORY;
    f->stack = f->rows + rows;
    f->at = at ? (int64_t *)(f->rows + ((rows + stack + 7) & ~(size_t)7)) : NULL;
    return CI_OK;
}

/* ---- the two walks ---- */

static int32_t
fold_line(CiInterpRun *r, const CiInterpNest *nest, Fold *f)
{
    int64_t length = r->extents[nest->lane_axis];
    start_fold(f, nest, 1);
    if (ci_interp_start(r, nest, nest->npoint, nest->naxes)) {
        do {
            for (int64_t start = 0; start < length; start += CI_INTERP_BLOCK) {
                int64_t count = length - start < CI_INTERP_BLOCK ? length - start : CI_INTERP_BLOCK;
                take_line(f, nest, ci_interp_block(r, nest, start, count), count);
                int32_t status = ci_interp_poll(r);
                if (status)
                    return status;
            }
        } while (ci_interp_next(r, nest, nest->npoint, nest->lane_axis));
    }
    finish_fold(f, nest);
    store_fold(r, nest, f, 0);
    return CI_OK;
}

int32_t
ci_interp_fold_inner(CiInterpRun *r, const CiInterpNest *nest)
{
    Fold f;
    size_t bytes;
    int32_t status = open_fold(r, nest, 1, &f, &bytes);
    if (status)
        return status;
    if (ci_interp_start(r, nest, 0, nest->npoint)) {
        do {
            status = fold_line(r, nest, &f);
        } while (!status && ci_interp_next(r, nest, 0, nest->npoint));
    }
    ci_allocator_give(r->runtime->allocator, f.rows, bytes);
    return status;
}

static int32_t
fold_points(CiInterpRun *r, const CiInterpNest *nest, Fold *f, int64_t start, int64_t width)
{
    start_fold(f, nest, width);
    if (ci_interp_start(r, nest, nest->npoint, nest->naxes)) {
        do {
            take_row(f, nest, ci_interp_block(r, nest, start, width));
            int32_t status = ci_interp_poll(r);
            if (status)
                return status;
        } while (ci_interp_next(r, nest, nest->npoint, nest->naxes));
    }
    finish_fold(f, nest);
    store_fold(r, nest, f, start);
    return CI_OK;
}

int32_t
ci_interp_fold_outer(CiInterpRun *r, const CiInterpNest *nest)
{
    Fold f;
    size_t bytes;
    int64_t points = nest->lane_axis < 0 ? 1 : r->extents[nest->lane_axis];
    int32_t status = open_fold(r, nest, CI_INTERP_BLOCK, &f, &bytes);
    if (status)
        return status;
    if (ci_interp_start(r, nest, 0, nest->npoint)) {
        do {
            for (int64_t start = 0; start < points && !status; start += CI_INTERP_BLOCK)
                status = fold_points(r, nest, &f, start,
                                     points - start < CI_INTERP_BLOCK ? points - start
                                                                      : CI_INTERP_BLOCK);
        } while (!status && nest->lane_axis >= 0 && ci_interp_next(r, nest, 0, nest->lane_axis));
    }
    ci_allocator_give(r->runtime->allocator, f.rows, bytes);
    return status;
}
