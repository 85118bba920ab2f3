/* The code, defaults and keyword defaults of the function that a compiled function runs. They
 * may be assigned, so they are compared before each call. */
#include "replay/function_body.h"

PyObject *
cx_python_function(PyObject *fn)
{
    PyObject *found = PyFunction_Check(fn) ? Py_NewRef(fn)
                      : PyMethod_Check(fn)
                          ? Py_NewRef(PyMethod_GET_FUNCTION(fn))
                          : PyObject_GetAttrString((PyObject *)Py_TYPE(fn), "__call__");
    PyErr_Clear();
    if (found != NULL && !PyFunction_Check(found))
        Py_CLEAR(found);
    return found;
}

void
cx_body_note(CxBody *body, PyObject *function)
{
    PyObject *f = function;
    Py_XINCREF(f);
    Py_XSETREF(body->code, f ? Py_XNewRef(PyFunction_GET_CODE(f)) : NULL);
    Py_XSETREF(body->defaults, f ? Py_XNewRef(PyFunction_GET_DEFAULTS(f)) : NULL);
    Py_XSETREF(body->named, f ? Py_XNewRef(PyFunction_GET_KW_DEFAULTS(f)) : NULL);
    Py_XSETREF(body->function, f);
}

/* True if the keyword defaults are the signature's. They are in a dict, which may be changed in
 * place. */
static bool
has_named(PyObject *named, const CxSignature *signature)
{
    for (int k = 0; k < signature->count; k++) {
        if (!cx_signature_is_named(signature, k))
            continue;
        PyObject *now = PyDict_GetItemWithError(named, PyTuple_GET_ITEM(signature->names, k));
        PyErr_Clear();
        if ((now ? now : signature->missing) != PyTuple_GET_ITEM(signature->defaults, k))
            return false;
    }
    return true;
}

bool
cx_body_is_same(const CxBody *body, const CxSignature *signature)
{
    PyObject *f = body->function;
    return f == NULL || (PyFunction_GET_CODE(f) == body->code &&
                         PyFunction_GET_DEFAULTS(f) == body->defaults &&
                         PyFunction_GET_KW_DEFAULTS(f) == body->named &&
                         (body->named == NULL || has_named(body->named, signature)));
}

PyObject *
cx_body_location(PyObject *fn)
{
    PyObject *function = cx_python_function(fn);
    PyObject *code = function ? PyFunction_GET_CODE(function) : NULL;
    Py_XDECREF(function); /* fn holds a reference */
    if (code == NULL || !PyUnicode_Check(((PyCodeObject *)code)->co_filename))
        return NULL;
    return cx_location_text(code);
}
