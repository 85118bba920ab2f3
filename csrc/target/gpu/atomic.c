/* Stores that combine, where several threads may be at one element. */
#include "target/gpu/print.h"

typedef struct Atomic {
    CiOp op;
    const char *name, *lower;
    bool by_bits;
} Atomic;

static const Atomic atomics[] = {
#define ATOMIC(op, name, lower, by_bits) {CI_OP_##op, #name, #lower, by_bits},
#include "target/gpu/atomic.def"
};

static const Atomic *
find_atomic(CiOp op)
{
    for (size_t k = 0; k < sizeof atomics / sizeof *atomics; k++)
        if (atomics[k].op == op)
            return &atomics[k];
    return NULL;
}

static bool
has_narrow(CiOp op, CiDtype dtype)
{
    return find_atomic(op) && ci_dtype_is_integral(dtype) && ci_dtype_size(dtype) == 4;
}

static bool
has_both(CiOp op, CiDtype dtype)
{
    return find_atomic(op) && ci_dtype_is_integral(dtype) && ci_dtype_size(dtype) >= 4;
}

bool (*ci_gpu_has_atomic(const CiGpuDialect *gpu))(CiOp op, CiDtype dtype)
{
    return gpu->atomic64 ? has_both : gpu->atomic32 ? has_narrow : NULL;
}

void
ci_gpu_print_atomic(CiCPrinter *p, const CiStmt *store)
{
    const CiGpuDialect *gpu = ((const CiGpuPrinter *)p)->gpu;
    const Atomic *atomic = find_atomic(store->op);
    const CiMemory *memory = store->at.memory;
    bool is_long = ci_dtype_size(memory->dtype) == 8,
         is_signed = ci_dtype_class(memory->dtype) == CI_CLASS_int && !atomic->by_bits;
    const char *type =
        ci_format(p->ctx, "%s%s", is_signed ? "" : "unsigned ", is_long ? gpu->long_word : "int");
    ci_text_line(p->out, "%s%s((%s%s *)&%s, (%s)v%d);", is_long ? gpu->atomic64 : gpu->atomic32,
                 gpu->has_lower_atomics ? atomic->lower : atomic->name,
                 memory->space == CI_SPACE_shared ? gpu->shared : gpu->global, type,
                 ci_c_element(p, memory, store->at.index), type, store->args[0]);
}
