/* Makes dicts of the numbers of one compile, and of the outcome of recording. */
#include "program/program.h"

#include <stdio.h>

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

static PyObject *
recording_of(const CiRecordingUse *use)
{
    return Py_BuildValue("{s:i,s:i,s:L,s:L,s:i,s:z}", "launches", use->launches, "device",
                         use->device, "replayed", (long long)use->replayed, "launched",
                         (long long)use->launched, "recordings", use->recordings, "why_not",
                         use->why_not[0] ? use->why_not : NULL);
}

static PyObject *
does_not_record(const CxProgram *p)
{
    CiRecordingUse use = {.launches = p->kernels};

    snprintf(use.why_not, sizeof use.why_not, "device '%s' does not record",
             p->backend->device->name);
    return recording_of(&use);
}

PyObject *
cx_program_recordings(PyObject *self, void *closure)
{
    CxProgram *p = (CxProgram *)self;
    bool records = p->backend->device->record_begin != NULL;
    int count = records ? ci_program_partition_count(p->program) : 1;

    (void)closure;
    if (!p->options.graphs)
        Py_RETURN_NONE;
    PyObject *list = PyList_New(count);
    for (int k = 0; list != NULL && k < count; k++) {
        CiRecordingUse use;
        if (records)
            ci_program_partition_at(p->program, k, &use);
        cx_put_item(&list, k, records ? recording_of(&use) : does_not_record(p));
    }
    return list;
}
