/* From a CiStatus to an exception. The classes that Python lacks are made from errors.def, so a new row is enough. */
#include "pyext.h"

static const char *const exception_names[CI_ERR_COUNT] = {
#define ERROR(name, python, text) [CI_ERR_##name] = python,
#include "base/errors.def"
#undef ERROR
};

static int
add_class(CxState *state, PyObject *module, const char *name)
{
    PyObject *type = NULL;
    char full[80];
    int result = -1;

    PyOS_snprintf(full, sizeof full, "cinductor.%s", name);
    type = PyErr_NewException(full, state->base_error, NULL);
    if (type == NULL || PyDict_SetItemString(state->exceptions, name, type) < 0)
        goto done;
    result = PyModule_AddObjectRef(module, name, type);
done:
    Py_XDECREF(type);
    return result;
}

int
cx_errors_init(CxState *state, PyObject *module)
{
    PyObject *builtins = PyEval_GetBuiltins();

    state->exceptions = PyDict_New();
    state->base_error = PyErr_NewException("cinductor.CinductorError", NULL, NULL);
    if (state->exceptions == NULL || state->base_error == NULL
        || PyModule_AddObjectRef(module, "CinductorError", state->base_error) < 0)
        return -1;
    for (int k = 1; k < CI_ERR_COUNT; k++) {
        const char *name = exception_names[k];
        if (name[0] == '\0' || PyDict_GetItemString(state->exceptions, name) != NULL)
            continue;
        PyObject *known = PyDict_GetItemString(builtins, name);
        if (known != NULL) {
            if (PyDict_SetItemString(state->exceptions, name, known) < 0)
                return -1;
        }
        else if (add_class(state, module, name) < 0) {
            return -1;
        }
    }
    return 0;
}

PyObject *
cx_exception(CxState *state, const char *name)
{
    PyObject *type = state->exceptions ? PyDict_GetItemString(state->exceptions, name) : NULL;
    return type != NULL ? type : PyExc_RuntimeError;
}

int
cx_raise_status(CxState *state, CiStatus status, const char *message)
{
    if (PyErr_Occurred())
        return -1;
    if (message == NULL || message[0] == '\0')
        message = ci_status_text(status);
    const char *name = status > CI_OK && status < CI_ERR_COUNT ? exception_names[status] : "";
    if (name[0] == '\0')
        name = "InternalError";
    PyErr_SetString(cx_exception(state, name), message);
    return -1;
}

int
cx_protect(CxState *state, CiContext *ctx, void (*body)(CiContext *ctx, void *arg), void *arg)
{
    CiStatus status = ci_protect(ctx, body, arg);
    return status == CI_OK ? 0 : cx_raise_status(state, status, ci_context_message(ctx));
}
