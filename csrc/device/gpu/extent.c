/* Sizes of a launch: expressions over a kernel's sizes, kept with the executable, which outlives
 * the compilation. */
#include "device/gpu/gpu.h"

#define CI_GPU_STACK 32

typedef enum Step {
    STEP_const,
    STEP_size,
    STEP_add,
    STEP_multiply,
    STEP_floordiv,
    STEP_mod,
    STEP_min,
    STEP_max
} Step;

struct CiGpuExtentCode {
    Step step;
    int64_t value;
};

typedef struct Builder {
    CiContext *ctx;
    const CiKernel *kernel;
    struct CiGpuExtentCode *code;
    int ncode, capcode;
} Builder;

static void
push(Builder *b, Step step, int64_t value)
{
    struct CiGpuExtentCode code = {step, value};
    CI_PUSH(b->ctx, b->code, b->ncode, b->capcode, code);
}

static int
size_position(const Builder *b, const CiExpr *e)
{
    for (int k = 0; k < b->kernel->nsize_args; k++)
        if (b->kernel->size_args[k] == e)
            return k;
    return -1;
}

static void
add(Builder *b, const CiExpr *e)
{
    static const Step steps[] = {[CI_EXPR_product] = STEP_multiply,
                                 [CI_EXPR_floordiv] = STEP_floordiv,
                                 [CI_EXPR_mod] = STEP_mod,
                                 [CI_EXPR_min] = STEP_min,
                                 [CI_EXPR_max] = STEP_max};
    if (size_position(b, e) >= 0) {
        push(b, STEP_size, size_position(b, e));
        return;
    }
    if (e->kind == CI_EXPR_symbol)
        ci_fail(b->ctx, CI_ERR_INTERNAL, "%s is no argument of kernel %s", e->name,
                b->kernel->name);
    if (e->kind == CI_EXPR_const || e->kind == CI_EXPR_linear)
        push(b, STEP_const, e->value);
    for (int k = 0; k < e->nargs; k++) {
        add(b, e->args[k]);
        if (e->kind == CI_EXPR_linear) {
            push(b, STEP_const, e->coefs[k]);
            push(b, STEP_multiply, 0);
            push(b, STEP_add, 0);
        } else if (k > 0) {
            push(b, steps[e->kind], 0);
        }
    }
}

static int
depth_of(const CiExpr *e)
{
    int deepest = 1;
    for (int k = 0; k < e->nargs; k++)
        if (depth_of(e->args[k]) + 2 > deepest)
            deepest = depth_of(e->args[k]) + 2;
    return deepest;
}

CiGpuExtent
ci_gpu_extent_new(CiContext *ctx, const CiKernel *kernel, const CiExpr *e)
{
    Builder b = {.ctx = ctx, .kernel = kernel};
    if (depth_of(e) > CI_GPU_STACK)
        ci_fail(ctx, CI_ERR_UNSUPPORTED, "the size of a launch of %s is too deep an expression",
                kernel->name);
    add(&b, e);
    return (CiGpuExtent){b.code, b.ncode};
}

static int64_t
floordiv(int64_t a, int64_t b)
{
    return b == 0 ? 0 : a / b - (a % b != 0 && (a ^ b) < 0);
}

static int64_t
apply(Step step, int64_t a, int64_t b)
{
    switch (step) {
    case STEP_add:
        return a + b;
    case STEP_multiply:
        return a * b;
    case STEP_floordiv:
        return floordiv(a, b);
    case STEP_mod:
        return b == 0 ? 0 : a - floordiv(a, b) * b;
    case STEP_min:
        return a < b ? a : b;
    default:
        return a > b ? a : b;
    }
}

int64_t
ci_gpu_extent_value(const CiGpuExtent *extent, const int64_t *sizes)
{
    int64_t stack[CI_GPU_STACK];
    int depth = 0;
    for (int k = 0; k < extent->ncode; k++) {
        const struct CiGpuExtentCode *code = &extent->code[k];
        if (code->step == STEP_const) {
            stack[depth++] = code->value;
        } else if (code->step == STEP_size) {
            stack[depth++] = sizes[code->value];
        } else {
            depth--;
            stack[depth - 1] = apply(code->step, stack[depth - 1], stack[depth]);
        }
    }
    return stack[0];
}
