/* Feeds each level's parser texts with one to three errors.
 *
 *   fuzz_parsers LEVEL COUNT SEED FILE...
 *
 * Texts of the level in the golden files, given or expected there, are mutated COUNT times: words,
 * lines and characters are dropped, doubled, moved or replaced. Each either is refused, by a message
 * with line and column or by the verifier, or prints as a text that reads back the same. Before a
 * text is read its number goes to standard output, so after a crash the last line names it; with
 * COUNT 0 the text of number SEED is printed and read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "analysis/templates.h"
#include "base/os.h"
#include "base/text.h"
#include "ir/proc.h"
#include "wrapper/wrapper.h"

/* head: of lines, the kernels that they are of. */
typedef struct Text {
    const char *head, *text;
} Text;

typedef struct Texts {
    Text *texts;
    int count, capacity;
} Texts;

typedef struct Word {
    const char *start;
    size_t length;
} Word;

typedef struct Words {
    Word *words;
    int count, capacity;
} Words;

typedef struct Fuzz {
    const char *level, *head, *text;
    const CiMachine *machine;
    bool is_read, is_again; /* the parser has taken the text; it is one that was printed */
    uint64_t state;
} Fuzz;

static int
draw(Fuzz *fuzz, int below)
{
    fuzz->state = fuzz->state * 6364136223846793005u + 1442695040888963407u;
    return below > 0 ? (int)((fuzz->state >> 33) % (uint64_t)below) : 0;
}

/* ---- texts ---- */

/* The level's texts in a file: each section, and the program before the first. */
static void
add_texts(CiContext *ctx, Texts *texts, const char *file, const char *level)
{
    char *first = ci_format(ctx, "\n%s ", level);
    for (const char *at = file; at;) {
        const char *end = strstr(at, "\n---"), *next = end ? strchr(end + 1, '\n') : NULL;
        char *head = ci_copy_text(ctx, at, end ? (size_t)(end + 1 - at) : strlen(at));
        char *lines = strstr(head, "\nlines ");
        Text text = {"", head};
        if (!strcmp(level, "lines"))
            text = (Text){head, lines ? ci_format(ctx, "%s", lines + 1) : ""};
        if (lines)
            lines[1] = 0;
        if (strstr(text.text, first) || !strncmp(text.text, first + 1, strlen(first) - 1))
            CI_PUSH(ctx, texts->texts, texts->count, texts->capacity, text);
        at = next;
    }
}

static bool
is_word(char c)
{
    return c == '_' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

/* Words, and all characters between them. */
static Words
split_words(CiContext *ctx, const char *text)
{
    Words words = {0};
    for (const char *at = text; *at;) {
        Word word = {at, 1};
        while (is_word(*at) && is_word(at[word.length]))
            word.length++;
        at += word.length;
        CI_PUSH(ctx, words.words, words.count, words.capacity, word);
    }
    return words;
}

static Words
split_lines(CiContext *ctx, const char *text)
{
    Words lines = {0};
    for (const char *at = text; *at;) {
        Word line = {at, strcspn(at, "\n")};
        line.length += at[line.length] == '\n';
        at += line.length;
        CI_PUSH(ctx, lines.words, lines.count, lines.capacity, line);
    }
    return lines;
}

static const char *const edges[] = {"0",   "1",    "2",   "7", "65", "4294967296", "9223372036854775807",
                                    "-1",  "nan",  "inf", "s0", "i0", "f64",        "in0",
                                    "[0]", "{",    "}",   "",  ", ", "\n",         "\x80"};

static void
change_word(Fuzz *fuzz, Words *words)
{
    int at = draw(fuzz, words->count), other = draw(fuzz, words->count);
    Word *word = &words->words[at], kept = *word;
    const char *edge = edges[draw(fuzz, sizeof edges / sizeof *edges)];
    switch (draw(fuzz, 5)) {
    case 0: /* dropped */
        word->length = 0;
        break;
    case 1: /* replaced by another of the text */
        *word = words->words[other];
        break;
    case 2: /* exchanged */
        *word = words->words[other];
        words->words[other] = kept;
        break;
    case 3: /* replaced */
        *word = (Word){edge, strlen(edge)};
        break;
    default: /* cut there */
        words->count = draw(fuzz, 8) ? words->count : at;
        break;
    }
}

static const char *
join(CiContext *ctx, const Words *words, const Word *doubled)
{
    CiText text = ci_text_new(ctx);
    for (int k = 0; k < words->count; k++)
        for (int copy = doubled == &words->words[k] ? 0 : 1; copy < 2; copy++)
            ci_text_add_chars(&text, words->words[k].start, words->words[k].length);
    return text.data ? text.data : "";
}

static const char *
mutate(CiContext *ctx, Fuzz *fuzz, const char *text)
{
    for (int left = 1 + draw(fuzz, 3); left > 0; left--) {
        bool is_line = draw(fuzz, 4) == 0;
        Words words = is_line ? split_lines(ctx, text) : split_words(ctx, text);
        bool is_doubled = draw(fuzz, 6) == 0;
        if (!words.count)
            continue;
        if (!is_doubled)
            change_word(fuzz, &words);
        text = join(ctx, &words, is_doubled ? &words.words[draw(fuzz, words.count)] : NULL);
    }
    return text;
}

/* ---- levels ---- */

static const char *
read_graph(CiContext *ctx, Fuzz *fuzz, const char *text)
{
    CiText out = ci_text_new(ctx);
    CiGraph *graph = ci_graph_parse(ctx, text);
    fuzz->is_read = true;
    ci_graph_verify(graph);
    ci_graph_print(&out, graph);
    return out.data;
}

static const char *
read_loops(CiContext *ctx, Fuzz *fuzz, const char *text)
{
    CiText out = ci_text_new(ctx);
    CiLoops *loops = ci_loops_parse(ctx, text);
    fuzz->is_read = true;
    ci_loops_verify(loops);
    ci_loops_print(&out, loops);
    return out.data;
}

static const char *
read_kernels(CiContext *ctx, Fuzz *fuzz, const char *text)
{
    CiText out = ci_text_new(ctx);
    CiKernels *kernels = ci_kernels_parse(ctx, text, fuzz->machine);
    fuzz->is_read = true;
    ci_kernels_verify(kernels);
    ci_kernels_print(&out, kernels);
    return out.data;
}

static const char *
read_procs(CiContext *ctx, Fuzz *fuzz, const char *text)
{
    CiText out = ci_text_new(ctx);
    CiProcs *procs = ci_procs_parse(ctx, text);
    fuzz->is_read = true;
    (void)ci_procs_verify(procs);
    ci_procs_print(&out, procs);
    return out.data;
}

static const char *
read_lines(CiContext *ctx, Fuzz *fuzz, const char *text)
{
    CiText out = ci_text_new(ctx);
    CiOptions options;
    CiMachine machine = *fuzz->machine;
    ci_options_default(&options);
    machine.has_memory = strstr(fuzz->head, "# device_memory: 1\n");
    CiKernels *kernels = ci_kernels_parse(ctx, fuzz->head, &machine);
    CiWrapper *wrapper = ci_wrapper_parse(kernels, &options, NULL, text);
    fuzz->is_read = true;
    ci_wrapper_print(&out, wrapper);
    return out.data;
}

static const struct Level {
    const char *name;
    const char *(*read)(CiContext *ctx, Fuzz *fuzz, const char *text);
} levels[] = {{"graph", read_graph}, {"loops", read_loops}, {"kernels", read_kernels}, {"procs", read_procs},
              {"lines", read_lines}};

static const struct Level *
find_level(const char *name)
{
    for (size_t k = 0; k < sizeof levels / sizeof *levels; k++)
        if (!strcmp(levels[k].name, name))
            return &levels[k];
    exit(2);
}

static void
read_text(CiContext *ctx, void *arg)
{
    Fuzz *fuzz = arg;
    const struct Level *level = find_level(fuzz->level);
    const char *once = level->read(ctx, fuzz, fuzz->text);
    fuzz->is_again = true;
    const char *twice = level->read(ctx, fuzz, once);
    if (strcmp(once, twice) != 0)
        ci_fail(ctx, CI_ERR_INTERNAL, "it prints as\n%sand read back as\n%s", once, twice);
}

/* Line and column of a refused text stand in the message. */
static bool
is_refused_well(const Fuzz *fuzz, CiStatus status, const char *message)
{
    const char *line = strstr(message, "line ");
    bool is_verified = fuzz->is_read || !strncmp(message, "wrapper line", 12);
    return !status || (!fuzz->is_again && (is_verified || (line && strstr(line, "column "))));
}

/* ---- the run ---- */

static CiMachine
make_machine(void)
{
    CiMachine machine = ci_machine_of_cpu(32, 16);
    machine.device = "cpu";
    machine.backend = "c";
    machine.max_buffers = 64;
    return machine;
}

static int
run_one(const Texts *texts, const char *level, uint64_t seed, bool is_shown)
{
    CiContext *ctx = ci_context_open();
    CiMachine machine = make_machine();
    Fuzz fuzz = {.level = level, .machine = &machine, .state = seed * 0x9E3779B97F4A7C15u + 1};
    for (int k = 0; k < 4; k++)
        (void)draw(&fuzz, 2);
    Text chosen = texts->texts[draw(&fuzz, texts->count)];
    fuzz.head = chosen.head;
    fuzz.text = mutate(ctx, &fuzz, chosen.text);
    const char *text = fuzz.text;
    if (is_shown)
        printf("%s\n", text);
    printf("%llu\n", (unsigned long long)seed);
    fflush(stdout);
    setitimer(ITIMER_PROF, &(struct itimerval){.it_value.tv_sec = 20}, NULL); /* of processor time */
    CiStatus status = ci_protect(ctx, read_text, &fuzz);
    const char *message = ci_context_message(ctx);
    bool is_well = is_refused_well(&fuzz, status, message);
    if (!is_well || is_shown)
        printf("%s: %s %s\n", level, status ? ci_status_name(status) : "read", status ? message : "");
    ci_context_close(ctx);
    return is_well ? 0 : 1;
}

int
main(int argc, char **argv)
{
    CiContext *ctx = ci_context_open();
    Texts texts = {0};
    int failures = 0;
    if (argc < 5)
        return 2;
    long long count = atoll(argv[2]), seed = atoll(argv[3]);
    for (int k = 4; k < argc; k++) {
        void *data;
        size_t size;
        if (ci_os_read(argv[k], &data, &size) != 0)
            return 2;
        add_texts(ctx, &texts, ci_copy_text(ctx, data, size), argv[1]);
        free(data);
    }
    if (!texts.count)
        return 2;
    for (long long k = 0; k < (count ? count : 1); k++)
        failures += run_one(&texts, argv[1], (uint64_t)(seed + k), !count);
    ci_context_close(ctx);
    return failures ? 1 : 0;
}
