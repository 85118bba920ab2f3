/* Types of values, and what has been declared so far. */
#include "target/c/c.h"

void
ci_c_printer_open(CiCPrinter *p, CiContext *ctx, const CiCInstructions *instructions, int vector_bytes)
{
    p->ctx = ctx;
    p->instructions = instructions;
    p->vector_bytes = vector_bytes;
    p->helpers = ci_text_new(p->ctx);
    p->known = ci_map_new(p->ctx);
}

CiCPrinter *
ci_c_printer_new(CiContext *ctx, const CiCInstructions *instructions, int vector_bytes)
{
    CiCPrinter *p = CI_NEW(ctx, CiCPrinter);
    ci_c_printer_open(p, ctx, instructions, vector_bytes);
    return p;
}

bool
ci_c_needs(CiCPrinter *p, const char *name)
{
    const char *key = ci_intern(p->ctx, name);
    if (ci_map_find(p->known, CI_KEY(key)))
        return false;
    ci_map_put(p->known, CI_KEY(key), p);
    return true;
}

bool
ci_c_has(const CiCPrinter *p, const char *name)
{
    return ci_map_find(p->known, CI_KEY(ci_intern(p->ctx, name)));
}

const char *
ci_c_inline(CiCPrinter *p)
{
    ci_c_needs(p, "CI_INLINE");
    return "CI_INLINE";
}

const char *
ci_c_cold(CiCPrinter *p)
{
    ci_c_needs(p, "CI_COLD");
    return "static CI_COLD";
}

/* Also declares the type of such a vector in memory, which is only aligned as its elements are. */
static void
declare_vector(CiCPrinter *p, const char *name, CiDtype dtype, int lanes)
{
    const char *type = ci_emit_type(dtype);
    int size = (int)ci_dtype_size(dtype);
    ci_text_line(&p->helpers, "typedef %s %s __attribute__((vector_size(%d)));", type, name,
                 size * lanes);
    ci_text_line(&p->helpers,
                 "typedef %s %s_u __attribute__((vector_size(%d), aligned(%d), may_alias));", type,
                 name, size * lanes, size);
}

const char *
ci_c_type(CiCPrinter *p, CiDtype dtype, int lanes)
{
    dtype = dtype == CI_DTYPE_bool ? CI_DTYPE_u8 : ci_dtype_compute(dtype);
    if (lanes == 1)
        return ci_emit_type(dtype);
    const char *name = ci_format(p->ctx, "%sx%d", ci_dtype_name(dtype), lanes);
    bool is_complex = ci_dtype_class(dtype) == CI_CLASS_complex;
    const char *part = is_complex ? ci_c_type(p, ci_dtype_real(dtype), lanes) : NULL;
    if (!ci_c_needs(p, name))
        return name;
    if (is_complex)
        ci_text_line(&p->helpers, "typedef struct { %s re, im; } %s;", part, name);
    else
        declare_vector(p, name, dtype, lanes);
    return name;
}

CiDtype
ci_c_mask_dtype(int bytes)
{
    return bytes == 1   ? CI_DTYPE_i8
           : bytes == 2 ? CI_DTYPE_i16
           : bytes == 4 ? CI_DTYPE_i32
                        : CI_DTYPE_i64;
}

const char *
ci_c_mask_type(CiCPrinter *p, int bytes, int lanes)
{
    return ci_c_type(p, ci_c_mask_dtype(bytes), lanes);
}
