/* Functions of CUDA's mathematics library, by the names that kernels call them by. */
#include "target/cuda/print.h"

#include <string.h>

typedef struct Rough {
    const char *function;
    int noperands;
} Rough;

static const Rough roughs[] = {
#define ROUGH(function, operands) {#function, operands},
#include "target/cuda/imprecise.def"
};

static bool
is_rough(const char *function)
{
    for (size_t k = 0; k < sizeof roughs / sizeof *roughs; k++)
        if (!strcmp(roughs[k].function, function))
            return true;
    return false;
}

const char *
ci_cuda_function(CiContext *ctx, CiOp op, CiDtype dtype)
{
    const char *function = ci_op_function(op);
    if (dtype == CI_DTYPE_f64)
        return function;
    return ci_format(ctx, is_rough(function) ? "ci_rounded_%s" : "%sf", function);
}

void
ci_cuda_add_functions(CiText *out, const char *kernels)
{
    for (size_t k = 0; k < sizeof roughs / sizeof *roughs; k++) {
        const char *function = roughs[k].function;
        bool is_pair = roughs[k].noperands == 2;
        if (ci_emit_mentions(kernels, ci_format(out->ctx, "ci_rounded_%s", function)))
            ci_text_add(out,
                        "static __device__ float ci_rounded_%s(float a%s) { return "
                        "(float)%s((double)a%s); }\n",
                        function, is_pair ? ", float b" : "", function,
                        is_pair ? ", (double)b" : "");
    }
}
