/* Functions on vectors of narrow floats, written with operators on vectors of integers: a compiler does
 * not make vectors of the scalar functions in a loop over lanes. */
#include "target/c/c.h"

#include <string.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

/* The statements that compute a function, NULL: the dtype is not narrow. */
static const char *
statements(const char *name, CiDtype dtype)
{
    static const struct {
        const char *name;
        CiDtype narrow;
        const char *text;
    } rows[] = {
#define SUPPORT(name, class, result, params, ...)
#define LANES(name, ...) {#name, JOIN(CI_DTYPE_, N), #__VA_ARGS__},
#include "target/narrow.def"
#undef SUPPORT
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (rows[k].narrow == dtype && !strcmp(rows[k].name, name))
            return rows[k].text;
    return NULL;
}

static const char *
call(CiCPrinter *p, const char *function, CiDtype dtype, int lanes, CiDtype from, CiDtype to, const char *value)
{
    const char *text = statements(function, dtype);
    if (!text)
        return value;
    const char *name = ci_format(p->ctx, "%s_%sx%d", function, ci_dtype_name(dtype), lanes);
    if (ci_c_needs(p, name)) {
        const char *result = ci_c_type(p, to, lanes), *argument = ci_c_type(p, from, lanes);
        const char *start = ci_format(p->ctx, "typedef %s U;\n    typedef %s I;\n    typedef %s F;\n    typedef %s H;\n    ",
                                      ci_c_type(p, CI_DTYPE_u32, lanes), ci_c_type(p, CI_DTYPE_i32, lanes),
                                      ci_c_type(p, CI_DTYPE_f32, lanes), ci_c_type(p, CI_DTYPE_u16, lanes));
        const char *given = from == CI_DTYPE_f32 ? "(U)a" : ci_c_convert(p, from, CI_DTYPE_u32, lanes, "a");
        const char *made = to == CI_DTYPE_f32 ? "(F)u" : ci_c_convert(p, CI_DTYPE_u32, to, lanes, "u");
        const char *native = dtype == CI_DTYPE_f16 && p->instructions->half
                                 ? p->instructions->half(p->ctx, function, lanes, p->vector_bytes)
                                 : NULL;
        ci_text_line(&p->helpers, "%s %s\n%s(%s a)\n{\n    %sU u = %s;", ci_c_inline(p), result, name, argument, start, given);
        if (native) /* by names that only gcc has */
            ci_text_line(&p->helpers, "#ifndef __clang__\n    %s\n#endif", native);
        ci_text_line(&p->helpers, "    %s\n    return %s;\n}", text, made);
    }
    return ci_format(p->ctx, "%s(%s)", name, value);
}

const char *
ci_c_rounded(CiCPrinter *p, CiDtype dtype, int lanes, const char *value)
{
    return call(p, "round", dtype, lanes, CI_DTYPE_f32, CI_DTYPE_f32, value);
}

const char *
ci_c_widened(CiCPrinter *p, CiDtype dtype, int lanes, const char *value)
{
    return call(p, "widen", dtype, lanes, CI_DTYPE_u16, CI_DTYPE_f32, value);
}

const char *
ci_c_narrowed(CiCPrinter *p, CiDtype dtype, int lanes, const char *value)
{
    return call(p, "narrow", dtype, lanes, CI_DTYPE_f32, CI_DTYPE_u16, value);
}
