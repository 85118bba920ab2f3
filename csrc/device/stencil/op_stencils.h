/* The stencils of one element type: the rows of ops.def, over the lanes of a register. Included once per
 * type, so it has no guard. The includer defines DTYPE_NAME, T, BITS and PICK as for
 * interp/op_rows.h, and also these:
 *
 *   MASK, MASKS   a lane of a mask as wide as T, and a register of them;
 *   M(name)       the compiler's function, if its name has a suffix;
 *   OPERAND(a)    a lane as the expressions have it, if it is not the lane itself;
 *   SAME(e)       then a result of the same type as a lane. */
#define R T
#define S(name) JOIN(ci_##name, DTYPE_NAME)
#ifndef M
#define M(name) __builtin_##name
#endif
#ifndef OPERAND
#define OPERAND(a) a
#define SAME(e) (T)(e)
#endif
#define ROW(name)                                                                                  \
    int32_t row_##name(STATE);                                                                     \
    int32_t row_##name(STATE)
#define PROBE(...) ~, 1,
#define SECOND_(first, second, ...) second
#define SECOND(...) SECOND_(__VA_ARGS__, ~)
#define IS_EXPRESSION(x) SECOND(PROBE x, 0, ~)
#define JOIN_(x, y) x##_##y
#define JOIN(x, y) JOIN_(x, y)
#define FUNCTION(name) JOIN(name, DTYPE_NAME)

#define NUMBERS JOIN(V, DTYPE_NAME)
#define VECTOR_same NUMBERS
#define VECTOR_boolean MASKS
#define VECTOR_compared MASKS
#define VECTOR_real NUMBERS
#define VALUE_same(e) SAME(e)
#define VALUE_boolean(e) (MASK)(-(MASK)((e) != 0))
#define VALUE_compared(e) VALUE_boolean(e)
#define VALUE_real(e) (e)

#define ONE(stencil, first, second, result, expression)                                            \
    ROW(stencil)                                                                                   \
    {                                                                                              \
        const NUMBERS first = (NUMBERS)acc, second = (NUMBERS)VALUE(0);                            \
        VECTOR_##result out;                                                                       \
        for (int l = 0; l < COUNT(T); l++) {                                                       \
            const T a = OPERAND(one[l]), b = OPERAND(two[l]);                                      \
            (void)a, (void)b;                                                                      \
            out[l] = VALUE_##result(expression);                                                   \
        }                                                                                          \
        acc = (V)out;                                                                              \
        return next(ON);                                                                           \
    }
#define MAKE_0(name, arity, result, expression)
#define MAKE_1(name, arity, result, expression) ARITY_##arity(name, result, expression)
#define ARITY_1(stencil, result, expression)                                                       \
    ROW(stencil)                                                                                   \
    {                                                                                              \
        const NUMBERS one = (NUMBERS)acc;                                                          \
        VECTOR_##result out;                                                                       \
        for (int l = 0; l < COUNT(T); l++) {                                                       \
            const T a = OPERAND(one[l]);                                                           \
            (void)a;                                                                               \
            out[l] = VALUE_##result(expression);                                                   \
        }                                                                                          \
        acc = (V)out;                                                                              \
        return next(ON);                                                                           \
    }
#define ARITY_2(name, result, expression)                                                          \
    ONE(name, one, two, result, expression)                                                        \
    ONE(JOIN(name, turned), two, one, result, expression)
#define ARITY_3(name, result, expression)
#define MAKE_(chosen, name, arity, result, expression)                                             \
    MAKE_##chosen(name, arity, result, expression)
#define MAKE(chosen, name, arity, result, expression) MAKE_(chosen, name, arity, result, expression)

#define POINTWISE(name, arity, result, b, i, u, f, c)                                              \
    MAKE(IS_EXPRESSION(PICK(b, i, u, f, c)), FUNCTION(name), arity, result, PICK(b, i, u, f, c))
#include "ir/ops.def"

#undef ROW
#undef PROBE
#undef SECOND_
#undef SECOND
#undef IS_EXPRESSION
#undef JOIN_
#undef JOIN
#undef FUNCTION
#undef NUMBERS
#undef VECTOR_same
#undef VECTOR_boolean
#undef VECTOR_compared
#undef VECTOR_real
#undef VALUE_same
#undef VALUE_boolean
#undef VALUE_compared
#undef VALUE_real
#undef ONE
#undef MAKE_0
#undef MAKE_1
#undef ARITY_1
#undef ARITY_2
#undef ARITY_3
#undef MAKE_
#undef MAKE
#undef DTYPE_NAME
#undef T
#undef R
#undef MASK
#undef MASKS
#undef BITS
#undef OPERAND
#undef SAME
#undef M
#undef S
#undef PICK
