/* Assigns kernels to translation units.
 *
 * Little code is one unit, because every compiler run has a start-up cost. More code is divided by
 * length, so that units can be compiled in parallel. The assignment depends only on the kernels,
 * never on the machine: sources and cache keys must not. */
#include "device/cpu/cpu.h"

/* Cost model in bytes of text. Compile time is proportional to the length; a kernel adds as much as
 * 500 bytes, and a run (compiler start, assembler, linker) as much as 9,000. Two units are compiled
 * in parallel on any machine with two CPUs. A third and a fourth unit must have as much text as
 * their runs cost, because on two CPUs they take additional time. */
#define LEAST_LENGTH 4000
#define RUN_LENGTH 9000
#define KERNEL_LENGTH 500

/* The longest kernel that no unit has yet, of several the first; -1 when all have one. */
static int
next_kernel(const int64_t *lengths, int nkernels, const int *unit_of)
{
    int longest = -1;
    for (int k = 0; k < nkernels; k++)
        if (unit_of[k] < 0 && lengths[k] > 0 && (longest < 0 || lengths[k] > lengths[longest]))
            longest = k;
    return longest;
}

/* Shares kernels out among so many units, the longest first; returns how full the emptiest is. */
static int64_t
share_out(const int64_t *lengths, int nkernels, int count, int *unit_of)
{
    int64_t filled[CI_CPU_MAX_UNITS] = {0};
    int least = 0;
    for (int k = 0; k < nkernels; k++)
        unit_of[k] = -1;
    for (int k; (k = next_kernel(lengths, nkernels, unit_of)) >= 0;) {
        unit_of[k] = least;
        filled[least] += lengths[k] + KERNEL_LENGTH;
        for (int u = 0; u < count; u++)
            least = filled[u] < filled[least] ? u : least;
    }
    return filled[least];
}

int
ci_cpu_assign_units(const int64_t *lengths, int nkernels, int *unit_of)
{
    int count = CI_CPU_MAX_UNITS;
    while (share_out(lengths, nkernels, count, unit_of) <
               (count > 2 ? RUN_LENGTH : LEAST_LENGTH) &&
           count > 1)
        count--;
    return count;
}
