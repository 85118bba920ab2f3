/* Kernel deduplication: kernels that differ only in the names of their buffers, such as those of
 * the iterations of an unrolled loop, are compiled once. Two texts are equivalent if they are equal
 * after numbering their buffers in order of first use. */
#include "device/cpu/source.h"

#include <ctype.h>
#include <string.h>

static bool
is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Characters at its beginning that name a buffer: all of buf12 or in3, as CiBuffer's names are, and
 * of what a pass calls by one, those before the line: buf12_4. */
static size_t
names_buffer(const char *word, size_t length)
{
    size_t letters = length > 3 && !memcmp(word, "buf", 3)  ? 3
                     : length > 2 && !memcmp(word, "in", 2) ? 2
                                                            : 0;
    size_t end = letters;
    while (letters && end < length && isdigit((unsigned char)word[end]))
        end++;
    return end > letters && (end == length || word[end] == '_') ? end : 0;
}

/* The text with buffers by number, the kernel's own name left out. */
static const char *
numbered(CiContext *ctx, const char *text, const char *name)
{
    CiText out = ci_text_new(ctx);
    CiMap *numbers = ci_map_new(ctx);
    size_t name_length = strlen(name);

    while (*text) {
        size_t length = 0;
        while (is_word(text[length]))
            length++;
        if (length == 0) {
            ci_text_add_chars(&out, text++, 1);
            continue;
        }
        bool is_own = length >= name_length && !memcmp(text, name, name_length) &&
                      (length == name_length || text[name_length] == '_');
        size_t named = names_buffer(text, length);
        if (named) {
            const char *word = ci_intern_chars(ctx, text, named);
            if (!ci_map_find(numbers, CI_KEY(word)))
                ci_map_put(numbers, CI_KEY(word), ci_format(ctx, "$%d", ci_map_count(numbers)));
            ci_text_add(&out, "%s", (const char *)ci_map_find(numbers, CI_KEY(word)));
            ci_text_add_chars(&out, text + named, length - named);
        } else if (is_own) {
            ci_text_add(&out, "$");
            ci_text_add_chars(&out, text + name_length, length - name_length);
        } else {
            ci_text_add_chars(&out, text, length);
        }
        text += length;
    }
    return ci_intern(ctx, out.data);
}

const CiKernel *
ci_cpu_find_same(CiMap *known, const CiKernel *kernel, const CiText *text)
{
    const char *key = numbered(text->ctx, text->data, kernel->name);
    const CiKernel *found = ci_map_find(known, CI_KEY(key));
    if (!found)
        ci_map_put(known, CI_KEY(key), (void *)kernel);
    return found;
}
