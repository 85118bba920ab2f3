/* The passes of a family, in order. */
#include "codegen/codegen.h"

#include <string.h>

#include "base/text.h"

static const CiProcPass passes[] = {
#define PASS(function, name, families, is_needed, doc) {#name, doc, families, is_needed, function},
#include "codegen/procs.def"
};

int
ci_proc_pass_count(void)
{
    return (int)(sizeof passes / sizeof *passes);
}

const CiProcPass *
ci_proc_pass_at(int position)
{
    return &passes[position];
}

static void
verify_now(const CiProcs *procs, bool verify)
{
    if (!verify)
        return;
    ci_procs_verify(procs);
    ci_procs_verify_text(procs);
}

static void
run_pass(const CiProcPass *pass, CiProcs *procs, const CiFamily *family, const CiProcPlan *plan)
{
    if (plan && plan->before)
        plan->before(plan->arg, pass->name, procs);
    for (int k = 0; k < procs->nprocs; k++)
        pass->run(procs, procs->procs[k], family);
    if (plan && plan->after)
        plan->after(plan->arg, pass->name, procs);
}

CiProcs *
ci_codegen(const CiKernels *kernels, const CiFamily *family, bool verify)
{
    const CiProcPlan *plan = kernels->plan;
    CiProcs *procs = ci_expand(kernels);
    verify_now(procs, verify);
    for (int p = 0; p < ci_proc_pass_count(); p++) {
        if (!strstr(passes[p].families, family->name) ||
            (plan && plan->skip && ci_text_lists(plan->skip, passes[p].name)))
            continue;
        run_pass(&passes[p], procs, family, plan);
        verify_now(procs, verify);
    }
    return procs;
}
