/* The registry's contents: registered backends, the memory in use of each device, and the groups that
 * devices are members of. */
#ifndef CI_DEVICE_REGISTRY_H
#define CI_DEVICE_REGISTRY_H

#include "device/collective.h"

#include <stdatomic.h>

#define MAX_ADDED 64

typedef struct CiMemoryCounts CiMemoryCounts;
CiMemoryCounts *ci_memory_counts_open(void); /* NULL without memory */
void ci_memory_counts_close(CiMemoryCounts *counts);

struct CiRegistry {
    CiBackend added[MAX_ADDED]; /* their addresses are kept by callers */
    atomic_int count;
    CiMemoryCounts *counts;
    CiGroups *groups;
};

#endif
