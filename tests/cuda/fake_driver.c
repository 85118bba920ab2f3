/* A CUDA driver without a card, for tests of everything around kernels: memory is the host's, a
 * launch of real code does nothing but count, one of the fake NVRTC's is emulated. $FAKE_CUDA_FAIL
 * names a function that fails (out of memory for allocation, else an unknown error). */
#include "emulator.h"

#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef unsigned long long Address;

static int
fails(const char *name, int result)
{
    const char *chosen = getenv("FAKE_CUDA_FAIL");
    return chosen && !strcmp(chosen, name) ? result : 0;
}

EXPORT int cuInit(unsigned flags);
EXPORT int cuDeviceGetCount(int *count);
EXPORT int cuDeviceGet(int *device, int ordinal);
EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device);
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
EXPORT int cuMemAllocAsync(Address *block, size_t size, void *stream);
EXPORT int cuMemFreeAsync(Address block, void *stream);
EXPORT int cuDeviceGetDefaultMemPool(void **pool, int device);
EXPORT int cuMemPoolSetAttribute(void *pool, int attribute, void *value);
EXPORT int cuMemsetD32Async(Address block, unsigned value, size_t count, void *stream);
EXPORT int cuMemcpyHtoD_v2(Address to, const void *from, size_t size);
EXPORT int cuMemcpyDtoH_v2(void *to, Address from, size_t size);
EXPORT int cuStreamSynchronize(void *stream);
EXPORT int cuGetErrorString(int result, const char **text);
EXPORT int cuGetExportTable(const void **table, const void *id); /* asked for by NVRTC */
EXPORT int fake_blocks(void);
EXPORT int fake_launches(void);

static int blocks, launches;
static int is_emulated; /* all of a process or none */

int
cuInit(unsigned flags)
{
    (void)flags;
    return fails("cuInit", 999);
}

int
cuDeviceGetCount(int *count)
{
    *count = fails("cuDeviceGetCount", 1) ? 0 : 1;
    return 0;
}

int
cuDeviceGet(int *device, int ordinal)
{
    *device = ordinal;
    return 0;
}

int
cuDeviceGetAttribute(int *value, int attribute, int device)
{
    (void)device;
    *value = attribute == 75 ? 9 : attribute == 76 ? 0 : 232448;
    return 0;
}

int
cuDevicePrimaryCtxRetain(void **context, int device)
{
    (void)device;
    *context = &blocks;
    return fails("cuDevicePrimaryCtxRetain", 999);
}

int
cuDevicePrimaryCtxRelease_v2(int device)
{
    (void)device;
    return 0;
}

int
cuCtxPushCurrent_v2(void *context)
{
    (void)context;
    return 0;
}

int
cuCtxPopCurrent_v2(void **context)
{
    *context = &blocks;
    return 0;
}

int
cuModuleLoadData(void **module, const void *image)
{
    is_emulated = *(const char *)image == '/';
    *module = is_emulated ? emulator_open(image) : (void *)image;
    return !*module ? 1 : fails("cuModuleLoadData", 999);
}

int
cuModuleUnload(void *module)
{
    if (is_emulated)
        emulator_close(module);
    return 0;
}

int
cuModuleGetFunction(void **function, void *module, const char *name)
{
    *function = is_emulated ? emulator_find(module, name) : module;
    return *function ? 0 : 1;
}

int
cuFuncSetAttribute(void *function, int attribute, int value)
{
    (void)function;
    (void)attribute;
    (void)value;
    return 0;
}

int
cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
               unsigned bz, unsigned shared, void *stream, void **parameters, void **extra)
{
    (void)gz, (void)by, (void)bz, (void)stream, (void)extra;
    launches++;
    if (gx == 0 || gy == 0 || bx == 0 || bx > 1024)
        return 1;
    if (is_emulated)
        emulator_launch(function, gx, gy, bx, shared, parameters);
    return fails("cuLaunchKernel", 999);
}

int
cuMemAllocAsync(Address *block, size_t size, void *stream)
{
    (void)stream;
    if (fails("cuMemAllocAsync", 2))
        return 2;
    *block = (Address)(size_t)calloc(1, size);
    blocks++;
    return *block ? 0 : 2;
}

int
cuMemFreeAsync(Address block, void *stream)
{
    (void)stream;
    free((void *)(size_t)block);
    blocks--;
    return 0;
}

int
cuDeviceGetDefaultMemPool(void **pool, int device)
{
    (void)device;
    *pool = &blocks;
    return 0;
}

int
cuMemPoolSetAttribute(void *pool, int attribute, void *value)
{
    (void)pool, (void)attribute, (void)value;
    return 0;
}

int
cuMemsetD32Async(Address block, unsigned value, size_t count, void *stream)
{
    (void)stream;
    for (size_t k = 0; k < count; k++)
        ((unsigned *)(size_t)block)[k] = value;
    return 0;
}

int
cuMemcpyHtoD_v2(Address to, const void *from, size_t size)
{
    memcpy((void *)(size_t)to, from, size);
    return fails("cuMemcpyHtoD_v2", 999);
}

int
cuMemcpyDtoH_v2(void *to, Address from, size_t size)
{
    memcpy(to, (const void *)(size_t)from, size);
    return 0;
}

int
cuStreamSynchronize(void *stream)
{
    (void)stream;
    return fails("cuStreamSynchronize", 999);
}

int
cuGetErrorString(int result, const char **text)
{
    *text = result == 2 ? "out of memory" : "unknown error";
    return 0;
}

int
cuGetExportTable(const void **table, const void *id)
{
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
