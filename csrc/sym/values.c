/* Building and running the table of sizes. Arithmetic wraps: guards have bounded what sizes can be.
 */
#include "sym/values.h"

static int
add_value(CiValuesBuilder *builder, int64_t initial, int segment)
{
    CiValues *values = builder->values;
    CI_PUSH(builder->ctx, values->initial, values->count, values->capacity, initial);
    CI_PUSH(builder->ctx, builder->segment_of, builder->nsegment_of, builder->capsegment_of,
            segment);
    return values->count - 1;
}

/* A value that an earlier formula has computed, or a new one. */
static int
take_spare(CiValuesBuilder *builder)
{
    if (builder->nused == builder->nspare)
        CI_PUSH(builder->ctx, builder->spare, builder->nspare, builder->capspare, add_value(builder, 0, 0));
    return builder->spare[builder->nused++];
}

/* A new value, made by one instruction in the formula or the later segment of its operands, or right now. */
static int
add_code(CiValuesBuilder *builder, CiValueCode code)
{
    CiValues *values = builder->values;
    int segment = builder->segment_of[code.a];
    if (code.op != CI_VALUE_copy && builder->segment_of[code.b] > segment)
        segment = builder->segment_of[code.b];
    code.out = builder->formula && segment >= 0 ? take_spare(builder) : add_value(builder, 0, segment);
    if (segment < 0) {
        CiSegment now = {&code, 1, 1};
        ci_values_run(&now, 1, values->initial);
    } else {
        CiSegment *into = builder->formula ? builder->formula : &values->segments[segment];
        CI_PUSH(builder->ctx, into->code, into->ncode, into->capcode, code);
    }
    return code.out;
}

void
ci_values_begin(CiValuesBuilder *builder, CiContext *ctx, CiValues *values)
{
    *builder = (CiValuesBuilder){.ctx = ctx, .values = values, .numbers = ci_map_new(ctx)};
    *values = (CiValues){0};
    CI_PUSH(ctx, values->segments, values->nsegments, values->capsegments, ((CiSegment){0}));
}

static void
remember(CiValuesBuilder *builder, const CiExpr *e, int number)
{
    ci_map_put(builder->numbers, CI_KEY(e), (void *)((intptr_t)number + 1));
}

int
ci_values_add_symbol(CiValuesBuilder *builder, const CiExpr *symbol, bool is_loop_variable)
{
    CiValues *values = builder->values;
    CI_REQUIRE(builder->ctx, values->count == values->nsymbols);
    if (is_loop_variable)
        CI_PUSH(builder->ctx, values->segments, values->nsegments, values->capsegments,
                ((CiSegment){0}));
    else
        values->nextents++;
    values->nsymbols++;
    int number = add_value(builder, 0, is_loop_variable ? values->nsegments - 1 : 0);
    remember(builder, symbol, number);
    return number;
}

int
ci_values_add_variable(CiValuesBuilder *builder, const CiExpr *symbol)
{
    int number = add_value(builder, 0, 0);
    remember(builder, symbol, number);
    return number;
}

int
ci_values_find(const CiValuesBuilder *builder, const CiExpr *e)
{
    return (int)(intptr_t)ci_map_find(builder->numbers, CI_KEY(e)) - 1;
}

CiFormula
ci_values_formula(CiValuesBuilder *builder, const CiExpr *e)
{
    CiFormula formula = {0, {0}};
    builder->formula = &formula.code;
    builder->nused = 0;
    formula.number = ci_values_number(builder, e);
    builder->formula = NULL;
    return formula;
}

static int
number_linear(CiValuesBuilder *builder, const CiExpr *e)
{
    int sum = add_value(builder, e->value, -1);
    for (int k = 0; k < e->nargs; k++) {
        int term = ci_values_number(builder, e->args[k]);
        sum = add_code(builder, (CiValueCode){CI_VALUE_add, 0, sum, term, e->coefs[k]});
    }
    return sum;
}

static int
number_chain(CiValuesBuilder *builder, const CiExpr *e, CiValueOp op)
{
    int value = ci_values_number(builder, e->args[0]);
    for (int k = 1; k < e->nargs; k++) {
        int other = ci_values_number(builder, e->args[k]);
        value = add_code(builder, (CiValueCode){op, 0, value, other, 0});
    }
    return value;
}

int
ci_values_number(CiValuesBuilder *builder, const CiExpr *e)
{
    static const CiValueOp OPS[] = {[CI_EXPR_product] = CI_VALUE_multiply,
                                    [CI_EXPR_floordiv] = CI_VALUE_floordiv,
                                    [CI_EXPR_mod] = CI_VALUE_mod,
                                    [CI_EXPR_min] = CI_VALUE_min,
                                    [CI_EXPR_max] = CI_VALUE_max};
    int known = ci_values_find(builder, e);
    if (known >= 0)
        return known;
    if (e->kind == CI_EXPR_symbol)
        ci_fail(builder->ctx, CI_ERR_INTERNAL, "symbol %s has no value in the program", e->name);
    int number = e->kind == CI_EXPR_const    ? add_value(builder, e->value, -1)
                 : e->kind == CI_EXPR_linear ? number_linear(builder, e)
                                             : number_chain(builder, e, OPS[e->kind]);
    if (!builder->formula || builder->segment_of[number] < 0)
        remember(builder, e, number);
    return number;
}

int
ci_values_constant(CiValuesBuilder *builder, int64_t value)
{
    return add_value(builder, value, -1);
}

int
ci_values_row(CiValuesBuilder *builder, int count, const CiExpr *const *exprs)
{
    int *numbers = CI_NEW_ARRAY(builder->ctx, int, count + 1);
    for (int k = 0; k < count; k++)
        numbers[k] = ci_values_number(builder, exprs[k]);
    int first = builder->values->count;
    for (int k = 0; k < count; k++)
        add_code(builder, (CiValueCode){CI_VALUE_copy, 0, numbers[k], 0, 0});
    return first;
}

static int64_t
floordiv(int64_t a, int64_t b)
{
    if (b == 0 || b == -1)
        return b ? (int64_t)(0 - (uint64_t)a) : 0;
    return a / b - (a % b != 0 && (a ^ b) < 0);
}

void
ci_values_run(const CiSegment *segment, int ncode, int64_t *table)
{
    for (int i = 0; i < ncode; i++) {
        const CiValueCode *code = &segment->code[i];
        int64_t a = table[code->a], b = table[code->b];
        uint64_t ua = (uint64_t)a, ub = (uint64_t)b, out = 0;
        switch (code->op) {
        case CI_VALUE_copy:
            out = ua;
            break;
        case CI_VALUE_add:
            out = ua + (uint64_t)code->factor * ub;
            break;
        case CI_VALUE_multiply:
            out = ua * ub;
            break;
        case CI_VALUE_floordiv:
            out = (uint64_t)floordiv(a, b);
            break;
        case CI_VALUE_mod:
            out = b ? ua - (uint64_t)floordiv(a, b) * ub : 0;
            break;
        case CI_VALUE_min:
            out = (uint64_t)(a < b ? a : b);
            break;
        case CI_VALUE_max:
            out = (uint64_t)(a > b ? a : b);
            break;
        }
        table[code->out] = (int64_t)out;
    }
}
