/* Ends a trace: requested values become real, and a call that can be replayed becomes a
 * Specialization. */
#include "graph/methods.h"
#include "graph/size.h"
#include "replay/specialization.h"

/* Replaces a symbol by its index in the table. */
static int
take_input(const CxTracer *t, CxGuards *guards, int number, CxInput *input)
{
    *input = t->ran[number];
    if (input->symbol >= 0) {
        input->symbol = cx_guards_number(guards, t->env->sources[input->symbol].symbol);
        return input->symbol < 0 ? -1 : 0;
    }
    if (input->source >= 0 && input->source < cx_guards_count(guards))
        return 0;
    PyErr_Format(PyExc_ValueError, "input %d has source %d, and %d sources were given", number,
                 input->source, cx_guards_count(guards));
    return -1;
}

/* Takes the inputs of the latest run; NULL with an exception. */
static CxInput *
inputs_of(const CxTracer *t, CxGuards *guards, int count)
{
    CxInput *inputs = PyMem_Calloc((size_t)count + 1, sizeof *inputs);

    if (inputs == NULL)
        PyErr_NoMemory();
    for (int k = 0; inputs != NULL && k < count; k++)
        if (take_input(t, guards, k, &inputs[k]) < 0) {
            PyMem_Free(inputs);
            return NULL;
        }
    return inputs;
}

/* Returns a text instead if the result cannot be made again. */
static PyObject *
make_specialization(CxTracer *t, bool has_program, PyObject *sources, PyObject *checks,
                    PyObject *result, PyObject *reached)
{
    CxProgram *program = has_program ? (CxProgram *)t->program : NULL;
    const char *why = NULL;
    int ninputs = has_program ? t->nran : 0;
    CxGuards *guards = cx_guards_new(t, sources, checks);

    if (guards == NULL)
        return NULL;
    CxResult *recipe = cx_result_new(t, result, reached, program, guards, &why);
    if (recipe == NULL) {
        cx_guards_free(guards);
        return PyErr_Occurred() ? NULL : PyUnicode_FromString(why);
    }
    CxInput *inputs = inputs_of(t, guards, ninputs);
    if (inputs == NULL) {
        cx_result_free(recipe);
        cx_guards_free(guards);
        return NULL;
    }
    /* The caller of finish asks NumPy about this call's float flags. */
    return cx_specialization_new(t->state, program, guards, recipe, ninputs, inputs,
                                 t->float_flags);
}

/* A check of the only program failed and CheckFailed is set. Later calls may pass the check, so
 * the exception keeps the specialization. */
static void
keep_for_others(CxTracer *t, PyObject *sources, PyObject *checks, PyObject *result,
                PyObject *reached)
{
    PyObject *error = cx_take_exception(), *spec = NULL;

    cx_symbols_reveal(t);
    if (error != NULL)
        spec = make_specialization(t, true, sources, checks, result, reached);
    if (spec != NULL && !PyUnicode_Check(spec))
        (void)PyObject_SetAttrString(error, "specialization", spec);
    Py_XDECREF(spec);
    PyErr_Clear();
    cx_restore_exception(error);
}

/* 1 if NumPy shall run the call because of the float flags that were raised, -1 with an exception. */
static int
leaves_to_numpy(CxTracer *t)
{
    if (t->float_flags == 0 || t->on_flags == NULL || t->on_flags == Py_None)
        return 0;
    PyObject *answer = PyObject_CallNoArgs(t->on_flags);
    int is_numpys = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    return is_numpys;
}

PyObject *
cx_method_finish(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"sources", "checks", "result", "reached", NULL};
    CxTracer *t = (CxTracer *)self;
    PyObject *sources = NULL, *checks = NULL, *result = NULL, *reached = Py_None, *real = NULL,
             *spec = NULL, *pair = NULL;
    CxStorage **wanted = NULL;
    int nwanted = 0, before = t->flushes;

    CX_ENTRY();
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O!O|O:finish", names, &PyList_Type, &sources,
                                     &PyList_Type, &checks, &result, &reached))
        return NULL;
    for (CxStorage *s = t->storages; s != NULL; s = s->next)
        s->position = -1;
    if (cx_result_collect(result, &wanted, &nwanted) < 0)
        goto done;
    /* If Python is needed anyway, values that Python refers to must be real. */
    if (cx_tracer_flush(t, wanted, nwanted, t->needs_python) < 0) {
        if (!t->needs_python && before == 0 && t->flushes == 1 &&
            PyErr_ExceptionMatches(cx_exception(t->state, "CheckFailed")))
            keep_for_others(t, sources, checks, result, reached == Py_None ? NULL : reached);
        goto done;
    }
    cx_symbols_reveal(t);
    int is_numpys = leaves_to_numpy(t);
    int acts = is_numpys == 0 ? cx_result_is_call(result) : 0;
    t->effects += acts > 0; /* counted before it happens: a later step may fail */
    real = is_numpys < 0 || acts < 0 ? NULL : is_numpys ? Py_NewRef(t->state->missing) : cx_result_materialise(result);
    if (real == NULL)
        goto done;
    bool can_replay = !t->needs_python && before == 0;
    spec = can_replay ? make_specialization(t, t->flushes > 0, sources, checks, result,
                                            reached == Py_None ? NULL : reached)
                      : Py_NewRef(Py_None);
    if (spec == NULL)
        goto done;
    cx_tracer_end(t);
    pair = PyTuple_Pack(2, real, spec);
done:
    PyMem_Free(wanted);
    Py_XDECREF(real);
    Py_XDECREF(spec);
    return pair;
}
