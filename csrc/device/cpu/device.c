/* The CPU as a device: its memory is the host's, and nothing runs asynchronously. */
#include "device/device.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Linux says so; elsewhere there is none. */
static void
find_name(char *out, size_t capacity)
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[256];
    out[0] = '\0';
    while (file && !out[0] && fgets(line, sizeof line, file)) {
        char *value = strstr(line, ": ");
        if (value && !strncmp(line, "model name", 10))
            snprintf(out, capacity, "%.*s", (int)strcspn(value + 2, "\n"), value + 2);
    }
    if (file)
        fclose(file);
}

static int32_t
properties(const CiQueue *queue, CiDeviceProperties *out)
{
    long units = sysconf(_SC_NPROCESSORS_ONLN), pages = sysconf(_SC_PHYS_PAGES),
         page = sysconf(_SC_PAGESIZE);
    (void)queue;
    *out = (CiDeviceProperties){.units = (int)units, .memory = (int64_t)pages * page};
    find_name(out->name, sizeof out->name);
    return CI_OK;
}

extern const CiDevice ci_device_cpu;

const CiDevice ci_device_cpu = {
    .abi = CI_DEVICE_ABI,
    .name = "cpu",
    .doc = "the processor and its memory",
    .dlpack = 1,
    .properties = properties,
};
