/* What a registry is made of: backends from outside, and what is in use of each device's memory. */
#ifndef CI_DEVICE_REGISTRY_H
#define CI_DEVICE_REGISTRY_H

#include "device/device.h"

#include <stdatomic.h>

#define MAX_ADDED 64

typedef struct CiMemoryCounts CiMemoryCounts;
CiMemoryCounts *ci_memory_counts_open(void); /* NULL without memory */
void ci_memory_counts_close(CiMemoryCounts *counts);

struct CiRegistry {
    CiBackend added[MAX_ADDED]; /* whoever has found one keeps its address */
    atomic_int count;
    CiMemoryCounts *counts;
};

#endif
