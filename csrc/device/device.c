/* The registry of backends, best first within a device, and the defaults of options. */
#include "device/registry.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NONE NULL
#define BACKEND(device, compiler, first)                                                           \
    extern const CiDevice device;                                                                  \
    extern const CiCompiler compiler;
#include "device/devices.def"
#undef BACKEND

static const CiBackend built_in[] = {
#define BACKEND(device, compiler, first) {&device, &compiler, first},
#include "device/devices.def"
#undef BACKEND
#undef NONE
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

/* Functions that a device has together: if it has any of the first ones, it needs all. */
typedef struct Together {
    const char *why;
    bool has_any, has_all;
} Together;

/* NULL if all functions are there that go together, else the reason. */
static const char *
why_incomplete(const CiDevice *d)
{
    bool has_memory = d->allocate && d->release && d->copy_in && d->copy_out && d->synchronize,
         has_streams = d->stream_open && d->stream_close && d->synchronize && d->event_open && d->event_close &&
                       d->event_record && d->event_wait && d->event_synchronize;
    const Together rows[] = {
        {"it lacks a name", true, d->name && *d->name},
        {"it lacks a function for its memory", d->allocate, has_memory},
        {"it lacks a function for streams", d->stream_open, has_streams},
        {"it lacks a function for shared memory", d->share_allocate,
         has_memory && d->share_release && d->share_name && d->share_open && d->share_close},
        {"it lacks a function for memory of the host", d->host_allocate || d->copy_out_start,
         has_streams && d->host_allocate && d->host_release && d->copy_out_start},
        {"it lacks a function for groups", d->group_name || d->group_open || d->group_close || d->group_start || d->group_join,
         has_memory && d->group_name && d->group_open && d->group_close && d->group_start && d->group_join},
        {"it lacks a function for recordings", d->record_begin || d->record_end || d->replay || d->record_close,
         has_memory && d->record_begin && d->record_end && d->replay && d->record_close},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (rows[k].has_any && !rows[k].has_all)
            return rows[k].why;
    return NULL;
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
    const char *why = why_incomplete(device);
    if (why)
        return why;
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
        registry->added[at + k] = (CiBackend){device, compilers[k], NULL};
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

const CiBackend *
ci_backend_first(const CiRegistry *registry, const CiBackend *backend, const CiOptions *options)
{
    char why[256];
    const CiCompiler *first = backend->first;
    bool is_there = first && !(first->why_not_available && first->why_not_available(options, why, sizeof why));
    return is_there ? ci_backend_find(registry, backend->device->name, first->name) : NULL;
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
