/* Memory shared between processes in the fake CUDA driver. A block is an unnamed file; another
 * process opens it through /proc while the process that made it is alive. */
#define _GNU_SOURCE
#include "fake_driver.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define MAX_SHARED 256
#define GONE 201

typedef unsigned long long Address;

typedef struct Name {
    char bytes[64];
} Name;

EXPORT int cuMemAlloc_v2(Address *block, size_t size);
EXPORT int cuMemFree_v2(Address block);
EXPORT int cuMemGetAddressRange_v2(Address *block, size_t *size, Address inside);
EXPORT int cuIpcGetMemHandle(Name *name, Address block);
EXPORT int cuIpcOpenMemHandle_v2(Address *block, Name name, unsigned flags);
EXPORT int cuIpcCloseMemHandle(Address block);

/* A block that this process made (it has a file) or opened (no file). */
typedef struct Shared {
    Address at;
    size_t size;
    int file;
} Shared;

static Shared all[MAX_SHARED];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int
enter(Address at, size_t size, int file)
{
    int result = GONE;
    pthread_mutex_lock(&lock);
    for (int k = 0; k < MAX_SHARED && result; k++)
        if (!all[k].at) {
            all[k] = (Shared){at, size, file};
            result = 0;
        }
    pthread_mutex_unlock(&lock);
    return result;
}

static Shared *
find(Address inside)
{
    for (int k = 0; k < MAX_SHARED; k++)
        if (all[k].at && inside >= all[k].at && inside < all[k].at + all[k].size)
            return &all[k];
    return NULL;
}

static int
map_file(int file, size_t size, Address *block)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    *block = at == MAP_FAILED ? 0 : (Address)(size_t)at;
    return *block ? 0 : 2;
}

static int
leave(Address block)
{
    Shared *found = find(block);
    if (!found)
        return 1;
    munmap((void *)(size_t)found->at, found->size);
    if (found->file >= 0)
        close(found->file);
    *found = (Shared){0};
    return 0;
}

int
fake_shared(void)
{
    int count = 0;
    for (int k = 0; k < MAX_SHARED; k++)
        count += all[k].at != 0;
    return count;
}

int
cuMemAlloc_v2(Address *block, size_t size)
{
    FAKE_MAY_FAIL;
    if (fake_refuses(NULL, 1, 0))
        return 900;
    int file = memfd_create("fake_cuda", MFD_CLOEXEC);
    *block = 0;
    if (fake_fails(__func__, 2) || file < 0 || ftruncate(file, (off_t)size) ||
        map_file(file, size, block) || enter(*block, size, file)) {
        close(file);
        return 2;
    }
    fake_own((void *)(size_t)*block);
    return 0;
}

int
cuMemFree_v2(Address block)
{
    fake_called(__func__);
    return leave(block);
}

int
cuMemGetAddressRange_v2(Address *block, size_t *size, Address inside)
{
    FAKE_MAY_FAIL;
    const Shared *found = find(inside);
    if (!found)
        return 1;
    *block = found->at;
    *size = found->size;
    return fake_fails(__func__, 999);
}

int
cuIpcGetMemHandle(Name *name, Address block)
{
    FAKE_MAY_FAIL;
    const Shared *found = find(block);
    struct stat is;
    if (!found || found->file < 0 || fstat(found->file, &is))
        return 1;
    memset(name, 0, sizeof *name);
    snprintf(name->bytes, sizeof name->bytes, "/proc/%ld/fd/%d %llu", (long)getpid(), found->file,
             (unsigned long long)is.st_ino);
    return fake_fails(__func__, 999);
}

int
cuIpcOpenMemHandle_v2(Address *block, Name name, unsigned flags)
{
    char path[40];
    unsigned long long number = 0;
    struct stat is;
    (void)flags;
    FAKE_MAY_FAIL;
    if (fake_fails(__func__, 999) || memchr(name.bytes, 0, sizeof name.bytes) == NULL ||
        sscanf(name.bytes, "%39s %llu", path, &number) != 2)
        return GONE;
    int file = open(path, O_RDWR | O_CLOEXEC), result = GONE;
    if (file >= 0 && !fstat(file, &is) && is.st_ino == number)
        result = map_file(file, (size_t)is.st_size, block);
    if (!result)
        result = enter(*block, (size_t)is.st_size, -1);
    if (file >= 0)
        close(file);
    if (!result)
        fake_own((void *)(size_t)*block);
    return result;
}

int
cuIpcCloseMemHandle(Address block)
{
    fake_called(__func__);
    return leave(block);
}
