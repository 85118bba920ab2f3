/* Programs whose kernels a compiler makes that takes no time, and what takes their place. */
#include "program/program.h"
#include "state/state.h"

#include "base/os.h"

/* True if runs of the one may go on as runs of the other. */
static bool
is_alike(const CiProgram *one, const CiProgram *other)
{
    return ci_program_result_buffer_count(one) == ci_program_result_buffer_count(other) &&
           ci_program_return_count(one) == ci_program_return_count(other) &&
           ci_program_symbol_count(one) == ci_program_symbol_count(other) &&
           ci_program_extern_count(one) == ci_program_extern_count(other);
}

/* Builds what takes the place of the first program. That is kept, because other threads may run it. */
int
cx_program_replace(CxProgram *p, PyObject *info)
{
    CiRequest request;

    if (cx_isolate(p) < 0 || cx_program_make(p->state, p->graph, &p->options, p->backend, p->passes, NULL, NULL,
                                             NULL, NULL, &request) < 0)
        return -1;
    cx_note_build(p->state, p->graph, &request.info);
    if (p->is_former && is_alike(p->program, request.program)) {
        p->former = p->program;
        p->program = request.program;
        p->is_former = false;
    } else {
        cx_program_free(request.program);
    }
    return cx_info_fill(info, &request.info) < 0 || cx_warn_of_cache(p->state) < 0 ? -1 : 0;
}

const CiBackend *
cx_find_first(CxState *state, const CiBackend *backend, const CiOptions *options)
{
    bool may_be = options->stencils && strcmp(options->wrapper, "python") != 0;

    return may_be ? ci_backend_first(state->runtime.registry, backend, options) : NULL;
}

void
cx_program_pay(CxProgram *p, int64_t began)
{
    p->spent += 1e-9 * (double)(ci_os_time_ns() - began);
    if (p->spent < p->rent)
        return;
    PyObject *task = p->on_paid;
    p->on_paid = NULL; /* before the call, in which another thread may end a call of the program */
    p->rent = 0;
    PyObject *done = PyObject_CallNoArgs(task);
    if (done == NULL)
        PyErr_WriteUnraisable(task);
    Py_XDECREF(done);
    Py_DECREF(task);
}

PyObject *
cx_program_copy_stencils(PyObject *self, PyObject *args)
{
    CxProgram *p = (CxProgram *)self;
    CiRequest request;
    double rent;
    PyObject *on_paid;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "dO:copy_stencils", &rent, &on_paid))
        return NULL;
    const CiBackend *first = p->program != NULL ? NULL : cx_find_first(p->state, p->backend, &p->options);
    if (first == NULL)
        Py_RETURN_FALSE;
    if (cx_program_make(p->state, p->graph, &p->options, first, p->passes, NULL, NULL, NULL, NULL, &request) < 0)
        return NULL;
    if (request.info.build.interpreted > 0) {
        cx_program_free(request.program);
        Py_RETURN_FALSE;
    }
    p->is_former = true;
    p->rent = rent;
    p->on_paid = rent > 0 ? Py_NewRef(on_paid) : NULL;
    PyObject *info = PyDict_New();
    int taken = info == NULL ? -1 : cx_program_take(p, &request, info);
    Py_XDECREF(info);
    if (taken < 0 || (p->key != NULL && cx_program_put(p, p->key) < 0))
        return NULL;
    Py_RETURN_TRUE;
}
