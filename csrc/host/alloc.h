/* Memory of intermediates while a program runs: 64-byte aligned blocks with a small cache of warm
 * ones per size class, because fresh pages cost three times the arithmetic done on them.
 * Thread-safe; owned by its opener. */
#ifndef CI_HOST_ALLOC_H
#define CI_HOST_ALLOC_H

#include <stddef.h>

typedef struct CiAllocator CiAllocator;
CiAllocator *ci_allocator_open(size_t keep_bytes); /* keeps at most that much warm */
void ci_allocator_close(CiAllocator *allocator);
void *ci_allocator_take(CiAllocator *allocator,
                        size_t size); /* NULL without memory; size 0 gives a valid pointer */
void ci_allocator_give(CiAllocator *allocator, void *block, size_t size);
void ci_allocator_trim(CiAllocator *allocator);

#endif
