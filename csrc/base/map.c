/* Entries in insertion order, and a table of positions + 1 with linear probing over them.
 * Invariant: the table's size is a power of two and at most half of it is used. A put that fails
 * for memory leaves the map as it was: room is made first, the entry comes last. */
#include "base/map.h"

#include <string.h>

#include "base/hash.h"

typedef struct Entry {
    uint64_t key;
    void *value;
} Entry;

struct CiMap {
    CiContext *ctx;
    Entry *entries;
    int count, capacity;
    uint32_t *slots;
    uint32_t mask;
};

CiMap *
ci_map_new(CiContext *ctx)
{
    CiMap *map = CI_NEW(ctx, CiMap);
    map->ctx = ctx;
    map->slots = CI_NEW_ARRAY(ctx, uint32_t, 16);
    map->mask = 15;
    return map;
}

/* The slot that holds key, or the empty one where it belongs. */
static uint32_t *
slot_of(const CiMap *map, uint32_t *slots, uint32_t mask, uint64_t key)
{
    uint32_t at = (uint32_t)ci_hash_mix(0, key) & mask;
    while (slots[at] && map->entries[slots[at] - 1].key != key)
        at = (at + 1) & mask;
    return &slots[at];
}

void *
ci_map_find(const CiMap *map, uint64_t key)
{
    uint32_t position = *slot_of(map, map->slots, map->mask, key);
    return position ? map->entries[position - 1].value : NULL;
}

static void
double_slots(CiMap *map)
{
    CI_REQUIRE(map->ctx, map->mask < UINT32_MAX / 4);
    uint32_t mask = 2 * map->mask + 1;
    uint32_t *slots = CI_NEW_ARRAY(map->ctx, uint32_t, (size_t)mask + 1);
    for (int i = 0; i < map->count; i++)
        *slot_of(map, slots, mask, map->entries[i].key) = (uint32_t)i + 1;
    map->slots = slots;
    map->mask = mask;
}

void
ci_map_put(CiMap *map, uint64_t key, void *value)
{
    uint32_t *slot = slot_of(map, map->slots, map->mask, key);
    if (*slot) {
        map->entries[*slot - 1].value = value;
        return;
    }
    if ((uint32_t)map->count > map->mask / 2) {
        double_slots(map);
        slot = slot_of(map, map->slots, map->mask, key);
    }
    Entry entry = {key, value};
    CI_PUSH(map->ctx, map->entries, map->count, map->capacity, entry);
    *slot = (uint32_t)map->count;
}

int
ci_map_count(const CiMap *map)
{
    return map->count;
}

void *
ci_map_value_at(const CiMap *map, int position)
{
    return map->entries[position].value;
}

uint64_t
ci_map_key_at(const CiMap *map, int position)
{
    return map->entries[position].key;
}

/* An interned string; those of one hash are a chain. */
typedef struct Interned {
    struct Interned *next;
    size_t length;
    char chars[];
} Interned;

const char *
ci_intern_chars(CiContext *ctx, const char *chars, size_t length)
{
    CiMap **strings = ci_context_strings(ctx);
    chars = length ? chars : "";
    if (!*strings)
        *strings = ci_map_new(ctx);
    uint64_t hash = ci_hash_bytes(0, chars, length);
    Interned *first = ci_map_find(*strings, hash);
    for (Interned *it = first; it; it = it->next)
        if (it->length == length && memcmp(it->chars, chars, length) == 0)
            return it->chars;
    Interned *fresh = ci_new(ctx, sizeof *fresh + length + 1);
    fresh->next = first;
    fresh->length = length;
    memcpy(fresh->chars, chars, length);
    ci_map_put(*strings, hash, fresh);
    return fresh->chars;
}

const char *
ci_intern(CiContext *ctx, const char *text)
{
    return ci_intern_chars(ctx, text, strlen(text));
}
