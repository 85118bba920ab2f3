/* The passes of a machine's family, in order. */
#include "codegen/codegen.h"

#include "base/text.h"

#define CPU (1 << CI_FAMILY_cpu)
#define GPU (1 << CI_FAMILY_gpu)
#define INTERP (1 << CI_FAMILY_interp)
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
verify(const CiProcs *procs)
{
    ci_procs_verify(procs);
    ci_procs_verify_text(procs);
}

void
ci_proc_passes_run(CiProcs *procs, const CiMachine *machine, const CiPassPlan *plan)
{
    const CiLevel level = {.procs = procs};
    if (plan->verify)
        verify(procs);
    for (int p = 0; p < ci_proc_pass_count(); p++) {
        const CiProcPass *pass = &passes[p];
        if (!(pass->families >> machine->family & 1) || !ci_pass_begins(plan, pass->name, level))
            continue;
        for (int k = 0; k < procs->nprocs; k++) {
            CiBuild b = ci_build_of(procs, procs->procs[k], machine);
            pass->run(&b);
        }
        ci_pass_ends(plan, pass->name, level);
        if (plan->verify)
            verify(procs);
    }
}

CiProcs *
ci_codegen(const CiKernels *kernels, const CiMachine *machine, bool verify)
{
    CiProcs *procs = ci_expand(kernels);
    CiPassPlan plan = kernels->plan ? *kernels->plan : (CiPassPlan){0};
    plan.verify = verify;
    ci_proc_passes_run(procs, machine, &plan);
    return procs;
}
