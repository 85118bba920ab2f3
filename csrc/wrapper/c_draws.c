/* Random draws of a program in C. The generator of a draw is the address of a source of random bits
 * with the layout of NumPy's bitgen_t; the file has NumPy's PCG64 as one of its own. The numbers are
 * NumPy's.
 *
 * Sources: Marsaglia and Tsang, The Ziggurat Method for Generating Random Variables (2000), for
 * normal and exponential numbers. Lemire, Fast Random Integer Generation in an Interval (2019).
 * O'Neill, PCG (2014), for XSL RR 128/64. */
#include "wrapper/c_draws.h"

#include <string.h>

/* ---- rows ---- */

/* The routine that a draw calls, besides those of the source of bits. */
typedef enum Need { NEED_nothing, NEED_normal, NEED_exponential, NEED_integer, NEED_COUNT } Need;

typedef struct Row {
    const char *name;
    int parameters;            /* a and b, after the generator */
    CiDtype parameter, result; /* dtypes */
    Need need;
    const char *holds; /* of the parameters; otherwise NumPy refuses them */
    const char *number;
} Row;

static const Row rows[] = {
    {"draw_random", 0, CI_DTYPE_f64, CI_DTYPE_f64, NEED_nothing, "1",
     "bits->next_double(bits->state)"},
    {"draw_random", 0, CI_DTYPE_f64, CI_DTYPE_f32, NEED_nothing, "1",
     "(float)(bits->next_uint32(bits->state) >> 8) * 0x1p-24f"},
    {"draw_uniform", 2, CI_DTYPE_f64, CI_DTYPE_f64, NEED_nothing,
     "!__builtin_signbit(b - a) && __builtin_isfinite(b - a)",
     "a + (b - a) * bits->next_double(bits->state)"},
    {"draw_standard_normal", 0, CI_DTYPE_f64, CI_DTYPE_f64, NEED_normal, "1", "ci_normal(bits)"},
    {"draw_normal", 2, CI_DTYPE_f64, CI_DTYPE_f64, NEED_normal, "!__builtin_signbit(b)",
     "a + b * ci_normal(bits)"},
    {"draw_standard_exponential", 0, CI_DTYPE_f64, CI_DTYPE_f64, NEED_exponential, "1",
     "ci_exponential(bits)"},
    {"draw_exponential", 1, CI_DTYPE_f64, CI_DTYPE_f64, NEED_exponential, "!__builtin_signbit(a)",
     "a * ci_exponential(bits)"},
    {"draw_integers", 2, CI_DTYPE_i64, CI_DTYPE_i64, NEED_integer, "a < b",
     "(int64_t)((uint64_t)a + ci_integer(bits, (uint64_t)b - (uint64_t)a - 1))"},
};
enum { ROWS = sizeof rows / sizeof *rows };

/* The row of a draw whose parameters are single numbers, or NULL. */
static const Row *
row_of(const CiExternItem *call)
{
    for (int k = 0; k < ROWS; k++) {
        const Row *row = &rows[k];
        bool is_it = !strcmp(row->name, call->ext->name) && row->result == call->result->dtype &&
                     row->parameters == call->noperands - 1;
        for (int p = 1; p < call->noperands; p++)
            is_it = is_it && call->ranks[p] == 0 && call->operands[p]->dtype == row->parameter;
        if (is_it)
            return row;
    }
    return NULL;
}

bool
ci_is_draw(const CiExternItem *call)
{
    return !strncmp(call->ext->name, "draw_", 5);
}

const char *
ci_c_draw_refuses(CiContext *ctx, const CiExternItem *call)
{
    if (row_of(call))
        return NULL;
    return ci_format(
        ctx, "C has no random draw %s with such parameters as %s: give the numbers as an argument",
        call->ext->name + 5, ci_dtype_name(call->result->dtype));
}

const char *
ci_c_draw_routine(CiContext *ctx, const CiExternItem *call)
{
    const Row *row = row_of(call);
    return ci_format(ctx, "ci_%s_%s", row->name, ci_dtype_name(row->result));
}

/* ---- texts ---- */

static const char bits_text[] =
    "\n/* ---- random draws ---- */\n\n"
    "/* A source of random bits: NumPy's bitgen_t. A generator among the arguments is a number, "
    "the "
    "address of one. */\n"
    "typedef struct ci_bits {\n    void *state;\n    uint64_t (*next_uint64)(void *state);\n"
    "    uint32_t (*next_uint32)(void *state);\n    double (*next_double)(void *state);\n"
    "    uint64_t (*next_raw)(void *state);\n} ci_bits;\n\n"
    "static uint64_t\nci_pcg64_word(void *state)\n{\n    uint64_t *const words = state;\n"
    "    __extension__ typedef unsigned __int128 Wide;\n"
    "    const Wide factor = (Wide)2549297995355413924u << 64 | 4865540595714422341u;\n"
    "    const Wide next = ((Wide)words[0] << 64 | words[1]) * factor + ((Wide)words[2] << 64 | "
    "words[3]);\n"
    "    words[0] = (uint64_t)(next >> 64);\n    words[1] = (uint64_t)next;\n"
    "    const uint64_t mixed = words[0] ^ words[1];\n"
    "    const int turn = (int)(words[0] >> 58);\n"
    "    return mixed >> turn | mixed << (-turn & 63);\n}\n\n"
    "static uint32_t\nci_pcg64_half(void *state)\n{\n    uint64_t *const words = state;\n"
    "    if (words[4]) {\n        words[4] = 0;\n        return (uint32_t)words[5];\n    }\n"
    "    const uint64_t word = ci_pcg64_word(state);\n    words[4] = 1;\n"
    "    words[5] = word >> 32;\n    return (uint32_t)word;\n}\n\n"
    "static double\nci_pcg64_double(void *state)\n{\n"
    "    return (double)(ci_pcg64_word(state) >> 11) * 0x1p-53;\n}\n\n"
    "/* Makes NumPy's PCG64. words, which it changes, are its bit_generator.state: the state and "
    "inc, "
    "the high\n * halves first, has_uint32, and uinteger. */\n"
    "void ci_pcg64(ci_bits *bits, uint64_t words[6]);\n"
    "void\nci_pcg64(ci_bits *bits, uint64_t words[6])\n{\n"
    "    *bits = (ci_bits){words, ci_pcg64_word, ci_pcg64_half, ci_pcg64_double, "
    "ci_pcg64_word};\n}\n";

/* In a strip, positions beyond the strip above are accepted by the curve between their heights. */
static const char normal_text[] =
    "\nstatic double\nci_normal_height(int strip)\n{\n"
    "    const double end = ci_normal_strips[strip].width * 0x1p52;\n"
    "    return strip ? __builtin_exp(-0.5 * end * end) : 1;\n}\n\n"
    "static double\nci_normal_tail(const ci_bits *bits, int is_negative)\n{\n"
    "    const double start = 3.6541528853610088, inverse = 0.27366123732975828;\n"
    "    double x, y;\n    do {\n"
    "        x = -inverse * __builtin_log1p(-bits->next_double(bits->state));\n"
    "        y = -__builtin_log1p(-bits->next_double(bits->state));\n"
    "    } while (!(y + y > x * x));\n"
    "    return is_negative ? -(start + x) : start + x;\n}\n\n"
    "static double\nci_normal(const ci_bits *bits)\n{\n    for (;;) {\n"
    "        const uint64_t word = bits->next_uint64(bits->state);\n"
    "        const int strip = (int)(word & 255);\n"
    "        const uint64_t position = word >> 9 & 0xfffffffffffff;\n"
    "        const double size = (double)position * ci_normal_strips[strip].width;\n"
    "        const double x = word >> 8 & 1 ? -size : size;\n"
    "        if (position < ci_normal_strips[strip].inside)\n            return x;\n"
    "        if (!strip)\n            return ci_normal_tail(bits, (int)(position >> 8 & 1));\n"
    "        const double below = ci_normal_height(strip), above = ci_normal_height(strip - 1);\n"
    "        if ((above - below) * bits->next_double(bits->state) + below < __builtin_exp(-0.5 * x "
    "* "
    "x))\n            return x;\n    }\n}\n";

static const char exponential_text[] =
    "\nstatic double\nci_exponential_height(int strip)\n{\n"
    "    return strip ? __builtin_exp(-ci_exponential_strips[strip].width * 0x1p53) : 1;\n}\n\n"
    "static double\nci_exponential(const ci_bits *bits)\n{\n    for (;;) {\n"
    "        const uint64_t word = bits->next_uint64(bits->state) >> 3;\n"
    "        const int strip = (int)(word & 255);\n        const uint64_t position = word >> 8;\n"
    "        const double x = (double)position * ci_exponential_strips[strip].width;\n"
    "        if (position < ci_exponential_strips[strip].inside)\n            return x;\n"
    "        if (!strip)\n"
    "            return 7.6971174701310497 - __builtin_log1p(-bits->next_double(bits->state));\n"
    "        const double below = ci_exponential_height(strip), above = "
    "ci_exponential_height(strip - 1);\n"
    "        if ((above - below) * bits->next_double(bits->state) + below < __builtin_exp(-x))\n"
    "            return x;\n    }\n}\n";

/* A number from 0 to `last`. Wide ranges take 64 bits a number, others 32, and 0 none. */
static const char integer_text[] =
    "\nstatic uint64_t\nci_integer(const ci_bits *bits, uint64_t last)\n{\n"
    "    if (!last)\n        return 0;\n"
    "    if (last == 0xffffffffffffffff)\n        return bits->next_uint64(bits->state);\n"
    "    if (last == 0xffffffff)\n        return bits->next_uint32(bits->state);\n"
    "    const uint64_t count = last + 1;\n"
    "    if (last < 0xffffffff) {\n"
    "        uint64_t made = count * bits->next_uint32(bits->state);\n"
    "        if ((uint32_t)made < count)\n"
    "            for (const uint64_t least = (0xffffffff - last) % count; (uint32_t)made < "
    "least;)\n"
    "                made = count * bits->next_uint32(bits->state);\n"
    "        return made >> 32;\n    }\n"
    "    __extension__ typedef unsigned __int128 Wide;\n"
    "    Wide made = (Wide)count * bits->next_uint64(bits->state);\n"
    "    if ((uint64_t)made < count)\n"
    "        for (const uint64_t least = (0xffffffffffffffff - last) % count; (uint64_t)made < "
    "least;)\n"
    "            made = (Wide)count * bits->next_uint64(bits->state);\n"
    "    return (uint64_t)(made >> 64);\n}\n";

/* ---- printing ---- */

typedef struct Strip {
    uint64_t inside;
    double width;
} Strip;

static const Strip normal_strips[] = {
#define NORMAL(inside, width) {inside, width},
#define EXPONENTIAL(inside, width)
#include "wrapper/ziggurat.def"
};
static const Strip exponential_strips[] = {
#define NORMAL(inside, width)
#define EXPONENTIAL(inside, width) {inside, width},
#include "wrapper/ziggurat.def"
};
enum { STRIPS = 256 };

static void
print_strips(CiText *out, const char *name, const Strip *strips)
{
    ci_text_add(out,
                "\nstatic const struct {\n    uint64_t inside; /* positions below it are within "
                "the strip above */\n"
                "    double width;    /* of a position */\n} ci_%s_strips[%d] = {\n",
                name, STRIPS);
    for (int k = 0; k < STRIPS; k++)
        ci_text_add(out, "    {%#llxu, %a},\n", (unsigned long long)strips[k].inside,
                    strips[k].width);
    ci_text_add(out, "};\n");
}

static void
print_routine(CiText *out, const Row *row)
{
    const char *parameter = ci_dtype_storage(row->parameter),
               *result = ci_dtype_storage(row->result);
    int last = row->parameters + 1;
    ci_text_add(out, "\nstatic int32_t\nci_%s_%s(const ci_view *v, int32_t how)\n{\n", row->name,
                ci_dtype_name(row->result));
    ci_text_add(out, "    const ci_bits *const bits = *(ci_bits *const *)v[0].data;\n");
    for (int k = 0; k < row->parameters; k++)
        ci_text_add(out, "    const %s %c = *(const %s *)v[%d].data;\n", parameter, 'a' + k,
                    parameter, k + 1);
    ci_text_add(out, "    (void)how;\n    if (!(%s))\n        return CI_FAILED;\n", row->holds);
    ci_text_add(out, "    for (int64_t k = 0, n = ci_row_count(&v[%d], -1); k < n; k++)\n", last);
    ci_text_add(out, "        ((%s *)v[%d].data)[ci_row_start(&v[%d], -1, k)] = %s;\n", result,
                last, last, row->number);
    ci_text_add(out, "    return 0;\n}\n");
}

static void
print_need(CiText *out, Need need)
{
    if (need == NEED_normal)
        print_strips(out, "normal", normal_strips);
    if (need == NEED_exponential)
        print_strips(out, "exponential", exponential_strips);
    static const char *const texts[NEED_COUNT] = {"", normal_text, exponential_text, integer_text};
    ci_text_add(out, "%s", texts[need]);
}

void
ci_c_draws_print(CiText *out, const CiWrapper *wrapper)
{
    bool is_needed[NEED_COUNT] = {false}, is_called[ROWS] = {false}, is_any = false;
    for (int k = 0; k < wrapper->nlines; k++) {
        const CiExternItem *call = wrapper->lines[k].ext;
        const Row *row = call && ci_is_draw(call) ? row_of(call) : NULL;
        if (!row)
            continue;
        is_called[row - rows] = is_needed[row->need] = is_any = true;
    }
    if (is_any)
        ci_text_add(out, "%s", bits_text);
    for (int need = 0; need < NEED_COUNT; need++)
        if (is_needed[need])
            print_need(out, (Need)need);
    for (int k = 0; k < ROWS; k++)
        if (is_called[k])
            print_routine(out, &rows[k]);
}
