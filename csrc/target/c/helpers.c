/* Functions on vectors that have no operator: roundings, vector mathematics, parts of a vector.
 *
 * A vector that is less than a register is computed in a whole one that holds it twice, so that a
 * function's value depends on its argument alone. */
#include "target/c/c.h"

#include <stdio.h>

#define MAX_WRITTEN_OUT 8 /* lanes that are loaded and stored one by one */

static int
full_lanes(const CiCPrinter *p, CiDtype dtype)
{
    return p->vector_bytes / (int)ci_dtype_size(dtype);
}

/* ---- roundings ---- */

const char *
ci_c_rounding(CiCPrinter *p, const char *function, CiDtype dtype, int lanes)
{
    const char *type = ci_c_type(p, dtype, lanes),
               *name = ci_format(p->ctx, "%s_%s", function, type);
    if (!ci_c_needs(p, name))
        return name;
    const char *text =
                   p->instructions->rounding(p->ctx, function, dtype, lanes * (int)ci_dtype_size(dtype)),
               *suffix = dtype == CI_DTYPE_f64 ? "" : "f";
    ci_text_add(&p->helpers, "%s %s\n%s(%s a)\n{\n", ci_c_inline(p), type, name, type);
    if (!p->instructions->is_portable)
        ci_text_add(&p->helpers, "#ifdef __clang__\n    return __builtin_elementwise_%s(a);\n#else\n",
                    function);
    if (text)
        ci_text_add(&p->helpers, "    %s\n", text);
    else
        ci_text_add(&p->helpers,
                    "    for (int l = 0; l < %d; l++)\n        a[l] = __builtin_%s%s(a[l]);\n"
                    "    return a;\n",
                    lanes, function, suffix);
    ci_text_add(&p->helpers, "%s}\n", p->instructions->is_portable ? "" : "#endif\n");
    return name;
}

/* a*b + c in each lane, rounded once. */
const char *
ci_c_fused(CiCPrinter *p, CiDtype dtype, int lanes)
{
    const char *type = ci_c_type(p, dtype, lanes), *name = ci_format(p->ctx, "fma_%s", type);
    if (!ci_c_needs(p, name))
        return name;
    int bytes = lanes * (int)ci_dtype_size(dtype);
    const char *text = p->instructions->fused(p->ctx, dtype, bytes, p->vector_bytes);
    ci_text_add(&p->helpers, "%s %s\n%s(%s a, %s b, %s c)\n{\n", ci_c_inline(p), type, name, type, type,
                type);
    if (text)
        ci_text_add(&p->helpers, "    %s\n}\n", text);
    else
        ci_text_add(&p->helpers,
                    "    for (int l = 0; l < %d; l++)\n        c[l] = __builtin_fma%s(a[l], b[l], "
                    "c[l]);\n    return c;\n}\n",
                    lanes, dtype == CI_DTYPE_f64 ? "" : "f");
    return name;
}

/* ---- choices and extremes ---- */

const char *
ci_c_where(CiCPrinter *p, CiDtype dtype, int lanes, const char *condition, const char *yes,
           const char *no)
{
    if (dtype == CI_DTYPE_bool)
        return ci_format(p->ctx, "((%s & %s) | (%s & ~%s))", yes, condition, no, condition);
    const char *type = ci_c_type(p, dtype, lanes),
               *bits = ci_c_mask_type(p, (int)ci_dtype_size(ci_dtype_compute(dtype)), lanes),
               *name = ci_format(p->ctx, "where_%s", type);
    if (ci_c_needs(p, name))
        ci_text_line(&p->helpers,
                     "%s %s\n%s(%s m, %s a, %s b)\n{\n    return (%s)(((%s)a & m) | ((%s)b "
                     "& ~m));\n}", ci_c_inline(p),
                     type, name, bits, type, type, type, bits, bits);
    return ci_format(p->ctx, "%s(%s, %s, %s)", name, condition, yes, no);
}

static const char *
extreme_instruction(CiOp op)
{
    switch (op) {
#define EXTREME(op, instruction, compiler, until, benchmark)                                       \
    case CI_OP_##op:                                                                               \
        return instruction;
#include "target/c/quirks.def"
    default:
        return NULL;
    }
}

const char *
ci_c_extreme(CiCPrinter *p, CiOp op, CiDtype dtype, int lanes, const char *plain)
{
    int bytes = lanes * (int)ci_dtype_size(ci_dtype_compute(dtype));
    const char *instruction = extreme_instruction(op);
    if (!instruction || !p->instructions->extreme || !ci_dtype_is_float(dtype) ||
        (bytes != 16 && bytes != 32 && bytes != 64) || bytes > p->vector_bytes)
        return NULL;
    const char *type = ci_c_type(p, dtype, lanes),
               *name = ci_format(p->ctx, "%s_%s", ci_op_name(op), type);
    const char *call = p->instructions->extreme(p->ctx, instruction, ci_dtype_compute(dtype), bytes),
               *whole = ci_c_where(p, dtype, lanes, "(a != a)", "a", call);
    if (ci_c_needs(p, name))
        ci_text_line(
            &p->helpers,
            "%s %s\n%s(%s a, %s b)\n{\n#ifdef __clang__\n    return %s;\n#else\n    "
            "return %s;\n#endif\n}", ci_c_inline(p),
            type, name, type, type, plain, whole);
    return name;
}

/* ---- vector mathematics ---- */

void
ci_c_math_symbol(const CiCInstructions *instructions, CiOp op, CiDtype dtype, int vector_bytes, char out[40])
{
    bool is_single = dtype != CI_DTYPE_f64;
    snprintf(out, 40, "_ZGV%cN%d%s_%s%s", instructions->routines(vector_bytes),
             vector_bytes / (is_single ? 4 : 8), ci_op_arity(op) == 2 ? "vv" : "v",
             ci_op_function(op), is_single ? "f" : "");
}

static void
declare_routine(CiCPrinter *p, const char *symbol, const char *vector, bool is_binary)
{
    if (ci_c_needs(p, symbol))
        ci_text_line(&p->helpers, "%s %s(%s%s%s);", vector, symbol, vector, is_binary ? ", " : "",
                     is_binary ? vector : "");
}

/* One value in all lanes: a difference, for the sum of -0.0 and 0.0 is 0.0. */
static const char *
print_single(CiCPrinter *p, const char *name, const char *symbol, CiDtype dtype, bool is_binary)
{
    const char *type = ci_emit_type(dtype), *vector = ci_c_type(p, dtype, full_lanes(p, dtype));
    ci_text_line(&p->helpers, "%s %s\n%s(%s a%s%s%s)\n{", ci_c_inline(p), type, name, type,
                 is_binary ? ", " : "", is_binary ? type : "", is_binary ? " b" : "");
    ci_text_line(&p->helpers, "    const %s none = {0};\n    return %s(a - none%s)[0];\n}", vector,
                 symbol, is_binary ? ", b - none" : "");
    return name;
}

/* Lanes 0, 1, … of a vector, again and again. */
static void
print_lane_numbers(CiText *out, int lanes, int count)
{
    for (int l = 0; l < count; l++)
        ci_text_add(out, ", %d", l % lanes);
}

static void
print_padded(CiText *out, const char *operand, int lanes, int full)
{
    ci_text_add(out, "__builtin_shufflevector(%s, %s", operand, operand);
    print_lane_numbers(out, lanes, full);
    ci_text_add(out, ")");
}

static const char *
print_narrow(CiCPrinter *p, const char *name, const char *symbol, CiDtype dtype, int lanes,
             bool is_binary)
{
    const char *type = ci_c_type(p, dtype, lanes);
    int full = full_lanes(p, dtype);
    const char *vector = ci_c_type(p, dtype, full);
    CiText *out = &p->helpers;
    ci_text_add(out, "%s %s\n%s(%s a%s%s%s)\n{\n    const %s y = %s(", ci_c_inline(p), type, name, type,
                is_binary ? ", " : "", is_binary ? type : "", is_binary ? " b" : "", vector,
                symbol);
    print_padded(out, "a", lanes, full);
    if (is_binary) {
        ci_text_add(out, ", ");
        print_padded(out, "b", lanes, full);
    }
    ci_text_add(out, ");\n    return __builtin_shufflevector(y, y");
    print_lane_numbers(out, lanes, lanes);
    ci_text_add(out, ");\n}\n");
    return name;
}

/* The C library's function, in each lane. */
static const char *
print_scalars(CiCPrinter *p, CiOp op, CiDtype dtype, int lanes)
{
    const char *type = ci_c_type(p, dtype, lanes), *suffix = dtype == CI_DTYPE_f64 ? "" : "f",
               *function = ci_format(p->ctx, "__builtin_%s%s", ci_op_function(op), suffix),
               *name = ci_format(p->ctx, "%s_%s", ci_op_name(op), type);
    bool is_binary = ci_op_arity(op) == 2;
    p->base->is_linked[CI_LIBRARY_numbers] = true;
    if (lanes == 1)
        return function;
    if (ci_c_needs(p, name))
        ci_text_line(&p->helpers,
                     "static %s\n%s(%s a%s%s%s)\n{\n    for (int l = 0; l < %d; l++)\n"
                     "        a[l] = %s(a[l]%s);\n    return a;\n}",
                     type, name, type, is_binary ? ", " : "", is_binary ? type : "",
                     is_binary ? " b" : "", lanes, function, is_binary ? ", b[l]" : "");
    return name;
}

const char *
ci_c_math(CiCPrinter *p, CiOp op, CiDtype dtype, int lanes)
{
    char symbol[40];
    bool is_binary = ci_op_arity(op) == 2;
    int full = full_lanes(p, dtype);
    if (!p->has_routines)
        return print_scalars(p, op, dtype, lanes);
    ci_c_math_symbol(p->instructions, op, dtype, p->vector_bytes, symbol);
    declare_routine(p, symbol, ci_c_type(p, dtype, full), is_binary);
    p->base->is_linked[CI_LIBRARY_vectors] = p->base->is_linked[CI_LIBRARY_numbers] = true;
    if (lanes == full)
        return ci_format(p->ctx, "%s", symbol);
    const char *name = ci_format(p->ctx, "%s_%s", ci_op_name(op),
                                 lanes == 1 ? ci_format(p->ctx, "%s_one", ci_dtype_name(dtype))
                                            : ci_c_type(p, dtype, lanes));
    if (!ci_c_needs(p, name))
        return name;
    return lanes == 1 ? print_single(p, name, symbol, dtype, is_binary)
                      : print_narrow(p, name, symbol, dtype, lanes, is_binary);
}

const char *
ci_c_splat(CiCPrinter *p, CiDtype dtype, int lanes)
{
    const char *type = ci_c_type(p, dtype, lanes), *name = ci_format(p->ctx, "splat_%s", type);
    if (!ci_c_needs(p, name))
        return name;
    ci_text_add(&p->helpers, "%s %s\n%s(%s a)\n{\n    return (%s){", ci_c_inline(p), type, name,
                ci_c_type(p, dtype, 1), type);
    for (int l = 0; l < lanes; l++)
        ci_text_add(&p->helpers, l ? ", a" : "a");
    ci_text_add(&p->helpers, "};\n}\n");
    return name;
}

/* ---- strided lanes ---- */

/* Elements are what a vector has. */
static bool
has_plain_elements(CiDtype dtype)
{
    return ci_dtype_compute(dtype) == dtype && ci_dtype_class(dtype) != CI_CLASS_complex;
}

/* One element after another, because instructions that gather take longer on some processors. */
const char *
ci_c_strided(CiCPrinter *p, CiDtype dtype, int lanes, bool is_part, bool is_store)
{
    const char *type = ci_c_type(p, dtype, lanes),
               *name = ci_format(p->ctx, "%s_apart_%s%s", is_store ? "store" : "load", is_part ? "part_" : "", type);
    if (!has_plain_elements(dtype))
        return NULL;
    if (!ci_c_needs(p, name))
        return name;
    CiText *out = &p->helpers;
    ci_text_add(out, "%s %s\n%s(%s%s *m, int64_t s%s%s)\n{\n", is_part ? ci_c_cold(p) : ci_c_inline(p),
                is_store ? "void" : type, name, is_store ? "" : "const ", ci_dtype_storage(dtype),
                is_store ? ci_format(p->ctx, ", %s v", type) : "", is_part ? ", int64_t n" : "");
    if (is_part && is_store)
        ci_text_add(out, "    for (int64_t l = 0; l < n; l++)\n        m[l*s] = v[l];\n");
    else if (is_part)
        ci_text_add(out, "    %s v;\n    for (int64_t l = 0; l < %d; l++)\n        v[l] = m[(l < n ? l : 0)*s];\n    return v;\n",
                    type, lanes);
    for (int l = 0; l < lanes && !is_part; l++)
        if (is_store)
            ci_text_add(out, "    m[%d*s] = v[%d];\n", l, l);
        else if (l == 0)
            ci_text_add(out, "    return (%s){m[0]", type);
        else if (l == 1)
            ci_text_add(out, ", m[s]");
        else
            ci_text_add(out, ", m[%d*s]", l);
    ci_text_add(out, is_store || is_part ? "}\n" : "};\n}\n");
    return name;
}

/* ---- parts of vectors ---- */

/* Numbers 0, 1, … of lanes. */
static void
add_numbers(CiText *out, int lanes)
{
    for (int l = 0; l < lanes; l++)
        ci_text_add(out, l ? ", %d" : "%d", l);
}

const char *
ci_c_first_lanes(CiCPrinter *p, int bytes, int lanes)
{
    const char *type = ci_c_mask_type(p, bytes, lanes), *name = ci_format(p->ctx, "first_%s", type);
    if (!ci_c_needs(p, name))
        return name;
    ci_text_add(&p->helpers, "%s %s\n%s(int64_t n)\n{\n    return (%s){", ci_c_inline(p), type, name, type);
    add_numbers(&p->helpers, lanes);
    ci_text_add(&p->helpers, "} < (int%d_t)n;\n}\n", 8 * bytes);
    return name;
}

/* By 1, 2, 4, ... bits, in the lanes whose number has that bit. */
const char *
ci_c_lane_shift(CiCPrinter *p, const char *sign, CiDtype dtype, int lanes)
{
    int size = (int)ci_dtype_size(dtype);
    if (!p->instructions->has_lane_shifts || p->instructions->has_lane_shifts(size, p->vector_bytes))
        return NULL;
    const char *type = ci_c_type(p, dtype, lanes), *mask = ci_c_mask_type(p, size, lanes),
               *name = ci_format(p->ctx, "shift_%s_%s", *sign == '<' ? "left" : "right", type);
    if (!ci_c_needs(p, name))
        return name;
    ci_text_add(&p->helpers, "%s %s\n%s(%s a, %s b)\n{\n    %s m;\n", ci_c_inline(p), type, name, type, type, mask);
    for (int bits = 1; bits < 8 * size; bits *= 2)
        ci_text_add(&p->helpers, "    m = (b & %d) != 0;\n    a = (%s)(((%s)(a %s %d) & m) | ((%s)a & ~m));\n", bits, type, mask,
                    sign, bits, mask);
    ci_text_add(&p->helpers, "    return a;\n}\n");
    return name;
}

/* From the highest bits of its bytes where an instruction collects these, else from words of it. */
const char *
ci_c_find_lane(CiCPrinter *p, int bytes, int lanes)
{
    const char *type = ci_c_mask_type(p, bytes, lanes), *name = ci_format(p->ctx, "find_%s", type),
               *word = lanes * bytes % 8 == 0 ? "uint64_t" : lanes * bytes % 4 == 0 ? "uint32_t" : "uint16_t";
    if (!ci_c_needs(p, name))
        return name;
    const char *bits = p->instructions->byte_bits ? p->instructions->byte_bits(p->ctx, lanes * bytes, p->vector_bytes) : NULL;
    ci_text_add(&p->helpers, "%s int64_t\n%s(%s mask)\n{\n", ci_c_inline(p), name, type);
    if (bits)
        ci_text_add(&p->helpers, "    const uint64_t bits = %s;\n    return bits ? __builtin_ctzll(bits) / %d : %d;\n}\n", bits,
                    bytes, lanes);
    else
        ci_text_add(&p->helpers,
                    "    typedef union { %s mask; %s words[%d / sizeof(%s)]; } Words;\n    const Words u = {mask};\n"
                    "    for (int k = 0; k < (int)(sizeof u / sizeof *u.words); k++)\n        if (u.words[k])\n"
                    "            return ((int64_t)sizeof(%s) * k + __builtin_ctzll(u.words[k]) / 8) / %d;\n    return %d;\n}\n",
                    type, word, lanes * bytes, word, word, bytes, lanes);
    return name;
}

/* One instruction moves such a vector, under a mask. */
static bool
has_masks(const CiCPrinter *p, CiDtype dtype, int lanes)
{
    int size = (int)ci_dtype_size(dtype), bytes = lanes * size;
    return p->instructions->has_masks && p->instructions->has_masks(p->vector_bytes) &&
           (bytes == 64 || bytes == 32 || bytes == 16) && size >= 4;
}

/* The element type that masked move instructions use for a dtype. */
static CiDtype
moved_as(CiDtype dtype)
{
    return ci_dtype_size(dtype) == 4 ? CI_DTYPE_f32 : CI_DTYPE_f64;
}

bool
ci_c_has_pack(CiDtype dtype)
{
    return ci_dtype_size(dtype) >= 4 && has_plain_elements(dtype);
}

/* Values whose mask is true, side by side, as far as there is room; how many they are. */
const char *
ci_c_pack(CiCPrinter *p, CiDtype dtype, int lanes)
{
    int size = (int)ci_dtype_size(dtype), bytes = lanes * size;
    CiDtype real = moved_as(dtype);
    if (!has_masks(p, dtype, lanes) || !ci_c_has_pack(dtype))
        return NULL;
    const char *type = ci_c_type(p, dtype, lanes), *moved = ci_c_type(p, real, lanes),
               *mask = ci_c_mask_type(p, size, lanes), *name = ci_format(p->ctx, "pack_%s", type);
    if (!ci_c_needs(p, name))
        return name;
    CiText *out = &p->helpers;
    ci_text_add(out, "%s int64_t\n%s(%s *m, %s v, %s mask, int64_t live, int64_t room)\n{\n", ci_c_inline(p),
                name, ci_dtype_storage(dtype), type, mask);
    ci_text_add(out, "    typedef %s numbers __attribute__((vector_size(%d)));\n",
                size == 4 ? "int" : "long long", bytes);
    ci_text_add(out, "    const unsigned chosen = (unsigned)%s & ((1u << live) - 1);\n",
                p->instructions->mask_bits(p->ctx, real, bytes));
    ci_text_add(
        out,
        "    const int64_t count = __builtin_popcount(chosen), n = count < room ? count : room;\n");
    ci_text_add(out, "    %s;\n    return n;\n}\n", p->instructions->pack(p->ctx, real, bytes, moved));
    return name;
}

static void
print_masked_load(CiCPrinter *p, CiDtype dtype, int lanes)
{
    int size = (int)ci_dtype_size(dtype);
    CiDtype real = moved_as(dtype);
    const char *type = ci_c_type(p, dtype, lanes), *moved = ci_c_type(p, real, lanes),
               *bits = ci_c_mask_type(p, size, lanes);
    ci_text_add(&p->helpers,
                "%s %s\nload_part_%s(const %s *m, int64_t n)\n{\n"
                "    const %s first = (%s){0} + *(const int%d_t *)m;\n", ci_c_inline(p),
                type, type, ci_dtype_storage(dtype), bits, bits, 8 * size);
    ci_text_add(&p->helpers, "    return (%s)%s;\n}\n", type,
                p->instructions->masked_load(p->ctx, real, lanes * size, moved));
}

/* How many lanes live, where that is known and they are few enough to be written out one by one, for
 * want of instructions with masks; else 0. */
static int
few_live(CiCPrinter *p, CiDtype dtype, int lanes, const CiExpr *live)
{
    int64_t count;
    bool is_few = lanes <= MAX_WRITTEN_OUT && ci_expr_is_const(live, &count) && count < lanes;
    return is_few && !has_masks(p, dtype, lanes) ? (int)count : 0;
}

/* The first n lanes to memory or from it; lanes that are not loaded become the first element. */
static const char *
few_lanes(CiCPrinter *p, CiDtype dtype, int lanes, int n, bool is_store)
{
    const char *type = ci_c_type(p, dtype, lanes),
               *name = ci_format(p->ctx, is_store ? "store_%d_of_%s" : "load_%d_of_%s", n, type);
    CiText *out = &p->helpers;
    if (!ci_c_needs(p, name))
        return name;
    if (is_store)
        ci_text_add(out, "%s void\n%s(%s *m, %s v)\n{\n", ci_c_inline(p), name, ci_dtype_storage(dtype), type);
    else
        ci_text_add(out, "%s %s\n%s(const %s *m)\n{\n    return (%s){", ci_c_inline(p), type, name, ci_dtype_storage(dtype),
                    type);
    for (int l = 0; l < (is_store ? n : lanes); l++)
        if (is_store)
            ci_text_add(out, "    m[%d] = v[%d];\n", l, l);
        else
            ci_text_add(out, "%sm[%d]", l ? ", " : "", l < n ? l : 0);
    ci_text_add(out, is_store ? "}\n" : "};\n}\n");
    return name;
}

/* The first n elements of one memory into another, by powers of two. */
static void
print_copy(CiCPrinter *p, const char *to, const char *from, const char *element, int lanes)
{
    ci_text_add(&p->helpers, "    int64_t l = 0;\n");
    for (int count = lanes / 2; count > 0; count /= 2)
        ci_text_add(&p->helpers,
                    "    if (n & %d) {\n        __builtin_memcpy(%s + l, %s + l, %d * sizeof(%s));\n"
                    "        l += %d;\n    }\n",
                    count, to, from, count, element, count);
}

static void
print_part_load(CiCPrinter *p, CiDtype dtype, int lanes)
{
    const char *type = ci_c_type(p, dtype, lanes), *element = ci_dtype_storage(dtype);
    ci_text_add(&p->helpers,
                "%s %s\nload_part_%s(const %s *m, int64_t n)\n{\n"
                "    if (n >= %d)\n        return *(const %s_u *)m;\n    %s v = (%s){0} + m[0];\n"
                "    if (n <= 0)\n        return v;\n    %s *to = (%s *)&v;\n", ci_c_cold(p),
                type, type, element, lanes, type, type, type, element, element);
    print_copy(p, "to", "m", element, lanes);
    ci_text_add(&p->helpers, "    return v;\n}\n");
}

static void
print_part_store(CiCPrinter *p, CiDtype dtype, int lanes)
{
    const char *type = ci_c_type(p, dtype, lanes), *element = ci_dtype_storage(dtype);
    ci_text_add(&p->helpers,
                "%s void\nstore_part_%s(%s *m, %s v, int64_t n)\n{\n"
                "    if (n >= %d)\n        *(%s_u *)m = v;\n    if (n <= 0 || n >= %d)\n"
                "        return;\n    const %s *from = (const %s *)&v;\n", ci_c_cold(p),
                type, element, type, lanes, type, lanes, element, element);
    print_copy(p, "m", "from", element, lanes);
    ci_text_add(&p->helpers, "}\n");
}

const char *
ci_c_load_part(CiCPrinter *p, CiDtype dtype, int lanes, const char *place, const CiExpr *live)
{
    const char *type = ci_c_type(p, dtype, lanes), *name = ci_format(p->ctx, "load_part_%s", type);
    bool masked = has_masks(p, dtype, lanes);
    int few = few_live(p, dtype, lanes, live);
    if (few)
        return ci_format(p->ctx, "%s(%s)", few_lanes(p, dtype, lanes, few, false), place);
    bool is_new = ci_c_needs(p, name);
    if (is_new && masked)
        print_masked_load(p, dtype, lanes);
    else if (is_new)
        print_part_load(p, dtype, lanes);
    return ci_format(p->ctx, "%s(%s, %s)", name, place, ci_emit_index_text(p->base, live));
}

const char *
ci_c_store_part(CiCPrinter *p, CiDtype dtype, int lanes, const char *place, const char *value,
                const CiExpr *live)
{
    bool masked = has_masks(p, dtype, lanes);
    CiDtype real = masked ? moved_as(dtype) : dtype;
    const char *type = ci_c_type(p, dtype, lanes), *name = ci_format(p->ctx, "store_part_%s", type),
               *moved = ci_c_type(p, real, lanes);
    int few = few_live(p, dtype, lanes, live);
    if (few)
        return ci_format(p->ctx, "%s(%s, %s)", few_lanes(p, dtype, lanes, few, true), place, value);
    bool is_new = ci_c_needs(p, name);
    if (is_new && masked)
        ci_text_add(&p->helpers, "%s void\n%s(%s *m, %s v, int64_t n)\n{\n    %s;\n}\n", ci_c_inline(p), name,
                    ci_dtype_storage(dtype), type,
                    p->instructions->masked_store(p->ctx, real, lanes * (int)ci_dtype_size(dtype), moved));
    else if (is_new)
        print_part_store(p, dtype, lanes);
    return ci_format(p->ctx, "%s(%s, %s, %s)", name, place, value, ci_emit_index_text(p->base, live));
}
