/* The arena and the landing of failures.
 *
 * Chunks come zeroed from calloc and are handed out front to back, so memory is zeroed without
 * being touched twice. A request that would leave most of a chunk unused gets a chunk of its own.
 * Under AddressSanitizer what was not handed out is poisoned, and blocks are kept 16 bytes apart.
 */
#include "base/context.h"

#include "base/format.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POISONING 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define POISONING 1
#endif

#ifdef POISONING
#include <sanitizer/asan_interface.h>
#define POISON(at, size) __asan_poison_memory_region((at), (size))
#define UNPOISON(at, size) __asan_unpoison_memory_region((at), (size))
#define GAP 16
#else
#define POISON(at, size) ((void)0)
#define UNPOISON(at, size) ((void)0)
#define GAP 0
#endif

#define ALIGNMENT 16
#define FIRST_CHUNK ((size_t)16 << 10)
#define LAST_CHUNK ((size_t)1 << 20)

typedef struct Chunk {
    struct Chunk *next;
    size_t used, size; /* of data */
    _Alignas(ALIGNMENT) char data[];
} Chunk;

typedef struct Landing {
    jmp_buf at;
    struct Landing *outer;
} Landing;

struct CiContext {
    Chunk *chunks; /* the first is the one being filled */
    size_t next_chunk;
    long fail_at;
    Landing *landing;
    CiStatus status;
    struct CiMap *strings;
    char message[4096];
};

static const struct {
    const char *name, *text;
} STATUSES[CI_ERR_COUNT] = {
    [CI_OK] = {"OK", "no error"},
#define ERROR(name, python, text) [CI_ERR_##name] = {#name, text},
#include "base/errors.def"
#undef ERROR
};

CiContext *
ci_context_open(void)
{
    CiContext *ctx = calloc(1, sizeof *ctx);
    if (ctx)
        ctx->next_chunk = FIRST_CHUNK;
    return ctx;
}

void
ci_context_close(CiContext *ctx)
{
    if (!ctx)
        return;
    for (Chunk *chunk = ctx->chunks; chunk;) {
        Chunk *next = chunk->next;
        UNPOISON(chunk->data, chunk->size);
        free(chunk);
        chunk = next;
    }
    free(ctx);
}

const char *
ci_context_message(const CiContext *ctx)
{
    return ctx->message;
}

void
ci_context_fail_allocation(CiContext *ctx, long n)
{
    ctx->fail_at = n;
}

struct CiMap **
ci_context_strings(CiContext *ctx)
{
    return &ctx->strings;
}

/* A chunk with space for size bytes, or NULL. A large request gets a chunk after the current one,
 * whose remaining space is kept for small requests. */
static Chunk *
chunk_for(CiContext *ctx, size_t size)
{
    Chunk *head = ctx->chunks;
    if (head && head->size - head->used >= size)
        return head;
    bool own = size > ctx->next_chunk / 4;
    size_t space = own ? size : ctx->next_chunk;
    Chunk *chunk = calloc(1, sizeof *chunk + space);
    if (!chunk)
        return NULL;
    chunk->size = space;
    POISON(chunk->data, space);
    if (own && head) {
        chunk->next = head->next;
        head->next = chunk;
    } else {
        chunk->next = head;
        ctx->chunks = chunk;
    }
    if (!own && ctx->next_chunk < LAST_CHUNK)
        ctx->next_chunk *= 2;
    return chunk;
}

void *
ci_new(CiContext *ctx, size_t size)
{
    bool refused = ctx->fail_at > 0 && --ctx->fail_at == 0;
    size_t rounded = ((size ? size : 1) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT + GAP;
    Chunk *chunk = refused || size > PTRDIFF_MAX / 2 ? NULL : chunk_for(ctx, rounded);
    if (!chunk)
        ci_fail(ctx, CI_ERR_MEMORY, "out of memory: cannot allocate %zu bytes", size);
    void *block = chunk->data + chunk->used;
    chunk->used += rounded;
    UNPOISON(block, size);
    return block;
}

void *
ci_grow(CiContext *ctx, const void *old, size_t old_size, size_t new_size)
{
    void *block = ci_new(ctx, new_size);
    if (old && old_size)
        memcpy(block, old, old_size < new_size ? old_size : new_size);
    return block;
}

char *
ci_copy_text(CiContext *ctx, const char *text, size_t length)
{
    char *copy = ci_new(ctx, length + 1);
    if (length)
        memcpy(copy, text, length);
    return copy;
}

char *
ci_format(CiContext *ctx, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = ci_vsnprintf(NULL, 0, format, args);
    va_end(args);
    /* Freed of its va_list before anything can jump. */
    char small[256];
    if (length >= 0 && (size_t)length < sizeof small) {
        ci_vsnprintf(small, sizeof small, format, again);
        va_end(again);
        return ci_copy_text(ctx, small, (size_t)length);
    }
    char *text = length < 0 ? NULL : ci_new(ctx, (size_t)length + 1);
    if (text)
        ci_vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    CI_REQUIRE(ctx, text != NULL);
    return text;
}

void
ci_fail(CiContext *ctx, CiStatus status, const char *format, ...)
{
    /* Through a buffer: an argument may be the message of the failure before. */
    char message[sizeof ctx->message];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (length <= 0)
        snprintf(message, sizeof message, "%s", ci_status_text(status));
    memcpy(ctx->message, message, sizeof message);
    ctx->status = status;
    if (!ctx->landing) {
        fprintf(stderr, "cinductor: failure outside ci_protect: %s: %s\n", ci_status_name(status),
                message);
        abort();
    }
    longjmp(ctx->landing->at, 1);
}

CiStatus
ci_protect(CiContext *ctx, void (*body)(CiContext *ctx, void *arg), void *arg)
{
    Landing landing;
    landing.outer = ctx->landing;
    ctx->landing = &landing;
    CiStatus status = CI_OK;
    if (setjmp(landing.at) == 0)
        body(ctx, arg);
    else
        status = ctx->status;
    ctx->landing = landing.outer;
    return status;
}

const char *
ci_status_name(CiStatus status)
{
    return (unsigned)status < CI_ERR_COUNT ? STATUSES[status].name : "UNKNOWN";
}

const char *
ci_status_text(CiStatus status)
{
    return (unsigned)status < CI_ERR_COUNT ? STATUSES[status].text : "unknown status";
}
