/* Stores that combine, where several threads may be at one element. */
#include "target/cuda/print.h"

typedef struct Atomic {
    CiOp op;
    const char *function;
    bool by_bits;
} Atomic;

static const Atomic atomics[] = {
#define ATOMIC(op, function, by_bits) {CI_OP_##op, #function, by_bits},
#include "target/cuda/atomic.def"
};

static const Atomic *
find_atomic(CiOp op)
{
    for (size_t k = 0; k < sizeof atomics / sizeof *atomics; k++)
        if (atomics[k].op == op)
            return &atomics[k];
    return NULL;
}

bool
ci_cuda_has_atomic(CiOp op, CiDtype dtype)
{
    return find_atomic(op) && ci_dtype_is_integral(dtype) && ci_dtype_size(dtype) >= 4;
}

void
ci_cuda_print_atomic(CiCPrinter *p, const CiStmt *store)
{
    const Atomic *atomic = find_atomic(store->op);
    CiDtype dtype = store->at.memory->dtype;
    bool is_signed = ci_dtype_class(dtype) == CI_CLASS_int && !atomic->by_bits;
    const char *type = ci_format(p->ctx, "%s%s", is_signed ? "" : "unsigned ",
                                 ci_dtype_size(dtype) == 8 ? "long long" : "int");
    ci_text_line(p->out, "%s((%s *)&%s, (%s)v%d);", atomic->function, type,
                 ci_c_element(p, store->at.memory, store->at.index), type, store->args[0]);
}
