/* Calls of the C library's vector mathematics: whole vectors only. The tail of a block repeats its
 * last value, so that a function's value depends on its argument alone, whatever compiler and
 * whichever length. */
#include "device/cpu/emit_cpu.h"

const char *
ci_cpu_vector_type(CiDtype dtype)
{
    return dtype == CI_DTYPE_f64 ? "ci_v64" : "ci_v32";
}

int
ci_cpu_vector_lanes(const CiCpuEmitter *c, CiDtype dtype)
{
    return ci_cpu_vector_bytes(c->level) / (dtype == CI_DTYPE_f64 ? 8 : 4);
}

void
ci_cpu_emit_math_call(CiCpuEmitter *c, CiOp op, CiDtype dtype, const char *a, const char *b,
                      const char *result, const char *count)
{
    bool is_double = dtype == CI_DTYPE_f64;
    c->has_math[op][is_double] = true;
    ci_text_line(c->out, "%s_%s(%s%s%s, %s, %s);", ci_op_name(op), is_double ? "f64" : "f32", a,
                 b ? ", " : "", b ? b : "", result, count);
}

const char *
ci_cpu_single_math(CiCpuEmitter *c, CiOp op, CiDtype dtype, const char *const *names)
{
    c->has_single_math[op][dtype == CI_DTYPE_f64] = true;
    return ci_format(c->ctx, "%s_%s_one(%s%s%s)", ci_op_name(op), ci_dtype_name(dtype), names[0],
                     ci_op_arity(op) == 2 ? ", " : "", names[1]);
}

/* How a function of the C library and its operands are written. */
typedef struct Routine {
    char symbol[40];
    const char *name, *dtype, *type, *vector;
    bool is_binary;
    int lanes;
} Routine;

static Routine
routine_of(const CiCpuEmitter *c, CiOp op, CiDtype dtype)
{
    Routine r = {.name = ci_op_name(op),
                 .dtype = ci_dtype_name(dtype),
                 .type = ci_emit_type(dtype),
                 .vector = ci_cpu_vector_type(dtype),
                 .is_binary = ci_op_arity(op) == 2,
                 .lanes = ci_cpu_vector_lanes(c, dtype)};
    ci_c_math_symbol(op, dtype, ci_cpu_vector_bytes(c->level), r.symbol);
    return r;
}

static void
print_routine(CiText *out, const Routine *r)
{
    ci_text_add(out, "\n%s %s(%s%s%s);\n", r->vector, r->symbol, r->vector,
                r->is_binary ? ", " : "", r->is_binary ? r->vector : "");
}

/* All lanes are the value; a difference, for the sum of -0.0 and 0.0 is 0.0. */
static void
print_single_helper(CiText *out, const Routine *r)
{
    ci_text_add(out, "static inline %s\n%s_%s_one(%s a%s%s%s)\n{\n", r->type, r->name, r->dtype,
                r->type, r->is_binary ? ", " : "", r->is_binary ? r->type : "",
                r->is_binary ? " b" : "");
    ci_text_add(out, "    const %s none = {0};\n    return %s(a - none%s)[0];\n}\n", r->vector,
                r->symbol, r->is_binary ? ", b - none" : "");
}

static void
print_helper(CiText *out, const Routine *r)
{
    ci_text_add(out, "static void\n%s_%s(%s *a, %s%s%s *y, int64_t m)\n{\n", r->name, r->dtype,
                r->type, r->is_binary ? r->type : "", r->is_binary ? " *b, " : "", r->type);
    ci_text_add(out, "    for (int64_t k = m; k %% %d; k++)\n        a[k] = a[m - 1]%s;\n",
                r->lanes, r->is_binary ? ", b[k] = b[m - 1]" : "");
    ci_text_add(
        out, "    for (int64_t k = 0; k < m; k += %d)\n        *(%s *)(y + k) = %s(*(%s *)(a + k)",
        r->lanes, r->vector, r->symbol, r->vector);
    if (r->is_binary)
        ci_text_add(out, ", *(%s *)(b + k)", r->vector);
    ci_text_add(out, ");\n}\n");
}

void
ci_cpu_emit_math_helpers(CiCpuEmitter *c, CiText *out)
{
    bool has_any = false;
    for (int op = 0; op < CI_OP_COUNT; op++) {
        for (int k = 0; k < 2; k++)
            has_any |= c->has_math[op][k] || c->has_single_math[op][k];
        for (int k = 0; k < CI_DTYPE_COUNT; k++)
            has_any |= (c->has_fold[op][k] & CI_HELPER_vectors) != 0;
    }
    int bytes = ci_cpu_vector_bytes(c->level);
    if (has_any) {
        ci_text_add(out, "\ntypedef float ci_v32 __attribute__((vector_size(%d)));\n", bytes);
        ci_text_add(out, "typedef double ci_v64 __attribute__((vector_size(%d)));\n", bytes);
    }
    for (int op = 0; op < CI_OP_COUNT; op++)
        for (int is_double = 0; is_double < 2; is_double++) {
            bool has_many = c->has_math[op][is_double], has_one = c->has_single_math[op][is_double];
            if (!has_many && !has_one)
                continue;
            Routine r = routine_of(c, (CiOp)op, is_double ? CI_DTYPE_f64 : CI_DTYPE_f32);
            print_routine(out, &r);
            if (has_many)
                print_helper(out, &r);
            if (has_one)
                print_single_helper(out, &r);
        }
}
