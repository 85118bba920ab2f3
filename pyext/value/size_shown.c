/* Sizes that appear in the text of an exception, which NumPy raises for arrays without elements. */
#include "graph/methods.h"
#include "state/array.h"
#include "value/index.h"

/* Records a few sizes; further ones are forced at once. */
static int
note(CxTracer *t, const CiExpr *e)
{
    for (int k = 0; k < t->nshown; k++)
        if (t->shown[k] == e)
            return 0;
    if (t->nshown == CX_MAX_SHOWN)
        return cx_size_concretize(t, e, "the text of an exception") < 0 ? -1 : 0;
    t->shown[t->nshown++] = e;
    return 0;
}

int
cx_size_shown(CxTracer *t, int count, const CiExpr *const *exprs, int64_t *values)
{
    for (int k = 0; k < count; k++) {
        if (exprs[k]->kind == CI_EXPR_const)
            continue;
        int status = cx_size_is_known(t, exprs[k])
                         ? note(t, exprs[k])
                         : (int)cx_size_concretize(t, exprs[k], "the text of an exception");
        if (status < 0 && PyErr_Occurred())
            return -1;
    }
    cx_size_samples(t, count, exprs, values);
    return 0;
}

PyObject *
cx_size_dummy(CxTraced *x)
{
    int64_t sizes[CI_MAX_RANK];

    if (cx_size_shown(x->tracer, cx_rank(x), cx_sizes(x), sizes) < 0)
        return NULL;
    return cx_array_dummy(x->tracer->state, cx_dtype(x), cx_rank(x), sizes);
}

PyObject *
cx_method_concretize_shown(PyObject *self, PyObject *unused)
{
    CxTracer *t = (CxTracer *)self;

    (void)unused;
    while (t->nshown > 0)
        if (cx_size_concretize(t, t->shown[--t->nshown], "the text of an exception") < 0 &&
            PyErr_Occurred())
            return NULL;
    Py_RETURN_NONE;
}
