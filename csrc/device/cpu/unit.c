/* Which kernels share a translation unit. Few kernels are one unit, for every compiler run costs
 * its start; many are shared out by weight, so that units can be compiled side by side. The answer
 * depends on the kernels alone, never on the machine: sources and cache keys must not. */
#include "device/cpu/cpu.h"

/* Weights are about a millisecond of compiler time each; a unit below the least is not worth a
 * compiler run. */
#define LEAST_WEIGHT 40
#define KERNEL_WEIGHT 8
#define FOLD_WEIGHT 12
#define MATH_WEIGHT 5

int
ci_cpu_highest_id(const CiKernels *kernels)
{
    int highest = -1;
    for (int k = 0; k < kernels->nkernels; k++) {
        const CiKernel *kernel = kernels->kernels[k];
        highest = kernel->id > highest ? kernel->id : highest;
        for (int side = 0; side < 2 && kernel->region; side++) {
            int inner = kernel->inner[side] ? ci_cpu_highest_id(kernel->inner[side]) : -1;
            highest = inner > highest ? inner : highest;
        }
    }
    return highest;
}

static void
add_weight(void *arg, const CiNest *nest)
{
    int *weight = arg;
    *weight += nest->fold != CI_OP_none ? FOLD_WEIGHT : 0;
    for (int k = 0; k < nest->body.nops; k++)
        *weight += ci_op_kind(nest->body.ops[k].op) == CI_OPKIND_math ? MATH_WEIGHT : 1;
}

static int
kernel_weight(const CiKernel *kernel)
{
    int weight = KERNEL_WEIGHT;
    ci_kernel_visit_nests(kernel, add_weight, &weight);
    return weight;
}

/* Calls itself for kernels inside regions. With unit_of NULL only adds up weights. */
static void
assign(const CiKernels *kernels, int *total, int unit_weight, int *unit_of)
{
    for (int k = 0; k < kernels->nkernels; k++) {
        const CiKernel *kernel = kernels->kernels[k];
        for (int side = 0; side < 2 && kernel->region; side++)
            if (kernel->inner[side])
                assign(kernels->kernels[k]->inner[side], total, unit_weight, unit_of);
        if (!ci_kernel_has_loops(kernel))
            continue;
        if (unit_of)
            unit_of[kernel->id] = *total / unit_weight;
        *total += kernel_weight(kernel);
    }
}

int
ci_cpu_assign_units(const CiKernels *kernels, int *unit_of)
{
    int total = 0, passed = 0;
    assign(kernels, &total, 1, NULL);
    int count = total / LEAST_WEIGHT < 1 ? 1 : total / LEAST_WEIGHT;
    count = count > CI_CPU_MAX_UNITS ? CI_CPU_MAX_UNITS : count;
    assign(kernels, &passed, (total + count) / count, unit_of);
    return count;
}
