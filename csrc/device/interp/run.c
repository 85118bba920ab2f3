/* Walks nests block by block. Folds are fold.c's. */
#include "device/interp/run.h"

#include <string.h>

static int32_t
run_points(CiInterpRun *r, const CiInterpNest *nest)
{
    if (nest->lane_axis < 0) {
        ci_interp_store(r, nest, ci_interp_block(r, nest, 0, 1), 0, 1);
        return CI_OK;
    }
    int64_t lanes = r->extents[nest->lane_axis];
    if (!ci_interp_start(r, nest, 0, nest->naxes))
        return CI_OK;
    do {
        for (int64_t start = 0; start < lanes; start += CI_INTERP_BLOCK) {
            int64_t count = lanes - start < CI_INTERP_BLOCK ? lanes - start : CI_INTERP_BLOCK;
            ci_interp_store(r, nest, ci_interp_block(r, nest, start, count), start, count);
            int32_t status = ci_interp_poll(r);
            if (status)
                return status;
        }
    } while (ci_interp_next(r, nest, 0, nest->lane_axis));
    return CI_OK;
}

static int32_t
run_pack(CiInterpRun *r, const CiInterpNest *nest)
{
    r->env[nest->pack_slot] = 0;
    int32_t status = run_points(r, nest);
    if (!status)
        ci_interp_pack_rest(r, nest);
    return status;
}

static int32_t
run_scan(CiInterpRun *r, const CiInterpNest *nest)
{
    int64_t lanes = r->extents[nest->lane_axis];
    int size = ci_interp_size(nest->dtype);
    _Alignas(16) char running[16];
    if (!ci_interp_start(r, nest, 0, nest->naxes))
        return CI_OK;
    do {
        for (int64_t start = 0; start < lanes; start += CI_INTERP_BLOCK) {
            int64_t count = lanes - start < CI_INTERP_BLOCK ? lanes - start : CI_INTERP_BLOCK;
            char *values = ci_interp_block(r, nest, start, count);
            for (int64_t k = 0; k < count; k++) {
                if (start + k > 0)
                    nest->combine(values + size * k, running, values + size * k, NULL, 1);
                memcpy(running, values + size * k, (size_t)size);
            }
            ci_interp_store(r, nest, values, start, count);
            int32_t status = ci_interp_poll(r);
            if (status)
                return status;
        }
    } while (ci_interp_next(r, nest, 0, nest->lane_axis));
    return CI_OK;
}

int32_t
ci_interp_nest(CiInterpRun *r, const CiInterpNest *nest)
{
    for (int k = 0; k < nest->naxes; k++)
        r->extents[k] = ci_formula_evaluate(&nest->extents[k], r->env);
    if (nest->pack_slot >= 0)
        return run_pack(r, nest);
    switch (nest->shape) {
    case CI_SHAPE_point:
        return run_points(r, nest);
    case CI_SHAPE_scan:
        return run_scan(r, nest);
    case CI_SHAPE_inner:
        return ci_interp_fold_inner(r, nest);
    default:
        return ci_interp_fold_outer(r, nest);
    }
}
