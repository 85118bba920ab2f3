/* Index expressions, of one lane or of many. */
#include "device/interp/run.h"

static int64_t
divide(CiExprKind kind, int64_t a, int64_t b)
{
    if (b == 0)
        return 0;
    bool is_below = a % b != 0 && (a < 0) != (b < 0);
    return kind == CI_EXPR_floordiv ? a / b - is_below : is_below ? a % b + b : a % b;
}

int64_t
ci_formula_evaluate(const CiFormula *f, const int64_t *env)
{
    int64_t a, b;
    switch (f->kind) {
    case CI_EXPR_const:
        return f->value;
    case CI_EXPR_symbol:
        return env[f->slot];
    case CI_EXPR_linear:
        a = f->value;
        for (int k = 0; k < f->nargs; k++)
            a += f->coefs[k] * ci_formula_evaluate(&f->args[k], env);
        return a;
    case CI_EXPR_product:
        a = 1;
        for (int k = 0; k < f->nargs; k++)
            a *= ci_formula_evaluate(&f->args[k], env);
        return a;
    case CI_EXPR_floordiv:
    case CI_EXPR_mod:
        return divide(f->kind, ci_formula_evaluate(&f->args[0], env),
                      ci_formula_evaluate(&f->args[1], env));
    default:
        a = ci_formula_evaluate(&f->args[0], env);
        for (int k = 1; k < f->nargs; k++) {
            b = ci_formula_evaluate(&f->args[k], env);
            a = (f->kind == CI_EXPR_min) == (b < a) ? b : a;
        }
        return a;
    }
}

void
ci_interp_numbers(CiInterpRun *r, const CiInterpIndex *index, int64_t stride, int64_t *out,
                  int64_t count)
{
    if (!index->nvarying) {
        int64_t first = ci_formula_evaluate(&index->formula, r->env);
        for (int64_t k = 0; k < count; k++)
            out[k] = first + k * stride;
        return;
    }
    for (int64_t k = 0; k < count; k++) {
        for (int v = 0; v < index->nvarying; v++)
            r->env[index->slots[v]] = ((const int64_t *)ci_interp_value(r, index->values[v]))[k];
        out[k] = ci_formula_evaluate(&index->formula, r->env) + k * stride;
    }
}
