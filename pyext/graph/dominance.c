/* Decides whether a cached node dominates the current position, and raises RegionBreak where the
 * pending graph cannot be run.
 *
 * A cached node may be used in the block where it was made and in blocks inside it. Each scope
 * of building has a number; `open` lists the scopes in force, outermost first, so the numbers
 * ascend. A mark begins a scope. Rolling back to a mark ends its scope and all later ones, and
 * closing a block ends the block's scopes. A node whose scope is not open may not be used; it is
 * built again.
 *
 * The graph cannot run while a block is open. An operation that needs this raises RegionBreak.
 * The code that opened the outermost block then rolls back and continues without a region. */
#include "graph/graph.h"

static int
push(CxTracer *t, unsigned scope)
{
    if (t->nopen == t->capopen) {
        int capacity = t->capopen ? 2 * t->capopen : 16;
        unsigned *grown = PyMem_Realloc(t->open, sizeof *grown * (size_t)capacity);
        if (grown == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        t->open = grown;
        t->capopen = capacity;
    }
    t->open[t->nopen++] = scope;
    return 0;
}

int
cx_dominance_begin(CxTracer *t)
{
    return push(t, ++t->last_segment);
}

int
cx_dominance_again(CxTracer *t, const unsigned *scopes, int count)
{
    if (count > 0 && t->nopen > 0 && t->open[t->nopen - 1] > scopes[0])
        return 0;
    for (int k = 0; k < count; k++)
        if (push(t, scopes[k]) < 0)
            return -1;
    return 0;
}

bool
cx_dominance_is_open(const CxTracer *t, unsigned scope)
{
    int low = 0, high = t->nopen;

    if (scope == 0) /* the graph itself */
        return true;
    while (low < high) {
        int middle = (low + high) / 2;
        if (t->open[middle] == scope)
            return true;
        if (t->open[middle] < scope)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

int
cx_region_break(CxTracer *t, const char *format, ...)
{
    CiLoc loc = cx_location(t);
    va_list list;

    va_start(list, format);
    PyObject *reason = PyUnicode_FromFormatV(format, list);
    va_end(list);
    PyObject *args = reason ? Py_BuildValue("(ONi)", reason, cx_path(loc.file), loc.line) : NULL;
    if (args != NULL)
        PyErr_SetObject(t->state->region_break, args);
    Py_XDECREF(reason);
    Py_XDECREF(args);
    return -1;
}
