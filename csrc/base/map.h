/* A hash map from pointers or words to pointers, in the arena; insertion only. Iteration order is
 * insertion order, so that nothing printed depends on addresses. */
#ifndef CI_BASE_MAP_H
#define CI_BASE_MAP_H

#include "base/context.h"

typedef struct CiMap CiMap;

CiMap *ci_map_new(CiContext *ctx);
/* NULL when absent. */
void *ci_map_find(const CiMap *map, uint64_t key);
void ci_map_put(CiMap *map, uint64_t key, void *value); /* replaces */
int ci_map_count(const CiMap *map);
void *ci_map_value_at(const CiMap *map, int position);
uint64_t ci_map_key_at(const CiMap *map, int position);

#define CI_KEY(pointer) ((uint64_t)(uintptr_t)(pointer))

/* Interned strings: equal text, equal pointer (per context). */
const char *ci_intern(CiContext *ctx, const char *text);
const char *ci_intern_chars(CiContext *ctx, const char *chars, size_t length);

#endif
