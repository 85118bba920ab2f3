/* Tests the hash map, interned strings, and the hash functions (SHA-256 and mixing). */
#include "base/hash.h"
#include "base/map.h"
#include "ci_test.h"

TEST(put_find_replace_and_order)
{
    CiMap *map = ci_map_new(ctx);
    int values[5000];
    CHECK(ci_map_find(map, 0) == NULL);
    for (int i = 0; i < 5000; i++)
        ci_map_put(map, (uint64_t)i * 4096, &values[i]);
    CHECK_INT(ci_map_count(map), 5000);
    for (int i = 0; i < 5000; i++) {
        CHECK(ci_map_find(map, (uint64_t)i * 4096) == &values[i]);
        CHECK(ci_map_value_at(map, i) == &values[i]);
    }
    CHECK(ci_map_find(map, 4095) == NULL);
    ci_map_put(map, 4096, &values[7]);
    CHECK(ci_map_find(map, 4096) == &values[7]);
    CHECK_INT(ci_map_count(map), 5000);
    ci_map_put(map, CI_KEY(map), map);
    CHECK(ci_map_find(map, CI_KEY(map)) == map);
}

TEST(interned_strings)
{
    char buffer[] = "hello";
    const char *one = ci_intern(ctx, buffer);
    buffer[0] = 'j';
    CHECK_TEXT(one, "hello");
    CHECK(ci_intern(ctx, "hello") == one);
    CHECK(ci_intern_chars(ctx, "hello world", 5) == one);
    CHECK(ci_intern(ctx, buffer) != one);
    CHECK(ci_intern(ctx, "") == ci_intern_chars(ctx, NULL, 0));
    for (int i = 0; i < 3000; i++)
        CHECK(ci_intern(ctx, ci_format(ctx, "n%d", i)) == ci_intern(ctx, ci_format(ctx, "n%d", i)));
}

static void
fill(CiContext *ctx, void *arg)
{
    (void)arg;
    CiMap *map = ci_map_new(ctx);
    for (int i = 0; i < 40; i++) {
        const char *name = ci_intern(ctx, ci_format(ctx, "k%d", i));
        ci_map_put(map, CI_KEY(name), (void *)name);
        CHECK(ci_map_find(map, CI_KEY(name)) == name);
    }
    CHECK_INT(ci_map_count(map), 40);
}

TEST(every_allocation_may_fail)
{
    ci_test_failing_allocations(fill, NULL);
}

static const char *
sha(CiContext *ctx, const char *text, size_t step)
{
    CiSha256 hash;
    uint8_t digest[32];
    char hex[65];
    ci_sha256_init(&hash);
    for (size_t at = 0, length = strlen(text); at < length; at += step)
        ci_sha256_add(&hash, text + at, length - at < step ? length - at : step);
    ci_sha256_finish(&hash, digest);
    ci_sha256_hex(digest, hex);
    return ci_format(ctx, "%s", hex);
}

TEST(sha256_known_answers)
{
    CHECK_TEXT(sha(ctx, "", 1), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK_TEXT(sha(ctx, "abc", 3),
               "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    const char *longer = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    CHECK_TEXT(sha(ctx, longer, 99),
               "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    char *million = ci_new(ctx, 1000001);
    memset(million, 'a', 1000000);
    const char *answer = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";
    CHECK_TEXT(sha(ctx, million, 1000000), answer);
    CHECK_TEXT(sha(ctx, million, 7), answer);
    for (size_t length = 50; length < 70; length++) {
        million[length] = 0;
        CHECK_TEXT(sha(ctx, million, 1), sha(ctx, million, 100));
        million[length] = 'a';
    }
}

TEST(texts_are_hashed_with_their_length)
{
    uint8_t digests[2][32];
    const char *fields[2][2] = {{"ab", "c"}, {"a", "bc"}};
    for (int i = 0; i < 2; i++) {
        CiSha256 hash;
        ci_sha256_init(&hash);
        ci_sha256_add_text(&hash, fields[i][0]);
        ci_sha256_add_text(&hash, fields[i][1]);
        ci_sha256_finish(&hash, digests[i]);
    }
    CHECK(memcmp(digests[0], digests[1], 32) != 0);
}

static bool
hash_alike(const char *a, const char *b)
{
    uint8_t digests[2][32];
    for (int i = 0; i < 2; i++) {
        CiSha256 hash;
        ci_sha256_init(&hash);
        ci_sha256_add_source(&hash, i ? b : a);
        ci_sha256_finish(&hash, digests[i]);
    }
    return memcmp(digests[0], digests[1], 32) == 0;
}

TEST(comments_of_a_source_are_not_hashed)
{
    CHECK(hash_alike("a /* one */ b /**/", "a /* two, longer */ b "));
    CHECK(hash_alike("a /* open", "a "));
    CHECK(!hash_alike("a /* one */ b", "a /* one */ c"));
}

TEST(mixing)
{
    CHECK(ci_hash_mix(1, 2) != ci_hash_mix(2, 1));
    CHECK(ci_hash_bytes(0, "abcdefgh", 8) != ci_hash_bytes(0, "abcdefgh\0", 9));
    CHECK(ci_hash_bytes(0, "abcdefghi", 9) == ci_hash_bytes(0, "abcdefghi", 9));
}
