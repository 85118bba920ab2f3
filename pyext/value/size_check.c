/* Sizes that must be equal, or must fit: proved, guarded, or checked at run time. */
#include "value/build.h"
#include "value/index.h"
#include "value/python_number.h"

/* Adds a check that the relation holds. */
static int
check(CxTracer *t, CiRelation relation, const CiExpr *a, const CiExpr *b, const char *why)
{
    PyObject *x = cx_size_object(t, a), *y = x ? cx_size_object(t, b) : NULL, *holds = NULL;
    int result = -1;

    if (y != NULL)
        holds = cx_python_data(t, cx_comparison_of(relation), x, y, NULL);
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

/* Equal sizes may be equal by chance: for other calls, another program is right. */
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

typedef struct Join {
    CiSym *sym;
    const CiExpr *a, *b, *result;
} Join;

static void
body_join(CiContext *ctx, void *arg)
{
    Join *j = arg;
    bool is_less = !ci_sym_known_le(j->sym, j->a, j->b) && ci_sym_known_le(j->sym, j->b, j->a);

    (void)ctx;
    j->result = is_less ? j->b : j->a;
}

/* Chooses one of two sizes that must be equal: a constant, or the one with the better upper
 * bound: n // 2 rather than n - n // 2. */
const CiExpr *
cx_size_join(CxTracer *t, const CiExpr *a, const CiExpr *b)
{
    Join join = {.sym = t->sym, .a = a, .b = b};

    if (a == b)
        return a;
    if (cx_size_require(t, CI_REL_eq, a, b, "sizes that must be equal") != 1)
        return NULL;
    if (b->kind == CI_EXPR_const || a->kind == CI_EXPR_const)
        return b->kind == CI_EXPR_const ? b : a;
    return cx_protect(t->state, t->sym_ctx, body_join, &join) < 0 ? NULL : join.result;
}

int
cx_sizes_equal(CxTracer *t, int rank, const CiExpr *const *a, const CiExpr *const *b)
{
    for (int k = 0; k < rank; k++)
        if (cx_size_join(t, a[k], b[k]) == NULL)
            return PyErr_Occurred() ? -1 : 0;
    return 1;
}
