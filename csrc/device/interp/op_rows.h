/* The rows of ops.def for one element type; included once per type, so it has no guard. The
 * includer defines:
 *
 *   DTYPE_NAME  f32            T, R, M, S, BITS   the tokens of ops.def.
 *   PICK(b, i, u, f, c)        the expression of the type's class.
 *   WRAPS                      before functions whose arithmetic may wrap, or nothing.
 *
 * A row without an expression for the class expands to nothing. */
#define JOIN_(x, y) x##_##y
#define JOIN(x, y) JOIN_(x, y)
#define FUNCTION(name) JOIN(JOIN(op, name), DTYPE_NAME)

#define PROBE(...) ~, 1,
#define SECOND_(first, second, ...) second
#define SECOND(...) SECOND_(__VA_ARGS__, ~)
#define IS_EXPRESSION(x) SECOND(PROBE x, 0, ~)

#define RESULT_same T
#define RESULT_boolean uint8_t
#define RESULT_real R
#define RESULT_compared uint8_t

#define OPERANDS_1 const T a = x[k];
#define OPERANDS_2 const T a = x[k], b = y[k];
#define OPERANDS_3 const T a = x[k], b = y[k], c = z[k];
#define USE_1 (void)a;
#define USE_2 (void)a, (void)b;
#define USE_3 (void)a, (void)b, (void)c;

#define MAKE_0(name, arity, result, expression)
#define MAKE_1(name, arity, result, expression)                                                    \
    WRAPS static void FUNCTION(name)(void *out, const void *first, const void *second,             \
                                     const void *third, int64_t count)                             \
    {                                                                                              \
        const T *x = first, *y = second, *z = third;                                               \
        RESULT_##result *to = out;                                                                 \
        (void)y, (void)z;                                                                         \
        for (int64_t k = 0; k < count; k++) {                                                      \
            OPERANDS_##arity USE_##arity to[k] = expression;                      \
        }                                                                                          \
    }
#define MAKE_(chosen, name, arity, result, expression)                                             \
    MAKE_##chosen(name, arity, result, expression)
#define MAKE(chosen, name, arity, result, expression) MAKE_(chosen, name, arity, result, expression)
#define POINTWISE(name, arity, result, b, i, u, f, c)                                              \
    MAKE(IS_EXPRESSION(PICK(b, i, u, f, c)), name, arity, result, PICK(b, i, u, f, c))
#include "ir/ops.def"

#define ENTRY_0(name)
#define ENTRY_1(name) [CI_OP_##name] = FUNCTION(name),
#define ENTRY_(chosen, name) ENTRY_##chosen(name)
#define ENTRY(chosen, name) ENTRY_(chosen, name)
#define POINTWISE(name, arity, result, b, i, u, f, c)                                              \
    ENTRY(IS_EXPRESSION(PICK(b, i, u, f, c)), name)
const CiInterpRows JOIN(ci_interp_rows, DTYPE_NAME) = {{
#include "ir/ops.def"
}};

#undef JOIN_
#undef JOIN
#undef FUNCTION
#undef PROBE
#undef SECOND_
#undef SECOND
#undef IS_EXPRESSION
#undef RESULT_same
#undef RESULT_boolean
#undef RESULT_real
#undef RESULT_compared
#undef OPERANDS_1
#undef OPERANDS_2
#undef OPERANDS_3
#undef USE_1
#undef USE_2
#undef USE_3
#undef MAKE_0
#undef MAKE_1
#undef MAKE_
#undef MAKE
#undef ENTRY_0
#undef ENTRY_1
#undef ENTRY_
#undef ENTRY
#undef DTYPE_NAME
#undef T
#undef R
#undef M
#undef S
#undef BITS
#undef PICK
