/* What Python says of sizes: a branch holds while it is captured, a decision is taken back. */
#include "methods.h"
#include "region.h"
#include "size.h"

/* forget_guards(mark): what was decided since by the sizes of this call is open again. */
PyObject *
cx_method_forget_guards(PyObject *self, PyObject *mark)
{
    CxTracer *t = (CxTracer *)self;

    CX_ENTRY();
    int kept = cx_mark_guards(t, mark);
    if (kept < 0)
        return NULL;
    if (kept < t->env->nguards)
        t->env->nguards = kept;
    cx_facts_forget_guards(t, kept);
    Py_RETURN_NONE;
}

static int
relation_from(const char *text, CiRelation *relation, bool *is_swapped)
{
    static const struct {
        const char *text;
        CiRelation relation;
        bool is_swapped;
    } relations[] = {{"==", CI_REL_eq, false}, {"!=", CI_REL_ne, false}, {"<=", CI_REL_le, false},
                     {"<", CI_REL_lt, false},  {">=", CI_REL_le, true},  {">", CI_REL_lt, true}};

    for (size_t k = 0; k < sizeof relations / sizeof *relations; k++)
        if (strcmp(text, relations[k].text) == 0) {
            *relation = relations[k].relation;
            *is_swapped = relations[k].is_swapped;
            return 0;
        }
    PyErr_Format(PyExc_ValueError, "'%s' is no relation", text);
    return -1;
}

/* 1: a relation of sizes; 0: another condition, of which nothing can be said. */
static int
condition_from(CxTracer *t, PyObject *condition, CiRelation *relation, const CiExpr **a,
               const CiExpr **b)
{
    PyObject *left = NULL, *right = NULL;
    const char *text = NULL;
    bool is_swapped = false;

    if (cx_is_traced(condition)) {
        const CxStorage *s = ((CxTraced *)condition)->storage;
        *relation = s->relation;
        *a = s->left;
        *b = s->right;
        return ((CxTraced *)condition)->view == NULL && s->left != NULL;
    }
    if (!PyTuple_Check(condition))
        return 0;
    if (!PyArg_ParseTuple(condition, "OsO:assume", &left, &text, &right) ||
        relation_from(text, relation, &is_swapped) < 0 || (*a = cx_size_from(t, left)) == NULL ||
        (*b = cx_size_from(t, right)) == NULL)
        return -1;
    if (is_swapped) {
        const CiExpr *swap = *a;
        *a = *b;
        *b = swap;
    }
    return 1;
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
    return status < 0 ? NULL : PyLong_FromLong(token);
}

PyObject *
cx_method_forget(PyObject *self, PyObject *token)
{
    CxTracer *t = (CxTracer *)self;
    long number = PyLong_AsLong(token);

    CX_ENTRY();
    if (number == -1 && PyErr_Occurred())
        return NULL;
    cx_facts_forget(t, number);
    Py_RETURN_NONE;
}
