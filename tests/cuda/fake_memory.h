/* Device memory of the fake driver. The host can neither read nor write it, as on a GPU: where the processor has
 * protection keys (pkeys(7)), such an access is a segmentation fault. Functions that stand for the device's own work
 * begin with FAKE_OPENS_MEMORY, which allows the access to this thread until they return. */
#ifndef FAKE_MEMORY_H
#define FAKE_MEMORY_H

#if defined(__x86_64__)
#include <cpuid.h>

static inline int
fake_has_keys(void)
{
    unsigned a = 0, b = 0, c = 0, d = 0;
    static int has = -1;
    if (has < 0)
        has = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (c >> 4 & 1);
    return has;
}

static inline void
fake_close_memory(const unsigned *before)
{
    if (fake_has_keys())
        __asm__ volatile(".byte 0x0f, 0x01, 0xef" : : "a"(*before), "c"(0), "d"(0) : "memory"); /* wrpkru */
}

static inline unsigned
fake_open_memory(void)
{
    unsigned before = 0, high;
    const unsigned all = 0;
    if (fake_has_keys())
        __asm__ volatile(".byte 0x0f, 0x01, 0xee" : "=a"(before), "=d"(high) : "c"(0)); /* rdpkru */
    fake_close_memory(&all);
    return before;
}
#else
static inline void
fake_close_memory(const unsigned *before)
{
    (void)before;
}

static inline unsigned
fake_open_memory(void)
{
    return 0;
}
#endif

#define FAKE_OPENS_MEMORY                                                                          \
    __attribute__((cleanup(fake_close_memory))) unsigned fake_before_ = fake_open_memory();        \
    (void)fake_before_

#endif
