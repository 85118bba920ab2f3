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
verify_now(const CiProcs *procs, bool verify)
{
    if (!verify)
        return;
    ci_procs_verify(procs);
    ci_procs_verify_text(procs);
}

static void
run_pass(const CiProcPass *pass, CiProcs *procs, const CiMachine *machine, const CiProcPlan *plan)
{
    if (plan && plan->before)
        plan->before(plan->arg, pass->name, procs);
    for (int k = 0; k < procs->nprocs; k++) {
        CiBuild b = ci_build_of(procs, procs->procs[k], machine);
        pass->run(&b);
    }
    if (plan && plan->after)
        plan->after(plan->arg, pass->name, procs);
}

void
ci_proc_passes_run(CiProcs *procs, const CiMachine *machine, const CiProcPlan *plan, bool verify)
{
    verify_now(procs, verify);
    for (int p = 0; p < ci_proc_pass_count(); p++) {
        if (!(passes[p].families >> machine->family & 1) ||
            (plan && plan->skip && ci_text_lists(plan->skip, passes[p].name)))
            continue;
        run_pass(&passes[p], procs, machine, plan);
        verify_now(procs, verify);
    }
}

CiProcs *
ci_codegen(const CiKernels *kernels, const CiMachine *machine, bool verify)
{
    CiProcs *procs = ci_expand(kernels);
    ci_proc_passes_run(procs, machine, kernels->plan, verify);
    return procs;
}
