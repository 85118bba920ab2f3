/* A fake CUDA driver for tests of everything except the kernels. Memory is the host's, which only
 * the device's work can access (fake_memory.h). A launch of a real cubin only counts; a launch of
 * the fake NVRTC's is emulated.
 *
 * Each of the $FAKE_CUDA_COUNT devices (default 1) has a context, and calls with objects of
 * another context are refused. Work on streams is done at once. With $FAKE_CUDA_SLOW, creating a
 * context waits until NVRTC is loaded, or for 20 s. $FAKE_CUDA_FAIL names a function that fails:
 * with out of memory if it allocates, else with an unknown error. */
#define _GNU_SOURCE
#include "emulator.h"
#include "fake_driver.h"
#include "fake_memory.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

typedef unsigned long long Address;

typedef struct LaunchConfig { /* CUlaunchConfig */
    unsigned grid[3], block[3], shared;
    void *stream, *attributes;
    unsigned nattributes;
} LaunchConfig;

int
fake_fails(const char *name, int result)
{
    const char *chosen = getenv("FAKE_CUDA_FAIL");
    return chosen && !strcmp(chosen, name) ? result : 0;
}

EXPORT int cuInit(unsigned flags);
EXPORT int cuDeviceGetCount(int *count);
EXPORT int cuDeviceGet(int *device, int ordinal);
EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device);
EXPORT int cuDeviceGetName(char *name, int length, int device);
EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device);
EXPORT int cuMemGetInfo_v2(size_t *left, size_t *all);
EXPORT int cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t size, void *stream);
EXPORT int cuMemcpyDtoHAsync_v2(void *to, Address from, size_t size, void *stream);
EXPORT int cuStreamCreate(void **stream, unsigned flags);
EXPORT int cuStreamDestroy_v2(void *stream);
EXPORT int cuEventCreate(void **event, unsigned flags);
EXPORT int cuEventDestroy_v2(void *event);
EXPORT int cuEventRecord(void *event, void *stream);
EXPORT int cuStreamWaitEvent(void *stream, void *event, unsigned flags);
EXPORT int cuEventSynchronize(void *event);
EXPORT int cuEventElapsedTime(float *ms, void *first, void *second);
EXPORT int cuDevicePrimaryCtxRetain(void **context, int device);
EXPORT int cuDevicePrimaryCtxRelease_v2(int device);
EXPORT int cuCtxPushCurrent_v2(void *context);
EXPORT int cuCtxPopCurrent_v2(void **context);
EXPORT int cuModuleLoadData(void **module, const void *image);
EXPORT int cuModuleUnload(void *module);
EXPORT int cuModuleGetFunction(void **function, void *module, const char *name);
EXPORT int cuFuncSetAttribute(void *function, int attribute, int value);
EXPORT int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                          unsigned by, unsigned bz, unsigned shared, void *stream,
                          void **parameters, void **extra);
EXPORT int cuLaunchKernelEx(const LaunchConfig *config, void *function, void **parameters, void **extra);
EXPORT int cuMemAllocAsync(Address *block, size_t size, void *stream);
EXPORT int cuMemFreeAsync(Address block, void *stream);
EXPORT int cuDeviceGetDefaultMemPool(void **pool, int device);
EXPORT int cuMemPoolSetAttribute(void *pool, int attribute, void *value);
EXPORT int cuMemPoolGetAttribute(void *pool, int attribute, void *value);
EXPORT int cuMemPoolTrimTo(void *pool, size_t keep);
EXPORT int cuMemsetD32Async(Address block, unsigned value, size_t count, void *stream);
EXPORT int cuMemcpyHtoD_v2(Address to, const void *from, size_t size);
EXPORT int cuMemcpyDtoH_v2(void *to, Address from, size_t size);
EXPORT int cuMemAllocHost_v2(void **block, size_t size);
EXPORT int cuMemFreeHost(void *block);
EXPORT int cuDeviceCanAccessPeer(int *can, int device, int peer);
EXPORT int cuMemPoolSetAccess(void *pool, const int *access, size_t count);
EXPORT int cuMemcpyPeerAsync(Address to, void *to_context, Address from, void *from_context,
                             size_t size, void *stream);
EXPORT int cuMemcpyDtoDAsync_v2(Address to, Address from, size_t size, void *stream);
EXPORT int cuMemsetD8Async(Address block, unsigned char value, size_t count, void *stream);
EXPORT int cuStreamQuery(void *stream);
EXPORT int cuEventQuery(void *event);
EXPORT int cuStreamSynchronize(void *stream);
EXPORT int cuCtxSynchronize(void);
EXPORT int cuGetErrorString(int result, const char **text);
EXPORT int cuGetExportTable(const void **table, const void *id); /* asked for by NVRTC */
EXPORT int cuCtxGetCurrent(void **context);
EXPORT int cuCtxSetCurrent(void *context);
EXPORT int cuDeviceGetUuid_v2(void *identity, int device);
/* That many calls succeed, and the next fails; -1: all succeed. */
EXPORT void fake_fail_after(int calls);
EXPORT const char *fake_failed(void);   /* the function that did */
EXPORT int fake_blocks(void);
EXPORT int fake_launches(void);
EXPORT int fake_launches_on(int device);
EXPORT int fake_count(const char *what); /* pinned, handles, modules, shared, graphs: now; last_blocks,
                                          * last_threads, last_shared: of a launch; others: calls, "" all */

#define MAX_DEVICES 8
#define MAX_NAMES 128
#define MAX_OWNED 65536

typedef struct Owned {
    const void *what;
    int device;
} Owned;

static int blocks, launches, pinned, beside, handles, modules, overlapped;
static int launches_on[MAX_DEVICES];
static unsigned last_blocks, last_threads, last_shared;
static const char *names[MAX_NAMES]; /* names of functions that were called, with counts */
static int calls[MAX_NAMES];
static int until_failure = -1;
static const char *failed = "";
static int is_emulated; /* all of a process or none */
static int contexts[MAX_DEVICES];
/* Memory, modules, streams, events. For a reused address the latest entry counts. */
static Owned owned[MAX_OWNED];
static int nowned;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local int current[16], depth;

static int
device_now(void)
{
    return depth > 0 ? current[depth - 1] : -1;
}

void
fake_own(const void *what)
{
    pthread_mutex_lock(&lock);
    owned[nowned++ % MAX_OWNED] = (Owned){what, device_now()};
    pthread_mutex_unlock(&lock);
}

/* True if the object belongs to the current device, or was never recorded. */
int
fake_is_internal(const void *what)
{
    int device = device_now();
    pthread_mutex_lock(&lock);
    for (int k = nowned - 1; what && k >= 0 && k > nowned - MAX_OWNED; k--)
        if (owned[k % MAX_OWNED].what == what) {
            device = owned[k % MAX_OWNED].device;
            break;
        }
    pthread_mutex_unlock(&lock);
    return device == device_now();
}

static int
count_devices(void)
{
    const char *text = getenv("FAKE_CUDA_COUNT");
    return text ? atoi(text) : 1;
}

void
fake_called(const char *name)
{
    int k = 0;
    pthread_mutex_lock(&lock);
    while (k < MAX_NAMES - 1 && names[k] && strcmp(names[k], name))
        k++;
    names[k] = name;
    calls[k]++;
    pthread_mutex_unlock(&lock);
}

int
cuInit(unsigned flags)
{
    FAKE_MAY_FAIL;
    (void)flags;
    return fake_fails("cuInit", 999);
}

int
cuDeviceGetCount(int *count)
{
    fake_called(__func__);
    *count = fake_fails("cuDeviceGetCount", 1) ? 0 : count_devices();
    return 0;
}

int
cuDeviceGet(int *device, int ordinal)
{
    FAKE_MAY_FAIL;
    *device = ordinal;
    return ordinal < count_devices() ? 0 : 101;
}

int
cuDeviceGetAttribute(int *value, int attribute, int device)
{
    FAKE_MAY_FAIL;
    (void)device;
    *value = attribute == 75 ? 9 : attribute == 76 ? 0 : 232448;
    return 0;
}

int
cuDeviceGetName(char *name, int length, int device)
{
    FAKE_MAY_FAIL;
    snprintf(name, (size_t)length, "Fake %d", device);
    return 0;
}

int
cuDeviceGetUuid_v2(void *identity, int device)
{
    FAKE_MAY_FAIL;
    memset(identity, 0xc0 + device, 16);
    return 0;
}

int
cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    FAKE_MAY_FAIL;
    (void)device;
    *bytes = (size_t)1 << 34;
    return 0;
}

int
cuMemGetInfo_v2(size_t *left, size_t *all)
{
    FAKE_MAY_FAIL;
    *all = (size_t)1 << 34;
    *left = *all - (size_t)blocks;
    return 0;
}

int
fake_stops(const char *name)
{
    int result = !strcmp(name, "cuMemAllocAsync") ? 2 : 999;
    fake_called(name);
    pthread_mutex_lock(&lock);
    int stops = until_failure == 0;
    until_failure -= until_failure >= 0;
    failed = stops ? name : failed;
    pthread_mutex_unlock(&lock);
    return stops ? result : fake_fails(name, result);
}

void
fake_fail_after(int calls)
{
    until_failure = calls;
}

const char *
fake_failed(void)
{
    return failed;
}

static int
is_loaded(const char *library)
{
    char line[512];
    int is = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        is |= strstr(line, library) != NULL;
    if (maps)
        fclose(maps);
    return is;
}

int
cuDevicePrimaryCtxRetain(void **context, int device)
{
    FAKE_MAY_FAIL;
    *context = &contexts[device];
    for (int ms = 0; getenv("FAKE_CUDA_SLOW") && ms < 20000 && !overlapped; ms++) {
        overlapped = is_loaded("libnvrtc");
        usleep(1000);
    }
    beside += gettid() != getpid(); /* not the process's first thread */
    return fake_fails("cuDevicePrimaryCtxRetain", 999);
}

int
cuDevicePrimaryCtxRelease_v2(int device)
{
    fake_called(__func__);
    (void)device;
    return 0;
}

int
cuCtxPushCurrent_v2(void *context)
{
    FAKE_MAY_FAIL;
    current[depth++] = (int)((int *)context - contexts);
    return 0;
}

int
cuCtxPopCurrent_v2(void **context)
{
    fake_called(__func__);
    *context = &contexts[current[--depth]];
    return 0;
}

int
cuCtxGetCurrent(void **context)
{
    FAKE_MAY_FAIL;
    *context = depth > 0 ? &contexts[current[depth - 1]] : NULL;
    return 0;
}

int
cuCtxSetCurrent(void *context)
{
    FAKE_MAY_FAIL;
    depth = depth > 0 ? depth : 1;
    current[depth - 1] = (int)((int *)context - contexts);
    return 0;
}

int
cuModuleLoadData(void **module, const void *image)
{
    FAKE_MAY_FAIL;
    if (fake_refuses(NULL, 1, 0)) /* it may allocate */
        return 900;
    modules++;
    is_emulated = *(const char *)image == '/';
    *module = is_emulated ? emulator_open(image) : malloc(1); /* two devices may load one image */
    fake_own(*module);
    return !*module ? 1 : fake_fails("cuModuleLoadData", 999);
}

int
cuModuleUnload(void *module)
{
    modules--;
    fake_called(__func__);
    if (is_emulated)
        emulator_close(module);
    else
        free(module);
    return 0;
}

int
cuModuleGetFunction(void **function, void *module, const char *name)
{
    FAKE_MAY_FAIL;
    *function = is_emulated ? emulator_find(module, name) : module;
    if (!fake_is_internal(module))
        return FAKE_WRONG_CONTEXT;
    fake_own(*function);
    return *function ? 0 : 1;
}

int
cuFuncSetAttribute(void *function, int attribute, int value)
{
    FAKE_MAY_FAIL;
    (void)function;
    (void)attribute;
    (void)value;
    return 0;
}

static int memory_key = -1; /* of device memory; -1: the machine has none */

static void
find_key(void)
{
    memory_key = fake_has_keys() ? pkey_alloc(0, PKEY_DISABLE_ACCESS) : -1;
}

/* With the values of its parameters, one after the other. */
typedef struct Launch {
    void *function;
    int device;
    unsigned gx, gy, bx, shared;
    char values[EMULATOR_MAX_BYTES];
} Launch;

static void
run_launch(void *data)
{
    Launch *launch = data;
    FAKE_OPENS_MEMORY;
    pthread_mutex_lock(&lock);
    launches++;
    launches_on[launch->device]++;
    last_blocks = launch->gx;
    last_threads = launch->bx;
    last_shared = launch->shared;
    pthread_mutex_unlock(&lock);
    if (is_emulated)
        emulator_launch(launch->function, launch->gx, launch->gy, launch->bx, launch->shared,
                        launch->values);
}

int
cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
               unsigned bz, unsigned shared, void *stream, void **parameters, void **extra)
{
    FAKE_MAY_FAIL;
    (void)gz, (void)by, (void)bz, (void)extra;
    if (!fake_is_internal(function) || !fake_is_internal(stream))
        return FAKE_WRONG_CONTEXT;
    if (gx == 0 || gy == 0 || bx == 0 || bx > 1024)
        return 1;
    Launch launch = {function, device_now(), gx, gy, bx, shared, {0}};
    if (is_emulated)
        emulator_pack(function, parameters, launch.values, sizeof launch.values);
    if (!fake_take_down(stream, run_launch, &launch, sizeof launch))
        run_launch(&launch);
    return fake_fails("cuLaunchKernel", 999);
}

/* Kernels run one after another. */
int
cuLaunchKernelEx(const LaunchConfig *config, void *function, void **parameters, void **extra)
{
    const unsigned *grid = config->grid, *block = config->block;
    return cuLaunchKernel(function, grid[0], grid[1], grid[2], block[0], block[1], block[2], config->shared,
                          config->stream, parameters, extra);
}

/* Memory that nothing has written: every float is a NaN. The page before a block has the size of the mapping. */
void *
fake_memory_new(size_t size)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), all = page + (size + page) / page * page;
    char *at = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (at == MAP_FAILED)
        return NULL;
    pthread_once(&once, find_key);
    *(size_t *)(void *)at = all;
    memset(at + page, 0xff, size);
    if (memory_key >= 0 && pkey_mprotect(at + page, all - page, PROT_READ | PROT_WRITE, memory_key) < 0)
        memory_key = -1;
    return at + page;
}

void
fake_memory_free(void *block)
{
    char *at = block ? (char *)block - sysconf(_SC_PAGESIZE) : NULL;
    if (at)
        munmap(at, *(size_t *)(void *)at);
}

int
cuMemAllocAsync(Address *block, size_t size, void *stream)
{
    FAKE_MAY_FAIL;
    (void)stream;
    if (fake_fails("cuMemAllocAsync", 2))
        return 2;
    if (fake_is_capturing(stream))
        return fake_graph_allocate(block, size, stream);
    *block = (Address)(size_t)fake_memory_new(size);
    fake_own((void *)(size_t)*block);
    blocks++;
    return *block ? 0 : 2;
}

int
cuMemFreeAsync(Address block, void *stream)
{
    fake_called(__func__);
    if (!fake_is_internal((void *)(size_t)block) || !fake_is_internal(stream))
        return FAKE_WRONG_CONTEXT;
    if (fake_is_capturing(stream))
        return fake_graph_free(block, stream);
    fake_memory_free((void *)(size_t)block);
    blocks--;
    return 0;
}

int
cuDeviceGetDefaultMemPool(void **pool, int device)
{
    FAKE_MAY_FAIL;
    (void)device;
    *pool = &blocks;
    return 0;
}

int
cuMemPoolSetAttribute(void *pool, int attribute, void *value)
{
    FAKE_MAY_FAIL;
    (void)pool, (void)attribute, (void)value;
    return 0;
}

int
cuMemPoolGetAttribute(void *pool, int attribute, void *value)
{
    FAKE_MAY_FAIL;
    (void)pool, (void)attribute;
    *(unsigned long long *)value = (unsigned long long)blocks << 21;
    return 0;
}

int
cuMemPoolTrimTo(void *pool, size_t keep)
{
    FAKE_MAY_FAIL;
    (void)pool, (void)keep;
    return 0;
}

typedef struct Words {
    unsigned *first, value;
    size_t count;
} Words;

static void
set_words(void *data)
{
    const Words *words = data;
    FAKE_OPENS_MEMORY;
    for (size_t k = 0; k < words->count; k++)
        words->first[k] = words->value;
}

int
cuMemsetD32Async(Address block, unsigned value, size_t count, void *stream)
{
    FAKE_MAY_FAIL;
    Words words = {(unsigned *)(size_t)block, value, count};
    if (!fake_take_down(stream, set_words, &words, sizeof words))
        set_words(&words);
    return 0;
}

int
cuMemsetD8Async(Address block, unsigned char value, size_t count, void *stream)
{
    FAKE_MAY_FAIL;
    (void)stream;
    FAKE_OPENS_MEMORY;
    memset((void *)(size_t)block, value, count);
    return 0;
}

int
cuStreamQuery(void *stream)
{
    FAKE_MAY_FAIL;
    return fake_is_internal(stream) ? 0 : FAKE_WRONG_CONTEXT;
}

int
cuEventQuery(void *event)
{
    FAKE_MAY_FAIL;
    return fake_is_internal(event) ? 0 : FAKE_WRONG_CONTEXT;
}

int
cuMemcpyHtoD_v2(Address to, const void *from, size_t size)
{
    FAKE_MAY_FAIL;
    if (fake_refuses(NULL, 1, 0))
        return 900;
    FAKE_OPENS_MEMORY;
    memcpy((void *)(size_t)to, from, size);
    return fake_fails("cuMemcpyHtoD_v2", 999);
}

int
cuMemcpyDtoH_v2(void *to, Address from, size_t size)
{
    FAKE_MAY_FAIL;
    if (fake_refuses(NULL, 1, 0))
        return 900;
    FAKE_OPENS_MEMORY;
    memcpy(to, (const void *)(size_t)from, size);
    return 0;
}

int
cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t size, void *stream)
{
    FAKE_MAY_FAIL;
    return fake_is_internal(stream) ? cuMemcpyHtoD_v2(to, from, size) : FAKE_WRONG_CONTEXT;
}

int
cuMemcpyDtoHAsync_v2(void *to, Address from, size_t size, void *stream)
{
    FAKE_MAY_FAIL;
    return fake_is_internal(stream) ? cuMemcpyDtoH_v2(to, from, size) : FAKE_WRONG_CONTEXT;
}

int
cuMemAllocHost_v2(void **block, size_t size)
{
    FAKE_MAY_FAIL;
    if (fake_refuses(NULL, 1, 0))
        return 900;
    *block = malloc(size);
    pinned++;
    return fake_fails("cuMemAllocHost_v2", 2);
}

int
cuMemFreeHost(void *block)
{
    fake_called(__func__);
    free(block);
    pinned--;
    return 0;
}

int
cuDeviceCanAccessPeer(int *can, int device, int peer)
{
    FAKE_MAY_FAIL;
    *can = device != peer && !getenv("FAKE_CUDA_NO_PEERS");
    return 0;
}

int
cuMemPoolSetAccess(void *pool, const int *access, size_t count)
{
    FAKE_MAY_FAIL;
    (void)pool;
    return access[0] == 1 && access[2] == 3 && count == 1 ? 0 : 1;
}

int
cuMemcpyPeerAsync(Address to, void *to_context, Address from, void *from_context, size_t size,
                  void *stream)
{
    FAKE_MAY_FAIL;
    int device = device_now(), is_right = fake_is_internal(stream) && fake_is_internal((void *)(size_t)to);
    is_right &= to_context == &contexts[device];
    current[depth - 1] = (int)((int *)from_context - contexts);
    is_right &= fake_is_internal((void *)(size_t)from);
    current[depth - 1] = device;
    if (!is_right)
        return FAKE_WRONG_CONTEXT;
    FAKE_OPENS_MEMORY;
    memcpy((void *)(size_t)to, (const void *)(size_t)from, size);
    return fake_fails("cuMemcpyPeerAsync", 999);
}

int
cuMemcpyDtoDAsync_v2(Address to, Address from, size_t size, void *stream)
{
    FAKE_MAY_FAIL;
    /* A real driver would record it, but cinductor does not do this. */
    if (fake_refuses(stream, 0, 0))
        return 900;
    if (!fake_is_internal(stream) || !fake_is_internal((void *)(size_t)to))
        return FAKE_WRONG_CONTEXT;
    FAKE_OPENS_MEMORY;
    memcpy((void *)(size_t)to, (const void *)(size_t)from, size);
    return 0;
}

int
cuStreamSynchronize(void *stream)
{
    FAKE_MAY_FAIL;
    if (fake_refuses(stream, 0, 0))
        return 900;
    return !fake_is_internal(stream) ? FAKE_WRONG_CONTEXT : fake_fails("cuStreamSynchronize", 999);
}

int
cuCtxSynchronize(void)
{
    FAKE_MAY_FAIL;
    if (fake_refuses(NULL, 0, 1))
        return 900;
    return fake_fails("cuStreamSynchronize", 999);
}

int
cuStreamCreate(void **stream, unsigned flags)
{
    FAKE_MAY_FAIL;
    (void)flags;
    *stream = malloc(1);
    handles++;
    fake_own(*stream);
    return fake_fails("cuStreamCreate", 999);
}

int
cuStreamDestroy_v2(void *stream)
{
    fake_called(__func__);
    int result = fake_is_internal(stream) ? 0 : FAKE_WRONG_CONTEXT;
    free(stream);
    handles--;
    return result;
}

int
cuEventCreate(void **event, unsigned flags)
{
    FAKE_MAY_FAIL;
    return cuStreamCreate(event, flags);
}

int
cuEventDestroy_v2(void *event)
{
    fake_called(__func__);
    return cuStreamDestroy_v2(event);
}

int
cuEventRecord(void *event, void *stream)
{
    FAKE_MAY_FAIL;
    if (fake_refuses(stream, 0, 0))
        return 900;
    return fake_is_internal(event) && fake_is_internal(stream) ? 0 : FAKE_WRONG_CONTEXT;
}

int
cuStreamWaitEvent(void *stream, void *event, unsigned flags)
{
    FAKE_MAY_FAIL;
    (void)event, (void)flags; /* it may be another device's */
    return fake_is_internal(stream) ? 0 : FAKE_WRONG_CONTEXT;
}

int
cuEventSynchronize(void *event)
{
    FAKE_MAY_FAIL;
    return fake_is_internal(event) ? 0 : FAKE_WRONG_CONTEXT;
}

int
cuEventElapsedTime(float *ms, void *first, void *second)
{
    FAKE_MAY_FAIL;
    *ms = 0.5f;
    return fake_is_internal(first) && fake_is_internal(second) ? 0 : FAKE_WRONG_CONTEXT;
}

int
cuGetErrorString(int result, const char **text)
{
    fake_called(__func__);
    *text = result == 2 ? "out of memory" : "unknown error";
    return 0;
}

int
cuGetExportTable(const void **table, const void *id)
{
    fake_called(__func__);
    (void)id;
    *table = NULL;
    return 801; /* not supported */
}

int
fake_blocks(void)
{
    return blocks;
}

int
fake_launches(void)
{
    return launches;
}

int
fake_launches_on(int device)
{
    return launches_on[device];
}

int
fake_count(const char *what)
{
    int count = 0;
    if (!strcmp(what, "pinned"))
        return pinned;
    if (!strcmp(what, "beside"))
        return beside;
    if (!strcmp(what, "overlapped"))
        return overlapped;
    if (!strcmp(what, "handles"))
        return handles;
    if (!strcmp(what, "modules"))
        return modules;
    if (!strcmp(what, "last_blocks"))
        return (int)last_blocks;
    if (!strcmp(what, "last_threads"))
        return (int)last_threads;
    if (!strcmp(what, "last_shared"))
        return (int)last_shared;
    if (!strcmp(what, "graphs"))
        return fake_graphs();
    if (!strcmp(what, "nodes"))
        return fake_memory_nodes();
    if (!strcmp(what, "shared"))
        return fake_shared();
    for (int k = 0; k < MAX_NAMES && names[k]; k++)
        if (!*what || !strcmp(names[k], what))
            count += calls[k];
    return count;
}
