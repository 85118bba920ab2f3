/* Element types and scalar constants. */
#ifndef CI_IR_DTYPE_H
#define CI_IR_DTYPE_H

#include "base/context.h"
#include "base/lexer.h"
#include "base/text.h"

typedef enum CiDtype {
#define DTYPE(name, storage, size, class, character, part, exponent, mantissa) CI_DTYPE_##name,
#include "ir/dtypes.def"
    CI_DTYPE_COUNT,
    CI_DTYPE_none = CI_DTYPE_COUNT
} CiDtype;

typedef enum CiClass { CI_CLASS_bool, CI_CLASS_int, CI_CLASS_uint, CI_CLASS_float, CI_CLASS_complex } CiClass;

typedef struct ci_c64 {
    float re, im;
} ci_c64;
typedef struct ci_c128 {
    double re, im;
} ci_c128;

/* A constant of any dtype: ints and bools in i or u (two's complement, already in range), floats in re
 * (f16 and f32 values are exactly representable there), complex in re and im. */
typedef struct CiConst {
    int64_t i;
    double re, im;
} CiConst;

const char *ci_dtype_name(CiDtype dtype); /* "f32" */
const char *ci_dtype_storage(CiDtype dtype); /* C type of an element: "float" */
CiDtype ci_dtype_find(const char *name);  /* CI_DTYPE_none when there is none */
int ci_dtype_size(CiDtype dtype);
CiClass ci_dtype_class(CiDtype dtype);
char ci_dtype_char(CiDtype dtype); /* NumPy's character code; 0: a package defines the dtype */
CiDtype ci_dtype_real(CiDtype dtype);      /* c64 -> f32, c128 -> f64, others themselves */
bool ci_dtype_is_narrow(CiDtype dtype);    /* computed in a wider type and rounded */
CiDtype ci_dtype_compute(CiDtype dtype);   /* narrow floats -> f32, others themselves */
CiDtype ci_dtype_sum(CiDtype dtype);       /* dtype of NumPy's sums: f16 -> f32, others themselves */
bool ci_dtype_adds_in_order(CiDtype dtype); /* narrow floats whose sums have the same dtype: NumPy adds them sequentially */
/* Of a narrow float: the widest type that one rounding converts from, and the support function that rounds,
 * "round_half". */
CiDtype ci_dtype_rounded_from(CiDtype dtype);
const char *ci_dtype_rounding(CiDtype dtype);
int ci_dtype_exponent(CiDtype dtype);      /* bits of a float's exponent */
int ci_dtype_mantissa(CiDtype dtype);      /* bits of its fraction */
bool ci_dtype_is_float(CiDtype dtype);     /* float class */
bool ci_dtype_is_integral(CiDtype dtype);  /* bool, int, uint classes */
/* Rounds, wraps or truncates v of dtype `from` as a C cast to `to` does. */
CiConst ci_const_cast(CiConst v, CiDtype from, CiDtype to);
CiConst ci_const_int(CiDtype dtype, int64_t value);
CiConst ci_const_double(CiDtype dtype, double value);
bool ci_const_equal(CiDtype dtype, CiConst a, CiConst b); /* bits, NaN equal to any NaN */
void ci_const_store(CiDtype dtype, CiConst v, void *element);
CiConst ci_const_load(CiDtype dtype, const void *element);
void ci_const_print(CiText *out, CiDtype dtype, CiConst v); /* 1, 0.5, inf, nan, true, (1, -2.5) */
CiConst ci_const_parse(CiLexer *lex, CiDtype dtype);
uint16_t ci_narrow_from(CiDtype narrow, double value); /* round to nearest even, as IEEE */
float ci_narrow_to_float(CiDtype narrow, uint16_t bits);

#endif
