/* Conditions on sizes: a branch condition holds while the branch is captured, until a mark from before
 * it forgets it. */
#include "graph/methods.h"
#include "region/region.h"
#include "value/index.h"
#include "value/python_number.h"

/* Reads a condition: 1 if it is a relation of sizes, 0 if it is another one, about which nothing
 * is known. */
static int
condition_from(CxTracer *t, PyObject *condition, CiRelation *relation, const CiExpr **a,
               const CiExpr **b)
{
    PyObject *left = NULL, *right = NULL;
    const char *sign = NULL;
    const CxCompared *compared;

    if (cx_is_traced(condition)) {
        const CxStorage *s = ((CxTraced *)condition)->storage;
        *relation = s->relation;
        *a = s->left;
        *b = s->right;
        return ((CxTraced *)condition)->view == NULL && s->left != NULL;
    }
    if (!PyTuple_Check(condition))
        return 0;
    if (!PyArg_ParseTuple(condition, "OsO:assume", &left, &sign, &right) ||
        (compared = cx_compared_by(sign)) == NULL)
        return -1;
    *relation = compared->relation;
    *a = cx_size_from(t, compared->is_swapped ? right : left);
    *b = *a != NULL ? cx_size_from(t, compared->is_swapped ? left : right) : NULL;
    return *b != NULL ? 1 : -1;
}

PyObject *
cx_method_assume(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"condition", "holds", NULL};
    CxTracer *t = (CxTracer *)self;
    PyObject *condition = NULL;
    const CiExpr *a = NULL, *b = NULL;
    CiRelation relation = CI_REL_eq;
    int holds = 1;

    CX_ENTRY();
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|p:assume", names, &condition, &holds))
        return NULL;
    int status = condition_from(t, condition, &relation, &a, &b);
    if (status < 0)
        return NULL;
    long token = ++t->last_token;
    if (status > 0 && holds)
        status = cx_fact_add(t, relation, a, b, token);
    else if (status > 0 && (relation == CI_REL_eq || relation == CI_REL_ne))
        status = cx_fact_add(t, relation == CI_REL_eq ? CI_REL_ne : CI_REL_eq, a, b, token);
    else if (status > 0)
        status = cx_fact_add(t, relation == CI_REL_le ? CI_REL_lt : CI_REL_le, b, a, token);
    if (status < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* True if the value depends on sizes only. */
static bool
is_of_sizes(const CxStorage *s, int depth)
{
    enum { MOST = 8 };

    if (s->expr != NULL || s->left != NULL)
        return true;
    if (depth > MOST || s->source >= 0 || (s->parents[0] == NULL && s->parents[1] == NULL))
        return false;
    return (s->parents[0] == NULL || is_of_sizes(s->parents[0], depth + 1)) &&
           (s->parents[1] == NULL || is_of_sizes(s->parents[1], depth + 1));
}

/* sample_truth(number): its truth in this call, if it only depends on sizes that are known; it
 * is not guarded. Else None. */
PyObject *
cx_method_sample_truth(PyObject *self, PyObject *value)
{
    CX_ENTRY();
    if (!cx_is_traced(value) || ((CxTraced *)value)->view != NULL)
        Py_RETURN_NONE;
    const CxStorage *s = ((CxTraced *)value)->storage;
    if (s->kind != CI_KIND_python || s->value == NULL || s->expr != NULL || !is_of_sizes(s, 0))
        Py_RETURN_NONE;
    int sample = PyObject_IsTrue(s->value);
    (void)self;
    return sample < 0 ? NULL : PyBool_FromLong(sample);
}

/* note_sample(number, condition, chosen): records the value in this call of a Python number that
 * the graph selects by a condition on sizes. Code that needs the value guards the condition. */
PyObject *
cx_method_note_sample(PyObject *self, PyObject *args)
{
    PyObject *value = NULL, *condition = NULL, *chosen = NULL;

    CX_ENTRY();
    (void)self;
    if (!PyArg_ParseTuple(args, "OOO:note_sample", &value, &condition, &chosen))
        return NULL;
    if (!cx_is_traced(value) || !cx_is_traced(condition))
        return cx_misuse(((CxTracer *)self)->state,
                         "note_sample() takes a Traced number and condition");
    PyObject *known = cx_is_python_number(chosen) ? cx_python_value(chosen) : NULL;
    CxStorage *s = ((CxTraced *)value)->storage, *of[2] = {((CxTraced *)condition)->storage, NULL};
    if (known == NULL || s->value != NULL || s->kind != CI_KIND_python)
        Py_RETURN_NONE;
    if (cx_is_traced(chosen))
        of[1] = ((CxTraced *)chosen)->storage;
    s->value = Py_NewRef(known);
    for (int k = 0; k < 2 && of[k] != NULL; k++) {
        s->parents[k] = of[k];
        of[k]->refs++;
    }
    Py_RETURN_NONE;
}
