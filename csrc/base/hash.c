/* Two hashes for two uses: a fast mixer whose values never leave the process, and SHA-256 (FIPS
 * 180-4), whose values name files. Both read bytes in a fixed order, so neither depends on the
 * machine. */
#include "base/hash.h"

#include <string.h>

uint64_t
ci_hash_mix(uint64_t seed, uint64_t word)
{
    uint64_t h = (seed ^ word) + 0x9e3779b97f4a7c15u;
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
    h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
    return h ^ (h >> 31) ^ (seed << 1);
}

uint64_t
ci_hash_bytes(uint64_t seed, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    uint64_t hash = ci_hash_mix(seed, size);
    for (size_t i = 0; i < size; i += 8) {
        uint64_t word = 0;
        for (size_t j = i; j < size && j < i + 8; j++)
            word |= (uint64_t)bytes[j] << (8 * (j - i));
        hash = ci_hash_mix(hash, word);
    }
    return hash;
}

static const uint32_t ROUND[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t
rotate(uint32_t x, int by)
{
    return x >> by | x << (32 - by);
}

static void
absorb(uint32_t state[8], const uint8_t block[64])
{
    uint32_t w[64], v[8];
    for (int t = 0; t < 16; t++)
        w[t] = (uint32_t)block[4 * t] << 24 | (uint32_t)block[4 * t + 1] << 16 |
               (uint32_t)block[4 * t + 2] << 8 | block[4 * t + 3];
    for (int t = 16; t < 64; t++) {
        uint32_t a = w[t - 15], b = w[t - 2];
        w[t] = w[t - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + w[t - 7] +
               (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
    }
    memcpy(v, state, sizeof v);
    for (int t = 0; t < 64; t++) {
        uint32_t e = v[4], a = v[0];
        uint32_t first = v[7] + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +
                         ((e & v[5]) ^ (~e & v[6])) + ROUND[t] + w[t];
        uint32_t second = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) +
                          ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += first;
        v[0] = first + second;
    }
    for (int i = 0; i < 8; i++)
        state[i] += v[i];
}

void
ci_sha256_init(CiSha256 *hash)
{
    static const uint32_t START[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memset(hash, 0, sizeof *hash);
    memcpy(hash->state, START, sizeof START);
}

void
ci_sha256_add(CiSha256 *hash, const void *data, size_t size)
{
    const uint8_t *bytes = data;
    while (size > 0) {
        size_t at = hash->length % 64, take = 64 - at < size ? 64 - at : size;
        if (take == 64) {
            absorb(hash->state, bytes);
        } else {
            memcpy(hash->block + at, bytes, take);
            if (at + take == 64)
                absorb(hash->state, hash->block);
        }
        hash->length += take;
        bytes += take;
        size -= take;
    }
}

void
ci_sha256_add_text(CiSha256 *hash, const char *text)
{
    uint64_t length = strlen(text);
    uint8_t prefix[8];
    for (int i = 0; i < 8; i++)
        prefix[i] = (uint8_t)(length >> (8 * i));
    ci_sha256_add(hash, prefix, sizeof prefix);
    ci_sha256_add(hash, text, length);
}

void
ci_sha256_add_source(CiSha256 *hash, const char *source)
{
    const char *comment;
    while ((comment = strstr(source, "/*")) != NULL) {
        const char *end = strstr(comment + 2, "*/");
        ci_sha256_add(hash, source, (size_t)(comment - source));
        source = end ? end + 2 : comment + strlen(comment);
    }
    ci_sha256_add(hash, source, strlen(source) + 1);
}

void
ci_sha256_finish(CiSha256 *hash, uint8_t digest[32])
{
    uint64_t bits = 8 * hash->length;
    uint8_t tail[72] = {0x80};
    size_t pad = 64 - (hash->length + 8) % 64;
    for (int i = 0; i < 8; i++)
        tail[pad + (size_t)i] = (uint8_t)(bits >> (56 - 8 * i));
    ci_sha256_add(hash, tail, pad + 8);
    for (int i = 0; i < 32; i++)
        digest[i] = (uint8_t)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
}

void
ci_sha256_hex(const uint8_t digest[32], char hex[65])
{
    for (int i = 0; i < 32; i++) {
        hex[2 * i] = "0123456789abcdef"[digest[i] >> 4];
        hex[2 * i + 1] = "0123456789abcdef"[digest[i] & 15];
    }
    hex[64] = 0;
}
