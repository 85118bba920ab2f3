/* Copies of stencils, with their holes filled. */
#include "device/stencil/stencil.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int
compare_names(const void *name, const void *stencil)
{
    return strcmp(name, ((const CiStencil *)stencil)->name);
}

const CiStencil *
ci_stencil_find(const char *name)
{
    return bsearch(name, ci_stencils, (size_t)ci_stencil_count, sizeof *ci_stencils, compare_names);
}

static void
append(CiStencilCode *code, const unsigned char *bytes, int count)
{
    if (code->size + count > code->capacity) {
        int capacity = 2 * (code->size + count) + 4096;
        code->bytes = ci_grow(code->ctx, code->bytes, (size_t)code->size, (size_t)capacity);
        code->capacity = capacity;
    }
    memcpy(code->bytes + code->size, bytes, (size_t)count);
    code->size += count;
}

CiStencilCode *
ci_stencil_code_new(CiContext *ctx)
{
    CiStencilCode *code = CI_NEW(ctx, CiStencilCode);
    code->ctx = ctx;
    append(code, ci_stencil_pool, ci_stencil_pool_bytes);
    return code;
}

/* ---- labels ---- */

int
ci_stencil_label(CiStencilCode *code)
{
    CI_PUSH(code->ctx, code->labels, code->nlabels, code->caplabels, -1);
    return code->nlabels - 1;
}

void
ci_stencil_location_label(CiStencilCode *code, int label)
{
    code->labels[label] = code->size;
}

/* A jump counts from the end of its own four bytes. */
static void
enter_distance(CiStencilCode *code, int place, int to)
{
    int32_t distance = to - (place + 4);
    memcpy(code->bytes + place, &distance, sizeof distance);
}

void
ci_stencil_enter_jumps(CiStencilCode *code)
{
    for (int k = 0; k < code->njumps; k++)
        enter_distance(code, code->jumps[k].place, code->labels[code->jumps[k].label]);
    code->njumps = 0;
}

/* ---- copies ---- */

static void
enter_number(CiStencilCode *code, int place, int64_t number, bool has_sign)
{
    int32_t narrow = (int32_t)number;
    if (narrow != number || (narrow < 0 && !has_sign))
        ci_fail(code->ctx, CI_ERR_UNSUPPORTED, "a number has more than %d bits", has_sign ? 32 : 31);
    memcpy(code->bytes + place, &narrow, sizeof narrow);
}

void
ci_stencil_copy(CiStencilCode *code, const CiStencil *stencil, int64_t first, int64_t second,
                int label)
{
    int start = code->size;
    append(code, ci_stencil_code + stencil->start, stencil->size);
    for (int k = 0; k < stencil->count; k++) {
        const CiStencilLocation *place = &ci_stencil_locations[stencil->first + k];
        int at = start + place->offset;
        int64_t number = (place->number ? second : first) + place->addend;
        switch ((CiStencilHole)place->kind) {
        case CI_STENCIL_number:
        case CI_STENCIL_count:
            enter_number(code, at, number, place->kind == CI_STENCIL_number);
            break;
        case CI_STENCIL_wide:
            memcpy(code->bytes + at, &number, sizeof number);
            break;
        case CI_STENCIL_next:
            enter_distance(code, at, code->size);
            break;
        case CI_STENCIL_target:
            CI_PUSH(code->ctx, code->jumps, code->njumps, code->capjumps,
                    ((struct CiStencilJump){at, label}));
            break;
        case CI_STENCIL_pool:
            enter_distance(code, at, place->addend);
            break;
        }
    }
}

void
ci_stencil_enter_numbers(CiStencilCode *code, int start, const CiStencil *stencil, int64_t first)
{
    for (int k = 0; k < stencil->count; k++) {
        const CiStencilLocation *place = &ci_stencil_locations[stencil->first + k];
        if (place->kind <= CI_STENCIL_count && place->number == 0)
            enter_number(code, start + place->offset, first + place->addend, true);
    }
}

/* ---- memory ---- */

void *
ci_stencil_map(const CiStencilCode *code, size_t *bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    *bytes = ((size_t)code->size + page - 1) / page * page;
    void *memory = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    memcpy(memory, code->bytes, (size_t)code->size);
    if (mprotect(memory, *bytes, PROT_READ | PROT_EXEC)) {
        munmap(memory, *bytes);
        return NULL;
    }
    return memory;
}

void
ci_stencil_unmap(void *memory, size_t bytes)
{
    munmap(memory, bytes);
}
