/* The expressions of ops.def over vectors.
 *
 * Their text is C over scalars. Over vectors a comparison is a mask, a choice takes bits of one
 * side or the other by a mask, and both sides are computed. So the text is read as an expression,
 * and each part is printed as a literal, a number in each lane, or a mask. An operation has no vector
 * form if it may not be computed in lanes that do not choose it (a quotient of integers), or if it
 * is a function of its own. */
#include "target/c/c.h"

#include <ctype.h>
#include <string.h>

typedef enum Kind { KIND_literal, KIND_number, KIND_mask } Kind;

typedef struct Piece {
    Kind kind;
    const char *text;
} Piece;

typedef struct Reader {
    CiCPrinter *p;
    const char *at;
    CiDtype dtype; /* of operands */
    int lanes;
    const char *const *names;
    const char *why; /* it has no vector form */
} Reader;

static const Piece nothing = {KIND_literal, "0"};

static Piece
refuse(Reader *r, const char *why)
{
    if (!r->why)
        r->why = why;
    r->at += strlen(r->at);
    return nothing;
}

static const char *
number_type(Reader *r)
{
    return ci_c_type(r->p, r->dtype, r->lanes);
}

static const char *
mask_type(Reader *r)
{
    return ci_c_mask_type(r->p, (int)ci_dtype_size(r->dtype), r->lanes);
}

/* A number in each lane; a mask counts as 1 where it is true. */
static const char *
number(Reader *r, Piece piece)
{
    if (piece.kind == KIND_literal)
        return ci_format(r->p->ctx, "((%s){0} + %s)", number_type(r), piece.text);
    if (piece.kind == KIND_mask && ci_dtype_is_float(r->dtype))
        refuse(r, "a truth value is no float");
    return piece.kind == KIND_mask ? ci_format(r->p->ctx, "((%s)-%s)", number_type(r), piece.text)
                                   : piece.text;
}

static const char *
mask(Reader *r, Piece piece)
{
    if (piece.kind == KIND_literal)
        return ci_format(r->p->ctx, piece.text[0] == '0' ? "(%s){0}" : "~(%s){0}", mask_type(r));
    if (piece.kind == KIND_number)
        refuse(r, "a number is no truth value");
    return piece.text;
}

static Piece read_choice(Reader *r);

static void
skip_spaces(Reader *r)
{
    while (*r->at == ' ')
        r->at++;
}

static void
expect(Reader *r, char c)
{
    skip_spaces(r);
    if (*r->at == c)
        r->at++;
    else
        refuse(r, "its expression is of another form");
}

/* ---- functions of the C library ---- */

/* fabs and copysign: all bits but the highest, and the highest of the other. */
static Piece
sign_apart(Reader *r, const char *name, const Piece *args)
{
    CiContext *ctx = r->p->ctx;
    const char *most = ci_dtype_size(r->dtype) == 8 ? "0x7fffffffffffffffLL" : "0x7fffffff",
               *bits = mask_type(r),
               *size = ci_format(ctx, "((%s)%s & %s)", bits, number(r, args[0]), most);
    if (strcmp(name, "fabs") != 0)
        size = ci_format(ctx, "(%s | ((%s)%s & ~%s))", size, bits, number(r, args[1]), most);
    return (Piece){KIND_number, ci_format(ctx, "((%s)%s)", number_type(r), size)};
}

static Piece
read_library(Reader *r)
{
    static const char *const roundings[] = {"sqrt", "floor", "ceil", "trunc", "rint"};
    char name[16] = "";
    const char *end = strchr(r->at, ')');
    Piece args[3] = {nothing, nothing, nothing};
    memcpy(name, r->at, (size_t)(end - r->at) < sizeof name ? (size_t)(end - r->at) : 0);
    r->at = end + 1;
    expect(r, '(');
    for (int k = 0; k < 3 && *r->at && *r->at != ')'; k++) {
        args[k] = read_choice(r);
        r->at += *r->at == ',';
    }
    expect(r, ')');
    if (!strcmp(name, "huge_val"))
        return (Piece){KIND_literal,
                       r->dtype == CI_DTYPE_f32 ? "__builtin_huge_valf()" : "__builtin_huge_val()"};
    if (!strcmp(name, "fabs") || !strcmp(name, "copysign"))
        return sign_apart(r, name, args);
    if (!strcmp(name, "fma"))
        return (Piece){KIND_number, ci_format(r->p->ctx, "%s(%s, %s, %s)",
                                              ci_c_fused(r->p, r->dtype, r->lanes),
                                              number(r, args[0]), number(r, args[1]),
                                              number(r, args[2]))};
    for (size_t k = 0; k < sizeof roundings / sizeof *roundings; k++)
        if (!strcmp(name, roundings[k]))
            return (Piece){KIND_number, ci_format(r->p->ctx, "%s(%s)",
                                                  ci_c_rounding(r->p, name, r->dtype, r->lanes),
                                                  number(r, args[0]))};
    return refuse(r, "it calls a function that has no vector form");
}

/* ---- operands and operators ---- */

static Piece
read_word(Reader *r)
{
    const char *start = r->at;
    while (isalnum((unsigned char)*r->at))
        r->at++;
    size_t length = (size_t)(r->at - start);
    if (isdigit((unsigned char)*start))
        return (Piece){KIND_literal, ci_copy_text(r->p->ctx, start, length)};
    if (length == 4 && !memcmp(start, "BITS", 4))
        return (Piece){KIND_literal, ci_format(r->p->ctx, "%d", 8 * (int)ci_dtype_size(r->dtype))};
    if (length == 1 && *start == 'M' && *r->at == '(') {
        r->at++;
        return read_library(r);
    }
    if (length != 1 || *start < 'a' || *start > 'c' || *r->at == '.')
        return refuse(r, "it calls a function that has no vector form");
    return (Piece){r->dtype == CI_DTYPE_bool ? KIND_mask : KIND_number, r->names[*start - 'a']};
}

static Piece
read_operand(Reader *r)
{
    skip_spaces(r);
    char sign = *r->at;
    if (sign == '(') {
        r->at++;
        Piece inside = read_choice(r);
        expect(r, ')');
        return inside;
    }
    if (sign != '!' && sign != '~' && sign != '-')
        return read_word(r);
    r->at++;
    Piece piece = read_operand(r);
    if (sign == '!')
        return piece.kind == KIND_mask
                   ? (Piece){KIND_mask, ci_format(r->p->ctx, "(~%s)", piece.text)}
                   : (Piece){KIND_mask, ci_format(r->p->ctx, "(%s == 0)", number(r, piece))};
    if (piece.kind == KIND_mask)
        return refuse(r, "its expression is of another form");
    return (Piece){piece.kind, ci_format(r->p->ctx, sign == '-' ? "(-%s)" : "(~%s)", piece.text)};
}

static const char *const operators[][5] = {
    {"||"},       {"&&"},     {"|"},          {"^"}, {"&"}, {"==", "!="}, {"<=", ">=", "<", ">"},
    {"<<", ">>"}, {"+", "-"}, {"*", "/", "%"}};
enum { LEVELS = (int)(sizeof operators / sizeof *operators), EQUALITY = 5, ORDER = 6, SHIFT = 7 };

/* The operator of a level that stands here, or NULL. */
static const char *
find_operator(Reader *r, int level)
{
    skip_spaces(r);
    for (int k = 0; k < 5 && operators[level][k]; k++) {
        const char *sign = operators[level][k];
        size_t length = strlen(sign);
        if (strncmp(r->at, sign, length) != 0)
            continue;
        if (length == 2 || !strchr("|&<>", *sign) || (r->at[1] != *sign && r->at[1] != '='))
            return sign;
    }
    return NULL;
}

/* -1 is less than 0, and true is more than false. */
static Piece
compare(Reader *r, const char *sign, Piece left, Piece right)
{
    if (left.kind == KIND_mask && right.kind == KIND_mask) {
        bool turns = sign[0] == '<' || sign[0] == '>';
        const char *first = turns ? right.text : left.text, *last = turns ? left.text : right.text;
        return (Piece){KIND_mask, ci_format(r->p->ctx, "(%s %s %s)", first, sign, last)};
    }
    if (left.kind == KIND_mask || right.kind == KIND_mask)
        return refuse(r, "a truth value is compared to a number");
    const char *first = left.kind == KIND_literal ? number(r, left) : left.text;
    return (Piece){KIND_mask, ci_format(r->p->ctx, "(%s %s %s)", first, sign, right.text)};
}

static Piece
apply(Reader *r, int level, const char *sign, Piece left, Piece right)
{
    char one[2] = {sign[0], 0};
    if (level == EQUALITY || level == ORDER)
        return compare(r, sign, left, right);
    if (level < 2)
        return (Piece){KIND_mask,
                       ci_format(r->p->ctx, "(%s %s %s)", mask(r, left), one, mask(r, right))};
    if (level < EQUALITY && left.kind == KIND_mask && right.kind == KIND_mask)
        return (Piece){KIND_mask, ci_format(r->p->ctx, "(%s %s %s)", left.text, sign, right.text)};
    if ((sign[0] == '/' || sign[0] == '%') && !ci_dtype_is_float(r->dtype))
        return refuse(r, "a quotient of integers is computed where its divisor is not 0");
    const char *first = left.kind == KIND_literal ? left.text : number(r, left),
               *last = right.kind == KIND_literal ? right.text : number(r, right);
    const char *shift = level == SHIFT && right.kind != KIND_literal ? ci_c_lane_shift(r->p, sign, r->dtype, r->lanes) : NULL;
    if (shift)
        return (Piece){KIND_number, ci_format(r->p->ctx, "%s(%s, %s)", shift, number(r, left), last)};
    Kind kind =
        left.kind == KIND_literal && right.kind == KIND_literal ? KIND_literal : KIND_number;
    return (Piece){kind, ci_format(r->p->ctx, "(%s %s %s)", first, sign, last)};
}

static Piece
read_level(Reader *r, int level)
{
    if (level == LEVELS)
        return read_operand(r);
    Piece piece = read_level(r, level + 1);
    for (const char *sign; (sign = find_operator(r, level)) != NULL;) {
        r->at += strlen(sign);
        piece = apply(r, level, sign, piece, read_level(r, level + 1));
    }
    return piece;
}

static Piece
read_choice(Reader *r)
{
    Piece test = read_level(r, 0);
    skip_spaces(r);
    if (*r->at != '?')
        return test;
    r->at++;
    Piece yes = read_choice(r);
    expect(r, ':');
    Piece no = read_choice(r);
    const char *chooses = mask(r, test), *first = number(r, yes), *last = number(r, no);
    return (Piece){KIND_number, ci_c_where(r->p, r->dtype, r->lanes, chooses, first, last)};
}

/* ---- what others call ---- */

static Piece
read_expression(Reader *r, CiOp op)
{
    r->at = ci_op_expression(op, ci_dtype_class(r->dtype));
    Piece piece = r->at ? read_choice(r) : refuse(r, "it is not defined for its operands");
    skip_spaces(r);
    if (*r->at)
        refuse(r, "its expression is of another form");
    if (ci_op_result(op, r->dtype) == CI_DTYPE_bool)
        piece.text = mask(r, piece);
    else
        piece.text = number(r, piece);
    return piece;
}

static const char *
why_not_cast(CiDtype from, CiDtype to)
{
    bool is_wide = to == CI_DTYPE_u32 || to == CI_DTYPE_u64;
    return ci_dtype_is_float(from) && is_wide
               ? "there is no instruction that makes unsigned integers of floats as C does"
           : ci_dtype_is_narrow(to) && from == CI_DTYPE_f64 && ci_dtype_rounded_from(to) == CI_DTYPE_f64
               ? "a double is rounded once, not by way of a float"
               : NULL;
}

const char *
ci_c_why_not_vector(CiContext *ctx, CiOp op, CiDtype operand, CiDtype result)
{
    static const char *const names[] = {"a", "b", "c"};
    Reader r = {ci_c_printer_new(ctx, &ci_c_x86, 0), NULL, ci_dtype_compute(operand), 2, names, NULL};
    if (ci_dtype_class(operand) == CI_CLASS_complex || ci_dtype_class(result) == CI_CLASS_complex)
        return "complex numbers have no vectors";
    if (ci_emit_is_own(op, operand))
        return "a narrow float has a function of its own for it";
    switch (ci_op_kind(op)) {
    case CI_OPKIND_math:
        return NULL;
    case CI_OPKIND_pointwise:
        read_expression(&r, op);
        return r.why;
    default:
        return op == CI_OP_cast ? why_not_cast(operand, result) : NULL;
    }
}

static const char *
pointwise(CiCPrinter *p, CiOp op, CiDtype operand, int lanes, const char *const *names)
{
    Reader r = {p, NULL, ci_dtype_compute(operand), lanes, names, NULL};
    Piece piece = read_expression(&r, op);
    if (r.why)
        ci_fail(p->ctx, CI_ERR_INTERNAL, "%s of %s in lanes: %s", ci_op_name(op),
                ci_dtype_name(operand), r.why);
    return piece.text;
}

const char *
ci_c_pointwise(CiCPrinter *p, CiOp op, CiDtype operand, int lanes, const char *const *names)
{
    static const char *const letters[CI_MAX_OPERANDS] = {"a", "b", "c", "d"};
    const char *plain = pointwise(p, op, operand, lanes, names);
    if (op != CI_OP_maximum && op != CI_OP_minimum)
        return plain;
    const char *named =
        ci_c_extreme(p, op, operand, lanes, pointwise(p, op, operand, lanes, letters));
    return named ? ci_format(p->ctx, "%s(%s, %s)", named, names[0], names[1]) : plain;
}
