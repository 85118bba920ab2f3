/* Conversions of numbers and vectors from one type to another. */
#include "target/c/c.h"

static const char *
named_conversion(const CiCPrinter *p, CiDtype from, CiDtype to, int lanes)
{
    static const struct {
        const CiCInstructions *instructions;
        CiDtype from, to;
        int lanes;
        const char *text;
    } rows[] = {
#define CONVERT(instructions, from, to, lanes, text, compiler, until, benchmark)                        \
    {&ci_c_##instructions, CI_DTYPE_##from, CI_DTYPE_##to, lanes, text},
#include "target/c/quirks.def"
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (rows[k].instructions == p->instructions && lanes * (int)ci_dtype_size(to) <= p->vector_bytes &&
            rows[k].from == from && rows[k].to == to && rows[k].lanes == lanes)
            return rows[k].text;
    return NULL;
}

/* The statements that convert vector `a`; NULL: the compiler's own conversion is as fast. */
static const char *
conversion(const CiCPrinter *p, const char *type, CiDtype from, CiDtype to, int lanes)
{
    const char *text = named_conversion(p, from, to, lanes);
    if (text)
        return ci_format(p->ctx, "return %s;", text);
    bool has_widths = p->instructions->resized && ci_dtype_is_integral(from) && ci_dtype_is_integral(to);
    return has_widths ? p->instructions->resized(p->ctx, type, from, to, lanes, p->vector_bytes) : NULL;
}

static const char *
convert_at_once(CiCPrinter *p, CiDtype from, CiDtype to, int lanes, const char *value)
{
    const char *type = ci_c_type(p, to, lanes), *source = ci_c_type(p, from, lanes),
               *name = ci_format(p->ctx, "%s_of_%s", type, source),
               *text = conversion(p, type, from, to, lanes);
    if (!text)
        return ci_format(p->ctx, "__builtin_convertvector(%s, %s)", value, type);
    if (ci_c_needs(p, name))
        ci_text_line(&p->helpers,
                     "%s %s\n%s(%s a)\n{\n#ifdef __clang__\n    return "
                     "__builtin_convertvector(a, %s);\n#else\n    %s\n#endif\n}", ci_c_inline(p),
                     type, name, source, type, text);
    return ci_format(p->ctx, "%s(%s)", name, value);
}

/* The value of an expression, of which the optimizer knows nothing. A vector that is wider than a
 * register passes through memory; is_given: only if it has elements that the optimizer knows. */
static const char *
hidden(CiCPrinter *p, CiDtype dtype, int lanes, bool is_given, const char *value)
{
    bool is_register = lanes == 1 || (!p->instructions->is_portable &&
                                      lanes * (int)ci_dtype_size(ci_dtype_compute(dtype)) <= p->vector_bytes),
         is_general = lanes == 1 && ci_dtype_is_integral(dtype), is_asked = is_given && !is_register;
    const char *type = ci_c_type(p, dtype, lanes),
               *name = ci_format(p->ctx, is_asked ? "hidden_given_%s" : "hidden_%s", type);
    if (!ci_c_needs(p, name))
        return ci_format(p->ctx, "%s(%s)", name, value);
    CiText known = ci_text_new(p->ctx);
    for (int l = 0; l < lanes && is_asked; l++)
        ci_text_add(&known, "%s__builtin_constant_p(a[%d])", l ? " || " : "    if (!(", l);
    if (is_asked)
        ci_text_add(&known, "))\n        return a;\n");
    ci_text_line(&p->helpers,
                 "%s %s\n%s(%s a)\n{\n%s#ifdef __aarch64__\n    __asm__(\"\" : \"+%s\"(a));\n"
                 "#else\n    __asm__(\"\" : \"+%s\"(a));\n#endif\n    return a;\n}",
                 lanes == 1 ? "static inline" : ci_c_inline(p), type, name, type, is_asked ? known.data : "",
                 is_general ? "r" : is_register ? "w" : "m", is_general ? "r" : is_register ? "x" : "m");
    return ci_format(p->ctx, "%s(%s)", name, value);
}

static bool
is_cut(const CiCPrinter *p, CiDtype from, CiDtype to, size_t bytes)
{
    bool found = false;
#define CUT(least_bytes, compiler, until, shown)                                                   \
    found |= !ci_dtype_is_integral(from) && ci_dtype_is_integral(to) && to != CI_DTYPE_bool &&     \
             bytes >= (least_bytes);
#include "target/c/quirks.def"
    return found && p->instructions;
}

const char *
ci_c_before_cut(CiCPrinter *p, CiDtype from, CiDtype to, int lanes, const char *value)
{
    return is_cut(p, from, to, SIZE_MAX) ? hidden(p, from, lanes, true, value) : value;
}

const char *
ci_c_cut_int(CiCPrinter *p, CiDtype from, CiDtype to, int lanes, const char *value)
{
    return is_cut(p, from, to, ci_dtype_size(to)) ? hidden(p, to, lanes, false, value) : value;
}

/* There are instructions between floats and integers of four bytes and more. */
const char *
ci_c_convert(CiCPrinter *p, CiDtype from, CiDtype to, int lanes, const char *value)
{
    CiDtype other = ci_dtype_is_float(from) ? to : from;
    bool is_far = ci_dtype_is_float(from) != ci_dtype_is_float(to) && ci_dtype_size(other) < 4;
    value = ci_c_before_cut(p, from, to, lanes, value);
    if (is_far) {
        value = convert_at_once(p, from, CI_DTYPE_i32, lanes, value);
        from = CI_DTYPE_i32;
    }
    return convert_at_once(p, from, to, lanes, value);
}
