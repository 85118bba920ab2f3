/* The tables of the functions of this folder. */
#ifndef CI_VMATH_TABLES_H
#define CI_VMATH_TABLES_H

extern const double ci_vmath_exp[], ci_vmath_log[], ci_vmath_log2[], ci_vmath_pow[];
extern const double ci_vmath_exp2f[];
extern const double ci_vmath_logf_inverse[], ci_vmath_logf[], ci_vmath_log2f[];
extern const double ci_vmath_sincos[], ci_vmath_tanh[], ci_vmath_arctan[], ci_vmath_tan[];

#endif
