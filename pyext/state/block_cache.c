/* Memory of large results: reuses freed blocks, because page faults of fresh memory cost as much
 * as the arithmetic on it.
 *
 * NumPy calls a handler to allocate and free the memory of each array. This handler takes blocks
 * from the runtime's allocator, which caches some; it is only installed while a result is made.
 * Arrays hold a reference to the handler, and so to the allocator, which live as long as the
 * last of them. A header before the data stores the size of the block. */
#include "state/array.h"

#include "host/alloc.h"

enum { HEADER = 64 }; /* bytes, so that the data keep the alignment of the block */

typedef struct Warm {
    PyDataMem_Handler handler;
    CiAllocator *allocator;
} Warm;

static void *
take(void *ctx, size_t size)
{
    Warm *warm = ctx;
    char *block =
        size > SIZE_MAX - HEADER ? NULL : ci_allocator_take(warm->allocator, size + HEADER);

    if (block == NULL)
        return NULL;
    *(size_t *)(void *)block = size;
    return block + HEADER;
}

static void
give(void *ctx, void *memory, size_t size)
{
    Warm *warm = ctx;
    char *block = (char *)memory - HEADER;

    (void)size;
    if (memory != NULL)
        ci_allocator_give(warm->allocator, block, *(size_t *)(void *)block + HEADER);
}

static void *
take_zeros(void *ctx, size_t count, size_t size)
{
    void *memory = size && count > SIZE_MAX / size ? NULL : take(ctx, count * size);

    return memory == NULL ? NULL : memset(memory, 0, count * size);
}

static void *
move(void *ctx, void *memory, size_t size)
{
    void *other = take(ctx, size);

    if (other != NULL && memory != NULL) {
        size_t before = *(size_t *)(void *)((char *)memory - HEADER);
        memcpy(other, memory, before < size ? before : size);
        give(ctx, memory, before);
    }
    return other;
}

static void
close_warm(PyObject *capsule)
{
    Warm *warm = PyCapsule_GetPointer(capsule, "mem_handler");

    ci_allocator_close(warm->allocator);
    PyMem_RawFree(warm);
}

PyObject *
cx_warm_handler(CiAllocator *allocator)
{
    Warm *warm = PyMem_RawCalloc(1, sizeof *warm);

    if (warm == NULL)
        return PyErr_NoMemory();
    PyDataMem_Handler handler = {.name = "cinductor", .version = 1};
    handler.allocator = (PyDataMemAllocator){warm, take, take_zeros, move, give};
    warm->handler = handler;
    warm->allocator = allocator;
    PyObject *capsule = PyCapsule_New(warm, "mem_handler", close_warm);
    if (capsule == NULL)
        PyMem_RawFree(warm);
    return capsule;
}
