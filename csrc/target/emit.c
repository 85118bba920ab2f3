/* Expressions of C-like targets: the texts of ops.def and support.def with their tokens replaced.
 *
 * Invariants: an operand is always a plain name, never an expression, so a text may use it
 * repeatedly. A half is always a float with a value of half precision, because every producer
 * rounds it. */
#include "target/emit.h"

#include <ctype.h>
#include <string.h>

typedef enum SupportClass {
    SUPPORT_real,
    SUPPORT_int,
    SUPPORT_uint,
    SUPPORT_complex,
#define NARROW(name, storage, size, character, exponent, mantissa, form, from, sum) SUPPORT_##form,
#include "ir/dtypes.def"
} SupportClass;

typedef struct SupportRow {
    const char *name;
    SupportClass class;
    const char *result, *params, *body;
} SupportRow;

static const SupportRow support_rows[] = {
#define SUPPORT(name, class, result, params, ...)                                                  \
    {#name, SUPPORT_##class, #result, #params, #__VA_ARGS__},
#include "target/support.def"
#undef SUPPORT
};
enum { SUPPORT_COUNT = (int)(sizeof support_rows / sizeof *support_rows) };

/* The class of support functions by dtype: a narrow float has its own, other dtypes that of their class. */
static const SupportClass support_classes[CI_DTYPE_COUNT] = {
#define SUPPORT_float SUPPORT_real
#define SUPPORT_bool SUPPORT_uint
#define DTYPE(name, storage, size, class, character, part, exponent, mantissa)                     \
    [CI_DTYPE_##name] = SUPPORT_##class,
#define NARROW(name, storage, size, character, exponent, mantissa, form, from, sum)                \
    [CI_DTYPE_##name] = SUPPORT_##form,
#include "ir/dtypes.def"
#undef SUPPORT_float
#undef SUPPORT_bool
};

CiEmitter *
ci_emitter_new(const CiKernels *kernels, const CiSpelling *spelling)
{
    CiContext *ctx = kernels->loops->ctx;
    CiEmitter *e = CI_NEW(ctx, CiEmitter);
    e->ctx = ctx;
    e->kernels = kernels;
    e->spelling = spelling;
    e->is_used = CI_NEW_ARRAY(ctx, bool, SUPPORT_COUNT *CI_DTYPE_COUNT);
    e->used = ci_map_new(ctx);
    return e;
}

const char *
ci_emit_type(CiDtype dtype)
{
    return ci_dtype_storage(ci_dtype_compute(dtype));
}

/* Unsigned integers as wide as what is computed in; complex numbers have none. */
static const char *
bits_type(CiDtype dtype)
{
    int size = ci_dtype_size(ci_dtype_compute(dtype));
    return size == 1 ? "uint8_t" : size == 2 ? "uint16_t" : size == 4 ? "uint32_t" : "uint64_t";
}

/* The suffix of literals and of functions of the C library. */
static const char *
suffix(CiDtype dtype)
{
    return ci_dtype_compute(ci_dtype_real(dtype)) == CI_DTYPE_f32 ? "f" : "";
}

void
ci_emit_types(CiText *out)
{
    static const char *const types[] = {
        "int8_t",         "signed char", "uint8_t",        "unsigned char",  "int16_t",
        "short",          "uint16_t",    "unsigned short", "int32_t",        "int",
        "uint32_t",       "unsigned",    "int64_t",        "__INT64_TYPE__", "uint64_t",
        "__UINT64_TYPE__"};
    for (size_t k = 0; k < sizeof types / sizeof *types; k += 2)
        ci_text_line(out, "typedef %s %s;", types[k + 1], types[k]);
    ci_text_line(out, "typedef struct ci_c64 { float re, im; } ci_c64;");
    ci_text_line(out, "typedef struct ci_c128 { double re, im; } ci_c128;");
}

/* ---- tokens ---- */

static bool
is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* -1 when there is none. Slow on purpose: the table is short. */
static int
find_support(const char *name, size_t length, SupportClass class)
{
    for (int k = 0; k < SUPPORT_COUNT; k++)
        if (support_rows[k].class == class && strlen(support_rows[k].name) == length &&
            !memcmp(support_rows[k].name, name, length))
            return k;
    return -1;
}

/* The row that answers for a dtype: a narrow float takes the f32 row where it has none of its own.
 */
static int
resolve_support(const char *name, size_t length, CiDtype *dtype)
{
    int row = find_support(name, length, support_classes[*dtype]);
    if (row < 0 && ci_dtype_is_narrow(*dtype)) {
        *dtype = CI_DTYPE_f32;
        row = find_support(name, length, SUPPORT_real);
    }
    return row;
}

static void add_tokens(CiEmitter *e, CiText *out, const char *text, CiDtype dtype,
                       const char *const *names);

static void
mark_used(CiEmitter *e, int row, CiDtype dtype)
{
    bool *is_used = &e->is_used[row * CI_DTYPE_COUNT + (int)dtype];
    if (*is_used)
        return;
    *is_used = true;
    CiText calls = ci_text_new(e->ctx); /* printed only so that what the body calls is marked */
    add_tokens(e, &calls, support_rows[row].body, dtype, NULL);
}

/* The name of a support function of a dtype, now marked as used. */
static const char *
use(CiEmitter *e, const char *name, CiDtype dtype)
{
    int row = resolve_support(name, strlen(name), &dtype);
    if (row < 0)
        ci_fail(e->ctx, CI_ERR_INTERNAL, "no support function %s of %s", name,
                ci_dtype_name(dtype));
    mark_used(e, row, dtype);
    return ci_format(e->ctx, "ci_%s_%s", name, ci_dtype_name(dtype));
}

/* Records the library that a function requires. */
static void
link_function(CiEmitter *e, const char *name)
{
    static const struct {
        const char *name;
        CiLibrary library;
    } functions[] = {
#define FUNCTION(name, library) {#name, CI_LIBRARY_##library},
#include "target/intrinsics.def"
    };
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++)
        if (!strcmp(functions[k].name, name)) {
            e->is_linked[functions[k].library] = true;
            return;
        }
    ci_fail(e->ctx, CI_ERR_INTERNAL, "intrinsics.def does not know %s", name);
}

const char *
ci_emit_rounding(CiEmitter *e, CiDtype narrow)
{
    return use(e, ci_dtype_rounding(narrow), narrow);
}

static bool
is_imprecise(const CiSpelling *spelling, const char *name)
{
    for (int k = 0; k < spelling->nimprecise; k++)
        if (!strcmp(spelling->imprecise[k].function, name))
            return true;
    return false;
}

const char *
ci_emit_function(CiEmitter *e, const char *name, CiDtype dtype)
{
    const CiSpelling *spelling = e->spelling;
    if (*suffix(dtype) && is_imprecise(spelling, name))
        return ci_emit_use(e, ci_format(e->ctx, "ci_rounded_%s", name));
    return ci_format(e->ctx, "%s%s%s", spelling->builtin, name,
                     spelling->is_overloaded ? "" : suffix(dtype));
}

/* M(f) and S(f): the function's name. Returns the position after the closing parenthesis. */
static const char *
add_function(CiEmitter *e, CiText *out, const char *at, CiDtype dtype)
{
    bool is_support = *at == 'S';
    const char *name = at + 2, *end = strchr(name, ')');
    size_t length = (size_t)(end - name);
    const char *copy = ci_copy_text(e->ctx, name, length);
    bool is_own =
        ci_dtype_is_narrow(dtype) && find_support(name, length, support_classes[dtype]) >= 0;
    if (is_support || is_own) {
        ci_text_add(out, "%s", use(e, copy, dtype));
        return end + 1;
    }
    link_function(e, copy);
    ci_text_add(out, "%s", ci_emit_function(e, copy, dtype));
    return end + 1;
}

static void
add_word(CiText *out, const char *word, size_t length, CiDtype dtype, const char *const *names)
{
    if (length == 1 && *word == 'T')
        ci_text_add(out, "%s", ci_emit_type(dtype));
    else if (length == 1 && *word == 'R')
        ci_text_add(out, "%s", ci_emit_type(ci_dtype_real(dtype)));
    else if (length == 1 && *word == 'U')
        ci_text_add(out, "%s", bits_type(dtype));
    else if (length == 4 && !memcmp(word, "BITS", 4))
        ci_text_add(out, "%d", 8 * ci_dtype_size(ci_dtype_compute(dtype)));
    else if (length == 1 && names && *word >= 'a' && *word <= 'c')
        ci_text_add(out, "%s", names[*word - 'a']);
    else
        ci_text_add_chars(out, word, length);
}

/* Replaces the tokens of a text; with names, also the operands a, b and c. */
static void
add_tokens(CiEmitter *e, CiText *out, const char *text, CiDtype dtype, const char *const *names)
{
    for (const char *at = text; *at;) {
        if ((*at == 'M' || *at == 'S') && at[1] == '(' && (at == text || !is_word(at[-1]))) {
            at = add_function(e, out, at, dtype);
        } else if (is_word(*at)) {
            const char *start = at;
            while (is_word(*at) ||
                   (*at == '.' && at[1] && is_word(at[1]) && isdigit((unsigned char)*start)))
                at++;
            add_word(out, start, (size_t)(at - start), dtype, names);
        } else if (*at == '.') { /* a member: never an operand */
            ci_text_add_chars(out, at++, 1);
            while (is_word(*at))
                ci_text_add_chars(out, at++, 1);
        } else {
            ci_text_add_chars(out, at++, 1);
        }
    }
}

/* ---- support functions ---- */

/* A stringified body is one long line; this gives it its lines back. */
static void
print_body(CiText *out, const char *body)
{
    int depth = 0, parens = 0;
    bool at_start = true;
    for (const char *at = body; *at; at++) {
        bool opens_block = *at == '{' && parens == 0 && (at == body || at[-1] != '=') &&
                           !(at - body > 1 && at[-2] == '=');
        if (at_start && *at == ' ')
            continue;
        if (*at == '}' && at_start)
            depth--;
        if (at_start)
            ci_text_add(out, "%*s", 4 * depth, "");
        at_start = false;
        parens += (*at == '(') - (*at == ')');
        ci_text_add_chars(out, at, 1);
        bool is_tail = *at == '}' && at[1] == ' ' && at[2] == 'e' && at[3] == 'l';
        if (opens_block)
            depth++;
        if ((opens_block || (*at == ';' && parens == 0) || (*at == '}' && at[1] != ';')) &&
            !is_tail) {
            ci_text_add(out, "\n");
            at_start = true;
        }
    }
}

/* library_power of languages without complex numbers: exp(b log a). */
static const char polar_power[] =
    "{ double size = log(hypot((double)a.re, (double)a.im)); double angle = atan2((double)a.im, (double)a.re); "
    "double turn = b.im * size + b.re * angle; size = exp(b.re * size - b.im * angle); "
    "T y = {(R)(size * cos(turn)), (R)(size * sin(turn))}; return y; }";

static void
print_support(CiEmitter *e, CiText *out, int row, CiDtype dtype)
{
    const SupportRow *support = &support_rows[row];
    const char *own = e->spelling->override ? e->spelling->override(support->name, dtype) : NULL;
    CiText body = ci_text_new(e->ctx);
    if (e->spelling->lacks_complex && !strcmp(support->name, "library_power"))
        own = polar_power;
    add_tokens(e, &body, own ? own : support->body, dtype, NULL);
    ci_text_add(out, "\n%s ", e->spelling->function);
    add_tokens(e, out, support->result, dtype, NULL);
    ci_text_add(out, "\nci_%s_%s", support->name, ci_dtype_name(dtype));
    add_tokens(e, out, support->params, dtype, NULL);
    ci_text_add(out, "\n");
    print_body(out, body.data);
}

void
ci_emit_support(CiEmitter *e, CiText *out)
{
    for (int row = 0; row < SUPPORT_COUNT; row++)
        for (int dtype = 0; dtype < CI_DTYPE_COUNT; dtype++)
            if (e->is_used[row * CI_DTYPE_COUNT + dtype])
                print_support(e, out, row, (CiDtype)dtype);
}

/* ---- constants ---- */

static void
add_real_const(CiText *out, CiDtype real, double value)
{
    ci_text_add_hex_double(out, value, suffix(real));
}

static void
emit_const(CiText *out, CiDtype dtype, CiConst value)
{
    switch (ci_dtype_class(dtype)) {
    case CI_CLASS_float:
        add_real_const(out, dtype, value.re);
        break;
    case CI_CLASS_complex:
        ci_text_add(out, "{");
        add_real_const(out, ci_dtype_real(dtype), value.re);
        ci_text_add(out, ", ");
        add_real_const(out, ci_dtype_real(dtype), value.im);
        ci_text_add(out, "}");
        break;
    case CI_CLASS_uint:
    case CI_CLASS_bool:
        ci_text_add(out, "%llu%s",
                    (unsigned long long)value.i & (~0ULL >> (64 - 8 * ci_dtype_size(dtype))),
                    ci_dtype_size(dtype) == 8 ? "ULL" : "");
        break;
    default:
        if (value.i == INT64_MIN) /* has no literal of its own */
            ci_text_add(out, "-9223372036854775807LL - 1");
        else
            ci_text_add(out, "%lld%s", (long long)value.i, ci_dtype_size(dtype) == 8 ? "LL" : "");
    }
}

/* ---- casts ---- */

static void
cast_to_int(CiText *out, CiDtype from, CiDtype to, const char *x)
{
    const char *part = ci_dtype_class(from) == CI_CLASS_complex ? ".re" : "";
    bool from_float = !ci_dtype_is_integral(from);
    if (from_float && to == CI_DTYPE_u32)
        ci_text_add(out, "(uint32_t)(int64_t)%s%s", x, part);
    else if (from_float && ci_dtype_size(to) < 4) /* through int32, as x86 converts */
        ci_text_add(out, "(%s)(int32_t)%s%s", ci_emit_type(to), x, part);
    else
        ci_text_add(out, "(%s)%s%s", ci_emit_type(to), x, part);
}

static void
cast_to_real(CiEmitter *e, CiText *out, CiDtype from, CiDtype to, const char *x)
{
    CiDtype part = ci_dtype_real(from);
    const char *member = part == from ? "" : ".re";
    if (!ci_dtype_is_narrow(to))
        ci_text_add(out, "(%s)%s%s", ci_emit_type(to), x, member);
    else if (part == ci_dtype_rounded_from(to) && part != CI_DTYPE_f32)
        ci_text_add(out, "%s(%s%s)", use(e, ci_dtype_rounding(to), part), x, member);
    else
        ci_text_add(out, "%s((float)%s%s)", ci_emit_rounding(e, to), x, member);
}

static void
emit_cast(CiEmitter *e, CiText *out, CiDtype from, CiDtype to, const char *x)
{
    bool from_complex = ci_dtype_class(from) == CI_CLASS_complex;
    if (from == to) {
        ci_text_add(out, "%s", x);
    } else if (to == CI_DTYPE_bool) {
        ci_text_add(out, from_complex ? "(%s.re != 0 || %s.im != 0)" : "(%s != 0)", x, x);
    } else if (ci_dtype_is_integral(to)) {
        cast_to_int(out, from, to, x);
    } else if (ci_dtype_class(to) == CI_CLASS_float) {
        cast_to_real(e, out, from, to, x);
    } else {
        const char *part = ci_emit_type(ci_dtype_real(to));
        ci_text_add(out, e->spelling->is_cpp ? "%s{(%s)%s%s, " : "(%s){(%s)%s%s, ",
                    ci_emit_type(to), part, x, from_complex ? ".re" : "");
        ci_text_add(out, from_complex ? "(%s)%s.im}" : "0}", part, x);
    }
}

/* ---- ops ---- */

bool
ci_emit_is_own(CiOp op, CiDtype operand)
{
    static const struct {
        CiOp op;
        CiDtype narrow;
    } rows[] = {
#define SUPPORT(name, class, result, params, ...)
#define NARROW_DTYPE_(name) CI_DTYPE_##name
#define NARROW_DTYPE(name) NARROW_DTYPE_(name)
#define OWN(name, operands) {CI_OP_##name, NARROW_DTYPE(N)},
#include "target/narrow.def"
#undef SUPPORT
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (rows[k].op == op && rows[k].narrow == operand)
            return true;
    return false;
}

/* True if the target has a body of its own for the support function of the operation's name. */
static bool
has_own_body(const CiEmitter *e, CiOp op, CiDtype operand)
{
    const char *name = ci_op_name(op);
    return e->spelling->override && resolve_support(name, strlen(name), &operand) >= 0 &&
           e->spelling->override(name, operand);
}

void
ci_emit_pointwise(CiEmitter *e, CiText *out, CiOp op, CiDtype operand, const char *const *names)
{
    const char *text = ci_op_expression(op, ci_dtype_class(operand));
    bool is_int = ci_dtype_class(operand) == CI_CLASS_int && ci_dtype_size(operand) >= 4;
    if (e->spelling->has_undefined_overflow && is_int &&
        ci_op_unsigned(op)) /* shorter ones cannot overflow */
        text = ci_op_unsigned(op);
    if (!text && ci_op_kind(op) == CI_OPKIND_ufunc)
        ci_fail(e->ctx, CI_ERR_UNSUPPORTED, "%s calls NumPy, which a kernel of a device cannot",
                ci_op_name(op));
    if (!text)
        ci_fail(e->ctx, CI_ERR_INTERNAL, "%s", ci_op_why_not(op, operand));
    if (ci_emit_is_own(op, operand) || has_own_body(e, op, operand))
        text = ci_format(e->ctx, ci_op_arity(op) == 1 ? "(S(%s)(a))" : "(S(%s)(a, b))",
                         ci_op_name(op));
    if (ci_dtype_is_narrow(operand) && ci_op_rounds(op, operand))
        ci_text_add(out, "%s", ci_emit_rounding(e, operand));
    add_tokens(e, out, text, operand, names);
}

void
ci_emit_scalar(CiEmitter *e, CiText *out, const CiScalar *op, CiDtype operand,
               const char *const *names)
{
    switch (op->op) {
    case CI_OP_const:
        emit_const(out, op->dtype, op->value);
        break;
    case CI_OP_index:
        ci_emit_index(e, out, op->index);
        break;
    case CI_OP_cast:
        emit_cast(e, out, operand, op->dtype, names[0]);
        break;
    case CI_OP_where:
        ci_text_add(out, "%s ? %s : %s", names[0], names[1], names[2]);
        break;
    case CI_OP_copy:
    case CI_OP_bind:
    case CI_OP_place:
        ci_text_add(out, "%s", names[0]);
        break;
    default:
        ci_emit_pointwise(e, out, op->op, operand, names);
    }
}

void
ci_emit_combine(CiEmitter *e, CiText *out, CiOp fold, CiDtype dtype, const char *earlier,
                const char *later)
{
    const char *names[2] = {earlier, later};
    bool is_sum = ci_op_kind(fold) == CI_OPKIND_reduce;
    ci_emit_pointwise(e, out, ci_op_combine(fold), is_sum ? ci_dtype_sum(dtype) : dtype, names);
}

static void
convert(CiEmitter *e, CiText *out, const char *function, CiDtype dtype, const char *value)
{
    bool is_narrow = ci_dtype_is_narrow(dtype);
    ci_text_add(out, is_narrow ? "%s(%s)" : "%s%s", is_narrow ? use(e, function, dtype) : "", value);
}

void
ci_emit_widen(CiEmitter *e, CiText *out, CiDtype dtype, const char *element)
{
    convert(e, out, "widen", dtype, element);
}

void
ci_emit_narrow(CiEmitter *e, CiText *out, CiDtype dtype, const char *value)
{
    convert(e, out, "narrow", dtype, value);
}

int
ci_emit_scalar_slot(const CiLoops *loops, const CiBuffer *buffer)
{
    int slot = 0;
    for (int k = 0; k < loops->nbuffers && loops->buffers[k] != buffer; k++)
        slot += loops->buffers[k]->kind == CI_BUFFER_scalar;
    return slot;
}

void
ci_emit_slot(CiEmitter *e, CiText *out, const CiBuffer *buffer)
{
    int slot = 16 * ci_emit_scalar_slot(e->kernels->loops, buffer);
    const char *type = ci_dtype_storage(buffer->dtype);
    const char *from = ci_dtype_is_integral(buffer->dtype) ? "int64_t" : "double";
    ci_emit_use(e, "scalars");
    if (ci_dtype_class(buffer->dtype) == CI_CLASS_complex)
        ci_text_add(out,
                    "{*(const double *)((const char *)scalars + %d), *(const double *)((const char "
                    "*)scalars + %d)}",
                    slot, slot + 8);
    else
        ci_text_add(out, "(%s)*(const %s *)((const char *)scalars + %d)", type, from, slot);
}
