/* Finds existing programs by a key. The table has addresses, not references: a program that is
 * no longer used takes itself out, and its code is unmapped at once. */
#include "program/program.h"

CxProgram *
cx_program_find(CxState *state, PyObject *key, int *failed)
{
    PyObject *address = cx_dict_find(state->segments, key, failed);

    return address != NULL ? (CxProgram *)Py_NewRef((PyObject *)PyLong_AsVoidPtr(address)) : NULL;
}

int
cx_program_put(CxProgram *p, PyObject *key)
{
    PyObject *address = PyLong_FromVoidPtr(p);
    int status = address != NULL ? PyDict_SetItem(p->state->segments, key, address) : -1;

    Py_XDECREF(address);
    if (status == 0)
        Py_XSETREF(p->key, Py_NewRef(key));
    return status;
}

void
cx_program_take_out(CxProgram *p)
{
    if (p->key == NULL)
        return;
    PyObject *error = cx_take_exception();
    int failed = 0;
    PyObject *address =
        p->state->segments != NULL ? cx_dict_find(p->state->segments, p->key, &failed) : NULL;

    if (address != NULL && PyLong_AsVoidPtr(address) == (void *)p)
        PyDict_DelItem(p->state->segments, p->key);
    PyErr_Clear();
    Py_CLEAR(p->key);
    if (error != NULL)
        cx_restore_exception(error);
}
