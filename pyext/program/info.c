/* What one compile took and made, as a dict. */
#include "program/program.h"

static int
set_number(PyObject *dict, const char *name, double value)
{
    PyObject *number = PyFloat_FromDouble(value);
    int result = number ? PyDict_SetItemString(dict, name, number) : -1;
    Py_XDECREF(number);
    return result;
}

static int
set_count(PyObject *dict, const char *name, long value)
{
    PyObject *number = PyLong_FromLong(value);
    int result = number ? PyDict_SetItemString(dict, name, number) : -1;
    Py_XDECREF(number);
    return result;
}

int
cx_info_fill(PyObject *dict, const CiCompileInfo *info)
{
    if (dict == NULL)
        return 0;
    return set_number(dict, "passes_ms", info->passes_ms) ||
                   set_number(dict, "lower_ms", info->lower_ms) ||
                   set_number(dict, "schedule_ms", info->schedule_ms) ||
                   set_number(dict, "wrap_ms", info->wrap_ms) ||
                   set_number(dict, "emit_ms", info->build.emit_ms) ||
                   set_number(dict, "compile_ms", info->build.compile_ms) ||
                   set_number(dict, "load_ms", info->build.load_ms) ||
                   set_number(dict, "total_ms", info->total_ms) ||
                   PyDict_SetItemString(dict, "from_cache",
                                        info->build.from_cache ? Py_True : Py_False) ||
                   set_count(dict, "children", info->build.children) ||
                   set_count(dict, "nodes", info->nodes) || set_count(dict, "nests", info->nests) ||
                   set_count(dict, "kernels", info->kernels) ||
                   set_count(dict, "externs", info->externs)
               ? -1
               : 0;
}
