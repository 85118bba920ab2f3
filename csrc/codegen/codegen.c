/* The passes of a family, in order. */
#include "codegen/codegen.h"

#include <string.h>

typedef struct Pass {
    void (*run)(CiProcs *procs, CiProc *proc, const CiFamily *family);
    const char *families;
} Pass;

static const Pass passes[] = {
#define PASS(function, name, families, doc) {function, families},
#include "codegen/procs.def"
};

static void
verify_now(const CiProcs *procs, bool verify)
{
    if (!verify)
        return;
    ci_procs_verify(procs);
    ci_procs_verify_text(procs);
}

CiProcs *
ci_codegen(const CiKernels *kernels, const CiFamily *family, bool verify)
{
    CiProcs *procs = ci_expand(kernels);
    verify_now(procs, verify);
    for (size_t p = 0; p < sizeof passes / sizeof *passes; p++) {
        if (!strstr(passes[p].families, family->name))
            continue;
        for (int k = 0; k < procs->nprocs; k++)
            passes[p].run(procs, procs->procs[k], family);
        verify_now(procs, verify);
    }
    return procs;
}
