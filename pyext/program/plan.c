/* Plans a program with other options without building it, for autotuning. */
#include "program/program.h"

#include "api/alternatives.h"

typedef struct Planned {
    PyObject *digest, *rows;
    long long peak_bytes;
} Planned;

/* Called without the lock. */
static void
keep_plan(void *arg, const CiProgramPlan *plan)
{
    Planned *planned = arg;
    CX_CALLBACK_BEGIN();
    planned->peak_bytes = plan->peak_bytes;
    planned->digest = PyUnicode_FromString(plan->digest);
    planned->rows = PyList_New(plan->count);
    for (int k = 0; planned->rows != NULL && k < plan->count; k++) {
        const CiAlternative *row = &plan->alternatives[k];
        cx_put_item(&planned->rows, k, Py_BuildValue("(sss)", row->kind, row->option, row->value));
    }
    PyErr_Clear(); /* the error is reported below */
    CX_CALLBACK_END();
}

/* plan(program, options): plans the program's graph with these options, without building it.
 * Returns a digest that identifies the plan; its alternatives, a list of (kind, option or
 * threshold, value); and the peak memory in bytes. */
PyObject *
cx_plan(PyObject *module, PyObject *args)
{
    CxState *state = PyModule_GetState(module);
    PyObject *given = NULL, *values = NULL;
    Planned planned = {0};
    CiOptions options;
    CiRequest request;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "O!O!:plan", (PyTypeObject *)state->program_type, &given,
                          &PyDict_Type, &values))
        return NULL;
    CxProgram *p = (CxProgram *)given;
    PyObject *copy = PyDict_Copy(values); /* option texts point into it */
    int failed = copy == NULL || cx_options_fill(copy, &options) < 0 ||
                 cx_program_make(state, p->graph, &options, p->backend, p->passes, NULL, NULL,
                                 keep_plan, &planned, &request) < 0;
    Py_XDECREF(copy);
    if (!failed && planned.digest != NULL && planned.rows != NULL)
        return Py_BuildValue("(NNL)", planned.digest, planned.rows, planned.peak_bytes);
    Py_XDECREF(planned.digest);
    Py_XDECREF(planned.rows);
    return failed ? NULL : PyErr_NoMemory();
}
