/* Makes dicts of the numbers of one compile, and of the outcome of recording. */
#include "program/program.h"

#include <stdio.h>

int
cx_info_fill(PyObject *dict, const CiCompileInfo *info)
{
    if (dict == NULL)
        return 0;
    PyObject *numbers = Py_BuildValue(
        "{s:d,s:d,s:d,s:d,s:d,s:d,s:d,s:d,s:O,s:i,s:i,s:i,s:i,s:i}", "passes_ms", info->passes_ms,
        "lower_ms", info->lower_ms, "schedule_ms", info->schedule_ms, "wrap_ms", info->wrap_ms,
        "emit_ms", info->build.emit_ms, "compile_ms", info->build.compile_ms, "load_ms",
        info->build.load_ms, "total_ms", info->total_ms, "from_cache",
        info->build.from_cache ? Py_True : Py_False, "children", (int)info->build.children, "nodes",
        (int)info->nodes, "nests", (int)info->nests, "kernels", (int)info->kernels, "externs",
        (int)info->externs);
    int status = numbers != NULL ? PyDict_Update(dict, numbers) : -1;

    Py_XDECREF(numbers);
    return status;
}

static PyObject *
recording_of(const CiRecordingUse *use)
{
    return Py_BuildValue("{s:i,s:i,s:L,s:L,s:i,s:i,s:z}", "launches", use->launches, "device",
                         use->device, "replayed", (long long)use->replayed, "launched",
                         (long long)use->launched, "recordings", use->recordings, "copied",
                         use->copied, "why_not", use->why_not[0] ? use->why_not : NULL);
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
