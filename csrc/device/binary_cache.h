/* Binaries of kernels in the disk cache: of languages that a driver or a library compiles. */
#ifndef CI_DEVICE_BINARY_CACHE_H
#define CI_DEVICE_BINARY_CACHE_H

#include "host/cache.h"

/* The key of an entry: a source and all texts that the binary depends on as well. */
void ci_binary_key(const char *const *texts, int ntexts, const char *source, char key[65]);
/* The binary, which the caller frees; false where there is none. cache NULL: no cache. */
bool ci_binary_read(CiCache *cache, const char *key, const char *extension, void **data,
                    size_t *size);
void ci_binary_write(CiCache *cache, const char *key, const char *extension, const void *data,
                     size_t size);

#endif
