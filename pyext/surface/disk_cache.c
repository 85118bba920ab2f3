/* The disk cache for the package: its directory, its statistics, and the texts of saved calls. */
#include "surface/disk_cache.h"

PyObject *
cx_cache_info(PyObject *module, PyObject *unused)
{
    CxState *state = PyModule_GetState(module);
    CiCacheInfo info = {0};
    (void)unused;
    if (state->runtime.cache != NULL)
        ci_cache_info(state->runtime.cache, &info);
    return Py_BuildValue("{s:N,s:L,s:L,s:N,s:L,s:L,s:L,s:L}", "directory",
                         cx_path(info.directory),
                         "entries", (long long)info.entries, "bytes", (long long)info.bytes,
                         "serves_alone", PyBool_FromLong(info.notes > 0), "hits",
                         (long long)info.hits, "misses", (long long)info.misses, "stores",
                         (long long)info.stores, "rejected", (long long)info.rejected);
}

/* cache_stores(): kernels that this process has stored, without a look at the folder. */
PyObject *
cx_cache_stores(PyObject *module, PyObject *unused)
{
    CxState *state = PyModule_GetState(module);
    (void)unused;
    return PyLong_FromLongLong(state->runtime.cache ? ci_cache_stores(state->runtime.cache) : 0);
}

/* read_call(key): the text stored under a key, or None. */
PyObject *
cx_read_call(PyObject *module, PyObject *key)
{
    CxState *state = PyModule_GetState(module);
    const char *text = PyUnicode_AsUTF8(key);
    void *data = NULL;
    size_t size = 0;

    if (text == NULL)
        return NULL;
    if (state->runtime.cache == NULL ||
        !ci_cache_read_call(state->runtime.cache, text, &data, &size))
        Py_RETURN_NONE;
    PyObject *made = PyUnicode_DecodeUTF8(data, (Py_ssize_t)size, "surrogateescape");
    free(data);
    return made;
}

PyObject *
cx_has_call(PyObject *module, PyObject *key)
{
    CxState *state = PyModule_GetState(module);
    const char *text = PyUnicode_AsUTF8(key);

    if (text == NULL)
        return NULL;
    return PyBool_FromLong(state->runtime.cache != NULL &&
                           ci_cache_has_call(state->runtime.cache, text));
}

PyObject *
cx_write_call(PyObject *module, PyObject *args)
{
    CxState *state = PyModule_GetState(module);
    PyObject *text = NULL;
    const char *key = NULL;

    if (!PyArg_ParseTuple(args, "sU:write_call", &key, &text))
        return NULL;
    PyObject *bytes = PyUnicode_AsEncodedString(text, "utf-8", "surrogateescape");
    if (bytes == NULL)
        return NULL;
    if (state->runtime.cache != NULL)
        ci_cache_write_call(state->runtime.cache, key, PyBytes_AS_STRING(bytes),
                            (size_t)PyBytes_GET_SIZE(bytes));
    Py_DECREF(bytes);
    Py_RETURN_NONE;
}

PyObject *
cx_cache_directory(PyObject *module, PyObject *unused)
{
    CxState *state = PyModule_GetState(module);
    (void)unused;
    CX_ENTRY();
    return cx_path(state->runtime.cache ? ci_cache_directory(state->runtime.cache) : NULL);
}

/* Another thread may be building in the old cache, so it stays open as long as the module. */
PyObject *
cx_set_cache_directory(PyObject *module, PyObject *path)
{
    CxState *state = PyModule_GetState(module);
    PyObject *bytes = NULL;

    if (path != Py_None && !PyUnicode_FSConverter(path, &bytes))
        return NULL;
    CiCache **caches =
        PyMem_Realloc(state->old_caches, sizeof *caches * ((size_t)state->nold_caches + 1));
    if (caches != NULL)
        state->old_caches = caches;
    CiCache *cache = caches ? ci_cache_open(bytes ? PyBytes_AS_STRING(bytes) : NULL) : NULL;
    Py_XDECREF(bytes);
    if (cache == NULL)
        return PyErr_NoMemory();
    state->old_caches[state->nold_caches++] = state->runtime.cache;
    state->runtime.cache = cache;
    Py_RETURN_NONE;
}
