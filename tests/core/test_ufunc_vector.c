/* Functions on vectors against a loop that stands for NumPy's: one with their bits, and one that differs at
 * few operands, as that of another C library. */
#include <string.h>

#include "ci_test.h"
#include "device/ufunc.h"

enum { COUNT = 1000, FIRST_USE = 1 << 17 };

typedef struct Library {
    const CiVmathRow *row; /* whose results the loop has */
    uint32_t mask;         /* the last bit of a result is another one where an operand has all these bits */
} Library;

/* A float that the function leaves out has the result 1. */
static float
result_of(const Library *library, const char *operand)
{
    float operands[8], results[8];
    uint32_t bits;
    CiVmathBlock block = {{(const char *)operands, NULL}, (char *)results, 8, 0, {{0}}};

    for (int k = 0; k < 8; k++)
        memcpy(&operands[k], operand, sizeof(float));
    library->row->run(&block);
    if (block.nrare > 0)
        return 1;
    memcpy(&bits, operand, sizeof bits);
    if ((bits & library->mask) == library->mask) {
        memcpy(&bits, &results[0], sizeof bits);
        bits ^= 1;
        memcpy(&results[0], &bits, sizeof bits);
    }
    return results[0];
}

static void
loop(char **operands, const intptr_t *count, const intptr_t *steps, void *data)
{
    for (intptr_t k = 0; k < *count; k++) {
        float result = result_of(data, operands[0] + k * steps[0]);
        memcpy(operands[1] + k * steps[1], &result, sizeof result);
    }
}

/* The row that was found to have the bits of the library's loop; the results of both are compared. */
static const CiVmathRow *
decide(Library *library, CiUfuncVector *vector)
{
    const intptr_t steps[2] = {sizeof(float), sizeof(float)}, count = COUNT;
    float x[COUNT], got[COUNT], wanted[COUNT];
    char *mine[2] = {(char *)x, (char *)got}, *theirs[2] = {(char *)x, (char *)wanted};
    CiUfuncLoop numpys = {loop, library, false};
    CiUfuncLoop ours = ci_ufunc_vector_open(vector, CI_OP_exp, CI_DTYPE_f32, numpys, NULL);

    for (int k = 0; k < COUNT; k++)
        x[k] = (float)(k - COUNT / 2) / 64;
    const CiVmathRow *row = ci_ufunc_vector_decide(vector);
    ci_ufunc_call(ours, mine, &count, steps);
    ci_ufunc_call(numpys, theirs, &count, steps);
    CHECK(memcmp(got, wanted, sizeof got) == 0);
    return row;
}

TEST(a_function_runs_only_with_the_librarys_bits)
{
    int nrows;
    const CiVmathRow *rows = ci_vmath_find(CI_OP_exp, CI_DTYPE_f32, &nrows);
    (void)ctx;
    if (rows == NULL)
        return; /* this processor has no vectors */
    Library same = {rows, UINT32_MAX}, other = {rows, (1 << 8) - 1}, rare = {rows, (1 << 13) - 1};
    CiUfuncVector vectors[3] = {{.nrows = 0}};

    CHECK(decide(&same, &vectors[0]) == &rows[0]);
    CHECK(decide(&other, &vectors[1]) == NULL);
    CHECK(decide(&rare, &vectors[2]) == NULL);
}

/* Before the test the loop computes; the call that reaches the elements of a test makes it. */
TEST(a_function_is_tested_at_its_first_use)
{
    int nrows;
    const CiVmathRow *rows = ci_vmath_find(CI_OP_exp, CI_DTYPE_f32, &nrows);
    Library same = {rows, UINT32_MAX};
    CiUfuncVector vector = {.nrows = 0};
    float x = 1, result;
    char *operands[2] = {(char *)&x, (char *)&result};
    const intptr_t steps[2] = {0, 0}, part = FIRST_USE - 1, last = 1;
    (void)ctx;
    if (rows == NULL)
        return;
    CiUfuncLoop ours = ci_ufunc_vector_open(&vector, CI_OP_exp, CI_DTYPE_f32, (CiUfuncLoop){loop, &same, false}, NULL);

    ci_ufunc_call(ours, operands, &part, steps);
    CHECK(vector.row == NULL);
    ci_ufunc_call(ours, operands, &last, steps);
    CHECK(vector.row == &rows[0]);
}
