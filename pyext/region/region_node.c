/* Finds nodes from their Python representation: a Traced value, or a block and the number of a
 * value that it holds. */
#include "region/region.h"

bool
cx_block_is_usable(CxBlock *b)
{
    if (b->epoch == b->tracer->epoch && b->tracer->graph != NULL)
        return true;
    PyErr_SetString(PyExc_ValueError, "the graph of this block is gone");
    return false;
}

CiNode *
cx_region_node(CxTracer *t, PyObject *value)
{
    if (cx_is_traced(value))
        return cx_traced_prepare((CxTraced *)value) < 0 ? NULL : cx_node((CxTraced *)value);
    if (PyTuple_Check(value) && PyTuple_GET_SIZE(value) == 2 &&
        Py_IS_TYPE(PyTuple_GET_ITEM(value, 0), (PyTypeObject *)t->state->block_type)) {
        CxBlock *b = (CxBlock *)PyTuple_GET_ITEM(value, 0);
        long k = PyLong_AsLong(PyTuple_GET_ITEM(value, 1));
        if (b->tracer == t && k >= 0 && k < b->nheld && cx_block_is_usable(b))
            return b->owned[k];
    }
    if (!PyErr_Occurred())
        cx_misuse(t->state, "a Traced value or (block, number) is expected");
    return NULL;
}
