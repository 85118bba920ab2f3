/* Hashing: a 64-bit mixer for tables in memory, SHA-256 for names and checks of files. */
#ifndef CI_BASE_HASH_H
#define CI_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t ci_hash_mix(uint64_t seed, uint64_t word);
uint64_t ci_hash_bytes(uint64_t seed, const void *data, size_t size);

typedef struct CiSha256 {
    uint32_t state[8];
    uint64_t length;
    uint8_t block[64];
} CiSha256;

void ci_sha256_init(CiSha256 *hash);
void ci_sha256_add(CiSha256 *hash, const void *data, size_t size);
void ci_sha256_add_text(CiSha256 *hash,
                        const char *text); /* with its length, so fields cannot run together */
/* Emitted C without its comments, which tell the user's lines: these move when a file is edited. */
void ci_sha256_add_source(CiSha256 *hash, const char *source);
void ci_sha256_finish(CiSha256 *hash, uint8_t digest[32]);
void ci_sha256_hex(const uint8_t digest[32], char hex[65]);

#endif
