/* Sizes that must be equal, or must fit: proved, guarded, or checked while the program runs. */
#include "build.h"
#include "python_number.h"
#include "size.h"

/* A check that the relation holds. */
static int
check(CxTracer *t, CiRelation relation, const CiExpr *a, const CiExpr *b, const char *why)
{
    static const int ufuncs[] = {[CI_REL_eq] = CI_OP_equal,
                                 [CI_REL_ne] = CI_OP_not_equal,
                                 [CI_REL_le] = CI_OP_less_equal,
                                 [CI_REL_lt] = CI_OP_less};
    PyObject *x = cx_size_object(t, a), *y = x ? cx_size_object(t, b) : NULL, *holds = NULL;
    int result = -1;

    if (y != NULL)
        holds = cx_python_data(t, ufuncs[relation], x, y, NULL);
    if (holds != NULL && cx_is_traced(holds)) {
        (void)cx_build_check(t, (CxTraced *)holds, why);
        result = PyErr_Occurred() ? -1 : cx_fact_add(t, relation, a, b, 0) < 0 ? -1 : 0;
    } else if (holds != NULL) {
        cx_raise_status(t->state, CI_ERR_INTERNAL, "a relation of sizes that no graph can check");
    }
    Py_XDECREF(x);
    Py_XDECREF(y);
    Py_XDECREF(holds);
    return result;
}

/* Equal sizes may be so by chance: where they are not, another program is right. */
int
cx_size_require(CxTracer *t, CiRelation relation, const CiExpr *a, const CiExpr *b, const char *why)
{
    int (*decide)(CxTracer *, CiRelation, const CiExpr *, const CiExpr *) =
        relation == CI_REL_eq ? cx_size_decide : cx_size_usual;
    int holds = decide(t, relation, a, b);
    if (holds == CX_OPEN && !cx_may_check(t))
        holds = cx_tracer_break(t, "%s", why) < 0 ? -1 : decide(t, relation, a, b);
    else if (holds == CX_OPEN)
        holds = check(t, relation, a, b, why) < 0 ? -1 : 1;
    return holds;
}

const CiExpr *
cx_size_join(CxTracer *t, const CiExpr *a, const CiExpr *b)
{
    if (a != b && cx_size_require(t, CI_REL_eq, a, b, "sizes that must be equal") != 1)
        return NULL;
    return b->kind == CI_EXPR_const ? b : a;
}

int
cx_sizes_equal(CxTracer *t, int rank, const CiExpr *const *a, const CiExpr *const *b)
{
    for (int k = 0; k < rank; k++)
        if (cx_size_join(t, a[k], b[k]) == NULL)
            return PyErr_Occurred() ? -1 : 0;
    return 1;
}

/* The running program checks what data make. */
static int
check_data(CxTraced *x, const int64_t limits[2])
{
    static const int compares[2] = {CI_OP_greater_equal, CI_OP_less_equal};
    CxTracer *t = x->tracer;
    int result = 1;

    if (!cx_may_check(t))
        return 0;
    for (int k = 0; k < 2 && result > 0; k++) {
        PyObject *limit = PyLong_FromLongLong(limits[k]);
        PyObject *holds = limit ? cx_python_data(t, compares[k], (PyObject *)x, limit, NULL) : NULL;
        if (holds != NULL && cx_is_traced(holds)) /* else no int64 passes the limit */
            (void)cx_build_check(t, (CxTraced *)holds, "a Python int out of a dtype's range");
        if (PyErr_Occurred())
            result = -1;
        Py_XDECREF(holds);
        Py_XDECREF(limit);
    }
    return result;
}

/* Whether a value may become one of that dtype: a Python int goes into a narrower integer dtype
 * only if it fits. 0: it does not, or nobody can tell. */
int
cx_int_fits(CxTraced *x, CiDtype want)
{
    static const char *const why = "a Python int that a narrower dtype holds";
    CxTracer *t = x->tracer;
    CiClass kind = ci_dtype_class(want);
    int bits = 8 * ci_dtype_size(want);
    bool is_signed = kind == CI_CLASS_int;

    if (cx_kind(x) != CI_KIND_python || cx_dtype(x) != CI_DTYPE_i64 || want == CI_DTYPE_i64 ||
        (!is_signed && kind != CI_CLASS_uint))
        return 1;
    const int64_t high = bits == 64 ? INT64_MAX : ((int64_t)1 << (bits - is_signed)) - 1;
    const int64_t limits[2] = {is_signed ? -high - 1 : 0, high};
    const CiExpr *e = x->storage->expr;
    if (e == NULL)
        return check_data(x, limits);
    if (e->low >= limits[0] && e->high <= limits[1])
        return 1;
    const CiExpr *low = cx_size_const(t, limits[0]), *most = cx_size_const(t, high);
    if (low == NULL || most == NULL)
        return -1;
    int fits = cx_size_require(t, CI_REL_le, low, e, why);
    return fits > 0 ? cx_size_require(t, CI_REL_le, e, most, why) : fits;
}
