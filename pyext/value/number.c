/* Queries of the operator table in number.def. */
#include "value/python_number.h"

static const CxCompared comparisons[] = {
#define COMPARE(op, sign, python, relation, is_swapped, ...)                                       \
    {CI_OP_##op, sign, CI_REL_##relation, is_swapped},
#include "value/number.def"
};
enum { COMPARISONS = sizeof comparisons / sizeof *comparisons };

const CxCompared *
cx_compared(int ufunc)
{
    for (int k = 0; k < COMPARISONS; k++)
        if ((int)comparisons[k].op == ufunc)
            return &comparisons[k];
    return NULL;
}

const CxCompared *
cx_compared_by(const char *sign)
{
    for (int k = 0; k < COMPARISONS; k++)
        if (strcmp(comparisons[k].sign, sign) == 0)
            return &comparisons[k];
    PyErr_Format(PyExc_ValueError, "'%s' is no relation", sign);
    return NULL;
}

CiOp
cx_comparison_of(CiRelation relation)
{
    int k = 0;
    while (comparisons[k].relation != relation || comparisons[k].is_swapped)
        k++;
    return comparisons[k].op;
}

CxTagged
cx_tagged_when(int ufunc)
{
    static const CxTagged rows[CI_OP_COUNT] = {
#define NUMBER(op, sizes, ints, floats, complexes, tagged) [CI_OP_##op] = CX_TAGGED_##tagged,
#include "value/number.def"
    };
    return ufunc < CI_OP_COUNT ? rows[ufunc] : CX_TAGGED_never;
}
