/* The straight-line code of a stage.
 *
 * Invariant: the arguments of a value precede it. Equal values are the same value, unless there is
 * a store between two loads of the same element. */
#include "codegen/stage_code.h"

#include <string.h>

typedef struct Builder {
    CiContext *ctx;
    const CiKernel *kernel;
    const CiStage *stage;
    CiStageCode *code;
    int *stale; /* values before this position may not be shared when they load `stale_of[k]` */
    const CiBuffer **stale_of;
    int nstale;
} Builder;

/* The dtype a fold computes in: bool for any and all, that of the value for argmax. */
static CiDtype
fold_dtype(const CiNest *nest, CiDtype value)
{
    CiOp combine = ci_op_combine(nest->fold);
    if (combine == CI_OP_logical_or || combine == CI_OP_logical_and)
        return CI_DTYPE_bool;
    return value;
}

static bool
same_scalar(const CiScalar *x, const CiScalar *y)
{
    if (x->op != y->op || x->dtype != y->dtype || x->nargs != y->nargs || x->buffer != y->buffer ||
        x->index != y->index)
        return false;
    for (int k = 0; k < x->nargs; k++)
        if (x->args[k] != y->args[k])
            return false;
    return x->op != CI_OP_const ||
           (x->value.i == y->value.i && !memcmp(&x->value.re, &y->value.re, 2 * sizeof(double)));
}

static bool
is_stale(const Builder *b, int position)
{
    const CiScalar *op = &b->code->values[position].op;
    for (int k = 0; k < b->nstale; k++)
        if (op->op == CI_OP_load && op->buffer == b->stale_of[k] && position < b->stale[k])
            return true;
    return false;
}

static int
add_value(Builder *b, CiScalar op, int nest)
{
    CiStageCode *code = b->code;
    if (nest < 0)
        for (int k = code->nvalues - 1; k >= 0; k--)
            if (code->values[k].nest < 0 && same_scalar(&code->values[k].op, &op) &&
                !is_stale(b, k))
                return k;
    CiValue value = {.op = op, .nest = nest};
    CI_PUSH(b->ctx, code->values, code->nvalues, code->capvalues, value);
    return code->nvalues - 1;
}

/* The value that an earlier nest of the stage stored at this element, or -1. The latest store
 * wins. */
static int
find_stored(const Builder *b, int before, const CiScalar *load)
{
    for (int k = before - 1; k >= 0; k--) {
        const CiNest *nest = b->stage->nests[k];
        if (nest->target == load->buffer && nest->store == load->index && !ci_nest_is_fold(nest))
            return b->code->results[k];
    }
    return -1;
}

static void
add_nest(Builder *b, int number)
{
    const CiNest *nest = b->stage->nests[number];
    int *map = CI_NEW_ARRAY(b->ctx, int, nest->body.nops + 1);
    for (int k = 0; k < nest->body.nops; k++) {
        CiScalar op = nest->body.ops[k];
        for (int a = 0; a < op.nargs; a++)
            op.args[a] = map[op.args[a]];
        map[k] = op.op == CI_OP_load ? find_stored(b, number, &op) : -1;
        if (map[k] < 0)
            map[k] = add_value(b, op, -1);
    }
    int result = map[nest->body.result];
    CiDtype dtype = b->code->values[result].op.dtype;
    if (nest->fold != CI_OP_none && fold_dtype(nest, dtype) != dtype) {
        CiScalar truth = {.op = CI_OP_cast, .dtype = CI_DTYPE_bool, .args = {result}, .nargs = 1};
        result = add_value(b, truth, -1);
    } else if (nest->fold == CI_OP_none && nest->target->dtype != dtype) {
        CiScalar cast = {
            .op = CI_OP_cast, .dtype = nest->target->dtype, .args = {result}, .nargs = 1};
        result = add_value(b, cast, -1);
    }
    if (ci_nest_is_scan(nest)) {
        CiScalar scan = {.op = nest->fold, .dtype = dtype, .args = {result}, .nargs = 1};
        result = add_value(b, scan, number);
    }
    b->code->results[number] = result;
    b->stale[b->nstale] = b->code->nvalues;
    b->stale_of[b->nstale++] = nest->target;
}

static bool
is_root(const CiKernel *kernel, const CiNest *nest)
{
    const CiPlacement *placement = ci_kernel_find_placement(kernel, nest->target);
    return !placement || placement->stored != CI_STORED_register;
}

static void
mark_needed(CiStageCode *code)
{
    for (int k = code->nvalues - 1; k >= 0; k--) {
        const CiScalar *op = &code->values[k].op;
        for (int a = 0; code->values[k].is_needed && a < op->nargs; a++)
            if (ci_op_reads(op->op, code->values[op->args[0]].op.dtype, a))
                code->values[op->args[a]].is_needed = true;
    }
}

CiStageCode *
ci_stage_code_new(CiContext *ctx, const CiKernel *kernel, const CiStage *stage)
{
    CiStageCode *code = CI_NEW(ctx, CiStageCode);
    code->results = CI_NEW_ARRAY(ctx, int, stage->nnests + 1);
    Builder b = {ctx,
                 kernel,
                 stage,
                 code,
                 CI_NEW_ARRAY(ctx, int, stage->nnests + 1),
                 CI_NEW_ARRAY(ctx, const CiBuffer *, stage->nnests + 1),
                 0};
    for (int k = 0; k < stage->nnests; k++)
        add_nest(&b, k);
    for (int k = 0; k < stage->nnests; k++)
        code->values[code->results[k]].is_needed |= is_root(kernel, stage->nests[k]);
    mark_needed(code);
    return code;
}
