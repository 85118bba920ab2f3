/* Running what the user has written: chunks of units, side by side. */
#include "device/cpu/cpu.h"

#include <dlfcn.h>
#include <stdlib.h>

#define UNITS_OF_A_CHUNK 256

typedef struct Run {
    const CiCpuUserCode *code;
    void *const *buffers;
    const int64_t *sizes;
    int64_t units;
} Run;

static int32_t
run_chunk(void *arg, int64_t chunk)
{
    const Run *run = arg;
    int64_t begin = chunk * UNITS_OF_A_CHUNK, end = begin + UNITS_OF_A_CHUNK;
    return run->code->function(run->buffers, run->sizes, begin,
                               end < run->units ? end : run->units);
}

int32_t
ci_cpu_run_text(CiUserCode *code, const CiQueue *queue, int nbuffers, void *const *buffers,
                int nsizes, const int64_t *sizes, int64_t units, int threads)
{
    Run run = {(const CiCpuUserCode *)code, buffers, sizes, units};
    (void)nbuffers, (void)nsizes;
    return ci_pool_run(queue->runtime->pool, (units + UNITS_OF_A_CHUNK - 1) / UNITS_OF_A_CHUNK,
                       threads, run_chunk, &run);
}

void
ci_cpu_close_text(CiUserCode *code)
{
    dlclose(((CiCpuUserCode *)code)->library);
    free(code);
}
