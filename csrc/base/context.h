/* A context: the arena that owns everything one compilation makes, and its way to fail.
 *
 * Memory: `ci_new` never returns NULL and nothing is freed singly; closing the context frees all.
 * Failure: `ci_fail` does not return. It lands in `ci_protect`, the only setjmp of the project.
 * Whatever is not memory (files, children, handles) is owned by the caller of `ci_protect`, who
 * closes it, failed or not. A context belongs to one thread at a time. */
#ifndef CI_BASE_CONTEXT_H
#define CI_BASE_CONTEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define CI_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#else
#define CI_PRINTF(fmt, first)
#endif

typedef enum CiStatus {
    CI_OK = 0,
#define ERROR(name, python, text) CI_ERR_##name,
#include "base/errors.def"
#undef ERROR
    CI_ERR_COUNT
} CiStatus;

typedef struct CiContext CiContext;

/* Returns NULL when there is no memory; the caller closes it. */
CiContext *ci_context_open(void);
void ci_context_close(CiContext *ctx);
/* The text of the last failure; never NULL. Valid until the next failure or close. */
const char *ci_context_message(const CiContext *ctx);
/* For tests: the n-th allocation from now fails once (0 = never). */
void ci_context_fail_allocation(CiContext *ctx, long n);

/* The context's table of interned strings; map.c keeps it. */
struct CiMap **ci_context_strings(CiContext *ctx);

/* Zeroed, aligned to 16; fails with CI_ERR_MEMORY instead of returning NULL. */
void *ci_new(CiContext *ctx, size_t size);
/* As realloc inside the arena: the old block stays until the context closes. */
void *ci_grow(CiContext *ctx, const void *old, size_t old_size, size_t new_size);
char *ci_copy_text(CiContext *ctx, const char *text, size_t length);
char *ci_format(CiContext *ctx, const char *format, ...) CI_PRINTF(2, 3);

#define CI_NEW(ctx, type) ((type *)ci_new(ctx, sizeof(type)))
#define CI_NEW_ARRAY(ctx, type, count) ((type *)ci_new(ctx, sizeof(type) * (size_t)(count)))

/* Appends to a growing array held as three lvalues: pointer, count, capacity. */
#define CI_PUSH(ctx, array, count, capacity, item)                                                 \
    do {                                                                                           \
        if ((count) == (capacity)) {                                                               \
            int ci_new_capacity_ = (capacity) ? 2 * (int)(capacity) : 8;                           \
            (array) = ci_grow(ctx, (array), sizeof *(array) * (size_t)(count),                     \
                              sizeof *(array) * (size_t)ci_new_capacity_);                         \
            (capacity) = ci_new_capacity_;                                                         \
        }                                                                                          \
        (array)[(count)++] = (item);                                                               \
    } while (0)

_Noreturn void ci_fail(CiContext *ctx, CiStatus status, const char *format, ...) CI_PRINTF(3, 4);
/* An invariant that must hold in release builds too. */
#define CI_REQUIRE(ctx, condition)                                                                 \
    do {                                                                                           \
        if (!(condition))                                                                          \
            ci_fail(ctx, CI_ERR_INTERNAL, "%s:%d: %s", __FILE__, __LINE__, #condition);            \
    } while (0)

/* Runs body(ctx, arg); returns CI_OK, or the status that ci_fail was given. Calls may nest. */
CiStatus ci_protect(CiContext *ctx, void (*body)(CiContext *ctx, void *arg), void *arg);

const char *ci_status_name(CiStatus status); /* "SHAPE" */
/* The beginning of the last line of a compiler's message, before the path of the source. */
#define CI_SOURCE_LINE "source: "
const char *ci_status_text(CiStatus status);

/* A location in the user's source; file is never NULL ("" when unknown) and outlives its context.
 * quiet: floating-point flags of operations there that are not reported.
 * call: 0, or for operations of a call that is one of a compiled function in the original: twice the nanoseconds that this
 * takes, plus 1 in every other call, which tells calls in a row apart. */
typedef struct CiLoc {
    const char *file;
    int line;
    unsigned quiet : 16, call : 16;
} CiLoc;

#endif
