/* The registry of backends, best first within a device, and the defaults of options. */
#include "device/registry.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BACKEND(device, compiler)                                                                  \
    extern const CiDevice device;                                                                  \
    extern const CiCompiler compiler;
#include "device/devices.def"
#undef BACKEND

static const CiBackend built_in[] = {
#define BACKEND(device, compiler) {&device, &compiler},
#include "device/devices.def"
#undef BACKEND
};

#define BUILT_IN ((int)(sizeof built_in / sizeof *built_in))
CiRegistry *
ci_registry_open(void)
{
    CiRegistry *registry = calloc(1, sizeof *registry);
    if (registry) {
        registry->counts = ci_memory_counts_open();
        registry->groups = ci_groups_new();
    }
    if (registry && registry->counts && registry->groups)
        return registry;
    ci_registry_close(registry);
    return NULL;
}

void
ci_registry_close(CiRegistry *registry)
{
    if (registry) {
        ci_memory_counts_close(registry->counts);
        ci_groups_free(registry->groups);
    }
    free(registry);
}

/* True if the functions are complete that go together: those for memory, streams, recordings or groups. */
static bool
is_whole(const CiDevice *device)
{
    bool has_memory = device->allocate != NULL, has_streams = device->stream_open != NULL;
    if (has_memory &&
        !(device->release && device->copy_in && device->copy_out && device->synchronize))
        return false;
    if (device->share_allocate &&
        !(has_memory && device->share_release && device->share_name && device->share_open &&
          device->share_close))
        return false;
    if ((device->host_allocate || device->copy_out_start) &&
        !(has_streams && device->host_allocate && device->host_release && device->copy_out_start))
        return false;
    if (has_streams && !(device->synchronize && device->stream_close && device->event_open &&
                         device->event_close && device->event_record && device->event_wait &&
                         device->event_synchronize))
        return false;
    bool has_groups = device->group_name || device->group_open || device->group_close ||
                      device->group_start || device->group_join;
    if (has_groups && !(has_memory && device->group_name && device->group_open && device->group_close &&
                        device->group_start && device->group_join))
        return false;
    bool has_any = device->record_begin || device->record_end || device->replay || device->record_close;
    if (has_any && !(has_memory && device->record_begin && device->record_end && device->replay &&
                     device->record_close))
        return false;
    return device->name && *device->name;
}

static const char *
why_no_compiler(const CiRegistry *registry, const CiDevice *device,
                const CiCompiler *const *compilers, int number)
{
    const CiCompiler *compiler = compilers[number];
    if (compiler->abi != CI_DEVICE_ABI)
        return "it was made for another version of cinductor";
    if (!compiler->name || !*compiler->name || !compiler->fill_machine || !compiler->build)
        return "the compiler lacks its name, fill_machine or build";
    for (int k = 0; k < number; k++)
        if (!strcmp(compilers[k]->name, compiler->name))
            return "it is named twice";
    return ci_backend_find(registry, device->name, compiler->name) ? "there is one of that name"
                                                                   : NULL;
}

static const char *
why_no_device(const CiRegistry *registry, const CiDevice *device, int count)
{
    if (device->abi != CI_DEVICE_ABI)
        return "it was made for another version of cinductor";
    if (!is_whole(device))
        return "it lacks a function that goes with those it has";
    if (count < 1)
        return "it has no compiler";
    return atomic_load(&registry->count) + count > MAX_ADDED ? "there are too many" : NULL;
}

CiStatus
ci_registry_add(CiRegistry *registry, const CiDevice *device, const CiCompiler *const *compilers,
                int count, char *out, size_t capacity)
{
    const char *why = why_no_device(registry, device, count);
    int at = atomic_load(&registry->count);
    if (why) {
        snprintf(out, capacity, "device '%s': %s", device->name ? device->name : "", why);
        return CI_ERR_VALUE;
    }
    for (int k = 0; k < count && !why; k++) {
        why = why_no_compiler(registry, device, compilers, k);
        if (why)
            snprintf(out, capacity, "backend '%s' of device '%s': %s",
                     compilers[k]->name ? compilers[k]->name : "", device->name, why);
    }
    for (int k = 0; k < count && !why; k++)
        registry->added[at + k] = (CiBackend){device, compilers[k]};
    if (!why)
        atomic_store(&registry->count, at + count);
    return why ? CI_ERR_VALUE : CI_OK;
}

int
ci_backend_count(const CiRegistry *registry)
{
    return BUILT_IN + (registry ? atomic_load(&registry->count) : 0);
}

const CiBackend *
ci_backend_at(const CiRegistry *registry, int position)
{
    return position < BUILT_IN ? &built_in[position] : &registry->added[position - BUILT_IN];
}

const CiBackend *
ci_backend_find(const CiRegistry *registry, const char *device, const char *name)
{
    for (int k = 0; k < ci_backend_count(registry); k++) {
        const CiBackend *backend = ci_backend_at(registry, k);
        if (!strcmp(backend->device->name, device) &&
            (!name || !*name || !strcmp(backend->compiler->name, name)))
            return backend;
    }
    return NULL;
}

int32_t
ci_executable_launch(CiExecutable *executable, const CiLaunch *launch, CiFault *fault)
{
    const CiQueue *queue = &executable->queue;
    return queue->backend->device->launch
               ? queue->backend->device->launch(queue, executable, launch, fault)
               : executable->launch(executable, launch, fault);
}

bool
ci_backend_has_own_order(const CiBackend *backend)
{
    CiMachine machine = ci_machine(CI_MACHINE_generic);
    backend->compiler->fill_machine(&machine, NULL);
    return machine.has_own_order;
}

CiMachine
ci_backend_machine(const CiBackend *backend, const CiOptions *options, bool host_arrays)
{
    CiMachine machine = ci_machine(CI_MACHINE_generic);
    const CiDevice *device = backend->device;
    backend->compiler->fill_machine(&machine, options);
    machine.device = device->name;
    machine.backend = backend->compiler->name;
    machine.has_memory = ci_backend_has_memory(backend);
    machine.host_arrays = machine.has_memory && host_arrays;
    machine.starts_copies = device->copy_out_start != NULL;
    machine.takes_extern = device->takes_extern;
    machine.records = device->record_begin && options->interpreted_kernels == 0;
    machine.records_extern = device->records_extern;
    machine.has_collectives = device->group_start != NULL;
    return machine;
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
