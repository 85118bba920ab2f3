/* The registry of backends, best first within a device, and the defaults of options. */
#include "device/device.h"

#include <stdatomic.h>
#include <string.h>

#define BACKEND(symbol) extern const CiBackend symbol;
#include "device/devices.def"
#undef BACKEND

static const CiBackend *const backends[] = {
#define BACKEND(symbol) &symbol,
#include "device/devices.def"
#undef BACKEND
};

int
ci_backend_count(void)
{
    return (int)(sizeof backends / sizeof *backends);
}

const CiBackend *
ci_backend_at(int position)
{
    return backends[position];
}

const CiBackend *
ci_backend_find(const char *device, const char *name)
{
    for (int k = 0; k < ci_backend_count(); k++)
        if (!strcmp(backends[k]->device, device) &&
            (!name || !*name || !strcmp(backends[k]->name, name)))
            return backends[k];
    return NULL;
}

void
ci_options_default(CiOptions *options)
{
#define OPTION(name, type, value, allowed, env, doc) options->name = value;
#include "base/options.def"
#undef OPTION
}

bool
ci_options_have_numpys_order(const CiOptions *options)
{
    const char *numerics = options->numerics;
    return !numerics || !strcmp(numerics, "numpy") || !strcmp(numerics, "exact");
}

void
ci_runtime_shut(CiRuntime *runtime)
{
    CiDeviceState *state = atomic_exchange(&runtime->states, NULL);
    while (state) {
        CiDeviceState *next = state->next;
        state->shut(state);
        state = next;
    }
}
